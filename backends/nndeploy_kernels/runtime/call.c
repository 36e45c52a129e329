/* SPDX-License-Identifier: Apache-2.0
 *
 * A call: checked inputs -> for each submodel its table for these shapes, memory, run -> outputs. Tables and memory are
 * kept, so that a call with shapes that came before takes nothing of the system.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/call.h"
#include "runtime/steps.h"

/* Takes the memory that runs of a plan need whatever the shapes are. */
static int nnd_prepare_run(nnd_call *call, const struct nnd_plan *plan, nnd_error *error) {
  struct nnd_run_of *run = &call->runs[plan->run];
  for (int i = 0; i < plan->num_inputs; i++) run->num_shapes += 2 + plan->inputs[i].type.rank;
  if (plan->num_grown) run->num_shapes += 3;
  run->lengths = nnd_arena_take(&call->arena, plan->num_grown * (int64_t)sizeof *run->lengths, error);
  run->shapes = nnd_arena_take(&call->arena, run->num_shapes * (int64_t)sizeof *run->shapes, error);
  run->inputs = nnd_arena_take(&call->arena, (plan->num_inputs + 2) * (int64_t)sizeof *run->inputs, error);
  run->outputs = nnd_arena_take(&call->arena, (plan->num_outputs + 1) * (int64_t)sizeof *run->outputs, error);
  return run->shapes && run->lengths && run->inputs && run->outputs;
}

nnd_call *nnd_call_new(nnd_program *program, nnd_error *error) {
  nnd_call *call = calloc(1, sizeof *call);
  if (!call) {
    nnd_fail_with(error, NND_NO_MEMORY, "no memory for a call");
    return NULL;
  }
  call->program = program;
  call->places = nnd_arena_take(&call->arena, program->num_values * (int64_t)sizeof *call->places, error);
  call->runs = nnd_arena_take(&call->arena, program->num_plans * (int64_t)sizeof *call->runs, error);
  int is_right = call->places && call->runs;
  for (int i = 0; is_right && i < program->num_sessions; i++)
    for (int j = 0; is_right && j < program->sessions[i].num_plans; j++)
      is_right = nnd_prepare_run(call, &program->sessions[i].plans[j], error);
  if (is_right) return call;
  nnd_call_free(call);
  return NULL;
}
void nnd_call_free(nnd_call *call) {
  if (!call) return;
  for (int i = 0; call->runs && i < call->program->num_sessions; i++)
    for (int j = 0; j < call->program->sessions[i].num_plans; j++) {
      struct nnd_run_of *run = &call->runs[call->program->sessions[i].plans[j].run];
      while (run->tables) {
        struct nnd_kept_table *kept = run->tables;
        run->tables = kept->next;
        nnd_drop_table(&call->program->sessions[i], kept);
      }
      nnd_work_free(run->moved, run->moved_bytes);
    }
  for (int i = 0; call->places && i < call->program->num_values; i++) {
    nnd_work_free(call->places[i].memory, call->places[i].memory_bytes);
    nnd_work_free(call->places[i].spare, call->places[i].spare_bytes);
  }
  nnd_work_free(call->image.values, call->image.values_bytes);
  nnd_work_free(call->image.pixels, call->image.pixels_bytes);
  nnd_work_free(call->work, call->work_bytes);
  nnd_arena_free(&call->arena);
  free(call);
}

static int nnd_check_symbol(const nnd_call *call, const struct nnd_end_of_program *input, int axis, int64_t size,
                            nnd_error *error) {
  const nnd_program *program = call->program;
  const struct nnd_text *symbol = &input->type.symbols[axis];
  for (int i = 0; i < program->num_inputs; i++) {
    const struct nnd_end_of_program *other = &program->inputs[i];
    const struct nnd_place *place = &call->places[other->value];
    for (int j = 0; place->is_there && j < other->type.rank; j++) {
      if (nnd_is_same_text(&other->type.symbols[j], symbol) && place->shape[j] != size)
        return nnd_fail_with(error, NND_BAD_DATA, "input '%s': axis %d (%s) is %lld, but it is %lld in input '%s'",
                             input->info.name, axis, symbol->data, (long long)size, (long long)place->shape[j],
                             other->info.name);
    }
  }
  for (int i = 0; i < program->num_ranges; i++) {
    const struct nnd_range *range = &program->ranges[i];
    if (!nnd_is_same_text(&range->symbol, symbol)) continue;
    if (size < range->min || size > range->max || (size != range->min && size % range->step))
      return nnd_fail_with(error, NND_BAD_DATA, "input '%s': axis %d (%s) is %lld, outside %lld..%lld",
                           input->info.name, axis, symbol->data, (long long)size, (long long)range->min,
                           (long long)range->max);
  }
  return 1;
}

static int nnd_check_shape(const nnd_call *call, const struct nnd_end_of_program *input, nnd_error *error) {
  const struct nnd_place *place = &call->places[input->value];
  for (int axis = 0; axis < input->type.rank; axis++) {
    const int64_t wanted = input->type.shape[axis], size = place->shape[axis];
    if (wanted >= 0 && size != wanted)
      return nnd_fail_with(error, NND_BAD_DATA, "input '%s': axis %d is %lld instead of %lld", input->info.name, axis,
                           (long long)size, (long long)wanted);
    if (input->type.symbols[axis].size && !nnd_check_symbol(call, input, axis, size, error)) return 0;
  }
  return 1;
}

int nnd_set_input(nnd_call *call, const char *name, const nnd_tensor *value, nnd_error *error) {
  const nnd_program *program = call->program;
  const struct nnd_text called = {name, (int64_t)strlen(name)};
  const struct nnd_end_of_program *input = nnd_end_named(program->inputs, program->num_inputs, &called);
  if (!input)
    return nnd_fail_with(error, NND_BAD_DATA, "no input is named '%s' (hint: known: '%s'%s)", name,
                         program->num_inputs ? program->inputs[0].info.name : "",
                         program->num_inputs > 1 ? ", ..." : "");
  const char *given = nnd_dtype_name(value->dtype);
  if (value->dtype != input->type.dtype)
    return nnd_fail_with(error, NND_BAD_DATA, "input '%s' must be %s, got %s", name, nnd_dtype_name(input->type.dtype),
                         given ? given : "an unknown type");
  if (value->rank != input->type.rank || nnd_bytes_in(value->dtype, value->rank, value->shape) < 0)
    return nnd_fail_with(error, NND_BAD_DATA, "input '%s' must have rank %d, got rank %d", name, input->type.rank,
                         value->rank);
  struct nnd_place *place = &call->places[input->value];
  place->is_given = place->is_there = 1;
  place->dtype = value->dtype, place->rank = value->rank, place->data = value->data;
  memcpy(place->shape, value->shape, (size_t)value->rank * sizeof *value->shape);
  return 1;
}

/* Gives what the caller left out its default, and checks the sizes of all inputs together. */
static int nnd_check_inputs(nnd_call *call, nnd_error *error) {
  const nnd_program *program = call->program;
  for (int i = 0; i < program->num_values; i++) {
    const struct nnd_held *held = program->values[i].held;
    struct nnd_place *place = &call->places[i];
    place->is_there = place->is_given; /* what an earlier run made is gone */
    if (!held || place->is_given) continue;
    place->is_there = 1, place->dtype = held->dtype, place->rank = held->rank, place->data = held->data;
    memcpy(place->shape, held->shape, sizeof held->shape);
  }
  for (int i = 0; i < program->num_inputs; i++)
    if (!call->places[program->inputs[i].value].is_there)
      return nnd_fail_with(error, NND_BAD_DATA, "input '%s' is missing", program->inputs[i].info.name);
  for (int i = 0; i < program->num_inputs; i++)
    if (!nnd_check_shape(call, &program->inputs[i], error)) return 0;
  return 1;
}

static int64_t nnd_whole_lines(int64_t bytes) { return (bytes + NND_LINE - 1) / NND_LINE * NND_LINE; }

int nnd_have(void **memory, int64_t *have, int64_t bytes, nnd_error *error) {
  if (bytes <= *have && *memory) return 1;
  nnd_work_free(*memory, *have);
  *memory = bytes > NND_MOST_CALL_BYTES ? NULL : nnd_work_take(bytes ? bytes : 1);
  *have = *memory ? (bytes ? bytes : 1) : 0;
  return *memory ? 1 : nnd_fail_with(error, NND_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
}

/* Returns whether an input that the caller gave lies in memory: an output of the run before, as states do. */
static int nnd_is_read(const nnd_call *call, const void *memory, int64_t bytes) {
  for (int i = 0; memory && i < call->program->num_inputs; i++) {
    const struct nnd_place *place = &call->places[call->program->inputs[i].value];
    const uintptr_t at = (uintptr_t)place->data, begin = (uintptr_t)memory;
    if (place->is_given && at >= begin && at < begin + (uintptr_t)bytes) return 1;
  }
  return 0;
}

/* Whatever is made stays as it is in a run: others may read it, by another name too. */
int nnd_made_twice(nnd_error *error) { return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: a value is made twice"); }

int nnd_prepare_value(nnd_call *call, int value, const int64_t *numbers, void **address, nnd_error *error) {
  struct nnd_place *place = &call->places[value];
  if (place->is_there) return nnd_made_twice(error);
  place->dtype = (nnd_dtype)numbers[0], place->rank = (int)numbers[1];
  memcpy(place->shape, numbers + 2, (size_t)place->rank * sizeof *numbers);
  const int64_t bytes = nnd_bytes_in(place->dtype, place->rank, place->shape);
  if (bytes < 0) return nnd_fail_with(error, NND_NO_MEMORY, "an output is larger than memory");
  if (nnd_is_read(call, place->memory, place->memory_bytes)) {
    void *const memory = place->memory;
    const int64_t memory_bytes = place->memory_bytes;
    place->memory = place->spare, place->memory_bytes = place->spare_bytes;
    place->spare = memory, place->spare_bytes = memory_bytes;
  }
  if (!nnd_have(&place->memory, &place->memory_bytes, bytes, error)) return 0;
  *address = place->memory;
  place->data = place->memory;
  place->is_there = 1;
  return 1;
}

/* Moves the places of an output that grew together: its memory may have room behind them, for another that is longer. */
static void nnd_close_ranks(struct nnd_place *place, int64_t axis, int64_t length) {
  int64_t outer = 1, inner = nnd_bytes_of(place->dtype);
  const int64_t room = place->shape[axis];
  for (int i = 0; i < place->rank; i++) {
    if (i < axis) outer *= place->shape[i];
    if (i > axis) inner *= place->shape[i];
  }
  place->shape[axis] = length;
  for (int64_t i = 1; length < room && i < outer; i++)
    memmove((char *)place->memory + i * length * inner, (char *)place->memory + i * room * inner,
            (size_t)(length * inner));
}

static int nnd_run_plan(nnd_call *call, struct nnd_session *session, const struct nnd_plan *plan, nnd_error *error) {
  struct nnd_run_of *run = &call->runs[plan->run];
  const struct nnd_kept_table *kept = nnd_table_for(call, session, plan, error);
  if (!kept) return 0;
  const int64_t arena = nnd_whole_lines(session->kernels->arena_bytes(kept->table));
  const int64_t scratch = session->kernels->scratch_bytes(kept->table);
  if (!nnd_have((void **)&call->work, &call->work_bytes, arena + session->threads * scratch, error)) return 0;
  for (int i = 0; i < plan->num_inputs; i++) run->inputs[i] = call->places[plan->inputs[i].value].data;
  for (int i = 0; i < plan->num_outputs; i++)
    if (!nnd_prepare_value(call, plan->outputs[i].value, kept->outputs + 10 * i, &run->outputs[i], error)) return 0;
  run->inputs[plan->num_inputs] = ""; /* of the room only the size is looked at */
  if (plan->tells_moved) {
    const int64_t *numbers = kept->outputs + 10 * plan->num_outputs;
    const int64_t bytes = nnd_bytes_in((nnd_dtype)numbers[0], (int)numbers[1], numbers + 2);
    if (bytes < 0 || !nnd_have(&run->moved, &run->moved_bytes, bytes, error)) return 0;
    run->outputs[plan->num_outputs] = run->moved;
  }
  struct nnd_kernel_call kernel = {run->inputs, run->outputs, call->work, call->work + arena, scratch, NULL, {0}, NULL};
  void *pool = session->pool && !atomic_flag_test_and_set(&session->pool_is_taken) ? session->pool : NULL;
  const int has_fault = session->kernels->run(kept->table, &kernel, pool);
  if (pool) atomic_flag_clear(&session->pool_is_taken);
  for (int i = 0; !has_fault && i < plan->num_grown; i++)
    nnd_close_ranks(&call->places[plan->outputs[plan->grown[i].output].value], plan->grown[i].axis, run->lengths[i]);
  if (!has_fault) return 1;
  return nnd_fail_with(error, NND_BAD_DATA,
                       "submodel %.*s: element %lld of the indices of step %lld is %lld, outside of an axis of %lld "
                       "(hint: compile with --out-of-range clamp to take the nearest index)",
                       (int)session->id.size, session->id.data, (long long)kernel.fault.at,
                       (long long)kernel.fault.step, (long long)kernel.fault.index, (long long)kernel.fault.size);
}

static int nnd_follow(nnd_call *call, struct nnd_session *session, const struct nnd_course *course, nnd_error *error);

/* Follows the course that a truth chooses; what that results in is what the choice gives. */
static int nnd_choose(nnd_call *call, struct nnd_session *session, const struct nnd_part *part, nnd_error *error) {
  const struct nnd_place *by = &call->places[part->number];
  if (!by->is_there || by->dtype != NND_BOOL || nnd_bytes_in(by->dtype, by->rank, by->shape) != 1)
    return nnd_fail_with(error, NND_BAD_DATA, "submodel %.*s: the condition '%s' is not one truth",
                         (int)session->id.size, session->id.data, call->program->values[part->number].name.data);
  const struct nnd_course *taken = &part->of[*(const uint8_t *)by->data ? 0 : 1];
  if (!nnd_follow(call, session, taken, error)) return 0;
  for (int i = 0; i < taken->num_results; i++) {
    const struct nnd_place *from = &call->places[taken->results[i]];
    struct nnd_place *to = &call->places[part->outputs[i]];
    if (!from->is_there)
      return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: submodel %.*s: a branch gives a value that is not there",
                           (int)session->id.size, session->id.data);
    if (to->is_there) return nnd_made_twice(error);
    to->is_there = 1, to->dtype = from->dtype, to->rank = from->rank, to->data = from->data;
    memmove(to->shape, from->shape, sizeof from->shape);
  }
  return 1;
}

static int nnd_follow(nnd_call *call, struct nnd_session *session, const struct nnd_course *course, nnd_error *error) {
  static const uint8_t nothing[NND_LINE];
  for (int i = 0; i < course->num_parts; i++) {
    const struct nnd_part *part = &course->parts[i];
    switch (part->kind) {
      case NND_RUN_PLAN:
        if (!nnd_run_plan(call, session, &session->plans[part->number], error)) return 0;
        break;
      case NND_CHOOSE:
        if (!nnd_choose(call, session, part, error)) return 0;
        break;
      case NND_MAKE_EMPTY: {
        struct nnd_place *place = &call->places[part->number];
        if (place->is_there) return nnd_made_twice(error);
        place->is_there = 1, place->dtype = part->type.dtype, place->rank = part->type.rank, place->data = nothing;
        memcpy(place->shape, part->type.shape, sizeof part->type.shape);
        break;
      }
      case NND_STEP:
        if (!nnd_step_run(call, session, part->step, error)) return 0;
        break;
      case NND_REFUSE:
        return nnd_fail_with(error, NND_BAD_DATA, "submodel %.*s: our own kernels were not built for these sizes: %s",
                             (int)session->id.size, session->id.data, part->reason.data);
    }
  }
  return 1;
}

/* Runs a submodel, and checks that what it gave is what it says. */
static int nnd_run_session(nnd_call *call, struct nnd_session *session, nnd_error *error) {
  if (!nnd_follow(call, session, &session->course, error)) return 0;
  for (int i = 0; i < session->num_outputs; i++) {
    const struct nnd_type *said = &session->outputs[i].type;
    const struct nnd_place *place = &call->places[session->outputs[i].value];
    int is_right = place->is_there && place->dtype == said->dtype && place->rank == said->rank;
    for (int axis = 0; is_right && axis < said->rank; axis++)
      is_right = said->shape[axis] < 0 || said->shape[axis] == place->shape[axis];
    if (!is_right)
      return nnd_fail_with(error, NND_BAD_DATA, "submodel %.*s: output '%s' is another than the model says",
                           (int)session->id.size, session->id.data,
                           call->program->values[session->outputs[i].value].name.data);
  }
  return 1;
}

int nnd_run(nnd_call *call, nnd_error *error) {
  if (!nnd_check_inputs(call, error)) return 0;
  for (int i = 0; i < call->program->num_sessions; i++)
    if (!nnd_run_session(call, &call->program->sessions[i], error)) return 0;
  return 1;
}

int nnd_get_output(const nnd_call *call, const char *name, nnd_tensor *value, nnd_error *error) {
  const struct nnd_text called = {name, (int64_t)strlen(name)};
  const struct nnd_end_of_program *output = nnd_end_named(call->program->outputs, call->program->num_outputs, &called);
  if (!output) return nnd_fail_with(error, NND_BAD_DATA, "no output is named '%s'", name);
  const struct nnd_place *place = &call->places[output->value];
  if (!place->is_there) return nnd_fail_with(error, NND_BAD_DATA, "output '%s' is not there before a run", name);
  *value = (nnd_tensor){place->dtype, place->rank, place->shape, place->data};
  return 1;
}
