/* SPDX-License-Identifier: Apache-2.0
 *
 * A program: the values of a bundle's portable chain by number, and a session of the kernels for each submodel.
 */
#ifndef NND_RUNTIME_PROGRAM_H
#define NND_RUNTIME_PROGRAM_H

#include <stdatomic.h>

#include "runtime/bundle.h"
#include "runtime/kernels.h"

/* An input or output of a plan. */
struct nnd_border {
  int value; /* the number of the value in the chain */
  struct nnd_type type;
};

/* A symbol of a plan: (the size of `axis` of input `number` - `offset`) / `factor`, between `low` and `high`. */
struct nnd_symbol {
  int64_t number, axis, offset, factor, low, high;
};

/* Output `output` of a plan is input `input` with more places along an axis: `added`, or as many as a symbol says
 * (-1: none); where it `is_total` the symbol is all places, if the input has no more. */
struct nnd_grown {
  int64_t output, input, axis, added, symbol;
  int is_total;
};

/* Where outputs grow, a plan has one more input, whose only size is how many places their memory has; where it
 * `tells_moved`, one more output, which is of no use where nothing goes on in the memory of an input. */
struct nnd_plan {
  void *model;
  struct nnd_decided *decided; /* choices for its steps, by shapes */
  struct nnd_border *inputs, *outputs;
  struct nnd_symbol *symbols;
  struct nnd_grown *grown;
  int num_inputs, num_outputs, num_symbols, num_grown, tells_moved;
  int run; /* its number among the plans of the program */
};

/* What runs of the plans of a session (`nndeploy_native/course.py`): a list of parts, each a plan, a step of texts or
 * maps, a choice between two courses by the truth of a value, a value without elements, or a refusal. */
enum nnd_part_kind { NND_RUN_PLAN, NND_STEP, NND_CHOOSE, NND_MAKE_EMPTY, NND_REFUSE };

struct nnd_course {
  struct nnd_part *parts;
  int *results; /* numbers of values */
  int num_parts, num_results;
};

struct nnd_part {
  enum nnd_part_kind kind;
  int number; /* of the plan; of the value that is chosen by, or made */
  struct nnd_step *step;
  int *outputs;            /* of a choice: what the results of the course that was taken become */
  struct nnd_course of[2]; /* of a choice: where it is true, where it is not */
  struct nnd_type type;    /* of a value without elements */
  struct nnd_text reason;  /* of a refusal */
};

#define NND_MOST_CHOICES 16 /* inside of each other */
#define NND_MOST_SCOPES (NND_MOST_CHOICES + 2)

struct nnd_session {
  struct nnd_text id, variant;
  const struct nnd_kernels *kernels;
  void *pool; /* for one call at a time: whoever finds it taken works alone */
  atomic_flag pool_is_taken;
  int threads;
  const struct nnd_json **documents; /* of the plans, while the course is read */
  int scopes[NND_MOST_SCOPES];       /* that are open then, the innermost last: a branch has one of its own */
  int num_scopes;
  const uint8_t *weights;
  int64_t weights_bytes;
  int weights_are_own; /* pages of the session, not of the bundle's memory */
  struct nnd_plan *plans;
  struct nnd_course course;
  struct nnd_border *inputs, *outputs;
  int num_plans, num_inputs, num_outputs;
};

/* What a value of the chain is at first: nothing, or one that the bundle holds. */
struct nnd_slot {
  struct nnd_text name;
  int scope; /* 0: of the chain; else of a session or a branch alone */
  const struct nnd_held *held;
};

struct nnd_range {
  struct nnd_text symbol;
  int64_t min, max, step;
};

/* An input or output of the program. */
struct nnd_end_of_program {
  nnd_info info;
  struct nnd_type type;
  int value;
  const nnd_tensor *keys; /* of the maps that it is, else null */
};

/* The choices that were given: how many tables of them count here, and whether any is of a plan of the bundle. */
struct nnd_decisions {
  const struct nnd_json *tuned; /* null: none were given */
  int num_taken, is_of_bundle;
};

struct nnd_program {
  struct nnd_bundle bundle;
  struct nnd_decisions decisions;
  struct nnd_slot *values;
  int num_values, most_values;
  struct nnd_end_of_program *inputs, *outputs;
  int num_inputs, num_outputs;
  struct nnd_range *ranges;
  int num_ranges;
  struct nnd_session *sessions;
  int num_sessions, num_plans, num_scopes;
  const char *model_name;
  struct nnd_image_way *image; /* null where the bundle says nothing of images */
};

/* Returns the input or output of a name, null where there is none. */
const struct nnd_end_of_program *nnd_end_named(const struct nnd_end_of_program *ends, int count,
                                               const struct nnd_text *name);
/* Returns the number of a value of a scope, -1 where it has none. */
int nnd_value_known(const struct nnd_program *program, const struct nnd_text *name, int scope);
/* Returns the same, a new one where it has none yet; -1 where there are too many. */
int nnd_value_named(struct nnd_program *program, const struct nnd_text *name, int scope);
/* What is asked of a bundle whose manifest was read, before anything else of it is; returns 1, or 0 and the error. */
struct nnd_condition {
  int (*is_met)(struct nnd_bundle *bundle, const void *by, nnd_error *error); /* null: nothing is asked */
  const void *by;
};

/* As nnd_open, or nnd_open_memory where there are bytes; with a path too they are those of a file that is mapped for as
 * long as the program is open. `decisions`: as of nnd_open_tuned(), or null. */
nnd_program *nnd_open_if(const char *path, const void *bytes, int64_t size, const nnd_options *options,
                         const char *decisions, struct nnd_condition condition, nnd_error *error);
/* Opens the submodel that the manifest describes. */
int nnd_session_open(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *submodel,
                     int threads, nnd_error *error);
void nnd_session_close(struct nnd_session *session);
/* Reads the text of its plan.json. */
int nnd_document_read(struct nnd_session *session, struct nnd_program *program, const uint8_t *text, int64_t size,
                      nnd_error *error);
int nnd_bad_plan(const char *why, nnd_error *error); /* returns 0 */

#endif
