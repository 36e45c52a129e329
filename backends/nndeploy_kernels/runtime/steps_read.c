/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a course, as plan.json says them.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/steps.h"

static const struct {
  const char *name;
  int num_inputs, num_outputs; /* -1: any */
} nnd_operators[] = {{"LabelEncoder", 1, 1}, {"Gather", 1, 1},    {"ZipMap", 1, 1},
                     {"NonZero", 1, 1},      {"Compress", 2, 1},  {"NonMaxSuppression", 2, 1},
                     {"Reshape", 1, 1},      {"Transpose", 1, 1}, {"Take", 1, 1},
                     {"Concat", -1, 1},      {"Equal", 1, 1},     {"TextBytes", 1, 2}};

#define NND_NUM_OPERATORS ((int)(sizeof nnd_operators / sizeof *nnd_operators))

/* Reads a list of texts, int64, or float32 with a point or an exponent; all are of one type. */
static int nnd_read_items(const struct nnd_json *list, nnd_dtype dtype, void *to, nnd_error *error) {
  int64_t at = 0;
  NND_EACH(item, list) {
    int64_t integer = 0;
    double real = 0;
    const int is_right = dtype == NND_TEXT      ? item->kind == NND_STRING
                         : dtype == NND_FLOAT32 ? item->kind == NND_REAL && nnd_json_number(item, &real)
                         : dtype == NND_INT32   ? nnd_json_integer(item, INT32_MIN, INT32_MAX, &integer)
                                                : nnd_json_integer(item, INT64_MIN, INT64_MAX, &integer);
    if (!is_right) return nnd_bad_plan("an item of a step is of another type", error);
    if (dtype == NND_TEXT) ((const char **)to)[at] = item->text.data;
    if (dtype == NND_FLOAT32) ((float *)to)[at] = (float)real;
    if (dtype == NND_INT32) ((int32_t *)to)[at] = (int32_t)integer;
    if (dtype == NND_INT64) ((int64_t *)to)[at] = integer;
    at++;
  }
  return 1;
}

/* Reads a list, and room for `more` items behind it. */
static void *nnd_read_list(struct nnd_program *program, const struct nnd_json *list, nnd_dtype dtype, int64_t more,
                           nnd_error *error) {
  if (!nnd_json_of_kind(list, NND_ARRAY)) {
    nnd_bad_plan("a step without a list", error);
    return NULL;
  }
  void *items = nnd_arena_take(&program->bundle.arena, (list->count + more) * nnd_bytes_of(dtype), error);
  return items && nnd_read_items(list, dtype, items, error) ? items : NULL;
}

/* Reads whole numbers. */
static int nnd_read_numbers(struct nnd_program *program, const struct nnd_json *list, struct nnd_step *step,
                            nnd_error *error) {
  step->numbers = nnd_read_list(program, list, NND_INT64, 0, error);
  step->num_numbers = step->numbers ? list->count : 0;
  return step->numbers != NULL;
}

/* Reads the table of a step as a tensor of one axis. */
static int nnd_read_table(struct nnd_program *program, const struct nnd_json *list, nnd_dtype dtype,
                          struct nnd_step *step, nnd_error *error) {
  const void *items = nnd_read_list(program, list, dtype, 0, error);
  if (!items) return 0;
  step->shape[0] = list->count;
  step->table = (nnd_tensor){dtype, 1, step->shape, items};
  return 1;
}

int nnd_order_of_keys(const void *a, const void *b) {
  const struct nnd_key *one = a, *other = b;
  return one->text ? strcmp(one->text, other->text) : (one->number > other->number) - (one->number < other->number);
}

static int nnd_read_keys(struct nnd_program *program, const struct nnd_json *list, struct nnd_step *step,
                         nnd_error *error) {
  const void *items = nnd_read_list(program, list, step->key_dtype, 0, error);
  step->keys = items ? nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *step->keys, error) : NULL;
  if (!step->keys) return 0;
  step->num_keys = list->count;
  for (int64_t i = 0; i < step->num_keys; i++) {
    step->keys[i].place = i;
    if (step->key_dtype == NND_TEXT)
      step->keys[i].text = ((const char *const *)items)[i];
    else
      step->keys[i].number = ((const int64_t *)items)[i];
  }
  if (step->num_keys) qsort(step->keys, (size_t)step->num_keys, sizeof *step->keys, nnd_order_of_keys);
  for (int64_t i = 1; i < step->num_keys; i++)
    if (!nnd_order_of_keys(&step->keys[i - 1], &step->keys[i])) return nnd_bad_plan("a key stands twice", error);
  return 1;
}

/* Returns the type of what a look-up gives. */
static int nnd_dtype_of_element(const struct nnd_json *element, nnd_dtype *dtype) {
  static const struct {
    const char *name;
    nnd_dtype dtype;
  } known[] = {{"string", NND_TEXT}, {"int64", NND_INT64}, {"int32", NND_INT32}, {"fp32", NND_FLOAT32}};
  for (int i = 0; element && element->kind == NND_STRING && i < 4; i++)
    if (nnd_is_text(&element->text, known[i].name)) return *dtype = known[i].dtype, 1;
  return 0;
}

/* A look-up: its values, and behind them what stands for no key where there is such. */
static int nnd_read_look_up(const struct nnd_session *session, struct nnd_program *program, const struct nnd_json *with,
                            struct nnd_step *step, nnd_error *error) {
  const struct nnd_json *keys = nnd_json_of_kind(nnd_json_member(with, "keys"), NND_ARRAY);
  const struct nnd_json *values = nnd_json_of_kind(nnd_json_member(with, "values"), NND_ARRAY);
  const struct nnd_json *other = nnd_json_of_kind(nnd_json_member(with, "default"), NND_ARRAY);
  nnd_dtype dtype;
  if (!keys || !values || !other || other->count > 1 || keys->count != values->count ||
      !nnd_dtype_of_element(nnd_json_member(with, "element"), &dtype))
    return nnd_bad_plan("a table", error);
  if (keys->first && keys->first->kind == NND_REAL)
    return nnd_fail_with(error, NND_UNAVAILABLE, "submodel %.*s: a table with real numbers as keys needs Python",
                         (int)session->id.size, session->id.data);
  step->key_dtype = keys->first && keys->first->kind == NND_INTEGER ? NND_INT64 : NND_TEXT;
  char *items = nnd_read_list(program, values, dtype, 1, error);
  if (!items) return 0;
  step->has_default = other->count == 1;
  step->shape[0] = values->count + step->has_default;
  step->table = (nnd_tensor){dtype, 1, step->shape, items};
  return nnd_read_items(other, dtype, items + values->count * nnd_bytes_of(dtype), error) &&
         nnd_read_keys(program, keys, step, error);
}

static int nnd_read_shape(const struct nnd_json *list, struct nnd_step *step, nnd_error *error) {
  if (!nnd_sizes_of(list, &step->rank, step->shape, NULL)) return nnd_bad_plan("a shape of a step", error);
  for (int i = 0; i < step->rank; i++)
    if (step->shape[i] < 0) return nnd_bad_plan("a shape of a step", error);
  return 1;
}

/* Texts in a shape that others are compared with. */
static int nnd_read_compared(struct nnd_program *program, const struct nnd_json *with, struct nnd_step *step,
                             nnd_error *error) {
  const struct nnd_json *texts = nnd_json_member(with, "texts");
  const void *items = nnd_read_list(program, texts, NND_TEXT, 0, error);
  if (!items || !nnd_read_shape(nnd_json_member(with, "shape"), step, error)) return 0;
  if (nnd_bytes_in(NND_TEXT, step->rank, step->shape) != texts->count * nnd_bytes_of(NND_TEXT))
    return nnd_bad_plan("texts that do not fill their shape", error);
  step->table = (nnd_tensor){NND_TEXT, step->rank, step->shape, items};
  return 1;
}

static int nnd_read_taken(struct nnd_program *program, const struct nnd_json *with, struct nnd_step *step,
                          nnd_error *error) {
  if (!nnd_read_numbers(program, nnd_json_member(with, "places"), step, error) ||
      !nnd_read_shape(nnd_json_member(with, "shape"), step, error))
    return 0;
  if (nnd_bytes_in(NND_BOOL, step->rank, step->shape) != step->num_numbers)
    return nnd_bad_plan("places that do not fill their shape", error);
  return 1;
}

static int nnd_read_suppression(const struct nnd_json *with, struct nnd_step *step, nnd_error *error) {
  const struct nnd_json *least = nnd_json_member(with, "least"), *is_centred = nnd_json_member(with, "is_centred");
  double bound = 0;
  step->has_least = least && least->kind != NND_NULL;
  if (!nnd_json_integer(nnd_json_member(with, "most"), 0, INT64_MAX, &step->most) ||
      !nnd_json_number(nnd_json_member(with, "overlap"), &step->overlap) ||
      !(step->overlap >= 0 && step->overlap <= 1) || (step->has_least && !nnd_json_number(least, &bound)) ||
      !is_centred || (is_centred->kind != NND_TRUE && is_centred->kind != NND_FALSE))
    return nnd_bad_plan("the bounds of a NonMaxSuppression", error);
  step->least = (float)bound, step->is_centred = is_centred->kind == NND_TRUE;
  return 1;
}

static int nnd_read_attributes(const struct nnd_session *session, struct nnd_program *program,
                               const struct nnd_json *with, struct nnd_step *step, nnd_error *error) {
  const struct nnd_json *axis = nnd_json_member(with, "axis"), *keys = nnd_json_member(with, "keys");
  if (axis && axis->kind == NND_NULL)
    step->axis = -1;
  else if (axis && !nnd_json_integer(axis, 0, NND_MAX_RANK - 1, &step->axis))
    return nnd_bad_plan("an axis of a step", error);
  switch (step->kind) {
    case NND_LOOK_UP: return nnd_read_look_up(session, program, with, step, error);
    case NND_GATHER_TEXTS: return nnd_read_table(program, nnd_json_member(with, "texts"), NND_TEXT, step, error);
    case NND_ZIP_MAP: {
      const int is_text = keys && keys->first && keys->first->kind == NND_STRING;
      return nnd_read_table(program, keys, is_text ? NND_TEXT : NND_INT64, step, error);
    }
    case NND_SUPPRESS: return nnd_read_suppression(with, step, error);
    case NND_RESHAPE_TEXTS:
      return nnd_read_numbers(program, nnd_json_member(with, "shape"), step, error) &&
             (step->num_numbers <= NND_MAX_RANK || nnd_bad_plan("too many axes", error));
    case NND_TRANSPOSE_TEXTS: return nnd_read_numbers(program, nnd_json_member(with, "order"), step, error);
    case NND_TAKE_TEXTS: return nnd_read_taken(program, with, step, error);
    case NND_EQUAL_TEXTS: return nnd_read_compared(program, with, step, error);
    case NND_BYTES_OF_TEXTS: {
      const struct nnd_json *change = nnd_json_of_kind(nnd_json_member(with, "case"), NND_STRING);
      step->changes_case = !change || !nnd_is_text(&change->text, "NONE");
      return 1;
    }
    case NND_NON_ZERO:
    case NND_COMPRESS:
    case NND_CONCAT_TEXTS: break;
  }
  return 1;
}

int nnd_step_read(const struct nnd_session *session, struct nnd_program *program, const struct nnd_json *from,
                  struct nnd_step *step, nnd_error *error) {
  const struct nnd_json *name = nnd_json_member(from, "step");
  int kind = 0;
  while (kind < NND_NUM_OPERATORS && !nnd_is_text(&name->text, nnd_operators[kind].name)) kind++;
  if (kind == NND_NUM_OPERATORS)
    return nnd_fail_with(error, NND_UNAVAILABLE, "submodel %.*s: the step %.80s needs Python", (int)session->id.size,
                         session->id.data, name->text.data);
  step->kind = (enum nnd_step_kind)kind;
  const int wanted = nnd_operators[kind].num_inputs;
  if (step->num_inputs < 1 || (wanted >= 0 && step->num_inputs != wanted) ||
      step->num_outputs != nnd_operators[kind].num_outputs)
    return nnd_bad_plan("a step with other inputs or outputs", error);
  return nnd_read_attributes(session, program, nnd_json_member(from, "with"), step, error);
}
