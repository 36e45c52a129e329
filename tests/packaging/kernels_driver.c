/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a plan with a kernel library, through its header alone:
 *
 *   driver LIBRARY PLAN WEIGHTS INPUT OUTPUT THREADS SIZE...
 *
 * INPUT holds the only input, float32 of these sizes; OUTPUT gets the only output.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "nndeploy_kernels.h"

#define TAKE(name) __typeof__(&name) take_##name = (__typeof__(&name))found(library, #name)

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void *found(void *library, const char *name) {
  void *function = dlsym(library, name);
  if (function == NULL) fail(name);
  return function;
}

static void *aligned(int64_t bytes) {
  void *memory = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
  if (memory == NULL) fail("no memory");
  return memory;
}

static void *read_file(const char *path, int64_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) fail(path);
  fseek(file, 0, SEEK_END);
  *bytes = ftell(file);
  rewind(file);
  void *data = aligned(*bytes);
  if (fread(data, 1, (size_t)*bytes, file) != (size_t)*bytes) fail(path);
  fclose(file);
  return data;
}

int main(int count, char **texts) {
  if (count < 8) fail("driver LIBRARY PLAN WEIGHTS INPUT OUTPUT THREADS SIZE...");
  void *library = dlopen(texts[1], RTLD_NOW);
  if (library == NULL) fail(dlerror());
  TAKE(nnd_api_version);
  TAKE(nnd_model_open);
  TAKE(nnd_model_close);
  TAKE(nnd_table_make);
  TAKE(nnd_table_free);
  TAKE(nnd_table_arena_bytes);
  TAKE(nnd_table_scratch_bytes);
  TAKE(nnd_table_output);
  TAKE(nnd_pool_make);
  TAKE(nnd_pool_free);
  TAKE(nnd_run);
  if (take_nnd_api_version() != NND_API_VERSION) fail("another version of the interface");

  char message[400] = "";
  int64_t plan_bytes, weights_bytes, input_bytes, shapes[16] = {0, count - 7}, output[10];
  void *plan = read_file(texts[2], &plan_bytes), *weights = read_file(texts[3], &weights_bytes);
  const void *input = read_file(texts[4], &input_bytes);
  int threads = atoi(texts[6]);
  for (int axis = 0; axis < count - 7; ++axis) shapes[2 + axis] = atoll(texts[7 + axis]);
  struct nnd_options options = {0, 0, threads};
  struct nnd_model *model =
      take_nnd_model_open(plan, plan_bytes, weights, weights_bytes, &options, message, sizeof message);
  if (model == NULL) fail(message);
  struct nnd_table *table = take_nnd_table_make(model, NULL, 0, shapes, count - 5, message, sizeof message);
  if (table == NULL) fail(message);

  int64_t elements = 1, scratch_bytes = take_nnd_table_scratch_bytes(table);
  int64_t numbers = take_nnd_table_output(table, 0, output);
  for (int64_t axis = 2; axis < numbers; ++axis) elements *= output[axis];
  void *result = aligned(elements * 4);
  struct nnd_call call = {&input, &result, aligned(take_nnd_table_arena_bytes(table)),
                          aligned(threads * scratch_bytes), scratch_bytes, NULL};
  struct nnd_pool *pool = threads > 1 ? take_nnd_pool_make(model, threads) : NULL;
  take_nnd_run(table, &call, pool);
  if (pool != NULL) take_nnd_pool_free(pool);
  take_nnd_table_free(table);
  take_nnd_model_close(model);

  FILE *file = fopen(texts[5], "wb");
  if (file == NULL || fwrite(result, 4, (size_t)elements, file) != (size_t)elements) fail(texts[5]);
  return fclose(file);
}
