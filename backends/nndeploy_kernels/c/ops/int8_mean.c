/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_mean: the mean of (x - zero) * scale of each channel of images of bytes whose channels lie side by side,
 * (N, ..., C). Sums of bytes are exact, but for rounding between very many.
 */
#include "base/operators.h"
#include "model/words.h"

#define NND_MEAN_PIXELS 65536 /* whose bytes are added up in int32 */

NND_RECORD(int8_mean)

static int nnd_open_int8_mean(struct nnd_opener *o) {
  struct nnd_int8_mean *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_int8_mean(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->rank < 2 || out->element != NND_FLOAT32 ||
      (in->element != NND_UINT8 && in->element != NND_INT8))
    return nnd_fail(o->message, "a mean of bytes of tensors that hold others");
  return 1;
}

struct nnd_int8_mean_fields {
  nnd_size images, pixels, channels;
  float zero, scale;
  int is_signed;
};

/* Means of `lanes` channels of an image. */
#define NND_MEAN(name, type, lanes)                                                                                    \
  NND_INLINE void name(const struct nnd_int8_mean_fields *t, const uint8_t *from, float *to) {                         \
    typedef type some __attribute__((vector_size(lanes), aligned(1)));                                                 \
    typedef int32_t whole __attribute__((vector_size(4 * (lanes))));                                                   \
    typedef float numbers __attribute__((vector_size(4 * (lanes)), aligned(4)));                                       \
    numbers all = {0};                                                                                                 \
    for (nnd_size first = 0; first < t->pixels; first += NND_MEAN_PIXELS) {                                            \
      const nnd_size end = nnd_min(t->pixels, first + NND_MEAN_PIXELS);                                                \
      whole sums = (int32_t)t->zero * (int32_t)(first - end) - (whole){0};                                             \
      for (nnd_size pixel = first; pixel < end; pixel++)                                                               \
        sums += __builtin_convertvector(*(const some *)(from + pixel * t->channels), whole);                           \
      all += __builtin_convertvector(sums, numbers);                                                                   \
    }                                                                                                                  \
    *(numbers *)to = all * (t->scale / (float)t->pixels);                                                              \
  }
NND_MEAN(nnd_mean_unsigned, uint8_t, NND_LANES)
NND_MEAN(nnd_mean_signed, int8_t, NND_LANES)
NND_MEAN(nnd_mean_unsigned_one, uint8_t, 1)
NND_MEAN(nnd_mean_signed_one, int8_t, 1)

/* Vectors of channels, the last of an image with some of the one before once more. */
static void nnd_run_int8_mean(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_mean_fields *t = fields;
  const nnd_size lanes = t->channels < NND_LANES ? 1 : NND_LANES, each = nnd_ceil_div(t->channels, lanes);
  nnd_size unit, last;
  nnd_share(t->images * each, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size image = unit / each, channel = nnd_min(unit % each * lanes, t->channels - lanes);
    const uint8_t *from = (const uint8_t *)at[1] + image * t->pixels * t->channels + channel;
    float *to = (float *)at[0] + image * t->channels + channel;
    if (lanes == 1)
      (t->is_signed ? nnd_mean_signed_one : nnd_mean_unsigned_one)(t, from, to);
    else
      (t->is_signed ? nnd_mean_signed : nnd_mean_unsigned)(t, from, to);
  }
}

static int nnd_make_int8_mean(struct nnd_maker *m) {
  const struct nnd_int8_mean *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_int8_mean_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->images = in->sizes[0], t->channels = in->sizes[in->rank - 1];
  t->pixels = in->count / t->images / t->channels;
  t->zero = (float)own->zero, t->scale = own->scale, t->is_signed = in->element == NND_INT8;
  if (out->count != t->images * t->channels)
    return nnd_fail(m->message, "the images of a mean of bytes do not fit together");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_tell_operations(m, in->count, 8);
  m->instance->run = nnd_run_int8_mean;
  return 1;
}

const struct nnd_op nnd_op_int8_mean = {"int8_mean", nnd_open_int8_mean, nnd_make_int8_mean};
