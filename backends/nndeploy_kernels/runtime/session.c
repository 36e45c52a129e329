/* SPDX-License-Identifier: Apache-2.0
 *
 * A submodel -> a session: its first variant of the backend `native`, whose plan the kernels of this processor open.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/program.h"

#define NND_FAR ((int64_t)1 << 40)
#define NND_MOST_PLAN ((int64_t)64 << 20)
#define NND_FORMAT_OF_FIXED 5
#define NND_FORMAT_OF_HALVES 7

static const char *const nnd_elements[] = {"fp32", "int32", "int64", "bool", "uint8", "int8", "fp16"};

static int nnd_bad_plan(const struct nnd_session *session, const char *why, nnd_error *error) {
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: submodel %.*s: a malformed plan.json: %s",
                       (int)session->id.size, session->id.data, why);
}

static const struct nnd_json *nnd_native_variant(const struct nnd_json *submodel) {
  NND_EACH(variant, nnd_json_of_kind(nnd_json_member(submodel, "variants"), NND_ARRAY)) {
    const struct nnd_json *backend = nnd_json_of_kind(nnd_json_member(variant, "backend"), NND_STRING);
    if (backend && nnd_is_text(&backend->text, "native")) return variant;
  }
  return NULL;
}

static uint8_t *nnd_file_of(struct nnd_program *program, const struct nnd_json *variant, const char *file,
                            int64_t *size, nnd_error *error) {
  const struct nnd_json *member =
      nnd_json_of_kind(nnd_json_member(nnd_json_member(variant, "files"), file), NND_STRING);
  if (member) return nnd_bundle_member(&program->bundle, &member->text, size, error);
  nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: the artifact has no %s", file);
  return NULL;
}

/* Returns whether a border is what the manifest says of its value; a size that has a name there may be any here. */
static int nnd_is_as_said(const struct nnd_program *program, const struct nnd_text *name, const struct nnd_type *type) {
  const struct nnd_json *values = nnd_json_member(program->bundle.manifest, "values");
  struct nnd_type said;
  NND_EACH(item, nnd_json_of_kind(values, NND_OBJECT)) {
    if (item->key.size != name->size || memcmp(item->key.data, name->data, (size_t)name->size)) continue;
    if (!nnd_dtype_named(nnd_json_member(item, "dtype"), &said.dtype) || said.dtype != type->dtype) return 0;
    const struct nnd_json *sizes = nnd_json_member(item, "shape");
    if (sizes && sizes->kind == NND_NULL) return 1;
    if (!nnd_shape_of(sizes, &said.rank, said.shape, said.symbols) || said.rank != type->rank) return 0;
    for (int i = 0; i < said.rank; i++)
      if (said.shape[i] >= 0 && said.shape[i] != type->shape[i]) return 0;
    return 1;
  }
  return 0;
}

/* Reads the borders of one side, each [name, element, sizes]. */
static int nnd_read_borders(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *list,
                            struct nnd_border **borders, int *count, nnd_error *error) {
  if (!nnd_json_of_kind(list, NND_ARRAY)) return nnd_bad_plan(session, "it has no inputs or outputs", error);
  *borders = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof **borders, error);
  if (!*borders) return 0;
  *count = 0;
  NND_EACH(item, list) {
    struct nnd_border *border = &(*borders)[(*count)++];
    const struct nnd_json *name = nnd_json_of_kind(item, NND_ARRAY) ? nnd_json_of_kind(item->first, NND_STRING) : NULL;
    const struct nnd_json *element = name ? nnd_json_of_kind(name->next, NND_STRING) : NULL;
    int dtype = 0;
    while (element && dtype < 7 && !nnd_is_text(&element->text, nnd_elements[dtype])) dtype++;
    if (!element || dtype == 7 || !nnd_shape_of(element->next, &border->type.rank, border->type.shape, NULL) ||
        element->next->next)
      return nnd_bad_plan(session, "an input or output", error);
    border->type.dtype = (nnd_dtype)dtype;
    if (!nnd_is_as_said(program, &name->text, &border->type))
      return nnd_bad_plan(session, "an input or output is another than the manifest says", error);
    if ((border->value = nnd_value_named(program, &name->text)) < 0)
      return nnd_bad_plan(session, "too many values", error);
  }
  return 1;
}

static int nnd_read_symbols(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *list,
                            nnd_error *error) {
  if (!nnd_json_of_kind(list, NND_ARRAY)) return nnd_bad_plan(session, "it has no symbols", error);
  session->symbols = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *session->symbols, error);
  if (!session->symbols) return 0;
  NND_EACH(item, list) {
    struct nnd_symbol *one = &session->symbols[session->num_symbols++];
    if (!nnd_json_integer(nnd_json_member(item, "number"), 0, session->num_inputs - 1, &one->number) ||
        !nnd_json_integer(nnd_json_member(item, "axis"), 0, session->inputs[one->number].type.rank - 1, &one->axis) ||
        !nnd_json_integer(nnd_json_member(item, "offset"), -NND_FAR, NND_FAR, &one->offset) ||
        !nnd_json_integer(nnd_json_member(item, "factor"), 1, NND_FAR, &one->factor) ||
        !nnd_json_integer(nnd_json_member(item, "low"), -NND_FAR, NND_FAR, &one->low) ||
        !nnd_json_integer(nnd_json_member(item, "high"), one->low, NND_FAR, &one->high))
      return nnd_bad_plan(session, "a symbol", error);
  }
  return 1;
}

static int nnd_read_document(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *variant,
                             nnd_error *error) {
  int64_t size;
  uint8_t *text = nnd_file_of(program, variant, "plan.json", &size, error);
  if (!text) return 0;
  const struct nnd_json *document =
      size > NND_MOST_PLAN ? NULL : nnd_json_parse((const char *)text, size, &program->bundle.arena, error);
  nnd_pages_free(text, size + 1);
  if (!document) return nnd_bad_plan(session, "no JSON", error);
  return nnd_read_borders(session, program, nnd_json_member(document, "inputs"), &session->inputs, &session->num_inputs,
                          error) &&
         nnd_read_borders(session, program, nnd_json_member(document, "outputs"), &session->outputs,
                          &session->num_outputs, error) &&
         nnd_read_symbols(session, program, nnd_json_member(document, "symbols"), error);
}

/* Checks that the plan is of a kind that is run here, and finds the kernels. */
static int nnd_find_kernels(struct nnd_session *session, const struct nnd_json *variant, nnd_error *error) {
  const struct nnd_json *metadata = nnd_json_member(variant, "metadata");
  const struct nnd_json *precision = nnd_json_of_kind(nnd_json_member(metadata, "precision"), NND_STRING);
  const char *least;
  int64_t format;
  if (!nnd_json_integer(nnd_json_member(metadata, "format"), 0, 1 << 20, &format))
    return nnd_bad_plan(session, "it has no format", error);
  if (format != NND_FORMAT_OF_FIXED && format != NND_FORMAT_OF_HALVES)
    return nnd_fail_with(error, NND_UNAVAILABLE,
                         "submodel %.*s: a plan of format %d; this runs %d and %d (caches that grow and control flow "
                         "run with Python)",
                         (int)session->id.size, session->id.data, (int)format, NND_FORMAT_OF_FIXED,
                         NND_FORMAT_OF_HALVES);
  session->kernels = nnd_kernels_here(precision && nnd_is_text(&precision->text, "bf16"), &least);
  if (session->kernels) return 1;
  return nnd_fail_with(error, NND_UNAVAILABLE, "this processor has no kernels: the least is %s", least);
}

static int nnd_open_model(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *variant,
                          nnd_error *error) {
  char message[300];
  int64_t plan_bytes, buffer = 0;
  nnd_json_integer(nnd_json_member(nnd_json_member(variant, "metadata"), "buffer_bytes"), 1, NND_FAR, &buffer);
  session->weights = nnd_file_of(program, variant, "weights.bin", &session->weights_bytes, error);
  uint8_t *plan = session->weights ? nnd_file_of(program, variant, "plan.bin", &plan_bytes, error) : NULL;
  if (!plan) return 0;
  const struct nnd_kernel_options options = {nnd_second_cache_bytes(), buffer, session->threads, 1, 0, 0};
  session->model = session->kernels->model_open(plan, plan_bytes, session->weights, session->weights_bytes, &options,
                                                message, sizeof message);
  nnd_pages_free(plan, plan_bytes + 1);
  if (!session->model) {
    const int is_newer = !strncmp(message, "another library", 15);
    return nnd_fail_with(error, is_newer ? NND_UNAVAILABLE : NND_BAD_DATA, "%ssubmodel %.*s: plan.bin: %s",
                         is_newer ? "" : "bad-bundle: ", (int)session->id.size, session->id.data, message);
  }
  if (session->kernels->num_inputs(session->model) != session->num_inputs ||
      session->kernels->num_outputs(session->model) != session->num_outputs)
    return nnd_bad_plan(session, "plan.bin is of another build", error);
  if (session->threads > 1) session->pool = session->kernels->pool_make(session->model, session->threads);
  return 1;
}

int nnd_session_open(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *submodel,
                     int threads, nnd_error *error) {
  const struct nnd_json *id = nnd_json_of_kind(nnd_json_member(submodel, "id"), NND_STRING);
  const struct nnd_json *variant = nnd_native_variant(submodel);
  if (id) session->id = id->text;
  pthread_mutex_init(&session->pool_lock, NULL);
  session->threads = threads;
  if (!variant)
    return nnd_fail_with(error, NND_UNAVAILABLE,
                         "submodel %.*s has no variant of the backend native (hint: compile with --backends native)",
                         (int)session->id.size, session->id.data ? session->id.data : "");
  return nnd_find_kernels(session, variant, error) && nnd_read_document(session, program, variant, error) &&
         nnd_open_model(session, program, variant, error);
}

void nnd_session_close(struct nnd_session *session) {
  if (!session->kernels) return;
  if (session->pool) session->kernels->pool_free(session->pool);
  if (session->model) session->kernels->model_close(session->model);
  nnd_pages_free(session->weights, session->weights_bytes + 1);
  pthread_mutex_destroy(&session->pool_lock);
}
