/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as JSON carries them (`nndeploy/runtime/plain_data.py`): converted exactly, or refused. NaN and infinities are
 * the texts "NaN", "Infinity" and "-Infinity".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/command/array.h"
#include "runtime/command/command.h"
#include "runtime/command/numbers.h"

/* Where the next element goes. */
struct nnd_filled {
  struct nnd_array *array;
  const nnd_info *input;
  int64_t at;
};

static int nnd_bad_value(const nnd_info *input, const char *why, nnd_error *error) {
  return nnd_fail_with(error, NND_BAD_DATA, "input '%s' must be %s, %s", input->name, nnd_dtype_name(input->dtype),
                       why);
}

static int nnd_real_of(const struct nnd_json *from, double *number) {
  if (from->kind != NND_STRING) return nnd_json_number(from, number);
  if (nnd_is_text(&from->text, "NaN")) return *number = NAN, 1;
  if (nnd_is_text(&from->text, "Infinity")) return *number = INFINITY, 1;
  return nnd_is_text(&from->text, "-Infinity") ? *number = -INFINITY, 1 : 0;
}

/* Reads a whole number, which may be written as 1.0. */
static int nnd_whole_of(const struct nnd_json *from, int64_t low, int64_t high, int64_t *number) {
  double real;
  if (from->kind == NND_INTEGER) return nnd_json_integer(from, low, high, number);
  if (!nnd_json_number(from, &real) || real != floor(real) || fabs(real) > 9e15) return 0;
  *number = (int64_t)real;
  return *number >= low && *number <= high;
}

static int nnd_fill_real(struct nnd_filled *to, const struct nnd_json *from, nnd_error *error) {
  double number;
  if (!nnd_real_of(from, &number)) return nnd_bad_value(to->input, "got what is no number", error);
  if (to->input->dtype == NND_FLOAT64) {
    ((double *)to->array->memory)[to->at++] = number;
    return 1;
  }
  if (to->input->dtype == NND_FLOAT32) {
    const float found = (float)number;
    ((float *)to->array->memory)[to->at++] = found;
    return isinf(found) == isinf(number) || nnd_bad_value(to->input, "which cannot hold a number this large", error);
  }
  const uint16_t found = nnd_to_half(number);
  ((uint16_t *)to->array->memory)[to->at++] = found;
  return ((found & 0x7fff) == 0x7c00) == isinf(number) ||
         nnd_bad_value(to->input, "which cannot hold a number this large", error);
}

static int nnd_fill_one(struct nnd_filled *to, const struct nnd_json *from, nnd_error *error) {
  static const int64_t least[] = {0, INT32_MIN, INT64_MIN, 0, 0, INT8_MIN};
  static const int64_t most[] = {0, INT32_MAX, INT64_MAX, 0, UINT8_MAX, INT8_MAX};
  const nnd_dtype dtype = to->input->dtype;
  void *data = to->array->memory;
  int64_t number;
  if (dtype == NND_FLOAT32 || dtype == NND_FLOAT16 || dtype == NND_FLOAT64) return nnd_fill_real(to, from, error);
  if (dtype == NND_TEXT) {
    if (from->kind != NND_STRING) return nnd_bad_value(to->input, "got what is no text", error);
    ((const char **)data)[to->at++] = from->text.data;
    return 1;
  }
  if (dtype == NND_BOOL) {
    if (from->kind != NND_TRUE && from->kind != NND_FALSE)
      return nnd_bad_value(to->input, "got what is neither true nor false", error);
    ((uint8_t *)data)[to->at++] = from->kind == NND_TRUE;
    return 1;
  }
  if (!nnd_whole_of(from, least[dtype], most[dtype], &number))
    return nnd_bad_value(to->input, "got what is no such number", error);
  if (dtype == NND_INT64) ((int64_t *)data)[to->at++] = number;
  if (dtype == NND_INT32) ((int32_t *)data)[to->at++] = (int32_t)number;
  if (dtype == NND_INT8 || dtype == NND_UINT8) ((uint8_t *)data)[to->at++] = (uint8_t)number;
  return 1;
}

/* Reads the lists at an axis, all as long as the first. */
static int nnd_fill_axis(struct nnd_filled *to, const struct nnd_json *from, int axis, nnd_error *error) {
  if (axis == to->array->tensor.rank) {
    if (from->kind == NND_ARRAY || from->kind == NND_OBJECT)
      return nnd_bad_value(to->input, "got lists of other lengths", error);
    return nnd_fill_one(to, from, error);
  }
  if (from->kind != NND_ARRAY || from->count != to->array->shape[axis])
    return nnd_bad_value(to->input, "got lists of other lengths", error);
  NND_EACH(item, from) {
    if (!nnd_fill_axis(to, item, axis + 1, error)) return 0;
  }
  return 1;
}

int nnd_array_from_json(const struct nnd_json *from, const nnd_info *input, struct nnd_array *array, nnd_error *error) {
  struct nnd_filled to = {array, input, 0};
  int rank = 0;
  for (const struct nnd_json *at = from; at && at->kind == NND_ARRAY; at = at->first) {
    if (rank == NND_MAX_RANK) return nnd_bad_value(input, "got too many axes", error);
    array->shape[rank++] = at->count;
  }
  array->tensor = (nnd_tensor){input->dtype, rank, array->shape, NULL};
  const int64_t bytes = nnd_bytes_in(input->dtype, rank, array->shape);
  array->memory = nnd_lines_take(bytes);
  if (!array->memory) return nnd_fail(error, NND_NO_MEMORY, input->name, "no memory for it");
  array->tensor.data = array->memory;
  return nnd_fill_axis(&to, from, 0, error);
}

static void nnd_answer_element(struct nnd_answer *answer, const char *key, const nnd_tensor *value, int64_t at) {
  if (value->dtype == NND_TEXT) {
    nnd_answer_text(answer, key, ((const char *const *)value->data)[at]);
  } else if (value->dtype == NND_BOOL) {
    nnd_answer_word(answer, key, nnd_integer_at(value, at) ? "true" : "false");
  } else if (nnd_is_real(value)) {
    const double number = nnd_number_at(value, at);
    if (isfinite(number))
      nnd_answer_number(answer, key, number);
    else
      nnd_answer_text(answer, key, isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
  } else {
    nnd_answer_integer(answer, key, nnd_integer_at(value, at));
  }
}

static void nnd_answer_axis(struct nnd_answer *answer, const char *key, const nnd_tensor *value, int axis,
                            int64_t *at) {
  if (axis == value->rank) {
    nnd_answer_element(answer, key, value, (*at)++);
    return;
  }
  nnd_answer_open(answer, key, '[');
  for (int64_t i = 0; i < value->shape[axis]; i++) nnd_answer_axis(answer, NULL, value, axis + 1, at);
  nnd_answer_close(answer, ']');
}

static void nnd_answer_maps(struct nnd_answer *answer, const char *key, const nnd_tensor *value,
                            const nnd_tensor *keys) {
  char number[32];
  int64_t at = 0;
  nnd_answer_open(answer, key, '[');
  for (int64_t row = 0; row < value->shape[0]; row++) {
    nnd_answer_open(answer, NULL, '{');
    for (int64_t i = 0; i < value->shape[1]; i++) {
      const int is_text = keys->dtype == NND_TEXT;
      if (!is_text) snprintf(number, sizeof number, "%lld", (long long)nnd_integer_at(keys, i));
      nnd_answer_element(answer, is_text ? ((const char *const *)keys->data)[i] : number, value, at++);
    }
    nnd_answer_close(answer, '}');
  }
  nnd_answer_close(answer, ']');
}

void nnd_answer_tensor(struct nnd_answer *answer, const char *key, const nnd_tensor *value, const nnd_tensor *keys) {
  int64_t at = 0;
  if (keys)
    nnd_answer_maps(answer, key, value, keys);
  else
    nnd_answer_axis(answer, key, value, 0, &at);
}
