/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of plain matrices, by constant weights that are packed when the step is opened, or of two values.
 *
 * Steps are counted in elements and are at least 0; only batch axes of a and b may have 0, which broadcasts. Axes of
 * the output fill it, in any order, columns side by side.
 */
#include <stdio.h>

#include "kernels/gemm.h"
#include "kernels/gemm_tiles.h"
#include "ops/batches.h"
#include "ops/bits.h"
#include "ops/conv_record.h"
#include "ops/windows.h"

NND_RECORD(product_sizes)
NND_RECORD(product_b)
NND_RECORD(product_axis)
NND_RECORD(product_out)
NND_RECORD(product)
NND_RECORD(fully_connected)
NND_RECORD(bits_connected)

/* `b` -1: `matrices` of `inputs` x `outputs` are packed, `each` floats, or one of `bits`. */
struct nnd_product_own {
  int a, b, residual; /* tensors */
  struct nnd_product_sizes sizes;
  struct nnd_product_b of_b;
  struct nnd_product_out of_out;
  nnd_size matrices, inputs, outputs, each;
  int has_tiles; /* they are packed for tiles of AMX */
  const struct nnd_bits *bits;
  const float *packed, *bias, *numbers;
  nnd_size num_bias, num_numbers;
  struct nnd_end end;
};

#define NND_ROWS_A_PART 64

struct nnd_matrices {
  const float *from;
  float *to;
  nnd_size inputs, outputs, step, column, each, parts; /* parts of a matrix; each floats when packed */
  int has_tiles;
};

static void nnd_pack_matrices(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_matrices *t = fields;
  for (nnd_size i = first; i < last; i++) {
    const float *from = t->from + i / t->parts * t->inputs * t->outputs;
    float *to = t->to + i / t->parts * t->each;
    const nnd_size row = i % t->parts * NND_ROWS_A_PART;
    if (NND_HAS_TILES && t->has_tiles)
      nnd_gemm_pack_tiled(t->inputs, t->outputs, from, t->step, t->column, row,
                          nnd_min(row + NND_ROWS_A_PART, t->inputs), to);
    else if (!nnd_gemm_is_narrow(t->outputs))
      nnd_gemm_pack(t->inputs, t->outputs, from, t->step, t->column, row, nnd_min(row + NND_ROWS_A_PART, t->inputs),
                    to);
    else
      for (nnd_size c = 0; c < t->outputs; c++)
        for (nnd_size k = row; k < nnd_min(row + NND_ROWS_A_PART, t->inputs); k++)
          to[c * t->inputs + k] = from[k * t->step + c * t->column];
  }
}

static int nnd_pack_weights(struct nnd_opener *o, struct nnd_product_own *own, const struct nnd_weight_data *weights,
                            int is_transposed) {
  if (!weights || weights->rank < 2) return nnd_fail(o->message, "a fully connected layer without a matrix");
  const nnd_size *sizes = weights->sizes + weights->rank - 2;
  const nnd_size inputs = sizes[is_transposed], outputs = sizes[1 - is_transposed];
  own->matrices = weights->count / (inputs * outputs), own->inputs = inputs, own->outputs = outputs;
  own->has_tiles = nnd_gemm_has_tiles(inputs, outputs);
  own->each = own->has_tiles                ? nnd_gemm_tiled_floats(inputs, outputs)
              : nnd_gemm_is_narrow(outputs) ? inputs * outputs
                                            : nnd_gemm_packed_floats(inputs, outputs);
  struct nnd_matrices t = {.from = weights->data,
                           .inputs = inputs,
                           .outputs = outputs,
                           .each = own->each,
                           .step = is_transposed ? 1 : outputs,
                           .column = is_transposed ? inputs : 1,
                           .parts = nnd_ceil_div(inputs, NND_ROWS_A_PART),
                           .has_tiles = own->has_tiles};
  own->packed = t.to = nnd_packed_of(o, weights, own->matrices * own->each * (nnd_size)sizeof *t.to);
  const int in_order = !is_transposed && (own->matrices == 1 || inputs % NND_ROWS_A_PART == 0);
  const nnd_size of_part = in_order ? NND_ROWS_A_PART * outputs * (nnd_size)sizeof(float) : 0;
  if (t.to) nnd_pack(o, weights, nnd_pack_matrices, &t, sizeof t, own->matrices * t.parts, of_part);
  return t.to != NULL;
}

/* What all products say. */
static int nnd_open_matrices(struct nnd_opener *o, struct nnd_product_own *own, const struct nnd_weight_data *bias,
                             const struct nnd_epilogue *epilogue) {
  const struct nnd_weight_data *numbers = epilogue->channel;
  o->step->takes_empty = 1;
  own->residual = epilogue->residual;
  if (!nnd_is_plain_floats(o, own->a) || !nnd_is_plain_floats(o, own->of_out.out) ||
      (own->b >= 0 && !nnd_is_plain_floats(o, own->b)) ||
      (own->residual >= 0 && !nnd_is_plain_floats(o, own->residual)))
    return nnd_fail(o->message, "a product of tensors that are not plain float32");
  own->end = nnd_end_of_words(o, epilogue);
  own->num_bias = bias ? bias->count : 0, own->num_numbers = numbers ? numbers->count : 0;
  own->bias = bias ? nnd_pack_channels(o, bias, bias->count) : NULL;
  own->numbers = numbers ? nnd_pack_channels(o, numbers, numbers->count) : NULL;
  return !o->message->failed;
}

static int nnd_open_connected(struct nnd_opener *o) {
  struct nnd_product_own *own = nnd_own(o, sizeof *own);
  struct nnd_fully_connected words;
  if (!own || !nnd_read_fully_connected(o, &words)) return 0;
  own->a = words.a, own->b = -1, own->sizes = words.sizes, own->of_out = words.of_out;
  return nnd_open_matrices(o, own, words.bias, &words.epilogue) &&
         nnd_pack_weights(o, own, words.weights, words.is_transposed);
}

static int nnd_open_bits_connected(struct nnd_opener *o) {
  struct nnd_product_own *own = nnd_own(o, sizeof *own);
  struct nnd_bits_connected words;
  if (!own || !nnd_read_bits_connected(o, &words)) return 0;
  own->a = words.a, own->b = -1, own->sizes = words.sizes, own->of_out = words.of_out;
  own->matrices = 1, own->inputs = words.bits.inner, own->outputs = words.bits.columns;
  own->bits = nnd_open_bits(o, &words.bits);
  return own->bits && nnd_open_matrices(o, own, words.bias, &words.epilogue);
}

static int nnd_open_product(struct nnd_opener *o) {
  struct nnd_product_own *own = nnd_own(o, sizeof *own);
  struct nnd_product words;
  if (!own || !nnd_read_product(o, &words)) return 0;
  own->a = words.a, own->b = words.b, own->sizes = words.sizes, own->of_b = words.of_b, own->of_out = words.of_out;
  return nnd_open_matrices(o, own, words.bias, &words.epilogue);
}

struct nnd_product_fields {
  struct nnd_gemm g;
  nnd_size products, a_offset, b_offset;
  int num_axes;
  struct nnd_product_axis axes[NND_MOST_BATCH_AXES];
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
                              .bias = at[3],
                              .numbers = at[4],
                              .residual = at[5],
                              .out = at[0],
                              .held = part.held,
                              .first_group = number * t->g.groups};
    nnd_size rest = number;
    for (int axis = t->num_axes - 1; axis >= 0; axis--) {
      const struct nnd_product_axis *one = &t->axes[axis];
      const nnd_size place = rest % one->size;
      rest /= one->size;
      d.a += place * one->a;
      d.b += place * one->b;
      d.out += place * one->out;
      if (d.residual) d.residual += place * one->out;
    }
    nnd_gemm_run(&t->g, &d, first, end, part.scratch);
    unit += end - first;
  }
}

/* Whether the axes of the output reach each of its `count` elements once. */
static int nnd_product_fills(const struct nnd_product_fields *t, nnd_size count) {
  struct nnd_written_axis axes[NND_MOST_BATCH_AXES + 1] = {{t->g.rows, t->g.out_row}};
  for (int axis = 0; axis < t->num_axes; axis++)
    axes[axis + 1] = (struct nnd_written_axis){t->axes[axis].size, t->axes[axis].out};
  return nnd_fills(axes, t->num_axes + 1, t->g.columns, count);
}

/* The batch axes; 0 where an operand, of `a` and `b` elements, has no such ones. */
static int nnd_make_axes(struct nnd_maker *m, struct nnd_product_fields *t, nnd_size last_of_a, nnd_size last_of_b,
                         nnd_size a, nnd_size b, int is_empty) {
  const struct nnd_product_own *own = m->step->own;
  const nnd_size out = nnd_shape_of(m, own->of_out.out)->count, matrix = own->inputs * own->outputs;
  t->products = 1;
  for (int axis = 0; axis < own->of_out.num_axes; axis++) {
    struct nnd_product_axis one = {nnd_size_of(m, own->of_out.axes[axis].size),
                                   nnd_size_of(m, own->of_out.axes[axis].a), nnd_size_of(m, own->of_out.axes[axis].b),
                                   nnd_size_of(m, own->of_out.axes[axis].out)};
    if (is_empty) one.a = one.b = 0;
    if (!nnd_reach(&last_of_a, one.size, one.a, 0, a) || !nnd_reach(&last_of_b, one.size, one.b, 0, b) ||
        one.size > out / t->products)
      return 0;
    if (one.size == 1) continue;
    if (own->b < 0) {
      if (one.b % matrix) return 0;
      one.b = one.b / matrix * own->each;
    }
    t->products *= one.size;
    t->axes[t->num_axes++] = one;
  }
  return 1;
}

/* Products by one matrix that lie one after the other are one product of more rows. */
static void nnd_join_rows(struct nnd_product_fields *t) {
  for (; t->num_axes; t->num_axes--) {
    const struct nnd_product_axis *axis = &t->axes[t->num_axes - 1];
    if (t->g.rows == 1) t->g.a_row = axis->a, t->g.out_row = axis->out;
    if (axis->b || axis->a < 1 || axis->a != t->g.rows * t->g.a_row || axis->out != t->g.rows * t->g.out_row) break;
    t->g.rows *= axis->size, t->products /= axis->size;
  }
}

static void nnd_show_gemm(struct nnd_maker *m, const struct nnd_product_fields *t) {
  static const char *const kinds[] = {"packed",   "in place",         "packed here",   "by dots",
                                      "streamed", "few rows by bits", "unpacked bits", "by amx"};
  const struct nnd_gemm *g = &t->g;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld of %lld x %lld x %lld, %s, %lld groups, %lld parts%s",
           (long long)t->products, (long long)g->rows, (long long)g->inner, (long long)g->columns, kinds[g->b_kind],
           (long long)g->groups, (long long)g->parts, nnd_shown_tiles(g->by_thirds));
}

#define NND_READ_ROWS 5 /* of fewer the matrix is not multiplied faster than it is read */

static int nnd_make_product(struct nnd_maker *m) {
  const struct nnd_product_own *own = m->step->own;
  struct nnd_product_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const int is_packed = own->b < 0;
  const nnd_size inner = nnd_size_of(m, own->sizes.inner), columns = nnd_size_of(m, own->sizes.columns);
  const nnd_size out = nnd_shape_of(m, own->of_out.out)->count;
  nnd_size a = nnd_shape_of(m, own->a)->count;
  nnd_size b = is_packed ? own->matrices * own->inputs * own->outputs : nnd_shape_of(m, own->b)->count;
  t->g = (struct nnd_gemm){.rows = nnd_size_of(m, own->sizes.rows),
                           .inner = inner,
                           .columns = columns,
                           .bits = own->bits,
                           .has_tiles = own->has_tiles,
                           .a_row = nnd_size_of(m, own->sizes.a_row),
                           .a_step = nnd_size_of(m, own->sizes.a_step),
                           .b_step = is_packed ? 1 : nnd_size_of(m, own->of_b.step),
                           .b_column = is_packed ? own->inputs : nnd_size_of(m, own->of_b.column),
                           .out_row = nnd_size_of(m, own->of_out.row),
                           .end = own->end};
  t->a_offset = nnd_size_of(m, own->sizes.a_offset), t->b_offset = is_packed ? 0 : nnd_size_of(m, own->of_b.offset);
  if (inner != nnd_size_of(m, own->sizes.inner_of_b) || (own->bias && own->num_bias != columns) ||
      (own->numbers && own->num_numbers != columns) ||
      (own->residual >= 0 && nnd_shape_of(m, own->residual)->count != out))
    return nnd_fail(m->message, "the operands of a product do not fit together");
  const int is_empty = inner == 0 && !is_packed; /* sums of nothing are products of one zero, in every place */
  if (is_empty) {
    a = b = t->g.inner = t->g.a_step = t->g.b_step = 1;
    t->g.a_row = t->g.b_column = t->a_offset = t->b_offset = 0;
  }
  nnd_size of_a = t->a_offset, of_b = t->b_offset;
  int fits = of_a >= 0 && of_b >= 0 && columns >= 1 && columns <= out &&
             nnd_reach(&of_a, t->g.rows, t->g.a_row, !is_empty, a) && nnd_reach(&of_a, t->g.inner, t->g.a_step, 1, a);
  if (is_packed)
    fits = fits && inner == own->inputs && columns == own->outputs;
  else
    fits = fits && nnd_reach(&of_b, t->g.inner, t->g.b_step, 1, b) &&
           nnd_reach(&of_b, columns, t->g.b_column, !is_empty, b);
  if (!fits || !nnd_make_axes(m, t, of_a, of_b, a, b, is_empty) || !nnd_product_fills(t, out))
    return nnd_fail(m->message, "the matrices of a product do not fit their tensors");
  nnd_join_rows(t);
  nnd_tell_operations(m, nnd_max(out, NND_READ_ROWS * columns), t->g.inner);
  m->scratch_bytes = nnd_gemm_plan(&t->g, is_packed, (struct nnd_gemm_caches){nnd_machine_l2(m), nnd_l2(m)},
                                   nnd_threads(m), t->products);
  nnd_give_tensor(m, own->of_out.out);
  static const float zero = 0.0f;
  if (is_empty)
    nnd_give(m, &zero);
  else
    nnd_give_tensor(m, own->a);
  if (is_packed || is_empty)
    nnd_give(m, is_empty ? &zero : own->packed);
  else
    nnd_give_tensor(m, own->b);
  nnd_give(m, own->bias);
  nnd_give(m, own->numbers);
  nnd_give_tensor(m, own->residual);
  if (t->g.groups > 1) m->instance->chunks = 8; /* what is packed is kept from one to the next */
  m->instance->run = nnd_run_product;
  nnd_show_gemm(m, t);
  return 1;
}

const struct nnd_op nnd_op_fully_connected = {"fully_connected", nnd_open_connected, nnd_make_product};
const struct nnd_op nnd_op_bits_connected = {"bits_connected", nnd_open_bits_connected, nnd_make_product};
const struct nnd_op nnd_op_product = {"product", nnd_open_product, nnd_make_product};
