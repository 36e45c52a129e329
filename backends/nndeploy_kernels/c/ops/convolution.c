/* SPDX-License-Identifier: Apache-2.0
 *
 * convolution: one record (ops/conv_record.h). What it is follows from the record: pointwise, dense from NCHW or NCHWc,
 * depthwise, grouped.
 */
#include "kernels/convolution.h"

#include <stdio.h>

#include "kernels/depthwise.h"
#include "kernels/pointwise.h"
#include "ops/conv_record.h"
#include "ops/convolution_rows.h"
#include "ops/gathered.h"
#include "ops/tiled_convolution.h"
#include "ops/windows.h"
#include "ops/winograd.h"

#define NND_LARGE_WEIGHTS ((nnd_size)2 << 20)
#define NND_FEW_WINDOWS 8
#define NND_MANY_PIECES 32   /* so many pieces of work are enough for all workers, and for the parts of a paced step */
#define NND_LEAST_COLUMNS 64 /* of a piece of a row: shorter ones would take longer together */
#define NND_LONG_ROW 512     /* a row of planes is copied by each of its parts anew, which long ones alone are worth */
#define NND_FEW_ROWS 8       /* fewer would leave workers idle, and parts of a paced step empty */

/* `winograd`: the weights of that way, null where it is not packed; `c` has those of the other one. */
struct nnd_convolution_own {
  struct nnd_conv c;
  const void *winograd;
  int is_winograd; /* by the rule, or because there is no other */
  struct nnd_grouped grouped;
};

/* For which ways a convolution is packed: NND_WAY_DIRECT, NND_WAY_WINOGRAD or both. */
static int nnd_ways_of(const struct nnd_opener *o, const struct nnd_conv *c) {
  if (!nnd_winograd_fits(o, c)) return NND_WAY_DIRECT;
  const struct nnd_options *options = &o->model->options;
  const nnd_size step = o->step - o->model->steps;
  const int way = step < options->num_ways ? options->ways[step] : NND_WAY_BY_RULE;
  if (way == NND_WAY_DIRECT || way == NND_WAY_WINOGRAD || way == NND_WAY_BOTH) return way;
  return nnd_winograd_pays(o, c) ? NND_WAY_WINOGRAD : NND_WAY_DIRECT;
}

/* Packs a dense convolution of blocked images. */
static int nnd_open_dense(struct nnd_opener *o, struct nnd_convolution_own *own) {
  struct nnd_conv *c = &own->c;
  const int ways = nnd_ways_of(o, c);
  own->is_winograd = ways == NND_WAY_WINOGRAD || (ways == NND_WAY_BOTH && nnd_winograd_pays(o, c));
  if (ways == NND_WAY_BOTH) nnd_reads_again(c->plain);
  if (ways & NND_WAY_WINOGRAD && !nnd_pack_winograd(o, c, &own->winograd)) return 0;
  return !(ways & NND_WAY_DIRECT) || nnd_pack_conv(o, c, NND_PACK_PRODUCTS);
}

static int nnd_open_convolution(struct nnd_opener *o) {
  struct nnd_convolution_own *own = nnd_own(o, sizeof *own);
  struct nnd_conv_record words;
  if (!own || !nnd_read_conv_record(o, &words) || !nnd_open_conv(o, &words, &own->c, 1, 1)) return 0;
  struct nnd_conv *c = &own->c;
  if (!o->model->tensors[c->in].is_blocked) {
    if (c->groups != 1) return nnd_fail(o->message, "groups of a convolution that reads planes");
    return nnd_pack_conv(o, c, NND_PACK_PLANAR);
  }
  if (c->groups > 1 && nnd_is_depthwise(c)) { /* of one channel it may be pointwise too, which it then is */
    if (c->residual >= 0) return nnd_fail(o->message, "a residual of a depthwise convolution");
    return nnd_pack_conv(o, c, NND_PACK_DEPTHWISE);
  }
  return c->groups == 1 ? nnd_open_dense(o, own) : nnd_pack_grouped(o, c, &own->grouped);
}

/* Pointwise: windows of `window` pixels of all images. Workers share windows, or panels where `by_panels`. */
struct nnd_pointwise_fields {
  struct nnd_pointwise s;
  nnd_size pixels, images, window;
  int by_panels;
};

static void nnd_run_pointwise(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_pointwise_fields *t = fields;
  const struct nnd_pointwise *s = &t->s;
  const struct nnd_pointwise_data d = {at[1], at[2], at[3], at[4], at[5], at[0], nnd_pointwise_packed(s, part.scratch)};
  const nnd_size windows = nnd_ceil_div(t->pixels, t->window), rest = t->pixels - (windows - 1) * t->window;
  const nnd_size panels = nnd_full_panels(nnd_blocks(s->out_channels)) + 1;
  nnd_size first = 0, last = t->images * windows, first_panel = 0, last_panel = panels;
  if (t->by_panels)
    nnd_share(panels, part, &first_panel, &last_panel);
  else
    nnd_share(last, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    struct nnd_pointwise_data image = d;
    const nnd_size number = unit / windows, out_image = number * nnd_blocks(s->out_channels) * s->out_plane;
    image.in += number * nnd_blocks(s->in_channels) * s->in_plane;
    image.out += out_image;
    if (s->end.residual) image.residual += out_image;
    nnd_pointwise_panels(s, NND_WHOLE, unit % windows + 1 < windows ? t->window : rest, first_panel, last_panel,
                         nnd_pointwise_at(s, image, unit % windows * t->window), nnd_no_prefetch);
  }
}

static int nnd_make_pointwise(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                              const struct nnd_axis *x) {
  struct nnd_pointwise_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *in = nnd_shape_of(m, c->in), *out = nnd_shape_of(m, c->out);
  const nnd_size pixels = y->size * x->size;
  const nnd_size weights = c->in_channels * c->out_channels * (nnd_size)sizeof(nnd_weight);
  t->s = (struct nnd_pointwise){.in_channels = c->in_channels,
                                .out_channels = c->out_channels,
                                .panel_channels = c->in_channels,
                                .in_plane = pixels * NND_LANES,
                                .out_plane = pixels * NND_LANES,
                                .end = c->end,
                                .stream = nnd_streams(m, out->num_bytes),
                                .prefetch_weights = weights > NND_PREFETCH_FROM};
  t->pixels = pixels, t->images = in->sizes[0];
  const struct nnd_maker by_rule = nnd_by_rule(m);
  t->window = nnd_window_for(nnd_capacity(m, in->num_bytes), 1, pixels, c->in_channels).columns;
  const nnd_size rule = nnd_window_for(nnd_capacity(&by_rule, in->num_bytes), 1, pixels, c->in_channels).columns;
  t->window = nnd_same_bits(t->window, rule, pixels, c->out_channels);
  t->by_panels = t->images * nnd_ceil_div(pixels, t->window) < NND_FEW_WINDOWS || weights >= NND_LARGE_WEIGHTS;
  nnd_take_tiles(m, &t->s, pixels, t->window);
  if (t->s.by_tiles && t->by_panels) m->instance->chunks = 1; /* each packs all windows */
  m->instance->run = nnd_run_pointwise;
  snprintf(m->instance->shown, sizeof m->instance->shown, "pointwise, window %lld%s", (long long)t->window,
           nnd_shown_tiles(t->s.by_tiles));
  return 1;
}

/* Dense: rows of all images; columns of them and panels where rows are few. */
struct nnd_dense_fields {
  struct nnd_convolution s;
  struct nnd_grouped grouped; /* span 0: one group */
  nnd_size images, shares;    /* of each row */
  int panels_outside, by_panels;
};

/* The same as a convolution of a vector of channels, whose last ones may be none: what those hold is nobody's. */
static struct nnd_convolution nnd_grouped_block(const struct nnd_dense_fields *t) {
  struct nnd_convolution s = t->s;
  s.in_channels = t->grouped.span;
  s.out_channels = NND_LANES;
  return s;
}

static void nnd_grouped_row(const struct nnd_dense_fields *t, const struct nnd_convolution *s, nnd_size block,
                            nnd_size row, nnd_size from, nnd_size to, const struct nnd_copies *copies,
                            struct nnd_convolution_data d) {
  const nnd_size padded = nnd_grouped_channels(t->grouped.span), taps = s->y.kernel * s->columns;
  struct nnd_copies moved = {0};
  if (copies) {
    moved = *copies;
    moved.to += nnd_copied_bytes(copies->rows, t->grouped.begins[block], nnd_plane_pixel(s));
  }
  d.in = (const nnd_elem *)d.in + t->grouped.begins[block] * s->y.size * s->x.size * NND_LANES;
  d.weights = (const nnd_weight *)d.weights + block * padded * taps * NND_LANES;
  d.bias += block * NND_LANES;
  if (s->end.number) d.numbers += block * NND_LANES;
  d.out += block * s->out_plane;
  if (s->end.residual) d.residual += block * s->out_plane;
  struct nnd_panel_job job = nnd_convolution_job(s, 0, &d);
  job.job.channels = nnd_grouped_held(&t->grouped, t->s.in_channels, block);
  nnd_convolution_row(s, &job, row, from, to, copies ? &moved : NULL, &d);
}

/* What the parts of a dense convolution's work have in common. */
struct nnd_dense_work {
  const struct nnd_dense_fields *t;
  struct nnd_convolution grouped;
  struct nnd_panel_job job;
  struct nnd_copies copies;
};

/* Panel `panel` of columns [from, to) of output row `unit`, counted over all images. */
static void nnd_dense_row(struct nnd_dense_work *w, nnd_size panel, nnd_size unit, nnd_size from, nnd_size to,
                          void *const *at) {
  const struct nnd_dense_fields *t = w->t;
  const struct nnd_convolution *s = &t->s;
  const nnd_size image = unit / s->y.out_size, row = unit % s->y.out_size;
  const nnd_size offset = image * nnd_blocks(s->out_channels) * s->out_plane + row * s->x.out_size * NND_LANES;
  struct nnd_convolution_data d = {at[1], at[2], at[3], at[4], at[5], (nnd_elem *)at[0] + offset};
  if (s->end.residual) d.residual += offset;
  d.in = (const char *)d.in + image * nnd_planes(s) * s->y.size * s->x.size * nnd_plane_pixel(s);
  const struct nnd_copies *copies = nnd_row_copies(s, &w->copies, image, row, d.in);
  if (t->grouped.span) {
    nnd_grouped_row(t, &w->grouped, panel, row, from, to, copies, d);
    return;
  }
  if (w->job.panel != panel) w->job = nnd_convolution_job(s, panel, &d);
  nnd_convolution_row(s, &w->job, row, from, to, copies, &d);
}

static void nnd_run_dense(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_dense_fields *t = fields;
  const struct nnd_convolution *s = &t->s;
  const nnd_size blocks = nnd_blocks(s->out_channels), width = s->x.out_size;
  const nnd_size panels = t->grouped.span ? blocks : nnd_full_panels(blocks) + 1, rows = t->images * s->y.out_size;
  struct nnd_dense_work work = {.t = t, .grouped = nnd_grouped_block(t), .job.panel = -1};
  nnd_size first, last;
  nnd_share(t->by_panels ? rows * panels * t->shares : rows, part, &first, &last);
  const nnd_size count = last - first;
  if (count == 0) return;
  work.copies = nnd_begin_copies(s, part.scratch);
  if (t->by_panels)
    for (nnd_size i = first; i < last; i++) {
      const nnd_size number = i / t->shares, share = i % t->shares;
      const nnd_size from = width * share / t->shares, to = width * (share + 1) / t->shares;
      if (from < to) nnd_dense_row(&work, number / rows, number % rows, from, to, at);
    }
  else if (t->panels_outside)
    for (nnd_size i = 0; i < count * panels; i++) nnd_dense_row(&work, i / count, first + i % count, 0, width, at);
  else
    for (nnd_size i = 0; i < count * panels; i++) nnd_dense_row(&work, i % panels, first + i / panels, 0, width, at);
}

static int nnd_make_dense(struct nnd_maker *m, const struct nnd_convolution_own *own, const struct nnd_axis *y,
                          const struct nnd_axis *x) {
  const struct nnd_conv *c = &own->c;
  struct nnd_dense_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *in = nnd_shape_of(m, c->in), *out = nnd_shape_of(m, c->out);
  const nnd_size taps = c->kernel[0] * c->kernel[1];
  t->s = (struct nnd_convolution){.y = *y,
                                  .x = *x,
                                  .in_channels = c->in_channels,
                                  .out_channels = c->out_channels,
                                  .out_plane = y->out_size * x->out_size * NND_LANES,
                                  .stream = nnd_streams(m, out->num_bytes),
                                  .end = c->end,
                                  .is_planar = !in->is_blocked};
  t->grouped = own->grouped;
  t->images = in->sizes[0];
  t->panels_outside =
      c->in_channels / c->groups * c->out_channels * taps * (nnd_size)sizeof(nnd_weight) > nnd_l2(m) / 2;
  t->by_panels = t->images * y->out_size < NND_FEW_ROWS && (!t->s.is_planar || x->out_size >= NND_LONG_ROW);
  t->shares = t->by_panels ? nnd_max(1, nnd_min(64, x->out_size / (2 * NND_ACCUMULATORS / NND_PANEL))) : 1;
  if (!nnd_make_rows(m, &t->s)) return 0;
  m->scratch_bytes = nnd_copies_bytes(&t->s);
  m->instance->run = nnd_run_dense;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%s",
           t->s.is_planar      ? "from NCHW"
           : t->grouped.span   ? "grouped"
           : t->panels_outside ? "dense, panel by panel"
                               : "dense");
  return 1;
}

/* Depthwise: rows of all channel blocks and images, of which few long ones, as of sounds, are each cut in `pieces`. */
struct nnd_depthwise_fields {
  struct nnd_depthwise s;
  nnd_size blocks, images, pieces;
};

static void nnd_run_depthwise(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_depthwise_fields *t = fields;
  const struct nnd_depthwise *s = &t->s;
  const nnd_size taps = s->y.kernel * s->x.kernel, width = s->x.out_size;
  nnd_size first, last;
  nnd_share(t->images * t->blocks * s->y.out_size * t->pieces, part, &first, &last);
  for (nnd_size unit = first; unit < last;) {
    const nnd_size line = unit / t->pieces, piece = unit % t->pieces, count = nnd_min(t->pieces - piece, last - unit);
    const nnd_size plane = line / s->y.out_size, row = line % s->y.out_size, block = plane % t->blocks;
    const nnd_size begin = nnd_even(width, t->pieces, piece), end = nnd_even(width, t->pieces, piece + count);
    s->columns(s, row, 1, begin, end, (const nnd_elem *)at[1] + plane * s->y.size * s->x.size * NND_LANES,
               (const float *)at[2] + block * taps * NND_LANES, (const float *)at[3] + block * NND_LANES,
               nnd_end_number(&s->end, at[4], block), width, (nnd_elem *)at[0] + (line * width + begin) * NND_LANES);
    unit += count;
  }
}

static int nnd_make_depthwise(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y,
                              const struct nnd_axis *x) {
  struct nnd_depthwise_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->s = (struct nnd_depthwise){*y, *x, c->end, 0, nnd_depthwise_for(x)};
  t->blocks = nnd_blocks(c->out_channels), t->images = nnd_shape_of(m, c->in)->sizes[0];
  const nnd_size lines = nnd_max(1, t->images * t->blocks * y->out_size);
  t->pieces = nnd_max(1, nnd_min(NND_MANY_PIECES / lines, x->out_size / NND_LEAST_COLUMNS));
  m->instance->run = nnd_run_depthwise;
  snprintf(m->instance->shown, sizeof m->instance->shown, "depthwise");
  return 1;
}

static int nnd_make_convolution(struct nnd_maker *m) {
  const struct nnd_convolution_own *own = m->step->own;
  const struct nnd_conv *c = &own->c;
  const int is_chosen = own->winograd && c->packed && m->choice->way != NND_WAY_BY_RULE;
  const int is_winograd = is_chosen ? m->choice->way == NND_WAY_WINOGRAD : own->is_winograd;
  struct nnd_axis y, x;
  if (!nnd_conv_axes(m, c, &y, &x)) return 0;
  nnd_give_tensor(m, c->out);
  nnd_give_tensor(m, c->in);
  nnd_give(m, is_winograd ? own->winograd : c->packed);
  nnd_give(m, c->bias);
  nnd_give(m, c->numbers);
  nnd_give_tensor(m, c->residual);
  nnd_tell_operations(m, nnd_shape_of(m, c->out)->count, c->in_channels / c->groups * c->kernel[0] * c->kernel[1]);
  if (is_winograd) return nnd_make_winograd(m, c, &y, &x);
  const int is_blocked = nnd_shape_of(m, c->in)->is_blocked;
  const int keeps_size = y.size == y.out_size && x.size == x.out_size; /* zeros behind the image need no zeros before */
  if (is_blocked && keeps_size && nnd_is_pointwise(m, c)) return nnd_make_pointwise(m, c, &y, &x);
  if (is_blocked && c->groups > 1 && nnd_is_depthwise(c)) return nnd_make_depthwise(m, c, &y, &x);
  const int is_gathered = is_blocked && nnd_gathered_pays(c, &y, &x);
  if (is_blocked && (!is_gathered || x.out_size >= NND_AMX_FAST_ROWS) && nnd_tiled_pays(c, &y, &x))
    return nnd_make_tiled(m, c, &y, &x);
  if (is_gathered) return nnd_make_gathered(m, c, &y, &x);
  return nnd_make_dense(m, own, &y, &x);
}

const struct nnd_op nnd_op_convolution = {"convolution", nnd_open_convolution, nnd_make_convolution};
