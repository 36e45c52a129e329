/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program.h"

#include "base/double_operators.h"
#include "base/operators.h"
#include "base/powers.h"
#include "base/trigonometry.h"
#include "base/whole_operators.h"

#define NND_AT(lanes, source) ((const lanes##_any *)source.at)[i * source.step]
#define NND_LOOP_1(lanes, function)                                                                                    \
  for (int i = 0; i < count; i++) to[i] = function(NND_AT(lanes, a));
#define NND_LOOP_2(lanes, function)                                                                                    \
  for (int i = 0; i < count; i++) to[i] = function(NND_AT(lanes, a), NND_AT(lanes, b));
#define NND_LOOP_3(lanes, function)                                                                                    \
  for (int i = 0; i < count; i++) to[i] = function(NND_AT(lanes, a), NND_AT(lanes, b), NND_AT(lanes, c));

/* `vector`: bytes of one. */
NND_INLINE struct nnd_source nnd_source_of(int number, const struct nnd_source *operands, const void *results,
                                           const void *constants, nnd_size vector) {
  if (number < NND_FIRST_RESULT) return operands[number];
  if (number < NND_FIRST_CONSTANT)
    return (struct nnd_source){(const char *)results + (number - NND_FIRST_RESULT) * NND_AT_ONCE * vector, 1};
  return (struct nnd_source){(const char *)constants + (number - NND_FIRST_CONSTANT) * vector, 0};
}

/* The last instruction's result goes to `end`, where that is given. */
#define NND_RUN(name, lanes, constants, cases)                                                                         \
  NND_NOINLINE struct nnd_source name(const struct nnd_program *program, const struct nnd_source *operands, int count, \
                                      lanes *results, lanes##_any *end) {                                              \
    for (int k = 0; k < program->num_instructions; k++) {                                                              \
      const struct nnd_instruction *one = &program->instructions[k];                                                   \
      const struct nnd_source a = nnd_source_of(one->source[0], operands, results, constants, sizeof(lanes));          \
      const struct nnd_source b = nnd_source_of(one->source[1], operands, results, constants, sizeof(lanes));          \
      const struct nnd_source c = nnd_source_of(one->source[2], operands, results, constants, sizeof(lanes));          \
      lanes##_any *to = (lanes##_any *)(results + (one->to - NND_FIRST_RESULT) * NND_AT_ONCE);                         \
      if (end && k + 1 == program->num_instructions) to = end;                                                         \
      switch (one->operator_) { cases }                                                                                \
    }                                                                                                                  \
    return nnd_source_of(program->outcome, operands, results, constants, sizeof(lanes));                               \
  }
#define NND_CASE(name, function, sources)                                                                              \
  case NND_OP_##name: NND_LOOP_##sources(vf, nnd_op_##function) break;
NND_RUN(nnd_run_floats, vf, program->constants, NND_OPERATORS(NND_CASE))
#undef NND_CASE
#define NND_CASE(name, function, sources)                                                                              \
  case NND_WHOLE_##name: NND_LOOP_##sources(vl, nnd_whole_##function) break;
NND_RUN(nnd_run_whole, vl, program->whole, NND_WHOLE_OPERATORS(NND_CASE))
#undef NND_CASE
#define NND_CASE(name, function, sources)                                                                              \
  case NND_DOUBLE_##name: NND_LOOP_##sources(vd, nnd_double_##function) break;
NND_RUN(nnd_run_doubles, vd, program->doubles, NND_DOUBLE_OPERATORS(NND_CASE))

#define NND_RUN_ALL(name, run, lanes)                                                                                  \
  struct nnd_source name(const struct nnd_program *program, const struct nnd_source *operands, int count,              \
                         lanes *results) {                                                                             \
    return run(program, operands, count, results, NULL);                                                               \
  }
NND_RUN_ALL(nnd_program_run, nnd_run_floats, vf)
NND_RUN_ALL(nnd_whole_program_run, nnd_run_whole, vl)
NND_RUN_ALL(nnd_double_program_run, nnd_run_doubles, vd)

void nnd_program_put(const struct nnd_program *program, const struct nnd_source *operands, int count, vf *results,
                     float *to) {
  const int last = program->num_instructions - 1;
  if (last >= 0 && program->instructions[last].to == program->outcome) {
    nnd_run_floats(program, operands, count, results, (vf_any *)to);
    return;
  }
  const struct nnd_source outcome = nnd_run_floats(program, operands, count, results, NULL);
  for (int i = 0; i < count; i++) nnd_store_any(to + i * NND_LANES, nnd_vector_of(outcome, i));
}

void nnd_end_program(const struct nnd_program *program, vf *sums, int count, const nnd_elem *residual, vf number) {
  vf results[NND_RESULTS * NND_AT_ONCE], added[NND_AT_ONCE];
  for (int begin = 0; begin < count; begin += NND_AT_ONCE) {
    const int some = (int)nnd_min(NND_AT_ONCE, count - begin);
    for (int i = 0; residual && i < some; i++) added[i] = nnd_read(residual + (begin + i) * NND_LANES);
    if (!residual) added[0] = nnd_splat(0.0f);
    const struct nnd_source operands[NND_OPERANDS] = {
        {sums + begin, 1}, {added, residual ? 1 : 0}, {&number, 0}, {&number, 0}};
    nnd_program_put(program, operands, some, results, (float *)(sums + begin));
  }
}
