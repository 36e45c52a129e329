/* SPDX-License-Identifier: Apache-2.0
 *
 * tf_idf: how often the n-grams of a pool (ops/grams.h) stand in each row of whole numbers. Workers share rows.
 */
#include "ops/grams.h"

NND_RECORD(tf_idf)

struct nnd_tf_idf_own {
  int in, out;
  struct nnd_gram_tree tree;
};

struct nnd_tf_idf_fields {
  const struct nnd_gram_tree *tree;
  int is_wide;
  nnd_size rows, length;
};

static int nnd_open_tf_idf(struct nnd_opener *o) {
  struct nnd_tf_idf_own *own = nnd_own(o, sizeof *own);
  struct nnd_tf_idf words;
  if (!own || !nnd_read_tf_idf(o, &words)) return 0;
  own->in = words.in, own->out = words.out;
  o->step->takes_empty = 1;
  if (!nnd_has_places(o, own->in) || o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "grams in what is no whole number, or counted in another layout");
  return nnd_take_grams(o, &words.grams, &own->tree);
}

static void nnd_run_tf_idf(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_tf_idf_fields *t = fields;
  const nnd_size width = t->tree->width;
  nnd_size first, last;
  nnd_share(t->rows, part, &first, &last);
  memset((float *)at[0] + first * width, 0, (size_t)((last - first) * width) * sizeof(float));
  for (nnd_size row = first; row < last; row++) {
    float *out = (float *)at[0] + row * width;
    if (t->is_wide)
      nnd_count_row(t->tree, (const int64_t *)at[1] + row * t->length, 1, t->length, out);
    else
      nnd_count_row(t->tree, (const int32_t *)at[1] + row * t->length, 0, t->length, out);
  }
}

static int nnd_make_tf_idf(struct nnd_maker *m) {
  const struct nnd_tf_idf_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_tf_idf_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->rank < 1 || in->rank > 2 || out->rank != in->rank || out->sizes[out->rank - 1] != own->tree.width ||
      (in->rank == 2 && in->sizes[0] != out->sizes[0]))
    return nnd_fail(m->message, "grams of rows are counted in other rows or columns");
  t->tree = &own->tree, t->is_wide = in->element == NND_INT64;
  t->rows = in->rank == 2 ? in->sizes[0] : 1, t->length = in->sizes[in->rank - 1];
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_tell_operations(m, t->rows, own->tree.width + 32 * t->length);
  m->instance->run = nnd_run_tf_idf;
  return 1;
}

const struct nnd_op nnd_op_tf_idf = {"tf_idf", nnd_open_tf_idf, nnd_make_tf_idf};
