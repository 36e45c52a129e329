/* SPDX-License-Identifier: Apache-2.0
 *
 * What `nndeploy tune --decisions` wrote -> choices for the steps of a plan, by the shapes of its inputs.
 *
 *   {"format": 1, "tuned": [{"format": 1, "plan_sha256": "...", "tables": [
 *     {"box": {...}, "shapes": [[1, 3, 224, 224]], "steps": {"4": {"buffer_bytes": 65536}}, "rule_us": 9.1, ...}]}]}
 *
 * A table counts on the machine that its box describes, for the plan of that digest (`nndeploy_native/tuned_tables.py`).
 * Law: what the text says changes no bit of a result but where it says the way of a convolution.
 */
#ifndef NND_RUNTIME_DECISIONS_H
#define NND_RUNTIME_DECISIONS_H

#include "runtime/program.h"

/* Choices that count here. `sizes`: of each input of the plan its rank, then its sizes. */
struct nnd_decided {
  struct nnd_decided *next;
  int64_t num_sizes, *sizes;
  const struct nnd_json *steps;
  struct nnd_choice *choices; /* one for each step of the plan */
};

/* Reads the text of a file of decisions; the program knows their list then. */
int nnd_decisions_read(struct nnd_program *program, const char *text, int64_t size, nnd_error *error);

/* Finds what is decided for a plan, of these bytes, that is not open yet. */
int nnd_decisions_find(struct nnd_program *program, const struct nnd_session *session, struct nnd_plan *plan,
                       const void *bytes, int64_t size, int64_t buffer_bytes, nnd_error *error);

/* Says for which ways steps are packed so that what was found can be taken. */
int nnd_decisions_ways(struct nnd_program *program, const struct nnd_plan *plan, struct nnd_kernel_options *options,
                       nnd_error *error);

/* Makes the choices of a plan that has so many steps. */
int nnd_decisions_take(struct nnd_program *program, struct nnd_plan *plan, int64_t num_steps, nnd_error *error);

/* Returns the choices for inputs of a plan: of each its element, its rank and its sizes; null: all go by the rules. */
const struct nnd_choice *nnd_choices_for(const struct nnd_plan *plan, const int64_t *shapes, int64_t num_shapes);

#endif
