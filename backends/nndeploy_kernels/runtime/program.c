/* SPDX-License-Identifier: Apache-2.0
 *
 * bundle -> container -> manifest -> inputs, outputs, what the bundle holds -> a session for each submodel
 */
#include "runtime/program.h"

#include "runtime/decisions.h"
#include "runtime/image.h"
#include "runtime/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int nnd_bad_manifest(nnd_error *error, const char *why) {
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: manifest.json: %s", why);
}

const struct nnd_end_of_program *nnd_end_named(const struct nnd_end_of_program *ends, int count,
                                               const struct nnd_text *name) {
  for (int i = 0; i < count; i++)
    if (nnd_is_text(name, ends[i].info.name)) return &ends[i];
  return NULL;
}

int nnd_value_known(const struct nnd_program *program, const struct nnd_text *name, int scope) {
  for (int i = 0; i < program->num_values; i++)
    if (program->values[i].scope == scope && nnd_is_same_text(&program->values[i].name, name)) return i;
  return -1;
}

int nnd_value_named(struct nnd_program *program, const struct nnd_text *name, int scope) {
  const int known = nnd_value_known(program, name, scope);
  if (known >= 0) return known;
  if (program->num_values == program->most_values) return -1;
  program->values[program->num_values].name = *name;
  program->values[program->num_values].scope = scope;
  return program->num_values++;
}

/* Reads the inputs or outputs of the program. */
static int nnd_read_ends(struct nnd_program *program, const char *side, struct nnd_end_of_program **ends, int *count,
                         nnd_error *error) {
  const struct nnd_json *list = nnd_json_of_kind(nnd_json_member(program->bundle.manifest, side), NND_ARRAY);
  if (!list) return nnd_bad_manifest(error, "it has no inputs or outputs");
  *ends = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof **ends, error);
  if (!*ends) return 0;
  NND_EACH(item, list) {
    struct nnd_end_of_program *end = &(*ends)[(*count)++];
    const struct nnd_json *name = nnd_json_of_kind(nnd_json_member(item, "name"), NND_STRING);
    const struct nnd_json *type = nnd_json_member(item, "type");
    if (!name || !nnd_json_of_kind(nnd_json_member(type, "kind"), NND_STRING))
      return nnd_bad_manifest(error, "an input or output without a name or a type");
    if (!nnd_type_of(type, &end->type) || end->type.rank < 0 || (end->type.is_maps && !strcmp(side, "inputs")))
      return nnd_fail_with(error, NND_UNAVAILABLE, "%.*s '%.*s' is of a type that is not run here",
                           (int)strlen(side) - 1, side, (int)name->text.size, name->text.data);
    end->info = (nnd_info){name->text.data, end->type.dtype, end->type.rank, end->type.shape};
    if ((end->value = nnd_value_named(program, &name->text, 0)) < 0) return nnd_bad_manifest(error, "too many values");
  }
  return 1;
}

static int nnd_read_ranges(struct nnd_program *program, nnd_error *error) {
  const struct nnd_json *list = nnd_json_of_kind(nnd_json_member(program->bundle.manifest, "ranges"), NND_OBJECT);
  if (!list) return nnd_bad_manifest(error, "it has no ranges");
  program->ranges = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *program->ranges, error);
  if (!program->ranges) return 0;
  NND_EACH(item, list) {
    struct nnd_range *range = &program->ranges[program->num_ranges++];
    range->symbol = item->key;
    range->step = 1;
    const struct nnd_json *step = nnd_json_member(item, "step");
    if (!nnd_json_integer(nnd_json_member(item, "min"), 0, INT64_MAX / 2, &range->min) ||
        !nnd_json_integer(nnd_json_member(item, "max"), range->min, INT64_MAX / 2, &range->max) ||
        (step && !nnd_json_integer(step, 1, INT64_MAX / 2, &range->step)))
      return nnd_bad_manifest(error, "a range");
  }
  return 1;
}

/* Puts what a member holds where its values stand. */
static int nnd_hold(struct nnd_program *program, const struct nnd_json *member, nnd_error *error) {
  struct nnd_held *values;
  int count;
  if (!nnd_json_of_kind(member, NND_STRING)) return nnd_bad_manifest(error, "what it holds is no member");
  if (!nnd_bundle_values(&program->bundle, &member->text, &values, &count, error)) return 0;
  for (int i = 0; i < count; i++) {
    const int value = nnd_value_named(program, &values[i].name, 0);
    if (value < 0) return nnd_bad_manifest(error, "too many values");
    program->values[value].held = &values[i];
  }
  return 1;
}

static int nnd_read_held(struct nnd_program *program, nnd_error *error) {
  const struct nnd_json *constants = nnd_json_member(program->bundle.manifest, "constants");
  NND_EACH(item, nnd_json_of_kind(nnd_json_member(program->bundle.manifest, "defaults"), NND_OBJECT)) {
    if (!nnd_hold(program, item, error)) return 0;
  }
  return constants && constants->kind == NND_STRING && !constants->text.size ? 1 : nnd_hold(program, constants, error);
}

/* An output that passes an input through is the same value. */
static int nnd_read_aliases(struct nnd_program *program, nnd_error *error) {
  NND_EACH(item, nnd_json_of_kind(nnd_json_member(program->bundle.manifest, "aliases"), NND_OBJECT)) {
    int is_found = 0;
    if (!nnd_json_of_kind(item, NND_STRING)) return nnd_bad_manifest(error, "an alias");
    for (int i = 0; i < program->num_outputs; i++)
      for (int j = 0; j < program->num_inputs; j++)
        if (nnd_is_text(&item->key, program->outputs[i].info.name) &&
            nnd_is_text(&item->text, program->inputs[j].info.name)) {
          program->outputs[i].value = program->inputs[j].value;
          is_found = 1;
        }
    if (!is_found) return nnd_bad_manifest(error, "an alias of nothing");
  }
  return 1;
}

/* Returns the keys of the maps that a value is, null where no step that always runs makes it. */
static const nnd_tensor *nnd_keys_of(const struct nnd_program *program, int value) {
  for (int s = 0; s < program->num_sessions; s++) {
    const struct nnd_course *course = &program->sessions[s].course;
    for (int i = 0; i < course->num_parts; i++) {
      const struct nnd_step *step = course->parts[i].kind == NND_STEP ? course->parts[i].step : NULL;
      if (step && step->kind == NND_ZIP_MAP && step->outputs[0] == value) return &step->table;
    }
  }
  return NULL;
}

static int nnd_find_keys(struct nnd_program *program, nnd_error *error) {
  for (int i = 0; i < program->num_outputs; i++) {
    struct nnd_end_of_program *output = &program->outputs[i];
    if (!output->type.is_maps) continue;
    output->keys = nnd_keys_of(program, output->value);
    if (!output->keys || output->keys->dtype != output->type.keys)
      return nnd_fail_with(error, NND_UNAVAILABLE, "the keys of output '%s' are known to Python alone",
                           output->info.name);
    output->type.shape[1] = output->keys->shape[0];
  }
  return 1;
}

/* Checks that each value is there before it is read, and made once. */
static int nnd_check_order(struct nnd_program *program, nnd_error *error) {
  char *is_there = nnd_arena_take(&program->bundle.arena, program->num_values, error);
  if (!is_there) return 0;
  for (int i = 0; i < program->num_values; i++) is_there[i] = program->values[i].held != NULL;
  for (int i = 0; i < program->num_inputs; i++) is_there[program->inputs[i].value] = 1;
  for (int s = 0; s < program->num_sessions; s++) {
    const struct nnd_session *session = &program->sessions[s];
    for (int i = 0; i < session->num_inputs; i++)
      if (!is_there[session->inputs[i].value]) return nnd_bad_manifest(error, "a value is read before it is made");
    for (int i = 0; i < session->num_outputs; i++) {
      if (is_there[session->outputs[i].value]) return nnd_bad_manifest(error, "a value is made twice");
      is_there[session->outputs[i].value] = 1;
    }
  }
  for (int i = 0; i < program->num_outputs; i++)
    if (!is_there[program->outputs[i].value]) return nnd_bad_manifest(error, "nothing makes an output");
  return 1;
}

static int nnd_open_sessions(struct nnd_program *program, int threads, nnd_error *error) {
  const struct nnd_json *list = nnd_json_of_kind(nnd_json_member(program->bundle.manifest, "submodels"), NND_ARRAY);
  if (!list) return nnd_bad_manifest(error, "it has no submodels");
  program->sessions = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *program->sessions, error);
  if (!program->sessions) return 0;
  NND_EACH(item, list) {
    if (!nnd_session_open(&program->sessions[program->num_sessions++], program, item, threads, error)) return 0;
  }
  return 1;
}

static int nnd_opened(struct nnd_program *program, const nnd_options *options, const char *decisions,
                      struct nnd_condition condition, nnd_error *error) {
  const int asked = options ? options->threads : 0, threads = asked > 0 ? asked : nnd_num_processors();
  if (!nnd_bundle_open(&program->bundle, error)) return 0;
  if (condition.is_met && !condition.is_met(&program->bundle, condition.by, error)) return 0;
  if (!nnd_check_code(program->bundle.manifest, error)) return 0;
  if (decisions && !nnd_decisions_read(program, decisions, (int64_t)strlen(decisions), error)) return 0;
  const struct nnd_json *name = nnd_json_of_kind(nnd_json_member(program->bundle.manifest, "model_name"), NND_STRING);
  program->model_name = name ? name->text.data : "";
  const struct nnd_json *values = nnd_json_member(program->bundle.manifest, "values");
  program->most_values = (int)(values ? values->count : 0) + 4096;
  program->values =
      nnd_arena_take(&program->bundle.arena, program->most_values * (int64_t)sizeof *program->values, error);
  return program->values && nnd_read_ends(program, "inputs", &program->inputs, &program->num_inputs, error) &&
         nnd_read_ends(program, "outputs", &program->outputs, &program->num_outputs, error) &&
         nnd_read_ranges(program, error) && nnd_image_read(program, &program->image, error) &&
         nnd_read_held(program, error) && nnd_read_aliases(program, error) &&
         nnd_open_sessions(program, threads, error) && nnd_check_order(program, error) && nnd_find_keys(program, error);
}

static nnd_program *nnd_open_source(struct nnd_source source, const nnd_options *options, const char *decisions,
                                    struct nnd_condition condition, nnd_error *error) {
  nnd_program *program = calloc(1, sizeof *program);
  if (!program) {
    nnd_source_close(&source);
    nnd_fail_with(error, NND_NO_MEMORY, "no memory for a program");
    return NULL;
  }
  program->bundle.container.source = source;
  if (nnd_opened(program, options, decisions, condition, error)) {
    nnd_source_close(&program->bundle.container.source);
    return program;
  }
  nnd_close(program);
  return NULL;
}

nnd_program *nnd_open_if(const char *path, const void *bytes, int64_t size, const nnd_options *options,
                         const char *decisions, struct nnd_condition condition, nnd_error *error) {
  struct nnd_source source = {.file = -1, .stays = bytes && path, .memory = bytes, .size = size};
  nnd_error own;
  if (!error) error = &own;
  if (!bytes && !nnd_source_open(&source, path, error)) return NULL;
  nnd_program *program = nnd_open_source(source, options, decisions, condition, error);
  if (!program && path) nnd_put_place(error, path);
  return program;
}

nnd_program *nnd_open(const char *path, const nnd_options *options, nnd_error *error) {
  return nnd_open_tuned(path, NULL, options, error);
}

nnd_program *nnd_open_tuned(const char *path, const char *decisions, const nnd_options *options, nnd_error *error) {
  return nnd_open_if(path, NULL, 0, options, decisions, (struct nnd_condition){0}, error);
}

nnd_program *nnd_open_memory(const void *bytes, int64_t size, const nnd_options *options, nnd_error *error) {
  return nnd_open_if(NULL, bytes ? bytes : "", bytes ? size : 0, options, NULL, (struct nnd_condition){0}, error);
}

void nnd_close(nnd_program *program) {
  if (!program) return;
  for (int i = 0; i < program->num_sessions; i++) nnd_session_close(&program->sessions[i]);
  nnd_bundle_close(&program->bundle);
  free(program);
}

int nnd_num_inputs(const nnd_program *program) { return program->num_inputs; }

int nnd_num_outputs(const nnd_program *program) { return program->num_outputs; }

const nnd_info *nnd_input(const nnd_program *program, int number) {
  return number >= 0 && number < program->num_inputs ? &program->inputs[number].info : NULL;
}

const nnd_info *nnd_output(const nnd_program *program, int number) {
  return number >= 0 && number < program->num_outputs ? &program->outputs[number].info : NULL;
}

const nnd_tensor *nnd_output_keys(const nnd_program *program, int number) {
  return number >= 0 && number < program->num_outputs ? program->outputs[number].keys : NULL;
}

const char *nnd_model_name(const nnd_program *program) { return program->model_name; }

const char *nnd_level(const nnd_program *program) {
  return program->num_sessions ? program->sessions[0].kernels->level() : "";
}

const char *nnd_decisions_note(const nnd_program *program) {
  const struct nnd_decisions *decisions = &program->decisions;
  if (!decisions->tuned || decisions->num_taken) return "";
  return decisions->is_of_bundle ? "the decisions were made on another machine, or with other threads"
                                 : "the decisions are for another bundle";
}
