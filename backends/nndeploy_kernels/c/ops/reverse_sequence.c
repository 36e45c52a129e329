/* SPDX-License-Identifier: Apache-2.0
 *
 * The beginnings of sequences backwards.
 *
 * The first two axes are time and batch, or batch and time; the first `lengths[b]` elements of sequence b come backwards,
 * the rest as they are. A length that the sequence does not have is told.
 *
 * Workers share elements of sequences.
 */
#include "model/words.h"
#include "ops/indices.h"

NND_RECORD(reverse_sequence)

/* `inner` in bytes. */
struct nnd_reverse_fields {
  int is_time_first, is_wide;
  nnd_size units, inner, times, batches;
};

static int nnd_open_reverse(struct nnd_opener *o) {
  struct nnd_reverse_sequence *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_reverse_sequence(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked || out->is_blocked || in->element != out->element || in->rank < 2)
    return nnd_fail(o->message, "sequences of another layout or type");
  if (!nnd_has_places(o, own->lengths)) return nnd_fail(o->message, "sequences whose lengths are no whole numbers");
  return 1;
}

static void nnd_run_reverse(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_reverse_fields *t = fields;
  nnd_size first, last;
  nnd_share(t->units, part, &first, &last);
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size batch = t->is_time_first ? unit % t->batches : unit / t->times;
    const nnd_size time = t->is_time_first ? unit / t->batches : unit % t->times;
    const int64_t said = nnd_whole_at(at[2], t->is_wide, batch);
    if (said < 0 || said > t->times) nnd_out_of_range(&part, batch, said, t->times + 1);
    const nnd_size length = said > t->times ? t->times : (nnd_size)said;
    const nnd_size from = time < length ? length - 1 - time : time;
    const nnd_size place = t->is_time_first ? from * t->batches + batch : batch * t->times + from;
    memcpy((char *)at[0] + unit * t->inner, (const char *)at[1] + place * t->inner, (size_t)t->inner);
  }
}

static int nnd_make_reverse(struct nnd_maker *m) {
  const struct nnd_reverse_sequence *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *lengths = nnd_shape_of(m, own->lengths);
  struct nnd_reverse_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->is_time_first = own->is_time_first, t->is_wide = lengths->element == NND_INT64;
  t->times = in->sizes[!own->is_time_first], t->batches = in->sizes[own->is_time_first];
  t->units = t->times * t->batches, t->inner = in->num_bytes / t->units;
  if (lengths->count != t->batches || nnd_shape_of(m, own->out)->count != in->count)
    return nnd_fail(m->message, "sequences do not fit their lengths, or what is made of them");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->lengths);
  m->instance->run = nnd_run_reverse;
  return 1;
}

const struct nnd_op nnd_op_reverse_sequence = {"reverse_sequence", nnd_open_reverse, nnd_make_reverse};
