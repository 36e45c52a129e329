/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one network of a library of many, each array in memory of its own: network_driver LIBRARY REQUEST RESULT.
 *
 * Every input, constant, value and part of scratch ends (or, in the second layout, begins) at a page that nobody may
 * touch; inputs and constants cannot be written; what a value or scratch does not fill of its last vector holds a known
 * byte. Under AddressSanitizer each is an allocation of exactly its bytes instead. In the third layout the values lie
 * in one arena where the planner puts them. All begin as NaN.
 *
 * REQUEST: numbers of 64 bits (network, workers, layout, inputs, values, steps, symbols, entries, entry of the arena's
 * bytes or -1, bytes of the arena), those of `struct array` for each input and value, for each step the bytes of its
 * scratch or where not fixed -1 - their entry, the symbols; then the bytes of the inputs. RESULT: the bytes of the
 * values that are wanted.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define UNTOUCHED 0xFF /* as a number a NaN */
#define MOST_WORKERS 8

struct nnd_call { /* c/program.h */
  const void *const *inputs;
  void *const *outputs;
  const char *constants;
  char *arena, *scratch;
  ptrdiff_t scratch_bytes;
  const ptrdiff_t *sizes;
  void *pace;
};

struct head {
  int64_t network, workers, layout, inputs, values, steps, symbols, entries, arena_entry, arena_bytes;
};

/* `place`: in the arena, or where not fixed -1 - its entry. */
struct array {
  int64_t bytes, alignment, is_wanted, place;
};

enum { AT_END, AT_BEGIN, IN_ARENA };

struct region {
  char *first, *begin;
  size_t whole, bytes;
  const char *what;
  int number;
};

static struct region regions[1 << 14];
static int num_regions;
static int64_t layout;
static char *scratch_of[1 << 12][MOST_WORKERS];
static int step_of[MOST_WORKERS];

static void failed(const char *why) {
  fprintf(stderr, "%s\n", why);
  _exit(3);
}

#ifdef __SANITIZE_ADDRESS__
static char *taken(size_t bytes, size_t alignment, const char *what, int number) {
  void *to = NULL;
  if (posix_memalign(&to, 64, bytes ? bytes : 1)) failed("no memory");
  regions[num_regions++] = (struct region){to, to, bytes, bytes, what, number};
  return to;
}

static void check_margins(void) {}
static void make_read_only(void) {}
static void say_where(void) {}
#else
static char *taken(size_t bytes, size_t alignment, const char *what, int number) {
  const size_t inner = (bytes + PAGE - 1) / PAGE * PAGE, whole = inner + 2 * PAGE;
  char *first = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (first == MAP_FAILED || num_regions == 1 << 14) failed("no memory");
  if (mprotect(first, PAGE, PROT_NONE) || mprotect(first + PAGE + inner, PAGE, PROT_NONE)) failed("no guard pages");
  memset(first + PAGE, UNTOUCHED, inner);
  char *begin = first + PAGE + (layout == AT_BEGIN ? 0 : (inner - bytes) / alignment * alignment);
  regions[num_regions++] = (struct region){first, begin, whole, bytes, what, number};
  return begin;
}

static void check_margins(void) {
  for (int i = 0; i < num_regions; i++) {
    const struct region *r = regions + i;
    for (const char *at = r->first + PAGE; at < r->first + r->whole - PAGE; at++)
      if ((at < r->begin || at >= r->begin + r->bytes) && *(const unsigned char *)at != UNTOUCHED) {
        fprintf(stderr, "%s %d of %zu bytes: byte %td was written\n", r->what, r->number, r->bytes, at - r->begin);
        _exit(5);
      }
  }
}

static void make_read_only(void) {
  for (int i = 0; i < num_regions; i++)
    if (!strcmp(regions[i].what, "input")) mprotect(regions[i].first + PAGE, regions[i].whole - 2 * PAGE, PROT_READ);
}

static void fault(int number, siginfo_t *info, void *context) {
  (void)context;
  const char *at = info->si_addr;
  for (int i = 0; i < num_regions; i++)
    if (at >= regions[i].first && at < regions[i].first + regions[i].whole)
      fprintf(stderr, "%s %d of %zu bytes: byte %td is touched, ", regions[i].what, regions[i].number,
              regions[i].bytes, at - regions[i].begin);
  fprintf(stderr, "signal %d at step %d of the first worker\n", number, step_of[0]);
  _exit(6);
}

static void say_where(void) {
  const struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGBUS, &action, NULL);
}
#endif

static char *scratch_for(int step, int worker) {
  step_of[worker] = step;
  return scratch_of[step][worker];
}

static void fill_with_nan(char *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) to[i] = i % 2 ? 0x7F : (char)0xC0;
}

static void read_into(FILE *file, void *to, size_t bytes) {
  if (bytes && fread(to, 1, bytes, file) != bytes) failed("a short request");
}

static void *found(void *library, const char *format, int64_t network) {
  char name[64];
  snprintf(name, sizeof name, format, (long long)network);
  void *function = dlsym(library, name);
  if (!function) failed(dlerror());
  return function;
}

int main(int count, char **arguments) {
  FILE *request = count > 3 ? fopen(arguments[2], "rb") : NULL, *result = request ? fopen(arguments[3], "wb") : NULL;
  void *library = result ? dlopen(arguments[1], RTLD_NOW) : NULL;
  if (!library) failed(result ? dlerror() : "network_driver LIBRARY REQUEST RESULT");
  struct head head;
  read_into(request, &head, sizeof head);
  layout = head.layout;
  struct array *inputs = calloc(head.inputs + 1, sizeof *inputs), *values = calloc(head.values + 1, sizeof *values);
  int64_t *steps = calloc(head.steps + 1, 8), *symbols = calloc(head.symbols + 1, 8);
  ptrdiff_t *sizes = calloc(head.entries + 1, sizeof *sizes);
  read_into(request, inputs, head.inputs * sizeof *inputs);
  read_into(request, values, head.values * sizeof *values);
  read_into(request, steps, head.steps * 8);
  read_into(request, symbols, head.symbols * 8);
  if (head.symbols) {
    int (*compose)(const int64_t *, ptrdiff_t, ptrdiff_t *, ptrdiff_t);
    *(void **)&compose = found(library, "net%lld_compose", head.network);
    if (!compose(symbols, head.symbols, sizes, head.entries)) failed("another table");
  }
  void **in = calloc(head.inputs + 1, sizeof *in), **out = calloc(head.values + 1, sizeof *out);
  for (int64_t i = 0; i < head.inputs; i++) {
    in[i] = taken(inputs[i].bytes, inputs[i].alignment, "input", (int)i);
    read_into(request, in[i], inputs[i].bytes);
  }
  make_read_only();
  const size_t arena_bytes = head.arena_entry < 0 ? (size_t)head.arena_bytes : (size_t)sizes[head.arena_entry];
  if (arena_bytes > (size_t)head.arena_bytes) failed("more arena than the most");
  char *arena = layout == IN_ARENA ? taken(arena_bytes, 64, "arena", 0) : NULL;
  if (arena) fill_with_nan(arena, arena_bytes);
  for (int64_t i = 0; i < head.values; i++) {
    const int is_inside = arena && !values[i].is_wanted;
    out[i] = is_inside ? arena + (values[i].place >= 0 ? values[i].place : sizes[-1 - values[i].place])
                       : taken(values[i].bytes, values[i].alignment, "value", (int)i);
    if (!is_inside) fill_with_nan(out[i], values[i].bytes);
  }
  for (int64_t step = 0; step < head.steps; step++)
    for (int64_t worker = 0; worker < head.workers; worker++) {
      const size_t bytes = steps[step] >= 0 ? (size_t)steps[step] : (size_t)sizes[-1 - steps[step]];
      scratch_of[step][worker] = taken(bytes, 64, "scratch of step", (int)step);
      fill_with_nan(scratch_of[step][worker], bytes);
    }
  *(char *(**)(int, int))dlsym(library, "nnd_scratch_for") = scratch_for;
  const struct nnd_call call = {(const void *const *)in, out, NULL, NULL, NULL, 0, sizes, NULL};
  void *(*start)(int), (*stop)(void *), (*run)(const struct nnd_call *, void *);
  *(void **)&start = found(library, "net%lld_start", head.network);
  *(void **)&stop = found(library, "net%lld_stop", head.network);
  *(void **)&run = found(library, "net%lld_run", head.network);
  say_where();
  void *pool = head.workers > 1 ? start((int)head.workers) : NULL;
  for (int times = 0; times < 2; times++) run(&call, pool);
  if (pool) stop(pool);
  check_margins();
  for (int64_t i = 0; i < head.values; i++)
    if (values[i].is_wanted && fwrite(out[i], 1, values[i].bytes, result) != (size_t)values[i].bytes) failed("no space");
  return fclose(result) ? 3 : 0;
}
