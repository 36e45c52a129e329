/* SPDX-License-Identifier: Apache-2.0
 *
 * planar_separable: two records (ops/conv_record.h), a depthwise convolution and the pointwise one of what it gives,
 * with NCHW before it, behind it or both; no residual.
 *
 * NCHW before it is never made NCHWc: the depthwise part works on planes, and the pointwise part takes its pixels from
 * planes as it takes them from blocks. NCHW behind it: what a panel of a window writes is changed while it lies in the
 * cache. Windows are whole rows of all channels.
 */
#include <stdio.h>

#include "kernels/layout.h"
#include "kernels/planar_depthwise.h"
#include "kernels/separable.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

/* Least rows of a window of planes, where L2 holds them: windows copy the rows that they share. 64 -> 64 at 320 x 320
 * takes 0.89 of the time that it takes with one: AMD Zen 5, L2 1 MiB, 2026-11-20. */
#define NND_PLANAR_ROWS 4

struct nnd_planar_own {
  struct nnd_conv first, second;
  int planar_in, planar_out;
};

static int nnd_open_planar(struct nnd_opener *o) {
  struct nnd_planar_own *own = nnd_own(o, sizeof *own);
  struct nnd_two_convs words;
  if (!own || !nnd_read_two_convs(o, &words) || !nnd_open_conv(o, &words.first, &own->first, 1, 0) ||
      !nnd_open_conv(o, &words.second, &own->second, 0, 1))
    return 0;
  const struct nnd_conv *first = &own->first, *second = &own->second;
  if (second->in != first->out || first->groups != first->in_channels || first->groups != first->out_channels ||
      first->residual >= 0 || second->residual >= 0 || second->groups != 1)
    return nnd_fail(o->message, "a pair of convolutions that is none");
  own->planar_in = !o->model->tensors[first->in].is_blocked;
  own->planar_out = !o->model->tensors[second->out].is_blocked;
  return nnd_pack_conv(o, &own->first, own->planar_in ? NND_PACK_NOTHING : NND_PACK_DEPTHWISE) &&
         nnd_pack_conv(o, &own->second, own->planar_in ? NND_PACK_PLANAR : NND_PACK_PRODUCTS);
}

/* A worker's scratch: where `planar_in` the rows that a window reads of two channels; the first result at `first_at`;
 * where `planar_out` what a panel gives at `second_at`. Workers share windows. */
struct nnd_planar_fields {
  struct nnd_planar_depthwise planes; /* where `planar_in` */
  struct nnd_depthwise blocks;        /* elsewhere */
  struct nnd_pointwise pointwise;
  const nnd_size *offsets; /* of the channels of the first result */
  nnd_size images, window_rows, first_at, second_at;
  int planar_in, planar_out;
};

/* Panel `panel` of the pointwise part of `pixels` pixels, from the first result to `d.out`, where planes follow each
 * other as `s` says; weights, bias and numbers are those of the first panel. */
static void nnd_planar_panel(const struct nnd_planar_fields *t, const struct nnd_pointwise *s, nnd_size panel,
                             nnd_size pixels, int vectors, const char *first, const void *weights,
                             struct nnd_pointwise_data d) {
  const nnd_size full = nnd_full_panels(nnd_blocks(s->out_channels)), block = panel * NND_PANEL;
  d.bias += block * NND_LANES;
  if (s->end.number) d.numbers += block * NND_LANES;
  if (t->planar_in) {
    struct nnd_tile_job job = nnd_pointwise_job(s, NND_WHOLE, vectors, d);
    job.in = first;
    job.weights = (const float *)weights + block * NND_LANES * s->in_channels;
    job.offsets = t->offsets;
    nnd_run_cut(nnd_cut_of(NND_PLANES, vectors, 0, pixels, 0), NND_PLANES, vectors, 0, &job);
    return;
  }
  d.in = (const nnd_elem *)first;
  d.weights = (const nnd_weight *)weights + block * NND_LANES * nnd_grouped_channels(s->in_channels);
  const int half = panel == full && nnd_has_half(s->out_channels);
  nnd_pointwise_panel(s, NND_WHOLE, pixels, vectors, half, d, nnd_no_prefetch);
}

/* `rows` output rows from `row` on of image `image`. */
static void nnd_planar_window(const struct nnd_planar_fields *t, nnd_size rows, nnd_size row, nnd_size image,
                              void *const *at, char *scratch) {
  const struct nnd_axis y = t->planar_in ? t->planes.y : t->blocks.y, x = t->planar_in ? t->planes.x : t->blocks.x;
  const nnd_size width = x.out_size, pixels = rows * width, out_pixels = y.out_size * width;
  char *first = scratch + t->first_at;
  if (t->planar_in) {
    const nnd_size of_image = t->planes.channels * y.size * x.size;
    nnd_planar_depthwise(&t->planes, rows, row, (const float *)at[1] + image * of_image,
                         (const float *)at[1] + t->images * of_image, at[2], at[3], at[4], (float *)scratch,
                         (float *)first);
  } else {
    const struct nnd_separable_data d = {at[2], at[3], at[4], {.out = NULL}};
    const nnd_size blocks = nnd_blocks(t->pointwise.in_channels);
    nnd_separable_first(&t->blocks, rows, width, row, 0, 0, blocks, &d,
                        (const nnd_elem *)at[1] + image * blocks * y.size * x.size * NND_LANES, (nnd_elem *)first);
  }
  struct nnd_pointwise s = t->pointwise;
  s.in_plane = pixels * NND_LANES;
  s.out_plane = (t->planar_out ? pixels : out_pixels) * NND_LANES;
  const nnd_size blocks = nnd_blocks(s.out_channels), full = nnd_full_panels(blocks);
  const int is_aligned = (uintptr_t)at[0] % sizeof(vf) == 0 && width % NND_LANES == 0; /* at each row of each plane */
  for (nnd_size panel = 0; panel <= full; panel++) {
    const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
    const nnd_size block = panel * NND_PANEL;
    nnd_elem *made = (nnd_elem *)(scratch + t->second_at);
    struct nnd_pointwise_data d = {.bias = at[6], .numbers = at[7], .out = made};
    if (!t->planar_out) d.out = (nnd_elem *)at[0] + ((image * blocks + block) * out_pixels + row * width) * NND_LANES;
    s.stream = t->pointwise.stream && !t->planar_out;
    nnd_planar_panel(t, &s, panel, pixels, vectors, first, at[5], d);
    for (int v = 0; t->planar_out && v < vectors; v++) {
      const nnd_size channel = (block + v) * NND_LANES;
      nnd_plain_run(nnd_min(NND_LANES, s.out_channels - channel), pixels, out_pixels, t->pointwise.stream && is_aligned,
                    made + v * s.out_plane,
                    (float *)at[0] + (image * s.out_channels + channel) * out_pixels + row * width);
    }
  }
}

static void nnd_run_planar(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_planar_fields *t = fields;
  const nnd_size out_rows = t->planar_in ? t->planes.y.out_size : t->blocks.y.out_size;
  const nnd_size down = nnd_ceil_div(out_rows, t->window_rows);
  nnd_size first, last;
  nnd_share(t->images * down, part, &first, &last);
  if (t->planar_in && first < last) memset(part.scratch, 0, (size_t)(2 * t->planes.copied) * sizeof(float));
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / down, row = unit % down * t->window_rows;
    nnd_planar_window(t, nnd_min(t->window_rows, out_rows - row), row, image, at, part.scratch);
  }
}

/* Whether the result of `second` is a plain value that fits it. */
static int nnd_check_planar_out(const struct nnd_maker *m, const struct nnd_conv *second) {
  const struct nnd_shape *in = nnd_sizes_of(m, second->in), *out = nnd_sizes_of(m, second->out);
  const int fits = out->rank == 4 && !out->is_blocked && out->element == NND_FLOAT32 && in->sizes[0] == out->sizes[0] &&
                   in->sizes[1] == second->in_channels && out->sizes[1] == second->out_channels &&
                   in->sizes[2] == out->sizes[2] && in->sizes[3] == out->sizes[3];
  return fits || nnd_fail(m->message, "the images of a convolution do not fit its weights");
}

/* Makes the tables of the depthwise part over planes, `window_rows` rows at a time, and of its result. */
static int nnd_make_planes(struct nnd_maker *m, const struct nnd_conv *first, const struct nnd_axis *y,
                           const struct nnd_axis *x, struct nnd_planar_fields *t) {
  const nnd_size channels = first->out_channels, plane = t->window_rows * x->out_size;
  struct nnd_planar_depthwise s = {.y = *y, .x = *x, .end = first->end, .channels = channels, .out_plane = plane};
  nnd_planar_row_of(&s);
  const nnd_size rows = nnd_window_rows(*y, t->window_rows);
  if (__builtin_mul_overflow(rows * x->stride, s.phase, &s.copied) || s.copied > NND_MOST_BYTES / 16)
    return nnd_fail(m->message, "the rows of a convolution are too large");
  nnd_size *tables = nnd_memory_take(&m->table->memory, (x->kernel + channels) * (nnd_size)sizeof *tables);
  if (!tables) return nnd_fail(m->message, "no memory for a convolution");
  for (nnd_size kx = 0; kx < x->kernel; kx++) tables[kx] = nnd_planar_place(&s, kx * x->dilation);
  for (nnd_size i = 0; i < channels; i++) tables[x->kernel + i] = i * plane;
  s.places = tables;
  t->planes = s;
  t->offsets = tables + x->kernel;
  t->first_at = nnd_ceil_div(2 * s.copied * (nnd_size)sizeof(float), NND_ALIGNMENT) * NND_ALIGNMENT;
  return 1;
}

static int nnd_make_planar(struct nnd_maker *m) {
  const struct nnd_planar_own *own = m->step->own;
  const struct nnd_conv *first = &own->first, *second = &own->second;
  struct nnd_axis y, x, y2, x2;
  if (!nnd_conv_axes(m, first, &y, &x)) return 0;
  if (own->planar_out ? !nnd_check_planar_out(m, second) : !nnd_conv_axes(m, second, &y2, &x2)) return 0;
  if (!nnd_is_pointwise(m, second) || (!own->planar_out && (y2.size != y2.out_size || x2.size != x2.out_size)))
    return nnd_fail(m->message, "a pair whose second convolution is not pointwise");
  const struct nnd_shape *in = nnd_sizes_of(m, first->in), *between = nnd_sizes_of(m, first->out);
  const struct nnd_shape *out = nnd_sizes_of(m, second->out);
  if (own->planar_in && in->element != NND_FLOAT32) return nnd_fail(m->message, "a convolution of whole numbers");
  struct nnd_planar_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size images = in->sizes[0], channels = first->out_channels, vector = NND_LANES * (nnd_size)sizeof(nnd_elem);
  const nnd_size row_bytes = between->num_bytes / (images * y.out_size);
  const nnd_size in_bytes = images * nnd_blocks(channels) * y.size * x.size * vector; /* as if it were NCHWc */
  nnd_size capacity = nnd_pair_capacity(m, in_bytes, between->num_bytes, row_bytes);
  if (m->table->model->options.buffer_bytes <= 0 && own->planar_in && y.stride == 1)
    capacity = nnd_max(capacity, nnd_min(NND_PLANAR_ROWS * row_bytes, nnd_l2(m) / 2));
  const struct nnd_window window = nnd_window_for(capacity, y.out_size, x.out_size, channels);
  const nnd_size whole = window.columns == x.out_size ? window.rows : 1; /* whole rows, however long they are */
  t->window_rows = nnd_shared_rows(whole, y.out_size, images, nnd_threads(m));
  t->planar_in = own->planar_in, t->planar_out = own->planar_out, t->images = images;
  t->pointwise = (struct nnd_pointwise){
      .in_channels = channels,
      .out_channels = second->out_channels,
      .panel_channels = channels,
      .end = second->end,
      .stream = out->num_bytes > NND_STREAM_FROM,
      .prefetch_weights = channels * second->out_channels * (nnd_size)sizeof(nnd_weight) > NND_PREFETCH_FROM};
  const nnd_size pixels = t->window_rows * x.out_size;
  if (own->planar_in) {
    if (!nnd_make_planes(m, first, &y, &x, t)) return 0;
    t->second_at = t->first_at + (channels * pixels + NND_LANES) * (nnd_size)sizeof(float);
  } else {
    t->blocks = (struct nnd_depthwise){y, x, first->end, 0, nnd_depthwise_for(&x)};
    t->second_at = nnd_blocks(channels) * pixels * vector;
  }
  t->second_at = nnd_ceil_div(t->second_at, NND_ALIGNMENT) * NND_ALIGNMENT;
  m->scratch_bytes = t->second_at + (own->planar_out ? NND_MOST_VECTORS * pixels * vector : 0);
  m->instance->run = nnd_run_planar;
  nnd_give_tensor(m, second->out);
  nnd_give_tensor(m, first->in);
  nnd_give(m, own->planar_in ? first->weights : first->packed);
  nnd_give(m, first->bias);
  nnd_give(m, first->numbers);
  nnd_give(m, second->packed);
  nnd_give(m, second->bias);
  nnd_give(m, second->numbers);
  snprintf(m->instance->shown, sizeof m->instance->shown, "window %lldx%lldx%lld, buffer %lld bytes",
           (long long)t->window_rows, (long long)x.out_size, (long long)channels, (long long)capacity);
  return 1;
}

const struct nnd_op nnd_op_planar_separable = {"planar_separable", nnd_open_planar, nnd_make_planar};
