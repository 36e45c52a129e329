/* SPDX-License-Identifier: Apache-2.0
 *
 * elementwise: a program over up to four operands of any elements that are broadcast to the output; whatever its domain
 * is, they are converted to it, and what it makes to the element of the output (base/elements.h).
 *
 * Plain outputs are made in elementwise_plain.c. Blocked outputs take blocked operands (N or 1, C, H, W) and
 * (N or 1, C, 1, 1), and constants of these shapes, which are put in blocks when the step is opened.
 */
#include "ops/elementwise.h"
#include "model/words.h"

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

NND_READER(elementwise, struct nnd_elementwise_own)

static int nnd_open_elementwise(struct nnd_opener *o) {
  struct nnd_elementwise_own *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_elementwise(o, own)) return 0;
  const int is_blocked = o->model->tensors[own->out].is_blocked;
  for (int k = 0; k < own->num_operands; k++) {
    const struct nnd_tensor *tensor = &o->model->tensors[own->operands[k].in];
    const struct nnd_value *value = &o->model->values[tensor->value];
    if (value->kind == NND_VALUE_WEIGHT && is_blocked)
      own->blocks[k] = nnd_blocked_constant(o, &o->model->weights[value->number]);
    else if (tensor->is_blocked != is_blocked)
      return nnd_fail(o->message, "an operand lies in another layout");
  }
  if (o->message->failed || !own->program || own->program->num_operands > own->num_operands ||
      (is_blocked && own->program->domain != NND_OF_FLOAT32))
    return nnd_fail(o->message, "a program that does not fit its operands");
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

/* Pixels as operands of a program: where they lie, or bfloat16 as floats in `read`. */
NND_INLINE struct nnd_source nnd_read_source(const nnd_elem *from, int count, nnd_size step, vf *read) {
#ifdef NND_BF16
  for (int i = 0; i < count; i++) read[i] = nnd_read(from + i * NND_LANES);
  return (struct nnd_source){read, step};
#else
  (void)count, (void)read;
  return (struct nnd_source){from, step};
#endif
}

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
      operands[k] = nnd_read_source(from, one->pixel ? count : 1, one->pixel, read[k]);
    }
    nnd_elem *to = (nnd_elem *)at[0] + (plane * t->pixels + begin) * NND_LANES;
#ifdef NND_BF16
    const struct nnd_source outcome = nnd_program_run(t->program, operands, count, results);
    for (int i = 0; i < count; i++) nnd_write(to + i * NND_LANES, nnd_vector_of(outcome, i));
#else
    nnd_program_put(t->program, operands, count, results, to);
#endif
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
    const struct nnd_shape *one = nnd_shape_of(m, own->operands[k].in);
    if (one->rank != 4) return nnd_fail(m->message, "an operand of an image has %d axes", one->rank);
    const nnd_size pixels = one->sizes[2] * one->sizes[3];
    const int is_whole = one->sizes[2] == out->sizes[2] && one->sizes[3] == out->sizes[3];
    if ((one->sizes[0] != 1 && one->sizes[0] != out->sizes[0]) || one->sizes[1] != out->sizes[1] ||
        (!is_whole && pixels != 1))
      return nnd_fail(m->message, "an operand of an image cannot be broadcast");
    const struct nnd_value *value = &m->table->model->values[m->table->model->tensors[own->operands[k].in].value];
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
      nnd_give_tensor(m, own->operands[k].in);
  }
  m->instance->run = nnd_run_blocked;
  return 1;
}

static int nnd_make_elementwise(struct nnd_maker *m) {
  const struct nnd_elementwise_own *own = m->step->own;
  nnd_tell_operations(m, nnd_shape_of(m, own->out)->count, 8 + 4 * own->program->num_instructions);
  return nnd_shape_of(m, own->out)->is_blocked ? nnd_make_blocked(m, own) : nnd_make_plain_elementwise(m, own);
}

const struct nnd_op nnd_op_elementwise = {"elementwise", nnd_open_elementwise, nnd_make_elementwise};
