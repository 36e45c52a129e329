/* SPDX-License-Identifier: Apache-2.0
 *
 * What ../plan_words.h says of the words of a step -> fields that hold them, and a function that reads them with their
 * bounds. Offsets, sizes and strides are rules, tensors their numbers, -1 where there is none.
 *
 *   NND_FIELDS(words)         the fields, for a struct that holds more: `num_axes` beside `axes`, where there are several
 *   NND_READER(words, type)   nnd_read_WORDS(o, type *w), which returns 0 with a message where one is out of bounds
 *   NND_RECORD(words)         struct nnd_WORDS of the fields alone, with its reader
 *   NND_SET(set)              enum nnd_SET of a set
 */
#ifndef NND_WORDS_H
#define NND_WORDS_H

#include "../plan_words.h"
#include "model/model.h"

#define NND_FIELDS(words) NND_WORDS_##words(NND_FIELD)
#define NND_READER(words, type)                                                                                        \
  static int nnd_read_##words(struct nnd_opener *o, type *w) {                                                         \
    NND_WORDS_##words(NND_READ_INTO) return !o->message->failed;                                                       \
  }
#define NND_RECORD(words)                                                                                              \
  struct nnd_##words {                                                                                                 \
    NND_FIELDS(words)                                                                                                  \
  };                                                                                                                   \
  NND_READER(words, struct nnd_##words)
#define NND_SET(set)                                                                                                   \
  enum nnd_##set { NND_CHOICES_##set(NND_CONSTANT) }
#define NND_CONSTANT(constant, name) constant,
#define NND_ONE(...) +1 /* how many there are */

/* clang-format off */
#define NND_FIELD(kind, ...) NND_FIELD_##kind(__VA_ARGS__)
#define NND_FIELD_INT(name, ...) int name;
#define NND_FIELD_SIZE(name, ...) nnd_size name;
#define NND_FIELD_WEIGHTS(name) const struct nnd_weight_data *name;
#define NND_FIELD_INPUT NND_FIELD_INT
#define NND_FIELD_INPUT_ANY NND_FIELD_INT
#define NND_FIELD_INPUT_NUMBER NND_FIELD_INT
#define NND_FIELD_OPTIONAL NND_FIELD_INT
#define NND_FIELD_OPTIONAL_ANY NND_FIELD_INT
#define NND_FIELD_OUTPUT NND_FIELD_INT
#define NND_FIELD_OUTPUT_ANY NND_FIELD_INT
#define NND_FIELD_OUTPUT_NUMBER NND_FIELD_INT
#define NND_FIELD_TENSOR NND_FIELD_INT
#define NND_FIELD_WEIGHT NND_FIELD_WEIGHTS
#define NND_FIELD_FLOATS NND_FIELD_WEIGHTS
#define NND_FIELD_VECTOR NND_FIELD_WEIGHTS
#define NND_FIELD_INT32S NND_FIELD_WEIGHTS
#define NND_FIELD_CONSTANT NND_FIELD_WEIGHTS
#define NND_FIELD_WEIGHT_OR_BYTES NND_FIELD_WEIGHTS
#define NND_FIELD_PROGRAM(name) const struct nnd_program *name;
#define NND_FIELD_PROGRAM_ANY NND_FIELD_PROGRAM
#define NND_FIELD_RULE NND_FIELD_SIZE
#define NND_FIELD_RULES(name, count) nnd_size name[count];
#define NND_FIELD_FLAG NND_FIELD_INT
#define NND_FIELD_CHOICE NND_FIELD_INT
#define NND_FIELD_NUMBER NND_FIELD_SIZE
#define NND_FIELD_NUMBERS(name, count, low, high) nnd_size name[count];
#define NND_FIELD_FLOAT(name, low, high) float name;
#define NND_FIELD_DOUBLE(name, low, high) double name;
#define NND_FIELD_PART(name, words) struct nnd_##words name;
#define NND_FIELD_LIST(name, words, least, most) int num_##name; struct nnd_##words name[most];
#define NND_FIELD_REST(name, words, most, behind) int num_##name; struct nnd_##words name[most];
#define NND_FIELD_PAIRS(name) nnd_size num_##name; const int64_t *name;

#define NND_READ_INTO(kind, ...) NND_READ_##kind(__VA_ARGS__)
#define NND_READ_INPUT(name) w->name = nnd_read_tensor(o);
#define NND_READ_INPUT_ANY(name) w->name = nnd_read_any_tensor(o);
#define NND_READ_INPUT_NUMBER(name) w->name = nnd_read_number_tensor(o);
#define NND_READ_OPTIONAL(name) w->name = nnd_read_optional_tensor(o);
#define NND_READ_OPTIONAL_ANY(name) w->name = nnd_read_any_optional_tensor(o);
#define NND_READ_OUTPUT(name) w->name = nnd_write_tensor(o);
#define NND_READ_OUTPUT_ANY(name) w->name = nnd_write_any_tensor(o);
#define NND_READ_OUTPUT_NUMBER(name) w->name = nnd_write_number_tensor(o);
#define NND_READ_TENSOR(name) w->name = nnd_seen_tensor(o);
#define NND_READ_WEIGHT(name) w->name = nnd_read_weight(o);
#define NND_READ_FLOATS NND_READ_WEIGHT
#define NND_READ_VECTOR NND_READ_WEIGHT
#define NND_READ_INT32S(name) w->name = nnd_constant_of(o, nnd_read_any_weight(o), NND_INT32);
#define NND_READ_CONSTANT(name) w->name = nnd_read_any_weight(o);
#define NND_READ_WEIGHT_OR_BYTES NND_READ_CONSTANT
#define NND_READ_PROGRAM(name) w->name = nnd_read_program(o);
#define NND_READ_PROGRAM_ANY(name) w->name = nnd_read_any_program(o);
#define NND_READ_RULE(name) w->name = nnd_read_rule(o);
#define NND_READ_RULES(name, count) for (int i = 0; i < (count); i++) w->name[i] = nnd_read_rule(o);
#define NND_READ_FLAG(name) w->name = (int)nnd_word(o, 0, 1);
#define NND_READ_CHOICE(name, set) w->name = (int)nnd_word(o, 0, NND_CHOICES_##set(NND_ONE) - 1);
#define NND_READ_NUMBER(name, low, high) w->name = nnd_word(o, low, high);
#define NND_READ_NUMBERS(name, count, low, high) for (int i = 0; i < (count); i++) w->name[i] = nnd_word(o, low, high);
#define NND_READ_FLOAT(name, low, high) w->name = (float)nnd_double_word(o, low, high);
#define NND_READ_DOUBLE(name, low, high) w->name = nnd_double_word(o, low, high);
#define NND_READ_PART(name, words) nnd_read_##words(o, &w->name);
#define NND_READ_LIST(name, words, least, most) \
  w->num_##name = (int)nnd_word(o, least, most); \
  for (int i = 0; i < w->num_##name; i++) nnd_read_##words(o, &w->name[i]);
#define NND_READ_REST(name, words, most, behind) \
  w->num_##name = nnd_rest_of_words(o, NND_WORDS_##words(NND_ONE), most, behind); \
  for (int i = 0; i < w->num_##name; i++) nnd_read_##words(o, &w->name[i]);
#define NND_READ_PAIRS(name) w->num_##name = nnd_read_pairs(o, &w->name);
/* clang-format on */

NND_RECORD(epilogue)
NND_RECORD(conv_window)

/* The end that an epilogue is, without its numbers and residual. */
NND_INLINE struct nnd_end nnd_end_of_words(const struct nnd_opener *o, const struct nnd_epilogue *words) {
  return nnd_end_of(o, words->program, words->residual >= 0, words->channel != NULL);
}

#endif
