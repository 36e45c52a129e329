/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations that a kernel applies to its sums while they are in registers. The kind is a compile-time constant.
 */
#ifndef NND_ACTIVATION_H
#define NND_ACTIVATION_H

#include "vector.h"

enum nnd_activation_kind {
  NND_NONE,
  NND_RELU,
  NND_CLIP,         /* a = low, b = high; ReLU6 is 0, 6 */
  NND_LEAKY_RELU,   /* a = slope */
  NND_PRELU,        /* slope of each channel from `slopes` */
  NND_HARD_SIGMOID, /* clip(a * x + b, 0, 1) */
  NND_HARD_SWISH,   /* x * clip(a * x + b, 0, 1); ONNX: a = 1/6, b = 1/2 */
  NND_SIGMOID,
  NND_SILU,
  NND_TANH,
};

struct nnd_activation {
  enum nnd_activation_kind kind;
  float a, b;
};

/* exp(x) to 2 units in the last place, for x clipped to [-87.3, 88.3].
 * Source: argument reduction by ln 2 in two parts (Cody and Waite), Taylor polynomial of degree 6 on half of ln 2. */
NND_INLINE vf nnd_exp(vf x) {
  const vf clipped = nnd_at_most(nnd_splat(88.3f), nnd_at_least(nnd_splat(-87.3f), x));
  const vf magic = nnd_splat(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
  const vf shifted = clipped * 1.44269504088896341f + magic;
  const vf whole = shifted - magic;
  vf r = clipped - whole * 0.693359375f;
  r = r - whole * -2.12194440e-4f;
  vf p = r * 1.38888889e-3f + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const vi bits = ((vi)shifted - (vi)magic) << 23;
  return (vf)((vi)p + bits);
}

NND_INLINE vf nnd_sigmoid(vf x) { return 1.0f / (1.0f + nnd_exp(-x)); }

NND_INLINE vf nnd_hard_sigmoid(vf x, float a, float b) {
  return nnd_at_most(nnd_splat(1.0f), nnd_at_least(nnd_splat(0.0f), x * a + b));
}

/* `slope` is read by NND_PRELU only. */
NND_INLINE vf nnd_activate_as(enum nnd_activation_kind kind, float a, float b, vf x, vf slope) {
  switch (kind) {
    case NND_NONE: return x;
    case NND_RELU: return nnd_at_least(nnd_splat(0.0f), x);
    case NND_CLIP: return nnd_at_most(nnd_splat(b), nnd_at_least(nnd_splat(a), x));
    case NND_LEAKY_RELU: return nnd_select(x < 0.0f, x * a, x);
    case NND_PRELU: return nnd_select(x < 0.0f, x * slope, x);
    case NND_HARD_SIGMOID: return nnd_hard_sigmoid(x, a, b);
    case NND_HARD_SWISH: return x * nnd_hard_sigmoid(x, a, b);
    case NND_SIGMOID: return nnd_sigmoid(x);
    case NND_SILU: return x * nnd_sigmoid(x);
    case NND_TANH: return 2.0f * nnd_sigmoid(2.0f * x) - 1.0f;
  }
  return x;
}

/* The members one by one: aarch64 passes the structure as two integers, which hides the constant from the compiler. */
#define nnd_activate(act, x, slope) nnd_activate_as((act).kind, (act).a, (act).b, x, slope)

#endif
