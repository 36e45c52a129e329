/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_table: bytes that a program makes of bytes, each of one, looked up in a table of all 256.
 */
#include "kernels/int8_table.h"

#include "ops/int8_record.h"

#define NND_TABLE_CHUNK 1024 /* bytes of a unit of work */

struct nnd_int8_table_own {
  int in, out;
  const uint8_t *table;
};

NND_RECORD(int8_table)

static int nnd_open_int8_table(struct nnd_opener *o) {
  struct nnd_int8_table_own *own = nnd_own(o, sizeof *own);
  struct nnd_int8_table words;
  if (!own || !nnd_read_int8_table(o, &words)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[words.in], *out = &o->model->tensors[words.out];
  own->in = words.in, own->out = words.out;
  own->table = nnd_byte_table_of(o, words.program, in->element, out->element);
  if (o->message->failed) return 0;
  if (!own->table || in->is_blocked || out->is_blocked)
    return nnd_fail(o->message, "a table of bytes without a program, or of tensors in blocks");
  return 1;
}

struct nnd_int8_table_fields {
  const uint8_t *table;
  nnd_size count;
};

static void nnd_run_int8_table(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_table_fields *t = fields;
  nnd_size first, last;
  nnd_share(nnd_ceil_div(t->count, NND_TABLE_CHUNK), part, &first, &last);
  const nnd_size begin = first * NND_TABLE_CHUNK, end = nnd_min(t->count, last * NND_TABLE_CHUNK);
  if (begin < end) nnd_int8_look_up(t->table, (const uint8_t *)at[1] + begin, end - begin, (uint8_t *)at[0] + begin);
}

static int nnd_make_int8_table(struct nnd_maker *m) {
  const struct nnd_int8_table_own *own = m->step->own;
  struct nnd_int8_table_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->table = own->table, t->count = nnd_shape_of(m, own->out)->count;
  if (nnd_shape_of(m, own->in)->count != t->count) return nnd_fail(m->message, "a table of bytes of other sizes");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_tell_operations(m, t->count, 8);
  m->instance->run = nnd_run_int8_table;
  return 1;
}

const struct nnd_op nnd_op_int8_table = {"int8_table", nnd_open_int8_table, nnd_make_int8_table};
