/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_times: bytes of images whose channels lie side by side, (N, ..., C), each channel of an image times a number.
 *
 *   saturate(round((x - zero) * factor * by[image][channel]) + out_zero)      to the nearest, ties to even
 *
 * Numbers of as many pixels as fill some vectors lie behind each other in scratch: those are one run of bytes.
 */
#include "base/operators.h"
#include "kernels/int8_bytes.h"
#include "model/words.h"

#define NND_TIMES_CHUNK (4 * NND_LANES) /* bytes that are made at once */
#define NND_TIMES_RUN 512               /* bytes of a run, at least where an image has as many */

struct nnd_times_own {
  int in, by, out;
  float zero, factor, low, high; /* low, high: beyond all bytes */
  struct nnd_int8_end end;
};

NND_RECORD(int8_times)

static int nnd_open_int8_times(struct nnd_opener *o) {
  struct nnd_times_own *own = nnd_own(o, sizeof *own);
  struct nnd_int8_times words;
  if (!own || !nnd_read_int8_times(o, &words)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[words.in], *by = &o->model->tensors[words.by];
  const struct nnd_tensor *out = &o->model->tensors[words.out];
  own->in = words.in, own->by = words.by, own->out = words.out;
  own->zero = (float)words.zero, own->factor = words.factor;
  struct nnd_int8_end *e = &own->end;
  e->element = out->element, e->zero = (float)words.out_zero, e->is_whole = 1;
  e->least = e->element == NND_INT8 ? -128 : 0, e->most = e->least + 255;
  own->low = (float)e->least - e->zero - 1.0f, own->high = (float)e->most - e->zero + 1.0f;
  if (in->is_blocked || by->is_blocked || out->is_blocked || by->element != NND_FLOAT32 || in->rank < 2 ||
      in->rank != out->rank || (in->element != NND_UINT8 && in->element != NND_INT8) ||
      (out->element != NND_UINT8 && out->element != NND_INT8))
    return nnd_fail(o->message, "bytes times numbers of tensors that hold others");
  return 1;
}

struct nnd_times_fields {
  const struct nnd_times_own *own;
  nnd_size images, channels, image, run, runs; /* image, run: bytes */
  nnd_size by_image;                           /* numbers from image to image: 0 where all have the same */
  int is_signed;
};

typedef uint8_t nnd_times_lanes __attribute__((vector_size(NND_LANES), aligned(1)));
typedef int8_t nnd_times_signed __attribute__((vector_size(NND_LANES), aligned(1)));

NND_INLINE nnd_vu nnd_times_chunk(const struct nnd_times_own *own, int is_signed, const uint8_t *from,
                                  const float *by) {
  vf x[4];
  NND_UNROLL
  for (int v = 0; v < 4; v++) {
    const uint8_t *at = from + v * NND_LANES;
    const vf bytes = is_signed ? __builtin_convertvector(*(const nnd_times_signed *)at, vf)
                               : __builtin_convertvector(*(const nnd_times_lanes *)at, vf);
    const vf scaled = (bytes - own->zero) * own->factor * nnd_load_any(by + v * NND_LANES);
    x[v] = nnd_saturated(own->low, own->high, scaled);
  }
  const nnd_vu bytes = (nnd_vu)nnd_int8_bytes_of(&own->end, x);
  return NND_IN_ORDER(bytes);
}

/* A run of `count` bytes: whole chunks, the last with bytes of the one before once more; or one that is copied. */
NND_INLINE void nnd_times_run(const struct nnd_times_own *own, int is_signed, const uint8_t *from, const float *by,
                              uint8_t *to, nnd_size count) {
  for (nnd_size i = 0; i < count && count >= NND_TIMES_CHUNK; i += NND_TIMES_CHUNK) {
    const nnd_size at = nnd_min(i, count - NND_TIMES_CHUNK);
    const nnd_vu bytes = nnd_times_chunk(own, is_signed, from + at, by + at);
    memcpy(to + at, &bytes, NND_TIMES_CHUNK);
  }
  if (count >= NND_TIMES_CHUNK) return;
  uint8_t kept[NND_TIMES_CHUNK] = {0};
  memcpy(kept, from, (size_t)count);
  const nnd_vu bytes = nnd_times_chunk(own, is_signed, kept, by);
  nnd_store_few(to, &bytes, count);
}

static void nnd_run_int8_times(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_times_fields *t = fields;
  const struct nnd_times_own own = *t->own;
  float *by = (float *)part.scratch;
  nnd_size unit, last, known = -1;
  nnd_share(t->images * t->runs, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size image = unit / t->runs, begin = unit % t->runs * t->run, count = nnd_min(t->run, t->image - begin);
    if (image != known) {
      const float *numbers = (const float *)at[2] + image * t->by_image;
      for (nnd_size i = 0; i < t->run; i += t->channels) memcpy(by + i, numbers, (size_t)t->channels * sizeof *by);
      known = image;
    }
    const uint8_t *from = (const uint8_t *)at[1] + image * t->image + begin;
    nnd_times_run(&own, t->is_signed, from, by, (uint8_t *)at[0] + image * t->image + begin, count);
  }
}

static int nnd_make_int8_times(struct nnd_maker *m) {
  const struct nnd_times_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *by = nnd_shape_of(m, own->by);
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  struct nnd_times_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->own = own, t->images = in->sizes[0], t->channels = in->sizes[in->rank - 1], t->image = in->count / t->images;
  t->by_image = by->count == t->channels ? 0 : t->channels, t->is_signed = in->element == NND_INT8;
  if (out->count != in->count || (t->by_image && by->count != t->images * t->channels))
    return nnd_fail(m->message, "bytes times numbers of other sizes");
  t->run = nnd_min(t->image, nnd_ceil_div(NND_TIMES_RUN, t->channels) * t->channels);
  t->runs = nnd_ceil_div(t->image, t->run);
  m->scratch_bytes = nnd_max(t->run, NND_TIMES_CHUNK) * (nnd_size)sizeof(float);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->by);
  nnd_tell_operations(m, out->count, 8);
  m->instance->run = nnd_run_int8_times;
  return 1;
}

const struct nnd_op nnd_op_int8_times = {"int8_times", nnd_open_int8_times, nnd_make_int8_times};
