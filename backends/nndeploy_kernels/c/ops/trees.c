/* SPDX-License-Identifier: Apache-2.0
 *
 * trees: what the leaves of decision trees come to that each row of a matrix reaches.
 *
 * A tree begins with its root. `child` is the node for elements whose relation to the threshold is none of `relations`,
 * the next one that for all others (bits of enum nnd_tree_relation); both lie behind the node, in its tree. Where
 * relations are -1, the node is a leaf, whose numbers begin at `child` of the leaves. A number of a leaf that is -0 is
 * none: a column that no leaf has a number for is -0 before something is added to it. A row adds up in the order of the
 * trees. Workers share rows.
 */
#include "kernels/trees.h"
#include "model/words.h"

#define NND_MOST_NODES ((nnd_size)1 << 27) /* bytes are counted in 32 bits */
/* Rows go through a tree before the next one, and both stay in the cache: so many rows, with so many bytes. */
#define NND_TREE_ROWS 64
#define NND_TREE_ROWS_BYTES ((nnd_size)64 << 10)

NND_SET(tree_aggregate);
NND_RECORD(tree_tables)
NND_RECORD(trees)

/* `root` in bytes; `count` columns from `first` on. */
struct nnd_tree {
  uint32_t root;
  int first, count;
};

struct nnd_trees_own {
  int in, out, aggregate, comparison;
  float divisor;
  nnd_size columns, num_trees, features; /* features: that a row must have */
  struct nnd_tree *trees;
  struct nnd_tree_node *nodes;
  uint32_t *numbers; /* where those of each leaf begin */
  const float *leaves, *base;
};

struct nnd_trees_fields {
  const struct nnd_trees_own *own;
  nnd_size rows, width, rows_at_once;
};

/* Makes the nodes of a tree [first, end): leaves lead to themselves. */
static int nnd_take_tree(struct nnd_opener *o, struct nnd_trees_own *own, struct nnd_tree tree, nnd_size first,
                         nnd_size end, nnd_size num_leaves) {
  for (nnd_size i = first; i < end; i++) {
    struct nnd_tree_node *node = &own->nodes[i];
    const int32_t feature = (int32_t)node->feature, child = (int32_t)node->child, relations = (int32_t)node->relations;
    if (relations == -1) {
      if (child < 0 || child > num_leaves - tree.count)
        return nnd_fail(o->message, "leaf %lld of a tree has no numbers", (long long)i);
      own->numbers[i] = (uint32_t)child;
      *node = (struct nnd_tree_node){INT32_MIN, 0, (uint32_t)(i * (nnd_size)sizeof *node), 0};
      continue;
    }
    if (feature < 0 || relations < 0 || relations > 15 || child <= i || child >= end - 1)
      return nnd_fail(o->message, "node %lld of a tree leads elsewhere", (long long)i);
    node->child = (uint32_t)(child * (nnd_size)sizeof *node);
    own->features = nnd_max(own->features, (nnd_size)feature + 1);
    if ((node->relations & 7) != NND_TREE_AT_MOST)
      own->comparison = NND_TREES_ANY;
    else if (node->relations != NND_TREE_AT_MOST)
      own->comparison = nnd_max(own->comparison, NND_TREES_MISSING);
  }
  return 1;
}

/* Copies the tables, then checks the copies. */
static int nnd_take_trees(struct nnd_opener *o, struct nnd_trees_own *own, const struct nnd_tree_tables *words) {
  const struct nnd_weight_data *trees = words->trees, *thresholds = words->thresholds, *nodes = words->nodes;
  const struct nnd_weight_data *leaves = words->leaves;
  if (!trees || !thresholds || !nodes || !leaves) return nnd_fail(o->message, "trees without nodes or leaves");
  const nnd_size num_nodes = thresholds->count;
  own->leaves = leaves->data;
  own->num_trees = trees->count / 3;
  if (trees->count % 3 || nodes->count != 3 * num_nodes || num_nodes > NND_MOST_NODES || own->num_trees > num_nodes)
    return nnd_fail(o->message, "trees, their nodes and thresholds do not fit each other");
  own->trees = nnd_packed(o, own->num_trees * (nnd_size)sizeof *own->trees);
  own->nodes = nnd_packed(o, num_nodes * (nnd_size)sizeof *own->nodes);
  own->numbers = nnd_packed(o, num_nodes * (nnd_size)sizeof *own->numbers);
  if (o->message->failed) return 0;
  const int32_t *tree = trees->data;
  const uint32_t *node = nodes->data;
  const float *threshold = thresholds->data;
  for (nnd_size i = 0; i < num_nodes; i++, node += 3) {
    const int32_t ordered = threshold[i] == threshold[i] ? nnd_ordered(threshold[i]) : INT32_MIN;
    own->nodes[i] = (struct nnd_tree_node){ordered, node[0], node[1], node[2]};
  }
  for (nnd_size i = 0; i < own->num_trees; i++, tree += 3)
    own->trees[i] = (struct nnd_tree){(uint32_t)tree[0], tree[1], tree[2]};
  for (nnd_size i = 0; i < own->num_trees; i++) {
    struct nnd_tree *one = &own->trees[i];
    const nnd_size first = one->root, end = i + 1 < own->num_trees ? own->trees[i + 1].root : num_nodes;
    if (first >= end || end > num_nodes || one->first < 0 || one->count < 1 || one->first >= own->columns ||
        one->count > own->columns - one->first)
      return nnd_fail(o->message, "tree %lld has no nodes, or other columns than there are", (long long)i);
    if (!nnd_take_tree(o, own, *one, first, end, leaves->count)) return 0;
  }
  for (nnd_size i = 0; i < own->num_trees; i++) own->trees[i].root *= (uint32_t)sizeof *own->nodes;
  return 1;
}

static int nnd_open_trees(struct nnd_opener *o) {
  struct nnd_trees_own *own = nnd_own(o, sizeof *own);
  struct nnd_trees words;
  if (!own || !nnd_read_trees(o, &words)) return 0;
  const struct nnd_weight_data *base = words.base;
  own->in = words.in, own->out = words.out, own->aggregate = words.aggregate, own->columns = words.columns;
  own->divisor = (float)words.divisor, own->features = 1;
  if (o->model->tensors[own->in].is_blocked || o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "rows for trees in another layout");
  if (base && base->count != own->columns) return nnd_fail(o->message, "trees with other columns");
  own->base = base ? base->data : NULL;
  return nnd_take_trees(o, own, &words.tables);
}

NND_INLINE int nnd_is_none(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits == (uint32_t)1 << 31;
}

/* Takes the numbers of a leaf into the columns of a row. To add a number that is none changes nothing. */
NND_INLINE void nnd_take_leaf(const float *leaf, nnd_size count, float *to, int aggregate) {
  for (nnd_size k = 0; k < count; k++) {
    if (aggregate == NND_TREES_SUM)
      to[k] += leaf[k];
    else if (!nnd_is_none(leaf[k]) &&
             (nnd_is_none(to[k]) || (aggregate == NND_TREES_MIN ? leaf[k] < to[k] : leaf[k] > to[k])))
      to[k] = leaf[k];
  }
}

NND_INLINE void nnd_take_leaf_of(const struct nnd_trees_own *own, const struct nnd_tree *tree, uint32_t at, float *to) {
  const float *leaf = own->leaves + own->numbers[at / sizeof *own->nodes];
  to += tree->first;
  if (own->aggregate == NND_TREES_MIN) {
    nnd_take_leaf(leaf, tree->count, to, NND_TREES_MIN);
  } else if (own->aggregate == NND_TREES_MAX) {
    nnd_take_leaf(leaf, tree->count, to, NND_TREES_MAX);
  } else {
    switch (tree->count) { /* few columns without a loop */
      case 1: nnd_take_leaf(leaf, 1, to, NND_TREES_SUM); break;
      case 2: nnd_take_leaf(leaf, 2, to, NND_TREES_SUM); break;
      case 3: nnd_take_leaf(leaf, 3, to, NND_TREES_SUM); break;
      case 4: nnd_take_leaf(leaf, 4, to, NND_TREES_SUM); break;
      default: nnd_take_leaf(leaf, tree->count, to, NND_TREES_SUM);
    }
  }
}

/* As many rows as there are walks go through one tree at once. */
NND_INLINE void nnd_rows_through_tree(const struct nnd_trees_own *own, const struct nnd_tree *tree, const int32_t *x,
                                      nnd_size width, float *out, int comparison) {
  const int32_t *rows[NND_WALKS];
  uint32_t at[NND_WALKS];
  for (int i = 0; i < NND_WALKS; i++) rows[i] = x + i * width, at[i] = tree->root;
  nnd_walk_trees(own->nodes, rows, at, comparison);
  for (int i = 0; i < NND_WALKS; i++) nnd_take_leaf_of(own, tree, at[i], out + i * own->columns);
}

/* One row goes through as many trees as there are walks, at once; behind the last tree, through that one again. */
NND_INLINE void nnd_row_through_trees(const struct nnd_trees_own *own, const int32_t *x, float *out, int comparison) {
  for (nnd_size first = 0; first < own->num_trees; first += NND_WALKS) {
    const int32_t *rows[NND_WALKS];
    uint32_t at[NND_WALKS];
    for (int i = 0; i < NND_WALKS; i++) rows[i] = x, at[i] = own->trees[nnd_min(first + i, own->num_trees - 1)].root;
    nnd_walk_trees(own->nodes, rows, at, comparison);
    for (int i = 0; i < nnd_min(NND_WALKS, own->num_trees - first); i++)
      nnd_take_leaf_of(own, &own->trees[first + i], at[i], out);
  }
}

NND_INLINE void nnd_some_rows(const struct nnd_trees_own *own, const int32_t *x, nnd_size width, nnd_size rows,
                              float *out, int comparison) {
  const nnd_size grouped = rows / NND_WALKS * NND_WALKS;
  for (nnd_size tree = 0; grouped && tree < own->num_trees; tree++)
    for (nnd_size row = 0; row < grouped; row += NND_WALKS)
      nnd_rows_through_tree(own, &own->trees[tree], x + row * width, width, out + row * own->columns, comparison);
  for (nnd_size row = grouped; row < rows; row++)
    nnd_row_through_trees(own, x + row * width, out + row * own->columns, comparison);
}

/* Makes elements comparable; returns whether one of them is no number. */
static int nnd_order_elements(const float *x, nnd_size count, int32_t *to) {
  int32_t none = 0;
  for (nnd_size i = 0; i < count; i++) to[i] = nnd_ordered(x[i]), none |= to[i] == NND_ORDERED_NAN;
  return none;
}

static void nnd_run_trees(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_trees_fields *t = fields;
  const struct nnd_trees_own *own = t->own;
  const nnd_size columns = own->columns;
  int32_t *x = (int32_t *)(void *)part.scratch;
  nnd_size first, last;
  nnd_share(nnd_ceil_div(t->rows, NND_WALKS), part, &first, &last);
  first *= NND_WALKS, last = nnd_min(last * NND_WALKS, t->rows);
  for (nnd_size rows; first < last; first += rows) {
    rows = nnd_min(t->rows_at_once, last - first);
    float *out = (float *)at[0] + first * columns;
    const int has_nan = nnd_order_elements((const float *)at[1] + first * t->width, rows * t->width, x);
    for (nnd_size i = 0; i < rows * columns; i++) out[i] = -0.0f;
    if (own->comparison == NND_TREES_ANY)
      nnd_some_rows(own, x, t->width, rows, out, NND_TREES_ANY);
    else if (own->comparison == NND_TREES_MISSING && has_nan)
      nnd_some_rows(own, x, t->width, rows, out, NND_TREES_MISSING);
    else
      nnd_some_rows(own, x, t->width, rows, out, NND_TREES_AT_MOST);
    if (own->divisor > 1)
      for (nnd_size i = 0; i < rows * columns; i++) out[i] /= own->divisor;
    for (nnd_size row = 0; own->base && row < rows; row++)
      for (nnd_size k = 0; k < columns; k++) out[row * columns + k] += own->base[k];
  }
}

static int nnd_make_trees(struct nnd_maker *m) {
  const struct nnd_trees_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_trees_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->rank != 2 || out->rank != 2 || in->sizes[0] != out->sizes[0] || in->sizes[1] < own->features ||
      out->sizes[1] != own->columns)
    return nnd_fail(m->message, "rows have fewer elements than trees read, or other columns are made of them");
  t->own = own, t->rows = in->sizes[0], t->width = in->sizes[1];
  const nnd_size row_bytes = t->width * (nnd_size)sizeof(int32_t);
  const nnd_size fitting = NND_TREE_ROWS_BYTES / row_bytes / NND_WALKS * NND_WALKS;
  t->rows_at_once = nnd_min(nnd_max(NND_WALKS, nnd_min(NND_TREE_ROWS, fitting)), t->rows);
  m->scratch_bytes = t->rows_at_once * row_bytes;
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_tell_operations(m, t->rows, 256 * own->num_trees); /* some eight nodes a tree, which wait for their loads */
  m->instance->run = nnd_run_trees;
  return 1;
}

const struct nnd_op nnd_op_trees = {"trees", nnd_open_trees, nnd_make_trees};
