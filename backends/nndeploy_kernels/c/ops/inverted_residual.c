/* SPDX-License-Identifier: Apache-2.0
 *
 * inverted_residual: three records (ops/conv_record.h): a pointwise convolution that widens, then a separable pair,
 * whose last one may add a residual, as one operator. The wide tensors between are never written.
 *
 * A window is some rows of the output, all columns. The expanded rows that it reads are kept in a ring, so that rows
 * shared with the next window are expanded once. Panel by panel of hidden channels: expand the new rows, run the
 * depthwise part over them while they are in the first cache, keep its result; then project it. Where the window is
 * the whole image nothing is shared: the ring holds one panel only, and the hidden channels may be taken in groups,
 * each adding its part to the output. Threads share windows; a thread's first window fills its own ring.
 */
#include <stdio.h>

#include "kernels/depthwise.h"
#include "kernels/pointwise.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

struct nnd_inverted_own {
  struct nnd_conv expand, first, second;
};

static int nnd_open_inverted(struct nnd_opener *o) {
  struct nnd_inverted_own *own = nnd_own(o, sizeof *own);
  struct nnd_three_convs words;
  if (!own || !nnd_read_three_convs(o, &words) || !nnd_open_conv(o, &words.wide, &own->expand, 1, 0) ||
      !nnd_open_conv(o, &words.first, &own->first, 0, 0) || !nnd_open_conv(o, &words.second, &own->second, 0, 1))
    return 0;
  const int is_chain = own->first.in == own->expand.out && own->second.in == own->first.out &&
                       own->expand.groups == 1 && nnd_is_depthwise(&own->first) && own->second.groups == 1 &&
                       own->expand.residual < 0 && own->first.residual < 0 &&
                       o->model->tensors[own->expand.in].is_blocked;
  if (!is_chain) return nnd_fail(o->message, "three convolutions that are no inverted residual");
  return nnd_pack_conv(o, &own->expand, NND_PACK_PRODUCTS) && nnd_pack_conv(o, &own->first, NND_PACK_DEPTHWISE) &&
         nnd_pack_conv(o, &own->second, NND_PACK_PRODUCTS);
}

/* Output rows of a window, and the panels of hidden channels that one projection sums over. */
struct nnd_inverted_window {
  nnd_size rows, panels;
};

/* A worker's scratch: a ring of `depthwise.ring` expanded rows, then the depthwise result of one group. */
struct nnd_inverted_fields {
  struct nnd_pointwise expand, project; /* in_plane of `project` follows from the window */
  struct nnd_depthwise depthwise;
  nnd_size channels, images; /* hidden channels */
  struct nnd_inverted_window window;
  nnd_size first_at;
  int is_whole;       /* a window is the whole image */
  int prefetch_input; /* the input does not fit the second cache */
};

struct nnd_inverted_data {
  struct nnd_pointwise_data expand, project; /* the output is the projection's */
  const float *weights, *bias, *numbers;     /* of the depthwise part */
};

/* Fetches what the next window adds to the input rows before `to`: share `number` of `count`, for a burst stalls. */
static void nnd_inverted_fetch(const struct nnd_inverted_fields *t, nnd_size to, nnd_size number, nnd_size count,
                               const nnd_elem *in) {
  const nnd_size row_bytes = t->depthwise.x.size * NND_LANES * (nnd_size)sizeof(nnd_elem);
  const nnd_size lines = t->window.rows * t->depthwise.y.stride * row_bytes / NND_LINE_BYTES;
  const nnd_size of_share = nnd_ceil_div(lines, count);
  for (nnd_size block = 0; block < nnd_blocks(t->expand.in_channels); block++) {
    const char *plane = (const char *)(in + block * t->expand.in_plane);
    const char *from = plane + to * row_bytes + number * of_share * NND_LINE_BYTES;
    for (nnd_size line = 0; line < of_share; line++) __builtin_prefetch(from + line * NND_LINE_BYTES, 0, 2);
  }
}

/* `count` tiles of each of rows [from, to) of the input, from pixel `pixel` on, to the ring; the first row fetches the
 * tiles' share of weights, `fetch`. */
static void nnd_expand_tiles(const struct nnd_inverted_fields *t, struct nnd_tile_job *job, nnd_tile_kernel kernel,
                             nnd_size pixel, nnd_size count, nnd_size from, nnd_size to, struct nnd_prefetch fetch,
                             const nnd_elem *in, nnd_elem *ring) {
  const nnd_size row = t->depthwise.x.size * NND_LANES;
  nnd_size slot = from < t->depthwise.ring ? from : from % t->depthwise.ring;
  job->count = count;
  job->next_weights = fetch;
  for (nnd_size y = from; y < to; y++) {
    job->in = in + y * row + pixel * NND_LANES;
    job->out = ring + slot * row + pixel * NND_LANES;
    kernel(job);
    job->next_weights = nnd_no_prefetch;
    if (++slot == t->depthwise.ring) slot = 0;
  }
}

/* By tiles of AMX, of the pixels of rows [from, to) of the input, packed from the first one on: panel `panel` to the ring;
 * without it (-1) these are packed. */
static void nnd_expand_tiled(const struct nnd_inverted_fields *t, nnd_size panel, nnd_size from, nnd_size to,
                             struct nnd_pointwise_data d, nnd_elem *ring) {
  const nnd_size row = t->depthwise.x.size, channels = t->expand.in_channels;
  nnd_elem *packed = d.packed;
  while (from < to) { /* rows side by side in the ring */
    const nnd_size slot = from % t->depthwise.ring, count = nnd_min(to - from, t->depthwise.ring - slot);
    const nnd_size pixels = count * row;
    d.out = ring + slot * row * NND_LANES;
    if (panel < 0)
      nnd_bf16_pack_pixels(d.in + from * row * NND_LANES, t->expand.in_plane, channels, pixels, packed);
    else
      nnd_multiply_packed(&t->expand, pixels, panel, panel + 1, d, packed);
    packed += nnd_bf16_packed_bytes(pixels, channels) / (nnd_size)sizeof *packed;
    from += count;
  }
}

/* One panel: rows [from, to) of the input are expanded, then the depthwise part of `rows` output rows from `row` on.
 * What a strip of columns of these reads is expanded just before it is read. */
static void nnd_inverted_panel(const struct nnd_inverted_fields *t, nnd_size panel, nnd_size rows, nnd_size row,
                               nnd_size from, nnd_size to, const struct nnd_inverted_data *d, nnd_elem *ring,
                               nnd_elem *first) {
  const struct nnd_depthwise *s = &t->depthwise;
  const struct nnd_axis x = s->x;
  const nnd_size blocks = nnd_blocks(t->channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const int has_half = panel == full && nnd_has_half(t->channels);
  const int half = has_half && (vectors > 1 || x.size >= NND_FEW_FOR_HALVES);
  const nnd_size pixels = nnd_depthwise_pixels(x.out_size), strips = nnd_ceil_div(x.out_size, pixels);
  const nnd_size taps = s->y.kernel * x.kernel, shares = strips * (full + 1);
  struct nnd_pointwise_data expand = nnd_pointwise_from(&t->expand, d->expand, panel);
  expand.out = ring;
  const int each = nnd_even_tile(NND_NEXT, vectors, half, x.size);
  const nnd_size tiles = nnd_ceil_div(x.size, each);
  struct nnd_tile_job job = nnd_pointwise_job(&t->expand, NND_WHOLE, vectors, expand);
  nnd_size expanded = 0;
  if (NND_HAS_TILES && expand.packed) {
    nnd_expand_tiled(t, panel, from, to, expand, ring);
    expanded = tiles;
  } else if (t->is_whole && s->ring == s->y.size) { /* all rows as one */
    nnd_pointwise_panel(&t->expand, NND_WHOLE, s->ring * x.size, vectors, has_half, expand, nnd_no_prefetch);
    expanded = tiles;
  }
  const nnd_tile_kernel kernel = nnd_tiles[NND_NEXT][vectors - 1][half][each];
  struct nnd_prefetch fetch = nnd_next_panel(&t->expand, tiles, vectors, job.weights);
  for (nnd_size strip = 0; strip < strips; strip++) {
    const nnd_size end = nnd_min(x.out_size, (strip + 1) * pixels), begin = end - nnd_min(pixels, end);
    const nnd_size reach = nnd_min(x.size, (end - 1) * x.stride - x.pad + (x.kernel - 1) * x.dilation + 1);
    const nnd_size wanted = nnd_min(tiles, nnd_ceil_div(nnd_max(0, reach), each));
    while (expanded < wanted) { /* tiles lie side by side, but the last one may overlap the one before */
      const nnd_size aligned = nnd_min(wanted, x.size / each), count = nnd_max(1, aligned - expanded);
      const nnd_size pixel = nnd_min(expanded * each, x.size - each);
      nnd_expand_tiles(t, &job, kernel, pixel, count, from, to, fetch, expand.in, ring);
      fetch.from += count * fetch.lines * NND_LINE_BYTES;
      expanded += count;
    }
    for (int v = 0; v < vectors; v++)
      s->columns(s, row, rows, begin, end, ring + v * t->expand.out_plane, d->weights + (block + v) * taps * NND_LANES,
                 d->bias + (block + v) * NND_LANES, nnd_end_number(&s->end, d->numbers, block + v), x.out_size,
                 first + (v * rows * x.out_size + begin) * NND_LANES);
    if (t->prefetch_input) nnd_inverted_fetch(t, to, panel * strips + strip, shares, d->expand.in);
  }
}

/* `d.project.out` and `.residual` are those of the image, `done` input rows are in the ring already. */
static void nnd_inverted_rows(const struct nnd_inverted_fields *t, nnd_size rows, nnd_size row, nnd_size done,
                              struct nnd_inverted_data d, nnd_elem *ring, nnd_elem *first) {
  const struct nnd_axis y = t->depthwise.y;
  const nnd_size width = t->depthwise.x.out_size, plane = rows * width * NND_LANES;
  const nnd_size from = nnd_max(done, nnd_first_row(y, row)), to = nnd_end_row(y, row + rows);
  const nnd_size panels = nnd_full_panels(nnd_blocks(t->channels)) + 1;
  struct nnd_pointwise project = t->project;
  project.in_plane = plane;
  d.project.in = first;
  d.project.out += row * width * NND_LANES;
  if (project.end.residual) d.project.residual += row * width * NND_LANES;
  if (NND_HAS_TILES && d.expand.packed) nnd_expand_tiled(t, -1, from, to, d.expand, ring);
  for (nnd_size begin = 0; begin < panels; begin += t->window.panels) {
    const nnd_size end = nnd_min(panels, begin + t->window.panels);
    for (nnd_size panel = begin; panel < end; panel++)
      nnd_inverted_panel(t, panel, rows, row, from, to, &d,
                         t->is_whole ? ring : ring + panel * NND_PANEL * t->expand.out_plane,
                         first + (panel - begin) * NND_PANEL * plane);
    project.channel = begin * NND_PANEL * NND_LANES;
    project.in_channels = (end == panels ? t->channels : end * NND_PANEL * NND_LANES) - project.channel;
    nnd_pointwise_row(&project, (begin == 0 ? NND_FIRST : 0) | (end == panels ? NND_LAST : 0), rows * width, d.project,
                      nnd_no_prefetch);
  }
}

static void nnd_run_inverted(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_inverted_fields *t = fields;
  const struct nnd_axis y = t->depthwise.y;
  const nnd_size down = nnd_ceil_div(y.out_size, t->window.rows);
  const nnd_size in_image = nnd_blocks(t->expand.in_channels) * t->expand.in_plane;
  const nnd_size out_image = nnd_blocks(t->project.out_channels) * t->project.out_plane;
  nnd_elem *ring = (nnd_elem *)part.scratch, *result = (nnd_elem *)(part.scratch + t->first_at);
  nnd_size done = 0, first, last;
  nnd_share(t->images * down, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / down, row = unit % down * t->window.rows;
    if (row == 0) done = 0;
    struct nnd_inverted_data d = {{.in = (const nnd_elem *)at[1] + image * in_image,
                                   .weights = at[2],
                                   .bias = at[3],
                                   .numbers = at[4],
                                   .packed = nnd_pointwise_packed(&t->expand, part.scratch)},
                                  {.weights = at[8],
                                   .bias = at[9],
                                   .residual = at[10],
                                   .numbers = at[11],
                                   .out = (nnd_elem *)at[0] + image * out_image,
                                   .packed = nnd_pointwise_packed(&t->project, part.scratch)},
                                  at[5],
                                  at[6],
                                  at[7]};
    if (t->project.end.residual) d.project.residual += image * out_image;
    nnd_inverted_rows(t, nnd_min(t->window.rows, y.out_size - row), row, done, d, ring, result);
    done = nnd_end_row(y, row + t->window.rows);
  }
}

/* The bytes of the ring and of the first result of windows; `first_at`: where that begins. Whatever is smaller than the
 * hidden tensors, whose size was checked, does not overflow. */
static nnd_size nnd_inverted_bytes(struct nnd_inverted_window window, const struct nnd_axis *y,
                                   const struct nnd_axis *x, nnd_size channels, nnd_size *first_at) {
  const nnd_size blocks = nnd_blocks(channels), vector = NND_LANES * (nnd_size)sizeof(nnd_elem);
  const nnd_size kept = window.rows >= y->out_size ? nnd_min(blocks, NND_PANEL + 1) : blocks;
  const nnd_size group = nnd_min(blocks, window.panels * NND_PANEL + 1);
  *first_at = nnd_ceil_div(vector * kept * nnd_window_rows(*y, window.rows) * x->size, NND_ALIGNMENT) * NND_ALIGNMENT;
  return *first_at + vector * group * window.rows * x->out_size;
}

/* The whole image in groups where at least two panels fit, else as many rows as fit, else one row. */
static struct nnd_inverted_window nnd_inverted_window_for(nnd_size capacity, const struct nnd_axis *y,
                                                          const struct nnd_axis *x, nnd_size channels) {
  const nnd_size panels = nnd_full_panels(nnd_blocks(channels)) + 1;
  nnd_size place;
#ifdef NND_BF16
  const nnd_size most_groups = 1; /* parts of sums are kept in the output: not rounded */
#else
  const nnd_size most_groups = panels;
#endif
  for (nnd_size groups = 1; groups <= most_groups; groups++) {
    const struct nnd_inverted_window window = {y->out_size, nnd_ceil_div(panels, groups)};
    if (window.panels < nnd_min(2, panels)) break;
    if (nnd_inverted_bytes(window, y, x, channels, &place) <= capacity) return window;
  }
  nnd_size fits = 1;
  for (nnd_size low = 2, high = y->out_size - 1; low <= high;) { /* the most rows that fit */
    const nnd_size rows = low + (high - low) / 2;
    if (nnd_inverted_bytes((struct nnd_inverted_window){rows, panels}, y, x, channels, &place) <= capacity)
      fits = rows, low = rows + 1;
    else
      high = rows - 1;
  }
  return (struct nnd_inverted_window){nnd_evened(y->out_size, fits), panels};
}

/* The same as threads share it. */
static struct nnd_inverted_window nnd_shared_inverted(const struct nnd_maker *m, nnd_size capacity,
                                                      const struct nnd_axis *y, const struct nnd_axis *x,
                                                      nnd_size channels, nnd_size images) {
  const struct nnd_inverted_window window = nnd_inverted_window_for(capacity, y, x, channels);
  const nnd_size rows = nnd_shared_rows(window.rows, y->out_size, images, nnd_threads(m));
  if (rows == window.rows) return window;
  /* what one thread does as one image, several do in windows of all hidden channels */
  return (struct nnd_inverted_window){rows, nnd_full_panels(nnd_blocks(channels)) + 1};
}

/* Whether some sums of windows are split: of hidden channels, a row or all at a time, or of outputs. */
static int nnd_inverted_splits(struct nnd_inverted_window w, const struct nnd_axis *y, const struct nnd_axis *x,
                               nnd_size channels, const struct nnd_conv *second) {
  const nnd_size panels = nnd_full_panels(nnd_blocks(channels)) + 1, pixels = w.rows * x->out_size;
  const struct nnd_window window = {w.rows, x->out_size, channels};
  return nnd_pointwise_splits(x->size, channels, 0) || nnd_pointwise_splits(y->size * x->size, channels, 0) ||
         nnd_windows_split(window, y->out_size, x->out_size, pixels, second->out_channels, w.panels < panels);
}

static int nnd_make_inverted(struct nnd_maker *m) {
  const struct nnd_inverted_own *own = m->step->own;
  const struct nnd_conv *expand = &own->expand, *first = &own->first, *second = &own->second;
  struct nnd_axis y1, x1, y, x, y2, x2;
  if (!nnd_conv_axes(m, expand, &y1, &x1) || !nnd_conv_axes(m, first, &y, &x) || !nnd_conv_axes(m, second, &y2, &x2))
    return 0;
  const int is_pointwise = nnd_is_pointwise(m, expand) && nnd_is_pointwise(m, second) && y1.size == y1.out_size &&
                           x1.size == x1.out_size && y2.size == y2.out_size && x2.size == x2.out_size;
  if (!is_pointwise) return nnd_fail(m->message, "an inverted residual whose outer convolutions are not pointwise");
  struct nnd_inverted_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *in = nnd_shape_of(m, expand->in);
  const struct nnd_maker by_rule = nnd_by_rule(m);
  const nnd_size channels = expand->out_channels, images = in->sizes[0];
  const struct nnd_inverted_window rule =
      nnd_shared_inverted(&by_rule, nnd_capacity(&by_rule, in->num_bytes), &y, &x, channels, images);
  nnd_size capacity = nnd_capacity(m, in->num_bytes);
  t->window = nnd_shared_inverted(m, capacity, &y, &x, channels, images);
  const int is_same =
      !nnd_inverted_splits(rule, &y, &x, channels, second) && !nnd_inverted_splits(t->window, &y, &x, channels, second);
  if (!is_same && !nnd_may_round(m)) t->window = rule, capacity = nnd_capacity(&by_rule, in->num_bytes);
  nnd_tell_kept(m, nnd_shape_of(m, expand->out)->num_bytes + nnd_shape_of(m, first->out)->num_bytes,
                nnd_inverted_bytes(t->window, &y, &x, channels, &t->first_at));
  t->is_whole = t->window.rows >= y.out_size;
  m->scratch_bytes = nnd_inverted_bytes(t->window, &y, &x, channels, &t->first_at);
  t->depthwise = (struct nnd_depthwise){y, x, first->end, nnd_window_rows(y, t->window.rows), nnd_depthwise_for(&x)};
  const nnd_size large = NND_PREFETCH_FROM / (nnd_size)sizeof(nnd_weight);
  const int prefetch = expand->in_channels * channels > large || channels * second->out_channels > large;
  t->expand = (struct nnd_pointwise){.in_channels = expand->in_channels,
                                     .out_channels = channels,
                                     .panel_channels = expand->in_channels,
                                     .in_plane = y.size * x.size * NND_LANES,
                                     .out_plane = t->depthwise.ring * x.size * NND_LANES,
                                     .end = expand->end,
                                     .prefetch_weights = prefetch};
  t->project = (struct nnd_pointwise){.in_channels = channels,
                                      .out_channels = second->out_channels,
                                      .panel_channels = channels,
                                      .out_plane = y.out_size * x.out_size * NND_LANES,
                                      .end = second->end,
                                      .prefetch_weights = prefetch};
  t->channels = channels, t->images = in->sizes[0];
  if (NND_HAS_TILES) { /* in thirds it gains nothing: each window would cut the weights anew */
    /* In two parts where the ring ends: a pair of strips more. */
    nnd_take_tiles(m, &t->expand, y.size * x.size, t->depthwise.ring * x.size + 2 * NND_AMX_ROWS);
    nnd_take_tiles(m, &t->project, y.out_size * x.out_size, t->window.rows * x.out_size);
  }
  t->prefetch_input = in->num_bytes > nnd_l2(m);
  m->instance->run = nnd_run_inverted;
  m->instance->chunks = 2; /* each expands again what it shares with the one before */
  nnd_give_tensor(m, second->out);
  nnd_give_tensor(m, expand->in);
  const struct nnd_conv *convs[2] = {expand, first};
  for (int i = 0; i < 2; i++) {
    nnd_give(m, convs[i]->packed);
    nnd_give(m, convs[i]->bias);
    nnd_give(m, convs[i]->numbers);
  }
  nnd_give(m, second->packed);
  nnd_give(m, second->bias);
  nnd_give_tensor(m, second->residual);
  nnd_give(m, second->numbers);
  snprintf(m->instance->shown, sizeof m->instance->shown, "window %lldx%lldx%lld, buffer %lld bytes%s",
           (long long)t->window.rows, (long long)x.out_size,
           (long long)nnd_min(nnd_blocks(channels) * NND_LANES, t->window.panels * NND_PANEL * NND_LANES),
           (long long)capacity, nnd_shown_tiles(t->expand.by_tiles || t->project.by_tiles));
  return 1;
}

const struct nnd_op nnd_op_inverted_residual = {"inverted_residual", nnd_open_inverted, nnd_make_inverted};
