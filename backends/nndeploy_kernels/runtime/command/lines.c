/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON lines: an object a line, name of an input -> nested lists -> an answer a line, as `nndeploy run --output -` gives.
 * A line that is wrong is told and does not keep the next from being run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/array.h"
#include "runtime/command/command.h"
#include "runtime/command/system.h"
#include "runtime/program.h"

/* A run over the lines of a file: how many items there were, and how the last that failed did. */
struct nnd_lines {
  struct nnd_work *work;
  nnd_call *call;
  struct nnd_array *arrays; /* of the inputs, by number */
  const char *origin;
  FILE *to;
  int64_t items, failed, number;
  nnd_error last;
};

/* Gives a call the values of a line. */
static int nnd_give_line(struct nnd_lines *lines, const struct nnd_json *object, nnd_error *error) {
  nnd_program *program = lines->work->program;
  NND_EACH(item, object) {
    const struct nnd_end_of_program *input = nnd_end_named(program->inputs, program->num_inputs, &item->key);
    if (!input) return nnd_fail_with(error, NND_BAD_DATA, "no input is named '%.200s'", item->key.data);
    struct nnd_array *array = &lines->arrays[input - program->inputs];
    if (!nnd_array_from_json(item, &input->info, array, error) ||
        !nnd_set_input(lines->call, input->info.name, &array->tensor, error))
      return 0;
  }
  return 1;
}

static int nnd_run_line(struct nnd_lines *lines, const struct nnd_json *object, nnd_error *error) {
  if (!nnd_json_of_kind(object, NND_OBJECT))
    return nnd_fail_with(error, NND_BAD_DATA, "the line is no JSON object (hint: for example {\"x\": [[1, 2]]})");
  return nnd_give_line(lines, object, error) && nnd_run(lines->call, error);
}

static void nnd_answer_outputs(const struct nnd_work *work, const nnd_call *call, struct nnd_answer *answer) {
  nnd_error error;
  nnd_answer_open(answer, "outputs", '{');
  for (int i = 0; i < nnd_num_outputs(work->program); i++) {
    const char *name = nnd_output(work->program, i)->name;
    nnd_tensor value;
    if (nnd_get_output(call, name, &value, &error))
      nnd_answer_tensor(answer, name, &value, nnd_output_keys(work->program, i));
  }
  nnd_answer_close(answer, '}');
}

int nnd_write_line(const struct nnd_work *work, const nnd_call *call, FILE *to, int64_t index, const char *origin,
                   const nnd_error *failed, nnd_error *error) {
  struct nnd_answer answer = {0};
  nnd_answer_open(&answer, NULL, '{');
  nnd_answer_integer(&answer, "index", index);
  nnd_answer_text(&answer, "origin", origin);
  if (failed) {
    nnd_answer_error(&answer, failed, 1);
  } else {
    nnd_answer_outputs(work, call, &answer);
    nnd_answer_label(work, call, &answer);
  }
  nnd_answer_close(&answer, '}');
  const int is_written = !answer.is_lost && fwrite(answer.text, 1, answer.size, to) == answer.size &&
                         fputc('\n', to) != EOF && !fflush(to);
  free(answer.text);
  if (answer.is_lost) return nnd_fail(error, NND_NO_MEMORY, origin, "no memory for the answer");
  return is_written || nnd_fail(error, NND_IO, work->said->output, "it cannot be written");
}

FILE *nnd_open_output(const char *output, nnd_error *error) {
  FILE *to = strcmp(output, "-") ? nnd_file_create(output) : stdout;
  if (!to) nnd_fail(error, NND_CANNOT_CREATE, output, strerror(errno));
  return to;
}

int nnd_close_output(FILE *to, const char *output, nnd_error *error) {
  if (to == stdout || !fclose(to)) return 1;
  return nnd_fail(error, NND_IO, output, "it cannot be written whole");
}

/* Writes what came of an item as a line, or as a summary. */
static int nnd_tell_item(struct nnd_lines *lines, int is_right, const nnd_error *error) {
  char origin[4200];
  int has_non_finite = 0;
  if (!is_right) {
    lines->failed++, lines->last = *error;
    fprintf(stderr, "%s: item %lld: error: %s\n", lines->work->name, (long long)lines->items - 1, error->text);
  }
  if (!lines->to) return !is_right || nnd_give_outputs(lines->work, lines->call, &has_non_finite, &lines->last);
  snprintf(origin, sizeof origin, "%s, line %lld", lines->origin, (long long)lines->number);
  return nnd_write_line(lines->work, lines->call, lines->to, lines->items - 1, origin, is_right ? NULL : error,
                        &lines->last);
}

/* Makes a call for the next item: one that still has values of an item before cannot tell what this one lacks. */
static int nnd_renew_call(struct nnd_lines *lines, nnd_error *error) {
  const int count = nnd_num_inputs(lines->work->program);
  int is_full = lines->call != NULL;
  for (int i = 0; i < count; i++) {
    is_full = is_full && lines->arrays[i].memory;
    nnd_lines_free(lines->arrays[i].memory);
    lines->arrays[i].memory = NULL;
  }
  if (is_full) return 1;
  nnd_call_free(lines->call);
  lines->call = nnd_call_new(lines->work->program, error);
  return lines->call != NULL;
}

/* Runs one line. Returns 0 and `last` where nothing more can be run. */
static int nnd_run_text(struct nnd_lines *lines, const char *text, int64_t size) {
  struct nnd_arena arena = {0};
  nnd_error error = {0, ""};
  if (!nnd_renew_call(lines, &lines->last)) return 0;
  lines->items++;
  const struct nnd_json *object = nnd_json_parse(text, size, &arena, &error);
  const int is_right = object && nnd_run_line(lines, object, &error);
  const int is_told = nnd_tell_item(lines, is_right, &error);
  if (!is_right) { /* with no value left, the next gets a new call */
    for (int i = 0; i < nnd_num_inputs(lines->work->program); i++) nnd_lines_free(lines->arrays[i].memory);
    memset(lines->arrays, 0, (size_t)nnd_num_inputs(lines->work->program) * sizeof *lines->arrays);
  }
  nnd_arena_free(&arena);
  return is_told;
}

static int nnd_run_each_line(struct nnd_lines *lines, FILE *from) {
  char *line = NULL;
  size_t room = 0;
  int64_t size;
  int is_right = 1;
  while (is_right && (size = nnd_line_read(&line, &room, from)) >= 0) {
    lines->number++;
    if ((size_t)size > strspn(line, " \t\r\n")) is_right = nnd_run_text(lines, line, size);
  }
  free(line);
  if (!is_right || !ferror(from)) return is_right;
  return nnd_fail(&lines->last, NND_IO, lines->origin, "reading failed");
}

static int nnd_verdict_of(const struct nnd_lines *lines, nnd_error *error) {
  *error = lines->last;
  if (!lines->failed) return 1;
  if (lines->items > 1) {
    error->code = NND_CHECK_FAILED;
    snprintf(error->text, sizeof error->text, "%lld of %lld items failed", (long long)lines->failed,
             (long long)lines->items);
  }
  return 0;
}

int nnd_run_lines(struct nnd_work *work, FILE *from, const char *origin, nnd_error *error) {
  const char *output = work->said->output;
  struct nnd_lines lines = {.work = work, .origin = origin};
  const int num_inputs = nnd_num_inputs(work->program);
  if (output && !nnd_is_for_lines(output))
    return nnd_usage(error, "the outputs of lines go to FILE.jsonl or to -, not to ", output);
  if (work->said->is_json || work->said->bench_seconds > 0)
    return nnd_usage(error, "lines of JSON cannot be used with --json or --bench", "");
  lines.arrays = calloc((size_t)num_inputs + 1, sizeof *lines.arrays);
  lines.to = output && lines.arrays ? nnd_open_output(output, error) : NULL;
  int is_right = lines.arrays && (lines.to || !output);
  if (!lines.arrays) nnd_fail(error, NND_NO_MEMORY, origin, "no memory for its values");
  if (is_right && !(is_right = nnd_run_each_line(&lines, from))) *error = lines.last;
  for (int i = 0; lines.arrays && i < num_inputs; i++) nnd_lines_free(lines.arrays[i].memory);
  free(lines.arrays);
  nnd_call_free(lines.call);
  is_right = (!lines.to || nnd_close_output(lines.to, output, error)) && is_right;
  return is_right && nnd_verdict_of(&lines, error);
}
