/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of the inputs -> a table: sizes, where values lie in the arena, and an instance of every step.
 *
 * Law: two values that overlap in the arena do not live at the same time; whatever a step reads is as large as what was
 * written there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "model/model.h"

/* Whether a and b are multiplied to no more than NND_MOST_BYTES, into *product. */
static int nnd_multiply(nnd_size a, nnd_size b, nnd_size *product) {
  return !__builtin_mul_overflow(a, b, product) && *product <= NND_MOST_BYTES && *product >= -NND_MOST_BYTES;
}

static int nnd_evaluate(struct nnd_table *table, const int64_t *symbols, struct nnd_message *message) {
  const struct nnd_model *model = table->model;
  for (nnd_size i = 0; i < model->num_rules; i++) {
    const struct nnd_size_rule *rule = &model->rules[i];
    const int is_leaf = rule->kind == NND_SIZE_CONSTANT || rule->kind == NND_SIZE_SYMBOL;
    const nnd_size a = is_leaf ? 0 : table->sizes[rule->a], b = is_leaf ? 0 : table->sizes[rule->b];
    nnd_size *size = &table->sizes[i];
    int fits = 1;
    switch (rule->kind) {
      case NND_SIZE_CONSTANT: *size = rule->a; break;
      case NND_SIZE_SYMBOL: *size = symbols[rule->a]; break;
      case NND_SIZE_ADD: *size = a + b; break;
      case NND_SIZE_MULTIPLY: fits = nnd_multiply(a, b, size); break;
      case NND_SIZE_DIVIDE:
        fits = b != 0;
        *size = fits ? nnd_floor_div(a, b) : 0;
        break;
      case NND_SIZE_MIN: *size = nnd_min(a, b); break;
      default: *size = nnd_max(a, b);
    }
    if (!fits || *size > NND_MOST_BYTES || *size < -NND_MOST_BYTES)
      return nnd_fail(message, "a size is out of range for these shapes");
  }
  return 1;
}

static int nnd_shape_tensor(struct nnd_table *table, nnd_size number, struct nnd_message *message) {
  const struct nnd_tensor *tensor = &table->model->tensors[number];
  struct nnd_shape *shape = &table->shapes[number];
  *shape = (struct nnd_shape){.rank = tensor->rank, .is_blocked = tensor->is_blocked, .element = tensor->element};
  shape->count = 1;
  for (int axis = 0; axis < tensor->rank; axis++) {
    const nnd_size size = table->sizes[tensor->sizes[axis]];
    shape->sizes[axis] = size;
    if (size < 0 || !nnd_multiply(shape->count, size, &shape->count))
      return nnd_fail(message, "axis %d of a value has %lld elements for these shapes", axis, (long long)size);
  }
  nnd_size held = shape->count;
  if (tensor->is_blocked) {
    const nnd_size channels = shape->sizes[1];
    if (channels && !nnd_multiply(shape->count / channels, nnd_blocks(channels) * NND_LANES, &held))
      return nnd_fail(message, "a value is too large for these shapes");
  }
  const nnd_size each = tensor->is_blocked ? (nnd_size)sizeof(nnd_elem) : nnd_element_bytes[tensor->element];
  if (!nnd_multiply(held, each, &shape->num_bytes)) return nnd_fail(message, "a value is too large for these shapes");
  return 1;
}

/* Says what shape an input should have; a caller knows such messages by their first word. */
static int nnd_other_shape(const struct nnd_shape *shape, nnd_size number, struct nnd_message *message) {
  char sizes[NND_MOST_RANK * 24] = "";
  for (int axis = 0, at = 0; axis < shape->rank; axis++)
    at += snprintf(sizes + at, sizeof sizes - (size_t)at, axis ? ", %lld" : "%lld", (long long)shape->sizes[axis]);
  return nnd_fail(message, "input %lld: expected (%s%s)", (long long)number, sizes, shape->rank == 1 ? "," : "");
}

/* The inputs have the elements and shapes that the plan says: for each its element, its rank, its sizes. */
static int nnd_check_inputs(const struct nnd_table *table, const int64_t *shapes, nnd_size count,
                            struct nnd_message *message) {
  nnd_size at = 0;
  for (nnd_size i = 0; i < table->model->num_inputs; i++) {
    const struct nnd_shape *shape = &table->shapes[table->model->inputs[i]];
    int is_same = count - at >= 2 + shape->rank && shapes[at] == shape->element && shapes[at + 1] == shape->rank;
    for (int axis = 0; is_same && axis < shape->rank; axis++) is_same = shapes[at + 2 + axis] == shape->sizes[axis];
    if (!is_same) return nnd_other_shape(shape, i, message);
    at += 2 + shape->rank;
  }
  return at == count || nnd_fail(message, "the plan has fewer inputs than the caller");
}

/* Whoever reads a value reads as many bytes as there are. */
static int nnd_check_reads(const struct nnd_table *table, struct nnd_message *message) {
  const struct nnd_model *model = table->model;
  for (nnd_size i = 0; i < model->num_steps; i++)
    for (int k = 0; k < model->steps[i].num_reads; k++) {
      const struct nnd_tensor *tensor = &model->tensors[model->steps[i].reads[k]];
      const struct nnd_value *value = &model->values[tensor->value];
      const struct nnd_shape *shape = &table->shapes[model->steps[i].reads[k]];
      const struct nnd_shape *written = NULL;
      int is_same;
      if (value->kind == NND_VALUE_WEIGHT) {
        const struct nnd_weight_data *weight = &model->weights[value->number];
        is_same = !shape->is_blocked && shape->element == weight->element && shape->count == weight->count;
      } else {
        const nnd_size from =
            value->kind == NND_VALUE_INPUT ? model->inputs[value->number] : model->steps[value->writer].writes;
        written = &table->shapes[from];
        is_same = shape->is_blocked == written->is_blocked && shape->element == written->element &&
                  shape->num_bytes == written->num_bytes;
        if (is_same && shape->is_blocked)
          is_same = shape->sizes[0] == written->sizes[0] && shape->sizes[1] == written->sizes[1];
      }
      if (!is_same) return nnd_fail(message, "step %lld reads a value of another size", (long long)i);
    }
  for (nnd_size i = 0; i < model->num_outputs; i++) {
    const struct nnd_value *value = &model->values[model->tensors[model->outputs[i]].value];
    const struct nnd_shape *said = &table->shapes[model->outputs[i]];
    const struct nnd_shape *written = &table->shapes[model->steps[value->writer].writes];
    if (said->num_bytes != written->num_bytes || said->element != written->element || written->is_blocked)
      return nnd_fail(message, "output %lld is written in another size", (long long)i);
  }
  return 1;
}

struct nnd_gap {
  nnd_size begin, end;
};

/* Takes the smallest gap that is large enough, else what is behind all. */
static nnd_size nnd_place(struct nnd_gap *gaps, nnd_size *num_gaps, nnd_size *end, nnd_size needed) {
  nnd_size best = -1;
  for (nnd_size i = 0; i < *num_gaps; i++) {
    const nnd_size size = gaps[i].end - gaps[i].begin;
    if (size >= needed && (best < 0 || size < gaps[best].end - gaps[best].begin)) best = i;
  }
  if (best < 0 && *num_gaps && gaps[*num_gaps - 1].end == *end) best = *num_gaps - 1; /* the last one can grow */
  if (best < 0) {
    *end += needed;
    return *end - needed;
  }
  const nnd_size begin = gaps[best].begin;
  gaps[best].begin += needed;
  if (gaps[best].begin >= gaps[best].end) {
    *end = nnd_max(*end, gaps[best].begin);
    memmove(gaps + best, gaps + best + 1, (size_t)(*num_gaps - best - 1) * sizeof *gaps);
    --*num_gaps;
  }
  return begin;
}

/* Gives memory back; gaps are in order and never touch. */
static void nnd_give_back(struct nnd_gap *gaps, nnd_size *num_gaps, nnd_size begin, nnd_size end) {
  nnd_size at = 0;
  while (at < *num_gaps && gaps[at].begin < begin) at++;
  memmove(gaps + at + 1, gaps + at, (size_t)(*num_gaps - at) * sizeof *gaps);
  gaps[at] = (struct nnd_gap){begin, end};
  ++*num_gaps;
  if (at + 1 < *num_gaps && gaps[at].end == gaps[at + 1].begin) {
    gaps[at].end = gaps[at + 1].end;
    memmove(gaps + at + 1, gaps + at + 2, (size_t)(*num_gaps - at - 2) * sizeof *gaps);
    --*num_gaps;
  }
  if (at && gaps[at - 1].end == gaps[at].begin) {
    gaps[at - 1].end = gaps[at].end;
    memmove(gaps + at, gaps + at + 1, (size_t)(*num_gaps - at - 1) * sizeof *gaps);
    --*num_gaps;
  }
}

/* Places every value from its writer to its last reader. */
static int nnd_place_values(struct nnd_table *table, struct nnd_message *message) {
  const struct nnd_model *model = table->model;
  struct nnd_gap *gaps = malloc((size_t)(model->num_values + 2) * sizeof *gaps);
  nnd_size num_gaps = 0;
  if (!gaps) return nnd_fail(message, "no memory for a table");
  for (nnd_size i = 0; i < model->num_steps; i++) {
    const nnd_size written = model->tensors[model->steps[i].writes].value;
    if (model->values[written].kind == NND_VALUE_ARENA) {
      const nnd_size bytes = table->shapes[model->steps[i].writes].num_bytes;
      const nnd_size needed = nnd_ceil_div(bytes, NND_ALIGNMENT) * NND_ALIGNMENT;
#ifdef NND_SEPARATE
      table->offsets[written] = table->arena_bytes + NND_ALIGNMENT;
      table->arena_bytes += needed + NND_ALIGNMENT;
#else
      table->offsets[written] = nnd_place(gaps, &num_gaps, &table->arena_bytes, needed);
#endif
    }
    for (int k = -1; k < model->steps[i].num_reads; k++) {
      const int tensor = k < 0 ? model->steps[i].writes : model->steps[i].reads[k];
      const nnd_size value = model->tensors[tensor].value;
      const struct nnd_value *one = &model->values[value];
      int is_again = 0; /* a value that is read twice is given back once */
      for (int j = -1; j < k; j++)
        is_again |= model->tensors[j < 0 ? model->steps[i].writes : model->steps[i].reads[j]].value == value;
#ifdef NND_SEPARATE
      continue;
#endif
      if (one->kind != NND_VALUE_ARENA || one->last_reader != i || is_again) continue;
      const nnd_size bytes = table->shapes[model->steps[one->writer].writes].num_bytes;
      nnd_give_back(gaps, &num_gaps, table->offsets[value],
                    table->offsets[value] + nnd_ceil_div(bytes, NND_ALIGNMENT) * NND_ALIGNMENT);
    }
    if (table->arena_bytes > NND_MOST_BYTES) {
      free(gaps);
      return nnd_fail(message, "the values need too much memory for these shapes");
    }
  }
  free(gaps);
  return 1;
}

static void nnd_run_nothing(const void *fields, void *const *at, struct nnd_part part) {
  (void)fields, (void)at, (void)part;
}

#define NND_MOST_CHUNKS 64

/* Whether kernels may count on elements in every value that a step names. */
static int nnd_has_elements(const struct nnd_table *table, const struct nnd_step *step) {
  for (int k = 0; k < step->num_named; k++)
    if (!table->shapes[step->named[k]].count) return 0;
  return 1;
}

/* Does as a choice says what does not depend on the operator. What is cut in no chunks may round by how it is shared, as
 * sums over hidden states do. */
static void nnd_take_choice(struct nnd_instance *instance, const struct nnd_choice *choice) {
  if (instance->chunks == 1) return;
  if (choice->chunks > 0) instance->chunks = (int)nnd_min(choice->chunks, NND_MOST_CHUNKS);
  if (choice->sharing > 0) instance->is_small = choice->sharing == 1;
}

static int nnd_make_steps(struct nnd_table *table, const struct nnd_choice *choices, struct nnd_message *message) {
  static const struct nnd_choice by_rule = {0};
  const struct nnd_model *model = table->model;
  table->all_small = 1;
  for (nnd_size i = 0; i < model->num_steps; i++) {
    struct nnd_instance *instance = &table->instances[i];
    instance->chunks = 4;
    if (!table->shapes[model->steps[i].writes].count) {
      instance->run = nnd_run_nothing;
      instance->is_small = !model->options.shares_all;
      table->all_small &= instance->is_small;
      continue;
    }
    if (!model->steps[i].takes_empty && !nnd_has_elements(table, &model->steps[i]))
      return nnd_fail(message, "step %lld (%.60s) reads a value that has no elements for these shapes", (long long)i,
                      model->steps[i].op->name);
    struct nnd_maker maker = {table, &model->steps[i], choices ? &choices[i] : &by_rule, instance, 0, message};
    if (!model->steps[i].op->make(&maker))
      nnd_fail(message, "step %lld (%.60s) cannot be done", (long long)i, model->steps[i].op->name);
    if (message->failed) return 0;
    if (maker.scratch_bytes < 0 || maker.scratch_bytes > NND_MOST_BYTES)
      return nnd_fail(message, "step %lld needs too much scratch", (long long)i);
    table->scratch_bytes = nnd_max(table->scratch_bytes, maker.scratch_bytes);
    instance->scratch_bytes = maker.scratch_bytes;
    nnd_take_choice(instance, maker.choice);
    table->all_small &= instance->is_small;
  }
  table->scratch_bytes = nnd_ceil_div(table->scratch_bytes, NND_ALIGNMENT) * NND_ALIGNMENT;
  return 1;
}

struct nnd_table *nnd_table_make(const struct nnd_model *model, const int64_t *symbols, int64_t num_symbols,
                                 const int64_t *shapes, int64_t num_shapes, const struct nnd_choice *choices,
                                 char *text, int64_t text_bytes) {
  struct nnd_message message = {text, text_bytes, 0};
  struct nnd_table *table = calloc(1, sizeof *table);
  if (!table) {
    nnd_fail(&message, "no memory for a table");
    return NULL;
  }
  table->model = model;
  if (num_symbols != model->num_symbols) nnd_fail(&message, "the plan has other symbols");
  table->shapes = nnd_memory_take(&table->memory, (model->num_tensors + 1) * (nnd_size)sizeof *table->shapes);
  table->sizes = nnd_memory_take(&table->memory, (model->num_rules + 1) * (nnd_size)sizeof *table->sizes);
  table->offsets = nnd_memory_take(&table->memory, (model->num_values + 1) * (nnd_size)sizeof *table->offsets);
  table->instances = nnd_memory_take(&table->memory, (model->num_steps + 1) * (nnd_size)sizeof *table->instances);
  if (!table->shapes || !table->sizes || !table->offsets || !table->instances)
    nnd_fail(&message, "no memory for a table");
  int is_made = !message.failed && nnd_evaluate(table, symbols, &message);
  for (nnd_size i = 0; is_made && i < model->num_tensors; i++) is_made = nnd_shape_tensor(table, i, &message);
  is_made = is_made && nnd_check_inputs(table, shapes, num_shapes, &message) && nnd_check_reads(table, &message) &&
            nnd_place_values(table, &message) && nnd_make_steps(table, choices, &message);
  if (is_made) return table;
  nnd_table_free(table);
  return NULL;
}

void nnd_table_free(struct nnd_table *table) {
  if (!table) return;
  nnd_memory_free(&table->memory);
  free(table);
}

int64_t nnd_table_arena_bytes(const struct nnd_table *table) { return table->arena_bytes; }
int64_t nnd_table_scratch_bytes(const struct nnd_table *table) { return table->scratch_bytes; }

static int64_t nnd_tell_shape(const struct nnd_shape *shape, int64_t *numbers) {
  numbers[0] = shape->element, numbers[1] = shape->rank;
  for (int axis = 0; axis < shape->rank; axis++) numbers[2 + axis] = shape->sizes[axis];
  return 2 + shape->rank;
}

int64_t nnd_table_output(const struct nnd_table *table, int64_t number, int64_t *numbers) {
  if (number < 0 || number >= table->model->num_outputs) return -1;
  return nnd_tell_shape(&table->shapes[table->model->outputs[number]], numbers);
}

int64_t nnd_table_step_shape(const struct nnd_table *table, int64_t step, int64_t *numbers) {
  if (step < 0 || step >= table->model->num_steps) return -1;
  return nnd_tell_shape(&table->shapes[table->model->steps[step].writes], numbers);
}

void nnd_table_describe(const struct nnd_table *table, int64_t step, char *text, int64_t text_bytes) {
  if (text_bytes > 0 && step >= 0 && step < table->model->num_steps)
    snprintf(text, (size_t)text_bytes, "%s", table->instances[step].shown);
}

void nnd_table_step_bytes(const struct nnd_table *table, int64_t step, int64_t *scratch, int64_t *kept) {
  const int is_there = step >= 0 && step < table->model->num_steps;
  *scratch = is_there ? table->instances[step].scratch_bytes : 0;
  *kept = is_there ? table->instances[step].kept_bytes : 0;
}

/* Operations of a small step, of some five microseconds: two workers would save half of it, and lose two to four where
 * a processor is a virtual one. AMD Zen 5, 2 virtual cores, 2026-11-25. */
#define NND_SMALL ((nnd_size)32768 * NND_LANES)

void nnd_tell_operations(struct nnd_maker *m, nnd_size count, nnd_size each) {
  m->instance->is_small = !m->table->model->options.shares_all && (!each || count < NND_SMALL / each);
}

const struct nnd_shape *nnd_shape_of(const struct nnd_maker *m, int tensor) { return &m->table->shapes[tensor]; }
nnd_size nnd_size_of(const struct nnd_maker *m, nnd_size rule) { return m->table->sizes[rule]; }

void nnd_give(struct nnd_maker *m, const void *address) {
  struct nnd_instance *instance = m->instance;
  if (instance->num_operands >= NND_MOST_OPERANDS) {
    nnd_fail(m->message, "a step has too many operands");
    return;
  }
  instance->operands[instance->num_operands++] = (struct nnd_operand){0, (nnd_size)(intptr_t)address};
}

void nnd_give_tensor(struct nnd_maker *m, int tensor) {
  const struct nnd_model *model = m->table->model;
  nnd_give(m, NULL);
  if (tensor < 0 || m->message->failed) return;
  struct nnd_operand *operand = &m->instance->operands[m->instance->num_operands - 1];
  const nnd_size number = model->tensors[tensor].value;
  const struct nnd_value *value = &model->values[number];
  switch (value->kind) {
    case NND_VALUE_ARENA: *operand = (struct nnd_operand){1, m->table->offsets[number]}; break;
    case NND_VALUE_INPUT: *operand = (struct nnd_operand){2 + value->number, 0}; break;
    case NND_VALUE_OUTPUT: *operand = (struct nnd_operand){2 + model->num_inputs + value->number, 0}; break;
    default: operand->offset = (nnd_size)(intptr_t)model->weights[value->number].data;
  }
}

void *nnd_fields(struct nnd_maker *m, nnd_size num_bytes) {
  void *fields = nnd_memory_take(&m->table->memory, num_bytes);
  if (!fields) nnd_fail(m->message, "no memory for a step");
  m->instance->fields = fields;
  return fields;
}
