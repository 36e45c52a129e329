/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of plain matrices.
 *
 *   fully_connected   input (..., inputs) in any shape, weights (inputs, outputs), is transposed: (outputs, inputs),
 *                     bias (outputs; -1: none), program of the end (-1: none), numbers of the end (outputs; -1: none),
 *                     residual (tensor; -1: none), output
 *   product           a, b (tensors), rows, inner, columns (rules),
 *                     of a: offset, step from row to row, step from k to k (rules),
 *                     of b: offset, step from k to k, step from column to column (rules),
 *                     batch axes, each: size, step of a, step of b (rules), output
 *
 * Steps are counted in elements and are at least 0; only batch axes may have 0, which broadcasts. The output is the
 * batch axes, rows and columns, in this order and without gaps.
 */
#include <stdio.h>

#include "kernels/gemm.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

static int nnd_is_plain(const struct nnd_opener *o, int tensor) {
  const struct nnd_tensor *one = &o->model->tensors[tensor];
  return !one->is_blocked && one->element == NND_FLOAT32;
}

struct nnd_connected_own {
  int in, out, residual; /* tensors; residual -1: none */
  nnd_size inputs, outputs;
  const float *packed, *bias, *numbers;
  struct nnd_end end;
};

static int nnd_pack_connected(struct nnd_opener *o, struct nnd_connected_own *own, const float *weights,
                              int is_transposed) {
  const int is_narrow = nnd_gemm_is_narrow(own->outputs);
  const nnd_size step = is_transposed ? 1 : own->outputs, column = is_transposed ? own->inputs : 1;
  const nnd_size floats = is_narrow ? own->inputs * own->outputs : nnd_gemm_packed_floats(own->inputs, own->outputs);
  float *to = nnd_packed(o, floats * (nnd_size)sizeof *to);
  if (!to) return 0;
  own->packed = to;
  if (!is_narrow) nnd_gemm_pack(own->inputs, own->outputs, weights, step, column, to);
  for (nnd_size c = 0; is_narrow && c < own->outputs; c++)
    for (nnd_size k = 0; k < own->inputs; k++) to[c * own->inputs + k] = weights[k * step + c * column];
  return 1;
}

static int nnd_open_connected(struct nnd_opener *o) {
  struct nnd_connected_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_tensor(o);
  const struct nnd_weight_data *weights = nnd_read_weight(o);
  const int is_transposed = (int)nnd_word(o, 0, 1);
  const struct nnd_weight_data *bias = nnd_read_weight(o);
  const struct nnd_program *program = nnd_read_program(o);
  const struct nnd_weight_data *numbers = nnd_read_weight(o);
  own->residual = -1;
  if (o->at < o->step->num_words && o->step->words[o->at] >= 0)
    own->residual = nnd_read_tensor(o);
  else
    nnd_word(o, -1, -1);
  own->out = nnd_write_tensor(o);
  if (o->message->failed) return 0;
  if (!nnd_is_plain(o, own->in) || !nnd_is_plain(o, own->out) ||
      (own->residual >= 0 && !nnd_is_plain(o, own->residual)))
    return nnd_fail(o->message, "a fully connected layer of tensors that are not plain float32");
  if (!weights || weights->rank != 2) return nnd_fail(o->message, "a fully connected layer without a matrix");
  own->inputs = weights->sizes[is_transposed], own->outputs = weights->sizes[1 - is_transposed];
  own->end = nnd_end_of(o, program, own->residual >= 0, numbers != NULL);
  own->bias = bias ? nnd_pack_channels(o, bias, own->outputs) : NULL;
  own->numbers = numbers ? nnd_pack_channels(o, numbers, own->outputs) : NULL;
  return !o->message->failed && nnd_pack_connected(o, own, weights->data, is_transposed);
}

static void nnd_show_gemm(struct nnd_maker *m, const struct nnd_gemm *g) {
  static const char *const kinds[] = {"packed", "in place", "packed here", "by dots", "streamed"};
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld x %lld x %lld, %s, %lld groups, %lld parts",
           (long long)g->rows, (long long)g->inner, (long long)g->columns, kinds[g->b_kind], (long long)g->groups,
           (long long)g->parts);
}

static void nnd_run_connected(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_gemm *g = fields;
  const struct nnd_gemm_data d = {at[1], at[2], at[3], at[4], at[5], at[0]};
  nnd_size first, last;
  nnd_share(nnd_gemm_units(g), part, &first, &last);
  nnd_gemm_run(g, &d, first, last, part.scratch);
}

static int nnd_make_connected(struct nnd_maker *m) {
  const struct nnd_connected_own *own = m->step->own;
  struct nnd_gemm *g = nnd_fields(m, sizeof *g);
  if (!g) return 0;
  const nnd_size in = nnd_shape_of(m, own->in)->count, out = nnd_shape_of(m, own->out)->count;
  if (out % own->outputs || in % own->inputs || in / own->inputs != out / own->outputs)
    return nnd_fail(m->message, "rows do not fit the weights of a fully connected layer");
  if (own->residual >= 0 && nnd_shape_of(m, own->residual)->count != out)
    return nnd_fail(m->message, "a residual has another size than what it is added to");
  *g = (struct nnd_gemm){.rows = out / own->outputs,
                         .inner = own->inputs,
                         .columns = own->outputs,
                         .a_row = own->inputs,
                         .a_step = 1,
                         .b_step = 1,
                         .b_column = own->inputs,
                         .end = own->end};
  m->scratch_bytes = nnd_gemm_plan(g, 1, nnd_l2(m), nnd_threads(m), 1);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give(m, own->packed);
  nnd_give(m, own->bias);
  nnd_give(m, own->numbers);
  nnd_give_tensor(m, own->residual);
  m->instance->run = nnd_run_connected;
  nnd_show_gemm(m, g);
  return 1;
}

const struct nnd_op nnd_op_fully_connected = {"fully_connected", nnd_open_connected, nnd_make_connected};

#define NND_MOST_BATCH_AXES (NND_MOST_RANK - 2)

/* Sizes and steps are rules. */
struct nnd_product_own {
  int a, b, out;
  nnd_size rows, inner, columns, a_offset, a_row, a_step, b_offset, b_step, b_column;
  int num_axes;
  nnd_size axes[NND_MOST_BATCH_AXES][3]; /* size, step of a, step of b */
};

static int nnd_open_product(struct nnd_opener *o) {
  struct nnd_product_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->a = nnd_read_tensor(o);
  own->b = nnd_read_tensor(o);
  nnd_size *const rules[] = {&own->rows,   &own->inner,    &own->columns, &own->a_offset, &own->a_row,
                             &own->a_step, &own->b_offset, &own->b_step,  &own->b_column};
  for (int i = 0; i < 9; i++) *rules[i] = nnd_read_rule(o);
  own->num_axes = (int)nnd_word(o, 0, NND_MOST_BATCH_AXES);
  for (int axis = 0; axis < own->num_axes; axis++)
    for (int i = 0; i < 3; i++) own->axes[axis][i] = nnd_read_rule(o);
  own->out = nnd_write_tensor(o);
  if (o->message->failed) return 0;
  return (nnd_is_plain(o, own->a) && nnd_is_plain(o, own->b) && nnd_is_plain(o, own->out)) ||
         nnd_fail(o->message, "a product of tensors that are not plain float32");
}

struct nnd_product_fields {
  struct nnd_gemm g;
  nnd_size products, a_offset, b_offset;
  int num_axes;
  nnd_size axes[NND_MOST_BATCH_AXES][3];
};

/* Workers share the units of all products. */
static void nnd_run_product(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_product_fields *t = fields;
  const nnd_size units = nnd_gemm_units(&t->g);
  nnd_size unit, last;
  nnd_share(t->products * units, part, &unit, &last);
  while (unit < last) {
    const nnd_size number = unit / units, first = unit % units, end = nnd_min(units, first + last - unit);
    struct nnd_gemm_data d = {.a = (const float *)at[1] + t->a_offset,
                              .b = (const float *)at[2] + t->b_offset,
                              .out = (float *)at[0] + number * t->g.rows * t->g.columns};
    nnd_size rest = number;
    for (int axis = t->num_axes - 1; axis >= 0; axis--) {
      const nnd_size place = rest % t->axes[axis][0];
      rest /= t->axes[axis][0];
      d.a += place * t->axes[axis][1];
      d.b += place * t->axes[axis][2];
    }
    nnd_gemm_run(&t->g, &d, first, end, part.scratch);
    unit += end - first;
  }
}

/* Adds to `last`, the place of the last element, what one more axis adds to it; 0 where that is not below `count`. */
static int nnd_reach(nnd_size *last, nnd_size size, nnd_size step, nnd_size least, nnd_size count) {
  nnd_size more;
  if (size < 1 || step < 0 || (size > 1 && step < least) || __builtin_mul_overflow(size - 1, step, &more)) return 0;
  return !__builtin_add_overflow(*last, more, last) && *last >= 0 && *last < count;
}

static int nnd_make_product(struct nnd_maker *m) {
  const struct nnd_product_own *own = m->step->own;
  struct nnd_product_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size a = nnd_shape_of(m, own->a)->count, b = nnd_shape_of(m, own->b)->count;
  t->g = (struct nnd_gemm){.rows = nnd_size_of(m, own->rows),
                           .inner = nnd_size_of(m, own->inner),
                           .columns = nnd_size_of(m, own->columns),
                           .a_row = nnd_size_of(m, own->a_row),
                           .a_step = nnd_size_of(m, own->a_step),
                           .b_step = nnd_size_of(m, own->b_step),
                           .b_column = nnd_size_of(m, own->b_column),
                           .end = {.kind = NND_END_PLAIN}};
  t->a_offset = nnd_size_of(m, own->a_offset), t->b_offset = nnd_size_of(m, own->b_offset);
  nnd_size of_a = t->a_offset, of_b = t->b_offset, left = nnd_shape_of(m, own->out)->count;
  int fits = of_a >= 0 && of_b >= 0 && nnd_reach(&of_a, t->g.rows, t->g.a_row, 1, a) &&
             nnd_reach(&of_a, t->g.inner, t->g.a_step, 1, a) && nnd_reach(&of_b, t->g.inner, t->g.b_step, 1, b) &&
             nnd_reach(&of_b, t->g.columns, t->g.b_column, 1, b);
  t->products = 1;
  for (int axis = 0; fits && axis < own->num_axes; axis++) {
    const nnd_size size = nnd_size_of(m, own->axes[axis][0]);
    const nnd_size by_a = nnd_size_of(m, own->axes[axis][1]), by_b = nnd_size_of(m, own->axes[axis][2]);
    fits = nnd_reach(&of_a, size, by_a, 0, a) && nnd_reach(&of_b, size, by_b, 0, b) && left % size == 0;
    if (!fits || size == 1) continue;
    left /= size, t->products *= size;
    nnd_size *to = t->axes[t->num_axes++];
    to[0] = size, to[1] = by_a, to[2] = by_b;
  }
  fits = fits && left % t->g.rows == 0 && left / t->g.rows == t->g.columns;
  for (; fits && t->num_axes; t->num_axes--) { /* products by one matrix are one product of more rows */
    const nnd_size *axis = t->axes[t->num_axes - 1];
    if (t->g.rows == 1) t->g.a_row = axis[1];
    if (axis[2] || axis[1] < 1 || axis[1] != t->g.rows * t->g.a_row) break;
    t->g.rows *= axis[0], t->products /= axis[0];
  }
  if (!fits) return nnd_fail(m->message, "the matrices of a product do not fit their tensors");
  m->scratch_bytes = nnd_gemm_plan(&t->g, 0, nnd_l2(m), nnd_threads(m), t->products);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->a);
  nnd_give_tensor(m, own->b);
  m->instance->run = nnd_run_product;
  nnd_show_gemm(m, &t->g);
  return 1;
}

const struct nnd_op nnd_op_product = {"product", nnd_open_product, nnd_make_product};
