/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise expressions as data: short programs whose instructions work on some vectors at once.
 *
 * An instruction is one loop over up to NND_AT_ONCE vectors that lie in the first cache, so that finding out which it
 * is costs little. Its sources are operands, results of earlier instructions or constants, by number. All lanes of a
 * program are of its domain, float32, int64 or float64, whatever its operands and what is made of it are.
 */
#ifndef NND_PROGRAM_H
#define NND_PROGRAM_H

#include "base/elements.h"

#define NND_OPERANDS 4
#define NND_INSTRUCTIONS 64 /* of a program, at most */
#define NND_RESULTS 12      /* that are kept at a time, at most */
#define NND_CONSTANTS 32
#define NND_AT_ONCE 16 /* vectors */

enum nnd_domain { NND_OF_FLOAT32, NND_OF_INT64, NND_OF_FLOAT64, NND_NUM_DOMAINS };

/* clang-format off */

/* Every operator, and how many sources it has: the names are those of expressions.py in capitals, in this order. */
#define NND_OPERATORS(X) \
  X(NEG, neg, 1) X(ABS, abs, 1) X(RECIPROCAL, reciprocal, 1) X(SQRT, sqrt, 1) X(EXP, exp, 1) X(LOG, log, 1) \
  X(SIGMOID, sigmoid, 1) X(TANH, tanh, 1) X(RELU, relu, 1) X(FLOOR, floor, 1) X(CEIL, ceil, 1) \
  X(HARDSWISH, hardswish, 1) X(SILU, silu, 1) X(SOFTPLUS, softplus, 1) X(ERF, erf, 1) X(ADD, add, 2) X(SUB, sub, 2) \
  X(MUL, mul, 2) X(DIV, div, 2) X(MAX, max, 2) X(MIN, min, 2) X(LESS, less, 2) X(WHERE, where, 3) X(SIGN, sign, 1) \
  X(ROUND, round, 1) X(NOT, not, 1) X(SIN, sin, 1) X(COS, cos, 1) X(TAN, tan, 1) X(ASIN, asin, 1) X(ACOS, acos, 1) \
  X(ATAN, atan, 1) X(SINH, sinh, 1) X(COSH, cosh, 1) X(ASINH, asinh, 1) X(ACOSH, acosh, 1) X(ATANH, atanh, 1) \
  X(LESS_EQUAL, less_equal, 2) X(EQUAL, equal, 2) X(AND, and, 2) X(OR, or, 2) X(XOR, xor, 2) X(FMOD, fmod, 2) \
  X(MOD, mod, 2) X(POW, pow, 2) X(SATURATED_UINT8, saturated_uint8, 1) X(SATURATED_INT8, saturated_int8, 1) \
  X(GELU, gelu, 1) X(GELU_TANH, gelu_tanh, 1)

/* The same of int64. */
#define NND_WHOLE_OPERATORS(X) \
  X(NEG, neg, 1) X(ABS, abs, 1) X(SIGN, sign, 1) X(RELU, relu, 1) X(NOT, not, 1) X(INVERT, invert, 1) \
  X(INT32, int32, 1) X(INT8, int8, 1) X(UINT8, uint8, 1) X(ADD, add, 2) X(SUB, sub, 2) X(MUL, mul, 2) X(DIV, div, 2) \
  X(FMOD, fmod, 2) X(MOD, mod, 2) X(POW, pow, 2) X(MAX, max, 2) X(MIN, min, 2) X(LESS, less, 2) \
  X(LESS_EQUAL, less_equal, 2) X(EQUAL, equal, 2) X(AND, and, 2) X(OR, or, 2) X(XOR, xor, 2) X(BIT_AND, bit_and, 2) \
  X(BIT_OR, bit_or, 2) X(BIT_XOR, bit_xor, 2) X(SHIFT_LEFT, shift_left, 2) X(SHIFT_RIGHT, shift_right, 2) \
  X(WHERE, where, 3)

/* The same of float64. */
#define NND_DOUBLE_OPERATORS(X) \
  X(NEG, neg, 1) X(ABS, abs, 1) X(RECIPROCAL, reciprocal, 1) X(SQRT, sqrt, 1) X(EXP, exp, 1) X(LOG, log, 1) \
  X(SIGMOID, sigmoid, 1) X(RELU, relu, 1) X(FLOOR, floor, 1) X(CEIL, ceil, 1) X(SIGN, sign, 1) X(ROUND, round, 1) \
  X(NOT, not, 1) X(ADD, add, 2) X(SUB, sub, 2) X(MUL, mul, 2) X(DIV, div, 2) X(MAX, max, 2) X(MIN, min, 2) \
  X(LESS, less, 2) X(LESS_EQUAL, less_equal, 2) X(EQUAL, equal, 2) X(AND, and, 2) X(OR, or, 2) X(XOR, xor, 2) \
  X(WHERE, where, 3) X(FLOAT_ABOVE, float_above, 1) X(FLOAT_ODD, float_odd, 1) X(TANH, tanh, 1)

/* clang-format on */

enum nnd_operator {
#define NND_NAME(name, function, sources) NND_OP_##name,
  NND_OPERATORS(NND_NAME)
#undef NND_NAME
      NND_NUM_OPERATORS
};

enum nnd_whole_operator {
#define NND_NAME(name, function, sources) NND_WHOLE_##name,
  NND_WHOLE_OPERATORS(NND_NAME)
#undef NND_NAME
      NND_NUM_WHOLE_OPERATORS
};

enum nnd_double_operator {
#define NND_NAME(name, function, sources) NND_DOUBLE_##name,
  NND_DOUBLE_OPERATORS(NND_NAME)
#undef NND_NAME
      NND_NUM_DOUBLE_OPERATORS
};

/* A source: operand 0 .. NND_OPERANDS - 1, then results, then constants. */
#define NND_FIRST_RESULT NND_OPERANDS
#define NND_FIRST_CONSTANT (NND_OPERANDS + NND_RESULTS)
#define NND_SOURCES (NND_FIRST_CONSTANT + NND_CONSTANTS)

struct nnd_instruction {
  uint8_t operator_, to, source[3]; /* `to`: a result */
};

/* The outcome is the source `outcome`. Constants are there as whole vectors of the domain. */
struct nnd_program {
  int domain, num_instructions, num_operands, outcome;
  struct nnd_instruction instructions[NND_INSTRUCTIONS];
  union {
    vf constants[NND_CONSTANTS];
    vl whole[NND_CONSTANTS];
    vd doubles[NND_CONSTANTS];
  };
};

NND_INLINE vf nnd_vector_of(struct nnd_source source, int i) { return ((const vf_any *)source.at)[i * source.step]; }

/* Runs a program of float32 over `count` vectors, at most NND_AT_ONCE, of its operands; returns where the outcome lies,
 * which is in `results`, memory of NND_RESULTS * NND_AT_ONCE vectors, or in an operand, or in the program. */
struct nnd_source nnd_program_run(const struct nnd_program *program, const struct nnd_source *operands, int count,
                                  vf *results);

/* The same, whose outcome lies at `to`, any floats: where an operand lies that is read vector by vector, or none. */
void nnd_program_put(const struct nnd_program *program, const struct nnd_source *operands, int count, vf *results,
                     float *to);

/* The same of programs of int64 and of float64. */
struct nnd_source nnd_whole_program_run(const struct nnd_program *program, const struct nnd_source *operands, int count,
                                        vl *results);
struct nnd_source nnd_double_program_run(const struct nnd_program *program, const struct nnd_source *operands,
                                         int count, vd *results);

/* Ends sums of `count` neighbouring pixels in place. */
void nnd_end_program(const struct nnd_program *program, vf *sums, int count, const nnd_elem *residual, vf number);

#endif
