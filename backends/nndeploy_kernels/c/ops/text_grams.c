/* SPDX-License-Identifier: Apache-2.0
 *
 * text_grams: how often the n-grams of a pool (ops/grams.h) stand in the tokens of each text.
 *
 * Texts are UTF-8, one behind the other; `ends` says where each one ends, and is held to what there is. A token is a run
 * of bytes of a set, of `least` characters or more; or each character. Bytes of ASCII may change their case before. A
 * token's number is the place of its word in `words`, of which `word_ends` says where each ends; -1: it is no word.
 *
 * Workers share texts.
 */
#include "ops/grams.h"

#define NND_NOT_ASCII 128

NND_SET(letter_case);
NND_RECORD(tokens)
NND_RECORD(text_grams)

struct nnd_word_slot {
  uint64_t hash;
  int32_t word; /* -1: the slot is free */
};

struct nnd_text_grams_own {
  int in, ends, out, is_run;
  nnd_size least;
  struct nnd_gram_tree tree;
  uint8_t folded[256], is_in_token[256];
  const uint8_t *words;
  int32_t *word_ends;
  struct nnd_word_slot *slots;
  uint64_t last_slot;
};

struct nnd_text_grams_fields {
  const struct nnd_text_grams_own *own;
  nnd_size num_bytes, rows;
};

NND_INLINE uint64_t nnd_with_byte(uint64_t hash, uint8_t byte) { return (hash ^ byte) * UINT64_C(0x100000001b3); }

NND_INLINE nnd_size nnd_word_begin(const struct nnd_text_grams_own *own, int32_t word) {
  return word ? own->word_ends[word - 1] : 0;
}

/* Whether a word is the bytes [begin, end) of a text once their case has changed. */
NND_INLINE int nnd_is_word(const struct nnd_text_grams_own *own, int32_t word, const uint8_t *text, nnd_size count) {
  const nnd_size begin = nnd_word_begin(own, word);
  if (own->word_ends[word] - begin != count) return 0;
  for (nnd_size i = 0; i < count; i++)
    if (own->words[begin + i] != own->folded[text[i]]) return 0;
  return 1;
}

/* The word of a token, whose bytes have this hash once their case has changed; -1: there is none. */
NND_INLINE int32_t nnd_word_of(const struct nnd_text_grams_own *own, const uint8_t *text, nnd_size count,
                               uint64_t hash) {
  for (uint64_t at = nnd_mixed(hash) & own->last_slot;; at = (at + 1) & own->last_slot) {
    const struct nnd_word_slot *slot = &own->slots[at];
    if (slot->word < 0 || (slot->hash == hash && nnd_is_word(own, slot->word, text, count))) return slot->word;
  }
}

static int nnd_take_words(struct nnd_opener *o, const struct nnd_weight_data *words, const struct nnd_weight_data *ends,
                          struct nnd_text_grams_own *own) {
  if (!words || !ends || words->element != NND_UINT8 || ends->count > NND_MOST_GRAMS)
    return nnd_fail(o->message, "tokens without words");
  const nnd_size count = ends->count, num_slots = nnd_slots_for(count);
  own->word_ends = nnd_packed(o, count * (nnd_size)sizeof *own->word_ends);
  own->slots = nnd_packed(o, num_slots * (nnd_size)sizeof *own->slots);
  if (o->message->failed) return 0;
  own->words = words->data, own->last_slot = (uint64_t)num_slots - 1;
  memcpy(own->word_ends, ends->data, (size_t)count * sizeof *own->word_ends);
  for (nnd_size i = 0; i < num_slots; i++) own->slots[i] = (struct nnd_word_slot){0, -1};
  for (nnd_size i = 0, begin = 0; i < count; begin = own->word_ends[i++]) {
    if (own->word_ends[i] < begin || own->word_ends[i] > words->count)
      return nnd_fail(o->message, "word %lld ends elsewhere", (long long)i);
    uint64_t hash = 0;
    for (nnd_size k = begin; k < own->word_ends[i]; k++) hash = nnd_with_byte(hash, own->words[k]);
    uint64_t at = nnd_mixed(hash) & own->last_slot;
    while (own->slots[at].word >= 0) at = (at + 1) & own->last_slot;
    own->slots[at] = (struct nnd_word_slot){hash, (int32_t)i};
  }
  return 1;
}

static int nnd_open_text_grams(struct nnd_opener *o) {
  struct nnd_text_grams_own *own = nnd_own(o, sizeof *own);
  struct nnd_text_grams words;
  if (!own || !nnd_read_text_grams(o, &words)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[words.in], *ends = &o->model->tensors[words.ends];
  const struct nnd_weight_data *set = words.tokens.set;
  own->in = words.in, own->ends = words.ends, own->out = words.out;
  own->is_run = words.tokens.is_run, own->least = words.tokens.least;
  o->step->takes_empty = 1;
  if (in->element != NND_UINT8 || in->is_blocked || ends->element != NND_INT64 || ends->is_blocked ||
      o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "tokens of what is no text, or counted in another layout");
  if (!set || set->element != NND_UINT8 || set->count != (nnd_size)sizeof own->is_in_token)
    return nnd_fail(o->message, "a set of other than 256 bytes");
  memcpy(own->is_in_token, set->data, sizeof own->is_in_token);
  for (int i = 0; i < 256; i++) {
    const int is_upper = i >= 'A' && i <= 'Z', is_lower = i >= 'a' && i <= 'z';
    const int changes =
        words.tokens.letter_case == NND_LOWER ? is_upper : is_lower && words.tokens.letter_case != NND_AS_IS;
    own->folded[i] = (uint8_t)(changes ? i ^ ('a' ^ 'A') : i);
  }
  return nnd_take_words(o, words.tokens.words, words.tokens.word_ends, own) &&
         nnd_take_grams(o, &words.grams, &own->tree);
}

/* Writes the words of the tokens of a text; returns how many tokens there are. */
static nnd_size nnd_words_of_text(const struct nnd_text_grams_own *own, const uint8_t *text, nnd_size count,
                                  int32_t *to) {
  nnd_size found = 0;
  for (nnd_size at = 0; at < count;) {
    const nnd_size begin = at;
    nnd_size characters = 0;
    uint64_t hash = 0;
    for (; at < count; at++) {
      const uint8_t byte = own->folded[text[at]];
      const int begins_one = (byte & 0xc0) != NND_NOT_ASCII; /* no byte that goes on with a character */
      if (own->is_run ? !own->is_in_token[byte] : begins_one && at > begin) break;
      characters += begins_one;
      hash = nnd_with_byte(hash, byte);
    }
    if (at > begin && characters >= own->least) to[found++] = nnd_word_of(own, text + begin, at - begin, hash);
    if (own->is_run) at++; /* what ended the run is in no token */
  }
  return found;
}

static void nnd_run_text_grams(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_text_grams_fields *t = fields;
  const struct nnd_text_grams_own *own = t->own;
  const nnd_size width = own->tree.width;
  const uint8_t *texts = at[1];
  const int64_t *ends = at[2];
  int32_t *numbers = (int32_t *)(void *)part.scratch;
  nnd_size first, last;
  nnd_share(t->rows, part, &first, &last);
  memset((float *)at[0] + first * width, 0, (size_t)((last - first) * width) * sizeof(float));
  for (nnd_size row = first; row < last; row++) {
    const nnd_size begin = row ? nnd_max(0, nnd_min(t->num_bytes, ends[row - 1])) : 0;
    const nnd_size end = nnd_max(begin, nnd_min(t->num_bytes, ends[row]));
    const nnd_size count = nnd_words_of_text(own, texts + begin, end - begin, numbers);
    nnd_count_row(&own->tree, numbers, 0, count, (float *)at[0] + row * width);
  }
}

static int nnd_make_text_grams(struct nnd_maker *m) {
  const struct nnd_text_grams_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *ends = nnd_shape_of(m, own->ends);
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  struct nnd_text_grams_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->rank != 1 || ends->rank != 1 || out->rank != 2 || out->sizes[0] != ends->sizes[0] ||
      out->sizes[1] != own->tree.width)
    return nnd_fail(m->message, "grams of texts are counted in other rows or columns");
  t->own = own, t->num_bytes = in->count, t->rows = ends->count;
  m->scratch_bytes = t->num_bytes * (nnd_size)sizeof(int32_t); /* a token has a byte at least */
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->ends);
  nnd_tell_operations(m, t->num_bytes + t->rows * own->tree.width, 4);
  m->instance->run = nnd_run_text_grams;
  return 1;
}

const struct nnd_op nnd_op_text_grams = {"text_grams", nnd_open_text_grams, nnd_make_text_grams};
