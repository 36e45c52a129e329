/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise units. A unit takes the values of a block in registers, does one operator and calls the unit of the next
 * row with the results: rows that go on with the next row are one pass over the data, and nothing between is stored.
 *
 * Each comes in two sizes: a block of NND_LINK_VECTORS vectors, which the calling convention passes in registers, and a
 * variable one of 1..NND_LANES floats. A second operand is `each` (its floats lie side by side) or `all` (one float).
 */
#ifndef NND_UNITS_LINKS_H
#define NND_UNITS_LINKS_H

#include "some.h"
#include "activation.h"

#define NND_LINK_VECTORS 8
#define NND_LINK_FLOATS (NND_LINK_VECTORS * NND_LANES)

struct nnd_link;
typedef void nnd_begin_unit(const struct nnd_link *link, nnd_size at);
typedef void nnd_block_unit(const struct nnd_link *link, nnd_size at, vf, vf, vf, vf, vf, vf, vf, vf);
typedef void nnd_some_unit(const struct nnd_link *link, nnd_size at, nnd_size count, vf x);

/* One row of a table, bound: its units and its operand's memory; the first loads and the last stores there. */
struct nnd_link {
  nnd_block_unit *block;
  nnd_some_unit *some;
  float *place;
};

#define NND_TAIL_CALL __attribute__((musttail)) return
#define NND_HELD vf a, vf b, vf c, vf d, vf e, vf f, vf g, vf h
#define NND_EACH(i) nnd_load_any(link->place + at + (i)*NND_LANES)
#define NND_NEXT_BLOCK(...) NND_TAIL_CALL link[1].block(link + 1, at, __VA_ARGS__)

#define NND_ONE_OPERAND(name, do)                                                                                      \
  static void nnd_block_##name(const struct nnd_link *link, nnd_size at, NND_HELD) {                                   \
    NND_NEXT_BLOCK(do(a), do(b), do(c), do(d), do(e), do(f), do(g), do(h));                                            \
  }                                                                                                                    \
  static void nnd_some_##name(const struct nnd_link *link, nnd_size at, nnd_size count, vf x) {                        \
    NND_TAIL_CALL link[1].some(link + 1, at, count, do(x));                                                            \
  }
#define NND_TWO_OPERANDS(name, do)                                                                                     \
  static void nnd_block_each_##name(const struct nnd_link *link, nnd_size at, NND_HELD) {                              \
    NND_NEXT_BLOCK(do(a, NND_EACH(0)), do(b, NND_EACH(1)), do(c, NND_EACH(2)), do(d, NND_EACH(3)),                     \
                   do(e, NND_EACH(4)), do(f, NND_EACH(5)), do(g, NND_EACH(6)), do(h, NND_EACH(7)));                    \
  }                                                                                                                    \
  static void nnd_block_all_##name(const struct nnd_link *link, nnd_size at, NND_HELD) {                               \
    const vf y = nnd_splat(*link->place);                                                                              \
    NND_NEXT_BLOCK(do(a, y), do(b, y), do(c, y), do(d, y), do(e, y), do(f, y), do(g, y), do(h, y));                    \
  }                                                                                                                    \
  static void nnd_some_each_##name(const struct nnd_link *link, nnd_size at, nnd_size count, vf x) {                   \
    NND_TAIL_CALL link[1].some(link + 1, at, count, do(x, nnd_load_first(link->place + at, count, 1.0f)));             \
  }                                                                                                                    \
  static void nnd_some_all_##name(const struct nnd_link *link, nnd_size at, nnd_size count, vf x) {                    \
    NND_TAIL_CALL link[1].some(link + 1, at, count, do(x, nnd_splat(*link->place)));                                   \
  }

NND_INLINE vf nnd_op_sub_from(vf a, vf b) { return b - a; }
NND_INLINE vf nnd_op_div_into(vf a, vf b) { return b / a; }

#define NND_FIRST_ACTIVATION_LINK 40
#define NND_ACTIVATION_UNIT(X, number, name, NAME, function) X(NND_FIRST_ACTIVATION_LINK + number, name, function)

/* X(number, name, function): what a table's row names. */
#define NND_ONE_OPERAND_UNITS(X)                                                                                       \
  X(32, relu, nnd_op_relu) X(33, neg, nnd_op_neg) X(34, abs, nnd_op_abs) X(35, sqrt, nnd_op_sqrt)                      \
  X(36, reciprocal, nnd_op_reciprocal) X(37, floor, nnd_op_floor) X(38, ceil, nnd_op_ceil) X(39, exp, nnd_op_exp)      \
  X(40, log, nnd_op_log) X(41, erf, nnd_op_erf) NND_LATE_ACTIVATIONS(NND_ACTIVATION_UNIT, X)                           \
  X(47, softplus, nnd_op_softplus)
#define NND_TWO_OPERAND_UNITS(X)                                                                                       \
  X(64, add, nnd_op_add) X(65, sub, nnd_op_sub) X(66, mul, nnd_op_mul) X(67, div, nnd_op_div) X(68, max, nnd_op_max)   \
  X(69, min, nnd_op_min) X(70, sub_from, nnd_op_sub_from) X(71, div_into, nnd_op_div_into)
#define NND_FIRST_LINK 32
#define NND_FIRST_TWO_OPERANDS 64
#define NND_END_OF_LINKS 72

#define NND_DEFINE_ONE(number, name, do) NND_ONE_OPERAND(name, do)
#define NND_DEFINE_TWO(number, name, do) NND_TWO_OPERANDS(name, do)
NND_ONE_OPERAND_UNITS(NND_DEFINE_ONE)
NND_TWO_OPERAND_UNITS(NND_DEFINE_TWO)

/* By number, and whether the operand is one float. */
#define NND_LISTED_ONE(number, name, do) [number] = {{nnd_block_##name, nnd_some_##name, 0}},
#define NND_LISTED_TWO(number, name, do)                                                                               \
  [number] = {{nnd_block_each_##name, nnd_some_each_##name, 0}, {nnd_block_all_##name, nnd_some_all_##name, 0}},
static const struct nnd_link nnd_link_units[NND_END_OF_LINKS][2] = {
    NND_ONE_OPERAND_UNITS(NND_LISTED_ONE) NND_TWO_OPERAND_UNITS(NND_LISTED_TWO)};

/* What begins a pass, and what ends one. */
static void nnd_begin_each(const struct nnd_link *link, nnd_size at) {
  link[1].block(link + 1, at, NND_EACH(0), NND_EACH(1), NND_EACH(2), NND_EACH(3), NND_EACH(4), NND_EACH(5), NND_EACH(6),
                NND_EACH(7));
}
static void nnd_begin_all(const struct nnd_link *link, nnd_size at) {
  const vf x = nnd_splat(*link->place);
  link[1].block(link + 1, at, x, x, x, x, x, x, x, x);
}
static void nnd_block_store(const struct nnd_link *link, nnd_size at, NND_HELD) {
  float *to = link->place + at;
  nnd_store_any(to, a);
  nnd_store_any(to + NND_LANES, b);
  nnd_store_any(to + 2 * NND_LANES, c);
  nnd_store_any(to + 3 * NND_LANES, d);
  nnd_store_any(to + 4 * NND_LANES, e);
  nnd_store_any(to + 5 * NND_LANES, f);
  nnd_store_any(to + 6 * NND_LANES, g);
  nnd_store_any(to + 7 * NND_LANES, h);
}
static void nnd_some_store(const struct nnd_link *link, nnd_size at, nnd_size count, vf x) {
  nnd_store_first(link->place + at, x, count);
}

#endif
