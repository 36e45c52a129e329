/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/steps.h"

#include <stdlib.h>
#include <string.h>

int nnd_bad_step(const struct nnd_session *session, const char *why, nnd_error *error) {
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: submodel %.*s: a step reads %s", (int)session->id.size,
                       session->id.data, why);
}

static const char *nnd_name_of(const nnd_call *call, int value) { return call->program->values[value].name.data; }

static int64_t nnd_count_of(const struct nnd_place *place) {
  int64_t count = 1; /* of places bytes were counted before */
  for (int i = 0; i < place->rank; i++) count *= place->shape[i];
  return count;
}

void *nnd_step_make(nnd_call *call, int value, nnd_dtype dtype, int rank, const int64_t *shape, nnd_error *error) {
  int64_t numbers[2 + NND_MAX_RANK] = {(int64_t)dtype, rank};
  void *address = NULL;
  memcpy(numbers + 2, shape, (size_t)rank * sizeof *shape);
  return nnd_prepare_value(call, value, numbers, &address, error) ? address : NULL;
}

/* Returns the place of an element among the keys, that of the default where it is none; -1 where there is none. */
static int64_t nnd_place_of(const struct nnd_step *step, const struct nnd_place *from, int64_t at) {
  struct nnd_key wanted = {0};
  if (from->dtype == NND_TEXT)
    wanted.text = ((const char *const *)from->data)[at];
  else
    wanted.number = from->dtype == NND_INT32 ? ((const int32_t *)from->data)[at] : ((const int64_t *)from->data)[at];
  const struct nnd_key *found =
      step->num_keys ? bsearch(&wanted, step->keys, (size_t)step->num_keys, sizeof wanted, nnd_order_of_keys) : NULL;
  return found ? found->place : step->has_default ? step->num_keys : -1;
}

static int nnd_no_category(const nnd_call *call, const struct nnd_step *step, const struct nnd_place *from, int64_t at,
                           nnd_error *error) {
  const char *name = nnd_name_of(call, step->inputs[0]);
  if (from->dtype == NND_TEXT)
    return nnd_fail_with(error, NND_BAD_DATA, "element %lld of '%.60s' is '%.60s', which is no category", (long long)at,
                         name, ((const char *const *)from->data)[at]);
  const int64_t is = from->dtype == NND_INT32 ? ((const int32_t *)from->data)[at] : ((const int64_t *)from->data)[at];
  return nnd_fail_with(error, NND_BAD_DATA, "element %lld of '%.60s' is %lld, which is no category", (long long)at,
                       name, (long long)is);
}

static int nnd_look_up(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                       nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  const int is_integer = from->dtype == NND_INT32 || from->dtype == NND_INT64;
  if (step->key_dtype == NND_TEXT ? from->dtype != NND_TEXT : !is_integer)
    return nnd_bad_step(session, "another type than its keys", error);
  char *to = nnd_step_make(call, step->outputs[0], step->table.dtype, from->rank, from->shape, error);
  const int64_t count = to ? nnd_count_of(from) : 0, bytes = nnd_bytes_of(step->table.dtype);
  for (int64_t i = 0; i < count; i++) {
    const int64_t place = nnd_place_of(step, from, i);
    if (place < 0) return nnd_no_category(call, step, from, i, error);
    memcpy(to + i * bytes, (const char *)step->table.data + place * bytes, (size_t)bytes);
  }
  return to != NULL;
}

static int nnd_gather_texts(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                            nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  const int64_t size = step->table.shape[0];
  if (from->dtype != NND_INT32 && from->dtype != NND_INT64) return nnd_bad_step(session, "places of no number", error);
  const char **to = nnd_step_make(call, step->outputs[0], NND_TEXT, from->rank, from->shape, error);
  const int64_t count = to ? nnd_count_of(from) : 0;
  for (int64_t i = 0; i < count; i++) {
    const int64_t at = from->dtype == NND_INT32 ? ((const int32_t *)from->data)[i] : ((const int64_t *)from->data)[i];
    if (at < -size || at >= size)
      return nnd_fail_with(error, NND_BAD_DATA, "index %lld is out of bounds for %lld texts", (long long)at,
                           (long long)size);
    to[i] = ((const char *const *)step->table.data)[at < 0 ? at + size : at];
  }
  return to != NULL;
}

/* The maps are the rows of scores themselves. */
static int nnd_zip_map(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                       nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  struct nnd_place *to = &call->places[step->outputs[0]];
  if (from->dtype != NND_FLOAT32 || from->rank < 1 || from->rank > 2)
    return nnd_bad_step(session, "scores that are no rows", error);
  if (from->shape[from->rank - 1] != step->table.shape[0])
    return nnd_fail_with(error, NND_BAD_DATA, "%lld scores for %lld labels", (long long)from->shape[from->rank - 1],
                         (long long)step->table.shape[0]);
  if (to->is_there) return nnd_made_twice(error);
  to->is_there = 1, to->dtype = NND_FLOAT32, to->rank = 2, to->data = from->data;
  to->shape[0] = from->rank == 2 ? from->shape[0] : 1, to->shape[1] = step->table.shape[0];
  return 1;
}

static int nnd_reshape_texts(nnd_call *call, const struct nnd_step *step, nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  const int64_t count = nnd_count_of(from);
  int64_t shape[NND_MAX_RANK], known = 1;
  int open = -1;
  for (int i = 0; i < step->num_numbers; i++) {
    shape[i] = step->numbers[i] ? step->numbers[i] : i < from->rank ? from->shape[i] : 0;
    if (shape[i] < 0)
      open = open < 0 && shape[i] == -1 ? i : NND_MAX_RANK;
    else if (__builtin_mul_overflow(known, shape[i], &known))
      known = -1;
    if (known < 0 || open == NND_MAX_RANK) break;
  }
  if (open >= 0 && open < NND_MAX_RANK && known > 0) shape[open] = count / known;
  if (known < 0 || open == NND_MAX_RANK || (open >= 0 ? known == 0 || count % known : known != count))
    return nnd_fail_with(error, NND_BAD_DATA, "%lld texts do not fill the shape of '%.60s'", (long long)count,
                         nnd_name_of(call, step->outputs[0]));
  void *to = nnd_step_make(call, step->outputs[0], NND_TEXT, (int)step->num_numbers, shape, error);
  if (to && count) memcpy(to, from->data, (size_t)count * sizeof(char *));
  return to != NULL;
}

static int nnd_transpose_texts(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                               nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  int64_t shape[NND_MAX_RANK], strides[NND_MAX_RANK], steps[NND_MAX_RANK], stride = 1;
  int is_seen[NND_MAX_RANK] = {0}, is_right = step->num_numbers == from->rank;
  for (int i = from->rank - 1; i >= 0; i--) strides[i] = stride, stride *= from->shape[i];
  for (int i = 0; is_right && i < from->rank; i++) {
    const int64_t axis = step->numbers[i];
    is_right = axis >= 0 && axis < from->rank && !is_seen[axis];
    if (is_right) is_seen[axis] = 1, shape[i] = from->shape[axis], steps[i] = strides[axis];
  }
  if (!is_right) return nnd_bad_step(session, "other axes than it moves", error);
  const char **to = nnd_step_make(call, step->outputs[0], NND_TEXT, from->rank, shape, error);
  const int64_t count = to ? nnd_count_of(from) : 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, at = 0;
    for (int axis = from->rank - 1; axis >= 0; rest /= shape[axis], axis--) at += rest % shape[axis] * steps[axis];
    to[i] = ((const char *const *)from->data)[at];
  }
  return to != NULL;
}

static int nnd_take_texts(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                          nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  int64_t shape[2 * NND_MAX_RANK], outer = 1, inner = 1;
  const int rank = from->rank - 1 + step->rank;
  if (step->axis < 0 || step->axis >= from->rank || rank < 1 || rank > NND_MAX_RANK)
    return nnd_bad_step(session, "other axes", error);
  const int64_t size = from->shape[step->axis];
  for (int i = 0; i < from->rank; i++) {
    if (i < step->axis) shape[i] = from->shape[i], outer *= from->shape[i];
    if (i > step->axis) shape[i - 1 + step->rank] = from->shape[i], inner *= from->shape[i];
  }
  memcpy(shape + step->axis, step->shape, (size_t)step->rank * sizeof *shape);
  for (int64_t i = 0; i < step->num_numbers; i++)
    if (step->numbers[i] < -size || step->numbers[i] >= size)
      return nnd_fail_with(error, NND_BAD_DATA, "index %lld is out of bounds for axis %lld with size %lld",
                           (long long)step->numbers[i], (long long)step->axis, (long long)size);
  const char **to = nnd_step_make(call, step->outputs[0], NND_TEXT, rank, shape, error);
  if (!to) return 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < step->num_numbers; i++) {
      const int64_t at = step->numbers[i] < 0 ? step->numbers[i] + size : step->numbers[i];
      for (int64_t j = 0; j < inner; j++) *to++ = ((const char *const *)from->data)[(o * size + at) * inner + j];
    }
  return 1;
}

static int nnd_concat_texts(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                            nnd_error *error) {
  const struct nnd_place *first = &call->places[step->inputs[0]];
  int64_t shape[NND_MAX_RANK], outer = 1, inner = 1;
  if (step->axis < 0 || step->axis >= first->rank) return nnd_bad_step(session, "other axes", error);
  memcpy(shape, first->shape, sizeof shape);
  shape[step->axis] = 0;
  for (int i = 0; i < step->num_inputs; i++) {
    const struct nnd_place *from = &call->places[step->inputs[i]];
    int is_right = from->rank == first->rank;
    for (int axis = 0; is_right && axis < first->rank; axis++)
      is_right = axis == step->axis || from->shape[axis] == first->shape[axis];
    if (!is_right) return nnd_fail_with(error, NND_BAD_DATA, "texts of other sizes cannot be joined");
    shape[step->axis] += from->shape[step->axis];
  }
  for (int i = 0; i < first->rank; i++) {
    outer *= i < step->axis ? shape[i] : 1;
    inner *= i > step->axis ? shape[i] : 1;
  }
  const char **to = nnd_step_make(call, step->outputs[0], NND_TEXT, first->rank, shape, error);
  for (int64_t o = 0; to && o < outer; o++)
    for (int i = 0; i < step->num_inputs; i++) {
      const struct nnd_place *from = &call->places[step->inputs[i]];
      const int64_t part = from->shape[step->axis] * inner;
      if (part) memcpy(to, (const char *const *)from->data + o * part, (size_t)part * sizeof *to);
      to += part;
    }
  return to != NULL;
}

/* Compares texts with those of the step, each spread out along axes of size 1. */
static int nnd_equal_texts(nnd_call *call, const struct nnd_step *step, nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  const int rank = from->rank > step->rank ? from->rank : step->rank;
  int64_t shape[NND_MAX_RANK], count = 1;
  for (int i = 0; i < rank; i++) {
    const int a = i - (rank - from->rank), b = i - (rank - step->rank);
    const int64_t x = a < 0 ? 1 : from->shape[a], y = b < 0 ? 1 : step->shape[b];
    if (x != y && x != 1 && y != 1)
      return nnd_fail_with(error, NND_BAD_DATA, "texts of sizes %lld and %lld cannot be compared", (long long)x,
                           (long long)y);
    shape[i] = x == 1 ? y : x;
    if (__builtin_mul_overflow(count, shape[i], &count))
      return nnd_fail_with(error, NND_NO_MEMORY, "an output is larger than memory");
  }
  uint8_t *to = nnd_step_make(call, step->outputs[0], NND_BOOL, rank, shape, error);
  for (int64_t i = 0; to && i < count; i++) {
    int64_t rest = i, at = 0, of = 0, at_stride = 1, of_stride = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
      const int a = axis - (rank - from->rank), b = axis - (rank - step->rank);
      const int64_t index = rest % shape[axis];
      rest /= shape[axis];
      if (a >= 0) at += from->shape[a] == 1 ? 0 : index * at_stride, at_stride *= from->shape[a];
      if (b >= 0) of += step->shape[b] == 1 ? 0 : index * of_stride, of_stride *= step->shape[b];
    }
    to[i] = !strcmp(((const char *const *)from->data)[at], ((const char *const *)step->table.data)[of]);
  }
  return to != NULL;
}

/* Texts as UTF-8, one behind the other, and where each one ends. */
static int nnd_bytes_of_texts(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                              nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  if (from->rank != 1) return nnd_bad_step(session, "texts that are no list", error);
  const char *const *texts = from->data;
  const int64_t count = from->shape[0];
  int64_t size = 0;
  int64_t *ends = nnd_step_make(call, step->outputs[1], NND_INT64, 1, &count, error);
  if (!ends) return 0;
  for (int64_t i = 0; i < count; i++) {
    for (const char *c = texts[i]; step->changes_case && *c; c++)
      if (*c & 0x80)
        return nnd_fail_with(error, NND_UNAVAILABLE,
                             "element %lld of '%.60s': upper and lower case beyond ASCII needs Python", (long long)i,
                             nnd_name_of(call, step->inputs[0]));
    size += (int64_t)strlen(texts[i]);
    ends[i] = size;
  }
  char *to = nnd_step_make(call, step->outputs[0], NND_UINT8, 1, &size, error);
  for (int64_t i = 0, begin = 0; to && i < count; begin = ends[i++])
    memcpy(to + begin, texts[i], (size_t)(ends[i] - begin));
  return to != NULL;
}

int nnd_step_run(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step, nnd_error *error) {
  const int is_of_texts = step->kind >= NND_RESHAPE_TEXTS;
  for (int i = 0; i < step->num_inputs; i++) {
    const struct nnd_place *place = &call->places[step->inputs[i]];
    if (!place->is_there || (is_of_texts && place->dtype != NND_TEXT))
      return nnd_bad_step(session, "what is not there, or no text", error);
  }
  switch (step->kind) {
    case NND_LOOK_UP: return nnd_look_up(call, session, step, error);
    case NND_GATHER_TEXTS: return nnd_gather_texts(call, session, step, error);
    case NND_ZIP_MAP: return nnd_zip_map(call, session, step, error);
    case NND_NON_ZERO: return nnd_find_non_zero(call, session, step, error);
    case NND_COMPRESS: return nnd_find_compressed(call, session, step, error);
    case NND_SUPPRESS: return nnd_find_boxes(call, session, step, error);
    case NND_RESHAPE_TEXTS: return nnd_reshape_texts(call, step, error);
    case NND_TRANSPOSE_TEXTS: return nnd_transpose_texts(call, session, step, error);
    case NND_TAKE_TEXTS: return nnd_take_texts(call, session, step, error);
    case NND_CONCAT_TEXTS: return nnd_concat_texts(call, session, step, error);
    case NND_EQUAL_TEXTS: return nnd_equal_texts(call, step, error);
    case NND_BYTES_OF_TEXTS: return nnd_bytes_of_texts(call, session, step, error);
  }
  return 0;
}
