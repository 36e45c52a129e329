/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/command/command.h"

#define NND_MOST_HEADER 65536

static const char *const nnd_descriptions[] = {"<f4", "<i4", "<i8", "|b1", "|u1", "|i1", "<f2"};

/* Returns what stands behind a key of the header, null where it has none. */
static const char *nnd_behind(const char *header, const char *key) {
  const char *found = strstr(header, key);
  if (!found) return NULL;
  found += strlen(key);
  while (*found == ' ' || *found == ':') found++;
  return found;
}

/* Returns "" and what the header says, or why no array of its kind is run here. */
static const char *nnd_read_header(const char *header, struct nnd_array *array) {
  const char *type = nnd_behind(header, "'descr'"), *order = nnd_behind(header, "'fortran_order'");
  const char *shape = nnd_behind(header, "'shape'");
  int found = 0;
  if (!type || !order || !shape || *type != '\'' || *shape++ != '(') return "a header that is none of NumPy";
  if (strncmp(order, "False", 5)) return "an array in Fortran order (hint: numpy.ascontiguousarray)";
  while (found < 7 && strncmp(type + 1, nnd_descriptions[found], 3)) found++;
  if (!strncmp(type + 1, "<f8", 3)) return "an array of float64 (hint: convert it to float32)";
  if (type[1] == '>') return "an array of the other byte order (hint: numpy.astype with '<')";
  if (found == 7 || type[4] != '\'')
    return "an array of another type than float32, int32, int64, bool, uint8, int8 and float16";
  array->tensor.dtype = (nnd_dtype)found;
  for (array->tensor.rank = 0;; array->tensor.rank++) {
    char *end;
    while (*shape == ' ' || *shape == ',') shape++;
    if (*shape == ')') return "";
    const long long size = strtoll(shape, &end, 10);
    if (end == shape || size < 0 || array->tensor.rank == NND_MAX_RANK)
      return "a shape that is none, or of too many axes";
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

/* Returns all that a file or a pipe holds; null and the error where it cannot be read. "-" is standard input. */
static char *nnd_whole_file(const char *path, int64_t *size, nnd_error *error) {
  const int is_standard = !strcmp(path, "-");
  FILE *file = is_standard ? stdin : fopen(path, "rbe");
  struct stat about;
  char *data = NULL;
  int64_t room = 0;
  *size = 0;
  if (!file || fstat(fileno(file), &about) || S_ISDIR(about.st_mode)) {
    nnd_fail(error, NND_NO_INPUT, path, file ? "a folder, not a file" : strerror(errno));
    if (file && !is_standard) fclose(file);
    return NULL;
  }
  for (;;) {
    if (*size == room) {
      room = room ? 2 * room : about.st_size + 4096;
      char *larger = realloc(data, (size_t)room);
      if (!larger) break;
      data = larger;
    }
    const size_t got = fread(data + *size, 1, (size_t)(room - *size), file);
    *size += (int64_t)got;
    if (!got) break;
  }
  const int is_read = *size < room && !ferror(file);
  if (!is_read) {
    nnd_fail(error, ferror(file) ? NND_IO : NND_NO_MEMORY, path, ferror(file) ? "reading failed" : "no memory for it");
    free(data);
    data = NULL;
  }
  if (!is_standard) fclose(file);
  return data;
}

int nnd_npy_read(const char *path, struct nnd_array *array, nnd_error *error) {
  int64_t size, header_bytes = 0;
  char *file = nnd_whole_file(path, &size, error), header[NND_MOST_HEADER + 1];
  if (!file) return 0;
  const char *why = "no array of NumPy: a .npy file is wanted";
  const int64_t begin = size > 8 && file[6] >= 2 ? 12 : 10;
  array->tensor.shape = array->shape;
  for (int64_t i = 8; i < begin && i < size; i++) header_bytes |= (int64_t)(uint8_t)file[i] << 8 * (i - 8);
  if (size >= begin && !memcmp(file, "\x93NUMPY", 6) && header_bytes <= NND_MOST_HEADER &&
      header_bytes <= size - begin) {
    memcpy(header, file + begin, (size_t)header_bytes);
    header[header_bytes] = 0;
    why = nnd_read_header(header, array);
    const int64_t bytes = *why ? 0 : nnd_bytes_of_tensor(&array->tensor);
    if (!*why && bytes != size - begin - header_bytes) why = "it has not as many bytes as its shape says";
    array->data = *why ? NULL : aligned_alloc(64, (size_t)(bytes / 64 + 1) * 64);
    if (array->data) memcpy(array->data, file + begin + header_bytes, (size_t)bytes);
    array->tensor.data = array->data;
  }
  free(file);
  return array->data ? 1 : nnd_fail(error, *why ? NND_BAD_DATA : NND_NO_MEMORY, path, *why ? why : "no memory for it");
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
  if (!file) return nnd_fail(error, NND_CANNOT_CREATE, path, strerror(errno));
  const char begin[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(used & 255), (char)(used >> 8)};
  const int is_written = fwrite(begin, sizeof begin, 1, file) == 1 && fwrite(header, (size_t)used, 1, file) == 1 &&
                         (!bytes || fwrite(tensor->data, bytes, 1, file) == 1);
  if (fclose(file) || !is_written) return nnd_fail(error, NND_IO, path, "it cannot be written whole");
  return 1;
}
