/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/numbers.h"

#include <stdio.h>

#include "runtime/inside.h"

int64_t nnd_num_elements(const nnd_tensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->rank; i++) count *= tensor->shape[i];
  return count;
}

int nnd_is_real(const nnd_tensor *tensor) {
  return tensor->dtype == NND_FLOAT32 || tensor->dtype == NND_FLOAT16 || tensor->dtype == NND_FLOAT64;
}

int64_t nnd_integer_at(const nnd_tensor *tensor, int64_t at) {
  switch (tensor->dtype) {
    case NND_INT64: return ((const int64_t *)tensor->data)[at];
    case NND_INT32: return ((const int32_t *)tensor->data)[at];
    case NND_INT8: return ((const int8_t *)tensor->data)[at];
    case NND_TEXT: return 0;
    default: return ((const uint8_t *)tensor->data)[at];
  }
}

double nnd_number_at(const nnd_tensor *tensor, int64_t at) {
  if (tensor->dtype == NND_FLOAT32) return (double)((const float *)tensor->data)[at];
  if (tensor->dtype == NND_FLOAT64) return ((const double *)tensor->data)[at];
  if (tensor->dtype == NND_FLOAT16) return nnd_from_half(((const uint16_t *)tensor->data)[at]);
  return (double)nnd_integer_at(tensor, at);
}

void nnd_shape_text(int rank, const int64_t *shape, char text[NND_SHAPE_TEXT]) {
  char *at = text;
  *at++ = '[';
  for (int i = 0; i < rank; i++) {
    if (i) *at++ = ',';
    if (shape[i] < 0)
      *at++ = '?';
    else
      at += snprintf(at, 24, "%lld", (long long)shape[i]);
  }
  *at++ = ']', *at = 0;
}
