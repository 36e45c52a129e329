/* SPDX-License-Identifier: Apache-2.0
 *
 * n-grams of a pool, as a tree, and how often they stand in a row of whole numbers.
 *
 * Gram i, whose last number is `keys`[i], goes on with that from gram `parents`[i], which stands before it, or begins
 * where that is -1. `columns`[i] is where it counts, -1 where it only leads to others. A gram of several numbers counts
 * where they stand next to each other and, for up to `skips`, so many places apart; each time its weight is added to
 * its column, or it is put there once.
 */
#ifndef NND_GRAMS_H
#define NND_GRAMS_H

#include "model/words.h"
#include "ops/indices.h"

#define NND_MOST_GRAMS ((nnd_size)1 << 27)

NND_RECORD(grams)

/* What is found under a gram and a number that follows it; `gram` -1: the slot is free. */
struct nnd_gram_slot {
  int64_t key;
  int32_t parent, gram;
};

struct nnd_gram_tree {
  struct nnd_gram_slot *slots;
  uint64_t last_slot;
  const int32_t *columns;
  const float *weights;
  int is_once;
  nnd_size skips, width;
};

NND_INLINE uint64_t nnd_mixed(uint64_t hash) {
  hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
  return hash ^ hash >> 32;
}

/* How many slots so many things are found in by their hash: a power of two, more than the things. */
NND_INLINE nnd_size nnd_slots_for(nnd_size count) {
  nnd_size num_slots = 2;
  while (num_slots < 2 * count) num_slots *= 2;
  return num_slots;
}

/* The slot of a gram, or the free one in which it would be: there are more slots than grams. */
NND_INLINE struct nnd_gram_slot *nnd_gram_at(const struct nnd_gram_tree *tree, int32_t parent, int64_t key) {
  uint64_t at = nnd_mixed(((uint64_t)key ^ (uint64_t)parent << 40) * UINT64_C(0x9e3779b97f4a7c15)) & tree->last_slot;
  while (tree->slots[at].gram >= 0 && (tree->slots[at].parent != parent || tree->slots[at].key != key))
    at = (at + 1) & tree->last_slot;
  return &tree->slots[at];
}

/* Copies the tables, and checks what was copied. */
static int nnd_take_grams(struct nnd_opener *o, const struct nnd_grams *words, struct nnd_gram_tree *tree) {
  const struct nnd_weight_data *keys = words->keys, *parents = words->parents, *columns = words->columns;
  const struct nnd_weight_data *weights = words->weights;
  if (!keys || !parents || !columns || keys->element != NND_INT64 || keys->count > NND_MOST_GRAMS ||
      parents->count != keys->count || columns->count != keys->count || (weights && weights->count != keys->count))
    return nnd_fail(o->message, "grams, their keys, parents, columns and weights do not fit each other");
  const nnd_size count = keys->count, num_slots = nnd_slots_for(count);
  tree->slots = nnd_packed(o, num_slots * (nnd_size)sizeof *tree->slots);
  int32_t *of_columns = nnd_packed(o, count * (nnd_size)sizeof *of_columns);
  if (o->message->failed) return 0;
  tree->columns = of_columns, tree->weights = weights ? weights->data : NULL;
  tree->is_once = words->is_once, tree->skips = words->skips, tree->width = words->width;
  tree->last_slot = (uint64_t)num_slots - 1;
  for (nnd_size i = 0; i < num_slots; i++) tree->slots[i].gram = -1;
  for (nnd_size i = 0; i < count; i++) {
    const int64_t key = ((const int64_t *)keys->data)[i];
    const int32_t parent = ((const int32_t *)parents->data)[i];
    of_columns[i] = ((const int32_t *)columns->data)[i];
    if (parent < -1 || parent >= i || of_columns[i] < -1 || of_columns[i] >= tree->width)
      return nnd_fail(o->message, "gram %lld goes on from a later one, or counts elsewhere", (long long)i);
    struct nnd_gram_slot *slot = nnd_gram_at(tree, parent, key);
    if (slot->gram >= 0) return nnd_fail(o->message, "gram %lld stands there twice", (long long)i);
    *slot = (struct nnd_gram_slot){key, parent, (int32_t)i};
  }
  return 1;
}

NND_INLINE void nnd_count_gram(const struct nnd_gram_tree *tree, int32_t gram, float *out) {
  const int32_t column = tree->columns[gram];
  if (column < 0) return;
  const float weight = tree->weights ? tree->weights[gram] : 1.0f;
  out[column] = tree->is_once ? weight : out[column] + weight;
}

/* Counts the grams of `length` numbers from `in` on, into a row of zeros. */
NND_INLINE void nnd_count_row(const struct nnd_gram_tree *tree, const void *in, int is_wide, nnd_size length,
                              float *out) {
  for (nnd_size apart = 1; apart <= tree->skips + 1 && apart <= nnd_max(1, length - 1); apart++)
    for (nnd_size i = 0; i < length; i++) {
      int32_t gram = -1;
      for (nnd_size at = i; at < length; at += apart) {
        gram = nnd_gram_at(tree, gram, nnd_whole_at(in, is_wide, at))->gram;
        if (gram < 0) break;
        if (at > i || apart == 1) nnd_count_gram(tree, gram, out); /* one number alone skips nothing */
      }
    }
}

#endif
