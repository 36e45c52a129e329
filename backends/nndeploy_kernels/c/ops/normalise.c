/* SPDX-License-Identifier: Apache-2.0
 *
 * normalise: rows or columns, along the middle of three axes of plain tensors, divided by what they come to.
 *
 *   standard   (x - mean) / sqrt(variance + epsilon)
 *   rms        x / sqrt(mean of squares + epsilon)
 *   l2, l1     x / sqrt(sum of squares), x / sum of sizes: zeros stay zeros
 *
 * Then it is multiplied by a number of `scale` and one of `bias` is added: the axis is in `parts`, each of which has
 * its own, and so has each of `groups` rows, which repeat.
 */
#include "kernels/reduce.h"

#include "ops/along_axis.h"

#define NND_PIECE ((nnd_size)2048) /* floats of a row whose mean and variance are found while they are in L1 */

NND_SET(norm);

NND_RECORD(normalise)

/* `run` elements of the axis have one number. */
struct nnd_normalise_fields {
  struct nnd_along along;
  int kind;
  float epsilon;
  nnd_size groups, parts, run;
};

static int nnd_open_normalise(struct nnd_opener *o) {
  struct nnd_normalise *own = nnd_own(o, sizeof *own);
  return own && nnd_read_normalise(o, own) && nnd_check_along(o, &own->along, NND_FLOAT32);
}

/* Mean, and sum of squared differences from it, of two sets as of one: Chan, Golub, LeVeque (1979). */
struct nnd_moments {
  double count, mean, squares;
};

static struct nnd_moments nnd_moments_of_both(struct nnd_moments a, struct nnd_moments b) {
  const double count = a.count + b.count, apart = b.mean - a.mean;
  return (struct nnd_moments){count, a.mean + apart * (b.count / count),
                              a.squares + b.squares + apart * apart * (a.count * b.count / count)};
}

/* Means are differences from the first value, so that a mean far from zero costs no digits. */
NND_INLINE struct nnd_moments nnd_moments_of_row(const float *in, nnd_size size) {
  const vf first = nnd_splat(*in);
  struct nnd_moments all = {0};
  for (nnd_size at = 0, count; at < size; at += count) {
    count = size - at < 2 * NND_PIECE ? size - at : NND_PIECE;
    const float mean = nnd_reduced_row(nnd_sum_apart, in + at, count, first)[0] / (float)count;
    const vf squares = nnd_reduced_row(nnd_sum_of_squares, in + at, count, first + mean);
    const struct nnd_moments some = {(double)count, mean, squares[0]};
    all = at ? nnd_moments_of_both(all, some) : some;
  }
  return all;
}

/* What values are multiplied by once their mean, if it counts, is off. */
NND_INLINE vf nnd_factor(const struct nnd_normalise_fields *t, vf total) {
  const vf one = nnd_splat(1.0f);
  if (t->kind == NND_L1) return nnd_select(total == 0.0f, total, one / total);
  if (t->kind == NND_L2) return nnd_select(total == 0.0f, total, one / nnd_op_sqrt(total));
  return one / nnd_op_sqrt(total / (float)t->along.size + t->epsilon);
}

/* The same of a row: a division of one number costs a fifth of that of a vector. */
NND_INLINE float nnd_factor_of_row(const struct nnd_normalise_fields *t, float total) {
  if (t->kind == NND_L1 || t->kind == NND_L2)
    return total == 0.0f ? total : 1.0f / (t->kind == NND_L1 ? total : __builtin_elementwise_sqrt(total));
  return 1.0f / __builtin_elementwise_sqrt(total / (float)t->along.size + t->epsilon);
}

/* A row: its first value, or zero where the mean does not count, is taken off; then it is * factor + shift. */
struct nnd_line {
  vf first, factor, shift;
};

NND_INLINE vf nnd_on_line(struct nnd_line line, vf x) { return (x - line.first) * line.factor + line.shift; }

/* `count` floats. */
NND_INLINE void nnd_normalise_run(const float *in, float *out, nnd_size count, struct nnd_line line) {
  nnd_size k = 0;
  for (; k + NND_LANES <= count; k += NND_LANES) nnd_store_any(out + k, nnd_on_line(line, nnd_load_any(in + k)));
  if (k == count) return;
  if (count >= NND_LANES) { /* the last vector begins within the one before */
    k = count - NND_LANES;
    nnd_store_any(out + k, nnd_on_line(line, nnd_load_any(in + k)));
  } else
    for (; k < count; k++) out[k] = (in[k] - line.first[0]) * line.factor[0] + line.shift[0];
}

/* A vector whose elements have numbers of their own. */
NND_INLINE void nnd_normalise_some(const float *in, float *out, struct nnd_line line, const float *scale,
                                   const float *bias) {
  const vf x = nnd_on_line(line, nnd_load_any(in)) * nnd_load_any(scale);
  nnd_store_any(out, bias ? x + nnd_load_any(bias) : x);
}

/* The last pass over a row: `mean` is a difference from `first`, both zero where the mean does not count. */
NND_INLINE void nnd_normalise_by(const struct nnd_normalise_fields *t, nnd_size row, void *const *at, float first,
                                 float mean, float total) {
  const nnd_size size = t->along.size, numbers = row % t->groups * t->parts;
  const float *in = (const float *)at[1] + row * size, *scale = at[2], *bias = at[3];
  float *out = (float *)at[0] + row * size;
  struct nnd_line line = {nnd_splat(first), nnd_splat(nnd_factor_of_row(t, total)), nnd_splat(-mean)};
  line.shift *= line.factor;
  if (t->run == 1 && scale) {
    const nnd_size end = size - NND_LANES;
    scale += numbers, bias = bias ? bias + numbers : bias;
    for (nnd_size k = 0; k <= end; k += NND_LANES)
      nnd_normalise_some(in + k, out + k, line, scale + k, bias ? bias + k : bias);
    if (size % NND_LANES) nnd_normalise_some(in + end, out + end, line, scale + end, bias ? bias + end : bias);
  } else
    for (nnd_size part = 0; part < t->parts; part++) {
      const float by = scale ? scale[numbers + part] : 1.0f, more = bias ? bias[numbers + part] : 0.0f;
      nnd_normalise_run(in + part * t->run, out + part * t->run, t->run,
                        (struct nnd_line){line.first, line.factor * by, line.shift * by + more});
    }
}

NND_INLINE void nnd_normalise_row(const void *fields, nnd_size row, void *const *at) {
  const struct nnd_normalise_fields *t = fields;
  const nnd_size size = t->along.size;
  const float *in = (const float *)at[1] + row * size;
  if (t->kind == NND_STANDARD) {
    const struct nnd_moments found = nnd_moments_of_row(in, size);
    nnd_normalise_by(t, row, at, *in, (float)found.mean, (float)found.squares);
    return;
  }
  const vf nothing = nnd_splat(0.0f);
  const vf total = t->kind == NND_L1 ? nnd_reduced_row(nnd_sum_of_sizes, in, size, nothing)
                                     : nnd_reduced_row(nnd_sum_of_squares, in, size, nothing);
  nnd_normalise_by(t, row, at, 0.0f, 0.0f, total[0]);
}

/* NND_CHAINS short rows, step by step: what one waits for is done for the others meanwhile. */
NND_INLINE void nnd_normalise_rows(const struct nnd_normalise_fields *t, nnd_size row, void *const *at) {
  const nnd_size size = t->along.size;
  const float *in = (const float *)at[1] + row * size;
  float first[NND_CHAINS], mean[NND_CHAINS], squares[NND_CHAINS];
  for (int i = 0; i < NND_CHAINS; i++) {
    first[i] = in[i * size];
    mean[i] = nnd_reduced_row(nnd_sum_apart, in + i * size, size, nnd_splat(first[i]))[0] / (float)size;
  }
  for (int i = 0; i < NND_CHAINS; i++)
    squares[i] = nnd_reduced_row(nnd_sum_of_squares, in + i * size, size, nnd_splat(first[i]) + mean[i])[0];
  for (int i = 0; i < NND_CHAINS; i++) nnd_normalise_by(t, row + i, at, first[i], mean[i], squares[i]);
}

/* The numbers of element k of columns; `other` where there are none. */
NND_INLINE vf nnd_numbers_of_columns(const struct nnd_normalise_fields *t, struct nnd_columns c, const float *numbers,
                                     nnd_size k, float other) {
  if (!numbers) return nnd_splat(other);
  numbers += k / t->run;
  if (!c.places) return nnd_splat(numbers[c.number / t->along.inner % t->groups * t->parts]);
  vf result = nnd_splat(other);
  for (nnd_size lane = 0; lane < c.places->count; lane++)
    result[lane] = numbers[(c.number + lane) / t->along.inner % t->groups * t->parts];
  return result;
}

NND_INLINE void nnd_normalise_columns(const void *fields, int vectors, struct nnd_columns c, void *const *at) {
  const struct nnd_normalise_fields *t = fields;
  struct nnd_line lines[vectors];
  vf mean[vectors], total[vectors];
  NND_UNROLL
  for (int v = 0; v < vectors; v++) lines[v].first = mean[v] = lines[v].shift = nnd_splat(0.0f);
  if (t->kind == NND_STANDARD) {
    NND_UNROLL
    for (int v = 0; v < vectors; v++) mean[v] = nnd_take_columns((const float *)at[1] + c.at, c, v);
    nnd_reduced_columns(nnd_sum_apart, &t->along, vectors, c, at[1], mean, total);
    NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      lines[v].first = mean[v], lines[v].shift = -total[v] / (float)t->along.size;
      mean[v] -= lines[v].shift;
    }
  }
  if (t->kind == NND_L1)
    nnd_reduced_columns(nnd_sum_of_sizes, &t->along, vectors, c, at[1], mean, total);
  else
    nnd_reduced_columns(nnd_sum_of_squares, &t->along, vectors, c, at[1], mean, total);
  NND_UNROLL
  for (int v = 0; v < vectors; v++) lines[v].factor = nnd_factor(t, total[v]), lines[v].shift *= lines[v].factor;
  for (nnd_size k = 0; k < t->along.size; k++) {
    const nnd_size place = c.at + k * t->along.inner;
    const vf scale = nnd_numbers_of_columns(t, c, at[2], k, 1.0f), bias = nnd_numbers_of_columns(t, c, at[3], k, 0.0f);
    NND_UNROLL
    for (int v = 0; v < vectors; v++) {
      const vf x = nnd_take_columns((const float *)at[1] + place, c, v);
      nnd_give_columns((float *)at[0] + place, c, v, nnd_on_line(lines[v], x) * scale + bias);
    }
  }
}

static void nnd_run_normalise(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_normalise_fields *t = fields;
  if (t->kind == NND_STANDARD && t->along.inner == 1 && t->along.size >= NND_LANES && t->along.size < 2 * NND_PIECE) {
    nnd_size row, last;
    nnd_share(t->along.outer, part, &row, &last);
    for (; row + NND_CHAINS <= last; row += NND_CHAINS) nnd_normalise_rows(t, row, at);
    for (; row < last; row++) nnd_normalise_row(fields, row, at);
    return;
  }
  nnd_along_axis(&t->along, fields, at, part, nnd_normalise_row, nnd_normalise_columns);
}

/* Whether there are as many numbers as groups and parts. */
static int nnd_fits_numbers(const struct nnd_maker *m, const struct nnd_normalise_fields *t, int tensor) {
  if (tensor < 0) return 1;
  const struct nnd_shape *shape = nnd_shape_of(m, tensor);
  return !shape->is_blocked && shape->count % t->parts == 0 && shape->count / t->parts == t->groups;
}

static int nnd_make_normalise(struct nnd_maker *m) {
  const struct nnd_normalise *own = m->step->own;
  struct nnd_normalise_fields *t = nnd_fields(m, sizeof *t);
  if (!t || !nnd_size_along(m, &own->along, nnd_size_of(m, own->along.size), &t->along)) return 0;
  t->kind = own->norm, t->epsilon = own->epsilon;
  t->groups = nnd_size_of(m, own->groups), t->parts = nnd_size_of(m, own->parts);
  if (t->groups < 1 || t->parts < 1 || t->along.size % t->parts || !nnd_fits_numbers(m, t, own->scale) ||
      !nnd_fits_numbers(m, t, own->bias))
    return nnd_fail(m->message, "numbers of a normalisation that do not fit its axis");
  t->run = t->along.size / t->parts;
  nnd_give_tensor(m, own->scale);
  nnd_give_tensor(m, own->bias);
  static const nnd_along_run runs[NND_NUM_ELEMENTS] = {[NND_FLOAT32] = nnd_run_normalise};
  return nnd_run_along(m, &own->along, runs);
}

const struct nnd_op nnd_op_normalise = {"normalise", nnd_open_normalise, nnd_make_normalise};
