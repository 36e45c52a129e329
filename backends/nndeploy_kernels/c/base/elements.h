/* SPDX-License-Identifier: Apache-2.0
 *
 * The elements of tensors, and vectors of them as the lanes that programs compute with: float32 or int64.
 *
 * What a type cannot hold is defined, and the same on every level: whole numbers wrap; a float that int32 or int64
 * cannot hold, and a NaN, becomes its least number, of 8 bits what is left of that of int32, as ONNX Runtime and NumPy
 * have it on x86-64. Anything but zero is true, a NaN too.
 */
#ifndef NND_ELEMENTS_H
#define NND_ELEMENTS_H

#include "base/vector.h"

/* Of a bool, any byte but zero is true; the library writes zeros and ones. */
enum nnd_element { NND_FLOAT32, NND_INT32, NND_INT64, NND_BOOL, NND_UINT8, NND_INT8, NND_NUM_ELEMENTS };
extern const nnd_size nnd_element_bytes[NND_NUM_ELEMENTS];

/* Where vectors lie, and by how many it goes on: 0 where all are the same. */
struct nnd_source {
  const void *at;
  nnd_size step;
};

/* Makes lanes of `count` elements; those behind the last are zeros. `to` has room for whole vectors. */
void nnd_floats_of(int element, const void *from, nnd_size count, vf *to);
void nnd_whole_of(int element, const void *from, nnd_size count, vl *to);

/* Makes `count` elements of lanes. */
void nnd_elements_of_floats(int element, struct nnd_source from, nnd_size count, void *to);
void nnd_elements_of_whole(int element, struct nnd_source from, nnd_size count, void *to);

#endif
