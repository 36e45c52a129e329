/* SPDX-License-Identifier: Apache-2.0
 *
 * nndeploy-run, part by part: what was said, and what is done of it.
 */
#ifndef NND_COMMAND_COMMAND_H
#define NND_COMMAND_COMMAND_H

#include <stdio.h>

#include "runtime/command/answer.h"

#define NND_CHECK_FAILED 1
#define NND_USAGE 2
#define NND_CANNOT_CREATE 73
#define NND_MOST_INPUTS 256

struct nnd_arguments {
  const char *bundle, *inputs[NND_MOST_INPUTS], *output, *verify_key, *decisions;
  int num_inputs, threads, is_info, is_verify, is_json, is_verbose;
  double bench_seconds, rtol, atol; /* below 0: not said */
};

/* A program that is open, from which file, and what is known of it. */
struct nnd_work {
  nnd_program *program;
  const struct nnd_arguments *said;
  const char *path, *name; /* of the command */
  double load_seconds;
  struct nnd_answer answer;
};

extern const char nnd_help[]; /* takes the name of the command, and " BUNDLE" or "" */

/* Reads the words of the command. This and all below return 1, or 0 and the error. */
int nnd_read_arguments(int count, char **words, struct nnd_arguments *said, nnd_error *error);
int nnd_usage(nnd_error *error, const char *what, const char *which);
int nnd_fail(nnd_error *error, int code, const char *where, const char *why);
double nnd_seconds(void);

/* Each prints what it finds, or adds it to the answer. */
void nnd_show_info(struct nnd_work *work);
int nnd_run_inputs(struct nnd_work *work, nnd_error *error); /* with --bench again and again */
int nnd_run_goldens(struct nnd_work *work, nnd_error *error);

/* Runs each line of a file of JSON lines. */
int nnd_run_lines(struct nnd_work *work, FILE *from, const char *origin, nnd_error *error);
int nnd_is_for_lines(const char *output); /* whether outputs go there as lines of JSON: FILE.jsonl, or - */
FILE *nnd_open_output(const char *output, nnd_error *error);
int nnd_close_output(FILE *to, const char *output, nnd_error *error);
/* Writes what a call gave as a line, or how it failed where `failed` is not null. */
int nnd_write_line(const struct nnd_work *work, const nnd_call *call, FILE *to, int64_t index, const char *origin,
                   const nnd_error *failed, nnd_error *error);
/* Writes or prints the outputs; `*has_non_finite`: one of them has NaN or an infinity. */
int nnd_give_outputs(const struct nnd_work *work, const nnd_call *call, int *has_non_finite, nnd_error *error);

/* Adds the most likely class of an image, and its probability, where the bundle names classes. */
void nnd_answer_label(const struct nnd_work *work, const nnd_call *call, struct nnd_answer *answer);

/* Add which chain runs, and which variants of its submodels. */
void nnd_answer_chain(struct nnd_answer *answer);
void nnd_answer_choices(struct nnd_work *work);
/* Runs a call that has its inputs for some seconds, and prints how long it took or adds it to the answer. */
int nnd_run_bench(struct nnd_work *work, nnd_call *call, nnd_error *error);

#endif
