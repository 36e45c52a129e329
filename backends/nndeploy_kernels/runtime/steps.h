/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps beside plans, of texts and maps (`nndeploy_native/python_steps.py`): what becomes numbers of texts, or is made of
 * numbers. A map for each row of scores is these scores; its keys are the same in every row.
 */
#ifndef NND_RUNTIME_STEPS_H
#define NND_RUNTIME_STEPS_H

#include "runtime/call.h"

enum nnd_step_kind {
  NND_LOOK_UP,
  NND_GATHER_TEXTS,
  NND_ZIP_MAP,
  NND_RESHAPE_TEXTS,
  NND_TRANSPOSE_TEXTS,
  NND_TAKE_TEXTS,
  NND_CONCAT_TEXTS,
  NND_EQUAL_TEXTS,
  NND_BYTES_OF_TEXTS
};

/* A key of a table, and its place there. */
struct nnd_key {
  const char *text;
  int64_t number, place;
};

/* One step: `table` is what is looked up, gathered, compared with, or the keys of maps; `numbers` are places, sizes or
 * axes. */
struct nnd_step {
  enum nnd_step_kind kind;
  int num_inputs, num_outputs, *inputs, *outputs;
  nnd_tensor table;
  struct nnd_key *keys; /* of a look-up, sorted */
  nnd_dtype key_dtype;
  int64_t num_keys, *numbers, num_numbers, axis, shape[NND_MAX_RANK];
  int rank, has_default, changes_case;
};

int nnd_order_of_keys(const void *a, const void *b); /* two nnd_key, both texts or both numbers */

/* Reads a step of a course whose inputs and outputs are known. */
int nnd_step_read(const struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                  struct nnd_step *step, nnd_error *error);
int nnd_step_run(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step, nnd_error *error);

#endif
