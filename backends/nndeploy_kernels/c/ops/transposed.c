/* SPDX-License-Identifier: Apache-2.0
 *
 * transposed: one record (ops/conv_record.h) without groups, of weights (O, I, kernel rows, kernel columns) that spread
 * each input pixel over a window of the output; pads are those that are cut off before the output.
 *
 * Output columns of one phase, those equal modulo the stride, read neighbouring input columns: each tap of a phase is a
 * pointwise convolution, so that the micro-kernel of all products does a phase of a row as it does a convolution whose
 * taps go backwards. Its pixels are made side by side in scratch and then spread over the output.
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
  struct nnd_phases y, x;
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

/* Numbers [begin, end) of a phase of columns, for a panel and a row; `row` has what does not depend on these. */
static void nnd_transposed_columns(const struct nnd_transposed_fields *t, const struct nnd_phase *phase, nnd_size begin,
                                   nnd_size end, int vectors, int has_half, const struct nnd_tile_job *row) {
  const int way = row->out_step > 1 ? NND_SPREAD : NND_NEXT;
  for (nnd_size n = begin, next; n < end; n = next) {
    nnd_size low, high;
    next = nnd_min(end, nnd_phase_taps(&t->x, phase, n, &low, &high));
    struct nnd_tile_job job = *row;
    const nnd_size tap = phase->first_tap + low * t->x.tap_step;
    job.columns = nnd_max(0, high - low);
    if (job.columns == 0) job.rows = 0; /* the bias alone */
    if (job.rows > 0) {
      job.in = (const nnd_elem *)row->in + (n + phase->reach - low * t->x.back) * NND_LANES;
      job.weights = (const nnd_weight *)row->weights + tap * nnd_grouped_channels(t->in_channels) * vectors * NND_LANES;
    }
    job.out = row->out + (n - begin) * nnd_out_pixel(way, row);
    if (job.residual) job.residual = row->residual + (n - begin) * NND_LANES;
    const int half = has_half && (vectors > 1 || next - n >= NND_FEW_FOR_HALVES);
    nnd_run_cut(nnd_cut_of(way, vectors, half, next - n, 0), way, vectors, half, &job);
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

/* Panel `panel` of output row `row`. */
static void nnd_transposed_row(const struct nnd_transposed_fields *t, nnd_size panel, nnd_size row,
                               struct nnd_transposed_data d, nnd_elem *scratch) {
  const struct nnd_axis y = t->y.axis, x = t->x.axis;
  const nnd_size blocks = nnd_blocks(t->out_channels), full = nnd_full_panels(blocks), block = panel * NND_PANEL;
  const int vectors = panel < full ? NND_PANEL : nnd_last_panel(blocks);
  const int has_half = panel == full && nnd_has_half(t->out_channels);
  const nnd_size of_tap = nnd_grouped_channels(t->in_channels) * vectors * NND_LANES, number = row / y.stride;
  const struct nnd_phase *down = &t->y.phases[row % y.stride];
  nnd_size low, high;
  nnd_phase_taps(&t->y, down, number, &low, &high);
  struct nnd_tile_job job = {.in_plane = y.size * x.size * NND_LANES,
                             .channels = t->in_channels,
                             .rows = nnd_max(0, high - low),
                             .row_step = -t->y.back * x.size * NND_LANES,
                             .column_step = -t->x.back * NND_LANES,
                             .row_weights = t->y.tap_step * x.kernel * of_tap,
                             .tap_weights = t->x.tap_step * of_tap,
                             .bias = d.bias + block * NND_LANES,
                             .numbers = t->end.number ? d.numbers + block * NND_LANES : 0,
                             .end = &t->end,
                             .sum = NND_WHOLE};
  if (job.rows > 0) {
    job.in = d.in + (number + down->reach - low * t->y.back) * x.size * NND_LANES;
    job.weights = d.weights + block * NND_LANES * y.kernel * x.kernel * nnd_grouped_channels(t->in_channels) +
                  (down->first_tap + low * t->y.tap_step) * x.kernel * of_tap;
  }
  d.out += block * t->out_plane;
  if (t->end.residual) d.residual += block * t->out_plane;
  if (x.stride == 1) {
    job.out = d.out, job.out_plane = t->out_plane, job.stream = t->stream;
    if (t->end.residual) job.residual = d.residual;
    nnd_transposed_columns(t, t->x.phases, 0, x.out_size, vectors, has_half, &job);
    return;
  }
  if (!t->end.residual) { /* each phase stores where its pixels stand */
    job.out_plane = t->out_plane, job.stream = t->stream, job.out_step = x.stride;
    for (nnd_size phase = 0; phase < nnd_min(x.stride, x.out_size); phase++) {
      job.out = d.out + phase * NND_LANES;
      nnd_transposed_columns(t, &t->x.phases[phase], 0, nnd_ceil_div(x.out_size - phase, x.stride), vectors, has_half,
                             &job);
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
      nnd_transposed_columns(t, &t->x.phases[phase], begin, end, vectors, has_half, &job);
      nnd_spread_pixels(scratch, count, vectors, x.stride, t->out_plane, t->stream, d.out + at);
    }
}

static void nnd_run_transposed(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_transposed_fields *t = fields;
  const struct nnd_axis y = t->y.axis, x = t->x.axis;
  const nnd_size blocks = nnd_blocks(t->out_channels), panels = nnd_full_panels(blocks) + 1;
  const nnd_size rows = t->images * y.out_size, in_image = nnd_blocks(t->in_channels) * y.size * x.size * NND_LANES;
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
    const nnd_size image = unit / y.out_size, row = unit % y.out_size;
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

static int nnd_open_transposed(struct nnd_opener *o) {
  struct nnd_conv *c = nnd_own(o, sizeof *c);
  if (!c || !nnd_open_conv(o, c, 1, 1)) return 0;
  if (c->groups != 1 || !o->model->tensors[c->in].is_blocked)
    return nnd_fail(o->message, "a transposed convolution of groups, or of planes");
  return nnd_pack_conv(o, c, NND_PACK_PRODUCTS);
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
  const struct nnd_conv *c = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, c->in), *out = nnd_shape_of(m, c->out);
  if (in->rank != 4 || out->rank != 4 || in->sizes[0] != out->sizes[0] || in->sizes[1] != c->in_channels ||
      out->sizes[1] != c->out_channels || !in->is_blocked || !out->is_blocked)
    return nnd_fail(m->message, "the images of a transposed convolution do not fit its weights");
  if (c->residual >= 0) {
    const struct nnd_shape *residual = nnd_shape_of(m, c->residual);
    int is_same = residual->is_blocked && residual->rank == 4;
    for (int axis = 0; is_same && axis < 4; axis++) is_same = residual->sizes[axis] == out->sizes[axis];
    if (!is_same) return nnd_fail(m->message, "a residual has another shape than what it is added to");
  }
  struct nnd_transposed_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  struct nnd_phases *axes[2] = {&t->y, &t->x};
  for (int i = 0; i < 2; i++) {
    const struct nnd_axis axis = {in->sizes[2 + i], out->sizes[2 + i], c->kernel[i],
                                  c->stride[i],     c->dilation[i],    nnd_size_of(m, c->pad[i])};
    if (!nnd_make_phases(m, axis, axes[i])) return 0;
  }
  t->in_channels = c->in_channels, t->out_channels = c->out_channels, t->images = in->sizes[0];
  t->out_plane = out->sizes[2] * out->sizes[3] * NND_LANES;
  t->end = c->end;
  t->stream = out->num_bytes > NND_STREAM_FROM;
  t->panels_outside =
      c->in_channels * c->out_channels * c->kernel[0] * c->kernel[1] * (nnd_size)sizeof(nnd_weight) > nnd_l2(m) / 2;
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
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld phases",
           (long long)nnd_min(1 << 20, c->stride[0] * c->stride[1]));
  return 1;
}

const struct nnd_op nnd_op_transposed = {"transposed", nnd_open_transposed, nnd_make_transposed};
