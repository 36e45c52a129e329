/* SPDX-License-Identifier: Apache-2.0
 *
 * transposed: one record (ops/conv_record.h) and its depth, of weights that spread each input pixel over a window of the
 * output; pads are those that are cut off before the output.
 *
 * Output columns of one phase, those equal modulo the stride, read neighbouring input columns: each tap of a phase is a
 * pointwise convolution, so that the micro-kernel of all products does a phase of a row as it does a convolution whose
 * taps go backwards. Where a residual is added its pixels are made side by side in scratch and then spread over the
 * output. Taps along the depth of a volume are added up in the output, one after the other.
 */
#include <stdio.h>

#include "kernels/tile.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

#define NND_PHASE_PIXELS 112 /* of a phase at a time: what is made stays in the first cache */
#define NND_FEW_ROWS 8

/* The taps of outputs phase + n * stride: first_tap + j * tap_step for j < taps; tap j reads input
 * n + reach - j * back. */
struct nnd_phase {
  nnd_size first_tap, taps, reach;
};

struct nnd_phases {
  struct nnd_axis axis; /* size of the input, out_size of the output */
  nnd_size tap_step, back;
  const struct nnd_phase *phases; /* of which there are `stride` */
};

/* Workers share output rows of all images, and panels where these are few. */
struct nnd_transposed_fields {
  struct nnd_phases z, y, x;
  struct nnd_grouped grouped; /* span 0: one group */
  nnd_size in_channels, out_channels, images, out_plane;
  struct nnd_end end;
  int stream, panels_outside, by_panels;
};

struct nnd_transposed_data {
  const nnd_elem *in; /* of the image */
  const nnd_weight *weights;
  const float *bias, *numbers;
  const nnd_elem *residual; /* at the row, like `out` */
  nnd_elem *out;
};

/* The taps [*low, *high) of output number `n` of a phase that lie inside; returns the first number that has others. */
static nnd_size nnd_phase_taps(const struct nnd_phases *p, const struct nnd_phase *phase, nnd_size n, nnd_size *low,
                               nnd_size *high) {
  const nnd_size at = n + phase->reach, size = p->axis.size;
  *high = at < 0 ? 0 : nnd_min(phase->taps, at / p->back + 1);
  *low = at < size ? 0 : nnd_min(phase->taps, nnd_ceil_div(at - size + 1, p->back));
  nnd_size end = p->axis.out_size; /* more than there are numbers */
  if (*high < phase->taps) end = nnd_min(end, *high * p->back - phase->reach);
  if (*low < phase->taps) end = nnd_min(end, *low * p->back - phase->reach + size);
  return end;
}

/* What a row does along the depth: `taps` of them, from each to the next so many elements of the input and weights. */
struct nnd_deep_taps {
  nnd_size taps, in_step, weights_step;
};

/* Some pixels of a row, for each tap along the depth; without any the bias alone. */
static void nnd_transposed_pixels(const struct nnd_deep_taps *deep, int way, int vectors, int half, nnd_size pixels,
                                  struct nnd_tile_job job) {
  const nnd_size taps = job.rows > 0 ? nnd_max(1, deep->taps) : 1;
  if (deep->taps == 0) job.rows = 0;
  const struct nnd_cut cut = nnd_cut_of(way, vectors, half, pixels, taps > 1);
  for (nnd_size tap = 0; tap < taps; tap++) {
    struct nnd_tile_job one = job;
    one.sum = (tap == 0 ? NND_FIRST : NND_MIDDLE) | (tap + 1 == taps ? NND_LAST : NND_MIDDLE);
    if (job.rows > 0) {
      one.in = (const nnd_elem *)job.in + tap * deep->in_step;
      one.weights = (const nnd_weight *)job.weights + tap * deep->weights_step;
    }
    nnd_run_cut(cut, way, vectors, half, &one);
  }
}

/* Numbers [begin, end) of a phase of columns, for a panel and a row; `row` has what does not depend on these. */
static void nnd_transposed_columns(const struct nnd_transposed_fields *t, const struct nnd_phase *phase,
                                   const struct nnd_deep_taps *deep, nnd_size begin, nnd_size end, int vectors,
                                   int has_half, const struct nnd_tile_job *row) {
  const int way = NND_NEXT;
  for (nnd_size n = begin, next; n < end; n = next) {
    nnd_size low, high;
    next = nnd_min(end, nnd_phase_taps(&t->x, phase, n, &low, &high));
    struct nnd_tile_job job = *row;
    const nnd_size tap = phase->first_tap + low * t->x.tap_step;
    job.columns = nnd_max(0, high - low);
    if (job.columns == 0) job.rows = 0; /* the bias alone */
    if (job.rows > 0) {
      job.in = (const nnd_elem *)row->in + (n + phase->reach - low * t->x.back) * NND_LANES;
      job.weights = (const nnd_weight *)row->weights + tap * job.tap_weights / t->x.tap_step;
    }
    job.out = row->out + (n - begin) * nnd_out_pixel(way, row);
    if (job.residual) job.residual = row->residual + (n - begin) * NND_LANES;
    const int half = has_half && (vectors > 1 || next - n >= NND_FEW_FOR_HALVES);
    nnd_transposed_pixels(deep, way, vectors, half, next - n, job);
  }
}

/* Every `stride`-th pixel of `vectors` planes, between the output and what lies side by side. */
static void nnd_spread_pixels(const nnd_elem *made, nnd_size count, int vectors, nnd_size stride, nnd_size out_plane,
                              int stream, nnd_elem *out) {
  for (int v = 0; v < vectors; v++, made += count * NND_LANES, out += out_plane)
    for (nnd_size i = 0; i < count; i++) {
      if (stream)
        nnd_stream(out + i * stride * NND_LANES, nnd_read(made + i * NND_LANES));
      else
        memcpy(out + i * stride * NND_LANES, made + i * NND_LANES, NND_LANES * sizeof(nnd_elem));
    }
}

static void nnd_gather_pixels(const nnd_elem *from, nnd_size count, int vectors, nnd_size stride, nnd_size plane,
                              nnd_elem *to) {
  for (int v = 0; v < vectors; v++, to += count * NND_LANES, from += plane)
    for (nnd_size i = 0; i < count; i++)
      memcpy(to + i * NND_LANES, from + i * stride * NND_LANES, NND_LANES * sizeof(nnd_elem));
}

/* Panel `panel` of output row `row` of a volume; of groups a block. */
static void nnd_transposed_row(const struct nnd_transposed_fields *t, nnd_size panel, nnd_size row,
                               struct nnd_transposed_data d, nnd_elem *scratch) {
  const struct nnd_axis z = t->z.axis, y = t->y.axis, x = t->x.axis;
  const int has_groups = t->grouped.span > 0;
  const nnd_size blocks = nnd_blocks(t->out_channels), full = has_groups ? blocks : nnd_full_panels(blocks);
  const nnd_size block = has_groups ? panel : panel * NND_PANEL, slice = row / y.out_size, line = row % y.out_size;
  const int vectors = has_groups ? 1 : panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const int has_half = panel == full && nnd_has_half(t->out_channels);
  const nnd_size padded = nnd_grouped_channels(has_groups ? t->grouped.span : t->in_channels);
  const nnd_size of_tap = padded * vectors * NND_LANES, of_slice = y.kernel * x.kernel * of_tap;
  const struct nnd_phase *deep = &t->z.phases[slice % z.stride], *down = &t->y.phases[line % y.stride];
  const nnd_size in_row = x.size * NND_LANES, in_plane = z.size * y.size * in_row;
  nnd_size first, last, low, high;
  nnd_phase_taps(&t->z, deep, slice / z.stride, &first, &last);
  nnd_phase_taps(&t->y, down, line / y.stride, &low, &high);
  const struct nnd_deep_taps taps = {nnd_max(0, last - first), -t->z.back * y.size * in_row, t->z.tap_step * of_slice};
  struct nnd_tile_job job = {
      .in_plane = in_plane,
      .channels = has_groups ? nnd_grouped_held(&t->grouped, t->in_channels, block) : t->in_channels,
      .rows = nnd_max(0, high - low),
      .row_step = -t->y.back * x.size * NND_LANES,
      .column_step = -t->x.back * NND_LANES,
      .row_weights = t->y.tap_step * x.kernel * of_tap,
      .tap_weights = t->x.tap_step * of_tap,
      .bias = d.bias + block * NND_LANES,
      .numbers = t->end.number ? d.numbers + block * NND_LANES : 0,
      .end = &t->end};
  if (job.rows > 0 && taps.taps > 0) {
    const nnd_size in_slice = slice / z.stride + deep->reach - first * t->z.back;
    const nnd_size in_line = line / y.stride + down->reach - low * t->y.back;
    if (has_groups) d.in += t->grouped.begins[block] * in_plane;
    job.in = d.in + (in_slice * y.size + in_line) * in_row;
    job.weights = d.weights + block * NND_LANES * z.kernel * y.kernel * x.kernel * padded +
                  (deep->first_tap + first * t->z.tap_step) * of_slice +
                  (down->first_tap + low * t->y.tap_step) * x.kernel * of_tap;
  } else
    job.rows = 0;
  d.out += block * t->out_plane;
  if (t->end.residual) d.residual += block * t->out_plane;
  if (x.stride == 1) {
    job.out = d.out, job.out_plane = t->out_plane, job.stream = t->stream;
    if (t->end.residual) job.residual = d.residual;
    nnd_transposed_columns(t, t->x.phases, &taps, 0, x.out_size, vectors, has_half, &job);
    return;
  }
  if (!t->end.residual) { /* each phase stores where its pixels stand */
    job.out_plane = t->out_plane, job.stream = t->stream, job.out_step = x.stride;
    for (nnd_size phase = 0; phase < nnd_min(x.stride, x.out_size); phase++) {
      job.out = d.out + phase * NND_LANES;
      nnd_transposed_columns(t, &t->x.phases[phase], &taps, 0, nnd_ceil_div(x.out_size - phase, x.stride), vectors,
                             has_half, &job);
    }
    return;
  }
  for (nnd_size begin = 0; begin * x.stride < x.out_size; begin += NND_PHASE_PIXELS)
    for (nnd_size phase = 0; phase < nnd_min(x.stride, x.out_size - begin * x.stride); phase++) {
      const nnd_size end = nnd_min(begin + NND_PHASE_PIXELS, nnd_ceil_div(x.out_size - phase, x.stride));
      const nnd_size count = end - begin, at = (begin * x.stride + phase) * NND_LANES;
      job.out = scratch, job.out_plane = count * NND_LANES;
      if (t->end.residual) {
        nnd_elem *residual = scratch + NND_MOST_VECTORS * NND_PHASE_PIXELS * NND_LANES;
        nnd_gather_pixels(d.residual + at, count, vectors, x.stride, t->out_plane, residual);
        job.residual = residual;
      }
      nnd_transposed_columns(t, &t->x.phases[phase], &taps, begin, end, vectors, has_half, &job);
      nnd_spread_pixels(scratch, count, vectors, x.stride, t->out_plane, t->stream, d.out + at);
    }
}

static void nnd_run_transposed(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_transposed_fields *t = fields;
  const struct nnd_axis z = t->z.axis, y = t->y.axis, x = t->x.axis;
  const nnd_size blocks = nnd_blocks(t->out_channels), of_image = z.out_size * y.out_size;
  const nnd_size panels = t->grouped.span ? blocks : nnd_full_panels(blocks) + 1, rows = t->images * of_image;
  const nnd_size in_image = nnd_blocks(t->in_channels) * z.size * y.size * x.size * NND_LANES;
  nnd_size first, last;
  nnd_share(t->by_panels ? rows * panels : rows, part, &first, &last);
  const nnd_size count = last - first, all = t->by_panels ? count : count * panels;
  for (nnd_size i = 0; i < all; i++) {
    nnd_size panel, unit;
    if (t->by_panels)
      panel = (first + i) / rows, unit = (first + i) % rows;
    else if (t->panels_outside)
      panel = i / count, unit = first + i % count;
    else
      panel = i % panels, unit = first + i / panels;
    const nnd_size image = unit / of_image, row = unit % of_image;
    const nnd_size offset = image * blocks * t->out_plane + row * x.out_size * NND_LANES;
    const struct nnd_transposed_data d = {(const nnd_elem *)at[1] + image * in_image,
                                          at[2],
                                          at[3],
                                          at[5],
                                          t->end.residual ? (const nnd_elem *)at[4] + offset : NULL,
                                          (nnd_elem *)at[0] + offset};
    nnd_transposed_row(t, panel, row, d, (nnd_elem *)part.scratch);
  }
}

struct nnd_transposed_own {
  struct nnd_conv c;
  struct nnd_depth depth;
  struct nnd_grouped grouped;
};

static int nnd_open_transposed(struct nnd_opener *o) {
  struct nnd_transposed_own *own = nnd_own(o, sizeof *own);
  struct nnd_volume_conv words;
  if (!own || !nnd_read_volume_conv(o, &words) || !nnd_open_conv(o, &words.conv, &own->c, 1, 1) ||
      !nnd_fits_depth(o, &own->c, &words.depth))
    return 0;
  own->depth = words.depth;
  if (!o->model->tensors[own->c.in].is_blocked) return nnd_fail(o->message, "a transposed convolution of planes");
  return own->c.groups == 1 ? nnd_pack_conv(o, &own->c, NND_PACK_PRODUCTS)
                            : nnd_pack_grouped(o, &own->c, &own->grouped);
}

static nnd_size nnd_common_divisor(nnd_size a, nnd_size b) {
  while (b) {
    const nnd_size rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Output o reads tap k where o + pad - k * dilation is a multiple of the stride, at that multiple: taps of a phase are
 * so many apart that their distances are, too. */
static int nnd_make_phases(struct nnd_maker *m, struct nnd_axis axis, struct nnd_phases *p) {
  struct nnd_phase *phases = nnd_memory_take(&m->table->memory, axis.stride * (nnd_size)sizeof *phases);
  if (!phases) return nnd_fail(m->message, "no memory for a transposed convolution");
  const nnd_size common = nnd_common_divisor(axis.stride, axis.dilation);
  *p = (struct nnd_phases){axis, axis.stride / common, axis.dilation / common, phases};
  for (nnd_size k = 0; k < nnd_min(axis.kernel, p->tap_step); k++) {
    const nnd_size from = k * axis.dilation - axis.pad, phase = from - nnd_floor_div(from, axis.stride) * axis.stride;
    phases[phase] = (struct nnd_phase){k, nnd_ceil_div(axis.kernel - k, p->tap_step), (phase - from) / axis.stride};
  }
  return 1;
}

static int nnd_make_transposed(struct nnd_maker *m) {
  const struct nnd_transposed_own *own = m->step->own;
  const struct nnd_conv *c = &own->c;
  const struct nnd_shape *in = nnd_shape_of(m, c->in), *out = nnd_shape_of(m, c->out);
  struct nnd_axis axes[3];
  if (!nnd_volume_axes(m, c, &own->depth, axes)) return 0;
  struct nnd_transposed_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (!nnd_make_phases(m, axes[0], &t->z) || !nnd_make_phases(m, axes[1], &t->y) || !nnd_make_phases(m, axes[2], &t->x))
    return 0;
  t->grouped = own->grouped;
  t->in_channels = c->in_channels, t->out_channels = c->out_channels, t->images = in->sizes[0];
  t->out_plane = out->sizes[2] * out->sizes[3] * NND_LANES;
  t->end = c->end;
  t->stream = nnd_streams(m, out->num_bytes);
  t->panels_outside =
      c->in_channels / c->groups * c->out_channels * c->kernel[0] * c->kernel[1] * (nnd_size)sizeof(nnd_weight) >
      nnd_l2(m) / 2;
  t->by_panels = t->images * out->sizes[2] < NND_FEW_ROWS;
  const nnd_size made = NND_MOST_VECTORS * NND_PHASE_PIXELS * NND_LANES * (nnd_size)sizeof(nnd_elem);
  m->scratch_bytes = (c->end.residual ? 2 : 1) * made;
  m->instance->run = nnd_run_transposed;
  nnd_give_tensor(m, c->out);
  nnd_give_tensor(m, c->in);
  nnd_give(m, c->packed);
  nnd_give(m, c->bias);
  nnd_give_tensor(m, c->residual);
  nnd_give(m, c->numbers);
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld phases%s",
           (long long)nnd_min(1 << 20, c->stride[0] * c->stride[1]), t->panels_outside ? ", panel by panel" : "");
  return 1;
}

const struct nnd_op nnd_op_transposed = {"transposed", nnd_open_transposed, nnd_make_transposed};
