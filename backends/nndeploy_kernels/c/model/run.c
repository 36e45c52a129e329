/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter: walks the steps of a table, shares each among the workers of the pool, and passes pace points.
 */
#include <stdatomic.h>

#include "base/pace.h"
#include "base/threads.h"
#include "kernels/int8_tile.h"
#include "model/model.h"

#define NND_MOST_BASES 64 /* that are looked up in a table on the stack: more inputs and outputs take one of the heap */

/* What is known of indices that are out of range; `step` of `first` is the number of steps where there are none. */
struct nnd_faults {
  atomic_flag is_held;
  struct nnd_fault first;
};

/* One call, as all workers see it. */
struct nnd_running {
  const struct nnd_table *table;
  const struct nnd_call *call;
  char *const *bases;
  struct nnd_faults *faults;
};

/* A step that is under way; it is cut finer where it is paced, and passes a point behind each of its chunks. */
struct nnd_under_way {
  const struct nnd_instance *instance;
  struct nnd_pace_item *pace;
  nnd_size point;
  int worker, each;
  struct nnd_faults *faults;
  void *at[NND_MOST_OPERANDS];
};

void nnd_out_of_range(const struct nnd_part *part, nnd_size at, int64_t index, nnd_size size) {
  struct nnd_faults *faults = part->faults;
  const struct nnd_fault found = {part->step, at, index, size};
  while (atomic_flag_test_and_set_explicit(&faults->is_held, memory_order_acquire)) {
  }
  if (found.step < faults->first.step || (found.step == faults->first.step && found.at < faults->first.at))
    faults->first = found;
  atomic_flag_clear_explicit(&faults->is_held, memory_order_release);
}

/* A thread that sleeps holds no tiles: a core whose registers of tiles are in use does not sleep as deeply. */
static void nnd_pass(struct nnd_pace_item *pace, int worker, nnd_size point, int done, int each) {
  nnd_amx_let_go();
  pace->pass(pace, worker, point, done, each);
}

static void nnd_chunk(const void *context, struct nnd_part part) {
  const struct nnd_under_way *step = context;
  part.faults = step->faults, part.step = step->point;
  step->instance->run(step->instance->fields, step->at, part);
  const int done = part.number % step->each + 1; /* of the chunks that one worker has to begin with */
  if (step->pace && done < step->each) nnd_pass(step->pace, step->worker, step->point, done, step->each);
}

/* In how many chunks a worker does its share of a step. */
static int nnd_paced_chunks(const struct nnd_pace_item *item, nnd_size step, int workers, int each) {
  const nnd_size point = item->first + step;
  const nnd_size parts = item->plan && point < item->num_points ? item->plan->points[point].parts : 1;
  const nnd_size wanted = nnd_ceil_div(parts, workers);
  return wanted > each ? (int)nnd_min(wanted, 1 << 20) : each;
}

/* Whether one worker does a step alone, and the steps beside it that are small too. */
static int nnd_is_alone(const struct nnd_running *running, nnd_size number) {
  return !running->call->pace && number < running->table->model->num_steps &&
         running->table->instances[number].is_small;
}

/* Adds what went by since `*since`, which becomes now. */
static void nnd_add_time(int64_t *ns, int64_t *since, int is_alone) {
  const int64_t now = nnd_now_ns(is_alone);
  *ns += now - *since;
  *since = now;
}

static void nnd_all_steps(const void *context, struct nnd_pool *pool, int worker) {
  const struct nnd_running *running = context;
  const struct nnd_table *table = running->table;
  const nnd_size count = table->model->num_steps;
  char *scratch = running->call->scratch + worker * running->call->scratch_bytes;
  struct nnd_pace_item *pace = running->call->pace;
  struct nnd_under_way step = {.pace = pace, .worker = worker, .faults = running->faults};
  int64_t *times = worker ? NULL : running->call->step_ns;
  int64_t since = times ? nnd_now_ns(!pool) : 0;
  int is_mine = 0; /* the small steps that are under way */
  for (nnd_size number = 0; number < count; number++) {
    const struct nnd_instance *instance = &table->instances[number];
    for (int k = 0; k < instance->num_operands; k++)
      step.at[k] =
          (void *)((uintptr_t)running->bases[instance->operands[k].base] + (uintptr_t)instance->operands[k].offset);
    step.instance = instance;
    nnd_size held = -1;
    step.point = number;
    step.each = pool ? instance->chunks : 1;
    if (pool && nnd_is_alone(running, number)) {
      if (!number || !nnd_is_alone(running, number - 1)) is_mine = nnd_pool_claim(pool, (int)number);
      if (is_mine)
        instance->run(instance->fields, step.at, (struct nnd_part){0, 1, scratch, &held, step.faults, number});
      if (!nnd_is_alone(running, number + 1)) nnd_pool_claimed_done(pool, (int)number, is_mine);
      if (times) nnd_add_time(&times[number], &since, !pool);
      continue;
    }
    if (pace) step.each = nnd_paced_chunks(pace, number, pool ? pool->workers : 1, step.each);
    if (pool)
      nnd_pool_step(pool, (int)number, worker, step.each, nnd_chunk, &step, scratch);
    else
      for (int i = 0; i < step.each; i++)
        nnd_chunk(&step, (struct nnd_part){.number = i, .count = step.each, .scratch = scratch, .held = &held});
    if (pace) nnd_pass(pace, worker, number, 1, 1);
    if (times) nnd_add_time(&times[number], &since, !pool);
  }
  nnd_amx_let_go();
}

int nnd_run(const struct nnd_table *table, struct nnd_call *call, struct nnd_pool *pool) {
  const nnd_size num_inputs = table->model->num_inputs, num_outputs = table->model->num_outputs;
  const nnd_size num_bases = 2 + num_inputs + num_outputs;
  char *few[NND_MOST_BASES], **bases = few;
  if (num_bases > NND_MOST_BASES) bases = malloc((size_t)num_bases * sizeof *bases);
  if (!bases) return 0;
  bases[0] = NULL;
  bases[1] = call->arena;
  for (nnd_size i = 0; i < num_inputs; i++) bases[2 + i] = (char *)call->inputs[i];
  for (nnd_size i = 0; i < num_outputs; i++) bases[2 + num_inputs + i] = call->outputs[i];
  struct nnd_faults faults = {ATOMIC_FLAG_INIT, {.step = table->model->num_steps}};
  const struct nnd_running running = {table, call, bases, &faults};
  if (pool && (!table->all_small || call->pace))
    nnd_pool_run(pool, nnd_all_steps, &running);
  else
    nnd_all_steps(&running, NULL, 0);
  if (bases != few) free(bases);
  call->fault = faults.first;
  return faults.first.step < table->model->num_steps;
}

struct nnd_pool *nnd_pool_make(const struct nnd_model *model, int workers) {
  return nnd_pool_start(workers, (int)model->num_steps);
}

void nnd_pool_free(struct nnd_pool *pool) { nnd_pool_stop(pool); }

const char *nnd_level(void) { return NND_LEVEL; }
int nnd_api_version(void) { return NND_API_VERSION; }

/* Steps pass pace points. */
__attribute__((visibility("default"))) const int nnd_points_version = NND_PACE_VERSION;
