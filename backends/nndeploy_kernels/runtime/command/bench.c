/* SPDX-License-Identifier: Apache-2.0
 *
 * --bench: how long calls take. With --json the fields of `nndeploy bench`, which `nndeploy bench --against` takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/call.h"
#include "runtime/command/command.h"
#include "runtime/command/numbers.h"
#include "runtime/command/system.h"

#define NND_MOST_TIMES ((size_t)1 << 20)

/* What calls took, in nanoseconds: in order, and by size. */
struct nnd_times {
  int64_t *durations, *sorted, first;
  size_t count;
  double seconds;
};

double nnd_seconds(void) { return (double)nnd_nanoseconds() * 1e-9; }

static int nnd_by_time(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static int nnd_measure(nnd_call *call, double seconds, struct nnd_times *times, nnd_error *error) {
  const int64_t begin = nnd_nanoseconds();
  if (!nnd_run(call, error)) return 0;
  const int64_t start = nnd_nanoseconds(), end = start + (int64_t)(seconds * 1e9);
  int64_t now = start;
  times->first = start - begin;
  do {
    if (!nnd_run(call, error)) return 0;
    const int64_t after = nnd_nanoseconds();
    times->durations[times->count++] = after - now;
    now = after;
  } while (now < end && times->count < NND_MOST_TIMES);
  times->seconds = (double)(now - start) * 1e-9;
  memcpy(times->sorted, times->durations, times->count * sizeof *times->sorted);
  qsort(times->sorted, times->count, sizeof *times->sorted, nnd_by_time);
  return 1;
}

/* Returns the smallest duration that so many of 100 calls did not exceed, in milliseconds. */
static double nnd_percentile(const struct nnd_times *times, size_t percent) {
  return (double)times->sorted[(percent * times->count + 99) / 100 - 1] / 1e6;
}

static int nnd_by_name(const void *a, const void *b) {
  return strcmp((*(const struct nnd_end_of_program *const *)a)->info.name,
                (*(const struct nnd_end_of_program *const *)b)->info.name);
}

/* Adds the shapes of the inputs that were given, as "x[1,3] y[]". */
static void nnd_answer_shapes(struct nnd_work *work, const nnd_call *call) {
  const nnd_program *program = work->program;
  const struct nnd_end_of_program **inputs = calloc((size_t)program->num_inputs + 1, sizeof *inputs);
  struct nnd_answer text = {0};
  size_t count = 0;
  for (int i = 0; inputs && i < program->num_inputs; i++)
    if (call->places[program->inputs[i].value].is_given) inputs[count++] = &program->inputs[i];
  if (count) qsort(inputs, count, sizeof *inputs, nnd_by_name);
  for (size_t i = 0; i < count; i++) {
    const struct nnd_place *place = &call->places[inputs[i]->value];
    char shape[NND_SHAPE_TEXT];
    nnd_shape_text(place->rank, place->shape, shape);
    nnd_answer_add(&text, i ? " " : "");
    nnd_answer_add(&text, inputs[i]->info.name);
    nnd_answer_add(&text, shape);
  }
  work->answer.is_lost |= !inputs || text.is_lost;
  nnd_answer_open(&work->answer, "shapes", '[');
  nnd_answer_bytes(&work->answer, NULL, text.text ? text.text : "", text.size);
  nnd_answer_close(&work->answer, ']');
  free(text.text);
  free(inputs);
}

static void nnd_answer_times(struct nnd_work *work, const nnd_call *call, const struct nnd_times *times) {
  struct nnd_answer *answer = &work->answer;
  const int count = work->said->num_inputs;
  double sum = 0;
  char text[200];
  for (size_t i = 0; i < times->count; i++) sum += (double)times->durations[i];
  nnd_answer_text(answer, "bundle", work->path);
  nnd_answer_text(answer, "model", nnd_model_name(work->program));
  nnd_answer_chain(answer);
  nnd_answer_choices(work);
  if (work->said->threads)
    nnd_answer_integer(answer, "threads", work->said->threads);
  else
    nnd_answer_word(answer, "threads", "null");
  nnd_cpu_name(text, sizeof text);
  nnd_answer_text(answer, "cpu", text);
  nnd_answer_shapes(work, call);
  snprintf(text, sizeof text, "%d %s", count, count == 1 ? "input" : "inputs");
  nnd_answer_text(answer, "inputs", text);
  nnd_answer_number(answer, "load_ms", work->load_seconds * 1e3);
  nnd_answer_number(answer, "first_ms", (double)times->first / 1e6);
  nnd_answer_integer(answer, "iterations", (int64_t)times->count);
  nnd_answer_number(answer, "seconds", times->seconds);
  nnd_answer_number(answer, "calls_per_second", (double)times->count / times->seconds);
  nnd_answer_number(answer, "mean_ms", sum / (double)times->count / 1e6);
  nnd_answer_open(answer, "latency_ms", '{');
  nnd_answer_number(answer, "p50", nnd_percentile(times, 50));
  nnd_answer_number(answer, "p90", nnd_percentile(times, 90));
  nnd_answer_number(answer, "p99", nnd_percentile(times, 99));
  nnd_answer_close(answer, '}');
  nnd_answer_open(answer, "durations_ns", '[');
  for (size_t i = 0; i < times->count; i++) nnd_answer_integer(answer, NULL, times->durations[i]);
  nnd_answer_close(answer, ']');
}

int nnd_run_bench(struct nnd_work *work, nnd_call *call, nnd_error *error) {
  struct nnd_times times = {.durations = malloc(NND_MOST_TIMES * sizeof *times.durations),
                            .sorted = malloc(NND_MOST_TIMES * sizeof *times.sorted)};
  int is_right = times.durations && times.sorted;
  if (!is_right) nnd_fail(error, NND_NO_MEMORY, "--bench", "no memory");
  is_right = is_right && nnd_measure(call, work->said->bench_seconds, &times, error);
  if (is_right && work->said->is_json) nnd_answer_times(work, call, &times);
  if (is_right && !work->said->is_json) printf("%zu calls, median %.4f ms\n", times.count, nnd_percentile(&times, 50));
  free(times.durations);
  free(times.sorted);
  return is_right;
}
