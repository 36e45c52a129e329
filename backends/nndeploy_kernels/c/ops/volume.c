/* SPDX-License-Identifier: Apache-2.0
 *
 * volume_convolution: one record (ops/conv_record.h) and its depth: a convolution of volumes in channel blocks, with
 * groups or without.
 *
 * What an output row reads, rows of several images, is copied side by side, zeros where nothing is: then all taps of a
 * column are as many rows apart from each other, and the micro-kernel of all products does the row as that of an image.
 * Workers share output rows, and panels where these are few; weights that are large are met by several rows at a time.
 */
#include <stdio.h>

#include "kernels/convolution.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

#define NND_FEW_ROWS 8
#define NND_MOST_ROWS 8 /* at a time */

struct nnd_volume_own {
  struct nnd_conv c;
  struct nnd_depth depth;
  struct nnd_grouped grouped;
};

/* Copied rows are `pitch` pixels long; there are `copied_rows` of each channel block. */
struct nnd_volume_fields {
  struct nnd_axis z, y, x;
  struct nnd_grouped grouped; /* span 0: one group */
  nnd_size in_channels, out_channels, images, out_plane, pitch, copied_rows, rows_at_once;
  struct nnd_end end;
  int stream, by_panels;
};

static int nnd_open_volume(struct nnd_opener *o) {
  struct nnd_volume_own *own = nnd_own(o, sizeof *own);
  struct nnd_volume_conv words;
  if (!own || !nnd_read_volume_conv(o, &words) || !nnd_open_conv(o, &words.conv, &own->c, 1, 1) ||
      !nnd_fits_depth(o, &own->c, &words.depth))
    return 0;
  own->depth = words.depth;
  if (!o->model->tensors[own->c.in].is_blocked) return nnd_fail(o->message, "a convolution of volumes of planes");
  return own->c.groups == 1 ? nnd_pack_conv(o, &own->c, NND_PACK_PRODUCTS)
                            : nnd_pack_grouped(o, &own->c, &own->grouped);
}

NND_INLINE nnd_size nnd_volume_rows(const struct nnd_volume_fields *t) { return t->z.out_size * t->y.out_size; }

NND_INLINE nnd_size nnd_copied_elements(const struct nnd_volume_fields *t) {
  return nnd_blocks(t->in_channels) * t->copied_rows * t->pitch * NND_LANES;
}

/* Copies what output row `unit`, counted over all volumes, reads; zeros stand beside the rows from before. */
static void nnd_copy_volume_rows(const struct nnd_volume_fields *t, nnd_size unit, const nnd_elem *in, nnd_elem *to) {
  const nnd_size row = unit % nnd_volume_rows(t), blocks = nnd_blocks(t->in_channels);
  const nnd_size front = row / t->y.out_size * t->z.stride - t->z.pad;
  const nnd_size top = row % t->y.out_size * t->y.stride - t->y.pad;
  const nnd_size first = nnd_tap_begin(t->z, front), last = nnd_tap_end(t->z, front);
  const nnd_size of_row = t->x.size * NND_LANES, of_slice = t->y.size * of_row;
  in += unit / nnd_volume_rows(t) * blocks * t->z.size * of_slice;
  for (nnd_size block = 0; block < blocks; block++, in += t->z.size * of_slice) {
    nnd_elem *at = to + block * t->copied_rows * t->pitch * NND_LANES + t->x.pad * NND_LANES;
    for (nnd_size kz = first; kz < last; kz++)
      for (nnd_size ky = 0; ky < t->y.kernel; ky++, at += t->pitch * NND_LANES) {
        const nnd_size line = top + ky * t->y.dilation;
        if (line < 0 || line >= t->y.size)
          memset(at, 0, (size_t)of_row * sizeof *at);
        else
          memcpy(at, in + (front + kz * t->z.dilation) * of_slice + line * of_row, (size_t)of_row * sizeof *at);
      }
  }
}

/* Panel `panel` of output row `unit` from its copies; of groups a block. */
static void nnd_volume_row(const struct nnd_volume_fields *t, nnd_size panel, nnd_size unit, const nnd_elem *copies,
                           void *const *at) {
  const int has_groups = t->grouped.span > 0, way = nnd_blocked_way(t->x);
  const nnd_size blocks = nnd_blocks(t->out_channels), full = has_groups ? blocks : nnd_full_panels(blocks);
  const nnd_size block = has_groups ? panel : panel * NND_PANEL, row = unit % nnd_volume_rows(t);
  const int vectors = has_groups ? 1 : panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const nnd_size width = t->x.out_size, front = row / t->y.out_size * t->z.stride - t->z.pad;
  const int has_half = nnd_way_has_halves(way) && panel == full && nnd_has_half(t->out_channels);
  const int half = has_half && (vectors > 1 || width >= NND_FEW_FOR_HALVES);
  const nnd_size first = nnd_tap_begin(t->z, front), last = nnd_tap_end(t->z, front);
  const nnd_size padded = nnd_grouped_channels(has_groups ? t->grouped.span : t->in_channels);
  const nnd_size of_tap = padded * vectors * NND_LANES, taps = t->z.kernel * t->y.kernel * t->x.kernel;
  const nnd_size in_plane = t->copied_rows * t->pitch * NND_LANES;
  const nnd_size out = (unit / nnd_volume_rows(t) * blocks + block) * t->out_plane + row * width * NND_LANES;
  struct nnd_tile_job job = {
      .in = copies + (has_groups ? t->grouped.begins[block] * in_plane : 0),
      .in_plane = in_plane,
      .channels = has_groups ? nnd_grouped_held(&t->grouped, t->in_channels, block) : t->in_channels,
      .rows = nnd_max(0, last - first) * t->y.kernel,
      .columns = t->x.kernel,
      .row_step = t->pitch * NND_LANES,
      .column_step = t->x.dilation * NND_LANES,
      .weights = (const nnd_weight *)at[2] + block * NND_LANES * taps * padded +
                 nnd_min(first, last) * t->y.kernel * t->x.kernel * of_tap,
      .row_weights = t->x.kernel * of_tap,
      .tap_weights = of_tap,
      .bias = (const float *)at[3] + block * NND_LANES,
      .numbers = t->end.number ? (const float *)at[4] + block * NND_LANES : 0,
      .residual = t->end.residual ? (const nnd_elem *)at[5] + out : NULL,
      .out = (nnd_elem *)at[0] + out,
      .out_plane = t->out_plane,
      .end = &t->end,
      .sum = NND_WHOLE,
      .stream = t->stream,
      .pixel_step = t->x.stride};
  nnd_run_cut(nnd_cut_of(way, vectors, half, width, 0), way, vectors, half, &job);
}

static void nnd_run_volume(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_volume_fields *t = fields;
  const nnd_size blocks = nnd_blocks(t->out_channels), rows = t->images * nnd_volume_rows(t);
  const nnd_size panels = t->grouped.span ? blocks : nnd_full_panels(blocks) + 1, each = nnd_copied_elements(t);
  nnd_elem *copies = (nnd_elem *)part.scratch;
  nnd_size first, last;
  nnd_share(t->by_panels ? rows * panels : rows, part, &first, &last);
  if (first >= last) return;
  memset(copies, 0, (size_t)(t->rows_at_once * each) * sizeof *copies);
  for (nnd_size i = first, copied = -1; i < last && t->by_panels; i++) {
    const nnd_size unit = i / panels;
    if (unit != copied) nnd_copy_volume_rows(t, unit, at[1], copies);
    copied = unit;
    nnd_volume_row(t, i % panels, unit, copies, at);
  }
  for (nnd_size begin = first; begin < last && !t->by_panels; begin += t->rows_at_once) {
    const nnd_size count = nnd_min(t->rows_at_once, last - begin);
    for (nnd_size i = 0; i < count; i++) nnd_copy_volume_rows(t, begin + i, at[1], copies + i * each);
    for (nnd_size i = 0; i < panels * count; i++)
      nnd_volume_row(t, i / count, begin + i % count, copies + i % count * each, at);
  }
}

static int nnd_make_volume(struct nnd_maker *m) {
  const struct nnd_volume_own *own = m->step->own;
  const struct nnd_conv *c = &own->c;
  const struct nnd_shape *in = nnd_shape_of(m, c->in), *out = nnd_shape_of(m, c->out);
  struct nnd_axis axes[3];
  if (!nnd_volume_axes(m, c, &own->depth, axes)) return 0;
  struct nnd_volume_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->z = axes[0], t->y = axes[1], t->x = axes[2];
  t->grouped = own->grouped;
  t->in_channels = c->in_channels, t->out_channels = c->out_channels, t->images = in->sizes[0];
  t->out_plane = out->sizes[2] * out->sizes[3] * NND_LANES;
  t->end = c->end;
  t->stream = nnd_streams(m, out->num_bytes);
  t->by_panels = t->images * out->sizes[2] < NND_FEW_ROWS;
  t->pitch = nnd_copied_rows(t->y, t->x, 0).pitch;
  t->copied_rows = nnd_min(t->z.kernel, t->z.size) * t->y.kernel; /* taps along the depth that lie inside */
  const double copied = (double)nnd_blocks(t->in_channels) * (double)t->copied_rows * (double)t->pitch;
  if (copied * NND_LANES * NND_MOST_ROWS * sizeof(nnd_elem) > (double)NND_MOST_BYTES)
    return nnd_fail(m->message, "windows over volumes are too large");
  const nnd_size weights = c->in_channels / c->groups * c->out_channels * c->kernel[0] * c->kernel[1];
  const nnd_size of_row = nnd_copied_elements(t) * (nnd_size)sizeof(nnd_elem);
  t->rows_at_once = 1;
  if (weights * (nnd_size)sizeof(nnd_weight) > nnd_l2(m) / 2 && !t->by_panels)
    t->rows_at_once = nnd_max(1, nnd_min(NND_MOST_ROWS, nnd_l2(m) / 2 / of_row));
  m->scratch_bytes = t->rows_at_once * of_row;
  m->instance->run = nnd_run_volume;
  nnd_give_tensor(m, c->out);
  nnd_give_tensor(m, c->in);
  nnd_give(m, c->packed);
  nnd_give(m, c->bias);
  nnd_give(m, c->numbers);
  nnd_give_tensor(m, c->residual);
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld rows at a time", (long long)t->rows_at_once);
  return 1;
}

const struct nnd_op nnd_op_volume_convolution = {"volume_convolution", nnd_open_volume, nnd_make_volume};
