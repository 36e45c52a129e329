/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and reductions of plain tensors (outer, size, inner) along the middle axis. Workers share outer x inner.
 */
#ifndef NND_ALONG_AXIS_H
#define NND_ALONG_AXIS_H

#include "step.h"

struct nnd_along_axis_step {
  nnd_size outer, size, inner;
};

NND_INLINE float nnd_scalar_exp(float x) { return nnd_op_exp(nnd_splat(x))[0]; }
NND_INLINE float nnd_scalar_log(float x) { return nnd_op_log(nnd_splat(x))[0]; }

NND_INLINE void nnd_softmax_any(const struct nnd_along_axis_step *t, int is_log, float *out, const float *in,
                                struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->outer * t->inner, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size base = unit / t->inner * t->size * t->inner + unit % t->inner;
    float most = -__builtin_inff(), sum = 0.0f;
    for (nnd_size k = 0; k < t->size; k++) {
      const float value = in[base + k * t->inner];
      most = value > most || value != value ? value : most;
    }
    for (nnd_size k = 0; k < t->size; k++) {
      const float value = nnd_scalar_exp(in[base + k * t->inner] - most);
      out[base + k * t->inner] = value;
      sum += value;
    }
    const float log_sum = is_log ? nnd_scalar_log(sum) : 0.0f;
    for (nnd_size k = 0; k < t->size; k++) {
      const nnd_size at = base + k * t->inner;
      out[at] = is_log ? in[at] - most - log_sum : out[at] / sum;
    }
  }
}

NND_INLINE void nnd_softmax_step(const struct nnd_along_axis_step *t, float *out, const float *in,
                                 struct nnd_part part) {
  nnd_softmax_any(t, 0, out, in, part);
}
NND_INLINE void nnd_log_softmax_step(const struct nnd_along_axis_step *t, float *out, const float *in,
                                     struct nnd_part part) {
  nnd_softmax_any(t, 1, out, in, part);
}

/* Sums in parts of 64, so that rounding does not grow with the length. */
NND_INLINE void nnd_reduce_any(const struct nnd_along_axis_step *t, int is_max, float scale, float *out,
                               const float *in, struct nnd_part part) {
  nnd_size first, last;
  nnd_share(t->outer * t->inner, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const float *from = in + unit / t->inner * t->size * t->inner + unit % t->inner;
    float most = -__builtin_inff(), sum = 0.0f;
    for (nnd_size begin = 0; begin < t->size; begin += 64) {
      float some = 0.0f;
      for (nnd_size k = begin; k < nnd_min(begin + 64, t->size); k++) {
        const float value = from[k * t->inner];
        most = value > most || value != value ? value : most;
        some += value;
      }
      sum += some;
    }
    out[unit] = is_max ? most : sum * scale;
  }
}

NND_INLINE void nnd_reduce_max_step(const struct nnd_along_axis_step *t, float *out, const float *in,
                                    struct nnd_part part) {
  nnd_reduce_any(t, 1, 1.0f, out, in, part);
}
NND_INLINE void nnd_reduce_sum_step(const struct nnd_along_axis_step *t, float *out, const float *in,
                                    struct nnd_part part) {
  nnd_reduce_any(t, 0, 1.0f, out, in, part);
}
NND_INLINE void nnd_reduce_mean_step(const struct nnd_along_axis_step *t, float *out, const float *in,
                                     struct nnd_part part) {
  nnd_reduce_any(t, 0, 1.0f / (float)t->size, out, in, part);
}

#endif
