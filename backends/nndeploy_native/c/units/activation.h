/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a block of sums: the number stands in the flags of a table's row. None and relu are done where the
 * sums are stored; the others when the block has been written and is still in the first cache.
 */
#ifndef NND_UNITS_ACTIVATION_H
#define NND_UNITS_ACTIVATION_H

#include "../elementwise.h"

/* X(with, number, name, NAME, function): those that are done when the block has been written. Element-wise units have
 * the same, by NND_FIRST_ACTIVATION_LINK + number (links.h). */
#define NND_LATE_ACTIVATIONS(X, with)                                                                                  \
  X(with, 2, sigmoid, SIGMOID, nnd_op_sigmoid) X(with, 3, tanh, TANH, nnd_op_tanh)                                     \
  X(with, 4, silu, SILU, nnd_op_silu) X(with, 5, hardswish, HARDSWISH, nnd_op_hardswish)                               \
  X(with, 6, gelu, GELU, nnd_gelu)
#define NND_NUMBERED(with, number, name, NAME, function) NND_##NAME = number,

enum nnd_activation { NND_IDENTITY = 0, NND_RELU = 1, NND_LATE_ACTIVATIONS(NND_NUMBERED, ) NND_ACTIVATIONS = 7 };

NND_INLINE float nnd_least(int activation) { return activation == NND_RELU ? 0.0f : -__builtin_inff(); }

NND_INLINE vf nnd_gelu(vf x) { return 0.5f * x * (1.0f + nnd_op_erf(x * 0.70710678f)); }

#define NND_ACTIVATE(with, number, name, NAME, function)                                                               \
  case number:                                                                                                         \
    for (nnd_size r = 0; r < rows; r++)                                                                                \
      for (nnd_size c = 0; c < columns; c += NND_LANES) {                                                              \
        const nnd_size count = nnd_min(NND_LANES, columns - c);                                                        \
        float *at = out + r * row + c;                                                                                 \
        nnd_store_some(at, function(nnd_spread(at, 1, count)), count);                                                 \
      }                                                                                                                \
    break;

static void nnd_activate(int activation, float *out, nnd_size row, nnd_size rows, nnd_size columns) {
  switch (activation) {
    NND_LATE_ACTIVATIONS(NND_ACTIVATE, )
    default: break;
  }
}

#endif
