/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a library of native kernels on memory from a file: driver LIBRARY REQUEST RESULT. For sanitizers, which watch
 * every array because each is an allocation of exactly its bytes, and for machines that only an emulator runs.
 *
 * REQUEST: numbers of 64 bits (workers, inputs, outputs, bytes of constants, of the arena, of a worker's scratch, of
 * each input, of each output), then the bytes of the inputs and of the constants. RESULT: the bytes of the outputs,
 * after two runs.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct nnd_pool;
struct nnd_call { /* c/program.h */
  const void *const *inputs;
  void *const *outputs;
  const char *constants;
  char *arena, *scratch;
  ptrdiff_t scratch_bytes;
  const ptrdiff_t *sizes;
  void *pace;
};

static struct nnd_pool *(*nnd_start)(int workers);
static void (*nnd_stop)(struct nnd_pool *pool);
static void (*nnd_run)(const struct nnd_call *call, struct nnd_pool *pool);

static void *found(void *library, const char *name) {
  void *function = library ? dlsym(library, name) : NULL;
  if (!function) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  return function;
}

static void load(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  *(void **)&nnd_start = found(library, "nnd_start");
  *(void **)&nnd_stop = found(library, "nnd_stop");
  *(void **)&nnd_run = found(library, "nnd_run");
}

static void *memory(int64_t bytes) {
  void *taken = NULL;
  if (posix_memalign(&taken, 64, (size_t)bytes)) exit(3);
  return taken;
}

static void *read_from(FILE *file, int64_t bytes) {
  void *to = memory(bytes);
  if (fread(to, 1, (size_t)bytes, file) != (size_t)bytes) exit(3);
  return to;
}

int main(int count, char **arguments) {
  FILE *request = count > 3 ? fopen(arguments[2], "rb") : NULL, *result = request ? fopen(arguments[3], "wb") : NULL;
  if (!result) return 3;
  load(arguments[1]);
  int64_t *head = read_from(request, 6 * 8), inputs = head[1], outputs = head[2], workers = head[0];
  int64_t *in_bytes = read_from(request, inputs * 8), *out_bytes = read_from(request, outputs * 8);
  void **in = memory(inputs * 8 + 1), **out = memory(outputs * 8 + 1);
  for (int64_t i = 0; i < inputs; i++) in[i] = read_from(request, in_bytes[i]);
  for (int64_t i = 0; i < outputs; i++) out[i] = memory(out_bytes[i]);
  const struct nnd_call call = {(const void *const *)in, out, read_from(request, head[3]), memory(head[4]),
                                memory(head[5] * workers), (ptrdiff_t)head[5], NULL, NULL};
  struct nnd_pool *pool = workers > 1 ? nnd_start((int)workers) : NULL;
  if (workers > 1 && !pool) return 4;
  for (int times = 0; times < 2; times++) nnd_run(&call, pool);
  if (pool) nnd_stop(pool);
  for (int64_t i = 0; i < outputs; i++)
    if (fwrite(out[i], 1, (size_t)out_bytes[i], result) != (size_t)out_bytes[i]) return 3;
  return fclose(result) ? 3 : 0;
}
