/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of runtime/decisions.c: a module is given no decisions, so all steps go by the rules.
 */
#include "runtime/decisions.h"

int nnd_decisions_read(struct nnd_program *program, const char *text, int64_t size, nnd_error *error) {
  (void)program, (void)text, (void)size, (void)error;
  return 1;
}

int nnd_decisions_find(struct nnd_program *program, const struct nnd_session *session, struct nnd_plan *plan,
                       const void *bytes, int64_t size, int64_t buffer_bytes, nnd_error *error) {
  (void)program, (void)session, (void)plan, (void)bytes, (void)size, (void)buffer_bytes, (void)error;
  return 1;
}

int nnd_decisions_ways(struct nnd_program *program, const struct nnd_plan *plan, struct nnd_kernel_options *options,
                       nnd_error *error) {
  (void)program, (void)plan, (void)options, (void)error;
  return 1;
}

int nnd_decisions_take(struct nnd_program *program, struct nnd_plan *plan, int64_t num_steps, nnd_error *error) {
  (void)program, (void)plan, (void)num_steps, (void)error;
  return 1;
}

const struct nnd_choice *nnd_choices_for(const struct nnd_plan *plan, const int64_t *shapes, int64_t num_shapes) {
  (void)plan, (void)shapes, (void)num_shapes;
  return NULL;
}
