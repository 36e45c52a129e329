/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutants of plans through the kernel library, which is compiled with AddressSanitizer and NND_SEPARATE: every piece of
 * memory lies alone, and so does every value of the arena. A mutant must be refused by a message, or run without
 * touching anything else, within some seconds. One that reaches an edge of the library as often as none did before is
 * kept, and mutated further (guided), or not (blind).
 *
 *   plan_mutants run SEED COUNT guided|blind FINDING PLAN WEIGHTS [PLAN WEIGHTS ...]
 *   plan_mutants replay DICE PLAN WEIGHTS
 *
 * Prints what became of the mutants. The one that ends the program is kept in FINDING.plan and FINDING.weights, and
 * standard error says how to run it again.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "model/table.c" /* for the shapes that a mutant itself says */

/* What follows is no part of the library: its edges do not count. */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "base/pace.h"
#include "mutant_edges.h"
#include "mutant_plan.h"

/* Of the sanitizer's headers, which ziglang does not have. */
void __asan_poison_memory_region(const volatile void *from, size_t num_bytes);
void __asan_unpoison_memory_region(const volatile void *from, size_t num_bytes);
void __sanitizer_set_death_callback(void (*callback)(void));

#define MOST_BYTES ((nnd_size)1 << 20) /* of all arrays of a mutant that is run */

/* A plan with its weights, and how often it was mutated. */
struct entry {
  struct plan *plan;
  char *weights;
  int64_t weights_bytes, picks;
};

#include "mutant_corpus.h"

static const int shares_of_groups[NUM_GROUPS] = {30, 54, 14, 2}; /* of a hundred mutants */
static struct {
  const struct plan *plan;
  const char *weights, *finding, *program;
  int64_t number, weights_bytes;
  uint64_t dice; /* before its options were drawn */
} current;

static void write_file(const char *end, const void *data, int64_t num_bytes) {
  char name[4096];
  snprintf(name, sizeof name, "%s.%s", current.finding, end);
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, data, (size_t)num_bytes) != num_bytes) dprintf(2, "%s cannot be written\n", name);
  close(file);
}

static void keep_finding(void) {
  if (!current.plan || !current.finding) return;
  write_file("plan", current.plan->words, current.plan->count * 8);
  write_file("weights", current.weights, current.weights_bytes);
  dprintf(2, "mutant %lld; again: %s replay %llu %s.plan %s.weights\n", (long long)current.number, current.program,
          (unsigned long long)current.dice, current.finding, current.finding);
}

static void end_with(int code, const char *why) {
  dprintf(2, "%s\n", why);
  keep_finding();
  _exit(code);
}

static void hang(int signal_) {
  (void)signal_;
  end_with(4, "a mutant takes too long");
}

static void *copy_of(const void *data, int64_t num_bytes) {
  void *copy = malloc((size_t)num_bytes);
  memcpy(copy, data, (size_t)num_bytes);
  return copy;
}

static void add_entry(int group, const struct plan *plan, char *weights, int64_t weights_bytes) {
  struct plan *kept = malloc(sizeof kept->count + (size_t)plan->count * 8);
  kept->count = plan->count;
  memcpy(kept->words, plan->words, (size_t)plan->count * 8);
  *room_for_entry(group) = (struct entry){kept, weights, weights_bytes, 0};
}

/* Elements that are usual for a type, bytes that are not, or usual ones among which some are as large as can be. */
static void fill(int element, nnd_size count, char *to) {
  static const float large[] = {1e9f, -1e9f, 1e30f, -1e30f, 0.0f / 0.0f, 1.0f / 0.0f, -1.0f / 0.0f, 0.5f};
  const nnd_size each = nnd_element_bytes[element];
  const int kind = (int)below(4);
  for (nnd_size i = 0; i < count; i++) {
    const int is_odd = kind == 1 && !(any() & 15);
    const float real = is_odd ? large[below(8)] : (float)(i * 37 % 41 - 20) / 7.0f;
    const int64_t whole = is_odd ? odd_number(&count, 1) : kind == 2 ? below(3) : below(12) - 4;
    if (kind == 3)
      for (nnd_size k = 0; k < each; k++) to[i * each + k] = (char)((i * each + k) % 61);
    else if (element == NND_FLOAT32)
      memcpy(to + i * each, &real, (size_t)each);
    else
      memcpy(to + i * each, &whole, (size_t)each);
  }
}

static void *border_memory(const struct nnd_shape *shape, int is_input) {
  char *memory = malloc((size_t)shape->num_bytes);
  if (is_input)
    fill(shape->element, shape->count, memory);
  else
    memset(memory, 0x55, (size_t)shape->num_bytes);
  return memory;
}

/* A number of bytes of a choice: none, of any magnitude, or odd. */
static int64_t choice_of_bytes(void) {
  const int64_t kind = below(8);
  return kind < 3 ? 0 : kind < 7 ? (int64_t)1 << below(42) : -below(1000);
}

/* The shapes that a model says its inputs have. */
static struct nnd_table *table_of(const struct nnd_model *model) {
  int64_t symbols[16], shapes[1024], at = 0;
  char message[256];
  for (int i = 0; i < 16; i++)
    symbols[i] = below(16) ? 1 + below(below(4) ? 12 : below(2) ? 40 : 200) : odd_number(&model->num_rules, 1);
  if (model->num_symbols > 16) return NULL;
  struct nnd_table draft = {.model = model};
  struct nnd_message ignored = {0};
  draft.sizes = calloc((size_t)model->num_rules + 1, sizeof *draft.sizes);
  if (nnd_evaluate(&draft, symbols, &ignored))
    for (nnd_size i = 0; i < model->num_inputs && at < 1000; i++) {
      const struct nnd_tensor *tensor = &model->tensors[model->inputs[i]];
      shapes[at++] = tensor->element, shapes[at++] = tensor->rank;
      for (int axis = 0; axis < tensor->rank; axis++) shapes[at++] = draft.sizes[tensor->sizes[axis]];
    }
  free(draft.sizes);
  struct nnd_choice *choices = below(2) ? calloc((size_t)model->num_steps + 1, sizeof *choices) : NULL;
  for (nnd_size i = 0; choices && i < model->num_steps; i++)
    choices[i] = (struct nnd_choice){choice_of_bytes(), choice_of_bytes(), below(4) ? 0 : below(200) - 8,
                                     below(5) - 1,      below(5) - 1,      0,
                                     below(6) - 1};
  struct nnd_table *table =
      nnd_table_make(model, symbols, model->num_symbols, shapes, at, choices, message, sizeof message);
  free(choices);
  return table;
}

static nnd_size border_bytes(const struct nnd_table *table, const nnd_size *borders, nnd_size count) {
  nnd_size total = 0;
  for (nnd_size i = 0; i < count; i++) total += table->shapes[borders[i]].num_bytes;
  return total;
}

static void pass(struct nnd_pace_item *item, int64_t worker, int64_t point, int64_t part, int64_t parts) {
  (void)item, (void)worker, (void)point, (void)part, (void)parts;
}

/* Runs a table, on one thread with its steps in some parts each, or on several. */
static void run_steps(const struct nnd_table *table, struct nnd_call *call, int threads) {
  const nnd_size num_steps = table->model->num_steps;
  struct nnd_pace_point *points = calloc((size_t)num_steps + 1, sizeof *points);
  for (nnd_size i = 0; i < num_steps; i++) points[i].parts = 1 + below(6);
  const struct nnd_pace_plan plan = {.points = points, .num_points = num_steps};
  struct nnd_pace_item pace = {.pass = pass, .plan = &plan, .num_points = num_steps};
  if (threads == 1 && below(2)) call->pace = &pace;
  struct nnd_pool *pool = threads > 1 ? nnd_pool_make(table->model, threads) : NULL;
  nnd_run(table, call, pool);
  if (pool) nnd_pool_free(pool);
  free(points);
}

static int run(const struct nnd_table *table, int threads) {
  const struct nnd_model *model = table->model;
  const nnd_size scratch_bytes = table->scratch_bytes * threads;
  const nnd_size needed = table->arena_bytes + scratch_bytes + border_bytes(table, model->inputs, model->num_inputs) +
                          border_bytes(table, model->outputs, model->num_outputs);
  if (needed > MOST_BYTES || model->num_inputs > 64 || model->num_outputs > 64) return 0;
  void *inputs[64], *outputs[64];
  for (nnd_size i = 0; i < model->num_inputs; i++) inputs[i] = border_memory(&table->shapes[model->inputs[i]], 1);
  for (nnd_size i = 0; i < model->num_outputs; i++) outputs[i] = border_memory(&table->shapes[model->outputs[i]], 0);
  void *arena = NULL, *scratch = NULL;
  if (posix_memalign(&arena, 64, (size_t)table->arena_bytes + 64)) return 0;
  if (posix_memalign(&scratch, 64, (size_t)scratch_bytes + 64)) return 0;
  memset(arena, 0x55, (size_t)table->arena_bytes);
  memset(scratch, 0x55, (size_t)scratch_bytes);
  __asan_poison_memory_region(arena, (size_t)table->arena_bytes + 64);
  for (nnd_size i = 0; i < model->num_steps; i++) {
    const nnd_size value = model->tensors[model->steps[i].writes].value;
    const struct nnd_shape *shape = &table->shapes[model->steps[i].writes];
    if (model->values[value].kind == NND_VALUE_ARENA)
      __asan_unpoison_memory_region((char *)arena + table->offsets[value], (size_t)shape->num_bytes);
  }
  __asan_poison_memory_region((char *)scratch + scratch_bytes, 64);
  struct nnd_call call = {(const void *const *)inputs, outputs, arena, scratch, table->scratch_bytes, NULL, {0}, NULL};
  run_steps(table, &call, threads);
  __asan_unpoison_memory_region(arena, (size_t)table->arena_bytes + 64);
  __asan_unpoison_memory_region(scratch, (size_t)scratch_bytes + 64);
  for (nnd_size i = 0; i < model->num_inputs; i++) free(inputs[i]);
  for (nnd_size i = 0; i < model->num_outputs; i++) free(outputs[i]);
  free(arena);
  free(scratch);
  return 1;
}

/* How far mutants came. */
static struct {
  int64_t opened, made, ran;
} all;

/* Does with a plan all that there is to do. Returns whether the edges that were reached are the same each time: what
 * several threads do between them is not. */
static int try_plan(const struct plan *plan, const char *weights, int64_t weights_bytes, int is_alone) {
  current.plan = plan, current.weights = weights, current.weights_bytes = weights_bytes, current.dice = dice;
  limit_time();
  void *words = copy_of(plan->words, plan->count * 8), *given = NULL;
  if (posix_memalign(&given, 64, (size_t)weights_bytes + 1)) exit(2);
  memcpy(given, weights, (size_t)weights_bytes);
  char message[256] = "";
  const int64_t l2_bytes = below(2) ? 0 : 1 << 16, buffer_bytes = below(3) ? 0 : below(1 << 14);
  const int64_t threads = below(4) || is_alone ? 1 : 2, gives = below(2), is_plain = below(2), shares = below(2);
  int8_t ways[64];
  for (size_t i = 0; i < sizeof ways; i++) ways[i] = (int8_t)(below(6) - 1);
  const struct nnd_options options = {l2_bytes, buffer_bytes, threads, gives,
                                      is_plain, shares,       ways,    below(2) ? 0 : (int64_t)sizeof ways};
  forget_edges();
  struct nnd_model *model =
      nnd_model_open(words, plan->count * 8, given, weights_bytes, &options, message, sizeof message);
  if (!model && !*message) end_with(3, "a mutant is refused without a word");
  free(words);
  struct nnd_table *table = model ? table_of(model) : NULL;
  all.opened += model != NULL, all.made += table != NULL;
  if (table) all.ran += run(table, (int)threads);
  nnd_table_free(table);
  nnd_model_close(model);
  free(given);
  current.plan = NULL;
  return threads == 1;
}

/* Runs the seeds as they are, then mutants. */
static void try_mutants(uint64_t seed, int64_t count, int is_guided) {
  const int64_t num_seeds = corpus[SEEDS].count;
  int64_t reached_by_seeds = 0;
  for (int64_t number = 0; number < count; number++) {
    seed_dice(seed, current.number = number);
    struct entry *parent = number < num_seeds ? &corpus[SEEDS].entries[number] : pick_entry(shares_of_groups);
    struct plan mutant = {.count = parent->plan->count};
    memcpy(mutant.words, parent->plan->words, (size_t)mutant.count * 8);
    char *weights = parent->weights;
    const int64_t weights_bytes = parent->weights_bytes;
    if (number >= num_seeds) {
      mutate_plan(&mutant, pick_entry(shares_of_groups)->plan);
      if (!below(12)) mutate_weights(weights = copy_of(weights, weights_bytes), weights_bytes);
    }
    const int64_t ran_before = all.ran, reached_before = edges.reached;
    parent->picks++;
    const int counts = try_plan(&mutant, weights, weights_bytes, number < num_seeds);
    const int is_new = counts && learn_edges();
    if (is_new && is_guided && number >= num_seeds)
      add_entry(all.ran == ran_before            ? REFUSED
                : edges.reached > reached_before ? NEW_EDGES
                                                 : NEW_COUNTS,
                &mutant, weights, weights_bytes);
    else if (weights != parent->weights)
      free(weights);
    if (number + 1 == num_seeds) reached_by_seeds = edges.reached;
  }
  printf(
      "%lld mutants: %lld opened, %lld with a table, %lld run to the end; %lld of %lld edges reached, %lld by the "
      "seeds alone; a corpus of %lld\n",
      (long long)count, (long long)all.opened, (long long)all.made, (long long)all.ran, (long long)edges.reached,
      (long long)num_edges(), (long long)reached_by_seeds, (long long)num_entries());
}

static void read_seeds(char **names, int count) {
  for (int i = 0; i + 1 < count; i += 2) {
    int64_t num_bytes, weights_bytes;
    static struct plan plan;
    void *words = read_file(names[i], &num_bytes), *weights = read_file(names[i + 1], &weights_bytes);
    if (num_bytes > (int64_t)sizeof plan.words) exit(2);
    plan.count = num_bytes / 8;
    memcpy(plan.words, words, (size_t)num_bytes);
    add_entry(SEEDS, &plan, weights, weights_bytes);
    free(words);
  }
}

int main(int argc, char **argv) {
  signal(SIGPROF, hang);
  signal(SIGALRM, hang);
  if (argc == 5 && !strcmp(argv[1], "replay")) {
    read_seeds(argv + 3, 2);
    const struct entry *seed = corpus[SEEDS].entries;
    dice = strtoull(argv[2], NULL, 10);
    try_plan(seed->plan, seed->weights, seed->weights_bytes, 0);
    return 0;
  }
  if (argc < 8 || strcmp(argv[1], "run")) return 2;
  current.program = argv[0], current.finding = argv[5];
  __sanitizer_set_death_callback(keep_finding);
  read_seeds(argv + 6, argc - 6);
  try_mutants(strtoull(argv[2], NULL, 10), atoll(argv[3]), !strcmp(argv[4], "guided"));
  return 0;
}

#pragma clang attribute pop
