/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/command.h"
#include "runtime/utf8.h"

#include "runtime/inside.h"

static const struct {
  int code;
  const char *name;
} nnd_codes[] = {{1, "check-failed"},  {2, "usage"},          {65, "bad-input"}, {66, "no-input"}, {69, "unavailable"},
                 {71, "memory-limit"}, {73, "cannot-create"}, {74, "io"},        {77, "policy"}};

static const char nnd_hint[] = " (hint: ";

static void nnd_add(struct nnd_answer *answer, const char *text, size_t size) {
  if (answer->size + size > answer->room) {
    const size_t room = 2 * (answer->size + size) + 256;
    char *larger = realloc(answer->text, room);
    if (!larger) {
      answer->is_lost = 1;
      return;
    }
    answer->text = larger, answer->room = room;
  }
  memcpy(answer->text + answer->size, text, size);
  answer->size += size;
}

void nnd_answer_add(struct nnd_answer *answer, const char *text) { nnd_add(answer, text, strlen(text)); }

static void nnd_add_quoted(struct nnd_answer *answer, const char *text, size_t size) {
  nnd_add(answer, "\"", 1);
  for (size_t i = 0; i < size; i++) {
    const unsigned char c = (unsigned char)text[i];
    const int utf8 = nnd_utf8_size((const uint8_t *)text + i, (int64_t)(size - i));
    char escape[8];
    if (!utf8) { /* of an argument, or of an error that was cut */
      nnd_add(answer, "?", 1);
      continue;
    }
    if (c == '"' || c == '\\')
      nnd_add(answer, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", c));
    else if (c < 0x20 || c == 0x7f)
      nnd_add(answer, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
    else
      nnd_add(answer, text + i, (size_t)utf8);
    i += (size_t)utf8 - 1;
  }
  nnd_add(answer, "\"", 1);
}

static void nnd_begin_field(struct nnd_answer *answer, const char *key) {
  if (answer->needs_comma) nnd_add(answer, ", ", 2);
  answer->needs_comma = 1;
  if (!key) return;
  nnd_add_quoted(answer, key, strlen(key));
  nnd_add(answer, ": ", 2);
}

void nnd_answer_open(struct nnd_answer *answer, const char *key, char bracket) {
  nnd_begin_field(answer, key);
  nnd_add(answer, &bracket, 1);
  answer->needs_comma = 0;
}

void nnd_answer_close(struct nnd_answer *answer, char bracket) {
  nnd_add(answer, &bracket, 1);
  answer->needs_comma = 1;
}

void nnd_answer_bytes(struct nnd_answer *answer, const char *key, const char *text, size_t size) {
  nnd_begin_field(answer, key);
  nnd_add_quoted(answer, text, size);
}

void nnd_answer_text(struct nnd_answer *answer, const char *key, const char *text) {
  nnd_answer_bytes(answer, key, text, strlen(text));
}

void nnd_answer_document(struct nnd_answer *answer, const char *key, const char *json, size_t size) {
  nnd_begin_field(answer, key);
  nnd_add(answer, json, size);
}

void nnd_answer_word(struct nnd_answer *answer, const char *key, const char *word) {
  nnd_answer_document(answer, key, word, strlen(word));
}

void nnd_answer_integer(struct nnd_answer *answer, const char *key, int64_t number) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)number);
  nnd_answer_word(answer, key, text);
}

void nnd_answer_number(struct nnd_answer *answer, const char *key, double number) {
  char text[40] = "null";
  for (int digits = 15; isfinite(number) && digits <= 17; digits++) { /* the fewest that give it back */
    snprintf(text, sizeof text, "%.*g", digits, number);
    if (strtod(text, NULL) == number) break;
  }
  if (isfinite(number) && !strpbrk(text, ".e")) strcat(text, ".0"); /* no integer */
  nnd_answer_word(answer, key, text);
}

const char *nnd_code_name(const nnd_error *error, const char **what) {
  *what = *error->text ? error->text : "?";
  if (!strncmp(*what, NND_BAD_BUNDLE, sizeof NND_BAD_BUNDLE - 1))
    return *what += sizeof NND_BAD_BUNDLE - 1, "bad-bundle";
  if (!strncmp(*what, NND_BAD_DATA_KIND, sizeof NND_BAD_DATA_KIND - 1))
    return *what += sizeof NND_BAD_DATA_KIND - 1, "bad-data";
  for (size_t i = 0; i < sizeof nnd_codes / sizeof *nnd_codes; i++)
    if (nnd_codes[i].code == error->code) return nnd_codes[i].name;
  return "bad-data";
}

void nnd_answer_error(struct nnd_answer *answer, const nnd_error *error, int is_of_item) {
  const char *what, *code = nnd_code_name(error, &what);
  const char *hint = what[strlen(what) - 1] == ')' ? strstr(what, nnd_hint) : NULL; /* if it was not cut */
  const size_t size = hint ? (size_t)(hint - what) : strlen(what);
  nnd_answer_open(answer, "error", '{');
  nnd_answer_text(answer, "code", code);
  if (!is_of_item) nnd_answer_integer(answer, "exit_code", error->code);
  nnd_answer_bytes(answer, "message", what, size);
  if (!is_of_item) {
    nnd_answer_text(answer, "where", "");
    if (hint) hint += sizeof nnd_hint - 1;
    nnd_answer_bytes(answer, "hint", hint ? hint : "", hint ? strlen(hint) - 1 : 0);
  }
  nnd_answer_close(answer, '}');
}

void nnd_answer_print(struct nnd_answer *answer, const char *command, nnd_error *error) {
  if (error->code) nnd_answer_error(answer, error, 0);
  if (answer->is_lost) {
    answer->size = 0;
    if (!error->code) nnd_fail(error, NND_NO_MEMORY, "--json", "no memory for the answer");
  }
  printf("{\"schema\": \"nndeploy.%s.1\", \"ok\": %s", command, error->code ? "false" : "true");
  if (answer->size) printf(", ");
  fwrite(answer->text, 1, answer->size, stdout);
  printf("}\n");
  free(answer->text);
  *answer = (struct nnd_answer){0};
}
