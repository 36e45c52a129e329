/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call keeps from run to run: a table for each set of shapes that came, and memory for each value.
 */
#ifndef NND_RUNTIME_CALL_H
#define NND_RUNTIME_CALL_H

#include "runtime/image.h"

#define NND_MOST_CALL_BYTES ((int64_t)1 << 40)

/* What one set of input shapes comes to. */
struct nnd_kept_table {
  struct nnd_kept_table *next;
  void *table;
  int64_t *shapes;  /* of the inputs: element, rank, sizes of each */
  int64_t *outputs; /* 10 numbers of each output of the plan: element, rank, sizes */
};

struct nnd_run_of {
  struct nnd_kept_table *tables; /* the last used first */
  int num_tables;
  int64_t num_shapes, *shapes;
  int64_t *lengths; /* of each output that grows: its places in this run */
  const void **inputs;
  void **outputs;
  void *moved; /* memory of the output that tells whether something was put elsewhere */
  int64_t moved_bytes;
};

/* A value in a call, and the memory that it has there. `is_given`: the caller gave it, for runs to come too. */
struct nnd_place {
  int is_given, is_there, rank;
  nnd_dtype dtype;
  int64_t shape[NND_MAX_RANK];
  const void *data;
  void *memory, *spare; /* `spare` is written where an input of the run lies in `memory` */
  int64_t memory_bytes, spare_bytes;
};

struct nnd_call {
  nnd_program *program;
  struct nnd_arena arena;
  struct nnd_place *places; /* of each value */
  struct nnd_run_of *runs;  /* of each plan */
  struct nnd_image_memory image;
  char *work; /* arena and scratch of the kernels */
  int64_t work_bytes;
};

/* Says what a value of this run is: element, rank, sizes. `*address` is its memory, where it is to be written. */
int nnd_prepare_value(nnd_call *call, int value, const int64_t *numbers, void **address, nnd_error *error);
int nnd_made_twice(nnd_error *error); /* returns 0 */

/* Makes memory at least so large; what is in it is lost. */
int nnd_have(void **memory, int64_t *have, int64_t bytes, nnd_error *error);

/* Returns the table of a plan for the shapes of its inputs, null and the error where it does not hold for them. */
const struct nnd_kept_table *nnd_table_for(nnd_call *call, const struct nnd_session *session,
                                           const struct nnd_plan *plan, nnd_error *error);
void nnd_drop_table(const struct nnd_session *session, struct nnd_kept_table *kept);

#endif
