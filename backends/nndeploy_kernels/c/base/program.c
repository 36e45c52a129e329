/* SPDX-License-Identifier: Apache-2.0 */
#include "base/program.h"

#include "base/operators.h"

#define NND_LOOP_1(function)                                                                                           \
  for (int i = 0; i < count; i++) to[i] = nnd_op_##function(a.at[i * a.step]);
#define NND_LOOP_2(function)                                                                                           \
  for (int i = 0; i < count; i++) to[i] = nnd_op_##function(a.at[i * a.step], b.at[i * b.step]);
#define NND_LOOP_3(function)                                                                                           \
  for (int i = 0; i < count; i++) to[i] = nnd_op_##function(a.at[i * a.step], b.at[i * b.step], c.at[i * c.step]);

NND_INLINE struct nnd_source nnd_source_of(int number, const struct nnd_source *operands, const vf *results,
                                           const vf *constants) {
  if (number < NND_FIRST_RESULT) return operands[number];
  if (number < NND_FIRST_CONSTANT)
    return (struct nnd_source){(const vf_any *)results + (number - NND_FIRST_RESULT) * NND_AT_ONCE, 1};
  return (struct nnd_source){(const vf_any *)constants + (number - NND_FIRST_CONSTANT), 0};
}

struct nnd_source nnd_program_run(const struct nnd_program *program, const struct nnd_source *operands, int count,
                                  vf *results) {
  const vf *constants = program->constants;
  for (int k = 0; k < program->num_instructions; k++) {
    const struct nnd_instruction *one = &program->instructions[k];
    const struct nnd_source a = nnd_source_of(one->source[0], operands, results, constants);
    const struct nnd_source b = nnd_source_of(one->source[1], operands, results, constants);
    const struct nnd_source c = nnd_source_of(one->source[2], operands, results, constants);
    vf *to = results + (one->to - NND_FIRST_RESULT) * NND_AT_ONCE;
    switch (one->operator_) {
#define NND_CASE(name, function, sources)                                                                              \
  case NND_OP_##name: NND_LOOP_##sources(function) break;
      NND_OPERATORS(NND_CASE)
#undef NND_CASE
    }
  }
  return nnd_source_of(program->outcome, operands, results, constants);
}

void nnd_end_program(const struct nnd_program *program, vf *sums, int count, const nnd_elem *residual, vf number) {
  vf results[NND_RESULTS * NND_AT_ONCE], added[NND_AT_ONCE];
  for (int begin = 0; begin < count; begin += NND_AT_ONCE) {
    const int some = (int)nnd_min(NND_AT_ONCE, count - begin);
    for (int i = 0; residual && i < some; i++) added[i] = nnd_read(residual + (begin + i) * NND_LANES);
    if (!residual) added[0] = nnd_splat(0.0f);
    const struct nnd_source operands[NND_OPERANDS] = {{(const vf_any *)sums + begin, 1},
                                                      {(const vf_any *)added, residual ? 1 : 0},
                                                      {(const vf_any *)&number, 0},
                                                      {(const vf_any *)&number, 0}};
    const struct nnd_source outcome = nnd_program_run(program, operands, some, results);
    for (int i = 0; i < some; i++) sums[begin + i] = outcome.at[i * outcome.step];
  }
}
