/* SPDX-License-Identifier: Apache-2.0
 *
 * attention: rows of `q` by columns of `k`, a program over these scores, softmax along each row, and its products with
 * `v`. Scores of some rows at a time stay in the second cache, whatever the program reads beside them.
 *
 *   q, k, v (tensors), program of the score (-1: none), whether a row that is NaN gives zeros,
 *   number of other operands of the program, each a tensor of any element, broadcast to (batch axes, rows, keys),
 *   rows, inner, keys, columns (rules), inner of k, keys of v (rules, which must be the same),
 *   of q: offset, step from row to row, step along inner; of k: offset, step along inner, step from key to key;
 *   of v: offset, step from key to key, step from column to column; of the output: step from row to row (rules),
 *   batch axes, each: size, steps of q, k, v and of the output (rules), output
 *
 * Steps are as those of products (matrix.c).
 */
#include <stdio.h>

#include "kernels/gemm.h"
#include "kernels/lanes.h"
#include "ops/batches.h"
#include "ops/windows.h"

#define NND_MOST_OTHERS (NND_OPERANDS - 1)

/* Numbers of rules. */
struct nnd_attention_axis {
  nnd_size size, q, k, v, out;
};

struct nnd_attention_own {
  int q, k, v, out, is_guarded, num_others, others[NND_MOST_OTHERS], num_axes;
  const struct nnd_program *program;
  nnd_size rows, inner, keys, columns, inner_of_k, keys_of_v, q_offset, q_row, q_step, k_offset, k_step, k_key,
      v_offset, v_key, v_column, out_row;
  struct nnd_attention_axis axes[NND_MOST_BATCH_AXES];
};

static int nnd_open_attention(struct nnd_opener *o) {
  struct nnd_attention_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->q = nnd_read_tensor(o), own->k = nnd_read_tensor(o), own->v = nnd_read_tensor(o);
  own->program = nnd_read_program(o);
  own->is_guarded = (int)nnd_word(o, 0, 1);
  own->num_others = (int)nnd_word(o, 0, NND_MOST_OTHERS);
  for (int i = 0; i < own->num_others; i++) own->others[i] = nnd_read_number_tensor(o);
  nnd_size *const rules[] = {&own->rows,       &own->inner,     &own->keys,     &own->columns,
                             &own->inner_of_k, &own->keys_of_v, &own->q_offset, &own->q_row,
                             &own->q_step,     &own->k_offset,  &own->k_step,   &own->k_key,
                             &own->v_offset,   &own->v_key,     &own->v_column, &own->out_row};
  for (int i = 0; i < 16; i++) *rules[i] = nnd_read_rule(o);
  own->num_axes = (int)nnd_word(o, 0, NND_MOST_BATCH_AXES);
  for (int axis = 0; axis < own->num_axes; axis++) {
    struct nnd_attention_axis *one = &own->axes[axis];
    one->size = nnd_read_rule(o), one->q = nnd_read_rule(o), one->k = nnd_read_rule(o);
    one->v = nnd_read_rule(o), one->out = nnd_read_rule(o);
  }
  own->out = nnd_write_tensor(o);
  if (o->message->failed) return 0;
  int is_plain = nnd_is_plain_floats(o, own->q) && nnd_is_plain_floats(o, own->k) && nnd_is_plain_floats(o, own->v) &&
                 nnd_is_plain_floats(o, own->out);
  for (int i = 0; i < own->num_others; i++) is_plain = is_plain && !o->model->tensors[own->others[i]].is_blocked;
  if (!is_plain) return nnd_fail(o->message, "attention over tensors that are not plain");
  if (own->program && own->program->num_operands > own->num_others + 1)
    return nnd_fail(o->message, "a program of scores that does not fit its operands");
  return 1;
}

/* An operand of the program: steps in elements along the batch axes, from row to row, from key to key (0 or 1). */
struct nnd_attention_other {
  int element;
  nnd_size axes[NND_MOST_BATCH_AXES], row, key;
};

/* Rows are cut in blocks whose scores stay in the second cache; those of a block are one or two less than `most`. */
struct nnd_attention_fields {
  const struct nnd_program *program;
  int is_guarded, num_others, num_axes;
  struct nnd_attention_other others[NND_MOST_OTHERS];
  nnd_size products, rows, keys, columns, blocks, most, row_floats; /* row_floats: of the scores, whole vectors */
  nnd_size q_offset, k_offset, v_offset, q_row, out_row;
  struct nnd_attention_axis axes[NND_MOST_BATCH_AXES]; /* sizes and steps */
  struct nnd_gemm scores[2], values[2];                /* of blocks of `most` rows, and of one less */
  nnd_size scores_bytes;
};

/* The first row of a block: blocks share the rows evenly. */
static nnd_size nnd_attention_row(const struct nnd_attention_fields *t, nnd_size block) {
  return t->rows / t->blocks * block + nnd_min(block, t->rows % t->blocks);
}

/* The program over one row of scores. */
static void nnd_score_row(const struct nnd_attention_fields *t, const char *const *others, float *row) {
  vf lanes[NND_OPERANDS][NND_AT_ONCE], results[NND_RESULTS * NND_AT_ONCE];
  struct nnd_source operands[NND_OPERANDS] = {{0}};
  for (int i = 0; i < t->num_others; i++)
    if (!t->others[i].key) {
      nnd_floats_of(t->others[i].element, others[i], 1, lanes[i]);
      lanes[i][0] = nnd_splat(lanes[i][0][0]);
      operands[i + 1] = (struct nnd_source){lanes[i], 0};
    }
  for (nnd_size key = 0; key < t->keys; key += NND_AT_ONCE * NND_LANES) {
    const nnd_size count = nnd_min(NND_AT_ONCE * NND_LANES, t->keys - key);
    const int vectors = (int)nnd_ceil_div(count, NND_LANES);
    operands[0] = (struct nnd_source){row + key, 1};
    for (int i = 0; i < t->num_others; i++) {
      if (!t->others[i].key) continue;
      const int element = t->others[i].element;
      const char *from = others[i] + key * nnd_element_bytes[element];
      const int is_there = element == NND_FLOAT32 && count % NND_LANES == 0;
      if (!is_there) nnd_floats_of(element, from, count, lanes[i]);
      operands[i + 1] = (struct nnd_source){is_there ? (const void *)from : lanes[i], 1};
    }
    const struct nnd_source outcome = nnd_program_run(t->program, operands, vectors, results);
    for (int v = 0; v < vectors; v++) nnd_store(row + key + v * NND_LANES, nnd_vector_of(outcome, v));
  }
}

#define NND_CHAINS 4
NND_JOINED(nnd_joined_most, nnd_at_least)

/* exp of a row less its largest, in place; returns one over the sum. Lanes behind the last key become zeros. */
static float nnd_exp_row(float *row, nnd_size keys, nnd_size floats) {
  for (nnd_size key = keys; key < floats; key++) row[key] = -__builtin_inff();
  vf most[NND_CHAINS], sums[NND_CHAINS];
  NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) most[i] = nnd_load(row), sums[i] = nnd_splat(0.0f);
  nnd_size k = 0;
  for (; k + NND_CHAINS * NND_LANES <= floats; k += NND_CHAINS * NND_LANES) NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) most[i] = nnd_at_least(most[i], nnd_load(row + k + i * NND_LANES));
  for (; k < floats; k += NND_LANES) most[0] = nnd_at_least(most[0], nnd_load(row + k));
  const vf all = nnd_joined_most(nnd_at_least(nnd_at_least(most[0], most[1]), nnd_at_least(most[2], most[3])));
  for (k = 0; k + NND_CHAINS * NND_LANES <= floats; k += NND_CHAINS * NND_LANES) NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) {
    const vf value = nnd_exp_below(nnd_load(row + k + i * NND_LANES) - all);
    nnd_store(row + k + i * NND_LANES, value);
    sums[i] += value;
  }
  for (; k < floats; k += NND_LANES) {
    const vf value = nnd_exp_below(nnd_load(row + k) - all);
    nnd_store(row + k, value);
    sums[0] += value;
  }
  return 1.0f / nnd_joined_sum((sums[0] + sums[1]) + (sums[2] + sums[3]))[0];
}

/* Divides the products of a row by the sum of its weights. */
static void nnd_scale_row(float *row, nnd_size columns, float by, int is_guarded) {
  if (is_guarded && by != by) {
    memset(row, 0, (size_t)columns * sizeof *row);
    return;
  }
  nnd_size c = 0;
  for (; c + NND_LANES <= columns; c += NND_LANES) nnd_store_any(row + c, nnd_load_any(row + c) * by);
  for (; c < columns; c++) row[c] *= by;
}

static void nnd_run_attention(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_attention_fields *t = fields;
  float *scores = (float *)part.scratch, *by = scores + t->most * t->row_floats;
  char *scratch = part.scratch + t->scores_bytes;
  nnd_size unit, last;
  nnd_share(t->products * t->blocks, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size block = unit % t->blocks, row = nnd_attention_row(t, block);
    const nnd_size rows = nnd_attention_row(t, block + 1) - row;
    const float *q = (const float *)at[1] + t->q_offset + row * t->q_row, *k = (const float *)at[2] + t->k_offset,
                *v = (const float *)at[3] + t->v_offset;
    float *out = (float *)at[0] + row * t->out_row;
    const char *others[NND_MOST_OTHERS];
    nnd_size places[NND_MOST_OTHERS], rest = unit / t->blocks;
    for (int i = 0; i < t->num_others; i++) places[i] = row * t->others[i].row;
    for (int axis = t->num_axes - 1; axis >= 0; axis--) {
      const struct nnd_attention_axis *one = &t->axes[axis];
      const nnd_size place = rest % one->size;
      rest /= one->size;
      q += place * one->q, k += place * one->k, v += place * one->v, out += place * one->out;
      for (int i = 0; i < t->num_others; i++) places[i] += place * t->others[i].axes[axis];
    }
    const int less = rows < t->most;
    const struct nnd_gemm *first = &t->scores[less], *second = &t->values[less];
    const struct nnd_gemm_data of_scores = {.a = q, .b = k, .out = scores};
    nnd_gemm_run(first, &of_scores, 0, nnd_gemm_units(first), scratch);
    for (nnd_size r = 0; r < rows; r++) {
      float *one = scores + r * t->row_floats;
      for (int i = 0; i < t->num_others; i++)
        others[i] =
            (const char *)at[4 + i] + (places[i] + r * t->others[i].row) * nnd_element_bytes[t->others[i].element];
      if (t->program) nnd_score_row(t, others, one);
      by[r] = nnd_exp_row(one, t->keys, t->row_floats);
    }
    const struct nnd_gemm_data of_values = {.a = scores, .b = v, .out = out};
    nnd_gemm_run(second, &of_values, 0, nnd_gemm_units(second), scratch);
    for (nnd_size r = 0; r < rows; r++) nnd_scale_row(out + r * t->out_row, t->columns, by[r], t->is_guarded);
  }
}

/* How an operand of the program is broadcast to (batch axes, rows, keys); 0 where it cannot be. */
static int nnd_attention_operand(struct nnd_maker *m, const struct nnd_shape *shape, struct nnd_attention_fields *t,
                                 struct nnd_attention_other *other) {
  other->element = shape->element;
  nnd_size step = 1;
  if (shape->rank > t->num_axes + 2) return nnd_fail(m->message, "an operand has more axes than scores");
  for (int back = 0; back < shape->rank; back++) { /* from the last axis */
    const nnd_size own = shape->sizes[shape->rank - 1 - back];
    const int axis = t->num_axes + 1 - back;
    const nnd_size size = axis == t->num_axes + 1 ? t->keys : axis == t->num_axes ? t->rows : t->axes[axis].size;
    if (own != 1 && own != size) return nnd_fail(m->message, "an operand cannot be broadcast to scores");
    const nnd_size by = own == 1 ? 0 : step;
    if (axis == t->num_axes + 1)
      other->key = by;
    else if (axis == t->num_axes)
      other->row = by;
    else
      other->axes[axis] = by;
    step *= own;
  }
  return 1;
}

/* One row for each of some heads that share keys: the heads are the rows of one product. */
static void nnd_join_heads(struct nnd_attention_fields *t, struct nnd_gemm *scores) {
  if (t->rows != 1 || !t->num_axes) return;
  const struct nnd_attention_axis *axis = &t->axes[t->num_axes - 1];
  if (axis->k || axis->v || axis->q < 1) return;
  t->rows = axis->size, t->q_row = axis->q, t->out_row = axis->out;
  scores->a_row = axis->q;
  for (int i = 0; i < t->num_others; i++) t->others[i].row = t->others[i].axes[t->num_axes - 1];
  t->products /= axis->size, t->num_axes--;
}

/* Cuts rows in blocks, and says how the two products of a block are done. */
static nnd_size nnd_plan_attention(struct nnd_maker *m, struct nnd_attention_fields *t, struct nnd_gemm scores,
                                   struct nnd_gemm values) {
  t->row_floats = nnd_blocks(t->keys) * NND_LANES;
  const nnd_size fitting = nnd_l2(m) / 4 / (nnd_size)sizeof(float) / t->row_floats;
  const nnd_size wished = nnd_max(1, fitting / NND_GEMM_ROWS) * NND_GEMM_ROWS;
  t->blocks = nnd_ceil_div(t->rows, wished);
  if (nnd_threads(m) > 1) /* as many units as let threads share them evenly */
    t->blocks = nnd_max(t->blocks,
                        nnd_min(nnd_ceil_div(t->rows, NND_GEMM_ROWS), nnd_ceil_div(4 * nnd_threads(m), t->products)));
  t->most = nnd_ceil_div(t->rows, t->blocks);
  t->scores_bytes =
      nnd_ceil_div((t->most * (t->row_floats + 1)) * (nnd_size)sizeof(float), NND_ALIGNMENT) * NND_ALIGNMENT;
  nnd_size bytes = 0;
  for (int less = 0; less < 2 && less < t->most; less++) {
    scores.rows = values.rows = t->most - less;
    scores.out_row = values.a_row = t->row_floats;
    values.out_row = t->out_row;
    t->scores[less] = scores, t->values[less] = values;
    bytes = nnd_max(bytes, nnd_gemm_plan(&t->scores[less], 0, nnd_l2(m), 1, 1));
    bytes = nnd_max(bytes, nnd_gemm_plan(&t->values[less], 0, nnd_l2(m), 1, 1));
  }
  return t->scores_bytes + bytes;
}

static int nnd_make_attention(struct nnd_maker *m) {
  const struct nnd_attention_own *own = m->step->own;
  struct nnd_attention_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const nnd_size of_out = nnd_shape_of(m, own->out)->count, of_q = nnd_shape_of(m, own->q)->count,
                 of_k = nnd_shape_of(m, own->k)->count, of_v = nnd_shape_of(m, own->v)->count;
  struct nnd_gemm scores = {.inner = nnd_size_of(m, own->inner),
                            .columns = nnd_size_of(m, own->keys),
                            .a_row = nnd_size_of(m, own->q_row),
                            .a_step = nnd_size_of(m, own->q_step),
                            .b_step = nnd_size_of(m, own->k_step),
                            .b_column = nnd_size_of(m, own->k_key)};
  struct nnd_gemm values = {.inner = scores.columns,
                            .columns = nnd_size_of(m, own->columns),
                            .a_step = 1,
                            .b_step = nnd_size_of(m, own->v_key),
                            .b_column = nnd_size_of(m, own->v_column)};
  *t = (struct nnd_attention_fields){.program = own->program,
                                     .is_guarded = own->is_guarded,
                                     .num_others = own->num_others,
                                     .products = 1,
                                     .rows = nnd_size_of(m, own->rows),
                                     .keys = scores.columns,
                                     .columns = values.columns,
                                     .q_offset = nnd_size_of(m, own->q_offset),
                                     .k_offset = nnd_size_of(m, own->k_offset),
                                     .v_offset = nnd_size_of(m, own->v_offset),
                                     .q_row = scores.a_row,
                                     .out_row = nnd_size_of(m, own->out_row)};
  if (scores.inner != nnd_size_of(m, own->inner_of_k) || t->keys != nnd_size_of(m, own->keys_of_v))
    return nnd_fail(m->message, "the operands of attention do not fit together");
  nnd_size q = t->q_offset, k = t->k_offset, v = t->v_offset;
  int fits = q >= 0 && k >= 0 && v >= 0 && t->keys >= 1 && t->columns >= 1 && t->columns <= of_out &&
             nnd_reach(&q, t->rows, scores.a_row, 1, of_q) && nnd_reach(&q, scores.inner, scores.a_step, 1, of_q) &&
             nnd_reach(&k, scores.inner, scores.b_step, 1, of_k) && nnd_reach(&k, t->keys, scores.b_column, 1, of_k) &&
             nnd_reach(&v, t->keys, values.b_step, 1, of_v) && nnd_reach(&v, t->columns, values.b_column, 1, of_v);
  struct nnd_written_axis written[NND_MOST_BATCH_AXES + 1] = {{t->rows, t->out_row}};
  for (int axis = 0; fits && axis < own->num_axes; axis++) {
    const struct nnd_attention_axis *rule = &own->axes[axis];
    const struct nnd_attention_axis one = {nnd_size_of(m, rule->size), nnd_size_of(m, rule->q), nnd_size_of(m, rule->k),
                                           nnd_size_of(m, rule->v), nnd_size_of(m, rule->out)};
    fits = nnd_reach(&q, one.size, one.q, 0, of_q) && nnd_reach(&k, one.size, one.k, 0, of_k) &&
           nnd_reach(&v, one.size, one.v, 0, of_v) && one.size <= of_out / t->products;
    if (!fits) break;
    t->products *= one.size;
    written[axis + 1] = (struct nnd_written_axis){one.size, one.out};
    t->axes[t->num_axes++] = one;
  }
  if (!fits || !nnd_fills(written, own->num_axes + 1, t->columns, of_out))
    return nnd_fail(m->message, "the matrices of attention do not fit their tensors");
  for (int i = 0; i < own->num_others; i++)
    if (!nnd_attention_operand(m, nnd_shape_of(m, own->others[i]), t, &t->others[i])) return 0;
  nnd_join_heads(t, &scores);
  nnd_tell_operations(m, of_out, nnd_min(t->keys, NND_MOST_BYTES) * 4); /* of scores too, and of their softmax */
  m->scratch_bytes = nnd_plan_attention(m, t, scores, values);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->q), nnd_give_tensor(m, own->k), nnd_give_tensor(m, own->v);
  for (int i = 0; i < own->num_others; i++) nnd_give_tensor(m, own->others[i]);
  m->instance->run = nnd_run_attention;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld of %lld x %lld keys, %lld blocks of %lld rows",
           (long long)t->products, (long long)t->rows, (long long)t->keys, (long long)t->blocks, (long long)t->most);
  return 1;
}

const struct nnd_op nnd_op_attention = {"attention", nnd_open_attention, nnd_make_attention};
