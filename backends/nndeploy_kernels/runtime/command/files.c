/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of inputs: whole, and those that are bytes of a tensor alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/command/array.h"
#include "runtime/command/command.h"
#include "runtime/command/system.h"

/* Returns all that a file or a pipe holds; null and the error where it cannot be read. "-" is standard input. */
static char *nnd_whole_file(const char *path, int64_t *size, nnd_error *error) {
  const int is_standard = !strcmp(path, "-");
  FILE *file = is_standard ? stdin : nnd_file_open(path);
  const int64_t expected = file ? nnd_file_size(file) : -1;
  char *data = NULL;
  int64_t room = 0;
  *size = 0;
  if (expected < 0) {
    nnd_fail(error, NND_NO_INPUT, path,
             file              ? "a folder, not a file"
             : errno == ENOENT ? "no such file"
                               : strerror(errno));
    if (file && !is_standard) fclose(file);
    return NULL;
  }
  for (;;) {
    if (*size == room) {
      room = room ? 2 * room : expected + 4096;
      char *larger = nnd_lines_take(room);
      if (!larger) break;
      if (data) memcpy(larger, data, (size_t)*size);
      nnd_lines_free(data);
      data = larger;
    }
    const size_t got = fread(data + *size, 1, (size_t)(room - *size), file);
    *size += (int64_t)got;
    if (!got) break;
  }
  const int is_read = *size < room && !ferror(file);
  if (!is_read) {
    nnd_fail(error, ferror(file) ? NND_IO : NND_NO_MEMORY, path, ferror(file) ? "reading failed" : "no memory for it");
    nnd_lines_free(data);
    data = NULL;
  }
  if (!is_standard) fclose(file);
  return data;
}

int nnd_file_read(const char *path, struct nnd_file *file, nnd_error *error) {
  file->path = path;
  file->bytes = nnd_whole_file(path, &file->size, error);
  return file->bytes != NULL;
}

void nnd_file_free(struct nnd_file *file) { nnd_lines_free(file->bytes); }

int nnd_array_of_file(struct nnd_file *file, int64_t offset, struct nnd_array *array) {
  const int64_t bytes = file->size - offset;
  char *data = file->bytes + offset;
  if (offset % NND_LINE) { /* kernels want arrays to begin at a cache line */
    if (!(data = nnd_lines_take(bytes))) return 0;
    memcpy(data, file->bytes + offset, (size_t)bytes);
    nnd_lines_free(file->bytes);
    file->bytes = data;
  }
  array->memory = file->bytes, file->bytes = NULL;
  array->tensor.data = data;
  return 1;
}

int nnd_raw_read(struct nnd_file *file, const nnd_info *input, struct nnd_array *array, nnd_error *error) {
  int open = -1, num_open = 0;
  for (int i = 0; i < input->rank; i++) {
    array->shape[i] = input->shape[i];
    if (input->shape[i] < 0) array->shape[i] = 1, open = i, num_open++;
  }
  const int64_t each = nnd_bytes_in(input->dtype, input->rank, array->shape);
  if (num_open > 1 || input->dtype == NND_TEXT)
    return nnd_fail(error, NND_BAD_DATA, file->path,
                    "bytes alone do not say which shape they have (hint: a .npy file)");
  if (each <= 0 || file->size % each || (num_open ? file->size == 0 : file->size != each))
    return nnd_fail(error, NND_BAD_DATA, file->path, "it has not as many bytes as the input");
  if (num_open) array->shape[open] = file->size / each;
  array->tensor = (nnd_tensor){input->dtype, input->rank, array->shape, NULL};
  return nnd_array_of_file(file, 0, array) || nnd_fail(error, NND_NO_MEMORY, file->path, "no memory for it");
}
