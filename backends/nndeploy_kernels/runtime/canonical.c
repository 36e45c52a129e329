/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/canonical.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NND_MOST_DIGITS 17 /* of a float64 that is read again */
#define NND_MOST_EXPONENT 1000000

void nnd_write(struct nnd_writing *to, const char *text, int64_t size) {
  if (to->size + size > to->room) {
    const int64_t room = 2 * (to->size + size) + 256;
    char *larger = to->is_lost ? NULL : realloc(to->text, (size_t)room);
    if (!larger) {
      to->is_lost = 1;
      return;
    }
    to->text = larger, to->room = room;
  }
  memcpy(to->text + to->size, text, (size_t)size);
  to->size += size;
}

static void nnd_write_word(struct nnd_writing *to, const char *word) { nnd_write(to, word, (int64_t)strlen(word)); }

/* Returns the character that valid UTF-8 begins with, and its bytes. */
static uint32_t nnd_character_at(const uint8_t *at, int *size) {
  *size = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
  uint32_t value = *size == 1 ? *at : *at & (0xffu >> (*size + 1));
  for (int i = 1; i < *size; i++) value = value << 6 | (at[i] & 0x3fu);
  return value;
}

void nnd_write_string(struct nnd_writing *to, const struct nnd_text *text) {
  static const char special[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
  nnd_write(to, "\"", 1);
  for (int64_t i = 0; i < text->size;) {
    int size;
    const uint32_t value = nnd_character_at((const uint8_t *)text->data + i, &size);
    const char *found = value && value < 0x80 ? strchr(special, (int)value) : NULL;
    char escape[16];
    if (found) {
      snprintf(escape, sizeof escape, "\\%c", letters[found - special]);
      nnd_write_word(to, escape);
    } else if (value >= 0x20 && value < 0x7f) {
      nnd_write(to, text->data + i, 1);
    } else {
      if (value < 0x10000)
        snprintf(escape, sizeof escape, "\\u%04x", value);
      else
        snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xd800 + ((value - 0x10000) >> 10), 0xdc00 + (value & 0x3ff));
      nnd_write_word(to, escape);
    }
    i += size;
  }
  nnd_write(to, "\"", 1);
}

/* Reads the exponent [c, end) of a number, behind which nothing may be read; beyond any float64 it is only so large. */
static int64_t nnd_exponent_of(const char *c, const char *end) {
  const int is_signed = c < end && (*c == '-' || *c == '+'), is_negative = is_signed && *c == '-';
  int64_t exponent = 0;
  for (c += is_signed; c < end && exponent < NND_MOST_EXPONENT; c++) exponent = 10 * exponent + (*c - '0');
  return is_negative ? -exponent : exponent;
}

/* Splits the text of a number into its digits, without a point, and the power of ten of the last of them. */
static int nnd_digits_of(const struct nnd_text *text, char *digits, int room, int64_t *power) {
  int count = 0;
  const char *c = text->data + (*text->data == '-'), *end = text->data + text->size;
  *power = 0;
  for (int is_behind = 0; c < end && *c != 'e' && *c != 'E'; c++) {
    if (*c == '.') {
      is_behind = 1;
      continue;
    }
    if (count == room - 1) return 0;
    digits[count++] = *c;
    *power -= is_behind;
  }
  digits[count] = 0;
  if (c < end) *power += nnd_exponent_of(c + 1, end);
  return count;
}

/* Reads digits times a power of ten. There is no point, which a locale writes otherwise. */
static double nnd_from_digits(const char *digits, int64_t power) {
  char text[820];
  snprintf(text, sizeof text, "%se%lld", digits, (long long)power);
  return strtod(text, NULL);
}

/* Writes a float64 as Python does: the fewest digits that are read as it again, exponents below -4 and from 16 on. */
static void nnd_write_real(struct nnd_writing *to, const struct nnd_text *text) {
  char digits[800], shortest[40] = "";
  int64_t power;
  const double value = nnd_digits_of(text, digits, sizeof digits, &power) ? nnd_from_digits(digits, power) : HUGE_VAL;
  if (isinf(value)) return nnd_write_word(to, "?"); /* no text of any number */
  if (*text->data == '-') nnd_write(to, "-", 1);
  if (value == 0) return nnd_write_word(to, "0.0");
  int exponent = 0, count = 0;
  for (int wanted = 1; wanted <= NND_MOST_DIGITS; wanted++) {
    char written[48];
    snprintf(written, sizeof written, "%.*e", wanted - 1, value);
    count = 0;
    for (const char *c = written; *c != 'e'; c++)
      if (*c >= '0' && *c <= '9') shortest[count++] = *c;
    exponent = (int)strtol(strchr(written, 'e') + 1, NULL, 10);
    shortest[count] = 0;
    if (nnd_from_digits(shortest, exponent - (count - 1)) == value) break;
  }
  while (count > 1 && shortest[count - 1] == '0') shortest[--count] = 0;
  char out[64];
  if (exponent < -4 || exponent >= 16) {
    snprintf(out, sizeof out, "%.1s%s%se%+03d", shortest, count > 1 ? "." : "", shortest + 1, exponent);
  } else if (exponent < 0) {
    snprintf(out, sizeof out, "0.%.*s%s", -exponent - 1, "0000", shortest);
  } else {
    const int before = exponent + 1;
    snprintf(out, sizeof out, "%.*s%.*s.%s", before, shortest, before > count ? before - count : 0, "0000000000000000",
             before < count ? shortest + before : "0");
  }
  nnd_write_word(to, out);
}

static int nnd_is_whole(const struct nnd_text *text) {
  for (int64_t i = 0; i < text->size; i++)
    if (strchr(".eE", text->data[i])) return 0;
  return 1;
}

void nnd_write_json(struct nnd_writing *to, const struct nnd_json *value) {
  static const char *const words[] = {"null", "false", "true"};
  const int is_object = value->kind == NND_OBJECT;
  switch (value->kind) {
    case NND_NULL:
    case NND_FALSE:
    case NND_TRUE: nnd_write_word(to, words[value->kind]); break;
    case NND_STRING: nnd_write_string(to, &value->text); break;
    case NND_INTEGER:
    case NND_REAL:
      if (!nnd_is_whole(&value->text))
        nnd_write_real(to, &value->text);
      else if (nnd_is_text(&value->text, "-0"))
        nnd_write(to, "0", 1);
      else
        nnd_write(to, value->text.data, value->text.size);
      break;
    default:
      nnd_write(to, is_object ? "{" : "[", 1);
      NND_EACH(item, value) {
        if (item != value->first) nnd_write(to, ",", 1);
        if (is_object) nnd_write_string(to, &item->key), nnd_write(to, ":", 1);
        nnd_write_json(to, item);
      }
      nnd_write(to, is_object ? "}" : "]", 1);
  }
}

static int nnd_is_sorted(const struct nnd_json *value) {
  const struct nnd_json *last = NULL;
  NND_EACH(item, value->kind == NND_OBJECT || value->kind == NND_ARRAY ? value : NULL) {
    if (value->kind == NND_OBJECT && last && nnd_text_order(&last->key, &item->key) >= 0) return 0;
    if (!nnd_is_sorted(item)) return 0;
    last = item;
  }
  return 1;
}

/* Returns a number that no float64 holds, null where there is none. */
static const struct nnd_json *nnd_infinite_in(const struct nnd_json *value) {
  double number;
  if (value->kind == NND_REAL && !nnd_is_whole(&value->text)) return nnd_json_number(value, &number) ? NULL : value;
  NND_EACH(item, value->kind == NND_OBJECT || value->kind == NND_ARRAY ? value : NULL) {
    const struct nnd_json *found = nnd_infinite_in(item);
    if (found) return found;
  }
  return NULL;
}

static int nnd_depth_of(const struct nnd_json *value) {
  int deepest = 0;
  if (value->kind != NND_OBJECT && value->kind != NND_ARRAY) return 0;
  NND_EACH(item, value) {
    const int depth = nnd_depth_of(item);
    if (depth > deepest) deepest = depth;
  }
  return deepest + 1;
}

int nnd_json_check_canonical(const struct nnd_json *value, const struct nnd_text *text, nnd_error *error) {
  struct nnd_writing again = {0};
  const struct nnd_json *infinite = nnd_infinite_in(value);
  if (infinite)
    return nnd_fail_with(error, NND_BAD_DATA, "the JSON text contains %.*s, which is not finite as a double",
                         (int)(infinite->text.size < 40 ? infinite->text.size : 40), infinite->text.data);
  if (nnd_depth_of(value) > NND_CANONICAL_DEPTH)
    return nnd_fail_with(error, NND_BAD_DATA, "the JSON text is nested deeper than %d", NND_CANONICAL_DEPTH);
  nnd_write_json(&again, value);
  const int is_same = again.size == text->size && !memcmp(again.text, text->data, (size_t)text->size);
  free(again.text);
  if (again.is_lost) return nnd_fail_with(error, NND_NO_MEMORY, "no memory for JSON");
  if (is_same && nnd_is_sorted(value)) return 1;
  return nnd_fail_with(error, NND_BAD_DATA, "the JSON text is not canonical: keys sorted, no spaces, ASCII");
}
