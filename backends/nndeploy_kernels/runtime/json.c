/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/json.h"

#include <string.h>

#include "runtime/utf8.h"

#define NND_MOST_UNSORTED 256
#define NND_MOST_EXPONENT 400 /* of ten: no float has more */

struct nnd_json_reader {
  const char *at, *end;
  struct nnd_arena *arena;
  nnd_error *error;
  int depth;
};

static int nnd_json_fail(struct nnd_json_reader *r, const char *what) {
  return nnd_fail_with(r->error, NND_BAD_DATA, "not JSON: %s", what);
}

static void nnd_skip_space(struct nnd_json_reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

static int nnd_take(struct nnd_json_reader *r, char wanted) {
  nnd_skip_space(r);
  if (r->at == r->end || *r->at != wanted) return 0;
  r->at++;
  return 1;
}

static int nnd_word_of(struct nnd_json_reader *r, const char *word) {
  const size_t size = strlen(word);
  if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size)) return nnd_json_fail(r, "an unknown word");
  r->at += size;
  return 1;
}

static int nnd_hex4(struct nnd_json_reader *r, uint32_t *value) {
  if (r->end - r->at < 4) return 0;
  *value = 0;
  for (int i = 0; i < 4; i++) {
    const char c = *r->at++;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return 0;
    *value = *value << 4 | (uint32_t)digit;
  }
  return 1;
}

/* Writes the character of an escape behind \u; returns its bytes, 0 where it is none. */
static int nnd_escaped(struct nnd_json_reader *r, char *to) {
  uint32_t value, low;
  if (!nnd_hex4(r, &value) || !value || (value >= 0xdc00 && value < 0xe000)) return 0;
  if (value >= 0xd800 && value < 0xdc00) {
    if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u') return 0;
    r->at += 2;
    if (!nnd_hex4(r, &low) || low < 0xdc00 || low >= 0xe000) return 0;
    value = 0x10000 + ((value - 0xd800) << 10 | (low - 0xdc00));
  }
  return nnd_utf8_put(value, to);
}

static int nnd_string_of(struct nnd_json_reader *r, struct nnd_text *text) {
  const char *scan = ++r->at;
  while (scan < r->end && *scan != '"') scan += *scan == '\\' ? 2 : 1;
  if (scan >= r->end) return nnd_json_fail(r, "a string without an end");
  char *to = nnd_arena_take(r->arena, scan - r->at + 1, r->error);
  if (!to) return 0;
  text->data = to;
  while (*r->at != '"') {
    if (*r->at == '\\') {
      static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
      const char escape = r->at[1];
      const char *found = escape ? strchr(from, escape) : NULL;
      r->at += 2;
      const int size = escape == 'u' ? nnd_escaped(r, to) : found ? (*to = meant[found - from], 1) : 0;
      if (!size) return nnd_json_fail(r, "an escape that means nothing");
      to += size;
      continue;
    }
    const int size = (uint8_t)*r->at < 0x20 ? 0 : nnd_utf8_size((const uint8_t *)r->at, r->end - r->at);
    if (!size) return nnd_json_fail(r, "a string that is no UTF-8");
    memcpy(to, r->at, (size_t)size);
    r->at += size, to += size;
  }
  r->at++;
  text->size = to - text->data;
  return 1;
}

static int nnd_is_digit(const struct nnd_json_reader *r) { return r->at < r->end && *r->at >= '0' && *r->at <= '9'; }

static int nnd_skip_digits(struct nnd_json_reader *r) {
  if (!nnd_is_digit(r)) return nnd_json_fail(r, "a number without a digit");
  while (nnd_is_digit(r)) r->at++;
  return 1;
}

static int nnd_number_of(struct nnd_json_reader *r, struct nnd_json *value) {
  const int is_negative = *r->at == '-';
  value->text.data = r->at;
  r->at += is_negative;
  const char *digits = r->at;
  if (!nnd_skip_digits(r)) return 0;
  if (*digits == '0' && r->at - digits > 1) return nnd_json_fail(r, "a number that begins with 0");
  value->kind = NND_INTEGER;
  for (const char *digit = digits; digit < r->at; digit++) {
    int64_t with;
    if (__builtin_mul_overflow(value->integer, 10, &with) ||
        __builtin_sub_overflow(with, *digit - '0', &value->integer))
      value->kind = NND_REAL; /* its last digits do not count: nobody takes it as an integer */
  }
  if (!is_negative && value->integer == INT64_MIN) value->kind = NND_REAL;
  if (!is_negative && value->kind == NND_INTEGER) value->integer = -value->integer;
  if (r->at < r->end && *r->at == '.') {
    value->kind = NND_REAL;
    r->at++;
    if (!nnd_skip_digits(r)) return 0;
  }
  if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
    value->kind = NND_REAL;
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
    if (!nnd_skip_digits(r)) return 0;
  }
  value->text.size = r->at - value->text.data;
  return 1;
}

static int nnd_value_of(struct nnd_json_reader *r, struct nnd_json *value);

int nnd_text_order(const struct nnd_text *a, const struct nnd_text *b) {
  const int found = memcmp(a->data, b->data, (size_t)(a->size < b->size ? a->size : b->size));
  return found ? found : a->size < b->size ? -1 : a->size > b->size;
}

/* Checks that a key stands once; in the objects that bundles are made of keys are sorted, so the last one tells. */
static int nnd_check_key(struct nnd_json_reader *r, const struct nnd_json *of, const struct nnd_json *last,
                         const struct nnd_text *key, int *is_sorted) {
  *is_sorted = *is_sorted && (!last || nnd_text_order(&last->key, key) < 0);
  if (*is_sorted) return 1;
  if (of->count > NND_MOST_UNSORTED) return nnd_json_fail(r, "too many keys that are not sorted");
  NND_EACH(item, of) {
    if (!nnd_text_order(&item->key, key)) return nnd_json_fail(r, "a key that stands twice");
  }
  return 1;
}

static int nnd_items_of(struct nnd_json_reader *r, struct nnd_json *value, char end) {
  struct nnd_json *last = NULL;
  int is_sorted = 1;
  r->at++;
  if (++r->depth > NND_JSON_DEPTH) return nnd_json_fail(r, "too many levels");
  while (!nnd_take(r, end)) {
    if (last && !nnd_take(r, ',')) return nnd_json_fail(r, "an item without a comma");
    struct nnd_json *item = nnd_arena_take(r->arena, sizeof *item, r->error);
    if (!item) return 0;
    if (end == '}') {
      nnd_skip_space(r);
      if (r->at == r->end || *r->at != '"') return nnd_json_fail(r, "a member without a key");
      if (!nnd_string_of(r, &item->key)) return 0;
      if (!nnd_check_key(r, value, last, &item->key, &is_sorted)) return 0;
      if (!nnd_take(r, ':')) return nnd_json_fail(r, "a key without a colon");
    }
    if (!nnd_value_of(r, item)) return 0;
    if (last)
      last->next = item;
    else
      value->first = item;
    last = item;
    value->count++;
  }
  r->depth--;
  return 1;
}

static int nnd_value_of(struct nnd_json_reader *r, struct nnd_json *value) {
  nnd_skip_space(r);
  if (r->at == r->end) return nnd_json_fail(r, "it ends too soon");
  switch (*r->at) {
    case '{': value->kind = NND_OBJECT; return nnd_items_of(r, value, '}');
    case '[': value->kind = NND_ARRAY; return nnd_items_of(r, value, ']');
    case '"': value->kind = NND_STRING; return nnd_string_of(r, &value->text);
    case 't': value->kind = NND_TRUE; return nnd_word_of(r, "true");
    case 'f': value->kind = NND_FALSE; return nnd_word_of(r, "false");
    case 'n': value->kind = NND_NULL; return nnd_word_of(r, "null");
    default: return nnd_number_of(r, value);
  }
}

const struct nnd_json *nnd_json_parse(const char *text, int64_t size, struct nnd_arena *arena, nnd_error *error) {
  struct nnd_json_reader r = {text, text + size, arena, error, 0};
  struct nnd_json *value = nnd_arena_take(arena, sizeof *value, error);
  if (!value || !nnd_value_of(&r, value)) return NULL;
  nnd_skip_space(&r);
  if (r.at != r.end) {
    nnd_json_fail(&r, "something follows");
    return NULL;
  }
  return value;
}

const struct nnd_json *nnd_json_of_kind(const struct nnd_json *at, enum nnd_json_kind kind) {
  return at && at->kind == kind ? at : NULL;
}

const struct nnd_json *nnd_json_member(const struct nnd_json *at, const char *key) {
  NND_EACH(item, nnd_json_of_kind(at, NND_OBJECT)) {
    if (nnd_is_text(&item->key, key)) return item;
  }
  return NULL;
}

int nnd_json_integer(const struct nnd_json *at, int64_t low, int64_t high, int64_t *number) {
  if (!at || at->kind != NND_INTEGER || at->integer < low || at->integer > high) return 0;
  *number = at->integer;
  return 1;
}

/* Returns 10 to a power. */
static long double nnd_power_of_ten(int64_t exponent) {
  long double power = 1, square = 10;
  for (; exponent; exponent >>= 1, square *= square)
    if (exponent & 1) power *= square;
  return power;
}

/* Returns a mantissa times a power of ten. Both are exact in a double where they are small, else in a long double as far
 * as numbers are written to be read again, so that one rounding is left. */
static double nnd_scaled(uint64_t mantissa, int64_t exponent) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (!mantissa) return 0;
  if (mantissa <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22)
    return exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
  return (double)(exponent < 0 ? (long double)mantissa / nnd_power_of_ten(-exponent)
                               : (long double)mantissa * nnd_power_of_ten(exponent));
}

/* Reads what strtod would read otherwise where a program has set a locale. */
int nnd_json_number(const struct nnd_json *at, double *number) {
  uint64_t mantissa = 0;
  int64_t exponent = 0, written = 0;
  int is_behind_point = 0, is_negative = 0, is_small = 0;
  if (!at || (at->kind != NND_INTEGER && at->kind != NND_REAL)) return 0;
  const char *c = at->text.data, *end = c + at->text.size;
  if (*c == '-') is_negative = 1, c++;
  for (; c < end && *c != 'e' && *c != 'E'; c++) {
    if (*c == '.') {
      is_behind_point = 1;
    } else if (mantissa < UINT64_MAX / 10 - 1) {
      mantissa = 10 * mantissa + (uint64_t)(*c - '0');
      exponent -= is_behind_point;
    } else {
      exponent += !is_behind_point;
    }
  }
  if (c < end) is_small = *++c == '-', c += *c == '-' || *c == '+';
  for (; c < end; c++) written = written < NND_MOST_EXPONENT ? 10 * written + (*c - '0') : written;
  exponent += is_small ? -written : written;
  if (exponent > NND_MOST_EXPONENT) exponent = NND_MOST_EXPONENT;
  if (exponent < -NND_MOST_EXPONENT) exponent = -NND_MOST_EXPONENT;
  const double size = nnd_scaled(mantissa, exponent);
  *number = is_negative ? -size : size;
  return *number - *number == 0;
}
