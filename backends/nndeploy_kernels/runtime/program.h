/* SPDX-License-Identifier: Apache-2.0
 *
 * A program: the values of a bundle's portable chain by number, and a session of the kernels for each submodel.
 */
#ifndef NND_RUNTIME_PROGRAM_H
#define NND_RUNTIME_PROGRAM_H

#include <pthread.h>

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

struct nnd_session {
  struct nnd_text id;
  const struct nnd_kernels *kernels;
  void *model, *pool; /* a pool is for one call at a time: whoever finds it taken works alone */
  pthread_mutex_t pool_lock;
  int threads;
  uint8_t *weights;
  int64_t weights_bytes;
  struct nnd_border *inputs, *outputs;
  struct nnd_symbol *symbols;
  int num_inputs, num_outputs, num_symbols;
};

/* What a value of the chain is at first: nothing, or one that the bundle holds. */
struct nnd_slot {
  struct nnd_text name;
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
};

struct nnd_program {
  struct nnd_bundle bundle;
  struct nnd_slot *values;
  int num_values, most_values;
  struct nnd_end_of_program *inputs, *outputs;
  int num_inputs, num_outputs;
  struct nnd_range *ranges;
  int num_ranges;
  struct nnd_session *sessions;
  int num_sessions;
  const char *model_name;
};

/* Returns the number of a value, a new one where it has none yet; -1 where there are too many. */
int nnd_value_named(struct nnd_program *program, const struct nnd_text *name);
/* Opens the submodel that the manifest describes. */
int nnd_session_open(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *submodel,
                     int threads, nnd_error *error);
void nnd_session_close(struct nnd_session *session);

#endif
