/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression. Candidates of a class lie in a heap, so that what is not chosen need not be sorted; those that were
 * chosen lie coordinate by coordinate, so that several are compared at once.
 */
#include "nndeploy_kernels.h"

#define NND_AT_ONCE 8 /* chosen boxes that a candidate is compared with before it is asked whether one was enough */

struct nnd_candidate {
  float score;
  int32_t box;
};

/* The sides of a box, and its area. */
struct nnd_sides {
  double top, left, bottom, right, area;
};

static int nnd_is_before(struct nnd_candidate one, struct nnd_candidate other) {
  if (one.score != other.score && (one.score == one.score || other.score == other.score))
    return one.score > other.score || other.score != other.score;
  return one.box < other.box;
}

static void nnd_sink(struct nnd_candidate *heap, int64_t count, int64_t at) {
  const struct nnd_candidate one = heap[at];
  for (int64_t child = 2 * at + 1; child < count; at = child, child = 2 * at + 1) {
    if (child + 1 < count && nnd_is_before(heap[child + 1], heap[child])) child++;
    if (!nnd_is_before(heap[child], one)) break;
    heap[at] = heap[child];
  }
  heap[at] = one;
}

static double nnd_less(double a, double b) { return a < b ? a : b; }
static double nnd_more(double a, double b) { return a > b ? a : b; }

static struct nnd_sides nnd_sides_of(const float *box, int is_centred) {
  const double a = box[0], b = box[1], c = box[2], d = box[3];
  struct nnd_sides s = {nnd_less(a, c), nnd_less(b, d), nnd_more(a, c), nnd_more(b, d), 0.0};
  if (is_centred) s = (struct nnd_sides){b - d / 2, a - c / 2, b + d / 2, a + c / 2, 0.0};
  s.area = (s.bottom - s.top) * (s.right - s.left);
  return s;
}

/* Whether a box overlaps one of those chosen, whose `field` lies at chosen[field * most]. */
static int nnd_overlaps(const struct nnd_sides *s, const double *chosen, int64_t most, int64_t count, double overlap) {
  const double *top = chosen, *left = top + most, *bottom = left + most, *right = bottom + most, *area = right + most;
  for (int64_t begin = 0; begin < count; begin += NND_AT_ONCE) {
    const int64_t end = begin + NND_AT_ONCE < count ? begin + NND_AT_ONCE : count;
    int is_over = 0;
    for (int64_t i = begin; i < end; i++) {
      const double height = nnd_less(s->bottom, bottom[i]) - nnd_more(s->top, top[i]);
      const double width = nnd_less(s->right, right[i]) - nnd_more(s->left, left[i]);
      const double inner = nnd_more(height, 0.0) * nnd_more(width, 0.0);
      is_over |= inner > 0.0 && inner > overlap * (s->area + area[i] - inner);
    }
    if (is_over) return 1;
  }
  return 0;
}

int64_t nnd_suppress(const float *boxes, const float *scores, const int64_t *sizes, int64_t most, double overlap,
                     const float *least, int is_centred, int64_t *chosen, int64_t rows) {
  const int64_t batches = sizes[0], classes = sizes[1], num_boxes = sizes[2];
  double *sides = (double *)(chosen + 3 * rows);
  struct nnd_candidate *heap = (struct nnd_candidate *)(sides + 5 * num_boxes);
  int64_t total = 0;
  for (int64_t row = 0; row < batches * classes && most > 0; row++, scores += num_boxes) {
    const float *of_batch = boxes + row / classes * num_boxes * 4;
    int64_t count = 0, found = 0;
    for (int64_t box = 0; box < num_boxes; box++)
      if (!least || scores[box] > *least) heap[count++] = (struct nnd_candidate){scores[box], (int32_t)box};
    for (int64_t at = count / 2 - 1; at >= 0; at--) nnd_sink(heap, count, at);
    for (; count > 0 && found < most && total < rows; heap[0] = heap[--count], nnd_sink(heap, count, 0)) {
      const struct nnd_sides s = nnd_sides_of(of_batch + heap[0].box * 4, is_centred);
      if (nnd_overlaps(&s, sides, num_boxes, found, overlap)) continue;
      const double fields[] = {s.top, s.left, s.bottom, s.right, s.area};
      for (int field = 0; field < 5; field++) sides[field * num_boxes + found] = fields[field];
      found++;
      chosen[3 * total] = row / classes, chosen[3 * total + 1] = row % classes, chosen[3 * total + 2] = heap[0].box;
      total++;
    }
  }
  return total;
}
