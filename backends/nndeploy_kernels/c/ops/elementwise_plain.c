/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise steps whose output is plain: some hundred elements at a time, whose operands are read in place where they
 * are of the program's own type and lie as the output does, else spread and converted first.
 */
#include "ops/elementwise.h"

#define NND_CHUNK (NND_AT_ONCE * NND_LANES) /* elements that are made at once */

/* How an operand of a plain output lies: `kind` 0: as the output, 1: one number, 2: by steps along `rank` axes. */
struct nnd_plain_operand {
  int kind, rank, element;
  nnd_size sizes[NND_MOST_RANK],
      steps[NND_MOST_RANK]; /* from the last axis to the first, axes that go on alike joined */
};

struct nnd_plain_fields {
  const struct nnd_program *program;
  nnd_size count;
  int num_operands, element; /* of the output */
  struct nnd_plain_operand operands[NND_OPERANDS];
};

/* Elements [begin, begin + count) of a broadcast operand, one after the other. */
#define NND_SPREAD(name, type)                                                                                         \
  static void name(const struct nnd_plain_operand *operand, const type *from, nnd_size begin, nnd_size count,          \
                   type *to) {                                                                                         \
    nnd_size at[NND_MOST_RANK], offset = 0, rest = begin;                                                              \
    for (int axis = 0; axis < operand->rank; axis++) {                                                                 \
      at[axis] = rest % operand->sizes[axis];                                                                          \
      rest /= operand->sizes[axis];                                                                                    \
      offset += at[axis] * operand->steps[axis];                                                                       \
    }                                                                                                                  \
    while (count > 0) {                                                                                                \
      const nnd_size run = nnd_min(count, operand->sizes[0] - at[0]), step = operand->steps[0];                        \
      if (step == 1)                                                                                                   \
        for (nnd_size i = 0; i < run; i++) to[i] = from[offset + i];                                                   \
      else                                                                                                             \
        for (nnd_size i = 0; i < run; i++) to[i] = from[offset + i * step];                                            \
      to += run, count -= run, at[0] += run, offset += run * step;                                                     \
      for (int axis = 0; axis < operand->rank && at[axis] == operand->sizes[axis]; axis++) {                           \
        offset -= operand->sizes[axis] * operand->steps[axis];                                                         \
        at[axis] = 0;                                                                                                  \
        if (axis + 1 < operand->rank) at[axis + 1]++, offset += operand->steps[axis + 1];                              \
      }                                                                                                                \
    }                                                                                                                  \
  }
NND_SPREAD(nnd_spread_1, int8_t)
NND_SPREAD(nnd_spread_2, int16_t)
NND_SPREAD(nnd_spread_4, float)
NND_SPREAD(nnd_spread_8, int64_t)

static void nnd_spread_operand(const struct nnd_plain_operand *operand, const void *from, nnd_size begin,
                               nnd_size count, void *to) {
  switch (nnd_element_bytes[operand->element]) {
    case 1: nnd_spread_1(operand, from, begin, count, to); return;
    case 2: nnd_spread_2(operand, from, begin, count, to); return;
    case 4: nnd_spread_4(operand, from, begin, count, to); return;
    default: nnd_spread_8(operand, from, begin, count, to);
  }
}

/* Operand elements [begin, begin + count) as lanes of a domain: where they are in memory, or in `lanes`. Behind the last
 * one lanes hold numbers, not what lay there. */
#define NND_LANES_OF_OPERAND(name, own, type, vector, converted)                                                       \
  NND_INLINE struct nnd_source name(const struct nnd_plain_operand *operand, const void *from, nnd_size begin,         \
                                    nnd_size count, vector *lanes) {                                                   \
    char kept[8 * NND_CHUNK] __attribute__((aligned(64)));                                                             \
    const char *there = (const char *)from + begin * nnd_element_bytes[operand->element];                              \
    if (operand->kind == 1) {                                                                                          \
      converted(operand->element, from, 1, lanes);                                                                     \
      *lanes = lanes[0][0] - (vector){0};                                                                              \
      return (struct nnd_source){lanes, 0};                                                                            \
    }                                                                                                                  \
    if (operand->element != own) {                                                                                     \
      if (operand->kind) nnd_spread_operand(operand, from, begin, count, kept);                                        \
      converted(operand->element, operand->kind ? kept : there, count, lanes);                                         \
      return (struct nnd_source){lanes, 1};                                                                            \
    }                                                                                                                  \
    if (!operand->kind && count == NND_CHUNK) return (struct nnd_source){there, 1};                                    \
    if (operand->kind)                                                                                                 \
      nnd_spread_operand(operand, from, begin, count, lanes);                                                          \
    else                                                                                                               \
      memcpy(lanes, there, (size_t)count * sizeof(type));                                                              \
    for (nnd_size i = count; i % NND_LANES; i++) ((type *)lanes)[i] = 1;                                               \
    return (struct nnd_source){lanes, 1};                                                                              \
  }
NND_LANES_OF_OPERAND(nnd_floats_of_operand, NND_FLOAT32, float, vf, nnd_floats_of)
NND_LANES_OF_OPERAND(nnd_whole_of_operand, NND_INT64, int64_t, vl, nnd_whole_of)
NND_LANES_OF_OPERAND(nnd_doubles_of_operand, NND_FLOAT64, double, vd, nnd_doubles_of)

/* `is_own`: floats that become floats go straight to the output. */
#define NND_RUN_PLAIN(name, vector, is_own, of_operand, program_run, elements_of)                                      \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_plain_fields *t = fields;                                                                         \
    vector lanes[NND_OPERANDS][NND_AT_ONCE], results[NND_RESULTS * NND_AT_ONCE];                                       \
    nnd_size first, last;                                                                                              \
    nnd_share(nnd_ceil_div(t->count, NND_CHUNK), part, &first, &last);                                                 \
    for (nnd_size chunk = first; chunk < last; chunk++) {                                                              \
      const nnd_size begin = chunk * NND_CHUNK, count = nnd_min(NND_CHUNK, t->count - begin);                          \
      struct nnd_source operands[NND_OPERANDS] = {{0}};                                                                \
      for (int k = 0; k < t->num_operands; k++)                                                                        \
        operands[k] = of_operand(&t->operands[k], at[1 + k], begin, count, lanes[k]);                                  \
      if (is_own && t->element == NND_FLOAT32 && count == NND_CHUNK) {                                                 \
        nnd_program_put(t->program, operands, NND_AT_ONCE, (vf *)results, (float *)at[0] + begin);                     \
        continue;                                                                                                      \
      }                                                                                                                \
      const struct nnd_source outcome =                                                                                \
          program_run(t->program, operands, (int)nnd_ceil_div(count, NND_LANES), results);                             \
      elements_of(t->element, outcome, count, (char *)at[0] + begin * nnd_element_bytes[t->element]);                  \
    }                                                                                                                  \
  }
NND_RUN_PLAIN(nnd_run_plain_floats, vf, 1, nnd_floats_of_operand, nnd_program_run, nnd_elements_of_floats)
NND_RUN_PLAIN(nnd_run_plain_whole, vl, 0, nnd_whole_of_operand, nnd_whole_program_run, nnd_elements_of_whole)
NND_RUN_PLAIN(nnd_run_plain_doubles, vd, 0, nnd_doubles_of_operand, nnd_double_program_run, nnd_elements_of_doubles)

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
  operand->element = shape->element;
  operand->kind = 2;
  if (shape->count == out->count)
    operand->kind = 0;
  else if (shape->count == 1)
    operand->kind = 1;
  return 1;
}

int nnd_make_plain_elementwise(struct nnd_maker *m, const struct nnd_elementwise_own *own) {
  struct nnd_plain_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  t->program = own->program, t->count = out->count, t->num_operands = own->num_operands, t->element = out->element;
  nnd_give_tensor(m, own->out);
  for (int k = 0; k < own->num_operands; k++) {
    if (!nnd_plain_operand(m, out, nnd_shape_of(m, own->operands[k].in), &t->operands[k])) return 0;
    nnd_give_tensor(m, own->operands[k].in);
  }
  static void (*const runs[NND_NUM_DOMAINS])(const void *, void *const *, struct nnd_part) = {
      nnd_run_plain_floats, nnd_run_plain_whole, nnd_run_plain_doubles};
  m->instance->run = runs[own->program->domain];
  return 1;
}
