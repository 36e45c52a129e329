/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs from files -> a call -> its outputs, as files or lines. With --json the fields of `nndeploy run`.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/array.h"
#include "runtime/command/command.h"
#include "runtime/command/numbers.h"
#include "runtime/command/system.h"
#include "runtime/program.h"

#define NND_MOST_SHOWN 16

static const nnd_info *nnd_input_called(const nnd_program *program, const char *name, int64_t size) {
  const struct nnd_end_of_program *input =
      nnd_end_named(program->inputs, program->num_inputs, &(struct nnd_text){name, size});
  return input ? &input->info : NULL;
}

/* Reads NAME=JSON into a call; the text stays in `arena`. Returns 0 and code 0 where `what` is no such. */
static int nnd_give_json(const nnd_program *program, nnd_call *call, const char *what, struct nnd_array *array,
                         struct nnd_arena *arena, nnd_error *error) {
  const char *equals = strchr(what, '=');
  const nnd_info *input = equals ? nnd_input_called(program, what, equals - what) : NULL;
  if (!input) return 0;
  const struct nnd_json *json = nnd_json_parse(equals + 1, (int64_t)strlen(equals + 1), arena, error);
  if (!json) return nnd_usage(error, "a file is NAME=@FILE, a value NAME=JSON, not ", what);
  return nnd_array_from_json(json, input, array, error) && nnd_set_input(call, input->name, &array->tensor, error);
}

static int nnd_ends_with(const char *text, const char *end) {
  const size_t size = strlen(text), wanted = strlen(end);
  return size > wanted && !strcmp(text + size - wanted, end);
}

/* Gives an input what a file holds: bytes alone where it is called so, an image, or an array. */
static int nnd_give_file(const nnd_program *program, nnd_call *call, const char *name, struct nnd_file *file,
                         struct nnd_array *array, nnd_error *error) {
  const nnd_info *input = nnd_input_called(program, name, (int64_t)strlen(name));
  const nnd_image_info *image = nnd_image(program);
  if (nnd_is_image(file) && !image)
    return nnd_usage(error, "this bundle does not say how an image becomes an input: compile it with --image, for ",
                     file->path);
  if (nnd_is_image(file) && !strcmp(image->input, name)) return nnd_give_image(call, file, error);
  if (file->size > 4 && (!memcmp(file->bytes, "\x89PNG", 4) || !memcmp(file->bytes, "\xff\xd8\xff", 3)))
    return nnd_fail(error, NND_BAD_DATA, file->path, "an image that is no PPM (hint: convert photo.jpg photo.ppm)");
  const int is_raw = input && (nnd_ends_with(file->path, ".raw") || nnd_ends_with(file->path, ".bin"));
  if (!(is_raw ? nnd_raw_read(file, input, array, error) : nnd_npy_read(file, array, error))) return 0;
  return nnd_set_input(call, name, &array->tensor, error);
}

/* Reads NAME=@FILE, NAME=JSON or FILE into a call; an image that has no name is for the input of images. */
static int nnd_give(const nnd_program *program, nnd_call *call, const char *what, struct nnd_array *array,
                    struct nnd_arena *arena, nnd_error *error) {
  const char *mark = strstr(what, "=@");
  struct nnd_file file;
  char name[300];
  if (!mark && (nnd_give_json(program, call, what, array, arena, error) || error->code)) return !error->code;
  if (mark && mark - what >= (ptrdiff_t)sizeof name) return nnd_usage(error, "no input has this name: ", what);
  if (!nnd_file_read(mark ? mark + 2 : what, &file, error)) return 0;
  const int is_for_image = !mark && nnd_image(program) && nnd_is_image(&file);
  const char *only = is_for_image              ? nnd_image(program)->input
                     : nnd_num_inputs(program) ? nnd_input(program, 0)->name
                                               : "";
  snprintf(name, sizeof name, "%.*s", mark ? (int)(mark - what) : (int)sizeof name - 1, mark ? what : only);
  const int is_right = !mark && !is_for_image && nnd_num_inputs(program) != 1
                           ? nnd_usage(error, "there are several inputs: NAME=@FILE says which is ", what)
                           : nnd_give_file(program, call, name, &file, array, error);
  nnd_file_free(&file);
  return is_right;
}

/* Writes maps as a file of JSON. */
static int nnd_write_maps(const char *path, const nnd_tensor *value, const nnd_tensor *keys, nnd_error *error) {
  struct nnd_answer answer = {0};
  nnd_answer_tensor(&answer, NULL, value, keys);
  FILE *file = answer.is_lost ? NULL : nnd_file_create(path);
  int is_right = file || nnd_fail(error, NND_CANNOT_CREATE, path, answer.is_lost ? "no memory" : strerror(errno));
  if (file) {
    is_right = fwrite(answer.text, 1, answer.size, file) == answer.size && fputc('\n', file) != EOF;
    is_right = !fclose(file) && is_right;
    if (!is_right) nnd_fail(error, NND_IO, path, "it cannot be written whole");
  }
  free(answer.text);
  return is_right;
}

static int nnd_write_output(const char *folder, const char *name, const nnd_tensor *value, const nnd_tensor *keys,
                            nnd_error *error) {
  char path[4096], plain[256];
  size_t used = 0;
  for (const char *c = name; *c && used + 1 < sizeof plain; c++)
    plain[used++] = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '.' ||
                            *c == '-' || *c == '_'
                        ? *c
                        : '_';
  plain[used] = 0;
  if (!nnd_folder_make(folder)) return nnd_fail(error, NND_CANNOT_CREATE, folder, strerror(errno));
  if (snprintf(path, sizeof path, "%s/%s.%s", folder, plain, keys ? "json" : "npy") >= (int)sizeof path)
    return nnd_fail(error, NND_IO, folder, "the path is too long");
  return keys ? nnd_write_maps(path, value, keys, error) : nnd_npy_write(path, value, error);
}

/* Prints maps, the first of them with its values. */
static void nnd_print_maps(const char *name, const nnd_tensor *value, const nnd_tensor *keys) {
  struct nnd_answer answer = {0};
  const int64_t shape[] = {value->shape[0] > 0, value->shape[1]};
  const nnd_tensor first = {value->dtype, 2, shape, value->data};
  if (shape[1] <= NND_MOST_SHOWN) nnd_answer_tensor(&answer, NULL, &first, keys);
  printf("%s: list of %lld", name, (long long)value->shape[0]);
  if (answer.size > 2 && !answer.is_lost) printf(", first: %.*s", (int)answer.size - 2, answer.text + 1);
  printf("\n");
  free(answer.text);
}

static void nnd_print_output(const char *name, const nnd_tensor *value) {
  const int64_t count = nnd_num_elements(value);
  char shape[NND_SHAPE_TEXT];
  nnd_shape_text(value->rank, value->shape, shape);
  printf("%s: %s%s", name, nnd_dtype_name(value->dtype), shape);
  for (int64_t i = 0; i < count && i < NND_MOST_SHOWN; i++)
    if (value->dtype == NND_TEXT)
      printf(" %s", ((const char *const *)value->data)[i]);
    else if (nnd_is_real(value))
      printf(" %.6g", nnd_number_at(value, i));
    else
      printf(" %lld", (long long)nnd_integer_at(value, i));
  printf(count > NND_MOST_SHOWN ? " ...\n" : "\n");
}

/* Finds the most likely class of one image, where the bundle names classes; scores that are no probabilities are made
 * such by a softmax. Returns null where there is none. */
static const char *nnd_best_label(const struct nnd_work *work, const nnd_call *call, double *probability) {
  const nnd_image_info *image = nnd_image(work->program);
  nnd_tensor scores;
  nnd_error error;
  double most = -INFINITY, least = INFINITY, sum = 0, powers = 0;
  int64_t best = 0;
  if (!image || !image->num_labels || !nnd_num_outputs(work->program) ||
      !nnd_get_output(call, nnd_output(work->program, 0)->name, &scores, &error) || scores.dtype == NND_TEXT ||
      scores.dtype == NND_BOOL || nnd_num_elements(&scores) != image->num_labels)
    return NULL;
  for (int64_t i = 0; i < image->num_labels; i++) {
    const double score = nnd_number_at(&scores, i);
    if (score > most) most = score, best = i;
    least = fmin(least, score), sum += score;
  }
  for (int64_t i = 0; i < image->num_labels; i++) powers += exp(nnd_number_at(&scores, i) - most);
  *probability = least >= 0 && fabs(sum - 1) < 1e-3 ? most : 1 / powers;
  return image->labels[best];
}

void nnd_answer_label(const struct nnd_work *work, const nnd_call *call, struct nnd_answer *answer) {
  double probability;
  const char *label = nnd_best_label(work, call, &probability);
  if (!label) return;
  nnd_answer_text(answer, "label", label);
  nnd_answer_number(answer, "probability", round(probability * 1e6) / 1e6);
}

static int nnd_has_non_finite(const nnd_tensor *value) {
  for (int64_t i = 0, count = nnd_is_real(value) ? nnd_num_elements(value) : 0; i < count; i++)
    if (!isfinite(nnd_number_at(value, i))) return 1;
  return 0;
}

int nnd_is_for_lines(const char *output) { return !strcmp(output, "-") || nnd_ends_with(output, ".jsonl"); }

/* Writes the outputs of the only item as a line of JSON. */
static int nnd_give_line(const struct nnd_work *work, const nnd_call *call, nnd_error *error) {
  const char *output = work->said->output;
  FILE *to = nnd_open_output(output, error);
  if (!to) return 0;
  const int is_written =
      nnd_write_line(work, call, to, 0, work->said->num_inputs ? work->said->inputs[0] : "", NULL, error);
  return nnd_close_output(to, output, error) && is_written;
}

int nnd_give_outputs(const struct nnd_work *work, const nnd_call *call, int *has_non_finite, nnd_error *error) {
  const int is_line = work->said->output && nnd_is_for_lines(work->said->output);
  const char *folder = is_line ? NULL : work->said->output;
  double probability;
  const char *label = is_line || folder || work->said->is_json ? NULL : nnd_best_label(work, call, &probability);
  if (is_line && !nnd_give_line(work, call, error)) return 0;
  if (label) printf("%s  %s  %.1f%%\n", work->said->num_inputs ? work->said->inputs[0] : "", label, 100 * probability);
  for (int i = 0; i < nnd_num_outputs(work->program); i++) {
    const char *name = nnd_output(work->program, i)->name;
    const nnd_tensor *keys = nnd_output_keys(work->program, i);
    nnd_tensor value;
    if (!nnd_get_output(call, name, &value, error)) return 0;
    *has_non_finite |= nnd_has_non_finite(&value);
    if (folder && !nnd_write_output(folder, name, &value, keys, error)) return 0;
    if (is_line || folder || label || work->said->is_json) continue;
    if (keys)
      nnd_print_maps(name, &value, keys);
    else
      nnd_print_output(name, &value);
  }
  return 1;
}

/* Adds what `nndeploy run --json` has of one item. */
static void nnd_answer_run(struct nnd_work *work, const nnd_call *call, double run_seconds, double seconds,
                           int has_non_finite) {
  struct nnd_answer *answer = &work->answer;
  nnd_answer_text(answer, "bundle", work->path);
  nnd_answer_chain(answer);
  nnd_answer_choices(work);
  nnd_answer_integer(answer, "items", 1);
  nnd_answer_integer(answer, "failed", 0);
  nnd_answer_integer(answer, "not_taken", 0);
  nnd_answer_integer(answer, "non_finite", has_non_finite);
  nnd_answer_number(answer, "seconds", seconds);
  nnd_answer_number(answer, "items_per_second", 1 / seconds);
  nnd_answer_number(answer, "first_ms", run_seconds * 1e3);
  nnd_answer_word(answer, "latency_ms", "{}");
  nnd_answer_open(answer, "records", '[');
  nnd_answer_open(answer, NULL, '{');
  nnd_answer_integer(answer, "index", 0);
  nnd_answer_text(answer, "origin", work->said->num_inputs ? work->said->inputs[0] : "");
  nnd_answer_number(answer, "run_ms", run_seconds * 1e3);
  nnd_answer_label(work, call, answer);
  nnd_answer_close(answer, '}');
  nnd_answer_close(answer, ']');
  nnd_answer_word(answer, "stages", "[]");
  nnd_answer_word(answer, "queues", "[]");
}

static int nnd_run_once(struct nnd_work *work, nnd_call *call, double began, nnd_error *error) {
  const double start = nnd_seconds();
  int has_non_finite = 0;
  if (!nnd_run(call, error)) return 0;
  const double end = nnd_seconds();
  if (!nnd_give_outputs(work, call, &has_non_finite, error)) return 0;
  if (work->said->is_json && work->said->bench_seconds == 0)
    nnd_answer_run(work, call, end - start, nnd_seconds() - began, has_non_finite);
  return 1;
}

/* Opens what holds JSON lines: FILE.jsonl, or standard input that does not begin like an array. */
static FILE *nnd_open_lines(const struct nnd_arguments *said) {
  const char *path = said->num_inputs == 1 ? said->inputs[0] : "";
  if (nnd_ends_with(path, ".jsonl") && !strstr(path, "=@")) return nnd_file_open(path);
  if (strcmp(path, "-")) return NULL;
  const int first = getc(stdin);
  ungetc(first, stdin);
  return first == (unsigned char)NND_NPY_MAGIC[0] || first == 'P' ? NULL : stdin;
}

static int nnd_run_values(struct nnd_work *work, nnd_error *error) {
  const struct nnd_arguments *said = work->said;
  const double began = nnd_seconds();
  struct nnd_array *arrays = calloc((size_t)said->num_inputs + 1, sizeof *arrays);
  struct nnd_arena arena = {0};
  nnd_call *call = arrays ? nnd_call_new(work->program, error) : NULL;
  int is_right = call != NULL;
  if (said->num_inputs > nnd_num_inputs(work->program))
    is_right = nnd_usage(error, "more values than inputs: ", said->inputs[said->num_inputs - 1]);
  for (int i = 0; is_right && i < said->num_inputs; i++)
    is_right = nnd_give(work->program, call, said->inputs[i], &arrays[i], &arena, error);
  is_right = is_right && nnd_run_once(work, call, began, error) &&
             (said->bench_seconds == 0 || nnd_run_bench(work, call, error));
  nnd_call_free(call);
  for (int i = 0; arrays && i < said->num_inputs; i++) nnd_lines_free(arrays[i].memory);
  free(arrays);
  nnd_arena_free(&arena);
  return is_right;
}

int nnd_run_inputs(struct nnd_work *work, nnd_error *error) {
  FILE *lines = nnd_open_lines(work->said);
  if (!lines) return nnd_run_values(work, error);
  const int is_right = nnd_run_lines(work, lines, lines == stdin ? "standard input" : work->said->inputs[0], error);
  if (lines != stdin) fclose(lines);
  return is_right;
}
