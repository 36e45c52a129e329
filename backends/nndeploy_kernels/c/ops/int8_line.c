/* SPDX-License-Identifier: Apache-2.0
 *
 * int8_line: bytes of one or two tensors of bytes that lie as the output does, scaled and added up.
 *
 *   min(max(round((a - zero) * factor + (b - zero) * factor + number) + zero, least), most)
 *
 * to the nearest, ties to even.
 */
#include "kernels/int8_bytes.h"
#include "model/words.h"

#define NND_LINE_CHUNK (4 * NND_LANES) /* bytes that are made at once */
#define NND_MOST_ADDED 536870912.0f    /* 255 times twice the largest factor, and this, are what int32 holds */

struct nnd_line_own {
  int operands[2], out;
  float zeros[2], factors[2];
  const float *added; /* whole chunks; null: none */
  nnd_size period;    /* of them */
  struct nnd_int8_end end;
};

/* Copies numbers to whole chunks; null with a message where one of them is too large. */
static const float *nnd_line_numbers(struct nnd_opener *o, const struct nnd_weight_data *numbers) {
  const nnd_size padded = nnd_ceil_div(numbers->count, NND_LINE_CHUNK) * NND_LINE_CHUNK;
  float *to = nnd_packed(o, padded * (nnd_size)sizeof *to);
  for (nnd_size i = 0; to && i < numbers->count; i++) {
    to[i] = ((const float *)numbers->data)[i];
    if (!(to[i] > -NND_MOST_ADDED && to[i] < NND_MOST_ADDED))
      nnd_fail(o->message, "a line of bytes with a number that is too large");
  }
  return to;
}

NND_RECORD(int8_term)
NND_RECORD(int8_line)

static int nnd_open_int8_line(struct nnd_opener *o) {
  struct nnd_line_own *own = nnd_own(o, sizeof *own);
  struct nnd_int8_line words;
  if (!own || !nnd_read_int8_line(o, &words)) return 0;
  const struct nnd_weight_data *numbers = words.added;
  own->operands[0] = words.first, own->operands[1] = words.second, own->out = words.out;
  own->zeros[0] = (float)words.of_first.zero, own->factors[0] = words.of_first.factor;
  own->zeros[1] = (float)words.of_second.zero, own->factors[1] = words.of_second.factor;
  own->end.least = (int)words.least, own->end.most = (int)words.most, own->end.zero = (float)words.zero;
  own->end.element = o->model->tensors[own->out].element;
  for (int i = 0; i < 3; i++) {
    const int tensor = i < 2 ? own->operands[i] : own->out;
    if (tensor < 0) continue;
    const struct nnd_tensor *one = &o->model->tensors[tensor];
    if (one->is_blocked || (one->element != NND_UINT8 && one->element != NND_INT8))
      return nnd_fail(o->message, "a line of bytes of tensors that hold others");
  }
  if (numbers) own->added = nnd_line_numbers(o, numbers), own->period = numbers->count;
  return !o->message->failed;
}

struct nnd_line_fields {
  const struct nnd_line_own *own;
  nnd_size count, row, chunks; /* bytes of a row, which is the last axis or all, and its chunks */
  int is_signed[2];
};

typedef uint8_t nnd_line_lanes __attribute__((vector_size(NND_LANES), aligned(1)));
typedef int8_t nnd_line_signed __attribute__((vector_size(NND_LANES), aligned(1)));

/* (x - zero) * factor, rounded as such: where it is added to another product, nothing is left out. */
NND_INLINE vf nnd_line_part(const uint8_t *from, int is_signed, float zero, float factor) {
  const vf x = is_signed ? __builtin_convertvector(*(const nnd_line_signed *)from, vf)
                         : __builtin_convertvector(*(const nnd_line_lanes *)from, vf);
  vf part = (x - zero) * factor;
#if defined(__aarch64__)
  __asm__("" : "+w"(part));
#else
  NND_OPAQUE(part);
#endif
  return part;
}

NND_INLINE nnd_vu nnd_line_chunk(const struct nnd_line_own *own, const int *is_signed, const uint8_t *a,
                                 const uint8_t *b, const float *added) {
  vf x[4];
  NND_UNROLL
  for (int v = 0; v < 4; v++) {
    x[v] = nnd_line_part(a + v * NND_LANES, is_signed[0], own->zeros[0], own->factors[0]);
    if (b) x[v] += nnd_line_part(b + v * NND_LANES, is_signed[1], own->zeros[1], own->factors[1]);
    if (added) x[v] += nnd_load_any(added + v * NND_LANES);
  }
  const nnd_vu bytes = (nnd_vu)nnd_int8_bytes_of(&own->end, x);
  return NND_IN_ORDER(bytes);
}

static void nnd_run_int8_line(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_line_fields *t = fields;
  const struct nnd_line_own own = *t->own;
  const int is_signed[2] = {t->is_signed[0], t->is_signed[1]};
  nnd_size unit, last;
  nnd_share(t->count / t->row * t->chunks, part, &unit, &last);
  nnd_size row = unit / t->chunks, place = unit % t->chunks * NND_LINE_CHUNK;
  for (; unit < last; unit++) {
    const nnd_size begin = row * t->row + place, count = nnd_min(NND_LINE_CHUNK, t->row - place);
    const uint8_t *a = (const uint8_t *)at[1] + begin, *b = at[2] ? (const uint8_t *)at[2] + begin : NULL;
    const float *added = own.added ? own.added + place : NULL;
    uint8_t *to = (uint8_t *)at[0] + begin;
    if (count == NND_LINE_CHUNK) {
      const nnd_vu bytes = nnd_line_chunk(&own, is_signed, a, b, added);
      memcpy(to, &bytes, NND_LINE_CHUNK);
    } else {
      uint8_t kept[2][NND_LINE_CHUNK] = {{0}};
      memcpy(kept[0], a, (size_t)count);
      if (b) memcpy(kept[1], b, (size_t)count);
      const nnd_vu bytes = nnd_line_chunk(&own, is_signed, kept[0], b ? kept[1] : NULL, added);
      nnd_store_few(to, &bytes, count);
    }
    place += NND_LINE_CHUNK;
    if (place >= t->row) place = 0, row++;
  }
}

static int nnd_make_int8_line(struct nnd_maker *m) {
  const struct nnd_line_own *own = m->step->own;
  struct nnd_line_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  t->own = own, t->count = out->count, t->row = own->added ? own->period : t->count;
  t->chunks = nnd_ceil_div(t->row, NND_LINE_CHUNK);
  if (own->added && (out->rank < 1 || out->sizes[out->rank - 1] != own->period))
    return nnd_fail(m->message, "a line of bytes with numbers of another axis");
  nnd_give_tensor(m, own->out);
  for (int i = 0; i < 2; i++) {
    if (own->operands[i] >= 0) {
      const struct nnd_shape *shape = nnd_shape_of(m, own->operands[i]);
      if (shape->count != t->count) return nnd_fail(m->message, "a line of bytes of tensors of other sizes");
      t->is_signed[i] = shape->element == NND_INT8;
    }
    nnd_give_tensor(m, own->operands[i]);
  }
  nnd_tell_operations(m, t->count, 8);
  m->instance->run = nnd_run_int8_line;
  return 1;
}

const struct nnd_op nnd_op_int8_line = {"int8_line", nnd_open_int8_line, nnd_make_int8_line};
