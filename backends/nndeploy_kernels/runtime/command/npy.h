/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in files as NumPy writes them (format 1 to 3, NEP 1): little-endian, in C order.
 */
#ifndef NND_COMMAND_NPY_H
#define NND_COMMAND_NPY_H

#include "runtime/nndeploy.h"

struct nnd_array {
  nnd_tensor tensor; /* its shape is `shape` */
  int64_t shape[NND_MAX_RANK];
  void *data; /* of malloc, null where nothing was read */
};

int nnd_npy_read(const char *path, struct nnd_array *array, nnd_error *error);
int nnd_npy_write(const char *path, const nnd_tensor *tensor, nnd_error *error);

#endif
