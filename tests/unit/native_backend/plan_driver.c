/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a plan once: plan_driver REQUEST RESULT, linked with a kernel library; for machines that only an emulator is.
 *
 * REQUEST   64-bit words: bytes of the plan, of the weights, of the inputs; threads; symbols: count, each; shapes: count,
 *           each, as nnd_table_make takes them; then the plan, the weights, and each input, whole words each
 * RESULT    the outputs, one after the other
 *
 * Prints what each step does.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nndeploy_kernels.h"

#define MOST_BORDERS 64

static const int64_t element_bytes[] = {4, 4, 8, 1, 1, 1, 2};

static void *aligned(int64_t num_bytes) {
  void *memory = NULL;
  if (posix_memalign(&memory, 64, (size_t)num_bytes + 64)) exit(3);
  return memory;
}

/* Memory that ends, but for what the alignment leaves, where nobody may touch the next byte. */
static void *ending(int64_t num_bytes, int64_t alignment) {
  const int64_t page = 1 << 16, taken = (num_bytes + page - 1) / page * page;
  char *memory = mmap(NULL, (size_t)(taken + page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + taken, (size_t)page, PROT_NONE)) exit(3);
  return memory + (taken - num_bytes) / alignment * alignment;
}

static int64_t *read_words(FILE *file, int64_t count) {
  int64_t *words = aligned(8 * count);
  if (fread(words, 8, (size_t)count, file) != (size_t)count) exit(4);
  return words;
}

static int64_t bytes_of(const int64_t *shape) {
  int64_t bytes = element_bytes[shape[0]];
  for (int64_t axis = 0; axis < shape[1]; axis++) bytes *= shape[2 + axis];
  return bytes;
}

static void *must(void *made, const char *message) {
  if (!made) fprintf(stderr, "%s\n", message), exit(5);
  return made;
}

int main(int count, char **arguments) {
  FILE *request = count == 3 ? fopen(arguments[1], "rb") : NULL, *result = request ? fopen(arguments[2], "wb") : NULL;
  if (!result) return 2;
  const int64_t *head = read_words(request, 4);
  const int64_t num_symbols = *read_words(request, 1), *symbols = read_words(request, num_symbols);
  const int64_t num_shapes = *read_words(request, 1), *shapes = read_words(request, num_shapes);
  const int64_t *plan = read_words(request, (head[0] + 7) / 8), *weights = read_words(request, (head[1] + 7) / 8);
  const char *given = (const char *)read_words(request, (head[2] + 7) / 8);
  char message[400] = "";
  const struct nnd_options options = {.threads = head[3], .shares_all = 1};
  struct nnd_model *model =
      must(nnd_model_open(plan, head[0], weights, head[1], &options, message, sizeof message), message);
  struct nnd_table *table =
      must(nnd_table_make(model, symbols, num_symbols, shapes, num_shapes, NULL, message, sizeof message), message);
  for (int64_t step = 0; step < nnd_model_num_steps(model); step++) {
    char text[200] = "";
    nnd_table_describe(table, step, text, sizeof text);
    puts(text);
  }
  const void *inputs[MOST_BORDERS];
  void *outputs[MOST_BORDERS];
  int64_t sizes[MOST_BORDERS];
  const int64_t num_inputs = nnd_model_num_inputs(model), num_outputs = nnd_model_num_outputs(model);
  if (num_inputs > MOST_BORDERS || num_outputs > MOST_BORDERS) return 6;
  for (int64_t i = 0; i < num_inputs; i++) {
    inputs[i] = memcpy(ending(bytes_of(shapes), element_bytes[shapes[0]]), given, (size_t)bytes_of(shapes));
    given += (bytes_of(shapes) + 7) / 8 * 8;
    shapes += 2 + shapes[1];
  }
  for (int64_t i = 0; i < num_outputs; i++) {
    int64_t shape[10];
    nnd_table_output(table, i, shape);
    outputs[i] = ending(sizes[i] = bytes_of(shape), element_bytes[shape[0]]);
  }
  const int64_t scratch = nnd_table_scratch_bytes(table);
  void *arena = ending(nnd_table_arena_bytes(table), 64), *workers = ending(scratch * head[3], 64);
  struct nnd_call call = {inputs, outputs, arena, workers, scratch, NULL, {0}, NULL};
  struct nnd_pool *pool = head[3] > 1 ? nnd_pool_make(model, (int)head[3]) : NULL;
  nnd_run(table, &call, pool);
  if (pool) nnd_pool_free(pool);
  for (int64_t i = 0; i < num_outputs; i++) fwrite(outputs[i], 1, (size_t)sizes[i], result);
  nnd_table_free(table);
  nnd_model_close(model);
  return fclose(result);
}
