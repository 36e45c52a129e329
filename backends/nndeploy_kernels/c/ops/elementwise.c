/* SPDX-License-Identifier: Apache-2.0
 *
 * elementwise: a program over up to four operands that are broadcast to the output.
 *
 *   output (tensor), program, number of operands, each: tensor (a constant where its value is a weight)
 *
 * Blocked outputs take blocked operands (N or 1, C, H, W) and (N or 1, C, 1, 1), and constants of these shapes, which
 * are put in blocks when the step is opened.
 */
#include <stdio.h>

#include "model/model.h"

#define NND_CHUNK (NND_AT_ONCE * NND_LANES) /* elements of a plain output that are made at once */

struct nnd_elementwise_own {
  int out, num_operands, operands[NND_OPERANDS];
  const struct nnd_program *program;
  const nnd_elem *blocks[NND_OPERANDS]; /* of constants of a blocked output */
};

static const nnd_elem *nnd_blocked_constant(struct nnd_opener *o, const struct nnd_weight_data *weight) {
  if (weight->rank != 4 || weight->element != NND_FLOAT32) {
    nnd_fail(o->message, "a constant operand of an image has %d axes", weight->rank);
    return NULL;
  }
  const nnd_size channels = weight->sizes[1], pixels = weight->sizes[2] * weight->sizes[3],
                 blocks = nnd_blocks(channels);
  nnd_elem *to = nnd_packed(o, weight->sizes[0] * blocks * pixels * NND_LANES * (nnd_size)sizeof *to);
  const float *from = weight->data;
  if (!to) return NULL;
  for (nnd_size n = 0; n < weight->sizes[0]; n++)
    for (nnd_size c = 0; c < channels; c++)
      for (nnd_size p = 0; p < pixels; p++, from++)
        to[((n * blocks + c / NND_LANES) * pixels + p) * NND_LANES + c % NND_LANES] = nnd_to_elem(*from);
  return to;
}

static int nnd_open_elementwise(struct nnd_opener *o) {
  struct nnd_elementwise_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->out = nnd_seen_tensor(o);
  own->program = nnd_read_program(o);
  own->num_operands = (int)nnd_word(o, 0, NND_OPERANDS);
  for (int k = 0; k < own->num_operands && !o->message->failed; k++) {
    own->operands[k] = nnd_read_tensor(o);
    if (o->message->failed) return 0;
    const struct nnd_tensor *tensor = &o->model->tensors[own->operands[k]];
    const struct nnd_value *value = &o->model->values[tensor->value];
    const int is_blocked = o->model->tensors[own->out].is_blocked;
    if (value->kind == NND_VALUE_WEIGHT && is_blocked)
      own->blocks[k] = nnd_blocked_constant(o, &o->model->weights[value->number]);
    else if (tensor->is_blocked != is_blocked)
      return nnd_fail(o->message, "an operand lies in another layout");
    if (tensor->element != NND_FLOAT32) return nnd_fail(o->message, "an operand is not float32");
  }
  if (o->message->failed || !own->program || own->program->num_operands > own->num_operands ||
      o->model->tensors[own->out].element != NND_FLOAT32)
    return nnd_fail(o->message, "a program that does not fit its operands");
  const nnd_size at = o->at;
  o->at = 0; /* the output is written after the operands are read: none of them may be it */
  nnd_write_tensor(o);
  o->at = at;
  return !o->message->failed;
}

/* How an operand of a plain output lies: `kind` 0: as the output, 1: one number, 2: by steps along `rank` axes. */
struct nnd_plain_operand {
  int kind, rank;
  nnd_size sizes[NND_MOST_RANK],
      steps[NND_MOST_RANK]; /* from the last axis to the first, axes that go on alike joined */
};

struct nnd_plain_fields {
  const struct nnd_program *program;
  nnd_size count;
  int num_operands;
  struct nnd_plain_operand operands[NND_OPERANDS];
};

/* Elements [begin, begin + count) of a broadcast operand, one after the other. */
static void nnd_spread_operand(const struct nnd_plain_operand *operand, const float *from, nnd_size begin,
                               nnd_size count, float *to) {
  nnd_size at[NND_MOST_RANK], offset = 0, rest = begin;
  for (int axis = 0; axis < operand->rank; axis++) {
    at[axis] = rest % operand->sizes[axis];
    rest /= operand->sizes[axis];
    offset += at[axis] * operand->steps[axis];
  }
  while (count > 0) {
    const nnd_size run = nnd_min(count, operand->sizes[0] - at[0]), step = operand->steps[0];
    if (step == 1)
      for (nnd_size i = 0; i < run; i++) to[i] = from[offset + i];
    else
      for (nnd_size i = 0; i < run; i++) to[i] = from[offset + i * step];
    to += run, count -= run, at[0] += run, offset += run * step;
    for (int axis = 0; axis < operand->rank && at[axis] == operand->sizes[axis]; axis++) {
      offset -= operand->sizes[axis] * operand->steps[axis];
      at[axis] = 0;
      if (axis + 1 < operand->rank) at[axis + 1]++, offset += operand->steps[axis + 1];
    }
  }
}

static void nnd_run_plain(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_plain_fields *t = fields;
  float spread[NND_OPERANDS][NND_CHUNK] __attribute__((aligned(64)));
  vf results[NND_RESULTS * NND_AT_ONCE];
  nnd_size first, last;
  nnd_share(nnd_ceil_div(t->count, NND_CHUNK), part, &first, &last);
  for (nnd_size chunk = first; chunk < last; chunk++) {
    const nnd_size begin = chunk * NND_CHUNK, count = nnd_min(NND_CHUNK, t->count - begin);
    struct nnd_source operands[NND_OPERANDS] = {{0}};
    for (int k = 0; k < t->num_operands; k++) {
      const float *from = at[1 + k];
      operands[k] = (struct nnd_source){(const vf_any *)spread[k], 1};
      if (t->operands[k].kind == 0 && count == NND_CHUNK)
        operands[k].at = (const vf_any *)(from + begin);
      else if (t->operands[k].kind == 0)
        memcpy(spread[k], from + begin, (size_t)count * sizeof(float));
      else if (t->operands[k].kind == 1) {
        for (int i = 0; i < NND_LANES; i++) spread[k][i] = *from;
        operands[k].step = 0;
      } else
        nnd_spread_operand(&t->operands[k], from, begin, count, spread[k]);
      if (operands[k].step && count < NND_CHUNK) /* lanes behind the end hold numbers, not what lay there */
        for (nnd_size i = count; i < nnd_ceil_div(count, NND_LANES) * NND_LANES; i++) spread[k][i] = 1.0f;
    }
    const int vectors = (int)nnd_ceil_div(count, NND_LANES);
    const struct nnd_source outcome = nnd_program_run(t->program, operands, vectors, results);
    float *to = (float *)at[0] + begin;
    const int whole = (int)(count / NND_LANES);
    for (int i = 0; i < whole; i++) nnd_store_any(to + i * NND_LANES, outcome.at[i * outcome.step]);
    if (whole < vectors) {
      const vf kept = outcome.at[whole * outcome.step];
      memcpy(to + whole * NND_LANES, &kept, (size_t)(count - whole * NND_LANES) * sizeof(float));
    }
  }
}

/* How an operand is broadcast to the output; 0 with a message where it cannot be. */
static int nnd_plain_operand(struct nnd_maker *m, const struct nnd_shape *out, const struct nnd_shape *shape,
                             struct nnd_plain_operand *operand) {
  if (shape->rank > out->rank) return nnd_fail(m->message, "an operand has more axes than what is made of it");
  nnd_size step = 1;
  operand->rank = 0;
  for (int axis = 0; axis < out->rank; axis++) { /* from the last */
    const nnd_size size = out->sizes[out->rank - 1 - axis];
    const nnd_size own = axis < shape->rank ? shape->sizes[shape->rank - 1 - axis] : 1;
    if (own != 1 && own != size) return nnd_fail(m->message, "an operand cannot be broadcast");
    const nnd_size here = own == 1 ? 0 : step;
    step *= own;
    if (size == 1) continue;
    const int last = operand->rank - 1;
    if (last >= 0 && here == operand->steps[last] * operand->sizes[last])
      operand->sizes[last] *= size;
    else
      operand->sizes[operand->rank] = size, operand->steps[operand->rank++] = here;
  }
  operand->kind = 2;
  if (shape->count == out->count)
    operand->kind = 0;
  else if (shape->count == 1)
    operand->kind = 1;
  return 1;
}

static int nnd_make_plain(struct nnd_maker *m, const struct nnd_elementwise_own *own) {
  struct nnd_plain_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  t->program = own->program, t->count = out->count, t->num_operands = own->num_operands;
  nnd_give_tensor(m, own->out);
  for (int k = 0; k < own->num_operands; k++) {
    if (!nnd_plain_operand(m, out, nnd_shape_of(m, own->operands[k]), &t->operands[k])) return 0;
    nnd_give_tensor(m, own->operands[k]);
  }
  m->instance->run = nnd_run_plain;
  return 1;
}

/* Steps in vectors: from image to image, from channel block to channel block, from pixel to pixel. */
struct nnd_blocked_operand {
  nnd_size image, block, pixel;
};

struct nnd_blocked_fields {
  const struct nnd_program *program;
  nnd_size images, blocks, pixels;
  int num_operands;
  struct nnd_blocked_operand operands[NND_OPERANDS];
};

static void nnd_run_blocked(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_blocked_fields *t = fields;
  vf results[NND_RESULTS * NND_AT_ONCE], read[NND_OPERANDS][NND_AT_ONCE];
  const nnd_size runs = nnd_ceil_div(t->pixels, NND_AT_ONCE);
  nnd_size first, last;
  nnd_share(t->images * t->blocks * runs, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size plane = unit / runs, begin = unit % runs * NND_AT_ONCE;
    const int count = (int)nnd_min(NND_AT_ONCE, t->pixels - begin);
    struct nnd_source operands[NND_OPERANDS] = {{0}};
    for (int k = 0; k < t->num_operands; k++) {
      const struct nnd_blocked_operand *one = &t->operands[k];
      const nnd_elem *from =
          (const nnd_elem *)at[1 + k] +
          (plane / t->blocks * one->image + plane % t->blocks * one->block + begin * one->pixel) * NND_LANES;
      for (int i = 0; i < (one->pixel ? count : 1); i++) read[k][i] = nnd_read(from + i * NND_LANES);
      operands[k] = (struct nnd_source){(const vf_any *)read[k], one->pixel ? 1 : 0};
    }
    const struct nnd_source outcome = nnd_program_run(t->program, operands, count, results);
    nnd_elem *to = (nnd_elem *)at[0] + (plane * t->pixels + begin) * NND_LANES;
    for (int i = 0; i < count; i++) nnd_write(to + i * NND_LANES, outcome.at[i * outcome.step]);
  }
}

static int nnd_make_blocked(struct nnd_maker *m, const struct nnd_elementwise_own *own) {
  struct nnd_blocked_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  *t = (struct nnd_blocked_fields){.program = own->program,
                                   .images = out->sizes[0],
                                   .blocks = nnd_blocks(out->sizes[1]),
                                   .pixels = out->sizes[2] * out->sizes[3],
                                   .num_operands = own->num_operands};
  nnd_give_tensor(m, own->out);
  for (int k = 0; k < own->num_operands; k++) {
    const struct nnd_shape *one = nnd_shape_of(m, own->operands[k]);
    if (one->rank != 4) return nnd_fail(m->message, "an operand of an image has %d axes", one->rank);
    const nnd_size pixels = one->sizes[2] * one->sizes[3];
    const int is_whole = one->sizes[2] == out->sizes[2] && one->sizes[3] == out->sizes[3];
    if ((one->sizes[0] != 1 && one->sizes[0] != out->sizes[0]) || one->sizes[1] != out->sizes[1] ||
        (!is_whole && pixels != 1))
      return nnd_fail(m->message, "an operand of an image cannot be broadcast");
    const struct nnd_value *value = &m->table->model->values[m->table->model->tensors[own->operands[k]].value];
    if (value->kind == NND_VALUE_WEIGHT) { /* was put in blocks by its own sizes */
      const struct nnd_weight_data *weight = &m->table->model->weights[value->number];
      for (int axis = 0; axis < 4; axis++)
        if (weight->sizes[axis] != one->sizes[axis])
          return nnd_fail(m->message, "a constant operand has another shape");
    }
    t->operands[k] =
        (struct nnd_blocked_operand){one->sizes[0] == 1 ? 0 : t->blocks * pixels, pixels, pixels == 1 ? 0 : 1};
    if (own->blocks[k])
      nnd_give(m, own->blocks[k]);
    else
      nnd_give_tensor(m, own->operands[k]);
  }
  m->instance->run = nnd_run_blocked;
  return 1;
}

static int nnd_make_elementwise(struct nnd_maker *m) {
  const struct nnd_elementwise_own *own = m->step->own;
  return nnd_shape_of(m, own->out)->is_blocked ? nnd_make_blocked(m, own) : nnd_make_plain(m, own);
}

const struct nnd_op nnd_op_elementwise = {"elementwise", nnd_open_elementwise, nnd_make_elementwise};
