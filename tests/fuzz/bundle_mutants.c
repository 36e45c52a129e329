/* SPDX-License-Identifier: Apache-2.0
 *
 * Mutants of bundles through the C runtime, in one process, built with AddressSanitizer, UndefinedBehaviorSanitizer and
 * NND_SEPARATE: every piece of memory lies alone. One that reaches an edge of the runtime as often as none did before is
 * kept, and mutated further.
 *
 *   bundle_mutants run SEED COUNT SECONDS FINDING BUNDLE [BUNDLE ...]
 *   bundle_mutants replay BUNDLE [BUNDLE ...]
 *
 * Prints what became of the mutants. The one that ends the program is kept in FINDING.nnd.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "bundle_trial.h"
#include "mutant_bundle.h"
#include "mutant_edges.h"

void __sanitizer_set_death_callback(void (*callback)(void)); /* of headers that ziglang does not have */

/* SIGILL is what UndefinedBehaviorSanitizer finds. Of memory that is free little is kept, which caches hold; who took
 * it is noted where ASAN_OPTIONS says so alone. */
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1:detect_leaks=1:handle_sigill=1:malloc_context_size=0:quarantine_size_mb=4";
}

#define MOST_BYTES ((int64_t)1 << 30) /* of one piece of memory */
#define LARGE ((int64_t)256 << 10)
#define MOST_ENTRIES 20000
#define TELL_EVERY 100000

/* ---- what the runtime asks of the system, in the place of `platform.c`: memory to the byte, and no files */

int nnd_source_open(struct nnd_source *source, const char *path, nnd_error *error) {
  (void)source;
  return nnd_fail_with(error, NND_NO_INPUT, "%s: no file is read here", path);
}

void nnd_source_close(struct nnd_source *source) { (void)source; }

int nnd_source_read(const struct nnd_source *source, int64_t offset, int64_t size, void *target, nnd_error *error) {
  (void)error;
  memcpy(target, source->memory + offset, (size_t)size);
  return 1;
}

/* Returns how many bytes hold pages and one behind them, which nobody may touch. */
static size_t with_guard(int64_t bytes) { return (size_t)((bytes + 4095) / 4096 + 1) * 4096; }

/* Much memory is not filled by the sanitizer, which takes long; it ends where the last page does. */
void *nnd_pages_take(int64_t bytes) {
  if (bytes < 0 || bytes > MOST_BYTES) return NULL;
  if (bytes < LARGE) return calloc(1, (size_t)bytes);
  const size_t whole = with_guard(bytes);
  char *pages = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(pages + whole - 4096, 4096, PROT_NONE)) return NULL;
  return pages + whole - 4096 - bytes;
}

void nnd_pages_free(void *pages, int64_t bytes) {
  if (bytes < LARGE)
    free(pages);
  else if (pages)
    munmap((char *)pages + bytes + 4096 - with_guard(bytes), with_guard(bytes));
}

void nnd_pages_leave(const void *pages, int64_t bytes) { (void)pages, (void)bytes; }

void *nnd_lines_take(int64_t bytes) {
  void *lines = NULL;
  return bytes < 0 || bytes > MOST_BYTES || posix_memalign(&lines, NND_LINE, (size_t)bytes) ? NULL : lines;
}

void nnd_lines_free(void *memory) { free(memory); }

void *nnd_work_take(int64_t bytes) { return nnd_lines_take(bytes); }

void nnd_work_free(void *memory, int64_t bytes) {
  (void)bytes;
  free(memory);
}

/* ---- the mutants */

struct entry {
  struct bundle bundle;
  int64_t picks;
};

#include "mutant_corpus.h"

static const int shares_of_groups[NUM_GROUPS] = {40, 35, 15, 10}; /* of a hundred mutants */
static struct {
  const uint8_t *bytes;
  const char *finding;
  int64_t number, size;
} current;

static void keep_finding(void) {
  char name[4096];
  if (!current.bytes || !current.finding) return;
  snprintf(name, sizeof name, "%s.nnd", current.finding);
  const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0 || write(file, current.bytes, (size_t)current.size) != current.size)
    dprintf(2, "%s cannot be written\n", name);
  close(file);
  dprintf(2, "mutant %lld is kept: %s\n", (long long)current.number, name);
}

static void hang(int signal_) {
  (void)signal_;
  dprintf(2, "a mutant takes too long\n");
  keep_finding();
  _exit(4);
}

static void fall(int signal_) { /* by abort() of a trial */
  (void)signal_;
  keep_finding();
  _exit(3);
}

static void add_entry(int group, const struct bundle *bundle) {
  if (corpus[group].count == MOST_ENTRIES) return;
  struct entry *entry = room_for_entry(group);
  entry->picks = 0;
  copy_bundle(&entry->bundle, bundle);
}

/* Changes bytes of the container itself, hashes as they were, or cuts it. */
static int64_t damaged(uint8_t *bytes, int64_t size) {
  if (below(24)) return size;
  if (!below(4)) return below(size);
  for (int64_t i = 1 + below(3); i > 0; i--) {
    const int64_t at = below(2) ? size - 1 - below(size < 2048 ? size : 2048) : below(size);
    bytes[at] = below(2) ? bytes[at] ^ (uint8_t)(1 << below(8)) : (uint8_t)any();
  }
  return size;
}

/* Does with a bundle all that there is to do; `bytes` are freed. */
static int try_bytes(uint8_t *bytes, int64_t size) {
  uint8_t *alone = given(nnd_lines_take(size ? size : 1)); /* nothing behind it may be read */
  memcpy(alone, bytes, (size_t)size);
  free(bytes);
  current.bytes = alone, current.size = size;
  limit_time();
  forget_edges();
  const int is_run = nnd_try_bundle(alone, size);
  current.bytes = NULL;
  free(alone);
  return is_run;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void tell(int64_t count, int64_t reached_by_seeds, FILE *to) {
  fprintf(
      to,
      "%lld mutants: %lld opened, %lld run to the end; %lld of %lld edges reached, %lld by the seeds alone; a corpus "
      "of %lld\n",
      (long long)count, (long long)all_bundles.opened, (long long)all_bundles.ran, (long long)edges.reached,
      (long long)num_edges(), (long long)reached_by_seeds, (long long)num_entries());
  fflush(to);
}

/* Runs the seeds as they are, then mutants, for some seconds at most. */
static void try_mutants(uint64_t seed, int64_t count, double most_seconds) {
  const int64_t num_seeds = corpus[SEEDS].count;
  const double began = seconds();
  static struct bundle mutant;
  int64_t reached_by_seeds = 0, number = 0, size;
  for (; number < count && (number % 64 || seconds() - began < most_seconds); number++) {
    seed_dice(seed, current.number = number);
    const int is_seed = number < num_seeds;
    struct entry *parent = is_seed ? &corpus[SEEDS].entries[number] : pick_entry(shares_of_groups);
    copy_bundle(&mutant, &parent->bundle);
    if (!is_seed) mutate_bundle(&mutant, &pick_entry(shares_of_groups)->bundle);
    parent->picks++;
    uint8_t *bytes = encoded(&mutant, &size);
    const int64_t opened_before = all_bundles.opened, reached_before = edges.reached;
    try_bytes(bytes, is_seed ? size : damaged(bytes, size));
    if (learn_edges() && !is_seed)
      add_entry(all_bundles.opened == opened_before ? REFUSED
                : edges.reached > reached_before    ? NEW_EDGES
                                                    : NEW_COUNTS,
                &mutant);
    free_bundle(&mutant);
    if (number + 1 == num_seeds) reached_by_seeds = edges.reached;
    if ((number + 1) % TELL_EVERY == 0) tell(number + 1, reached_by_seeds, stderr);
  }
  tell(number, reached_by_seeds, stdout);
}

int main(int count, char **words) {
  int64_t size;
  signal(SIGPROF, hang);
  signal(SIGALRM, hang);
  signal(SIGABRT, fall);
  for (size_t i = 0; i < sizeof nnd_letters / sizeof *nnd_letters; i++) nnd_letters[i] = "a";
  if (count > 2 && !strcmp(words[1], "replay")) {
    for (int i = 2; i < count; i++) {
      uint8_t *bytes = read_file(words[i], &size);
      printf("%s: %s\n", words[i], try_bytes(bytes, size) ? "ran" : "refused");
    }
    return 0;
  }
  if (count < 7 || strcmp(words[1], "run")) return 2;
  current.finding = words[5];
  __sanitizer_set_death_callback(keep_finding);
  for (int i = 6; i < count; i++) {
    static struct bundle seed;
    uint8_t *bytes = read_file(words[i], &size);
    read_bundle(&seed, bytes, size);
    add_entry(SEEDS, &seed);
    free_bundle(&seed);
    free(bytes);
  }
  try_mutants(strtoull(words[2], NULL, 10), atoll(words[3]), atof(words[4]));
  return 0;
}

#pragma clang attribute pop
