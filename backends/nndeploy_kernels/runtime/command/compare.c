/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/compare.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/command.h"
#include "runtime/command/numbers.h"

#define NND_ATOL_SHARE 1e-2
#define NND_LEAST_ATOL 1e-30
#define NND_LEAST_COSINE 0.99
#define NND_LEAST_SLICE 16
#define NND_NEAR 0.01 /* two numbers of a column within this much of the column's largest are one result */
#define NND_NO_COSINE (-2.0)

/* Returns whether elements are equal or not, and nothing else. */
static int nnd_has_no_numbers(const nnd_tensor *tensor) {
  return tensor->dtype == NND_BOOL || tensor->dtype == NND_TEXT;
}

/* Returns whether how far elements are apart says nothing: of indices too. */
static int nnd_is_counted(const nnd_tensor *tensor) {
  return nnd_has_no_numbers(tensor) || tensor->dtype == NND_INT32 || tensor->dtype == NND_INT64;
}

/* Returns how far two elements are apart, which of 64-bit integers float64 would not tell. */
static double nnd_apart(const nnd_tensor *got, const nnd_tensor *want, int64_t at) {
  if (nnd_is_real(want)) return fabs(nnd_number_at(got, at) - nnd_number_at(want, at));
  if (want->dtype == NND_TEXT)
    return strcmp(((const char *const *)got->data)[at], ((const char *const *)want->data)[at]) != 0;
  const int64_t a = nnd_integer_at(got, at), b = nnd_integer_at(want, at);
  return (double)(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
}

static int nnd_is_finite(const nnd_tensor *got, const nnd_tensor *want, int64_t at) {
  return isfinite(nnd_number_at(got, at)) && isfinite(nnd_number_at(want, at));
}

/* Returns whether two elements of which one is not finite are the same. */
static int nnd_is_same_end(const nnd_tensor *got, const nnd_tensor *want, int64_t at) {
  const double a = nnd_number_at(got, at), b = nnd_number_at(want, at);
  return a == b || (isnan(a) && isnan(b));
}

static double nnd_largest_of(const nnd_tensor *got, const nnd_tensor *want) {
  double largest = 0;
  for (int64_t i = 0, count = nnd_num_elements(want); i < count; i++)
    if (nnd_is_finite(got, want, i)) largest = fmax(largest, fabs(nnd_number_at(want, i)));
  return largest;
}

static double nnd_allowed(double size, double largest, const struct nnd_tolerance *tolerance) {
  const double atol =
      tolerance->span != 0 ? fmax(fmin(tolerance->atol, NND_ATOL_SHARE * largest), NND_LEAST_ATOL) : tolerance->atol;
  return atol + tolerance->rtol * size + tolerance->span * largest;
}

static double nnd_cosine(const nnd_tensor *got, const nnd_tensor *want) {
  double a_scale = 0, b_scale = 0, ab = 0, aa = 0, bb = 0;
  int64_t pairs = 0;
  const int64_t count = nnd_num_elements(want);
  for (int64_t i = 0; i < count; i++) {
    if (!nnd_is_finite(got, want, i)) continue;
    pairs++;
    a_scale = fmax(a_scale, fabs(nnd_number_at(got, i))), b_scale = fmax(b_scale, fabs(nnd_number_at(want, i)));
  }
  if (pairs < 2 || !(a_scale > 0) || !(b_scale > 0)) return NND_NO_COSINE;
  for (int64_t i = 0; i < count; i++) {
    if (!nnd_is_finite(got, want, i)) continue;
    const double a = nnd_number_at(got, i) / a_scale, b = nnd_number_at(want, i) / b_scale;
    ab += a * b, aa += a * a, bb += b * b;
  }
  const double cosine = ab / sqrt(aa * bb);
  return isfinite(cosine) ? fmax(-1, fmin(1, cosine)) : NND_NO_COSINE;
}

/* Returns whether two are of one type and shape; else the comparison says what is other. */
static int nnd_is_alike(const nnd_tensor *got, const nnd_tensor *want, struct nnd_comparison *found) {
  char shapes[2][NND_SHAPE_TEXT];
  if (got->dtype != want->dtype) {
    snprintf(found->note, sizeof found->note, "%s instead of %s", nnd_dtype_name(got->dtype),
             nnd_dtype_name(want->dtype));
    return 0;
  }
  if (got->rank == want->rank && !memcmp(got->shape, want->shape, (size_t)want->rank * sizeof *want->shape)) return 1;
  nnd_shape_text(got->rank, got->shape, shapes[0]);
  nnd_shape_text(want->rank, want->shape, shapes[1]);
  snprintf(found->note, sizeof found->note, "shape %.80s instead of %.80s", shapes[0], shapes[1]);
  return 0;
}

static void nnd_by_tolerance(const nnd_tensor *got, const nnd_tensor *want, const struct nnd_tolerance *tolerance,
                             struct nnd_comparison *found) {
  *found = (struct nnd_comparison){0, -1, -1, NND_NO_COSINE, "", "tolerance"};
  if (!nnd_is_alike(got, want, found)) return;
  const int64_t count = nnd_num_elements(want);
  const double largest = nnd_is_real(want) ? nnd_largest_of(got, want) : 0;
  const struct nnd_tolerance in_steps = {tolerance->rtol, tolerance->atol, 0},
                             *by = nnd_is_real(want) ? tolerance : &in_steps;
  int64_t odd = 0, far = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!nnd_is_finite(got, want, i)) {
      odd += !nnd_is_same_end(got, want, i);
      continue;
    }
    const double apart = nnd_apart(got, want, i), size = fabs(nnd_number_at(want, i));
    far += !(apart <= nnd_allowed(size, largest, by));
    if (nnd_has_no_numbers(want)) continue;
    found->max_abs = fmax(found->max_abs, fmin(apart, DBL_MAX));
    if (size > 0) found->max_rel = fmax(found->max_rel, fmin(apart / size, DBL_MAX));
  }
  if (!nnd_has_no_numbers(want)) found->cosine = nnd_cosine(got, want);
  found->is_right = !odd && !far;
  if (nnd_has_no_numbers(want) && far)
    snprintf(found->note, sizeof found->note, "%lld of %lld elements differ", (long long)far, (long long)count);
  if (odd)
    snprintf(found->note, sizeof found->note, "%lld of %lld elements are NaN or infinite on one side only",
             (long long)odd, (long long)count);
}

/* Returns the largest mean square over the elements that share an index of an axis. */
static double nnd_of_slices(const nnd_tensor *got, const nnd_tensor *want, double whole) {
  const int64_t count = nnd_num_elements(want);
  double worst = whole;
  for (int axis = 0; axis < want->rank; axis++) {
    const int64_t size = want->shape[axis];
    int64_t inner = 1;
    if (size < 2 || count / size < NND_LEAST_SLICE) continue;
    for (int i = axis + 1; i < want->rank; i++) inner *= want->shape[i];
    for (int64_t index = 0; index < size; index++) {
      double sum = 0;
      for (int64_t i = 0; i < count / size; i++) {
        const int64_t at = (i / inner * size + index) * inner + i % inner;
        const double apart = nnd_is_finite(got, want, at) ? nnd_apart(got, want, at) : 0;
        sum += apart * apart;
      }
      worst = fmax(worst, sum / (double)(count / size));
    }
  }
  return worst;
}

/* Finds how far two alike are apart, in the figures that limits have. */
static struct nnd_limits nnd_distance(const nnd_tensor *got, const nnd_tensor *want,
                                      const struct nnd_tolerance *tolerance) {
  const int64_t count = nnd_num_elements(want);
  const double largest = nnd_largest_of(got, want);
  struct nnd_limits found = {0, 0, 0, 0, 0, -1};
  double square = 0;
  for (int64_t i = 0; i < count; i++) {
    const int is_finite = nnd_is_finite(got, want, i);
    if (!is_finite && !nnd_is_same_end(got, want, i))
      return (struct nnd_limits){INFINITY, INFINITY, INFINITY, 1, 0, -1};
    const double apart = is_finite ? nnd_apart(got, want, i) : 0;
    if (nnd_is_counted(want)) {
      found.off += apart != 0;
      continue;
    }
    found.max_abs = fmax(found.max_abs, apart);
    square += apart * apart;
    found.off += apart > nnd_allowed(is_finite ? fabs(nnd_number_at(want, i)) : 0, largest, tolerance);
  }
  if (count) found.off /= (double)count;
  if (!count || nnd_is_counted(want)) return found;
  found.rms = sqrt(square / (double)count);
  found.slice_rms = sqrt(nnd_of_slices(got, want, square / (double)count));
  return found;
}

static int nnd_is_turned(const struct nnd_comparison *found) {
  return found->cosine >= -1 && found->cosine < NND_LEAST_COSINE;
}

static void nnd_by_limits(struct nnd_judged *one) {
  struct nnd_comparison *found = &one->found;
  char figures[160];
  if (!nnd_is_alike(&one->got, &one->want, found)) return;
  const struct nnd_limits is = nnd_distance(&one->got, &one->want, &one->tolerance), *most = one->limits;
  const int is_within =
      is.max_abs <= most->max_abs && is.rms <= most->rms && is.slice_rms <= most->slice_rms && is.off <= most->off;
  const double pairs[][2] = {
      {is.max_abs, most->max_abs}, {is.rms, most->rms}, {is.slice_rms, most->slice_rms}, {is.off, most->off}};
  static const char *const names[] = {"max abs", "rms", "rms of a slice", "share off"};
  size_t used = 0;
  found->is_right = is_within, found->rule = "limits";
  if (is_within) snprintf(figures, sizeof figures, "rms %.3g of %.3g allowed", is.rms, most->rms);
  for (int i = 0; i < 4 && used < sizeof figures; i++)
    if (pairs[i][0] > pairs[i][1])
      used += (size_t)snprintf(figures + used, sizeof figures - used, "%s%s %.3g instead of %.3g", used ? ", " : "",
                               names[i], pairs[i][0], pairs[i][1]);
  if (*found->note) return;
  if (!is_within)
    snprintf(found->note, sizeof found->note, "%.150s at most, as engines that are right differ", figures);
  else if (nnd_is_turned(found))
    snprintf(found->note, sizeof found->note, "little was checked: cosine %.4f; %.120s", found->cosine, figures);
  else
    snprintf(found->note, sizeof found->note, "as near as right engines are to each other: %.120s", figures);
}

/* A side of outputs that list equally many results: `count` rows of `width` numbers. */
struct nnd_rows {
  double *numbers;
  int64_t count, width;
};

static int64_t nnd_axis_of(const struct nnd_judged *one) { return one->limits ? one->limits->rows_axis : -1; }

static int nnd_is_of_group(const struct nnd_judged *one, const struct nnd_judged *first) {
  const int64_t axis = nnd_axis_of(one);
  return axis >= 0 && one->want.rank > axis && one->want.shape[axis] == first->want.shape[nnd_axis_of(first)];
}

/* Puts the outputs of a group side by side. Returns 0 and no error where they do not list equally many. */
static int nnd_make_rows(const struct nnd_judged *outputs, int count, const struct nnd_judged *first, int is_got,
                         struct nnd_rows *rows, nnd_error *error) {
  const nnd_tensor *head = is_got ? &first->got : &first->want;
  if (head->rank <= nnd_axis_of(first)) return 0;
  rows->count = head->shape[nnd_axis_of(first)], rows->width = 0;
  for (int pass = 0; pass < 2; pass++) {
    int64_t column = 0;
    for (int o = 0; o < count; o++) {
      const nnd_tensor *tensor = is_got ? &outputs[o].got : &outputs[o].want;
      const int64_t axis = nnd_axis_of(&outputs[o]), size = rows->count;
      if (!nnd_is_of_group(&outputs[o], first)) continue;
      if (tensor->rank <= axis || tensor->shape[axis] != size || tensor->dtype == NND_TEXT) return 0;
      int64_t inner = 1, width = 1;
      for (int i = 0; i < tensor->rank; i++) {
        inner *= i > axis ? tensor->shape[i] : 1;
        width *= i != axis ? tensor->shape[i] : 1;
      }
      for (int64_t i = 0; pass && i < size * width; i++) {
        const int64_t row = i / width, at = i % width;
        const double number = nnd_number_at(tensor, (at / inner * size + row) * inner + at % inner);
        rows->numbers[row * rows->width + column + at] = isnan(number)   ? 0
                                                         : isinf(number) ? copysign(DBL_MAX, number)
                                                                         : number;
      }
      column += width;
    }
    rows->width = column;
    if (!pass && !(rows->numbers = calloc((size_t)(rows->count * column) + 1, sizeof *rows->numbers)))
      return nnd_fail(error, NND_NO_MEMORY, first->name, "no memory to compare it");
  }
  return 1;
}

/* Returns which row of the reference is the best partner of one of ours, -1 where none is. */
static int64_t nnd_partner(const struct nnd_rows *want, const double *near, const char *is_taken, const double *row,
                           int64_t same_place) {
  int64_t best = -1;
  double least = INFINITY;
  for (int64_t i = 0; i < want->count; i++) {
    double sum = 0;
    int64_t j = 0;
    for (; !is_taken[i] && j < want->width; j++) {
      const double apart = fabs(want->numbers[i * want->width + j] - row[j]);
      if (!(apart <= near[j])) break;
      sum += apart;
    }
    if (is_taken[i] || j < want->width) continue;
    if (i == same_place) return i;
    if (best < 0 || sum < least) best = i, least = sum;
  }
  return best;
}

/* Returns the share of rows, on the side that has more of them, without a partner; below 0 and the error. */
static double nnd_unmatched(const struct nnd_rows *got, const struct nnd_rows *want, nnd_error *error) {
  const int64_t most = got->count > want->count ? got->count : want->count;
  int64_t matched = 0;
  if (!most) return 0;
  if (got->width != want->width) return 1;
  double *near = calloc((size_t)want->width + 1, sizeof *near);
  char *is_taken = calloc((size_t)want->count + 1, 1);
  const int has_memory = near && is_taken;
  for (int64_t j = 0; has_memory && j < want->width; j++) {
    for (int64_t i = 0; i < want->count; i++) near[j] = fmax(near[j], fabs(want->numbers[i * want->width + j]));
    near[j] = NND_NEAR * near[j] + 1e-6;
  }
  for (int64_t i = 0; has_memory && i < got->count; i++) {
    const int64_t partner = nnd_partner(want, near, is_taken, got->numbers + i * got->width, i);
    if (partner < 0) continue;
    is_taken[partner] = 1, matched++;
  }
  free(near);
  free(is_taken);
  if (has_memory) return (double)(most - matched) / (double)most;
  nnd_fail(error, NND_NO_MEMORY, "--verify", "no memory to compare rows");
  return -1;
}

static double nnd_share_without_partner(const struct nnd_judged *outputs, int count, const struct nnd_judged *first,
                                        nnd_error *error) {
  struct nnd_rows got = {0}, want = {0};
  double share = 1;
  error->code = 0;
  const int is_made =
      nnd_make_rows(outputs, count, first, 1, &got, error) && nnd_make_rows(outputs, count, first, 0, &want, error);
  if (is_made) share = nnd_unmatched(&got, &want, error);
  free(got.numbers);
  free(want.numbers);
  return error->code ? -1 : share;
}

static int nnd_by_rows(struct nnd_judged *outputs, int count, struct nnd_judged *one, nnd_error *error) {
  const double share = nnd_share_without_partner(outputs, count, one, error), most = one->limits->unmatched;
  if (share < 0) return 0;
  one->found.is_right = share <= most, one->found.rule = "rows";
  snprintf(one->found.note, sizeof one->found.note,
           "compared as sets: %.1f%% of the results have no partner, at most %.1f%% may", 100 * share, 100 * most);
  return 1;
}

int nnd_judge(struct nnd_judged *outputs, int count, nnd_error *error) {
  for (int i = 0; i < count; i++) {
    struct nnd_judged *one = &outputs[i];
    if (one->note) {
      one->found = (struct nnd_comparison){0, -1, -1, NND_NO_COSINE, "", "tolerance"};
      snprintf(one->found.note, sizeof one->found.note, "%s", one->note);
      continue;
    }
    nnd_by_tolerance(&one->got, &one->want, &one->tolerance, &one->found);
    const int is_turned = nnd_is_turned(&one->found) && one->tolerance.span != 0;
    if (one->found.is_right && !is_turned) continue;
    const int64_t axis = nnd_axis_of(one);
    if (axis >= 0 && one->want.rank > axis) {
      if (!nnd_by_rows(outputs, count, one, error)) return 0;
    } else if (one->limits) {
      nnd_by_limits(one);
    } else {
      one->found.is_right = 0;
      if (is_turned && !*one->found.note)
        snprintf(one->found.note, sizeof one->found.note, "cosine %.4f", one->found.cosine);
    }
  }
  return 1;
}
