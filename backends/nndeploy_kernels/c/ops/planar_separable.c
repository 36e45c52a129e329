/* SPDX-License-Identifier: Apache-2.0
 *
 * planar_separable: two records (ops/conv_record.h), a depthwise convolution and the pointwise one of what it gives,
 * with NCHW before it, behind it or both; no residual.
 *
 * NCHW before it: the rows and columns that a window reads are made NCHWc while they lie in the cache, those that the
 * next one reads too only once. Of few channels, which would not fill vectors, the depthwise part works on planes
 * instead, and the pointwise part takes its pixels from planes as it takes them from blocks. NCHW behind it: what a
 * panel of a window writes is changed while it lies in the cache. Windows are of all channels.
 */
#include <stdio.h>

#include "kernels/layout.h"
#include "kernels/planar_depthwise.h"
#include "kernels/separable.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

/* Channels that are worth planes are up to a part of a vector: 1 -> 64 takes half of the time that it takes in blocks, 10
 * -> 40 takes 1.15 of it. AMD EPYC, AVX-512, 2026-11-29. */
#define NND_PLANES_PART 4

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
  return nnd_pack_conv(o, &own->first, NND_PACK_DEPTHWISE) && nnd_pack_conv(o, &own->second, NND_PACK_PRODUCTS);
}

/* A worker's scratch: of planes what a window reads, as NCHWc, in `blocks.ring` rows, of all channels where
 * `keeps_rows`, else of a vector of them, or, where `by_planes`, the rows that it reads of two channels; the first result
 * at `first_at`; where `planar_out` what a panel gives at `second_at`. Workers share windows, of each strip of columns
 * from above to below. */
struct nnd_planar_fields {
  struct nnd_planar_depthwise planes; /* where `by_planes` */
  struct nnd_depthwise blocks;
  struct nnd_pointwise pointwise;
  const nnd_size *offsets; /* of the channels of the first result, where `by_planes` */
  nnd_size images, window_rows, window_columns, first_at, second_at, panels, piece;
  int planar_in, planar_out, by_planes, keeps_rows;
};

/* Output rows [row, row + rows) and columns [column, column + columns) of an image: whole rows, or a part of one. */
struct nnd_planar_part {
  nnd_size image, row, rows, column, columns;
};

/* What a strip of columns reads: columns [first, first + axis.size) of the input; `axis` counts from there. */
struct nnd_strip {
  struct nnd_axis axis;
  nnd_size first;
};

NND_INLINE struct nnd_strip nnd_strip_of(struct nnd_axis x, nnd_size column, nnd_size columns) {
  if (columns == x.out_size) return (struct nnd_strip){x, 0}; /* rows side by side are one run */
  struct nnd_axis moved = x;
  moved.pad = x.pad - column * x.stride; /* columns from the strip's first one to what its first output reads */
  const nnd_size first = nnd_max(0, -moved.pad), end = nnd_end_row(x, column + columns);
  moved.pad += first, moved.size = nnd_max(0, end - first), moved.out_size = columns;
  return (struct nnd_strip){moved, first};
}

/* Rows [from, to) of a strip of channel block `block` of an image; row y lies at y % blocks.ring. */
static void nnd_planar_rows_in(const struct nnd_planar_fields *t, const struct nnd_strip *strip, nnd_size block,
                               nnd_size from, nnd_size to, const float *image, nnd_elem *rows) {
  const nnd_size ring = t->blocks.ring, width = t->blocks.x.size, columns = strip->axis.size;
  const nnd_size plane = t->blocks.y.size * width, channel = block * NND_LANES;
  const nnd_size held = nnd_min(NND_LANES, t->pointwise.in_channels - channel);
  for (nnd_size row = from; row < to;) {
    const nnd_size slot = row % ring, count = columns == width ? nnd_min(to - row, ring - slot) : 1;
    nnd_blocked_run(held, count * columns, plane, image + channel * plane + row * width + strip->first,
                    rows + slot * columns * NND_LANES);
    row += count;
  }
}

/* The depthwise part of a window, from planes by way of blocks; the rows of its strip before `done` are there. */
static void nnd_planar_first(const struct nnd_planar_fields *t, struct nnd_planar_part w, nnd_size done,
                             const float *image, const struct nnd_separable_data *d, nnd_elem *rows, nnd_elem *first) {
  const struct nnd_axis y = t->blocks.y;
  const struct nnd_strip strip = nnd_strip_of(t->blocks.x, w.column, w.columns);
  const nnd_size from = nnd_first_row(y, w.row), to = nnd_end_row(y, w.row + w.rows);
  const nnd_size step = t->keeps_rows ? t->blocks.ring * strip.axis.size * NND_LANES : 0;
  struct nnd_depthwise s = t->blocks;
  s.x = strip.axis;
  for (nnd_size block = 0; block < nnd_blocks(t->pointwise.in_channels); block++, rows += step) {
    nnd_planar_rows_in(t, &strip, block, t->keeps_rows ? nnd_max(done, from) : from, to, image, rows);
    s.columns(&s, w.row, w.rows, 0, w.columns, rows, d->depthwise_weights + block * y.kernel * s.x.kernel * NND_LANES,
              d->depthwise_bias + block * NND_LANES, nnd_end_number(&s.end, d->depthwise_numbers, block), w.columns,
              first + block * w.rows * w.columns * NND_LANES);
  }
}

/* Panel `panel` of the pointwise part of `pixels` pixels, from the first result, at `first`, to `d.out`, where planes
 * follow each other as `s` says; weights, bias and numbers are those of the first panel. */
static void nnd_planar_panel(const struct nnd_planar_fields *t, const struct nnd_pointwise *s, nnd_size panel,
                             nnd_size pixels, const char *first, const void *weights, struct nnd_pointwise_data d) {
  const nnd_size blocks = nnd_blocks(s->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  d.bias += block * NND_LANES;
  if (s->end.number) d.numbers += block * NND_LANES;
  if (t->by_planes) {
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

/* Panels [panel, last) of the pointwise part of `pixels` pixels, `piece` of them at a time, to blocks that begin at
 * `out`, as `s` says. */
static void nnd_planar_panels(const struct nnd_planar_fields *t, const struct nnd_pointwise *s, nnd_size panel,
                              nnd_size last, nnd_size pixels, void *const *at, const char *first, nnd_elem *packed,
                              nnd_elem *out) {
  const nnd_size base = panel;
  if (packed) {
    const nnd_size block = panel * NND_PANEL * NND_LANES;
    const struct nnd_pointwise_data d = {
        .weights = (const nnd_weight *)at[5] + block * nnd_grouped_channels(s->in_channels),
        .bias = (const float *)at[6] + block,
        .numbers = s->end.number ? (const float *)at[7] + block : NULL,
        .out = out};
    panel += nnd_multiply_packed(s, pixels, panel, last, d, packed);
  }
  const nnd_size pixel_bytes = t->by_planes ? (nnd_size)sizeof(float) : NND_LANES * (nnd_size)sizeof(nnd_elem);
  const nnd_size piece = last - panel > 1 ? nnd_evened(pixels, t->piece) : pixels;
  for (nnd_size from = 0; from < pixels; from += piece)
    for (nnd_size i = panel; i < last; i++) {
      nnd_elem *to = out + (i - base) * NND_PANEL * s->out_plane + from * NND_LANES;
      nnd_planar_panel(t, s, i, nnd_min(piece, pixels - from), first + from * pixel_bytes, at[5],
                       (struct nnd_pointwise_data){.bias = at[6], .numbers = at[7], .out = to});
    }
}

/* nnd_plain_run(), no part of its caller, in which it would spill: its loops take twice as long there. */
NND_NOINLINE void nnd_planar_out(nnd_size held, nnd_size pixels, nnd_size plane, const nnd_elem *from, float *to) {
  nnd_plain_run(held, pixels, plane, 0, from, to);
}

NND_NOINLINE void nnd_planar_out_past(nnd_size held, nnd_size pixels, nnd_size plane, const nnd_elem *from, float *to) {
  nnd_plain_run(held, pixels, plane, 1, from, to);
}

/* The pointwise part of a window, whose outputs lie from `begin` on in each plane of an image. To planes, `panels`
 * panels at a time are made in `made`, and changed then. */
static void nnd_planar_second(const struct nnd_planar_fields *t, nnd_size image, nnd_size begin, nnd_size pixels,
                              void *const *at, const char *first, nnd_elem *packed, nnd_elem *made) {
  const nnd_size out_pixels = t->blocks.y.out_size * t->blocks.x.out_size;
  struct nnd_pointwise s = t->pointwise;
  s.in_plane = pixels * NND_LANES;
  s.out_plane = (t->planar_out ? pixels : out_pixels) * NND_LANES;
  s.stream = t->pointwise.stream && !t->planar_out;
  const nnd_size blocks = nnd_blocks(s.out_channels), count = nnd_full_panels(blocks) + 1;
  if (packed && !nnd_pack_pixels(&s, (const nnd_elem *)first, pixels, packed)) packed = NULL;
  if (!t->planar_out) {
    nnd_planar_panels(t, &s, 0, count, pixels, at, first, packed,
                      (nnd_elem *)at[0] + (image * blocks * out_pixels + begin) * NND_LANES);
    return;
  }
  const int is_aligned = (uintptr_t)at[0] % sizeof(vf) == 0 && (out_pixels | begin | pixels) % NND_LANES == 0;
  const int is_past = t->pointwise.stream && is_aligned;
  for (nnd_size panel = 0; panel < count; panel += t->panels) {
    const nnd_size from = panel * NND_PANEL, last = nnd_min(count, panel + t->panels);
    nnd_planar_panels(t, &s, panel, last, pixels, at, first, packed, made);
    for (nnd_size block = from; block < (last < count ? last * NND_PANEL : blocks); block++)
      (is_past ? nnd_planar_out_past : nnd_planar_out)(
          nnd_min(NND_LANES, s.out_channels - block * NND_LANES), pixels, out_pixels,
          made + (block - from) * s.out_plane,
          (float *)at[0] + (image * s.out_channels + block * NND_LANES) * out_pixels + begin);
  }
}

/* One window; the rows of its strip before `done` are in the ring. */
static void nnd_planar_window(const struct nnd_planar_fields *t, struct nnd_planar_part w, nnd_size done,
                              void *const *at, char *scratch) {
  const struct nnd_axis y = t->blocks.y, x = t->blocks.x;
  const nnd_size blocks = nnd_blocks(t->pointwise.in_channels);
  nnd_elem *first = (nnd_elem *)(scratch + t->first_at);
  const struct nnd_separable_data d = {at[2], at[3], at[4], {.out = NULL}};
  const float *image = (const float *)at[1] + w.image * t->pointwise.in_channels * y.size * x.size;
  if (t->by_planes) {
    const nnd_size of_all = t->images * t->planes.channels * y.size * x.size;
    nnd_planar_depthwise(&t->planes, w.rows, w.row, image, (const float *)at[1] + of_all, at[8], at[3], at[4],
                         (float *)scratch, (float *)first);
  } else if (t->planar_in) {
    nnd_planar_first(t, w, done, image, &d, (nnd_elem *)scratch, first);
  } else {
    nnd_separable_first(&t->blocks, w.rows, w.columns, w.row, w.column, 0, blocks, &d,
                        (const nnd_elem *)at[1] + w.image * blocks * y.size * x.size * NND_LANES, first);
  }
  nnd_planar_second(t, w.image, w.row * x.out_size + w.column, w.rows * w.columns, at, (const char *)first,
                    nnd_pointwise_packed(&t->pointwise, scratch), (nnd_elem *)(scratch + t->second_at));
}

static void nnd_run_planar(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_planar_fields *t = fields;
  const struct nnd_axis y = t->blocks.y, x = t->blocks.x;
  const nnd_size down = nnd_ceil_div(y.out_size, t->window_rows), across = nnd_ceil_div(x.out_size, t->window_columns);
  nnd_size begin, last;
  nnd_share(t->images * across * down, part, &begin, &last);
  if (t->by_planes && begin < last) memset(part.scratch, 0, (size_t)(2 * t->planes.copied) * sizeof(float));
  for (nnd_size unit = begin, done = 0; unit < last; unit++) {
    const nnd_size row = unit % down * t->window_rows, column = unit / down % across * t->window_columns;
    const struct nnd_planar_part w = {unit / down / across, row, nnd_min(t->window_rows, y.out_size - row), column,
                                      nnd_min(t->window_columns, x.out_size - column)};
    nnd_planar_window(t, w, row ? done : 0, at, part.scratch);
    done = nnd_end_row(y, row + w.rows);
  }
}

/* Whether the result of `second` is a plain value that fits it. */
static int nnd_check_planar_out(const struct nnd_maker *m, const struct nnd_conv *second) {
  const struct nnd_shape *in = nnd_shape_of(m, second->in), *out = nnd_shape_of(m, second->out);
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

/* Whether the depthwise part had better work on planes than on blocks: bfloat16 are in blocks alone, and rows are copied
 * pixel by pixel from stride 3 on. */
static int nnd_planes_pay(nnd_size channels, const struct nnd_axis *x) {
#ifdef NND_BF16
  return 0;
#endif
  return channels <= NND_LANES / NND_PLANES_PART && x->stride <= 2;
}

/* Rows of windows that keep, where they were made blocks, the rows that they share: what such a window reads, rows of
 * `in_row` bytes, and its first result, rows of `row`, take five eighths of L2. 0 where there are none, or the image is
 * one window: then windows are those of pairs that read blocks, and each makes blocks of all that it reads, a vector of
 * channels at a time. */
static nnd_size nnd_kept_rows(const struct nnd_maker *m, const struct nnd_axis *y, const struct nnd_pair_sizes *sizes) {
  const nnd_size buffer = nnd_said_buffer(m), row = sizes->row, in_row = sizes->input_row;
  const nnd_size room = nnd_l2(m) / 8 * 5, shared = (y->kernel - 1) * y->dilation + 1 - y->stride;
  nnd_size rows = shared < room / in_row ? (room - shared * in_row) / (y->stride * in_row + row) : 0;
  if (buffer / row >= y->out_size) return 0; /* the pair apart */
  if (buffer > 0) rows = nnd_min(rows, buffer / row);
  if (buffer <= 0 && nnd_l2(m) >= NND_LARGE_L2) rows = nnd_min(rows, 2 * nnd_small_capacity(m, sizes) / row);
  return rows < y->out_size ? rows : 0;
}

/* The bytes of the first result where no rows are kept: each window makes blocks anew of what it shares with the one
 * before, `shared` rows, which should be the lesser part of it. */
static nnd_size nnd_anew_capacity(const struct nnd_maker *m, nnd_size capacity, const struct nnd_axis *y,
                                  nnd_size row) {
  const nnd_size shared = (y->kernel - 1) * y->dilation;
  if (nnd_said_buffer(m) > 0 || row > capacity) return capacity;
  return nnd_max(capacity, nnd_min(y->out_size, 2 * shared) * row);
}

struct nnd_planar_window {
  struct nnd_window window;
  nnd_size capacity;
  int keeps_rows, by_planes;
};

/* `in_bytes`: of the images as if they were NCHWc. */
static struct nnd_planar_window nnd_planar_window_of(const struct nnd_maker *m, const struct nnd_planar_own *own,
                                                     nnd_size in_bytes, const struct nnd_axis *y,
                                                     const struct nnd_axis *x) {
  const struct nnd_shape *between = nnd_shape_of(m, own->first.out);
  const nnd_size images = nnd_shape_of(m, own->first.in)->sizes[0], channels = own->first.out_channels;
  const struct nnd_pair_sizes sizes =
      nnd_pair_sizes_of(in_bytes, between->num_bytes, images, y, channels, own->second.out_channels);
  struct nnd_planar_window w = {.capacity = nnd_pair_capacity(m, &sizes, 0)};
  if (own->planar_out && nnd_said_buffer(m) <= 0) /* what a panel gives is no larger */
    w.capacity = nnd_min(w.capacity, nnd_l2(m) / 2 * nnd_blocks(channels) / NND_PANEL);
  if (own->planar_in) {
    const nnd_size rows = nnd_kept_rows(m, y, &sizes);
    w.keeps_rows = rows > 0;
    w.capacity = rows > 0 ? rows * sizes.row : nnd_anew_capacity(m, w.capacity, y, sizes.row);
  }
  w.window = nnd_shared_window(nnd_window_for(w.capacity, y->out_size, x->out_size, channels), y->out_size, x->out_size,
                               images, nnd_threads(m));
  w.by_planes = own->planar_in && nnd_planes_pay(channels, x) && w.window.columns == x->out_size;
  return w;
}

/* Whether some sums of these windows are split; those of planes never are. */
static int nnd_planar_splits(const struct nnd_maker *m, const struct nnd_planar_window *w,
                             const struct nnd_conv *second, const struct nnd_axis *y, const struct nnd_axis *x) {
  return !w->by_planes && nnd_windows_split(w->window, y->out_size, x->out_size, nnd_piece(m, second->in_channels),
                                            second->out_channels, 0);
}

static int nnd_make_planar(struct nnd_maker *m) {
  const struct nnd_planar_own *own = m->step->own;
  const struct nnd_conv *first = &own->first, *second = &own->second;
  struct nnd_axis y, x, y2, x2;
  if (!nnd_conv_axes(m, first, &y, &x)) return 0;
  if (own->planar_out ? !nnd_check_planar_out(m, second) : !nnd_conv_axes(m, second, &y2, &x2)) return 0;
  if (!nnd_is_pointwise(m, second) || (!own->planar_out && (y2.size != y2.out_size || x2.size != x2.out_size)))
    return nnd_fail(m->message, "a pair whose second convolution is not pointwise");
  const struct nnd_shape *in = nnd_shape_of(m, first->in), *between = nnd_shape_of(m, first->out);
  const struct nnd_shape *out = nnd_shape_of(m, second->out);
  if (own->planar_in && in->element != NND_FLOAT32) return nnd_fail(m->message, "a convolution of whole numbers");
  struct nnd_planar_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size images = in->sizes[0], channels = first->out_channels, vector = NND_LANES * (nnd_size)sizeof(nnd_elem);
  const nnd_size in_bytes = images * nnd_blocks(channels) * y.size * x.size * vector; /* as if it were NCHWc */
  const struct nnd_maker by_rule = nnd_by_rule(m);
  const struct nnd_planar_window rule = nnd_planar_window_of(&by_rule, own, in_bytes, &y, &x);
  struct nnd_planar_window chosen = nnd_planar_window_of(m, own, in_bytes, &y, &x);
  const int is_same = chosen.by_planes == rule.by_planes && !nnd_planar_splits(m, &chosen, second, &y, &x) &&
                      !nnd_planar_splits(&by_rule, &rule, second, &y, &x); /* else sums would round otherwise */
  const int is_chosen = is_same || nnd_may_round(m);
  if (!is_chosen) chosen = rule;
  const nnd_size buffer = nnd_said_buffer(m), capacity = chosen.capacity;
  t->window_rows = chosen.window.rows, t->window_columns = chosen.window.columns;
  t->keeps_rows = chosen.keeps_rows, t->by_planes = chosen.by_planes;
  t->planar_in = own->planar_in, t->planar_out = own->planar_out, t->images = images;
  t->pointwise = (struct nnd_pointwise){
      .in_channels = channels,
      .out_channels = second->out_channels,
      .panel_channels = channels,
      .end = second->end,
      .stream = nnd_streams(m, out->num_bytes),
      .prefetch_weights = channels * second->out_channels * (nnd_size)sizeof(nnd_weight) > NND_PREFETCH_FROM};
  const nnd_size pixels = t->window_rows * t->window_columns;
  t->blocks = (struct nnd_depthwise){y, x, first->end, 0, nnd_depthwise_for(&x)};
  if (t->by_planes) {
    if (!nnd_make_planes(m, first, &y, &x, t)) return 0;
  } else if (own->planar_in) {
    const nnd_size read = t->window_columns == x.out_size ? x.size : nnd_window_rows(x, t->window_columns);
    const nnd_size of_row = read * vector * (t->keeps_rows ? nnd_blocks(channels) : 1);
    nnd_size bytes;
    t->blocks.ring = nnd_window_rows(y, t->window_rows);
    if (__builtin_mul_overflow(of_row, t->blocks.ring, &bytes) || bytes > NND_MOST_BYTES)
      return nnd_fail(m->message, "the rows of a convolution are too large");
    t->first_at = nnd_ceil_div(bytes, NND_ALIGNMENT) * NND_ALIGNMENT;
  }
  t->second_at = t->first_at + (t->by_planes ? (channels * pixels + NND_LANES) * (nnd_size)sizeof(float)
                                             : nnd_blocks(channels) * pixels * vector);
  t->second_at = nnd_ceil_div(t->second_at, NND_ALIGNMENT) * NND_ALIGNMENT;
  t->piece = nnd_piece(is_chosen ? m : &by_rule, channels);
  t->panels = nnd_max(1, nnd_l2(m) / 4 / (NND_PANEL * pixels * vector));
  const nnd_size blocks = nnd_min(nnd_blocks(second->out_channels), (t->panels - 1) * NND_PANEL + NND_MOST_VECTORS);
  m->scratch_bytes = t->second_at + (own->planar_out ? blocks * pixels * vector : 0);
  nnd_tell_kept(m, between->num_bytes, t->second_at);
  if (!t->by_planes) nnd_take_tiles(m, &t->pointwise, y.out_size * x.out_size, pixels);
  m->instance->run = nnd_run_planar;
  nnd_give_tensor(m, second->out);
  nnd_give_tensor(m, first->in);
  nnd_give(m, first->packed);
  nnd_give(m, first->bias);
  nnd_give(m, first->numbers);
  nnd_give(m, second->packed);
  nnd_give(m, second->bias);
  nnd_give(m, second->numbers);
  nnd_give(m, first->weights);
  snprintf(m->instance->shown, sizeof m->instance->shown, "window %lldx%lldx%lld, buffer %lld bytes%s",
           (long long)t->window_rows, (long long)t->window_columns, (long long)channels,
           (long long)(buffer > 0 ? buffer : capacity), nnd_shown_tiles(t->pointwise.by_tiles));
  return 1;
}

const struct nnd_op nnd_op_planar_separable = {"planar_separable", nnd_open_planar, nnd_make_planar};
