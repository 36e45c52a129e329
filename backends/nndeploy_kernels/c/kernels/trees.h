/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks through decision trees, several at a time: a walk alone waits for its loads, a dozen cycles a node.
 *
 * A node is 16 bytes, and its children lie side by side, so that a comparison is added to where they lie and nothing
 * branches. A leaf leads to itself: a walk that has ended waits there for the others.
 */
#ifndef NND_KERNELS_TREES_H
#define NND_KERNELS_TREES_H

#include "kernels/ordered.h"

#define NND_WALKS 8 /* at once: for more a core has no registers */

/* `threshold` as ordered.h has it; INT32_MIN, which is less than all elements, in a leaf. `child`: where the child lies
 * that is taken when the comparison fails, in bytes; the other one follows it. `relations` of elements to the threshold
 * with which they take that other one: none in a leaf. */
struct nnd_tree_node {
  int32_t threshold;
  uint32_t feature, child, relations;
};

/* Bits of `relations`. */
enum nnd_tree_relation { NND_TREE_LESS, NND_TREE_EQUAL, NND_TREE_GREATER, NND_TREE_NAN };
#define NND_TREE_AT_MOST (1u << NND_TREE_LESS | 1u << NND_TREE_EQUAL)

/* What is compared in the nodes of an ensemble:
 *   at most   x <= threshold
 *   missing   the same, and a NaN takes the child that the node says
 *   any       whatever the node says */
enum nnd_tree_comparison { NND_TREES_AT_MOST, NND_TREES_MISSING, NND_TREES_ANY };

NND_INLINE uint32_t nnd_tree_step(const struct nnd_tree_node *node, int32_t x, int comparison) {
  const uint32_t at_most = x <= node->threshold, none = x == NND_ORDERED_NAN;
  if (comparison == NND_TREES_AT_MOST) return at_most;
  if (comparison == NND_TREES_MISSING) return at_most | (none & node->relations >> NND_TREE_NAN);
  const uint32_t at_least = x >= node->threshold;
  const uint32_t relation = none ? NND_TREE_NAN : at_least + (at_least & ~at_most & 1);
  return node->relations >> relation & 1;
}

/* Goes from the nodes `at` to leaves, walk i by the elements x[i]. */
NND_INLINE void nnd_walk_trees(const struct nnd_tree_node *nodes, const int32_t *const *x, uint32_t *at,
                               int comparison) {
  uint32_t moved;
  do {
    moved = 0;
    NND_UNROLL
    for (int i = 0; i < NND_WALKS; i++) {
      const struct nnd_tree_node *node = (const void *)((const char *)nodes + at[i]);
      uint32_t next = node->child + nnd_tree_step(node, x[i][node->feature], comparison) * (uint32_t)sizeof *node;
      NND_ONE_REGISTER(next); /* else the compiler makes vectors of walks, whose gathers take longer */
      moved |= next ^ at[i];
      NND_ONE_REGISTER(moved); /* else it branches behind each walk */
      at[i] = next;
    }
  } while (moved);
}

#endif
