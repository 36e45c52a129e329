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

/* A window of at most `columns` x `rows` taps, which lie `step` and `row` bytes apart. */
struct nnd_pool_taps {
  const uint8_t *from;
  nnd_size rows, columns, row, step;
};

/* The largest of each channel; many lanes of a vector of bytes at once, then fewer, then one. */
#define NND_LARGEST(type, wide, lanes)                                                                                 \
  for (; c + lanes <= channels; c += lanes) {                                                                          \
    wide largest = least - (wide){0};                                                                                  \
    for (nnd_size y = 0; y < t.rows; y++)                                                                              \
      for (nnd_size x = 0; x < t.columns; x++) {                                                                       \
        const wide tap = *(const wide *)(t.from + c + y * t.row + x * t.step);                                         \
        largest = __builtin_elementwise_max(largest, tap);                                                             \
      }                                                                                                                \
    *(wide *)(to + c) = largest;                                                                                       \
  }
#define NND_POOLED(name, type, lowest)                                                                                 \
  typedef type name##_wide __attribute__((vector_size(4 * NND_LANES), aligned(1)));                                    \
  typedef type name##_some __attribute__((vector_size(16), aligned(1)));                                               \
  typedef type name##_one __attribute__((vector_size(1), aligned(1)));                                                 \
  static void name(uint8_t *to, struct nnd_pool_taps t, nnd_size channels) {                                           \
    const type least = lowest;                                                                                         \
    nnd_size c = 0;                                                                                                    \
    NND_LARGEST(type, name##_wide, 4 * NND_LANES)                                                                      \
    NND_LARGEST(type, name##_some, 16)                                                                                 \
    NND_LARGEST(type, name##_one, 1)                                                                                   \
  }
NND_POOLED(nnd_pooled_unsigned, uint8_t, 0)
NND_POOLED(nnd_pooled_signed, int8_t, -128)

static void nnd_run_int8_pool(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_pool_fields *t = fields;
  const struct nnd_axis y = t->y, x = t->x;
  const nnd_size channels = t->channels;
  nnd_size row, last;
  nnd_share(t->images * y.out_size, part, &row, &last);
  for (; row < last; row++) {
    const uint8_t *image = (const uint8_t *)at[1] + row / y.out_size * y.size * x.size * channels;
    uint8_t *to = (uint8_t *)at[0] + row * x.out_size * channels;
    const nnd_size top = row % y.out_size * y.stride - y.pad;
    for (nnd_size column = 0; column < x.out_size; column++, to += channels) {
      const nnd_size left = column * x.stride - x.pad, end_y = nnd_tap_end(y, top), end_x = nnd_tap_end(x, left);
      const nnd_size begin_y = nnd_tap_begin(y, top), begin_x = nnd_tap_begin(x, left);
      const struct nnd_pool_taps taps = {
          image + ((top + begin_y * y.dilation) * x.size + left + begin_x * x.dilation) * channels,
          nnd_max(0, end_y - begin_y), nnd_max(0, end_x - begin_x), y.dilation * x.size * channels,
          x.dilation * channels};
      (t->is_signed ? nnd_pooled_signed : nnd_pooled_unsigned)(to, taps, channels);
    }
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
  m->instance->run = nnd_run_int8_pool;
  return 1;
}

const struct nnd_op nnd_op_int8_pool = {"int8_pool", nnd_open_int8_pool, nnd_make_int8_pool};
