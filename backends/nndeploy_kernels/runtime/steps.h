/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps beside plans (`nndeploy_native/python_steps.py`): of texts and maps, what becomes numbers of texts or is made of
 * numbers; and those that find elements (found.c). A map for each row of scores is these scores; its keys are the same in
 * every row.
 */
#ifndef NND_RUNTIME_STEPS_H
#define NND_RUNTIME_STEPS_H

#include "runtime/call.h"

enum nnd_step_kind {
  NND_LOOK_UP,
  NND_GATHER_TEXTS,
  NND_ZIP_MAP,
  NND_NON_ZERO,
  NND_COMPRESS,
  NND_SUPPRESS,
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
 * axes; an `axis` of -1 is that of all elements as a list. */
struct nnd_step {
  enum nnd_step_kind kind;
  int num_inputs, num_outputs, *inputs, *outputs;
  nnd_tensor table;
  struct nnd_key *keys; /* of a look-up, sorted */
  nnd_dtype key_dtype;
  int64_t num_keys, *numbers, num_numbers, axis, shape[NND_MAX_RANK];
  int rank, has_default, changes_case;
  int64_t most; /* of a suppression, and what follows too: as in nnd_suppress() */
  double overlap;
  float least;
  int has_least, is_centred;
};

int nnd_order_of_keys(const void *a, const void *b); /* two nnd_key, both texts or both numbers */

/* Reads a step of a course whose inputs and outputs are known. */
int nnd_step_read(const struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                  struct nnd_step *step, nnd_error *error);
/* Returns memory for an output of a step, and says of what it is; null and the error. */
void *nnd_step_make(nnd_call *call, int value, nnd_dtype dtype, int rank, const int64_t *shape, nnd_error *error);
int nnd_bad_step(const struct nnd_session *session, const char *why, nnd_error *error); /* returns 0 */

/* NonZero, Compress and NonMaxSuppression. */
int nnd_find_non_zero(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step, nnd_error *error);
int nnd_find_compressed(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                        nnd_error *error);
int nnd_find_boxes(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step, nnd_error *error);
int nnd_step_run(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step, nnd_error *error);

#endif
