/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of a plan's inputs -> its symbols, and the table of the kernels for them, which is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/call.h"
#include "runtime/decisions.h"

#define NND_MOST_TABLES 64 /* of a plan and call that are kept */

void nnd_drop_table(const struct nnd_session *session, struct nnd_kept_table *kept) {
  session->kernels->table_free(kept->table);
  free(kept);
}

/* Returns the size that a symbol stands for, for people: a plan may say one that no number holds. */
static long long nnd_size_at(const struct nnd_symbol *one, int64_t symbol) {
  int64_t size;
  return __builtin_mul_overflow(one->factor, symbol, &size) || __builtin_add_overflow(size, one->offset, &size)
             ? INT64_MAX
             : size;
}

/* Returns a symbol of a plan for the shapes of its inputs, and for the room of what grows. */
static int nnd_symbol_of(const nnd_call *call, const struct nnd_session *session, const struct nnd_plan *plan,
                         int64_t number, int64_t room, int64_t *symbol, nnd_error *error) {
  const struct nnd_symbol *one = &plan->symbols[number];
  const int64_t size =
      one->number < plan->num_inputs ? call->places[plan->inputs[one->number].value].shape[one->axis] : room;
  const int64_t above = size - one->offset;
  *symbol = above / one->factor - (above % one->factor < 0);
  if (!(above % one->factor) && *symbol >= one->low && *symbol <= one->high) return 1;
  return nnd_fail_with(
      error, NND_BAD_DATA,
      "submodel %.*s: axis %lld of an input has size %lld, kernels are for %lld..%lld in steps of %lld",
      (int)session->id.size, session->id.data, (long long)one->axis, (long long)size, nnd_size_at(one, one->low),
      nnd_size_at(one, one->high), (long long)one->factor);
}

/* Finds how many places each output that grows will have, and how many their memory needs. */
static int nnd_lengths_of(nnd_call *call, const struct nnd_session *session, const struct nnd_plan *plan, int64_t *room,
                          nnd_error *error) {
  struct nnd_run_of *run = &call->runs[plan->run];
  *room = 0;
  for (int i = 0; i < plan->num_grown; i++) {
    const struct nnd_grown *one = &plan->grown[i];
    const int64_t before = call->places[plan->inputs[one->input].value].shape[one->axis];
    int64_t told = one->added;
    if (one->symbol >= 0 && !nnd_symbol_of(call, session, plan, one->symbol, 0, &told, error)) return 0;
    if (told < 0 || told > NND_MOST_CALL_BYTES) return nnd_fail_with(error, NND_BAD_DATA, "a cache that grows too far");
    run->lengths[i] = !one->is_total ? before + told : told > before ? told : before;
    if (run->lengths[i] > *room) *room = run->lengths[i];
  }
  return 1;
}

static struct nnd_kept_table *nnd_make_table(nnd_call *call, const struct nnd_session *session,
                                             const struct nnd_plan *plan, int64_t room, nnd_error *error) {
  struct nnd_run_of *run = &call->runs[plan->run];
  const int num_outputs = plan->num_outputs + plan->tells_moved;
  int is_right = 1;
  char message[300];
  const int64_t shape_bytes = run->num_shapes * (int64_t)sizeof *run->shapes;
  const int64_t output_bytes = 10 * num_outputs * (int64_t)sizeof *run->shapes;
  int64_t *symbols = calloc((size_t)plan->num_symbols + 1, sizeof *symbols);
  struct nnd_kept_table *kept = calloc(1, sizeof *kept + (size_t)(shape_bytes + output_bytes));
  if (!symbols || !kept) {
    nnd_fail_with(error, NND_NO_MEMORY, "no memory for a table");
  } else {
    for (int i = 0; is_right && i < plan->num_symbols; i++)
      is_right = nnd_symbol_of(call, session, plan, i, room, &symbols[i], error);
  }
  if (symbols && kept && is_right) {
    kept->shapes = (int64_t *)(kept + 1), kept->outputs = kept->shapes + run->num_shapes;
    memcpy(kept->shapes, run->shapes, (size_t)shape_bytes);
    kept->table =
        session->kernels->table_make(plan->model, symbols, plan->num_symbols, run->shapes, run->num_shapes,
                                     nnd_choices_for(plan, run->shapes, run->num_shapes), message, sizeof message);
    if (!kept->table)
      nnd_fail_with(error, NND_BAD_DATA, "submodel %.*s: our own kernels do not take these sizes: %s",
                    (int)session->id.size, session->id.data, message);
  }
  free(symbols);
  if (!kept || !kept->table) {
    free(kept);
    return NULL;
  }
  for (int i = 0; i < num_outputs; i++) {
    int64_t *numbers = kept->outputs + 10 * i;
    const int64_t count = session->kernels->output(kept->table, i, numbers);
    if (i == plan->num_outputs && count >= 2) continue; /* whether something was moved */
    if (count < 2 || numbers[0] != plan->outputs[i].type.dtype || numbers[1] != plan->outputs[i].type.rank) {
      nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: plan.json says another output than plan.bin");
      nnd_drop_table(session, kept);
      return NULL;
    }
  }
  for (int i = 0; i < plan->num_grown; i++) {
    const struct nnd_grown *one = &plan->grown[i];
    if (kept->outputs[10 * one->output + 2 + one->axis] == room) continue;
    nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: plan.json says another shape of what grows than plan.bin");
    nnd_drop_table(session, kept);
    return NULL;
  }
  return kept;
}

/* Returns the table of a plan for the shapes of its inputs, which is the first of those that are kept then. */
const struct nnd_kept_table *nnd_table_for(nnd_call *call, const struct nnd_session *session,
                                           const struct nnd_plan *plan, nnd_error *error) {
  struct nnd_run_of *run = &call->runs[plan->run];
  int64_t *shape = run->shapes, room = 0;
  for (int i = 0; i < plan->num_inputs; i++) {
    const struct nnd_place *place = &call->places[plan->inputs[i].value];
    if (!place->is_there || place->rank != plan->inputs[i].type.rank || place->dtype != plan->inputs[i].type.dtype) {
      nnd_fail_with(error, NND_BAD_DATA,
                    "bad-bundle: submodel %.*s reads a value that is not there, or of another type",
                    (int)session->id.size, session->id.data);
      return NULL;
    }
    *shape++ = (int64_t)place->dtype, *shape++ = place->rank;
    for (int axis = 0; axis < place->rank; axis++) *shape++ = place->shape[axis];
  }
  if (plan->num_grown) {
    if (!nnd_lengths_of(call, session, plan, &room, error)) return NULL;
    *shape++ = NND_BOOL, *shape++ = 1, *shape++ = room;
  }
  for (struct nnd_kept_table **at = &run->tables; *at; at = &(*at)->next) {
    struct nnd_kept_table *kept = *at;
    if (memcmp(kept->shapes, run->shapes, (size_t)run->num_shapes * sizeof *run->shapes)) continue;
    *at = kept->next, kept->next = run->tables, run->tables = kept;
    return kept;
  }
  struct nnd_kept_table *made = nnd_make_table(call, session, plan, room, error);
  if (!made) return NULL;
  made->next = run->tables, run->tables = made;
  if (++run->num_tables > NND_MOST_TABLES) {
    struct nnd_kept_table **last = &run->tables;
    while ((*last)->next) last = &(*last)->next;
    nnd_drop_table(session, *last);
    *last = NULL, run->num_tables--;
  }
  return made;
}
