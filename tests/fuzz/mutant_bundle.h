/* SPDX-License-Identifier: Apache-2.0
 *
 * A bundle in parts, and what is changed of it for a mutant: JSON by its tokens and values, numbers of plans, bytes,
 * whole members. The hashes that its manifest says are made right again, so that readers look at what was changed.
 */
#ifndef MUTANT_BUNDLE_H
#define MUTANT_BUNDLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mutant_dice.h"
#include "runtime/container.h"

#define MOST_PARTS 48
#define MOST_TOKENS 16384
#define MOST_BUNDLE_BYTES ((int64_t)1 << 20)
#define MANIFEST "manifest.json"

struct part {
  char name[256];
  uint8_t *data;
  int64_t size;
  int is_changed;
  uint32_t crc32;
};

/* In the order of names, as in the container. */
struct bundle {
  struct part parts[MOST_PARTS];
  int count;
};

static void *given(void *memory) {
  if (!memory) exit(2);
  return memory;
}

static uint8_t *copied(const void *data, int64_t size) {
  uint8_t *copy = given(malloc((size_t)size + 1)); /* a zero behind, for what looks for text */
  memcpy(copy, data, (size_t)size);
  copy[size] = 0;
  return copy;
}

static void copy_bundle(struct bundle *to, const struct bundle *from) {
  to->count = from->count;
  for (int i = 0; i < from->count; i++) {
    to->parts[i] = from->parts[i];
    to->parts[i].data = copied(from->parts[i].data, from->parts[i].size);
  }
}

static void free_bundle(struct bundle *bundle) {
  for (int i = 0; i < bundle->count; i++) free(bundle->parts[i].data);
}

static struct part *part_named(struct bundle *bundle, const char *name) {
  for (int i = 0; i < bundle->count; i++)
    if (!strcmp(bundle->parts[i].name, name)) return &bundle->parts[i];
  return NULL;
}

/* The bytes of a part from `from` to `to` become others. */
static void replace_bytes(struct part *part, int64_t from, int64_t to, const void *text, int64_t size) {
  const int64_t whole = part->size - (to - from) + size;
  if (whole > MOST_BUNDLE_BYTES) return;
  uint8_t *made = given(malloc((size_t)whole + 1));
  memcpy(made, part->data, (size_t)from);
  memcpy(made + from, text, (size_t)size);
  memcpy(made + from + size, part->data + to, (size_t)(part->size - to));
  made[whole] = 0;
  free(part->data);
  part->data = made, part->size = whole, part->is_changed = 1;
}

/* ---- JSON */

struct token {
  int64_t begin, end;
};

static struct {
  struct token all[MOST_TOKENS];
  int64_t count;
} tokens;

static int is_word(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

static void find_tokens(const uint8_t *text, int64_t from, int64_t to) {
  tokens.count = 0;
  for (int64_t at = from; at < to && tokens.count < MOST_TOKENS;) {
    const int64_t begin = at++;
    if (text[begin] == '"') {
      while (at < to && text[at] != '"') at += text[at] == '\\' && at + 1 < to ? 2 : 1;
      at += at < to;
    } else if (is_word(text[begin])) {
      while (at < to && is_word(text[at])) at++;
    }
    tokens.all[tokens.count++] = (struct token){begin, at};
  }
}

/* Returns a token that is no comma, colon or end of anything, and so begins a value or a key. */
static int64_t any_beginning(const uint8_t *text) {
  for (int tries = 0; tries < 64; tries++) {
    const int64_t one = below(tokens.count);
    if (!strchr(",:]} ", text[tokens.all[one].begin])) return one;
  }
  return below(tokens.count);
}

/* Returns where the value ends that begins with a token. */
static int64_t end_of_value(const uint8_t *text, int64_t token) {
  int64_t depth = 0;
  for (int64_t i = token; i < tokens.count; i++) {
    const uint8_t c = text[tokens.all[i].begin];
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    if (depth <= 0) return tokens.all[i].end;
  }
  return tokens.all[token].end;
}

static int number_text(char text[64]) {
  static const char *const odd[] = {"-1",
                                    "0",
                                    "1",
                                    "-0",
                                    "0.5",
                                    "1e999",
                                    "1e-400",
                                    "123456789012345678901234567890",
                                    "null",
                                    "true",
                                    "false",
                                    "2147483648",
                                    "1e308",
                                    "-1e308",
                                    "1.5e3",
                                    "9223372036854775807",
                                    "[]",
                                    "{}",
                                    "\"\"",
                                    "65536",
                                    "4611686018427387904",
                                    "01",
                                    "1.",
                                    "-9223372036854775808"};
  if (!below(2)) return snprintf(text, 64, "%s", odd[below(sizeof odd / sizeof *odd)]);
  return snprintf(text, 64, "%lld", (long long)odd_number((const int64_t[]){2, 4, 8}, 3));
}

static int64_t length_of_run(const uint8_t *text, int64_t at, int64_t end) {
  int64_t size = 0;
  while (at + size < end && text[at + size] >= '0' && text[at + size] <= '9') size++;
  return size;
}

/* A number, an escape or a byte that strings seldom have, in a string. */
static void mutate_string(struct part *part, struct token string) {
  static const char *const odd[] = {
      "\\u0000", "\\ud800", "\\ud83d\\ude00", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
      "\\",      "\x01",    "\xff",           "../",      "%s%n",         "a\\u0301"};
  const int64_t at = string.begin + below(string.end - string.begin);
  char text[64];
  for (int64_t i = at; below(4) && i < string.end; i++) {
    const int64_t digits = length_of_run(part->data, i, string.end);
    if (!digits) continue;
    replace_bytes(part, i, i + digits, text, number_text(text));
    return;
  }
  const char *one = odd[below(sizeof odd / sizeof *odd)];
  replace_bytes(part, at, at + below(2), one, (int64_t)strlen(one));
}

static void nest(struct part *part, int64_t from, int64_t to) {
  char deep[160];
  const int levels = 1 + (int)below(79), is_object = !below(4);
  for (int i = 0; i < levels; i++) deep[i] = '[', deep[2 * levels - 1 - i] = ']';
  if (is_object) memcpy(deep, "{\"a\":", 5), deep[2 * levels - 1] = '}';
  replace_bytes(part, from, to, deep, 2 * levels);
}

/* Changes one place of the JSON text of a part that lies between two bytes; `other` is text to take from. */
static void mutate_json(struct part *part, int64_t from, int64_t to, const struct part *other) {
  find_tokens(part->data, from, to);
  if (!tokens.count) return;
  uint8_t *text = part->data;
  const int64_t one = any_beginning(text), another = any_beginning(text);
  const struct token token = tokens.all[one], second = tokens.all[another];
  const int64_t end = end_of_value(text, one), other_end = end_of_value(text, another);
  uint8_t *const value = copied(text + second.begin, other_end - second.begin);
  char number[64];
  switch (below(12)) {
    case 0:
    case 1:
    case 2:
      if (is_word(text[token.begin]))
        replace_bytes(part, token.begin, token.end, number, number_text(number));
      else if (text[token.begin] == '"')
        mutate_string(part, token);
      break;
    case 3: replace_bytes(part, token.begin, token.end, value, second.end - second.begin); break;
    case 4:
    case 5: replace_bytes(part, token.begin, end, value, other_end - second.begin); break;
    case 6: replace_bytes(part, token.begin, end + (end < to && text[end] == ','), "", 0); break; /* an item less */
    case 7: {                                                                                     /* an item twice */
      uint8_t *twice = copied(text + token.begin, end - token.begin);
      twice[end - token.begin] = ',';
      replace_bytes(part, token.begin, token.begin, twice, end - token.begin + 1);
      free(twice);
      break;
    }
    case 8: replace_bytes(part, token.begin, end, number, number_text(number)); break;
    case 9: nest(part, token.begin, end); break;
    case 10: {
      const int64_t begin = below(other->size + 1), left = other->size - begin;
      replace_bytes(part, token.begin, token.end, other->data + begin, left ? below(left < 64 ? left : 64) : 0);
      break;
    }
    default: { /* a number next to what it was */
      for (int64_t i = one; i < tokens.count; i++) {
        if (!length_of_run(text, tokens.all[i].begin, tokens.all[i].end)) continue;
        const int64_t was = strtoll((char *)text + tokens.all[i].begin, NULL, 10);
        const int64_t by = below(2) ? 1 + below(3) : -1 - below(3);
        const int size = snprintf(number, sizeof number, "%lld", (long long)((uint64_t)was + (uint64_t)by));
        replace_bytes(part, tokens.all[i].begin, tokens.all[i].end, number, size);
        break;
      }
    }
  }
  free(value);
}

/* ---- other members */

static int64_t number_at(const uint8_t *data, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)data[i] << 8 * i;
  return (int64_t)value;
}

static void put_number(uint8_t *data, int64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) data[i] = (uint8_t)((uint64_t)value >> 8 * i);
}

/* Returns the bytes of the JSON at the beginning of a safetensors file, 0 where a part is none. */
static int64_t header_of(const struct part *part) {
  if (part->size < 16 || part->data[8] != '{') return 0;
  const int64_t size = number_at(part->data, 8);
  return size > 0 && size <= part->size - 8 ? size : 0;
}

static void mutate_values(struct part *part, const struct part *other) {
  const int64_t before = header_of(part), all = part->size;
  mutate_json(part, 8, 8 + before, other);
  const int64_t header = before + part->size - all;
  static const char spaces[65] = "                                                                ";
  if (below(16)) replace_bytes(part, 8 + header, 8 + header, spaces, (64 - (header + 8) % 64) % 64);
  put_number(part->data, part->size - all + before, 8);
}

static void mutate_bytes(struct part *part) {
  const int64_t at = below(part->size + 1), left = part->size - at, words = part->size / 8;
  switch (below(8)) {
    case 0:
    case 1:
    case 2:
      if (words) put_number(part->data + 8 * below(words), odd_number(&words, 1), 8);
      break;
    case 3:
      if (words) {
        uint8_t *word = part->data + 8 * below(words);
        put_number(word, (int64_t)((uint64_t)number_at(word, 8) + (uint64_t)(below(2) ? 1 : -1)), 8);
      }
      break;
    case 4:
      if (left) part->data[at] ^= (uint8_t)(1 << below(8));
      break;
    case 5:
      if (left) part->data[at] = (uint8_t)any();
      break;
    case 6: replace_bytes(part, at, part->size, "", 0); break;
    default:
      replace_bytes(part, at, at + (left ? below(left < 32 ? left : 32) : 0), part->data, below(part->size + 1) % 32);
  }
  part->is_changed = 1;
}

/* A zlib stream of one stored block (RFC 1950, 1951), whose lengths and sum are made right. */
static void mutate_stream(struct part *part) {
  const int64_t body = part->size - 11; /* two bytes before, five of the block, four behind */
  uint32_t low = 1, high = 0;
  for (int64_t i = 1 + below(3); i > 0; i--) {
    const int64_t word = below(body < 160 ? body / 8 : 20);
    put_number(part->data + 7 + 8 * word, odd_number(&body, 1), 8);
  }
  for (int64_t i = 0; i < body; i++) low = (low + part->data[7 + i]) % 65521, high = (high + low) % 65521;
  for (int i = 0; i < 4; i++) part->data[part->size - 4 + i] = (uint8_t)((high << 16 | low) >> (24 - 8 * i));
  part->is_changed = 1;
}

static void mutate_part(struct part *part, const struct part *other) {
  if (part->size > 2 && part->data[0] == '{')
    mutate_json(part, 0, part->size, other);
  else if (header_of(part) && below(4))
    mutate_values(part, other);
  else if (part->size > 27 && part->data[0] == 0x78 && part->data[2] == 1 && below(4))
    mutate_stream(part);
  else
    mutate_bytes(part);
}

/* ---- whole bundles */

static void drop_part(struct bundle *bundle, int at) {
  free(bundle->parts[at].data);
  memmove(&bundle->parts[at], &bundle->parts[at + 1], (size_t)(--bundle->count - at) * sizeof *bundle->parts);
}

/* A member becomes what one of another bundle is, is called otherwise, or is gone. */
static void mutate_members(struct bundle *bundle, const struct bundle *other) {
  struct part *part = &bundle->parts[below(bundle->count)];
  const struct part *from = &other->parts[below(other->count)];
  switch (below(4)) {
    case 0: replace_bytes(part, 0, part->size, from->data, from->size); break;
    case 1:
      if (bundle->count > 1) drop_part(bundle, (int)(part - bundle->parts));
      break;
    case 2: part->name[below((int64_t)strlen(part->name))] = (char)('!' + below(90)); break;
    default: {
      const struct part kept = *part;
      struct part *second = &bundle->parts[below(bundle->count)];
      part->data = second->data, part->size = second->size, second->data = kept.data, second->size = kept.size;
      part->is_changed = second->is_changed = 1;
    }
  }
}

/* The manifest says the hash and the size of a member as they are. */
static void make_hash_right(struct part *manifest, const struct part *part) {
  char before[300];
  const int size = snprintf(before, sizeof before, "\"%s\":{\"sha256\":\"", part->name);
  const uint8_t *found = memmem(manifest->data, (size_t)manifest->size, before, (size_t)size);
  if (!found) return;
  const int64_t at = found - manifest->data + size;
  static const char behind[] = "\",\"size_bytes\":";
  const int64_t number = at + 64 + (int64_t)sizeof behind - 1;
  if (number >= manifest->size || memcmp(manifest->data + at + 64, behind, sizeof behind - 1)) return;
  struct nnd_sha256 hash;
  char text[400];
  nnd_sha256_begin(&hash);
  nnd_sha256_add(&hash, part->data, part->size);
  nnd_sha256_text(&hash, text);
  snprintf(text + 64, sizeof text - 64, "%s%lld", behind, (long long)part->size);
  replace_bytes(manifest, at, number + length_of_run(manifest->data, number, manifest->size), text,
                (int64_t)strlen(text));
}

static void mutate_bundle(struct bundle *bundle, const struct bundle *other) {
  for (int64_t rounds = 1 + (below(2) ? below(3) : 0); rounds > 0; rounds--) {
    struct part *part = &bundle->parts[below(bundle->count)], *manifest = part_named(bundle, MANIFEST);
    const struct part *from = &other->parts[below(other->count)];
    if (!below(24))
      mutate_members(bundle, other);
    else
      mutate_part(manifest && below(3) ? part : manifest ? manifest : part, from);
  }
  struct part *manifest = part_named(bundle, MANIFEST);
  for (int i = 0; manifest && below(32) && i < bundle->count; i++)
    if (bundle->parts[i].is_changed && &bundle->parts[i] != manifest) make_hash_right(manifest, &bundle->parts[i]);
}

/* ---- as bytes */

static uint32_t crc32_of(const uint8_t *data, int64_t size) {
  static uint32_t table[256];
  for (uint32_t i = 0; !table[255] && i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (0xedb88320u & (0u - (table[i] & 1)));
  }
  uint32_t crc = ~0u;
  for (int64_t i = 0; i < size; i++) crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
  return ~crc;
}

static uint8_t *put(uint8_t *to, int64_t value, int bytes) {
  put_number(to, value, bytes);
  return to + bytes;
}

/* Puts what the local header and the record of the directory of a member both say; returns what is behind. */
static uint8_t *put_common(uint8_t *to, const struct part *part, int64_t extra) {
  to = put(put(put(to, 45, 2), 0, 4), 0x210000, 4);
  to = put(put(to, part->crc32, 4), -1, 8);
  return put(put(to, (int64_t)strlen(part->name), 2), extra, 2);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct part *)a)->name, ((const struct part *)b)->name);
}

/* Writes the container (`nndeploy/bundle/container.py`) into memory that is freed by the caller. */
static uint8_t *encoded(struct bundle *bundle, int64_t *size) {
  int64_t headers[MOST_PARTS], most = 98;
  qsort(bundle->parts, (size_t)bundle->count, sizeof *bundle->parts, by_name);
  for (int i = 0; i < bundle->count; i++) most += bundle->parts[i].size + 2 * 4096 + 1024;
  uint8_t *bytes = given(malloc((size_t)most)), *to = bytes;
  for (int i = 0; i < bundle->count; i++) {
    struct part *part = &bundle->parts[i];
    const int64_t name = (int64_t)strlen(part->name), at = part->size >= 4096 ? 4096 : 64;
    const int64_t padding = (at - (to - bytes + 56 + name) % at) % at;
    if (part->is_changed) part->crc32 = crc32_of(part->data, part->size);
    part->is_changed = 0;
    headers[i] = to - bytes;
    to = put_common(put(to, 0x04034b50, 4), part, 26 + padding);
    memcpy(to, part->name, (size_t)name);
    to = put(put(put(to + name, 1, 2), 16, 2), part->size, 8);
    to = put(put(put(put(to, part->size, 8), 0xd935, 2), 2 + padding, 2), at, 2);
    memset(to, 0, (size_t)padding);
    memcpy(to + padding, part->data, (size_t)part->size);
    to += padding + part->size;
  }
  const int64_t start = to - bytes;
  for (int i = 0; i < bundle->count; i++) {
    const struct part *part = &bundle->parts[i];
    const int64_t name = (int64_t)strlen(part->name);
    to = put_common(put(put(to, 0x02014b50, 4), 3 << 8 | 45, 2), part, 28);
    to = put(put(put(to, 0, 6), 0x81a40000, 4), 0xffffffff, 4);
    memcpy(to, part->name, (size_t)name);
    to = put(put(put(to + name, 1, 2), 24, 2), part->size, 8);
    to = put(put(to, part->size, 8), headers[i], 8);
  }
  const int64_t directory = to - bytes - start;
  to = put(put(put(put(to, 0x06064b50, 4), 44, 8), 3 << 8 | 45, 2), 45, 2);
  to = put(put(put(put(put(to, 0, 8), bundle->count, 8), bundle->count, 8), directory, 8), start, 8);
  to = put(put(put(put(to, 0x07064b50, 4), 0, 4), start + directory, 8), 1, 4);
  to = put(put(put(put(put(to, 0x06054b50, 4), 0, 4), -1, 4), -1, 8), 0, 2);
  *size = to - bytes;
  return bytes;
}

/* Reads a bundle that is whole into its parts. */
static void read_bundle(struct bundle *bundle, const uint8_t *bytes, int64_t size) {
  struct nnd_container container = {.source = {.file = -1, .memory = bytes, .size = size}};
  struct nnd_arena arena = {0};
  nnd_error error;
  bundle->count = 0;
  if (!nnd_container_read(&container, &arena, &error) || container.count > MOST_PARTS) {
    fprintf(stderr, "a seed is no bundle: %s\n", error.text);
    exit(2);
  }
  for (int i = 0; i < container.count; i++) {
    const struct nnd_member *member = &container.members[i];
    struct part *part = &bundle->parts[bundle->count++];
    memcpy(part->name, member->name, sizeof part->name);
    part->data = copied(bytes + member->offset, member->size);
    part->size = member->size, part->crc32 = member->crc32, part->is_changed = 0;
  }
  nnd_arena_free(&arena);
}

#endif
