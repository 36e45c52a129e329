/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/decisions.h"

#include <string.h>

#include "runtime/version.h"

#define NND_FORMAT 1
#define NND_MOST_CHOICE_BYTES ((int64_t)1 << 40)
#define NND_MOST_CHOICE_CHUNKS 64
#define NND_MOST_STEPS 10000000 /* a number of a step has seven digits at most */
#define NND_FAR ((int64_t)1 << 40)

static int nnd_malformed(const char *what, nnd_error *error) {
  return nnd_fail_with(error, NND_BAD_DATA, "malformed decisions: %s", what);
}

static int nnd_has_format(const struct nnd_json *of) {
  int64_t format;
  return nnd_json_integer(nnd_json_member(of, "format"), NND_FORMAT, NND_FORMAT, &format);
}

int nnd_decisions_read(struct nnd_program *program, const char *text, int64_t size, nnd_error *error) {
  const struct nnd_json *whole = nnd_json_parse(text, size, &program->bundle.arena, error);
  if (!whole) return nnd_put_place(error, "the decisions");
  const struct nnd_json *tuned = nnd_json_of_kind(nnd_json_member(whole, "tuned"), NND_ARRAY);
  if (!tuned || !nnd_has_format(whole))
    return nnd_fail_with(error, NND_BAD_DATA, "not a file of tuned choices of format %d", NND_FORMAT);
  program->decisions.tuned = tuned;
  return 1;
}

static int nnd_says_text(const struct nnd_json *of, const char *key, const char *wanted) {
  const struct nnd_json *text = nnd_json_of_kind(nnd_json_member(of, key), NND_STRING);
  return text && nnd_is_text(&text->text, wanted);
}

static int nnd_says_number(const struct nnd_json *of, const char *key, int64_t wanted) {
  int64_t number;
  return nnd_json_integer(nnd_json_member(of, key), wanted, wanted, &number);
}

static int nnd_says_caches(const struct nnd_json *of) {
  const struct nnd_json *caches = nnd_json_of_kind(nnd_json_member(of, "caches"), NND_OBJECT);
  int64_t count = 0;
  for (int level = 1; level <= NND_MOST_CACHE_LEVELS; level++) {
    const char name[] = {'l', (char)('0' + level), 0};
    const int64_t bytes = nnd_cache_bytes(level);
    if (!bytes) continue;
    if (!nnd_says_number(caches, name, bytes)) return 0;
    count++;
  }
  return caches && caches->count == count;
}

/* Whether a box is this machine, as sessions use it. */
static int nnd_is_here(const struct nnd_json *box, const struct nnd_session *session, int64_t buffer_bytes) {
  char processor[200];
  nnd_cpu_name(processor, sizeof processor);
  return box->count == 6 && nnd_says_text(box, "processor", processor) &&
         nnd_says_text(box, "level", session->kernels->level()) && nnd_says_caches(box) &&
         nnd_says_number(box, "buffer_bytes", buffer_bytes) && nnd_says_number(box, "threads", session->threads) &&
         nnd_says_text(box, "version", NND_VERSION);
}

/* Reads the number of a step from a key. */
static int nnd_step_of(const struct nnd_text *key, int64_t *step) {
  *step = 0;
  for (int64_t i = 0; i < key->size; i++) {
    if (key->data[i] < '0' || key->data[i] > '9' || *step >= NND_MOST_STEPS) return 0;
    *step = 10 * *step + (key->data[i] - '0');
  }
  return key->size > 0;
}

/* Reads a choice; it says some fields, none of them the rule's. How sums round no file may say. */
static int nnd_choice_of(const struct nnd_json *said, struct nnd_choice *choice) {
  const struct {
    const char *name;
    int64_t *field, most;
  } fields[] = {
      {"cache_bytes", &choice->cache_bytes, NND_MOST_CHOICE_BYTES},
      {"buffer_bytes", &choice->buffer_bytes, NND_MOST_CHOICE_BYTES},
      {"chunks", &choice->chunks, NND_MOST_CHOICE_CHUNKS},
      {"sharing", &choice->sharing, 2},
      {"stores", &choice->stores, 2},
      {"way", &choice->way, NND_WAY_WINOGRAD},
  };
  int64_t count = 0;
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const struct nnd_json *number = nnd_json_member(said, fields[i].name);
    if (number && !nnd_json_integer(number, 1, fields[i].most, fields[i].field)) return 0;
    count += number != NULL;
  }
  return nnd_json_of_kind(said, NND_OBJECT) && said->count == count;
}

static int nnd_check_table(const struct nnd_json *table, nnd_error *error) {
  const struct nnd_json *steps = nnd_json_of_kind(nnd_json_member(table, "steps"), NND_OBJECT);
  const struct nnd_json *shapes = nnd_json_of_kind(nnd_json_member(table, "shapes"), NND_ARRAY);
  int64_t number;
  if (!nnd_json_of_kind(nnd_json_member(table, "box"), NND_OBJECT))
    return nnd_malformed("a table without a box", error);
  if (!steps || !shapes) return nnd_malformed("a table without steps or shapes", error);
  NND_EACH(step, steps) {
    struct nnd_choice choice = {0};
    if (!nnd_step_of(&step->key, &number)) return nnd_malformed("a step that has no number", error);
    if (!nnd_choice_of(step, &choice)) return nnd_malformed("a step with what is no choice", error);
  }
  NND_EACH(shape, shapes) {
    if (!nnd_json_of_kind(shape, NND_ARRAY)) return nnd_malformed("not a shape", error);
    NND_EACH(size, shape) {
      if (!nnd_json_integer(size, 0, NND_FAR, &number)) return nnd_malformed("not a shape", error);
    }
  }
  return 1;
}

/* Puts a table that counts here before the others of its plan: of two for the same shapes the later one counts. */
static int nnd_add_table(struct nnd_program *program, struct nnd_plan *plan, const struct nnd_json *table,
                         nnd_error *error) {
  const struct nnd_json *shapes = nnd_json_member(table, "shapes");
  struct nnd_decided *decided = nnd_arena_take(&program->bundle.arena, sizeof *decided, error);
  if (!decided) return 0;
  NND_EACH(shape, shapes) decided->num_sizes += 1 + shape->count;
  decided->sizes = nnd_arena_take(&program->bundle.arena, decided->num_sizes * (int64_t)sizeof *decided->sizes, error);
  if (!decided->sizes) return 0;
  int64_t *to = decided->sizes;
  NND_EACH(shape, shapes) {
    *to++ = shape->count;
    NND_EACH(size, shape) *to++ = size->integer;
  }
  decided->steps = nnd_json_member(table, "steps");
  decided->next = plan->decided, plan->decided = decided;
  program->decisions.num_taken++;
  return 1;
}

int nnd_decisions_find(struct nnd_program *program, const struct nnd_session *session, struct nnd_plan *plan,
                       const void *bytes, int64_t size, int64_t buffer_bytes, nnd_error *error) {
  struct nnd_sha256 hash;
  char digest[65];
  if (!program->decisions.tuned) return 1;
  nnd_sha256_begin(&hash);
  nnd_sha256_add(&hash, bytes, size);
  nnd_sha256_text(&hash, digest);
  NND_EACH(one, program->decisions.tuned) {
    const struct nnd_json *tables = nnd_json_of_kind(nnd_json_member(one, "tables"), NND_ARRAY);
    if (!nnd_says_text(one, "plan_sha256", digest)) continue;
    if (!nnd_has_format(one) || !tables) return nnd_malformed("no list of tables", error);
    program->decisions.is_of_bundle = 1;
    NND_EACH(table, tables) {
      if (!nnd_check_table(table, error)) return 0;
      if (nnd_is_here(nnd_json_member(table, "box"), session, buffer_bytes) &&
          !nnd_add_table(program, plan, table, error))
        return 0;
    }
  }
  return 1;
}

int nnd_decisions_ways(struct nnd_program *program, const struct nnd_plan *plan, struct nnd_kernel_options *options,
                       nnd_error *error) {
  int64_t step, most = -1, num_tables = 0;
  for (const struct nnd_decided *one = plan->decided; one; one = one->next, num_tables++) NND_EACH(said, one->steps) {
      if (nnd_step_of(&said->key, &step) && nnd_json_member(said, "way") && step > most) most = step;
    }
  if (most < 0) return 1;
  int8_t *ways = nnd_arena_take(&program->bundle.arena, most + 1, error);
  int64_t *counts = nnd_arena_take(&program->bundle.arena, (most + 1) * (int64_t)sizeof *counts, error);
  if (!ways || !counts) return 0;
  for (const struct nnd_decided *one = plan->decided; one; one = one->next) NND_EACH(said, one->steps) {
      struct nnd_choice choice = {0};
      nnd_choice_of(said, &choice);
      if (!choice.way || !nnd_step_of(&said->key, &step)) continue;
      ways[step] = (int8_t)(counts[step] && ways[step] != choice.way ? NND_WAY_BOTH : choice.way);
      counts[step]++;
    }
  for (step = 0; step <= most; step++) /* where other shapes may come, or go by the rule, both are needed */
    if (ways[step] && (plan->num_symbols || counts[step] < num_tables)) ways[step] = NND_WAY_BOTH;
  options->ways = ways, options->num_ways = most + 1;
  return 1;
}

int nnd_decisions_take(struct nnd_program *program, struct nnd_plan *plan, int64_t num_steps, nnd_error *error) {
  for (struct nnd_decided *one = plan->decided; one; one = one->next) {
    int64_t step;
    one->choices = nnd_arena_take(&program->bundle.arena, num_steps * (int64_t)sizeof *one->choices, error);
    if (!one->choices) return 0;
    NND_EACH(said, one->steps) {
      if (!nnd_step_of(&said->key, &step) || step >= num_steps)
        return nnd_malformed("a step that the plan does not have", error);
      nnd_choice_of(said, &one->choices[step]);
    }
  }
  return 1;
}

const struct nnd_choice *nnd_choices_for(const struct nnd_plan *plan, const int64_t *shapes, int64_t num_shapes) {
  for (const struct nnd_decided *one = plan->decided; one; one = one->next) {
    const int64_t *said = one->sizes, *end = said + one->num_sizes, *at = shapes;
    while (at < shapes + num_shapes && said < end && at[1] == *said &&
           !memcmp(at + 2, said + 1, (size_t)at[1] * sizeof *at)) {
      said += 1 + at[1];
      at += 2 + at[1];
    }
    if (at == shapes + num_shapes && said == end) return one->choices;
  }
  return NULL;
}
