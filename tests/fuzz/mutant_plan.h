/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan -> a plan that is a little different: numbers, and whole records (model/plan.h has the layout), which may come
 * from another plan. Counts of records and the length are made right, so that a mutant is read far.
 */
#ifndef MUTANT_PLAN_H
#define MUTANT_PLAN_H

#include <string.h>

#include "mutant_dice.h"

#define MOST_WORDS 2048 /* of a plan */
#define MOST_RECORDS 512
#define HEAD_WORDS 3 /* magic, version, length */

enum section { RULES, WEIGHTS, VALUES, TENSORS, INPUTS, OUTPUTS, PROGRAMS, TEXTS, STEPS, NUM_SECTIONS };

/* Where the records of a section begin, and where the last ends; `count` 0 where the plan is not read so far. */
struct records {
  int64_t counted_at, count, begin[MOST_RECORDS + 1];
};

struct plan {
  int64_t count, words[MOST_WORDS];
};

/* How many words the record at `at` has; -1 where the plan ends within it. */
static int64_t record_words(const struct plan *plan, int section, int64_t at) {
  const int64_t *words = plan->words + at, left = plan->count - at;
  int64_t needed = 1, more = 0;
  switch (section) {
    case RULES: needed = 3; break;
    case WEIGHTS: needed = 3, more = left > 2 ? words[2] : 0; break;
    case VALUES: needed = 2; break;
    case TENSORS: needed = 4, more = left > 3 ? words[3] : 0; break;
    case PROGRAMS: {
      const int64_t constants = left > 2 ? words[2] : 0;
      needed = 5;
      if (constants < 0 || constants > left - 5) return -1;
      more = constants + (words[3 + constants] < MOST_WORDS ? 5 * words[3 + constants] : left);
      break;
    }
    case TEXTS: more = words[0] < MOST_WORDS ? (words[0] + 7) / 8 : left; break;
    case STEPS: needed = 3, more = left > 2 ? words[2] : 0; break;
  }
  return more < 0 || needed > left || more > left - needed ? -1 : needed + more;
}

/* Finds the records of each section, as far as the plan is one. */
static void find_records(const struct plan *plan, struct records *found) {
  int64_t at = HEAD_WORDS + 1;
  for (int section = 0; section < NUM_SECTIONS; section++) found[section].count = 0;
  for (int section = 0; section < NUM_SECTIONS && at < plan->count; section++) {
    struct records *one = &found[section];
    const int64_t count = plan->words[at];
    one->counted_at = at++;
    if (count < 0 || count > MOST_RECORDS) return;
    for (int64_t i = 0; i < count; i++) {
      const int64_t length = at < plan->count ? record_words(plan, section, at) : -1;
      if (length < 0) return;
      one->begin[i] = at, at += length;
    }
    one->begin[count] = at;
    one->count = count;
  }
}

/* Puts `length` words in the place of those in [begin, end). */
static int put_words(struct plan *plan, int64_t begin, int64_t end, const int64_t *words, int64_t length) {
  const int64_t count = plan->count - (end - begin) + length;
  int64_t kept[MOST_WORDS];
  if (count > MOST_WORDS) return 0;
  memcpy(kept, words, (size_t)length * sizeof *words); /* they may be of this plan */
  memmove(plan->words + begin + length, plan->words + end, (size_t)(plan->count - end) * sizeof *words);
  memcpy(plan->words + begin, kept, (size_t)length * sizeof *words);
  plan->count = count;
  return 1;
}

static void put_record(struct plan *plan, const struct records *at, int64_t number, int replaces, const int64_t *words,
                       int64_t length) {
  const int64_t begin = at->begin[number], end = replaces ? at->begin[number + 1] : begin;
  if (put_words(plan, begin, end, words, length)) plan->words[at->counted_at] += !replaces;
}

/* The number of a text of another plan in this one, which gets it where it has none; -1 where there is no room. */
static int64_t text_from(struct plan *plan, const struct plan *other, const struct records *others, int64_t number) {
  struct records found[NUM_SECTIONS];
  find_records(plan, found);
  const struct records *texts = &found[TEXTS];
  if (number < 0 || number >= others->count || !texts->count || texts->count == MOST_RECORDS) return -1;
  const int64_t begin = others->begin[number], length = others->begin[number + 1] - begin, *text = other->words + begin;
  for (int64_t i = 0; i < texts->count; i++)
    if (texts->begin[i + 1] - texts->begin[i] == length &&
        !memcmp(plan->words + texts->begin[i], text, (size_t)length * sizeof *text))
      return i;
  if (plan->count + length > MOST_WORDS) return -1;
  put_record(plan, texts, texts->count, 0, text, length);
  return texts->count;
}

/* Changes whole records: drops one, or puts one of this plan or of `other` beside or in the place of another. */
static void mutate_records(struct plan *plan, const struct plan *other) {
  struct records found[NUM_SECTIONS], others[NUM_SECTIONS];
  find_records(plan, found);
  find_records(other, others);
  const int section = below(2) ? STEPS : (int)below(NUM_SECTIONS);
  const struct records *at = &found[section];
  if (!at->count) return;
  const int64_t number = below(at->count);
  const int action = (int)below(8);
  if (action == 0) {
    put_words(plan, at->begin[number], at->begin[number + 1], plan->words, 0);
    plan->words[at->counted_at]--;
  } else if (action <= 2) {
    const int64_t from = below(at->count), length = at->begin[from + 1] - at->begin[from];
    put_record(plan, at, number, action == 1, plan->words + at->begin[from], length);
  } else if (action == 3 && others[section].count) { /* the whole section */
    const int64_t end = at->begin[at->count], begin = others[section].counted_at;
    put_words(plan, at->counted_at, end, other->words + begin, others[section].begin[others[section].count] - begin);
  } else if (others[section].count) {
    const int64_t from = below(others[section].count), begin = others[section].begin[from];
    const int64_t length = others[section].begin[from + 1] - begin;
    const int64_t name = section == STEPS ? text_from(plan, other, &others[TEXTS], other->words[begin]) : 0;
    find_records(plan, found);
    if (name < 0 || number >= at->count) return;
    put_record(plan, at, number, action & 1, other->words + begin, length);
    if (section == STEPS) plan->words[at->begin[number]] = name;
  }
}

/* Changes one word, or moves some. */
static void mutate_words(struct plan *plan) {
  int64_t *words = plan->words;
  const int64_t count = plan->count, body = count - HEAD_WORDS, at = HEAD_WORDS + below(body);
  switch (below(24)) {
    case 0:
    case 1: words[at] = odd_number(words, count); break;
    case 2: words[at] ^= 1ll << below(64); break;
    case 3:
    case 4:
    case 5:
    case 6: { /* a word nearby */
      const int64_t from = HEAD_WORDS + (at - HEAD_WORDS + below(9) - 4 + body) % body;
      words[at] = words[from];
      break;
    }
    case 7: { /* two words change places */
      const int64_t other = HEAD_WORDS + below(body), kept = words[at];
      words[at] = words[other], words[other] = kept;
      break;
    }
    case 8: { /* a run is copied over another */
      const int64_t from = HEAD_WORDS + below(body), length = below(16);
      for (int64_t k = 0; k < length && at + k < count && from + k < count; k++) words[at + k] = words[from + k];
      break;
    }
    case 9: put_words(plan, at, at, words + at, 1); break; /* a word more */
    case 10: {                                             /* a word less */
      if (count > 16) put_words(plan, at, at + 1, words, 0);
      break;
    }
    case 11: { /* the end is cut off */
      if (at > 16 && !below(4)) plan->count = at;
      break;
    }
    default: words[at] += below(2) ? 1 + below(3) : -1 - below(3);
  }
}

static void mutate_plan(struct plan *plan, const struct plan *other) {
  const int64_t records = below(3) ? 0 : 1 + below(3), words = records && below(2) ? 0 : below(3) ? 1 : 1 + below(4);
  for (int64_t i = 0; i < records; i++) mutate_records(plan, other);
  for (int64_t i = 0; i < words; i++) mutate_words(plan);
  if (!below(64))
    plan->words[below(HEAD_WORDS)] = odd_number(plan->words, plan->count);
  else
    plan->words[2] = plan->count;
}

/* Changes numbers among the weights: those that are places or axes are checked like those of plans. */
static void mutate_weights(char *weights, int64_t num_bytes) {
  for (int64_t i = below(4); i >= 0 && num_bytes >= 8; i--) {
    const int64_t number = below(2) ? below(32) - 8 : odd_number((const int64_t[]){0}, 1);
    const int each = below(2) ? 4 : 8;
    memcpy(weights + below(num_bytes / each) * each, &number, (size_t)each);
  }
}

#endif
