/* SPDX-License-Identifier: Apache-2.0
 *
 * A value that was read, with its memory: from a file as NumPy writes them (format 1 to 3, NEP 1), little-endian and in
 * C order; from the bytes alone; from JSON, as nested lists. Or an image.
 */
#ifndef NND_COMMAND_ARRAY_H
#define NND_COMMAND_ARRAY_H

#include <stdio.h>

#include "runtime/command/answer.h"
#include "runtime/json.h"

#define NND_NPY_MAGIC "\x93NUMPY"

/* A file that was read whole. */
struct nnd_file {
  const char *path;
  char *bytes; /* of nnd_lines_take; null where an array has taken them */
  int64_t size;
};

struct nnd_array {
  nnd_tensor tensor; /* its shape is `shape` */
  int64_t shape[NND_MAX_RANK];
  void *memory; /* in which its values lie, of nnd_lines_take; null where nothing was read */
};

/* "-" is standard input. There is room for a byte behind the last. */
int nnd_file_read(const char *path, struct nnd_file *file, nnd_error *error);
void nnd_file_free(struct nnd_file *file);
/* Takes the bytes of a file from `offset` on as the values of an array. Returns 0 where there is no memory. */
int nnd_array_of_file(struct nnd_file *file, int64_t offset, struct nnd_array *array);
int nnd_npy_read(struct nnd_file *file, struct nnd_array *array, nnd_error *error);
/* Reads the bytes of a tensor as it lies in memory; one open size is what they come to. */
int nnd_raw_read(struct nnd_file *file, const nnd_info *input, struct nnd_array *array, nnd_error *error);
int nnd_is_image(const struct nnd_file *file);
int nnd_give_image(nnd_call *call, const struct nnd_file *file, nnd_error *error);
int nnd_npy_write(const char *path, const nnd_tensor *tensor, nnd_error *error);
/* Reads a value of an input; texts stay in the memory of the JSON. */
int nnd_array_from_json(const struct nnd_json *from, const nnd_info *input, struct nnd_array *array, nnd_error *error);
/* Adds a value; a list of maps where it has `keys`. */
void nnd_answer_tensor(struct nnd_answer *answer, const char *key, const nnd_tensor *value, const nnd_tensor *keys);

#endif
