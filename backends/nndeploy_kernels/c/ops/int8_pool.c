/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_pool: the largest byte of each window of an image whose channels lie side by side, (N, H, W, C).
 */
#include "model/words.h"

NND_RECORD(byte_window)

NND_RECORD(int8_pool)

static int nnd_open_int8_pool(struct nnd_opener *o) {
  struct nnd_int8_pool *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_int8_pool(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->element != out->element || in->rank != 4 || out->rank != 4 ||
      (in->element != NND_UINT8 && in->element != NND_INT8))
    return nnd_fail(o->message, "a pool of bytes of tensors that hold others");
  return 1;
}

struct nnd_int8_pool_fields {
  struct nnd_axis y, x;
  nnd_size images, channels;
  int is_signed;
};

/* Byte i of each of `pixels` of `bytes` is the largest of byte i of `count` others, which lie `step` bytes apart; of none
 * it is the least. From pixel to pixel the others lie `to_next` bytes apart. */
struct nnd_pool_job {
  uint8_t *to;
  const uint8_t *from;
  nnd_size count, step, bytes, pixels, to_next;
};

/* Vectors of `lanes` bytes, the last of a pixel with bytes of the one before once more: the largest stays the largest. */
#define NND_LARGEST(wide, lanes, taps)                                                                                 \
  for (nnd_size i = 0; i < j.bytes; i += (lanes)) {                                                                    \
    const nnd_size first = nnd_min(i, j.bytes - (lanes));                                                              \
    for (nnd_size pixel = 0; pixel < j.pixels; pixel++) {                                                              \
      const uint8_t *from = j.from + first + pixel * j.to_next;                                                        \
      wide largest = least - (wide){0};                                                                                \
      NND_UNROLL                                                                                                       \
      for (nnd_size tap = 0; tap < (taps); tap++)                                                                      \
        largest = __builtin_elementwise_max(largest, *(const wide *)(from + tap * j.step));                            \
      *(wide *)(j.to + first + pixel * j.bytes) = largest;                                                             \
    }                                                                                                                  \
  }
#define NND_LARGEST_OF(wide, lanes)                                                                                    \
  if (j.bytes >= (lanes)) {                                                                                            \
    switch (j.count) {                                                                                                 \
      case 2: NND_LARGEST(wide, lanes, 2) return;                                                                      \
      case 3: NND_LARGEST(wide, lanes, 3) return;                                                                      \
      default: NND_LARGEST(wide, lanes, j.count) return;                                                               \
    }                                                                                                                  \
  }
#define NND_POOLED(name, type, lowest)                                                                                 \
  typedef type name##_wide __attribute__((vector_size(4 * NND_LANES), aligned(1)));                                    \
  typedef type name##_16 __attribute__((vector_size(16), aligned(1)));                                                 \
  typedef type name##_4 __attribute__((vector_size(4), aligned(1)));                                                   \
  typedef type name##_1 __attribute__((vector_size(1), aligned(1)));                                                   \
  static void name(struct nnd_pool_job j) {                                                                            \
    const type least = lowest;                                                                                         \
    NND_LARGEST_OF(name##_wide, 4 * NND_LANES)                                                                         \
    NND_LARGEST_OF(name##_16, 16)                                                                                      \
    NND_LARGEST_OF(name##_4, 4)                                                                                        \
    NND_LARGEST_OF(name##_1, 1)                                                                                        \
  }
NND_POOLED(nnd_pooled_unsigned, uint8_t, 0)
NND_POOLED(nnd_pooled_signed, int8_t, -128)

/* The pixels of an output row, of the largest of each column of the rows of its windows. */
static void nnd_pool_columns(const struct nnd_int8_pool_fields *t, void (*pooled)(struct nnd_pool_job),
                             const uint8_t *line, uint8_t *to) {
  const struct nnd_axis x = t->x;
  for (nnd_size column = 0; column < x.out_size;) {
    const nnd_size left = column * x.stride - x.pad, begin = nnd_tap_begin(x, left), end = nnd_tap_end(x, left);
    struct nnd_pool_job job = {to + column * t->channels,
                               line + (left + begin * x.dilation) * t->channels,
                               nnd_max(0, end - begin),
                               x.dilation * t->channels,
                               t->channels,
                               1,
                               x.stride * t->channels};
    nnd_size pixels = 1; /* side by side, with all of their taps */
    if (begin == 0 && end == x.kernel)
      pixels = nnd_min(x.out_size - column, (x.size - left - (x.kernel - 1) * x.dilation - 1) / x.stride + 1);
    if (x.stride == 1)
      job.bytes *= pixels;
    else
      job.pixels = pixels;
    pooled(job);
    column += pixels;
  }
}

static void nnd_run_int8_pool(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_pool_fields *t = fields;
  const struct nnd_axis y = t->y;
  const nnd_size width = t->x.size * t->channels;
  void (*const pooled)(struct nnd_pool_job) = t->is_signed ? nnd_pooled_signed : nnd_pooled_unsigned;
  uint8_t *line = (uint8_t *)part.scratch;
  nnd_size row, last;
  nnd_share(t->images * y.out_size, part, &row, &last);
  for (; row < last; row++) {
    const uint8_t *image = (const uint8_t *)at[1] + row / y.out_size * y.size * width;
    const nnd_size top = row % y.out_size * y.stride - y.pad, begin = nnd_tap_begin(y, top);
    pooled((struct nnd_pool_job){line, image + (top + begin * y.dilation) * width,
                                 nnd_max(0, nnd_tap_end(y, top) - begin), y.dilation * width, width, 1, 0});
    nnd_pool_columns(t, pooled, line, (uint8_t *)at[0] + row * t->x.out_size * t->channels);
  }
}

static int nnd_make_int8_pool(struct nnd_maker *m) {
  const struct nnd_int8_pool *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_int8_pool_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->sizes[0] != out->sizes[0] || in->sizes[3] != out->sizes[3])
    return nnd_fail(m->message, "the images of a pool of bytes do not fit together");
  struct nnd_axis *axes[2] = {&t->y, &t->x};
  for (int i = 0; i < 2; i++) {
    const nnd_size pad = nnd_size_of(m, own->window.pads[i]);
    if (pad < 0 || pad > NND_MOST_STEP) return nnd_fail(m->message, "a pool has %lld pixels before it", (long long)pad);
    *axes[i] = (struct nnd_axis){in->sizes[1 + i],       out->sizes[1 + i],        own->window.kernel[i],
                                 own->window.strides[i], own->window.dilations[i], pad};
  }
  t->images = in->sizes[0], t->channels = in->sizes[3], t->is_signed = in->element == NND_INT8;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  m->scratch_bytes = t->x.size * t->channels;
  m->instance->run = nnd_run_int8_pool;
  return 1;
}

const struct nnd_op nnd_op_int8_pool = {"int8_pool", nnd_open_int8_pool, nnd_make_int8_pool};
