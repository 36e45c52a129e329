/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NND_MOST_HEADER 65536

static const char *const nnd_descriptions[] = {"<f4", "<i4", "<i8", "|b1", "|u1", "|i1", "<f2"};

int nnd_fail(nnd_error *error, int code, const char *path, const char *why) {
  error->code = code;
  snprintf(error->text, sizeof error->text, "%s: %s", path, why);
  return 0;
}

/* Returns what stands behind a key of the header, null where it has none. */
static const char *nnd_behind(const char *header, const char *key) {
  const char *found = strstr(header, key);
  if (!found) return NULL;
  found += strlen(key);
  while (*found == ' ' || *found == ':') found++;
  return found;
}

static int nnd_read_header(const char *header, struct nnd_array *array) {
  const char *type = nnd_behind(header, "'descr'"), *order = nnd_behind(header, "'fortran_order'");
  const char *shape = nnd_behind(header, "'shape'");
  int found = 0;
  if (!type || !order || !shape || strncmp(order, "False", 5) || *type != '\'' || *shape++ != '(') return 0;
  while (found < 7 && strncmp(type + 1, nnd_descriptions[found], 3)) found++;
  if (found == 7 || type[4] != '\'') return 0;
  array->tensor.dtype = (nnd_dtype)found;
  for (array->tensor.rank = 0;; array->tensor.rank++) {
    char *end;
    while (*shape == ' ' || *shape == ',') shape++;
    if (*shape == ')') return 1;
    const long long size = strtoll(shape, &end, 10);
    if (end == shape || size < 0 || array->tensor.rank == NND_MAX_RANK) return 0;
    array->shape[array->tensor.rank] = size;
    shape = end;
  }
}

static int64_t nnd_bytes_of_tensor(const nnd_tensor *tensor) {
  int64_t bytes = nnd_bytes_of(tensor->dtype);
  for (int i = 0; i < tensor->rank; i++)
    if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes)) return -1;
  return bytes;
}

/* Returns the whole file with a zero behind it; null and the error where it cannot be read. */
static char *nnd_whole_file(const char *path, int64_t *size, nnd_error *error) {
  FILE *file = fopen(path, "rbe");
  char *data = NULL;
  if (!file) {
    nnd_fail(error, NND_NO_INPUT, path, strerror(errno));
    return NULL;
  }
  if (fseeko(file, 0, SEEK_END) || (*size = ftello(file)) < 0 || fseeko(file, 0, SEEK_SET)) {
    nnd_fail(error, NND_IO, path, strerror(errno));
  } else if (!(data = aligned_alloc(64, (size_t)(*size / 64 + 1) * 64))) {
    nnd_fail(error, NND_NO_MEMORY, path, "no memory for it");
  } else if (fread(data, 1, (size_t)*size, file) != (size_t)*size) {
    nnd_fail(error, NND_IO, path, "reading failed");
    free(data);
    data = NULL;
  } else {
    data[*size] = 0;
  }
  fclose(file);
  return data;
}

int nnd_npy_read(const char *path, struct nnd_array *array, nnd_error *error) {
  int64_t size, bytes;
  char *file = nnd_whole_file(path, &size, error), header[NND_MOST_HEADER + 1];
  if (!file) return 0;
  array->tensor.shape = array->shape;
  const int is_new = size > 8 && file[6] >= 2;
  const int64_t begin = is_new ? 12 : 10;
  int64_t header_bytes = 0;
  for (int64_t i = 8; i < begin && i < size; i++) header_bytes |= (int64_t)(uint8_t)file[i] << 8 * (i - 8);
  if (size >= begin && !memcmp(file, "\x93NUMPY", 6) && header_bytes <= NND_MOST_HEADER &&
      header_bytes <= size - begin) {
    memcpy(header, file + begin, (size_t)header_bytes);
    header[header_bytes] = 0;
    if (nnd_read_header(header, array) && (bytes = nnd_bytes_of_tensor(&array->tensor)) >= 0 &&
        bytes == size - begin - header_bytes) {
      memmove(file, file + begin + header_bytes, (size_t)bytes); /* where it is aligned */
      array->file = file;
      array->tensor.data = file;
      return 1;
    }
  }
  free(file);
  return nnd_fail(error, NND_BAD_DATA, path, "no array of NumPy of a type that is run here, in C order");
}

int nnd_npy_write(const char *path, const nnd_tensor *tensor, nnd_error *error) {
  char header[512];
  int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                      nnd_descriptions[tensor->dtype]);
  for (int i = 0; i < tensor->rank; i++)
    used += snprintf(header + used, sizeof header - (size_t)used, i || tensor->rank > 1 ? "%lld, " : "%lld,",
                     (long long)tensor->shape[i]);
  if (tensor->rank > 1) used -= 2; /* NumPy writes (1, 2) and (1,) */
  used += snprintf(header + used, sizeof header - (size_t)used, "), }");
  while ((10 + used + 1) % 64) header[used++] = ' ';
  header[used++] = '\n';
  const size_t bytes = (size_t)nnd_bytes_of_tensor(tensor);
  FILE *file = fopen(path, "wbe");
  if (!file) return nnd_fail(error, NND_IO, path, strerror(errno));
  const char begin[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(used & 255), (char)(used >> 8)};
  const int is_written = fwrite(begin, sizeof begin, 1, file) == 1 && fwrite(header, (size_t)used, 1, file) == 1 &&
                         (!bytes || fwrite(tensor->data, bytes, 1, file) == 1);
  if (fclose(file) || !is_written) return nnd_fail(error, NND_IO, path, "it cannot be written whole");
  return 1;
}
