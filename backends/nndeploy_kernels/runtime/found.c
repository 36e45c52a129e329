/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that find elements (`nndeploy_native/found_steps.py`): how many there are is known when they were found.
 */
#include <string.h>

#include "runtime/steps.h"

/* Whether an element is not zero; -0.0 is. */
static int nnd_is_non_zero(const char *at, nnd_dtype dtype) {
  const int is_float = dtype == NND_FLOAT32 || dtype == NND_FLOAT64 || dtype == NND_FLOAT16;
  const int64_t bytes = nnd_bytes_of(dtype);
  uint64_t bits = 0;
  memcpy(&bits, at, (size_t)bytes);
  return (is_float ? bits << (65 - 8 * bytes) : bits) != 0;
}

int nnd_find_non_zero(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                      nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]];
  if (from->dtype == NND_TEXT || !from->rank) return nnd_bad_step(session, "texts, or one number", error);
  const int64_t bytes = nnd_bytes_of(from->dtype), size = nnd_bytes_in(from->dtype, from->rank, from->shape) / bytes;
  const char *data = from->data;
  int64_t shape[2] = {from->rank, 0}, found = 0;
  for (int64_t i = 0; i < size; i++) shape[1] += nnd_is_non_zero(data + i * bytes, from->dtype);
  int64_t *to = nnd_step_make(call, step->outputs[0], NND_INT64, 2, shape, error);
  for (int64_t i = 0; to && i < size; i++) {
    if (!nnd_is_non_zero(data + i * bytes, from->dtype)) continue;
    int64_t rest = i;
    for (int axis = from->rank - 1; axis >= 0; rest /= from->shape[axis], axis--)
      to[axis * shape[1] + found] = rest % from->shape[axis];
    found++;
  }
  return to != NULL;
}

int nnd_find_compressed(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step,
                        nnd_error *error) {
  const struct nnd_place *from = &call->places[step->inputs[0]], *kept = &call->places[step->inputs[1]];
  if (from->dtype == NND_TEXT || step->axis >= from->rank || kept->dtype != NND_BOOL || kept->rank != 1)
    return nnd_bad_step(session, "other elements or conditions", error);
  const int is_list = step->axis < 0, rank = is_list ? 1 : from->rank, axis = is_list ? 0 : (int)step->axis;
  const int64_t bytes = nnd_bytes_of(from->dtype);
  int64_t shape[NND_MAX_RANK], outer = 1, inner = bytes, count = 0;
  if (is_list)
    shape[0] = nnd_bytes_in(from->dtype, from->rank, from->shape) / bytes;
  else
    memcpy(shape, from->shape, sizeof shape);
  for (int i = 0; i < rank; i++) {
    outer *= i < axis ? shape[i] : 1;
    inner *= i > axis ? shape[i] : 1;
  }
  const int64_t size = shape[axis];
  const uint8_t *is_kept = kept->data;
  for (int64_t i = 0; i < kept->shape[0]; i++) {
    count += is_kept[i] != 0;
    if (is_kept[i] && i >= size)
      return nnd_fail_with(error, NND_BAD_DATA, "condition %lld is true of an axis of %lld", (long long)i,
                           (long long)size);
  }
  shape[axis] = count;
  char *to = nnd_step_make(call, step->outputs[0], from->dtype, rank, shape, error);
  if (!to) return 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < kept->shape[0] && i < size; i++)
      if (is_kept[i]) {
        memcpy(to, (const char *)from->data + (o * size + i) * inner, (size_t)inner);
        to += inner;
      }
  return 1;
}

#define NND_ROWS_OF_A_BOX 2 /* in which nnd_suppress() works */

int nnd_find_boxes(nnd_call *call, const struct nnd_session *session, const struct nnd_step *step, nnd_error *error) {
  const struct nnd_place *boxes = &call->places[step->inputs[0]], *scores = &call->places[step->inputs[1]];
  if (boxes->dtype != NND_FLOAT32 || scores->dtype != NND_FLOAT32 || boxes->rank != 3 || scores->rank != 3)
    return nnd_bad_step(session, "boxes or scores of another type", error);
  const int64_t *sizes = scores->shape, count = sizes[0] * sizes[1] * sizes[2];
  if (boxes->shape[0] != sizes[0] || boxes->shape[1] != sizes[2] || boxes->shape[2] != 4)
    return nnd_fail_with(error, NND_BAD_DATA, "boxes and scores of '%.60s' do not fit each other",
                         call->program->values[step->outputs[0]].name.data);
  const float *score = scores->data, *least = step->has_least ? &step->least : NULL;
  const int64_t most = step->most < sizes[2] ? step->most : sizes[2];
  int64_t rows = least ? 0 : count;
  for (int64_t i = 0; least && i < count; i++) rows += score[i] > *least;
  if (rows > sizes[0] * sizes[1] * most) rows = sizes[0] * sizes[1] * most;
  const int64_t shape[2] = {rows + NND_ROWS_OF_A_BOX * sizes[2], 3};
  int64_t *to = nnd_step_make(call, step->outputs[0], NND_INT64, 2, shape, error);
  if (!to) return 0;
  call->places[step->outputs[0]].shape[0] =
      session->kernels->suppress(boxes->data, score, sizes, most, step->overlap, least, step->is_centred, to, rows);
  return 1;
}
