/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of ends -> the ends that are compiled into the kernels: bounds, lines with bounds, hard-swish and the like,
 * however they are spelled.
 */
#include "model/model.h"

/* What a source is known to be, of x, the sum with or without its residual:
 *   LINE    low <= x * scale + shift <= high
 *   GATED   x * (the same) * factor */
enum nnd_form_kind { NND_FORM_NONE, NND_FORM_RESIDUAL, NND_FORM_CONSTANT, NND_FORM_LINE, NND_FORM_GATED };

struct nnd_form {
  int kind, adds;
  float value; /* of a constant */
  float low, high, scale, shift, factor;
};

static const float nnd_infinity = __builtin_inff();

static struct nnd_form nnd_sum_form(int adds) {
  return (struct nnd_form){NND_FORM_LINE, adds, 0.0f, -nnd_infinity, nnd_infinity, 1.0f, 0.0f, 1.0f};
}

static int nnd_is_sum(const struct nnd_form *form) {
  return form->kind == NND_FORM_LINE && form->scale == 1.0f && form->shift == 0.0f && form->low == -nnd_infinity &&
         form->high == nnd_infinity;
}

static struct nnd_form nnd_shifted(struct nnd_form form, float by) {
  if (form.kind != NND_FORM_LINE) return (struct nnd_form){0};
  form.shift += by, form.low += by, form.high += by;
  return form;
}

static struct nnd_form nnd_scaled(struct nnd_form form, float by) {
  if (form.kind == NND_FORM_GATED)
    form.factor *= by;
  else if (form.kind == NND_FORM_LINE && by > 0.0f)
    form.scale *= by, form.shift *= by, form.low *= by, form.high *= by;
  else
    return (struct nnd_form){0};
  return form;
}

static struct nnd_form nnd_bounded(struct nnd_form form, float low, float high) {
  if (form.kind != NND_FORM_LINE || low > form.high || high < form.low) return (struct nnd_form){0};
  form.low = form.low > low ? form.low : low;
  form.high = form.high < high ? form.high : high;
  return form;
}

static struct nnd_form nnd_gated(const struct nnd_form *x, struct nnd_form gate) {
  if (!nnd_is_sum(x) || gate.kind != NND_FORM_LINE || gate.adds != x->adds) return (struct nnd_form){0};
  gate.kind = NND_FORM_GATED;
  return gate;
}

/* What two sources come to; a constant, if there is one, is the second. */
static struct nnd_form nnd_joined(int operator_, const struct nnd_form *a, const struct nnd_form *b) {
  if (operator_ == NND_OP_ADD && b->kind == NND_FORM_RESIDUAL && nnd_is_sum(a) && !a->adds) return nnd_sum_form(1);
  if (operator_ == NND_OP_MUL && b->kind != NND_FORM_CONSTANT)
    return nnd_is_sum(a) ? nnd_gated(a, *b) : nnd_gated(b, *a);
  if (b->kind != NND_FORM_CONSTANT) return (struct nnd_form){0};
  switch (operator_) {
    case NND_OP_ADD: return nnd_shifted(*a, b->value);
    case NND_OP_SUB: return nnd_shifted(*a, -b->value);
    case NND_OP_MUL: return nnd_scaled(*a, b->value);
    case NND_OP_DIV: return nnd_scaled(*a, 1.0f / b->value);
    case NND_OP_MAX: return nnd_bounded(*a, b->value, nnd_infinity);
    case NND_OP_MIN: return nnd_bounded(*a, -nnd_infinity, b->value);
    default: return (struct nnd_form){0};
  }
}

static struct nnd_form nnd_form_after(const struct nnd_instruction *one, const struct nnd_form *forms) {
  const struct nnd_form *a = &forms[one->source[0]], *b = &forms[one->source[1]];
  switch (one->operator_) {
    case NND_OP_RELU: return nnd_bounded(*a, 0.0f, nnd_infinity);
    case NND_OP_HARDSWISH: return nnd_gated(a, nnd_bounded(nnd_shifted(nnd_scaled(*a, 1.0f / 6.0f), 0.5f), 0.0f, 1.0f));
    case NND_OP_ADD:
    case NND_OP_MUL:
    case NND_OP_MAX:
    case NND_OP_MIN: {
      const int is_swapped = a->kind == NND_FORM_CONSTANT || a->kind == NND_FORM_RESIDUAL;
      return is_swapped ? nnd_joined(one->operator_, b, a) : nnd_joined(one->operator_, a, b);
    }
    case NND_OP_SUB:
    case NND_OP_DIV: return nnd_joined(one->operator_, a, b);
    default: return (struct nnd_form){0};
  }
}

struct nnd_end nnd_end_of_program(const struct nnd_program *program) {
  struct nnd_form forms[NND_SOURCES] = {{0}};
  forms[0] = nnd_sum_form(0);
  forms[1].kind = NND_FORM_RESIDUAL;
  for (int i = 0; i < NND_CONSTANTS; i++)
    forms[NND_FIRST_CONSTANT + i] = (struct nnd_form){.kind = NND_FORM_CONSTANT, .value = program->constants[i][0]};
  for (int i = 0; i < program->num_instructions; i++)
    forms[program->instructions[i].to] = nnd_form_after(&program->instructions[i], forms);
  const struct nnd_form *found = &forms[program->outcome];
  const float numbers = found->low + found->high + found->scale + found->shift + found->factor;
  const int is_number = numbers == numbers || (found->low == -nnd_infinity && found->high == nnd_infinity);
  struct nnd_end end = {.kind = NND_END_PROGRAM, .program = program};
  if (!is_number || (found->kind != NND_FORM_LINE && found->kind != NND_FORM_GATED)) return end;
  const int is_line = found->scale != 1.0f || found->shift != 0.0f;
  end = (struct nnd_end){.kind = NND_END_LINE,
                         .adds = found->adds,
                         .low = found->low,
                         .high = found->high,
                         .scale = found->scale,
                         .shift = found->shift,
                         .factor = found->factor};
  if (found->kind == NND_FORM_GATED)
    end.kind = NND_END_GATED;
  else if (!is_line)
    end.kind = nnd_is_sum(found) ? NND_END_PLAIN : NND_END_BOUNDED;
  return end;
}
