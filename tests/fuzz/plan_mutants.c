/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutants of plans through the kernel library, which is compiled with AddressSanitizer and NND_SEPARATE: every piece of
 * memory lies alone, and so does every value of the arena. A mutant must be refused by a message, or run without
 * touching anything else.
 *
 *   plan_mutants SEED COUNT PLAN WEIGHTS [PLAN WEIGHTS ...]
 *
 * Prints how many mutants were opened, given a table and run.
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "model/table.c" /* for the shapes that a mutant itself says */

/* Of sanitizer/asan_interface.h, which ziglang does not have. */
void __asan_poison_memory_region(const volatile void *from, size_t num_bytes);
void __asan_unpoison_memory_region(const volatile void *from, size_t num_bytes);

#define MOST_BYTES ((nnd_size)1 << 20) /* of all arrays of a mutant that is run */
#define SECONDS 30

static uint64_t state;

static uint64_t any(void) { /* xorshift64* */
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return state * 2685821657736338717ull;
}

static int64_t below(int64_t count) { return (int64_t)(any() % (uint64_t)count); }

static void *read_file(const char *name, int64_t *num_bytes) {
  FILE *file = fopen(name, "rb");
  if (!file) exit(2);
  fseek(file, 0, SEEK_END);
  *num_bytes = ftell(file);
  rewind(file);
  void *data = malloc((size_t)*num_bytes + 1);
  if (fread(data, 1, (size_t)*num_bytes, file) != (size_t)*num_bytes) exit(2);
  fclose(file);
  return data;
}

static int64_t odd_number(const int64_t *words, int64_t count) {
  static const int64_t usual[] = {0, 1, -1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 255, 256, 65535, 65536,
                                  1ll << 20, 1ll << 31, 1ll << 40, 1ll << 62, INT64_MAX, INT64_MIN};
  switch (below(4)) {
    case 0: return usual[below(sizeof usual / sizeof *usual)];
    case 1: return words[below(count)];
    case 2: return below(64);
    default: return (int64_t)any();
  }
}

/* Changes a plan a little; its length is made right. */
static int64_t mutate(int64_t *words, int64_t count, int64_t room) {
  for (int64_t i = below(3) ? 0 : below(4); i >= 0; i--) {
    const int64_t at = 2 + below(count - 2);
    switch (below(24)) {
      case 0: case 1: words[at] = odd_number(words, count); break;
      case 2: words[at] ^= 1ll << below(64); break;
      case 3: case 4: case 5: case 6: words[at] = words[2 + (at - 2 + below(9) - 4 + count) % (count - 2)]; break;
      case 7: { /* two words change places */
        const int64_t other = 2 + below(count - 2), kept = words[at];
        words[at] = words[other], words[other] = kept;
        break;
      }
      case 8: { /* a run is copied over another */
        const int64_t from = 2 + below(count - 2), length = below(16);
        for (int64_t k = 0; k < length && at + k < count && from + k < count; k++) words[at + k] = words[from + k];
        break;
      }
      case 9: /* a word more */
        if (count < room) memmove(words + at + 1, words + at, (size_t)(count++ - at) * sizeof *words);
        break;
      case 10: /* a word less */
        if (count > 16) memmove(words + at, words + at + 1, (size_t)(--count - at) * sizeof *words);
        break;
      default: words[at] += below(2) ? 1 + below(3) : -1 - below(3);
    }
  }
  words[2] = count;
  return count;
}

static void *exact(nnd_size num_bytes) {
  char *memory = malloc((size_t)num_bytes);
  for (nnd_size i = 0; memory && i < num_bytes; i++) memory[i] = (char)(i % 61);
  return memory;
}

/* The shapes that a model says its inputs have. */
static struct nnd_table *table_of(const struct nnd_model *model) {
  int64_t symbols[16], shapes[1024], at = 0;
  char message[256];
  for (int i = 0; i < 16; i++) symbols[i] = 1 + below(below(4) ? 12 : 40);
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
  return nnd_table_make(model, symbols, model->num_symbols, shapes, at, message, sizeof message);
}

static nnd_size border_bytes(const struct nnd_table *table, const nnd_size *borders, nnd_size count) {
  nnd_size total = 0;
  for (nnd_size i = 0; i < count; i++) total += table->shapes[borders[i]].num_bytes;
  return total;
}

static int run(const struct nnd_table *table, int threads) {
  const struct nnd_model *model = table->model;
  const nnd_size needed = table->arena_bytes + table->scratch_bytes * threads +
                          border_bytes(table, model->inputs, model->num_inputs) +
                          border_bytes(table, model->outputs, model->num_outputs);
  if (needed > MOST_BYTES || model->num_inputs > 64 || model->num_outputs > 64) return 0;
  void *inputs[64], *outputs[64];
  for (nnd_size i = 0; i < model->num_inputs; i++) inputs[i] = exact(table->shapes[model->inputs[i]].num_bytes);
  for (nnd_size i = 0; i < model->num_outputs; i++) outputs[i] = exact(table->shapes[model->outputs[i]].num_bytes);
  void *arena = NULL, *scratch = NULL;
  if (posix_memalign(&arena, 64, (size_t)table->arena_bytes + 64)) return 0;
  if (posix_memalign(&scratch, 64, (size_t)(table->scratch_bytes * threads) + 64)) return 0;
  __asan_poison_memory_region(arena, (size_t)table->arena_bytes + 64);
  for (nnd_size i = 0; i < model->num_steps; i++) {
    const nnd_size value = model->tensors[model->steps[i].writes].value;
    if (model->values[value].kind == NND_VALUE_ARENA)
      __asan_unpoison_memory_region((char *)arena + table->offsets[value], (size_t)table->shapes[model->steps[i].writes].num_bytes);
  }
  __asan_poison_memory_region((char *)scratch + table->scratch_bytes * threads, 64);
  const struct nnd_call call = {(const void *const *)inputs, outputs, arena, scratch, table->scratch_bytes, NULL};
  struct nnd_pool *pool = threads > 1 ? nnd_pool_make(model, threads) : NULL;
  nnd_run(table, &call, pool);
  if (pool) nnd_pool_free(pool);
  __asan_unpoison_memory_region(arena, (size_t)table->arena_bytes + 64);
  __asan_unpoison_memory_region(scratch, (size_t)(table->scratch_bytes * threads) + 64);
  for (nnd_size i = 0; i < model->num_inputs; i++) free(inputs[i]);
  for (nnd_size i = 0; i < model->num_outputs; i++) free(outputs[i]);
  free(arena);
  free(scratch);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  const uint64_t seed = strtoull(argv[1], NULL, 10);
  const int64_t count = atoll(argv[2]), num_plans = (argc - 3) / 2;
  int64_t opened = 0, made = 0, ran = 0;
  int64_t *sizes = malloc((size_t)num_plans * 2 * sizeof *sizes);
  void **data = malloc((size_t)num_plans * 2 * sizeof *data);
  for (int64_t i = 0; i < 2 * num_plans; i++) data[i] = read_file(argv[3 + i], &sizes[i]);
  for (int64_t number = 0; number < count; number++) {
    state = (seed + 1) * 0x9e3779b97f4a7c15ull + (uint64_t)number * 0xbf58476d1ce4e5b9ull + 1;
    alarm(SECONDS);
    const int64_t plan = below(num_plans), num_words = sizes[2 * plan] / 8;
    int64_t *words = malloc((size_t)(num_words + 8) * 8);
    memcpy(words, data[2 * plan], (size_t)num_words * 8);
    const int64_t after = number < num_plans ? num_words : mutate(words, num_words, num_words + 8);
    int64_t *trimmed = exact(after * 8), weights_bytes = sizes[2 * plan + 1];
    memcpy(trimmed, words, (size_t)after * 8);
    void *weights = NULL;
    if (posix_memalign(&weights, 64, (size_t)weights_bytes + 1)) return 2;
    memcpy(weights, data[2 * plan + 1], (size_t)weights_bytes);
    char message[256] = "";
    const struct nnd_options options = {below(2) ? 0 : 1 << 16, below(3) ? 0 : below(1 << 14), 1 + below(2),
                                        below(2)};
    struct nnd_model *model = nnd_model_open(trimmed, after * 8, weights, weights_bytes, &options, message, sizeof message);
    if (!model && !*message) return 3; /* a refusal says why */
    free(trimmed);
    struct nnd_table *table = model ? table_of(model) : NULL;
    opened += model != NULL, made += table != NULL;
    if (table) ran += run(table, (int)options.threads);
    nnd_table_free(table);
    nnd_model_close(model);
    free(weights);
    free(words);
  }
  for (int64_t i = 0; i < 2 * num_plans; i++) free(data[i]);
  free(data);
  free(sizes);
  printf("%lld mutants: %lld opened, %lld with a table, %lld run\n", (long long)count, (long long)opened,
         (long long)made, (long long)ran);
  return 0;
}
