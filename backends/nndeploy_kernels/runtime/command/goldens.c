/* SPDX-License-Identifier: Apache-2.0
 *
 * --verify: every byte against its hashes, then the goldens of the bundle run and compared with their reference, as
 * `nndeploy verify` does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/command.h"
#include "runtime/command/compare.h"
#include "runtime/command/numbers.h"
#include "runtime/program.h"

/* What was compared so far. */
struct nnd_tally {
  int total, failed;
};

static int nnd_bad_golden(nnd_error *error, const char *why) {
  return nnd_fail(error, NND_BAD_DATA, "bad-bundle: manifest.json", why);
}

/* Reads the tolerance of an element type; what has none must be equal. */
static int nnd_tolerance_of(const struct nnd_json *manifest, nnd_dtype dtype, struct nnd_judged *one) {
  struct nnd_tolerance *tolerance = &one->tolerance;
  const struct nnd_json *said = nnd_json_member(nnd_json_member(manifest, "tolerances"), nnd_dtype_name(dtype));
  one->has_tolerance = said != NULL;
  if (!said) return 1;
  return nnd_json_number(nnd_json_member(said, "rtol"), &tolerance->rtol) &&
         nnd_json_number(nnd_json_member(said, "atol"), &tolerance->atol) &&
         (!nnd_json_member(said, "span") || nnd_json_number(nnd_json_member(said, "span"), &tolerance->span));
}

/* Reads the limits of an output. */
static int nnd_limits_of(const struct nnd_json *said, struct nnd_limits *limits) {
  const struct nnd_json *axis = nnd_json_member(said, "rows_axis");
  limits->rows_axis = -1;
  return nnd_json_number(nnd_json_member(said, "max_abs"), &limits->max_abs) &&
         nnd_json_number(nnd_json_member(said, "rms"), &limits->rms) &&
         nnd_json_number(nnd_json_member(said, "slice_rms"), &limits->slice_rms) &&
         nnd_json_number(nnd_json_member(said, "off"), &limits->off) &&
         nnd_json_number(nnd_json_member(said, "unmatched"), &limits->unmatched) &&
         (!axis || axis->kind == NND_NULL || nnd_json_integer(axis, 0, NND_MAX_RANK - 1, &limits->rows_axis));
}

static const struct nnd_held *nnd_held_named(const struct nnd_held *values, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (nnd_is_text(&values[i].name, name)) return &values[i];
  return NULL;
}

static nnd_tensor nnd_tensor_of(const struct nnd_held *held) {
  return (nnd_tensor){held->dtype, held->rank, held->shape, held->data};
}

/* Returns the place of a key of maps among others, -1 where it is not there. */
static int64_t nnd_place_of_key(const nnd_tensor *keys, const nnd_tensor *among, int64_t at) {
  for (int64_t i = 0; i < among->shape[0]; i++)
    if (keys->dtype == NND_TEXT ? !strcmp(((const char *const *)keys->data)[at], ((const char *const *)among->data)[i])
                                : ((const int64_t *)keys->data)[at] == ((const int64_t *)among->data)[i])
      return i;
  return -1;
}

/* Returns the reference of maps in the order of our keys; `*note` says so where it has others. */
static const void *nnd_in_order(struct nnd_bundle *reading, const struct nnd_held *held, const nnd_tensor *keys,
                                const char **note, nnd_error *error) {
  const int64_t width = held->shape[1], rows = held->shape[0];
  float *to = nnd_arena_take(&reading->arena, rows * width * (int64_t)sizeof *to, error);
  if (keys->dtype != held->keys->dtype || keys->shape[0] != width) *note = "other keys";
  for (int64_t i = 0; to && !*note && i < width; i++) {
    const int64_t from = nnd_place_of_key(keys, held->keys, i);
    if (from < 0) *note = "other keys";
    for (int64_t row = 0; from >= 0 && row < rows; row++)
      to[row * width + i] = ((const float *)held->data)[row * width + from];
  }
  return to;
}

/* Puts tolerances for floats that were given in place of the bundle's, where it has some, and of its limits. */
static void nnd_take_said(const struct nnd_arguments *said, const nnd_tensor *want, struct nnd_judged *one) {
  if (said->rtol < 0 && said->atol < 0) return;
  one->limits = NULL;
  if (!nnd_is_real(want) || !one->has_tolerance) return;
  if (said->rtol >= 0) one->tolerance.rtol = said->rtol;
  if (said->atol >= 0) one->tolerance.atol = said->atol;
}

/* Puts side by side what came of a golden and what its reference is. Returns how many there are, -1 and the error. */
static int nnd_pair_outputs(struct nnd_work *work, struct nnd_bundle *reading, const nnd_call *call,
                            const struct nnd_json *golden, const struct nnd_held *wanted, int num_wanted,
                            struct nnd_judged *outputs, struct nnd_limits *limits, nnd_error *error) {
  int count = 0;
  for (int i = 0; i < nnd_num_outputs(work->program); i++) {
    const char *name = nnd_output(work->program, i)->name;
    const struct nnd_held *held = nnd_held_named(wanted, num_wanted, name);
    if (!held) continue;
    struct nnd_judged *one = &outputs[count];
    const struct nnd_json *said = nnd_json_member(nnd_json_member(golden, "limits"), name);
    *one = (struct nnd_judged){.name = name, .want = nnd_tensor_of(held)};
    if (!nnd_get_output(call, name, &one->got, error)) return -1;
    if (!nnd_tolerance_of(work->program->bundle.manifest, nnd_output(work->program, i)->dtype, one) ||
        (said && !nnd_limits_of(said, &limits[count]))) {
      nnd_bad_golden(error, "a tolerance or limit");
      return -1;
    }
    one->limits = said ? &limits[count] : NULL;
    nnd_take_said(work->said, &one->want, one);
    const nnd_tensor *keys = nnd_output_keys(work->program, i);
    if (!keys != !held->keys) {
      nnd_bad_golden(error, "a reference of another type");
      return -1;
    }
    if (keys && !(one->want.data = nnd_in_order(reading, held, keys, &one->note, error))) return -1;
    if (keys) one->limits = NULL; /* are of tensors */
    count++;
  }
  return count;
}

static void nnd_tell_figure(struct nnd_answer *answer, const char *key, double figure, int has_one) {
  if (has_one)
    nnd_answer_number(answer, key, figure);
  else
    nnd_answer_word(answer, key, "null");
}

static void nnd_answer_verdict(struct nnd_answer *answer, int number, const char *origin,
                               const struct nnd_judged *one) {
  const struct nnd_comparison *found = &one->found;
  nnd_answer_open(answer, NULL, '{');
  nnd_answer_integer(answer, "golden", number);
  nnd_answer_text(answer, "origin", origin);
  nnd_answer_text(answer, "output", one->name);
  nnd_answer_number(answer, "rtol", one->tolerance.rtol);
  nnd_answer_number(answer, "atol", one->tolerance.atol);
  nnd_answer_word(answer, "ok", found->is_right ? "true" : "false");
  nnd_tell_figure(answer, "max_abs", found->max_abs, found->max_abs >= 0);
  nnd_tell_figure(answer, "max_rel", found->max_rel, found->max_rel >= 0);
  nnd_tell_figure(answer, "cosine", found->cosine, found->cosine >= -1);
  nnd_answer_text(answer, "note", found->note);
  nnd_answer_text(answer, "rule", found->rule);
  nnd_answer_close(answer, '}');
}

static void nnd_print_verdict(int number, const char *origin, const struct nnd_judged *one) {
  const struct nnd_comparison *found = &one->found;
  printf("golden %d (%s) %s: %s", number, origin, one->name, found->is_right ? "ok" : "FAILED");
  if (found->max_abs >= 0) printf(", max abs %.3g", found->max_abs);
  if (found->max_rel >= 0) printf(", max rel %.3g", found->max_rel);
  if (found->cosine >= -1) printf(", cosine %.8f", found->cosine);
  printf(*found->note ? "; %s\n" : "\n", found->note);
}

/* Reads one side of a golden into the arena of `reading`. */
static int nnd_read_side(struct nnd_bundle *reading, const struct nnd_json *golden, const char *side,
                         struct nnd_held **values, int *count, nnd_error *error) {
  const struct nnd_json *member = nnd_json_of_kind(nnd_json_member(golden, side), NND_STRING);
  if (!member) return nnd_bad_golden(error, "a golden without its values");
  return nnd_bundle_values(reading, &member->text, values, count, error);
}

static int nnd_run_golden(struct nnd_work *work, struct nnd_bundle *reading, const struct nnd_json *golden, int number,
                          struct nnd_tally *tally, nnd_error *error) {
  const struct nnd_json *origin = nnd_json_of_kind(nnd_json_member(golden, "origin"), NND_STRING);
  const int num_outputs = nnd_num_outputs(work->program);
  struct nnd_judged *outputs = nnd_arena_take(&reading->arena, num_outputs * (int64_t)sizeof *outputs, error);
  struct nnd_limits *limits = nnd_arena_take(&reading->arena, num_outputs * (int64_t)sizeof *limits, error);
  struct nnd_held *given, *wanted;
  int num_given, num_wanted, count = -1;
  if (!outputs || !limits || !nnd_read_side(reading, golden, "inputs", &given, &num_given, error) ||
      !nnd_read_side(reading, golden, "outputs", &wanted, &num_wanted, error))
    return 0;
  nnd_call *call = nnd_call_new(work->program, error);
  int is_right = call != NULL;
  for (int i = 0; is_right && i < num_given; i++) {
    const nnd_tensor value = nnd_tensor_of(&given[i]);
    is_right = nnd_set_input(call, given[i].name.data, &value, error);
  }
  if (is_right && nnd_run(call, error))
    count = nnd_pair_outputs(work, reading, call, golden, wanted, num_wanted, outputs, limits, error);
  is_right = count >= 0 && nnd_judge(outputs, count, error);
  for (int i = 0; is_right && i < count; i++) {
    tally->total++, tally->failed += !outputs[i].found.is_right;
    if (work->said->is_json)
      nnd_answer_verdict(&work->answer, number, origin ? origin->text.data : "", &outputs[i]);
    else
      nnd_print_verdict(number, origin ? origin->text.data : "", &outputs[i]);
  }
  nnd_call_free(call);
  return is_right;
}

/* Runs each golden with memory of its own, which is gone before the next. */
static int nnd_run_each_golden(struct nnd_work *work, const struct nnd_bundle *bundle, struct nnd_tally *tally,
                               nnd_error *error) {
  const struct nnd_json *list = nnd_json_member(bundle->manifest, "goldens");
  int number = 0, is_right = 1;
  NND_EACH(golden, nnd_json_of_kind(list, NND_ARRAY)) {
    struct nnd_bundle reading = *bundle;
    reading.arena = (struct nnd_arena){0};
    is_right = nnd_run_golden(work, &reading, golden, number++, tally, error);
    nnd_arena_free(&reading.arena);
    if (!is_right) break;
  }
  return is_right;
}

static int nnd_verdict(const struct nnd_work *work, const struct nnd_tally *tally, nnd_error *error) {
  if (!tally->total)
    return nnd_fail(error, NND_CHECK_FAILED, work->path,
                    "no result was compared: the bundle contains no goldens (hint: nndeploy export --verify keeps "
                    "those of a bundle)");
  if (!tally->failed) return 1;
  error->code = NND_CHECK_FAILED;
  snprintf(error->text, sizeof error->text, "%s: %d of %d outputs differ from the reference", work->path, tally->failed,
           tally->total);
  return 0;
}

/* Opens the bundle once more: a program that is open holds no file. */
static int nnd_open_again(const struct nnd_work *work, struct nnd_bundle *bundle, nnd_error *error) {
  bundle->container.source = work->program->bundle.container.source;
  if (!bundle->container.source.memory && !nnd_source_open(&bundle->container.source, work->path, error)) return 0;
  if (!nnd_bundle_open(bundle, error)) return nnd_put_place(error, work->path);
  if (nnd_is_same_text(&bundle->manifest_text, &work->program->bundle.manifest_text)) return 1;
  return nnd_fail_with(error, NND_BAD_DATA,
                       NND_BAD_BUNDLE "%s: it was replaced while it was being checked (hint: try again)", work->path);
}

static int nnd_check_and_run(struct nnd_work *work, struct nnd_bundle *bundle, nnd_error *error) {
  struct nnd_tally tally = {0, 0};
  if (!nnd_open_again(work, bundle, error)) return 0;
  if (!nnd_bundle_check(bundle, error)) return nnd_put_place(error, work->path);
  const struct nnd_json *members = nnd_json_member(bundle->manifest, "members");
  if (work->said->is_json) {
    nnd_answer_text(&work->answer, "bundle", work->path);
    nnd_answer_integer(&work->answer, "size_bytes", bundle->container.source.size);
    nnd_answer_integer(&work->answer, "members", members ? members->count : 0);
    nnd_answer_choices(work);
    nnd_answer_word(&work->answer, "ran", "true");
    nnd_answer_open(&work->answer, "outputs", '[');
  } else {
    printf("%lld members, all as in the manifest\n", members ? (long long)members->count : 0);
  }
  const int is_run = nnd_run_each_golden(work, bundle, &tally, error);
  if (work->said->is_json) nnd_answer_close(&work->answer, ']');
  if (!is_run) return 0;
  if (!work->said->is_json && tally.total)
    printf("%s, %d of %d %s within tolerance\n", tally.failed ? "FAILED" : "PASSED", tally.total - tally.failed,
           tally.total, tally.total == 1 ? "output" : "outputs");
  return nnd_verdict(work, &tally, error);
}

int nnd_run_goldens(struct nnd_work *work, nnd_error *error) {
  struct nnd_bundle bundle = {.container.source.file = -1};
  const int is_right = nnd_check_and_run(work, &bundle, error);
  nnd_bundle_close(&bundle);
  return is_right;
}
