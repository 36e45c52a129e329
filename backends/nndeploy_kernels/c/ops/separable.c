/* SPDX-License-Identifier: Apache-2.0
 *
 * separable: two records (ops/conv_record.h), a depthwise convolution and the pointwise one of what it gives.
 */
#include "kernels/separable.h"

#include <stdio.h>

#include "ops/conv_record.h"
#include "ops/windows.h"

struct nnd_separable_own {
  struct nnd_conv first, second;
};

static int nnd_open_separable(struct nnd_opener *o) {
  struct nnd_separable_own *own = nnd_own(o, sizeof *own);
  struct nnd_two_convs words;
  if (!own || !nnd_read_two_convs(o, &words) || !nnd_open_conv(o, &words.first, &own->first, 1, 0) ||
      !nnd_open_conv(o, &words.second, &own->second, 0, 1))
    return 0;
  if (own->second.in != own->first.out || !nnd_is_depthwise(&own->first) || own->first.residual >= 0 ||
      own->second.groups != 1 || !o->model->tensors[own->first.in].is_blocked)
    return nnd_fail(o->message, "a pair of convolutions that is none");
  return nnd_pack_conv(o, &own->first, NND_PACK_DEPTHWISE) && nnd_pack_conv(o, &own->second, NND_PACK_PRODUCTS);
}

/* Workers share windows of all images; the buffer lies in a worker's scratch. */
struct nnd_separable_fields {
  struct nnd_separable s;
  nnd_size images;
  int fetches; /* the input of the next window */
};

static void nnd_run_separable(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_separable_fields *t = fields;
  const struct nnd_separable *s = &t->s;
  const struct nnd_axis y = s->depthwise.y, x = s->depthwise.x;
  const struct nnd_separable_data d = {at[2],
                                       at[3],
                                       at[4],
                                       {.weights = at[5],
                                        .bias = at[6],
                                        .residual = at[7],
                                        .numbers = at[8],
                                        .out = at[0],
                                        .packed = nnd_pointwise_packed(&s->pointwise, part.scratch)}};
  const nnd_size down = nnd_ceil_div(y.out_size, s->window_rows), across = nnd_ceil_div(x.out_size, s->window_columns);
  const nnd_size in_image = nnd_blocks(s->channels) * y.size * x.size * NND_LANES;
  const nnd_size out_image = nnd_blocks(s->pointwise.out_channels) * s->pointwise.out_plane;
  nnd_size first, last;
  nnd_share(t->images * down * across, part, &first, &last);
  for (nnd_size window = first; window < last; window++) {
    const nnd_size image = window / (down * across), row = window / across % down, column = window % across;
    const nnd_elem *from = (const nnd_elem *)at[1] + image * in_image;
    struct nnd_pointwise_data p = d.pointwise;
    p.out += image * out_image;
    if (s->pointwise.end.residual) p.residual += image * out_image;
    struct nnd_prefetch next = nnd_no_prefetch;
    if (t->fetches && window + 1 < last)
      next = row + 1 < down ? nnd_separable_ahead(s, from, (row + 1) * s->window_rows)
                            : nnd_separable_ahead(s, from + in_image, 0);
    const nnd_size top = row * s->window_rows, left = column * s->window_columns;
    nnd_separable_window(s, nnd_min(s->window_rows, y.out_size - top), nnd_min(s->window_columns, x.out_size - left),
                         top, left, &d, from, p, next, (nnd_elem *)part.scratch);
  }
}

struct nnd_pair_window {
  struct nnd_window window;
  nnd_size capacity;
  int fetches;
};

static struct nnd_pair_window nnd_pair_window_of(const struct nnd_maker *m, const struct nnd_conv *first,
                                                 const struct nnd_conv *second, const struct nnd_axis *y,
                                                 const struct nnd_axis *x) {
  const struct nnd_shape *in = nnd_shape_of(m, first->in), *between = nnd_shape_of(m, first->out);
  const nnd_size images = in->sizes[0];
  const int fetches = nnd_pair_fetches(m, in->num_bytes, second->out_channels, y, x);
  const struct nnd_pair_sizes sizes =
      nnd_pair_sizes_of(in->num_bytes, between->num_bytes, images, y, first->out_channels, second->out_channels);
  const nnd_size capacity = nnd_pair_capacity(m, &sizes, fetches);
  const struct nnd_window window =
      nnd_shared_window(nnd_window_for(capacity, y->out_size, x->out_size, first->out_channels), y->out_size,
                        x->out_size, images, nnd_threads(m));
  return (struct nnd_pair_window){window, capacity, fetches && window.columns == x->out_size}; /* rows below */
}

/* Whether some sums of these windows are split. */
static int nnd_pair_splits(const struct nnd_maker *m, const struct nnd_pair_window *w, const struct nnd_conv *second,
                           const struct nnd_axis *y, const struct nnd_axis *x) {
  const int in_parts = w->window.channels < nnd_blocks(second->in_channels) * NND_LANES;
  return nnd_windows_split(w->window, y->out_size, x->out_size, nnd_piece(m, w->window.channels), second->out_channels,
                           in_parts);
}

static int nnd_make_separable(struct nnd_maker *m) {
  const struct nnd_separable_own *own = m->step->own;
  const struct nnd_conv *first = &own->first, *second = &own->second;
  struct nnd_axis y, x, y2, x2;
  if (!nnd_conv_axes(m, first, &y, &x) || !nnd_conv_axes(m, second, &y2, &x2)) return 0;
  if (!nnd_is_pointwise(m, second) || y2.size != y2.out_size || x2.size != x2.out_size)
    return nnd_fail(m->message, "a pair whose second convolution is not pointwise");
  struct nnd_separable_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *in = nnd_shape_of(m, first->in), *between = nnd_shape_of(m, first->out);
  const struct nnd_shape *out = nnd_shape_of(m, second->out);
  const nnd_size images = in->sizes[0];
  const struct nnd_maker by_rule = nnd_by_rule(m);
  const struct nnd_pair_window rule = nnd_pair_window_of(&by_rule, first, second, &y, &x);
  struct nnd_pair_window chosen = nnd_pair_window_of(m, first, second, &y, &x);
  const int is_same = !nnd_pair_splits(m, &chosen, second, &y, &x) &&
                      !nnd_pair_splits(&by_rule, &rule, second, &y, &x) &&
                      chosen.window.channels == rule.window.channels; /* else sums would round otherwise */
  const int is_chosen = is_same || nnd_may_round(m);
  if (!is_chosen) chosen = rule;
  const struct nnd_window window = chosen.window;
  t->fetches = chosen.fetches;
  t->s = (struct nnd_separable){
      .depthwise = {y, x, first->end, 0, nnd_depthwise_for(&x)},
      .pointwise = {.in_channels = first->out_channels,
                    .out_channels = second->out_channels,
                    .panel_channels = first->out_channels,
                    .out_plane = y.out_size * x.out_size * NND_LANES,
                    .end = second->end,
                    .stream = nnd_streams(m, out->num_bytes),
                    .prefetch_weights =
                        second->in_channels * second->out_channels * (nnd_size)sizeof(nnd_weight) > NND_PREFETCH_FROM},
      .channels = first->out_channels,
      .window_rows = window.rows,
      .window_columns = window.columns,
      .window_channels = window.channels,
      .piece = nnd_piece(is_chosen ? m : &by_rule, window.channels)};
  t->images = images;
  m->scratch_bytes = window.rows * window.columns * window.channels * (nnd_size)sizeof(nnd_elem);
  nnd_tell_kept(m, between->num_bytes, m->scratch_bytes);
  nnd_take_tiles(m, &t->s.pointwise, y.out_size * x.out_size, window.rows * window.columns);
  m->instance->run = nnd_run_separable;
  nnd_give_tensor(m, second->out);
  nnd_give_tensor(m, first->in);
  nnd_give(m, first->packed);
  nnd_give(m, first->bias);
  nnd_give(m, first->numbers);
  nnd_give(m, second->packed);
  nnd_give(m, second->bias);
  nnd_give_tensor(m, second->residual);
  nnd_give(m, second->numbers);
  snprintf(m->instance->shown, sizeof m->instance->shown, "window %lldx%lldx%lld, buffer %lld bytes%s",
           (long long)window.rows, (long long)window.columns, (long long)window.channels, (long long)chosen.capacity,
           nnd_shown_tiles(t->s.pointwise.by_tiles));
  return 1;
}

const struct nnd_op nnd_op_separable = {"separable", nnd_open_separable, nnd_make_separable};
