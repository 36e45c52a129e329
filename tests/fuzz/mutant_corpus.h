/* SPDX-License-Identifier: Apache-2.0
 *
 * What mutants are made from: the files to begin with, and the corpus, in groups: seeds, then mutants that did what was
 * wanted and reached an edge that none had reached, then those that reached one as often as none had, last those that
 * were refused, whose mutants seldom come further. And how long a mutant may take.
 *
 * Who includes this says before what a `struct entry` is, with `picks`: how often it was mutated.
 */
#ifndef MUTANT_CORPUS_H
#define MUTANT_CORPUS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "mutant_dice.h"

#define SECONDS 20          /* of processor time for a mutant */
#define WAITING_SECONDS 300 /* for one that does nothing, on a machine that is busy */

enum group { SEEDS, NEW_EDGES, NEW_COUNTS, REFUSED, NUM_GROUPS };
static struct {
  struct entry *entries;
  int64_t count;
} corpus[NUM_GROUPS];

/* Returns room for one more of a group, of which nothing is known. */
static struct entry *room_for_entry(int group) {
  const int64_t count = corpus[group].count++;
  if (!(count & (count - 1))) { /* room for twice as many */
    corpus[group].entries = realloc(corpus[group].entries, (size_t)(count ? 2 * count : 1) * sizeof(struct entry));
    if (!corpus[group].entries) exit(2);
  }
  return &corpus[group].entries[count];
}

static int64_t num_entries(void) {
  int64_t sum = 0;
  for (int group = 0; group < NUM_GROUPS; group++) sum += corpus[group].count;
  return sum;
}

/* Returns, of two of a group, the one that was mutated less often; `shares` are those of the groups, of a hundred. */
static struct entry *pick_entry(const int *shares) {
  int group = 0;
  for (int64_t share = below(100); (share -= shares[group]) >= 0;) group++;
  if (!corpus[group].count) group = SEEDS;
  struct entry *entries = corpus[group].entries;
  struct entry *one = &entries[below(corpus[group].count)], *other = &entries[below(corpus[group].count)];
  return one->picks <= other->picks ? one : other;
}

static void *read_file(const char *name, int64_t *num_bytes) {
  FILE *file = fopen(name, "rb");
  if (!file) exit(2);
  fseek(file, 0, SEEK_END);
  *num_bytes = ftell(file);
  rewind(file);
  void *data = malloc((size_t)*num_bytes + 1);
  if (!data || fread(data, 1, (size_t)*num_bytes, file) != (size_t)*num_bytes) exit(2);
  fclose(file);
  return data;
}

/* Ends the program by SIGPROF or SIGALRM where a mutant that begins now takes too long. */
static void limit_time(void) {
  const struct itimerval limit = {{0, 0}, {SECONDS, 0}};
  setitimer(ITIMER_PROF, &limit, NULL);
  alarm(WAITING_SECONDS);
}

#endif
