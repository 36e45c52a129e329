/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise expressions as data: short programs whose instructions work on some vectors at once.
 *
 * An instruction is one loop over up to NND_AT_ONCE vectors that lie in the first cache, so that finding out which it
 * is costs little. Its sources are operands, results of earlier instructions or constants, by number.
 */
#ifndef NND_PROGRAM_H
#define NND_PROGRAM_H

#include "base/vector.h"

#define NND_OPERANDS 4
#define NND_INSTRUCTIONS 64 /* of a program, at most */
#define NND_RESULTS 12      /* that are kept at a time, at most */
#define NND_CONSTANTS 32
#define NND_AT_ONCE 16 /* vectors */

/* Every operator, and how many sources it has: the names are those of expressions.py in capitals, in this order. */
#define NND_OPERATORS(X)                                                                                               \
  X(NEG, neg, 1)                                                                                                       \
  X(ABS, abs, 1) X(RECIPROCAL, reciprocal, 1) X(SQRT, sqrt, 1) X(EXP, exp, 1) X(LOG, log, 1) X(SIGMOID, sigmoid, 1)    \
      X(TANH, tanh, 1) X(RELU, relu, 1) X(FLOOR, floor, 1) X(CEIL, ceil, 1) X(HARDSWISH, hardswish, 1)                 \
          X(SILU, silu, 1) X(SOFTPLUS, softplus, 1) X(ERF, erf, 1) X(ADD, add, 2) X(SUB, sub, 2) X(MUL, mul, 2)        \
              X(DIV, div, 2) X(MAX, max, 2) X(MIN, min, 2) X(LESS, less, 2) X(WHERE, where, 3)

enum nnd_operator {
#define NND_NAME(name, function, sources) NND_OP_##name,
  NND_OPERATORS(NND_NAME)
#undef NND_NAME
      NND_NUM_OPERATORS
};

/* A source: operand 0 .. NND_OPERANDS - 1, then results, then constants. */
#define NND_FIRST_RESULT NND_OPERANDS
#define NND_FIRST_CONSTANT (NND_OPERANDS + NND_RESULTS)
#define NND_SOURCES (NND_FIRST_CONSTANT + NND_CONSTANTS)

struct nnd_instruction {
  uint8_t operator_, to, source[3]; /* `to`: a result */
};

/* The outcome is the source `outcome`. Constants are there as whole vectors. */
struct nnd_program {
  int num_instructions, num_operands, outcome;
  struct nnd_instruction instructions[NND_INSTRUCTIONS];
  vf constants[NND_CONSTANTS];
};

/* Where a source's vectors lie, and by how many vectors it goes on: 0 where all are the same. */
struct nnd_source {
  const vf_any *at;
  nnd_size step;
};

/* Runs a program over `count` vectors, at most NND_AT_ONCE, of its operands; returns where the outcome lies, which is
 * in `results`, memory of NND_RESULTS * NND_AT_ONCE vectors, or in an operand, or in the program. */
struct nnd_source nnd_program_run(const struct nnd_program *program, const struct nnd_source *operands, int count,
                                  vf *results);

/* Ends sums of `count` neighbouring pixels in place. */
void nnd_end_program(const struct nnd_program *program, vf *sums, int count, const nnd_elem *residual, vf number);

#endif
