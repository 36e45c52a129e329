/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices with zeros on one side of a diagonal.
 *
 * The last two axes are rows and columns; upper keeps column >= row + diagonal, lower column <= row + diagonal.
 *
 * Workers share rows.
 */
#include "model/words.h"
#include "ops/indices.h"

NND_RECORD(triangle)

struct nnd_triangle_fields {
  int is_upper, is_wide;
  nnd_size rows, columns, units, width;
};

static int nnd_open_triangle(struct nnd_opener *o) {
  struct nnd_triangle *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_triangle(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->element != out->element || in->rank < 2)
    return nnd_fail(o->message, "a triangle of another layout or type");
  if (!nnd_has_places(o, own->diagonal)) return nnd_fail(o->message, "a diagonal that is no whole number");
  return 1;
}

static void nnd_run_triangle(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_triangle_fields *t = fields;
  const int64_t said = nnd_whole_at(at[2], t->is_wide, 0);
  const nnd_size diagonal = said < -t->rows ? -t->rows : said > t->columns ? t->columns : (nnd_size)said;
  nnd_size first, last;
  nnd_share(t->units, part, &first, &last);
  for (nnd_size row = first; row < last; row++) {
    const nnd_size edge = row % t->rows + diagonal + !t->is_upper; /* the first column of the right part */
    const nnd_size left = nnd_max(0, nnd_min(t->columns, edge)) * t->width, all = t->columns * t->width;
    char *to = (char *)at[0] + row * all;
    const char *from = (const char *)at[1] + row * all;
    if (t->is_upper) {
      memset(to, 0, (size_t)left);
      memcpy(to + left, from + left, (size_t)(all - left));
    } else {
      memcpy(to, from, (size_t)left);
      memset(to + left, 0, (size_t)(all - left));
    }
  }
}

static int nnd_make_triangle(struct nnd_maker *m) {
  const struct nnd_triangle *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *diagonal = nnd_shape_of(m, own->diagonal);
  struct nnd_triangle_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_triangle_fields){.is_upper = own->is_upper,
                                    .is_wide = diagonal->element == NND_INT64,
                                    .rows = in->sizes[in->rank - 2],
                                    .columns = in->sizes[in->rank - 1]};
  t->units = in->count / t->columns, t->width = nnd_element_bytes[in->element];
  if (nnd_shape_of(m, own->out)->count != in->count)
    return nnd_fail(m->message, "a triangle does not fit what is made of it");
  if (diagonal->count != 1) return nnd_fail(m->message, "a triangle has one diagonal");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->diagonal);
  m->instance->run = nnd_run_triangle;
  return 1;
}

const struct nnd_op nnd_op_triangle = {"triangle", nnd_open_triangle, nnd_make_triangle};
