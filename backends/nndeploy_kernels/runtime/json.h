/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON (RFC 8259) as a tree in the memory of an arena. Refused are: text that is no UTF-8 JSON, a zero in a string, a
 * key that stands twice, more than NND_JSON_DEPTH levels.
 */
#ifndef NND_RUNTIME_JSON_H
#define NND_RUNTIME_JSON_H

#include "runtime/inside.h"

#define NND_JSON_DEPTH 64

enum nnd_json_kind { NND_NULL, NND_FALSE, NND_TRUE, NND_INTEGER, NND_REAL, NND_STRING, NND_ARRAY, NND_OBJECT };

struct nnd_json {
  enum nnd_json_kind kind;
  int64_t count;        /* of items of an array or object */
  int64_t integer;      /* of an integer; one that takes more than 64 bits is a real */
  struct nnd_text text; /* of a string; of a number as it stands in what was parsed */
  struct nnd_text key;  /* where this is a member of an object */
  struct nnd_json *first, *next;
};

/* Returns below, at or above zero where a text is before, the same as or behind another by its bytes. */
int nnd_text_order(const struct nnd_text *a, const struct nnd_text *b);

/* Returns null and the error where the text is none. */
const struct nnd_json *nnd_json_parse(const char *text, int64_t size, struct nnd_arena *arena, nnd_error *error);

/* Each returns null where `at` is null, of another kind, or has none such: so that they can be put one into another. */
const struct nnd_json *nnd_json_member(const struct nnd_json *at, const char *key);
const struct nnd_json *nnd_json_of_kind(const struct nnd_json *at, enum nnd_json_kind kind);

/* Returns 1 and the number, 0 where it is no integer between two. */
int nnd_json_integer(const struct nnd_json *at, int64_t low, int64_t high, int64_t *number);

/* Returns 1 and the number as float64, 0 where `at` is null or no number, or one larger than any float. */
int nnd_json_number(const struct nnd_json *at, double *number);

#define NND_EACH(item, of) for (const struct nnd_json *item = (of) ? (of)->first : NULL; item; item = item->next)

#endif
