/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a plan: 64-bit little-endian words, read from front to back; nothing points anywhere.
 *
 *   magic, version, number of words of the whole plan
 *   symbols      count                                         numbers that a caller gives
 *   rules        count, each: kind, a, b                       sizes (enum nnd_size_kind)
 *   weights      count, each: element, offset in bytes, rank, sizes...
 *   values       count, each: kind, number                     (enum nnd_value_kind)
 *   tensors      count, each: value (-1: no memory), element, blocked, rank, rules...
 *   inputs       count, each: tensor
 *   outputs      count, each: tensor
 *   programs     count, each: domain, operands, constants, each as the bits of a float or of an int64,
 *                instructions, outcome; each instruction: operator, result, three sources
 *   texts        count, each: bytes, then these in whole words
 *   steps        count, each: operator (a text), label (a text), words, then these (../plan_words.h)
 */
#ifndef NND_PLAN_H
#define NND_PLAN_H

#define NND_PLAN_MAGIC 0x4e414c50444e4eLL /* "NNDPLAN" */
#define NND_PLAN_VERSION 4

/* More of anything is refused. */
#define NND_MOST_COUNT ((int64_t)1 << 20)
#define NND_MOST_SIZE ((int64_t)1 << 40)

#endif
