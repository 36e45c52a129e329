/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command answers with --json: one document on standard output, whether it failed or not, with the fields that
 * `nndeploy` has in its own (`nndeploy/cli/answer.py`).
 */
#ifndef NND_COMMAND_ANSWER_H
#define NND_COMMAND_ANSWER_H

#include <stddef.h>

#include "runtime/nndeploy.h"

/* Fields that were given so far; all zero at first. */
struct nnd_answer {
  char *text;
  size_t size, room;
  int needs_comma, is_lost; /* `is_lost`: there was no memory for it */
};

/* Each adds a field; `key` is null inside of an array. */
void nnd_answer_open(struct nnd_answer *answer, const char *key, char bracket);
void nnd_answer_close(struct nnd_answer *answer, char bracket);
void nnd_answer_text(struct nnd_answer *answer, const char *key, const char *text);
void nnd_answer_bytes(struct nnd_answer *answer, const char *key, const char *text, size_t size);
void nnd_answer_integer(struct nnd_answer *answer, const char *key, int64_t number);
void nnd_answer_number(struct nnd_answer *answer, const char *key, double number);  /* null where it is not finite */
void nnd_answer_word(struct nnd_answer *answer, const char *key, const char *word); /* as "true" or "[]" */
void nnd_answer_document(struct nnd_answer *answer, const char *key, const char *json, size_t size);

#define NND_BAD_DATA_KIND "bad-data: " /* how errors begin that are of a file, neither of a bundle nor of an input */

/* Returns the name of the code of an error, and what it says. */
const char *nnd_code_name(const nnd_error *error, const char **what);
/* Adds how something failed, as the field "error"; of an item among others only what and why. */
void nnd_answer_error(struct nnd_answer *answer, const nnd_error *error, int is_of_item);
/* Adds text as it is, to one that is no document. */
void nnd_answer_add(struct nnd_answer *answer, const char *text);

/* Prints the document of a command, as "run", and lets go of it; `error` has code 0 where nothing failed. Where there
 * was no memory for the fields it says so instead, and `error` too. */
void nnd_answer_print(struct nnd_answer *answer, const char *command, nnd_error *error);

#endif
