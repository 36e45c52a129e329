/* SPDX-License-Identifier: Apache-2.0
 *
 * Large weights are packed when the whole plan was read and is right, by several threads; the pages of a weight that
 * nobody else reads are given back as soon as it is packed, so that plain and packed weights are hardly ever both there.
 *
 * What is packed of large weights is numbers alone, without an address or an index, and lies in the image of the caller
 * where there is one. So the image of another model gives wrong numbers, and nothing worse.
 */
#include "base/platform.h"
#include "model/model.h"

#ifdef NND_SEPARATE /* small plans of tests do what large ones do */
#define NND_AT_ONCE_BYTES ((nnd_size)256)
#define NND_BYTES_A_PACKER ((nnd_size)512)
#else
#define NND_AT_ONCE_BYTES ((nnd_size)256 << 10) /* less is packed where it is read */
#define NND_BYTES_A_PACKER ((nnd_size)4 << 20)  /* a thread costs about as long as 1 MB takes */
#endif
#define NND_MOST_PACKERS 8 /* memory is full before */

/* A weight to pack: parts `begin` to `begin + parts` of all. */
struct nnd_pending {
  struct nnd_pending *next;
  nnd_packer pack;
  const void *fields;
  const struct nnd_weight_data *from;
  nnd_size begin, parts, part_bytes;
  _Atomic nnd_size left;
};

struct nnd_packers {
  struct nnd_pending *first;
  nnd_size parts;
  _Atomic nnd_size next;
  int gives, overwrites; /* pages back */
};

static nnd_size nnd_weight_bytes(const struct nnd_weight_data *one) {
  return one->count * nnd_element_bytes[one->element];
}

static int nnd_is_late(const struct nnd_model *model, const struct nnd_weight_data *weight) {
  return model->options.packs_all_late || nnd_weight_bytes(weight) >= NND_AT_ONCE_BYTES;
}

void *nnd_packed_of(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_size num_bytes) {
  struct nnd_model *model = o->model;
  const struct nnd_options *options = &model->options;
  if (!options->image || model->image_used < 0 || !nnd_is_late(model, from)) return nnd_packed(o, num_bytes);
  const nnd_size begin = model->image_used;
  if (num_bytes < 0 || num_bytes > options->image_bytes - begin) {
    if (options->image_is_packed) {
      nnd_fail(o->message, "packed weights of %lld bytes are of another plan", (long long)options->image_bytes);
      return NULL;
    }
    model->image_used = -1;
    return nnd_packed(o, num_bytes);
  }
  model->image_used = nnd_min(begin + nnd_ceil_div(num_bytes, NND_ALIGNMENT) * NND_ALIGNMENT, options->image_bytes);
  return (char *)options->image + begin;
}

void nnd_pack(struct nnd_opener *o, const struct nnd_weight_data *from, nnd_packer pack, const void *fields,
              nnd_size fields_bytes, nnd_size parts, nnd_size part_bytes) {
  struct nnd_model *model = o->model;
  if (!nnd_is_late(model, from)) {
    pack(fields, 0, parts);
    return;
  }
  struct nnd_pending *one = nnd_memory_take(&model->memory, sizeof *one);
  void *kept = nnd_memory_take(&model->memory, fields_bytes);
  if (!one || !kept) {
    nnd_fail(o->message, "no memory for the packing of a weight");
    return;
  }
  memcpy(kept, fields, (size_t)fields_bytes);
  const struct nnd_pending *last = model->last_pending;
  *one = (struct nnd_pending){NULL, pack, kept, from, last ? last->begin + last->parts : 0, parts, part_bytes, parts};
  if (model->last_pending)
    model->last_pending->next = one;
  else
    model->pending = one;
  model->last_pending = one;
}

void nnd_reads_again(const struct nnd_weight_data *weight) { ((struct nnd_weight_data *)weight)->readers++; }

/* Gives back the pages that lie inside of a weight, of its bytes from `begin` to `end`. */
static void nnd_give_back(const struct nnd_packers *all, const struct nnd_weight_data *one, nnd_size begin,
                          nnd_size end) {
  const uintptr_t data = (uintptr_t)one->data;
  const nnd_size last = nnd_min(end, nnd_weight_bytes(one));
  if (one->readers != 1 || begin >= last) return;
  if (all->overwrites) memset((char *)data + begin, 0xFF, (size_t)(last - begin));
  nnd_pages_give_back(data + (uintptr_t)begin, data + (uintptr_t)last);
}

static void *nnd_pack_some(void *context) {
  struct nnd_packers *all = context;
  struct nnd_pending *one = all->first;
  for (nnd_size part; (part = atomic_fetch_add(&all->next, 1)) < all->parts;) {
    while (part >= one->begin + one->parts) one = one->next;
    const nnd_size number = part - one->begin, read = one->part_bytes;
    one->pack(one->fields, number, number + 1);
    const int gives = all->gives || one->from->is_own;
    if (gives && read) nnd_give_back(all, one->from, number * read, number * read + read);
    if (atomic_fetch_sub(&one->left, 1) == 1 && gives) nnd_give_back(all, one->from, 0, nnd_weight_bytes(one->from));
  }
  return NULL;
}

static int nnd_by_place(const void *a, const void *b) {
  const struct nnd_weight_data *const *one = a, *const *other = b;
  return ((*one)->data > (*other)->data) - ((*one)->data < (*other)->data);
}

/* Weights that share bytes have more readers than their own: their pages stay. */
static int nnd_count_shared(struct nnd_model *model) {
  struct nnd_weight_data **sorted =
      nnd_memory_take(&model->memory, nnd_max(1, model->num_weights) * (nnd_size)sizeof *sorted);
  if (!sorted) return 0;
  for (nnd_size i = 0; i < model->num_weights; i++) sorted[i] = &model->weights[i];
  qsort(sorted, (size_t)model->num_weights, sizeof *sorted, nnd_by_place);
  struct nnd_weight_data *furthest = NULL;
  for (nnd_size i = 0; i < model->num_weights; i++) {
    const char *end = furthest ? (const char *)furthest->data + nnd_weight_bytes(furthest) : NULL;
    if (furthest && (const char *)sorted[i]->data < end) furthest->readers++, sorted[i]->readers++;
    if (!furthest || (const char *)sorted[i]->data + nnd_weight_bytes(sorted[i]) > end) furthest = sorted[i];
  }
  return 1;
}

void nnd_pack_all(struct nnd_model *model) {
  const struct nnd_pending *last = model->last_pending;
  if (!last) return;
  nnd_size num_bytes = 0;
  for (const struct nnd_pending *one = model->pending; one; one = one->next) num_bytes += nnd_weight_bytes(one->from);
  struct nnd_packers all = {model->pending, last->begin + last->parts, 0,
                            model->options.gives_weights && nnd_count_shared(model),
                            model->options.packs_all_late != 0};
  if (model->options.image && model->options.image_is_packed) {
    for (struct nnd_pending *one = model->pending; one; one = one->next)
      if (one->from->is_own) nnd_give_back(&all, one->from, 0, nnd_weight_bytes(one->from));
    model->pending = model->last_pending = NULL;
    return;
  }
  nnd_thread threads[NND_MOST_PACKERS];
  const nnd_size wanted = nnd_min(nnd_min(model->options.threads, NND_MOST_PACKERS), num_bytes / NND_BYTES_A_PACKER);
  int started = 0;
  while (started + 1 < wanted && nnd_thread_start(&threads[started], nnd_pack_some, &all)) started++;
  nnd_pack_some(&all);
  while (started > 0) nnd_thread_join(threads[--started]);
  model->pending = model->last_pending = NULL;
}
