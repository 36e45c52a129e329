/* SPDX-License-Identifier: Apache-2.0
 *
 * A submodel -> a session: its first variant of the backend `native`, whose plan the kernels of this processor open.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/decisions.h"

#define NND_FAR ((int64_t)1 << 40)
#define NND_FORMAT_OF_FIXED 5 /* the first of those that are run here; the last: */
#define NND_FORMAT_OF_FOUND 12

static const struct nnd_json *nnd_native_variant(const struct nnd_json *submodel) {
  NND_EACH(variant, nnd_json_of_kind(nnd_json_member(submodel, "variants"), NND_ARRAY)) {
    const struct nnd_json *backend = nnd_json_of_kind(nnd_json_member(variant, "backend"), NND_STRING);
    if (backend && nnd_is_text(&backend->text, "native")) return variant;
  }
  return NULL;
}

/* Returns the name of the member that a variant has as `file`; null and the error where it has none. */
static const struct nnd_text *nnd_member_of(const struct nnd_json *variant, const char *file, nnd_error *error) {
  const struct nnd_json *member =
      nnd_json_of_kind(nnd_json_member(nnd_json_member(variant, "files"), file), NND_STRING);
  if (member) return &member->text;
  nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: the artifact has no %s", file);
  return NULL;
}

static uint8_t *nnd_file_of(struct nnd_program *program, const struct nnd_json *variant, const char *file,
                            int64_t *size, nnd_error *error) {
  const struct nnd_text *member = nnd_member_of(variant, file, error);
  return member ? nnd_bundle_member(&program->bundle, member, size, error) : NULL;
}

/* Finds the weights: where they lie, if that is memory that stays. */
static int nnd_find_weights(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *variant,
                            nnd_error *error) {
  const struct nnd_text *member = nnd_member_of(variant, "weights.bin", error);
  if (!member) return 0;
  session->weights_are_own = !nnd_bundle_in_place(&program->bundle, member, &session->weights, &session->weights_bytes);
  if (!session->weights_are_own)
    return nnd_bundle_check_bytes(&program->bundle, member, session->weights, session->weights_bytes, error);
  session->weights = nnd_bundle_member(&program->bundle, member, &session->weights_bytes, error);
  return session->weights != NULL;
}

/* Reads what runs of the plans. */
static int nnd_read_document(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *variant,
                             nnd_error *error) {
  int64_t size;
  uint8_t *text = nnd_file_of(program, variant, "plan.json", &size, error);
  const int is_read = text && nnd_document_read(session, program, text, size, error);
  if (text) nnd_pages_free(text, size + 1);
  return is_read;
}

/* Checks that the plan is of a kind that is run here, and finds the kernels. */
static int nnd_find_kernels(struct nnd_session *session, const struct nnd_json *variant, nnd_error *error) {
  const struct nnd_json *metadata = nnd_json_member(variant, "metadata");
  const struct nnd_json *precision = nnd_json_of_kind(nnd_json_member(metadata, "precision"), NND_STRING);
  const char *least;
  const struct nnd_json *format = nnd_json_member(metadata, "format");
  const struct nnd_text none = {"None", 4}, *said = format && format->text.data ? &format->text : &none;
  int64_t number;
  if (!nnd_json_integer(format, NND_FORMAT_OF_FIXED, NND_FORMAT_OF_FOUND, &number))
    return nnd_fail_with(
        error, NND_UNAVAILABLE,
        "%s: no variant can run here: native: an artifact of format %.*s; this nndeploy reads %d to %d",
        session->id.data, (int)(said->size < 20 ? said->size : 20), said->data, NND_FORMAT_OF_FIXED,
        NND_FORMAT_OF_FOUND);
  session->kernels = nnd_kernels_here(precision && nnd_is_text(&precision->text, "bf16"), &least);
  if (session->kernels) return 1;
  return nnd_fail_with(error, NND_UNAVAILABLE, "this processor has no kernels: the least is %s", least);
}

static int nnd_open_plan(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *variant,
                         const char *file, struct nnd_plan *plan, int64_t buffer_bytes, nnd_error *error) {
  char message[300];
  int64_t size;
  uint8_t *data = nnd_file_of(program, variant, file, &size, error);
  if (!data) return 0;
  struct nnd_kernel_options options = {.l2_bytes = nnd_cache_bytes(2),
                                       .buffer_bytes = buffer_bytes,
                                       .threads = session->threads,
                                       .gives_weights = session->weights_are_own && session->num_plans == 1};
  if (!nnd_decisions_find(program, session, plan, data, size, buffer_bytes, error) ||
      !nnd_decisions_ways(program, plan, &options, error)) {
    nnd_pages_free(data, size + 1);
    return 0;
  }
  plan->model = session->kernels->model_open(data, size, session->weights, session->weights_bytes, &options, message,
                                             sizeof message);
  nnd_pages_free(data, size + 1);
  if (!plan->model) {
    const int is_newer = !strncmp(message, "another library", 15);
    return nnd_fail_with(error, is_newer ? NND_UNAVAILABLE : NND_BAD_DATA, "%s%s: %s", is_newer ? "" : NND_BAD_BUNDLE,
                         file, message);
  }
  if (session->kernels->num_inputs(plan->model) != plan->num_inputs + (plan->num_grown > 0) ||
      session->kernels->num_outputs(plan->model) != plan->num_outputs + plan->tells_moved)
    return nnd_bad_plan("it is of another build than its plans", error);
  return nnd_decisions_take(program, plan, session->kernels->num_steps(plan->model), error);
}

static int nnd_open_plans(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *variant,
                          int is_course, nnd_error *error) {
  int64_t buffer_bytes = 0, most_steps = -1;
  const void *largest = NULL;
  nnd_json_integer(nnd_json_member(nnd_json_member(variant, "metadata"), "buffer_bytes"), 1, NND_FAR, &buffer_bytes);
  if (!nnd_find_weights(session, program, variant, error)) return 0;
  for (int i = 0; i < session->num_plans; i++) {
    char file[32] = "plan.bin";
    if (is_course) snprintf(file, sizeof file, "plan.%d.bin", i);
    if (!nnd_open_plan(session, program, variant, file, &session->plans[i], buffer_bytes, error)) return 0;
    const int64_t steps = session->kernels->num_steps(session->plans[i].model);
    if (steps > most_steps) most_steps = steps, largest = session->plans[i].model;
  }
  if (!session->weights_are_own) nnd_pages_leave(session->weights, session->weights_bytes); /* most were packed */
  if (session->threads > 1 && largest) session->pool = session->kernels->pool_make(largest, session->threads);
  return 1;
}

int nnd_session_open(struct nnd_session *session, struct nnd_program *program, const struct nnd_json *submodel,
                     int threads, nnd_error *error) {
  const struct nnd_json *id = nnd_json_of_kind(nnd_json_member(submodel, "id"), NND_STRING);
  const struct nnd_json *variant = nnd_native_variant(submodel);
  const struct nnd_json *name = nnd_json_of_kind(nnd_json_member(variant, "id"), NND_STRING);
  session->id = id ? id->text : (struct nnd_text){"", 0};
  session->variant = name ? name->text : (struct nnd_text){"", 0};
  atomic_flag_clear(&session->pool_is_taken);
  session->threads = threads;
  if (!variant)
    return nnd_fail_with(error, NND_UNAVAILABLE,
                         "submodel %.*s has no variant of the backend native (hint: compile with --backends native)",
                         (int)session->id.size, session->id.data);
  if (!nnd_find_kernels(session, variant, error) || !nnd_read_document(session, program, variant, error)) return 0;
  const int is_course = session->course.results != NULL;
  return nnd_open_plans(session, program, variant, is_course, error);
}

void nnd_session_close(struct nnd_session *session) {
  if (!session->kernels) return;
  if (session->pool) session->kernels->pool_free(session->pool);
  for (int i = 0; session->plans && i < session->num_plans; i++)
    if (session->plans[i].model) session->kernels->model_close(session->plans[i].model);
  if (session->weights_are_own) nnd_pages_free((void *)session->weights, session->weights_bytes + 1);
}
