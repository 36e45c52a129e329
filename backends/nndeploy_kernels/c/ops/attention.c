/* SPDX-License-Identifier: Apache-2.0
 *
 * attention: rows of `q` by columns of `k`, a program over these scores, softmax along each row, and its products with
 * `v`. Scores of some rows at a time stay in the second cache, whatever the program reads beside them.
 *
 * Steps are as those of products (matrix.c). Keys and values may be float16, which are widened once for all blocks.
 */
#include <stdio.h>

#include "kernels/gemm.h"
#include "kernels/lanes.h"
#include "kernels/masked.h"
#include "model/words.h"
#include "ops/batches.h"
#include "ops/windows.h"

#define NND_MOST_OTHERS (NND_OPERANDS - 1)

NND_RECORD(attention_axis)
NND_RECORD(any_operand)

NND_RECORD(attention)

static int nnd_open_attention(struct nnd_opener *o) {
  struct nnd_attention *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_attention(o, own)) return 0;
  int is_plain = nnd_is_plain_floats(o, own->q) && nnd_is_plain_floats(o, own->out);
  const int kept[] = {own->k, own->v};
  for (int i = 0; i < 2; i++) {
    const struct nnd_tensor *one = &o->model->tensors[kept[i]];
    is_plain = is_plain && !one->is_blocked && (one->element == NND_FLOAT32 || one->element == NND_FLOAT16);
  }
  for (int i = 0; i < own->num_others; i++) is_plain = is_plain && !o->model->tensors[own->others[i].in].is_blocked;
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

/* Float16 that is widened to scratch, row by row of whole vectors; no rows where it is float32. */
struct nnd_attention_halves {
  nnd_size rows, columns, row, step, to_row, at; /* steps in elements; at: bytes of scratch */
};

/* Rows are cut in blocks whose scores stay in the second cache; those of a block are one or two less than `most`. Where
 * rows are many, keys and values are packed once for all blocks of a product, and softmax packs its weights. */
struct nnd_attention_fields {
  const struct nnd_program *program;
  int is_guarded, num_others, num_axes, packs;
  struct nnd_attention_other others[NND_MOST_OTHERS];
  nnd_size products, rows, keys, columns, blocks, most, row_floats; /* row_floats: of the scores, whole vectors */
  nnd_size q_offset, k_offset, v_offset, q_row, out_row;
  struct nnd_attention_axis axes[NND_MOST_BATCH_AXES]; /* sizes and steps */
  struct nnd_gemm scores[2], values[2];                /* of blocks of `most` rows, and of one less */
  nnd_size weights_at, by_at, k_at, v_at, products_at; /* bytes of scratch, which begins with the scores */
  struct nnd_attention_halves k_halves, v_halves;
};

/* The first row of a block: blocks share the rows evenly. */
static nnd_size nnd_attention_row(const struct nnd_attention_fields *t, nnd_size block) {
  return nnd_even(t->rows, t->blocks, block);
}

/* `count` floats of an operand that lie side by side. */
static void nnd_score_operand(int element, const char *from, nnd_size count, vf *to) {
  if (element != NND_FLOAT32) {
    nnd_floats_of(element, from, count, to);
    return;
  }
  const float *floats = (const float *)from;
  for (; count >= NND_LANES; count -= NND_LANES, floats += NND_LANES) *to++ = nnd_load_any(floats);
  if (count) *to = nnd_load_first(floats, count);
}

/* The program over `count` keys of `rows` rows of scores, which lie side by side; `others` are those of the first one. */
static void nnd_score_keys(const struct nnd_attention_fields *t, const char *const *others, nnd_size rows, nnd_size key,
                           nnd_size count, float *scores) {
  vf lanes[NND_OPERANDS][NND_AT_ONCE], results[NND_RESULTS * NND_AT_ONCE];
  struct nnd_source operands[NND_OPERANDS] = {{scores, 1}};
  const int vectors = (int)nnd_blocks(count);
  for (int i = 0; i < t->num_others; i++) {
    const struct nnd_attention_other *other = &t->others[i];
    const nnd_size bytes = nnd_element_bytes[other->element];
    const char *from = others[i] + key * other->key * bytes;
    const int is_there = other->element == NND_FLOAT32 && other->key && rows == 1 && count % NND_LANES == 0;
    operands[i + 1] = (struct nnd_source){is_there ? (const void *)from : lanes[i], other->key || other->row};
    for (nnd_size r = 0; !is_there && r < (operands[i + 1].step ? rows : 1); r++, from += other->row * bytes) {
      vf *to = lanes[i] + r * vectors;
      nnd_score_operand(other->element, from, other->key ? count : 1, to);
      for (int v = 0; !other->key && v < vectors; v++) to[v] = nnd_splat(to[0][0]);
    }
  }
  nnd_program_put(t->program, operands, (int)rows * vectors, results, scores);
}

/* The program over rows of scores: several short ones at once. `places` are those of the operands of the first row. */
static void nnd_score_rows(const struct nnd_attention_fields *t, void *const *at, const nnd_size *places, nnd_size rows,
                           float *scores) {
  const nnd_size most = NND_AT_ONCE * NND_LANES, together = nnd_max(1, most / t->row_floats);
  for (nnd_size r = 0; r < rows; r += together, scores += together * t->row_floats) {
    const char *others[NND_MOST_OTHERS];
    for (int i = 0; i < t->num_others; i++)
      others[i] =
          (const char *)at[4 + i] + (places[i] + r * t->others[i].row) * nnd_element_bytes[t->others[i].element];
    for (nnd_size key = 0; key < t->keys; key += most)
      nnd_score_keys(t, others, nnd_min(together, rows - r), key, nnd_min(most, t->keys - key), scores + key);
  }
}

#define NND_CHAINS 4
NND_JOINED(nnd_joined_most, nnd_at_least)

/* exp of a row less its largest; returns one over the sum. `row` is whole vectors, which may go to `to` = `row`; of
 * `to`, pieces of NND_GEMM_K are `apart`. Lanes behind the last key become zeros. */
static float nnd_exp_row(const float *row, nnd_size keys, float *to, nnd_size apart) {
  const nnd_size whole = keys / NND_LANES * NND_LANES;
  vi lane;
  NND_UNROLL
  for (int i = 0; i < NND_LANES; i++) lane[i] = i;
  const vf none = nnd_splat(-__builtin_inff());
  vf last = none, most[NND_CHAINS], sums[NND_CHAINS];
  if (whole < keys) last = nnd_select(lane < (int32_t)(keys - whole), nnd_load(row + whole), none);
  most[0] = last;
  NND_UNROLL
  for (int i = 1; i < NND_CHAINS; i++) most[i] = none;
  nnd_size k = 0;
  for (; k + NND_CHAINS * NND_LANES <= whole; k += NND_CHAINS * NND_LANES) NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) most[i] = nnd_at_least(most[i], nnd_load(row + k + i * NND_LANES));
  for (; k < whole; k += NND_LANES) most[0] = nnd_at_least(most[0], nnd_load(row + k));
  const vf all = nnd_joined_most(nnd_at_least(nnd_at_least(most[0], most[1]), nnd_at_least(most[2], most[3])));
  NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) sums[i] = nnd_splat(0.0f);
  for (k = 0; k + NND_CHAINS * NND_LANES <= whole; k += NND_CHAINS * NND_LANES) NND_UNROLL
  for (int i = 0; i < NND_CHAINS; i++) {
    const nnd_size at = k + i * NND_LANES;
    const vf value = nnd_exp_below(nnd_load(row + at) - all);
    nnd_store(to + at / NND_GEMM_K * apart + at % NND_GEMM_K, value);
    sums[i] += value;
  }
  for (; k < whole; k += NND_LANES) {
    const vf value = nnd_exp_below(nnd_load(row + k) - all);
    nnd_store(to + k / NND_GEMM_K * apart + k % NND_GEMM_K, value);
    sums[0] += value;
  }
  if (whole < keys) {
    const vf value = nnd_exp_below(last - all);
    nnd_store(to + whole / NND_GEMM_K * apart + whole % NND_GEMM_K, value);
    sums[1] += value;
  }
  return 1.0f / nnd_joined_sum((sums[0] + sums[1]) + (sums[2] + sums[3]))[0];
}

/* Softmax of rows of scores: weights where their product with the values reads them, and what to multiply it by. */
static void nnd_exp_rows(const struct nnd_attention_fields *t, const struct nnd_gemm *values, nnd_size rows,
                         const float *scores, float *weights, float *by) {
  const nnd_size padded = nnd_gemm_padded(t->keys);
  for (nnd_size tile = 0, r = 0; r < rows; tile++) {
    const nnd_size first = r, end = t->packs ? nnd_gemm_at(values, tile + 1) : rows;
    const nnd_size apart = t->packs ? (end - first) * NND_GEMM_K : NND_GEMM_K;
    for (; r < end; r++) {
      float *to = t->packs ? weights + first * padded + (r - first) * NND_GEMM_K : weights + r * t->row_floats;
      by[r] = nnd_exp_row(scores + r * t->row_floats, t->keys, to, apart);
    }
  }
}

/* Divides the products of a row by the sum of its weights. */
static void nnd_scale_row(float *row, nnd_size columns, float by, int is_guarded) {
  if (is_guarded && by != by) {
    memset(row, 0, (size_t)columns * sizeof *row);
    return;
  }
  nnd_size c = 0;
  for (; c + NND_LANES <= columns; c += NND_LANES) nnd_store_any(row + c, nnd_load_any(row + c) * by);
  if (c < columns) nnd_store_first(row + c, nnd_load_first(row + c, columns - c) * by, columns - c);
}

/* Returns keys or values from element `place` on as floats; halves, from scratch, where they lie in whole rows. */
static const float *nnd_attention_floats(const struct nnd_attention_halves *t, const void *from, nnd_size place,
                                         char *scratch, int is_new) {
  if (!t->rows) return (const float *)from + place;
  float *to = (float *)(scratch + t->at);
  for (nnd_size row = 0; is_new && row < t->rows; row++) {
    const uint16_t *halves = (const uint16_t *)from + place + row * t->row;
    vf *floats = (vf *)(to + row * t->to_row);
    if (t->step == 1) {
      nnd_floats_of(NND_FLOAT16, halves, t->columns, floats);
      continue;
    }
    uint16_t some[NND_LANES];
    for (nnd_size first = 0; first < t->columns; first += NND_LANES) {
      const nnd_size count = nnd_min(NND_LANES, t->columns - first);
      for (nnd_size i = 0; i < count; i++) some[i] = halves[(first + i) * t->step];
      nnd_floats_of(NND_FLOAT16, some, count, floats++);
    }
  }
  return to;
}

static void nnd_run_attention(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_attention_fields *t = fields;
  float *scores = (float *)part.scratch, *weights = (float *)(part.scratch + t->weights_at);
  float *by = (float *)(part.scratch + t->by_at), *packed_k = (float *)(part.scratch + t->k_at);
  float *packed_v = (float *)(part.scratch + t->v_at);
  char *scratch = part.scratch + t->products_at;
  nnd_size unit, last, packed = -1, widened = -1;
  nnd_share(t->products * t->blocks, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size block = unit % t->blocks, row = nnd_attention_row(t, block);
    const nnd_size rows = nnd_attention_row(t, block + 1) - row;
    const float *q = (const float *)at[1] + t->q_offset + row * t->q_row;
    nnd_size of_k = t->k_offset, of_v = t->v_offset;
    float *out = (float *)at[0] + row * t->out_row;
    nnd_size places[NND_MOST_OTHERS], rest = unit / t->blocks;
    for (int i = 0; i < t->num_others; i++) places[i] = row * t->others[i].row;
    for (int axis = t->num_axes - 1; axis >= 0; axis--) {
      const struct nnd_attention_axis *one = &t->axes[axis];
      const nnd_size place = rest % one->size;
      rest /= one->size;
      q += place * one->q, of_k += place * one->k, of_v += place * one->v, out += place * one->out;
      for (int i = 0; i < t->num_others; i++) places[i] += place * t->others[i].axes[axis];
    }
    const int less = rows < t->most, is_new = widened != unit / t->blocks;
    const float *k = nnd_attention_floats(&t->k_halves, at[2], of_k, part.scratch, is_new);
    const float *v = nnd_attention_floats(&t->v_halves, at[3], of_v, part.scratch, is_new);
    widened = unit / t->blocks;
    const struct nnd_gemm *first = &t->scores[less], *second = &t->values[less];
    if (t->packs && packed != unit / t->blocks) {
      nnd_gemm_pack(first->inner, t->keys, k, first->b_step, first->b_column, 0, first->inner, packed_k);
      nnd_gemm_pack(t->keys, t->columns, v, second->b_step, second->b_column, 0, t->keys, packed_v);
      packed = unit / t->blocks;
    }
    const struct nnd_gemm_data of_scores = {.a = q, .b = t->packs ? packed_k : k, .out = scores};
    nnd_gemm_run(first, &of_scores, 0, nnd_gemm_units(first), scratch);
    if (t->program) nnd_score_rows(t, at, places, rows, scores);
    nnd_exp_rows(t, second, rows, scores, weights, by);
    const struct nnd_gemm_data of_values = {.a = weights, .b = t->packs ? packed_v : v, .out = out};
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

/* Takes `floats` of scratch; returns where they begin. */
static nnd_size nnd_take_floats(nnd_size *bytes, nnd_size floats) {
  const nnd_size begin = *bytes;
  *bytes += nnd_ceil_div(floats * (nnd_size)sizeof(float), NND_ALIGNMENT) * NND_ALIGNMENT;
  return begin;
}

/* Says that (rows, columns) of an element lie in scratch once they are floats, where they are none; 0 where that is too
 * much. Their steps become those of the floats. */
static int nnd_widen_attention(struct nnd_maker *m, struct nnd_attention_halves *t, int element, nnd_size rows,
                               nnd_size columns, nnd_size *row, nnd_size *step) {
  if (element != NND_FLOAT16) return 1;
  const nnd_size to_row = nnd_blocks(columns) * NND_LANES;
  if (to_row > NND_MOST_BYTES / 8 / rows) return nnd_fail(m->message, "attention over too much float16");
  *t = (struct nnd_attention_halves){rows, columns, *row, *step, to_row, 0};
  *row = to_row, *step = 1;
  return 1;
}

/* Cuts rows in blocks, and says how the two products of a block are done. */
static nnd_size nnd_plan_attention(struct nnd_maker *m, struct nnd_attention_fields *t, struct nnd_gemm scores,
                                   struct nnd_gemm values) {
  t->row_floats = nnd_blocks(t->keys) * NND_LANES;
  t->packs = t->rows > NND_GEMM_ROWS && !nnd_gemm_is_narrow(t->keys) && !nnd_gemm_is_narrow(t->columns);
  const nnd_size fitting = nnd_machine_l2(m) / 4 / (nnd_size)sizeof(float) / t->row_floats;
  const nnd_size wished = nnd_max(1, fitting / NND_GEMM_ROWS) * NND_GEMM_ROWS;
  t->blocks = nnd_ceil_div(t->rows, wished);
  if (nnd_threads(m) > 1) /* as many units as let threads share them evenly */
    t->blocks = nnd_max(t->blocks,
                        nnd_min(nnd_ceil_div(t->rows, NND_GEMM_ROWS), nnd_ceil_div(4 * nnd_threads(m), t->products)));
  t->most = nnd_ceil_div(t->rows, t->blocks);
  const struct nnd_gemm_caches caches = {nnd_machine_l2(m), nnd_machine_l2(m)};
  nnd_size bytes = 0, of_products = 0;
  nnd_take_floats(&bytes, t->most * t->row_floats);
  t->weights_at = t->packs ? nnd_take_floats(&bytes, t->most * nnd_gemm_padded(t->keys)) : 0;
  t->by_at = nnd_take_floats(&bytes, t->most);
  t->k_at = t->packs ? nnd_take_floats(&bytes, nnd_gemm_packed_floats(scores.inner, t->keys)) : 0;
  t->v_at = t->packs ? nnd_take_floats(&bytes, nnd_gemm_packed_floats(t->keys, t->columns)) : 0;
  t->k_halves.at = nnd_take_floats(&bytes, t->k_halves.rows * t->k_halves.to_row);
  t->v_halves.at = nnd_take_floats(&bytes, t->v_halves.rows * t->v_halves.to_row);
  t->products_at = bytes;
  if (t->packs) scores.columns = t->row_floats, values.a_is_packed = 1; /* whole vectors of scores are stored */
  for (int less = 0; less < 2 && less < t->most; less++) {
    scores.rows = values.rows = t->most - less;
    scores.out_row = values.a_row = t->row_floats;
    values.out_row = t->out_row;
    t->scores[less] = scores, t->values[less] = values;
    of_products = nnd_max(of_products, nnd_gemm_plan(&t->scores[less], t->packs, caches, 1, 1));
    of_products = nnd_max(of_products, nnd_gemm_plan(&t->values[less], t->packs, caches, 1, 1));
  }
  return t->products_at + of_products;
}

static int nnd_make_attention(struct nnd_maker *m) {
  const struct nnd_attention *own = m->step->own;
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
    if (!nnd_attention_operand(m, nnd_shape_of(m, own->others[i].in), t, &t->others[i])) return 0;
  if (!nnd_widen_attention(m, &t->k_halves, nnd_shape_of(m, own->k)->element, t->keys, scores.inner, &scores.b_column,
                           &scores.b_step) ||
      !nnd_widen_attention(m, &t->v_halves, nnd_shape_of(m, own->v)->element, t->keys, t->columns, &values.b_step,
                           &values.b_column))
    return 0;
  nnd_join_heads(t, &scores);
  nnd_tell_operations(m, of_out, nnd_min(t->keys, NND_MOST_BYTES) * 4); /* of scores too, and of their softmax */
  m->scratch_bytes = nnd_plan_attention(m, t, scores, values);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->q), nnd_give_tensor(m, own->k), nnd_give_tensor(m, own->v);
  for (int i = 0; i < own->num_others; i++) nnd_give_tensor(m, own->others[i].in);
  m->instance->run = nnd_run_attention;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld of %lld x %lld keys, %lld blocks of %lld rows",
           (long long)t->products, (long long)t->rows, (long long)t->keys, (long long)t->blocks, (long long)t->most);
  return 1;
}

const struct nnd_op nnd_op_attention = {"attention", nnd_open_attention, nnd_make_attention};
