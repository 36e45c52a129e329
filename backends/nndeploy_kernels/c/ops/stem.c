/* SPDX-License-Identifier: Apache-2.0
 *
 * stem: three records (ops/conv_record.h): a dense convolution from NCHW, then a separable pair: what light networks
 * begin with, as one operator.
 *
 * The rows that the first convolution makes are kept as NCHWc in a ring, so that those that windows share are made
 * once; the widest tensor of the network is never written. Windows are whole rows of all channels.
 */
#include <stdio.h>

#include "kernels/convolution.h"
#include "kernels/separable.h"
#include "ops/conv_record.h"
#include "ops/convolution_rows.h"
#include "ops/windows.h"

struct nnd_stem_own {
  struct nnd_conv wide, first, second;
};

static int nnd_open_stem(struct nnd_opener *o) {
  struct nnd_stem_own *own = nnd_own(o, sizeof *own);
  struct nnd_three_convs words;
  if (!own || !nnd_read_three_convs(o, &words) || !nnd_open_conv(o, &words.wide, &own->wide, 1, 0) ||
      !nnd_open_conv(o, &words.first, &own->first, 0, 0) || !nnd_open_conv(o, &words.second, &own->second, 0, 1))
    return 0;
  const int is_stem = own->first.in == own->wide.out && own->second.in == own->first.out && own->wide.groups == 1 &&
                      nnd_is_depthwise(&own->first) && own->second.groups == 1 && own->wide.residual < 0 &&
                      own->first.residual < 0 && !o->model->tensors[own->wide.in].is_blocked;
  if (!is_stem) return nnd_fail(o->message, "three convolutions that are no stem");
  return nnd_pack_conv(o, &own->wide, NND_PACK_PLANAR) && nnd_pack_conv(o, &own->first, NND_PACK_DEPTHWISE) &&
         nnd_pack_conv(o, &own->second, NND_PACK_PRODUCTS);
}

/* A worker's scratch: copied rows of the input, then a ring of `depthwise.ring` rows, then the first result. Workers
 * share windows. */
struct nnd_stem_fields {
  struct nnd_convolution wide;
  struct nnd_depthwise depthwise;
  struct nnd_pointwise pointwise;
  nnd_size images, window_rows, ring_at, first_at;
};

/* Row `row` of the convolution of image `image`, into the ring. */
static void nnd_stem_row(const struct nnd_stem_fields *t, nnd_size image, nnd_size row, struct nnd_convolution_data d,
                         struct nnd_copies *copies, nnd_elem *ring) {
  const struct nnd_convolution *wide = &t->wide;
  const struct nnd_copies *from = nnd_row_copies(wide, copies, image, row, d.in);
  d.out = ring + row % t->depthwise.ring * t->depthwise.x.size * NND_LANES;
  for (nnd_size panel = 0; panel <= nnd_full_panels(nnd_blocks(wide->out_channels)); panel++) {
    const struct nnd_panel_job job = nnd_convolution_job(wide, panel, &d);
    nnd_convolution_row(wide, &job, row, 0, wide->x.out_size, from, &d);
  }
}

static void nnd_run_stem(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_stem_fields *t = fields;
  const struct nnd_axis y = t->depthwise.y, x = t->depthwise.x;
  const nnd_size blocks = nnd_blocks(t->wide.out_channels),
                 image_floats = t->wide.in_channels * t->wide.y.size * t->wide.x.size;
  struct nnd_convolution_data wide = {.weights = at[2], .bias = at[3], .numbers = at[4]};
  const struct nnd_separable_data pair = {at[5], at[6], at[7], {.out = NULL}};
  struct nnd_copies copies = nnd_begin_copies(&t->wide, part.scratch);
  nnd_elem *ring = (nnd_elem *)(part.scratch + t->ring_at), *buffer = (nnd_elem *)(part.scratch + t->first_at);
  const nnd_size down = nnd_ceil_div(y.out_size, t->window_rows);
  nnd_size done = 0, unit, last;
  nnd_share(t->images * down, part, &unit, &last);
  for (nnd_size begin = unit; unit < last; unit++) {
    const nnd_size image = unit / down, row = unit % down * t->window_rows;
    const nnd_size rows = nnd_min(t->window_rows, y.out_size - row);
    const nnd_size from = nnd_max(row == 0 || unit == begin ? 0 : done, nnd_first_row(y, row));
    const nnd_size out =
        image * nnd_blocks(t->pointwise.out_channels) * t->pointwise.out_plane + row * x.out_size * NND_LANES;
    done = nnd_end_row(y, row + rows);
    wide.in = (const float *)at[1] + image * image_floats;
    for (nnd_size line = from; line < done; line++) nnd_stem_row(t, image, line, wide, &copies, ring);
    nnd_separable_first(&t->depthwise, rows, x.out_size, row, 0, 0, blocks, &pair, ring, buffer);
    struct nnd_pointwise second = t->pointwise;
    const struct nnd_pointwise_data p = {buffer,
                                         at[8],
                                         at[9],
                                         at[11],
                                         second.end.residual ? (const nnd_elem *)at[10] + out : NULL,
                                         (nnd_elem *)at[0] + out,
                                         nnd_pointwise_packed(&second, part.scratch)};
    nnd_separable_second(&second, NND_WHOLE, rows * x.out_size, rows * x.out_size, p, nnd_no_prefetch);
  }
}

struct nnd_stem_window {
  nnd_size rows, capacity;
};

static struct nnd_stem_window nnd_stem_window_of(const struct nnd_maker *m, const struct nnd_shape *in,
                                                 const struct nnd_conv *first, const struct nnd_axis *y,
                                                 const struct nnd_axis *x) {
  const nnd_size capacity = nnd_capacity(m, in->num_bytes);
  const struct nnd_window window = nnd_window_for(capacity / 2, y->out_size, x->out_size, first->out_channels);
  const nnd_size whole = window.columns == x->out_size ? window.rows : 1; /* whole rows, however long they are */
  return (struct nnd_stem_window){nnd_shared_rows(whole, y->out_size, in->sizes[0], nnd_threads(m)), capacity};
}

/* Whether some sums of these windows are split. */
static int nnd_stem_splits(const struct nnd_stem_window *w, const struct nnd_conv *second, const struct nnd_axis *y,
                           const struct nnd_axis *x) {
  const struct nnd_window window = {w->rows, x->out_size, second->in_channels};
  return nnd_windows_split(window, y->out_size, x->out_size, w->rows * x->out_size, second->out_channels, 0);
}

static int nnd_make_stem(struct nnd_maker *m) {
  const struct nnd_stem_own *own = m->step->own;
  const struct nnd_conv *wide = &own->wide, *first = &own->first, *second = &own->second;
  struct nnd_axis wide_y, wide_x, y, x, y2, x2;
  if (!nnd_conv_axes(m, wide, &wide_y, &wide_x) || !nnd_conv_axes(m, first, &y, &x) ||
      !nnd_conv_axes(m, second, &y2, &x2))
    return 0;
  if (!nnd_is_pointwise(m, second) || y2.size != y2.out_size || x2.size != x2.out_size)
    return nnd_fail(m->message, "a stem whose last convolution is not pointwise");
  struct nnd_stem_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *in = nnd_shape_of(m, wide->in), *out = nnd_shape_of(m, second->out);
  const nnd_size of_pixel = nnd_blocks(wide->out_channels) * NND_LANES * (nnd_size)sizeof(nnd_elem);
  const struct nnd_maker by_rule = nnd_by_rule(m);
  const struct nnd_stem_window rule = nnd_stem_window_of(&by_rule, in, first, &y, &x);
  struct nnd_stem_window chosen = nnd_stem_window_of(m, in, first, &y, &x);
  const int is_same = !nnd_stem_splits(&rule, second, &y, &x) && !nnd_stem_splits(&chosen, second, &y, &x);
  if (!is_same && !nnd_may_round(m)) chosen = rule;
  const nnd_size capacity = chosen.capacity;
  t->window_rows = chosen.rows;
  const nnd_size ring = nnd_window_rows(y, t->window_rows);
  t->wide = (struct nnd_convolution){.y = wide_y,
                                     .x = wide_x,
                                     .in_channels = wide->in_channels,
                                     .out_channels = wide->out_channels,
                                     .out_plane = ring * x.size * NND_LANES,
                                     .end = wide->end,
                                     .is_planar = 1};
  t->depthwise = (struct nnd_depthwise){y, x, first->end, ring, nnd_depthwise_for(&x)};
  t->pointwise = (struct nnd_pointwise){.in_channels = first->out_channels,
                                        .out_channels = second->out_channels,
                                        .panel_channels = first->out_channels,
                                        .out_plane = y.out_size * x.out_size * NND_LANES,
                                        .end = second->end,
                                        .stream = nnd_streams(m, out->num_bytes)};
  if (!nnd_make_rows(m, &t->wide)) return 0;
  t->images = in->sizes[0];
  t->ring_at = nnd_ceil_div(nnd_copies_bytes(&t->wide), NND_ALIGNMENT) * NND_ALIGNMENT;
  t->first_at = t->ring_at + of_pixel * ring * x.size;
  m->scratch_bytes = t->first_at + of_pixel * t->window_rows * x.out_size;
  nnd_tell_kept(m, nnd_shape_of(m, wide->out)->num_bytes + nnd_shape_of(m, first->out)->num_bytes, m->scratch_bytes);
  nnd_take_tiles(m, &t->pointwise, y.out_size * x.out_size, t->window_rows * x.out_size);
  m->instance->run = nnd_run_stem;
  m->instance->chunks = 2; /* each makes again the rows that it shares with the one before */
  nnd_give_tensor(m, second->out);
  nnd_give_tensor(m, wide->in);
  const struct nnd_conv *convs[2] = {wide, first};
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
           (long long)t->window_rows, (long long)x.out_size, (long long)first->out_channels, (long long)capacity,
           nnd_shown_tiles(t->pointwise.by_tiles));
  return 1;
}

const struct nnd_op nnd_op_stem = {"stem", nnd_open_stem, nnd_make_stem};
