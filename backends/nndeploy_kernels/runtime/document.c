/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.json (`nndeploy_native/plan.py`, `course.py`) -> the plans of a session and what runs of them.
 */
#include "runtime/steps.h"

#define NND_FAR ((int64_t)1 << 40)
#define NND_MOST_PLAN ((int64_t)16 << 20)

static const char *const nnd_elements[] = {"fp32", "int32", "int64", "bool", "uint8", "int8", "fp16", "fp64"};

static int nnd_element_named(const struct nnd_text *name, nnd_dtype *dtype) {
  for (int i = 0; i < (int)(sizeof nnd_elements / sizeof *nnd_elements); i++)
    if (nnd_is_text(name, nnd_elements[i])) return *dtype = (nnd_dtype)i, 1;
  return 0;
}

/* Reads the type of a border. Beside plans there are texts, and lists of maps of no axis. */
static int nnd_read_type(const struct nnd_text *element, const struct nnd_json *sizes, int is_of_session,
                         struct nnd_type *type) {
  *type = (struct nnd_type){0};
  if (is_of_session && nnd_is_text(element, "sequence(map(string,fp32))"))
    nnd_be_maps(type, NND_TEXT);
  else if (is_of_session && nnd_is_text(element, "sequence(map(int64,fp32))"))
    nnd_be_maps(type, NND_INT64);
  else if (is_of_session && nnd_is_text(element, "string"))
    type->dtype = NND_TEXT;
  else if (!nnd_element_named(element, &type->dtype))
    return 0;
  if (type->is_maps) return nnd_json_of_kind(sizes, NND_ARRAY) && !sizes->count;
  return nnd_sizes_of(sizes, &type->rank, type->shape, NULL);
}

int nnd_bad_plan(const char *why, nnd_error *error) {
  return nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "a malformed plan.json: %s", why);
}
/* Returns whether a border is what the manifest says of its value; a size that has a name there may be any here. */
static int nnd_is_as_said(const struct nnd_program *program, const struct nnd_text *name, const struct nnd_type *type) {
  const struct nnd_json *values = nnd_json_member(program->bundle.manifest, "values");
  struct nnd_type said;
  NND_EACH(item, nnd_json_of_kind(values, NND_OBJECT)) {
    if (!nnd_is_same_text(&item->key, name)) continue;
    if (!nnd_type_of(item, &said) || said.dtype != type->dtype || said.is_maps != type->is_maps) return 0;
    if (said.rank < 0) return 1;
    if (said.rank != type->rank || (said.is_maps && said.keys != type->keys)) return 0;
    for (int i = 0; i < said.rank; i++)
      if (said.shape[i] >= 0 && said.shape[i] != type->shape[i]) return 0;
    return 1;
  }
  return 0;
}

/* Returns the number of a value that a plan or a course names: of the innermost scope that knows it, of the chain where
 * the session reads or gives it, else a new one of the innermost scope. */
static int nnd_value_of(const struct nnd_session *session, struct nnd_program *program, const struct nnd_text *name) {
  const struct nnd_border *sides[] = {session->inputs, session->outputs};
  const int counts[] = {session->num_inputs, session->num_outputs};
  for (int scope = session->num_scopes - 1; scope >= 0; scope--) {
    const int known = nnd_value_known(program, name, session->scopes[scope]);
    if (known >= 0) return known;
  }
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < counts[side]; i++) {
      const int value = sides[side][i].value;
      if (nnd_is_same_text(&program->values[value].name, name)) return value;
    }
  return nnd_value_named(program, name, session->scopes[session->num_scopes - 1]);
}

static int nnd_open_scope(struct nnd_session *session, struct nnd_program *program) {
  if (session->num_scopes == NND_MOST_SCOPES) return 0;
  session->scopes[session->num_scopes++] = ++program->num_scopes;
  return 1;
}

/* Reads the borders of one side, each [name, element, sizes]: of the session, whose values are the chain's, or a plan. */
static int nnd_read_borders(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *list,
                            int is_of_session, struct nnd_border **borders, int *count, nnd_error *error) {
  if (!nnd_json_of_kind(list, NND_ARRAY)) return nnd_bad_plan("it has no inputs or outputs", error);
  *borders = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof **borders, error);
  if (!*borders) return 0;
  *count = 0;
  NND_EACH(item, list) {
    struct nnd_border *border = &(*borders)[*count];
    const struct nnd_json *name = nnd_json_of_kind(item, NND_ARRAY) ? nnd_json_of_kind(item->first, NND_STRING) : NULL;
    const struct nnd_json *element = name ? nnd_json_of_kind(name->next, NND_STRING) : NULL;
    if (!element || !nnd_read_type(&element->text, element->next, is_of_session, &border->type) || element->next->next)
      return nnd_bad_plan("an input or output", error);
    if (is_of_session && !nnd_is_as_said(program, &name->text, &border->type))
      return nnd_bad_plan("an input or output is another than the manifest says", error);
    border->value =
        is_of_session ? nnd_value_named(program, &name->text, 0) : nnd_value_of(session, program, &name->text);
    if (border->value < 0) return nnd_bad_plan("too many values", error);
    ++*count;
  }
  return 1;
}

static int nnd_read_symbols(struct nnd_program *program, const struct nnd_json *list, struct nnd_plan *plan,
                            nnd_error *error) {
  if (!nnd_json_of_kind(list, NND_ARRAY)) return nnd_bad_plan("it has no symbols", error);
  plan->symbols = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *plan->symbols, error);
  if (!plan->symbols) return 0;
  NND_EACH(item, list) {
    struct nnd_symbol *one = &plan->symbols[plan->num_symbols++];
    const int is_room = plan->num_grown > 0; /* the input behind the others, of one axis */
    if (!nnd_json_integer(nnd_json_member(item, "number"), 0, plan->num_inputs - 1 + is_room, &one->number) ||
        !nnd_json_integer(nnd_json_member(item, "axis"), 0,
                          one->number < plan->num_inputs ? plan->inputs[one->number].type.rank - 1 : 0, &one->axis) ||
        !nnd_json_integer(nnd_json_member(item, "offset"), -NND_FAR, NND_FAR, &one->offset) ||
        !nnd_json_integer(nnd_json_member(item, "factor"), 1, NND_FAR, &one->factor) ||
        !nnd_json_integer(nnd_json_member(item, "low"), -NND_FAR, NND_FAR, &one->low) ||
        !nnd_json_integer(nnd_json_member(item, "high"), one->low, NND_FAR, &one->high))
      return nnd_bad_plan("a symbol", error);
  }
  return 1;
}

/* Reads outputs that grow; whether there is the symbol that one names is known when the symbols are. */
static int nnd_read_grown(struct nnd_program *program, const struct nnd_json *list, struct nnd_plan *plan,
                          nnd_error *error) {
  const int64_t count = list ? list->count : 0;
  plan->grown = nnd_arena_take(&program->bundle.arena, count * (int64_t)sizeof *plan->grown, error);
  if (!plan->grown) return 0;
  NND_EACH(item, list) {
    struct nnd_grown *one = &plan->grown[plan->num_grown++];
    const struct nnd_json *symbol = nnd_json_member(item, "symbol"), *total = nnd_json_member(item, "is_total");
    one->symbol = -1;
    one->is_total = total && total->kind == NND_TRUE;
    if (!nnd_json_integer(nnd_json_member(item, "output"), 0, plan->num_outputs - 1, &one->output) ||
        !nnd_json_integer(nnd_json_member(item, "input"), 0, plan->num_inputs - 1, &one->input) ||
        !nnd_json_integer(nnd_json_member(item, "axis"), 0, plan->outputs[one->output].type.rank - 1, &one->axis) ||
        !nnd_json_integer(nnd_json_member(item, "added"), 0, 1 << 20, &one->added) ||
        (symbol && symbol->kind != NND_NULL && !nnd_json_integer(symbol, 0, 1 << 20, &one->symbol)) ||
        (one->is_total && one->symbol < 0))
      return nnd_bad_plan("an output that grows", error);
    const struct nnd_type *output = &plan->outputs[one->output].type, *input = &plan->inputs[one->input].type;
    int is_right = output->rank == input->rank && output->dtype == input->dtype && output->shape[one->axis] < 0;
    for (int i = 0; i < plan->num_grown - 1; i++)
      is_right = is_right && plan->grown[i].output != one->output && plan->grown[i].input != one->input;
    if (!is_right) return nnd_bad_plan("an output that does not grow from its input", error);
  }
  return 1;
}

static int nnd_check_grown(const struct nnd_plan *plan, nnd_error *error) {
  for (int i = 0; i < plan->num_grown; i++)
    if (plan->grown[i].symbol >= plan->num_symbols ||
        (plan->grown[i].symbol >= 0 && plan->symbols[plan->grown[i].symbol].number >= plan->num_inputs))
      return nnd_bad_plan("an output that grows by its own room", error);
  return 1;
}

static int nnd_read_plan_document(struct nnd_session *session, struct nnd_program *program,
                                  const struct nnd_json *document, struct nnd_plan *plan, nnd_error *error) {
  const struct nnd_json *moved = nnd_json_member(document, "tells_moved");
  plan->run = program->num_plans++;
  plan->tells_moved = moved && moved->kind == NND_TRUE;
  return nnd_read_borders(session, program, nnd_json_member(document, "inputs"), 0, &plan->inputs, &plan->num_inputs,
                          error) &&
         nnd_read_borders(session, program, nnd_json_member(document, "outputs"), 0, &plan->outputs, &plan->num_outputs,
                          error) &&
         nnd_read_grown(program, nnd_json_member(document, "grown"), plan, error) &&
         nnd_read_symbols(program, nnd_json_member(document, "symbols"), plan, error) && nnd_check_grown(plan, error);
}

/* Reads names of values; returns their numbers, null and the error. */
static int *nnd_read_names(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *list,
                           int *count, nnd_error *error) {
  int *numbers = nnd_json_of_kind(list, NND_ARRAY)
                     ? nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *numbers, error)
                     : NULL;
  *count = 0;
  NND_EACH(item, numbers ? list : NULL) {
    const int value = item->kind == NND_STRING ? nnd_value_of(session, program, &item->text) : -1;
    if (value < 0) numbers = NULL;
    if (!numbers) break;
    numbers[(*count)++] = value;
  }
  if (!numbers) nnd_bad_plan("names of values", error);
  return numbers;
}

static int nnd_read_course(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                           int depth, struct nnd_course *course, nnd_error *error);

/* Reads [name, element, sizes] of a value of which one size is 0. */
static int nnd_read_empty(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                          struct nnd_part *part, nnd_error *error) {
  const struct nnd_json *name = nnd_json_of_kind(from, NND_ARRAY) ? nnd_json_of_kind(from->first, NND_STRING) : NULL;
  const struct nnd_json *element = name ? nnd_json_of_kind(name->next, NND_STRING) : NULL;
  part->kind = NND_MAKE_EMPTY;
  if (!element || !nnd_element_named(&element->text, &part->type.dtype) ||
      !nnd_sizes_of(element->next, &part->type.rank, part->type.shape, NULL) ||
      nnd_bytes_in(part->type.dtype, part->type.rank, part->type.shape) != 0)
    return nnd_bad_plan("a value without elements", error);
  part->number = nnd_value_of(session, program, &name->text);
  return part->number >= 0 ? 1 : nnd_bad_plan("too many values", error);
}

static int nnd_read_choice(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                           int depth, struct nnd_part *part, nnd_error *error) {
  const struct nnd_json *by = nnd_json_of_kind(nnd_json_member(from, "if"), NND_STRING);
  int count;
  part->kind = NND_CHOOSE;
  part->number = by ? nnd_value_of(session, program, &by->text) : -1;
  if (part->number < 0) return nnd_bad_plan("a choice", error);
  part->outputs = nnd_read_names(session, program, nnd_json_member(from, "outputs"), &count, error);
  if (!part->outputs) return 0;
  for (int i = 0; i < 2; i++) {
    struct nnd_course *of = &part->of[i];
    if (!nnd_open_scope(session, program)) return nnd_bad_plan("too many choices inside of each other", error);
    if (!nnd_read_course(session, program, nnd_json_member(from, i ? "else" : "then"), depth - 1, of, error)) return 0;
    session->num_scopes--; /* what a branch makes is seen by nobody else */
    const int is_refused = of->num_parts == 1 && of->parts[0].kind == NND_REFUSE && !of->num_results;
    if (of->num_results != count && !is_refused) return nnd_bad_plan("branches that give other values", error);
  }
  return 1;
}

static int nnd_read_step(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                         struct nnd_part *part, nnd_error *error) {
  struct nnd_step *step = nnd_arena_take(&program->bundle.arena, sizeof *step, error);
  part->kind = NND_STEP, part->step = step;
  if (!step) return 0;
  step->inputs = nnd_read_names(session, program, nnd_json_member(from, "inputs"), &step->num_inputs, error);
  step->outputs = step->inputs
                      ? nnd_read_names(session, program, nnd_json_member(from, "outputs"), &step->num_outputs, error)
                      : NULL;
  return step->outputs && nnd_step_read(session, program, from, step, error);
}

static int nnd_read_part(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                         int depth, struct nnd_part *part, nnd_error *error) {
  const struct nnd_json *empty = nnd_json_member(from, "empty");
  const struct nnd_json *refused = nnd_json_of_kind(nnd_json_member(from, "refused"), NND_STRING);
  int64_t number;
  if (nnd_json_integer(from, 0, session->num_plans - 1, &number)) {
    part->kind = NND_RUN_PLAN, part->number = (int)number;
    if (session->plans[number].inputs) return nnd_bad_plan("a plan that stands twice", error);
    return nnd_read_plan_document(session, program, session->documents[number], &session->plans[number], error);
  }
  if (empty) return nnd_read_empty(session, program, empty, part, error);
  if (nnd_json_of_kind(nnd_json_member(from, "step"), NND_STRING))
    return nnd_read_step(session, program, from, part, error);
  if (!refused) return nnd_read_choice(session, program, from, depth, part, error);
  part->kind = NND_REFUSE, part->reason = refused->text;
  return 1;
}

static int nnd_read_course(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                           int depth, struct nnd_course *course, nnd_error *error) {
  const struct nnd_json *parts = nnd_json_of_kind(nnd_json_member(from, "parts"), NND_ARRAY);
  if (!parts || depth < 0) return nnd_bad_plan("a course", error);
  course->parts = nnd_arena_take(&program->bundle.arena, parts->count * (int64_t)sizeof *course->parts, error);
  if (!course->parts) return 0;
  NND_EACH(item, parts) {
    if (!nnd_read_part(session, program, item, depth, &course->parts[course->num_parts++], error)) return 0;
  }
  course->results = nnd_read_names(session, program, nnd_json_member(from, "results"), &course->num_results, error);
  return course->results != NULL;
}

/* A plan that stands alone is a course of this one part. */
static int nnd_read_alone(struct nnd_session *session, struct nnd_program *program, nnd_error *error) {
  session->course.parts = nnd_arena_take(&program->bundle.arena, sizeof *session->course.parts, error);
  session->course.num_parts = session->course.parts != NULL;
  return session->course.num_parts &&
         nnd_read_plan_document(session, program, session->documents[0], session->plans, error);
}

int nnd_document_read(struct nnd_session *session, struct nnd_program *program, const uint8_t *text, int64_t size,
                      nnd_error *error) {
  const struct nnd_json *document =
      size > NND_MOST_PLAN ? NULL : nnd_json_parse((const char *)text, size, &program->bundle.arena, error);
  if (!document) return nnd_bad_plan("no JSON", error);
  const struct nnd_json *list = nnd_json_member(document, "plans");
  session->num_plans = nnd_json_of_kind(list, NND_ARRAY) ? (int)(list->count < 4096 ? list->count : 4096) : 1;
  session->plans = nnd_arena_take(&program->bundle.arena, session->num_plans * (int64_t)sizeof *session->plans, error);
  if (!session->plans ||
      !nnd_read_borders(session, program, nnd_json_member(document, "inputs"), 1, &session->inputs,
                        &session->num_inputs, error) ||
      !nnd_read_borders(session, program, nnd_json_member(document, "outputs"), 1, &session->outputs,
                        &session->num_outputs, error))
    return 0;
  session->documents =
      nnd_arena_take(&program->bundle.arena, session->num_plans * (int64_t)sizeof *session->documents, error);
  if (!session->documents || !nnd_open_scope(session, program)) return 0;
  if (!list) {
    session->documents[0] = document;
    return nnd_read_alone(session, program, error);
  }
  int count = 0;
  NND_EACH(plan, list) {
    if (count < session->num_plans) session->documents[count++] = plan;
  }
  if (!nnd_read_course(session, program, nnd_json_member(document, "course"), NND_MOST_CHOICES, &session->course,
                       error))
    return 0;
  for (int i = 0; i < session->num_plans; i++)
    if (!session->plans[i].inputs) return nnd_bad_plan("a plan that stands nowhere", error);
  return 1;
}
