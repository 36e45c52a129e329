/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax and reductions of plain tensors (outer, size, inner) along the middle axis. Workers share outer x inner.
 *
 * A vector is NND_LANES places that are reduced each by itself: neighbours of `inner`, or of `outer` where inner is 1.
 * A long contiguous axis is taken in vectors instead, whose lanes are joined at the end.
 */
#ifndef NND_ALONG_AXIS_H
#define NND_ALONG_AXIS_H

#include "base/operators.h"
#include "base/step.h"

/* `count` floats that lie `step` apart; lanes beyond are the first one again. */
NND_INLINE vf nnd_spread(const float *from, nnd_size step, nnd_size count) {
  if (!from) return nnd_splat(0.0f);
  if (step == 0) return nnd_splat(*from);
  if (step == 1 && count == NND_LANES) return nnd_load_any(from);
  vf result = nnd_splat(*from);
  for (nnd_size lane = 0; lane < count; lane++) result[lane] = from[lane * step];
  return result;
}

NND_INLINE void nnd_store_some(float *to, vf value, nnd_size count) {
  if (count == NND_LANES)
    nnd_store_any(to, value);
  else
    for (nnd_size lane = 0; lane < count; lane++) to[lane] = value[lane];
}

struct nnd_along_axis_step {
  nnd_size outer, size, inner;
};

/* Floats that lie `apart` from lane to lane, the first at in + at. */
struct nnd_lanes {
  nnd_size at, apart, count;
};

NND_INLINE vf nnd_take_lanes(const float *from, struct nnd_lanes lanes) {
  return nnd_spread(from, lanes.apart, lanes.count);
}

NND_INLINE void nnd_give_lanes(float *to, struct nnd_lanes lanes, vf value) {
  if (lanes.apart == 1)
    nnd_store_some(to, value, lanes.count);
  else
    for (nnd_size lane = 0; lane < lanes.count; lane++) to[lane * lanes.apart] = value[lane];
}

NND_INLINE struct nnd_lanes nnd_lanes_at(const struct nnd_along_axis_step *t, nnd_size unit, nnd_size last) {
  const nnd_size left = nnd_min(NND_LANES, last - unit);
  if (t->inner == 1) return (struct nnd_lanes){unit * t->size, t->size, left};
  return (struct nnd_lanes){unit / t->inner * t->size * t->inner + unit % t->inner, 1,
                            nnd_min(left, t->inner - unit % t->inner)};
}

/* Whether the axis itself is taken in vectors. */
NND_INLINE int nnd_is_long(const struct nnd_along_axis_step *t) { return t->inner == 1 && t->size >= 2 * NND_LANES; }

#define NND_JOINED(name, operator)                                                                                     \
  NND_INLINE float name(vf x) {                                                                                        \
    float lanes[NND_LANES];                                                                                            \
    nnd_store_any(lanes, x);                                                                                           \
    NND_UNROLL                                                                                                         \
    for (int half = NND_LANES / 2; half > 0; half /= 2) NND_UNROLL                                                     \
    for (int i = 0; i < half; i++) lanes[i] = operator(lanes[i], lanes[i + half]);                                     \
    return lanes[0];                                                                                                   \
  }
NND_INLINE float nnd_larger(float a, float b) { return a > b || a != a ? a : b; }
NND_INLINE float nnd_added(float a, float b) { return a + b; }
NND_JOINED(nnd_joined_max, nnd_larger)
NND_JOINED(nnd_joined_sum, nnd_added)

/* `size` steps `apart` floats; each step is a vector. */
NND_INLINE void nnd_softmax_lanes(const struct nnd_along_axis_step *t, int is_log, float *out, const float *in,
                                  struct nnd_lanes lanes) {
  vf most = nnd_splat(-__builtin_inff()), sum = nnd_splat(0.0f);
  for (nnd_size k = 0; k < t->size; k++) most = nnd_op_max(nnd_take_lanes(in + k * t->inner, lanes), most);
  for (nnd_size k = 0; k < t->size; k++) {
    const vf value = nnd_op_exp(nnd_take_lanes(in + k * t->inner, lanes) - most);
    if (!is_log) nnd_give_lanes(out + k * t->inner, lanes, value);
    sum += value;
  }
  const vf log_sum = is_log ? nnd_op_log(sum) : sum;
  for (nnd_size k = 0; k < t->size; k++) {
    const nnd_size at = k * t->inner;
    nnd_give_lanes(out + at, lanes,
                   is_log ? nnd_take_lanes(in + at, lanes) - most - log_sum : nnd_take_lanes(out + at, lanes) / sum);
  }
}

/* The vector from `k` on of an axis of `size`; lanes beyond hold `rest`. */
NND_INLINE vf nnd_along(const float *from, nnd_size k, nnd_size size, float rest) {
  if (k + NND_LANES <= size) return nnd_load_any(from + k);
  vf result = nnd_splat(rest);
  for (nnd_size lane = 0; lane < size - k; lane++) result[lane] = from[k + lane];
  return result;
}

NND_INLINE void nnd_softmax_long(nnd_size size, int is_log, float *out, const float *in) {
  const float lowest = -__builtin_inff();
  vf most = nnd_splat(lowest), sum = nnd_splat(0.0f);
  for (nnd_size k = 0; k < size; k += NND_LANES) most = nnd_op_max(nnd_along(in, k, size, lowest), most);
  most = nnd_splat(nnd_joined_max(most));
  for (nnd_size k = 0; k < size; k += NND_LANES) {
    const vf value = nnd_op_exp(nnd_along(in, k, size, lowest) - most);
    if (!is_log) nnd_store_some(out + k, value, nnd_min(NND_LANES, size - k));
    sum += value; /* of lanes beyond: exp(-inf) */
  }
  sum = nnd_splat(nnd_joined_sum(sum));
  const vf log_sum = is_log ? nnd_op_log(sum) : sum;
  for (nnd_size k = 0; k < size; k += NND_LANES)
    nnd_store_some(out + k,
                   is_log ? nnd_along(in, k, size, 0.0f) - most - log_sum : nnd_along(out, k, size, 0.0f) / sum,
                   nnd_min(NND_LANES, size - k));
}

NND_INLINE void nnd_softmax_any(const struct nnd_along_axis_step *t, int is_log, float *out, const float *in,
                                struct nnd_part part) {
  nnd_size unit, last;
  nnd_share(t->outer * t->inner, part, &unit, &last);
  while (unit < last) {
    const struct nnd_lanes lanes = nnd_lanes_at(t, unit, last);
    if (nnd_is_long(t))
      nnd_softmax_long(t->size, is_log, out + unit * t->size, in + unit * t->size);
    else
      nnd_softmax_lanes(t, is_log, out + lanes.at, in + lanes.at, lanes);
    unit += nnd_is_long(t) ? 1 : lanes.count;
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

/* Takes `steps` values `step` floats apart, each a vector. Sums in parts of 64, so that rounding does not grow with
 * the length. */
NND_INLINE vf nnd_reduce_lanes(int is_max, nnd_size steps, nnd_size step, const float *in, struct nnd_lanes lanes) {
  vf most = nnd_splat(-__builtin_inff()), sum = nnd_splat(0.0f);
  for (nnd_size begin = 0; begin < steps; begin += 64) {
    vf some = nnd_splat(0.0f);
    for (nnd_size k = begin; k < nnd_min(begin + 64, steps); k++) {
      const vf value = nnd_take_lanes(in + k * step, lanes);
      if (is_max)
        most = nnd_op_max(value, most);
      else
        some += value;
    }
    sum += some;
  }
  return is_max ? most : sum;
}

NND_INLINE float nnd_reduce_long(nnd_size size, int is_max, const float *in) {
  const nnd_size whole = size / NND_LANES;
  const vf found = nnd_reduce_lanes(is_max, whole, NND_LANES, in, (struct nnd_lanes){0, 1, NND_LANES});
  float result = is_max ? nnd_joined_max(found) : nnd_joined_sum(found);
  for (nnd_size k = whole * NND_LANES; k < size; k++) result = is_max ? nnd_larger(in[k], result) : result + in[k];
  return result;
}

NND_INLINE void nnd_reduce_any(const struct nnd_along_axis_step *t, int is_max, float scale, float *out,
                               const float *in, struct nnd_part part) {
  nnd_size unit, last;
  nnd_share(t->outer * t->inner, part, &unit, &last);
  while (unit < last) {
    if (nnd_is_long(t)) {
      out[unit] = nnd_reduce_long(t->size, is_max, in + unit * t->size) * scale;
      unit++;
      continue;
    }
    const struct nnd_lanes lanes = nnd_lanes_at(t, unit, last);
    const vf found = nnd_reduce_lanes(is_max, t->size, t->inner, in + lanes.at, lanes);
    nnd_store_some(out + unit, found * scale, lanes.count);
    unit += lanes.count;
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
