/* SPDX-License-Identifier: Apache-2.0
 *
 * Which edges of the library the mutants have reached, and how often in one go: once, twice, 3, 4 to 7, ... times, as
 * AFL counts them. The compiler counts in `[begin, end)`, a byte an edge (-fsanitize-coverage=inline-8bit-counters).
 */
#ifndef MUTANT_EDGES_H
#define MUTANT_EDGES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static struct {
  uint8_t *begin, *end, *seen; /* `seen`: a bit for each class of counts */
  int64_t reached;             /* edges that were reached at all */
} edges;

void __sanitizer_cov_8bit_counters_init(uint8_t *begin, uint8_t *end) { /* each object tells the same, all of them */
  edges.begin = begin, edges.end = end;
}

static int64_t num_edges(void) { return edges.end - edges.begin; }

static void forget_edges(void) { memset(edges.begin, 0, (size_t)num_edges()); }

static uint8_t class_of(uint8_t count) {
  if (count <= 3) return count == 3 ? 4 : count;
  return count >= 128 ? 128 : count >= 32 ? 64 : count >= 16 ? 32 : count >= 8 ? 16 : 8;
}

/* Remembers the edges that were counted since they were forgotten; returns whether there is a class that is new. */
static int learn_edges(void) {
  int is_new = 0;
  if (!edges.seen) edges.seen = calloc((size_t)num_edges(), 1);
  for (int64_t i = 0; i < num_edges(); i++) {
    uint64_t some;
    if (i + 8 <= num_edges() && (memcpy(&some, edges.begin + i, 8), !some)) {
      i += 7;
      continue;
    }
    const uint8_t class = class_of(edges.begin[i]);
    if (!(class & ~edges.seen[i])) continue;
    edges.reached += !edges.seen[i];
    edges.seen[i] |= class;
    is_new = 1;
  }
  return is_new;
}

#endif
