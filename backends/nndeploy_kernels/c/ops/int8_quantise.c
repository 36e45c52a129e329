/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_quantise: floats -> the nearest bytes of their quotients by a scale, ties to even; a NaN is the least. Channels
 * of planes come to lie side by side.
 *
 *   output[o][i][c] = saturate(round(input[o][c][i] / scale) + zero)
 */
#include "base/operators.h"
#include "kernels/int8_bytes.h"
#include "model/words.h"

#define NND_MOST_TURNED 4 /* channels */
#define NND_QUANTISED 256 /* places of a unit of work; whole chunks */
#define NND_QUANTISE_CHUNK (4 * NND_LANES)
#define NND_LEAST_SCALE 0x1p-60 /* from here to its reciprocal nothing that is rounded to a byte under- or overflows */

struct nnd_quantise_own {
  NND_FIELDS(int8_quantise)
  float inverse, low, high; /* low, high: beyond all bytes, in what is given */
  struct nnd_int8_end end;
};

NND_READER(int8_quantise, struct nnd_quantise_own)

static int nnd_open_int8_quantise(struct nnd_opener *o) {
  struct nnd_quantise_own *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_int8_quantise(o, own)) return 0;
  own->inverse = 1.0f / own->scale, own->end.zero = (float)own->zero;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || in->element != NND_FLOAT32 || out->is_blocked ||
      (out->element != NND_UINT8 && out->element != NND_INT8))
    return nnd_fail(o->message, "bytes are made of what are no plain floats, or are no plain bytes");
  struct nnd_int8_end *e = &own->end;
  e->element = out->element, e->least = e->element == NND_INT8 ? -128 : 0, e->most = e->least + 255, e->is_whole = 1;
  own->low = ((float)e->least - e->zero - 1.0f) * own->scale;
  own->high = ((float)e->most - e->zero + 1.0f) * own->scale;
  return 1;
}

/* x / scale to the last bit, within bounds. A first quotient is less than two units of its last place off; what is left
 * is exact, and so is the second one, from one that is next to it (Markstein). */
NND_INLINE vf nnd_quotient(const struct nnd_quantise_own *own, vf x) {
  x = nnd_saturated(own->low, own->high, x);
#if defined(__FMA__) || defined(__aarch64__)
  const vf by = nnd_splat(-own->scale), inverse = nnd_splat(own->inverse);
  vf q = x * inverse;
  q = __builtin_elementwise_fma(__builtin_elementwise_fma(q, by, x), inverse, q);
  return __builtin_elementwise_fma(__builtin_elementwise_fma(q, by, x), inverse, q);
#else
  return x / own->scale;
#endif
}

/* Bytes of a chunk of one plane. */
NND_INLINE nnd_vu nnd_quantised_line(const struct nnd_quantise_own *own, const float *from) {
  vf x[4];
  NND_UNROLL
  for (int v = 0; v < 4; v++) x[v] = nnd_quotient(own, nnd_load_any(from + v * NND_LANES));
  const nnd_vu bytes = (nnd_vu)nnd_int8_bytes_of(&own->end, x);
  return NND_IN_ORDER(bytes);
}

/* Bytes of a vector of places of some planes, side by side. */
NND_INLINE nnd_bytes nnd_quantised_planes(const struct nnd_quantise_own *own, int channels, const float *from,
                                          nnd_size plane) {
  nnd_vu words = {0};
  NND_UNROLL
  for (int c = 0; c < channels; c++) {
    const vf x = nnd_quotient(own, nnd_load_any(from + c * plane));
    const vi whole = nnd_int8_whole(x) + (int32_t)own->end.zero;
    const vi least = own->end.least - (vi){0}, most = own->end.most - (vi){0};
    const nnd_vu byte = (nnd_vu)__builtin_elementwise_min(__builtin_elementwise_max(whole, least), most) & 255;
    words |= byte << 8 * c;
  }
  const nnd_bytes bytes = (nnd_bytes)words;
  nnd_bytes dense = {0};
  NND_UNROLL
  for (int i = 0; i < NND_LANES * channels; i++) dense[i] = bytes[i / channels * 4 + i % channels];
  return dense;
}

/* Bytes of a chunk of places. */
NND_INLINE nnd_bytes nnd_quantised_chunk(const struct nnd_quantise_own *own, int channels, const float *from,
                                         nnd_size plane) {
  if (channels == 1) return (nnd_bytes)nnd_quantised_line(own, from);
  return nnd_quantised_planes(own, channels, from, plane);
}

/* `count` places side by side. The last ones are no whole chunk: what is done by bytes stays out of the loop before,
 * whose vectors would else go through memory. */
NND_INLINE void nnd_quantise_some(const struct nnd_quantise_own *own, int channels, const float *in, nnd_size plane,
                                  nnd_size count, uint8_t *out) {
  const nnd_size chunk = channels == 1 ? NND_QUANTISE_CHUNK : NND_LANES;
  for (; count >= chunk; count -= chunk, in += chunk, out += chunk * channels) {
    const nnd_bytes bytes = nnd_quantised_chunk(own, channels, in, plane);
    memcpy(out, &bytes, (size_t)(chunk * channels));
  }
  if (!count) return;
  float kept[NND_MOST_TURNED * NND_QUANTISE_CHUNK] = {0};
  for (int c = 0; c < channels; c++) memcpy(kept + c * chunk, in + c * plane, (size_t)count * sizeof *in);
  const nnd_bytes last = nnd_quantised_chunk(own, channels, kept, chunk);
  nnd_store_few(out, &last, count * channels);
}

struct nnd_quantise_fields {
  const struct nnd_quantise_own *own;
  nnd_size inner, pieces; /* of a plane */
  nnd_size outer;
};

static void nnd_run_int8_quantise(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_quantise_fields *t = fields;
  const struct nnd_quantise_own own = *t->own;
  nnd_size unit, last;
  nnd_share(t->outer * t->pieces, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size first = unit % t->pieces * NND_QUANTISED, count = nnd_min(NND_QUANTISED, t->inner - first);
    const nnd_size image = unit / t->pieces * own.channels * t->inner;
    const float *from = (const float *)at[1] + image + first;
    uint8_t *to = (uint8_t *)at[0] + image + first * own.channels;
    switch (own.channels) {
      case 1: nnd_quantise_some(&own, 1, from, t->inner, count, to); break;
      case 2: nnd_quantise_some(&own, 2, from, t->inner, count, to); break;
      case 3: nnd_quantise_some(&own, 3, from, t->inner, count, to); break;
      default: nnd_quantise_some(&own, 4, from, t->inner, count, to);
    }
  }
}

static int nnd_make_int8_quantise(struct nnd_maker *m) {
  const struct nnd_quantise_own *own = m->step->own;
  struct nnd_quantise_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size count = nnd_shape_of(m, own->out)->count, outer = nnd_size_of(m, own->outer);
  const nnd_size inner = nnd_size_of(m, own->inner), channels = own->channels;
  if (nnd_shape_of(m, own->in)->count != count || outer < 1 || inner < 1 || count % outer || count / outer % channels ||
      count / outer / channels != inner)
    return nnd_fail(m->message, "bytes of planes of other sizes");
  *t = (struct nnd_quantise_fields){own, inner, nnd_ceil_div(inner, NND_QUANTISED), outer};
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_tell_operations(m, count, 8);
  m->instance->run = nnd_run_int8_quantise;
  return 1;
}

const struct nnd_op nnd_op_int8_quantise = {"int8_quantise", nnd_open_int8_quantise, nnd_make_int8_quantise};
