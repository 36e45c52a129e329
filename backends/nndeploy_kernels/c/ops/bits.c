/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/bits.h"

#include "kernels/int8_tile.h"

struct nnd_bits_to_pack {
  struct nnd_bits bits;
  struct nnd_bits_source from;
  void *to;
};

static void nnd_pack_bits(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_bits_to_pack *t = fields;
  nnd_bits_pack_numbers(&t->bits, &t->from, first, last, t->to);
}

/* Whether the last of (`count`, `columns`) numbers of so many bits is one of a weight. */
static int nnd_has_bits(const struct nnd_weight_data *weight, int bits, nnd_size count, nnd_size step, nnd_size columns,
                        nnd_size column_step) {
  const nnd_size last = (count - 1) * step + (columns - 1) * column_step;
  return last * bits / (8 * nnd_element_bytes[weight->element]) < weight->count;
}

const struct nnd_bits *nnd_open_bits(struct nnd_opener *o, const struct nnd_bit_weights *words) {
  struct nnd_bits *b = nnd_memory_take(&o->model->memory, sizeof *b);
  const struct nnd_weight_data *numbers = words->numbers, *scales = words->scales.numbers,
                               *zeros = words->zeros.numbers;
  const int bits = (int)words->bits, is_half = bits == 16;
  const nnd_size inner = words->inner, columns = words->columns;
  const uint32_t zero = (uint32_t)words->zero;
  struct nnd_bits_source from = {.flip = words->is_signed ? 1u << (bits - 1) : 0,
                                 .block = words->block,
                                 .k_step = words->steps[0],
                                 .column_step = words->steps[1],
                                 .scale_step = words->scales.block_step,
                                 .scale_column = words->scales.column_step,
                                 .zero_step = words->zeros.block_step,
                                 .zero_column = words->zeros.column_step};
  if (!b) {
    nnd_fail(o->message, "no memory for weights of few bits");
    return NULL;
  }
  const nnd_size blocks = nnd_ceil_div(inner, from.block), piece = nnd_bits_piece(bits, from.block, inner);
  const int is_float = zeros && zeros->element == NND_FLOAT32;
  if ((bits != 4 && bits != 8 && !is_half) || !numbers || numbers->element != (is_half ? NND_FLOAT16 : NND_UINT8) ||
      (is_half ? scales || zeros || from.flip : !scales || scales->element != NND_FLOAT32) ||
      (zeros && !is_float && zeros->element != NND_UINT8) || zero >> bits || !piece ||
      (words->rounds_rows && bits != 4))
    nnd_fail(o->message, "%d bits in blocks of %lld, or zero points or scales that do not fit them", bits,
             (long long)from.block);
  else if (inner > (bits == 4 ? 2 : 1) * numbers->count / columns ||
           !nnd_has_bits(numbers, bits, inner, from.k_step, columns, from.column_step) ||
           (scales && !nnd_has_bits(scales, 32, blocks, from.scale_step, columns, from.scale_column)) ||
           (zeros && !nnd_has_bits(zeros, is_float ? 32 : bits, blocks, from.zero_step, columns, from.zero_column)))
    nnd_fail(o->message, "weights, scales or zero points for %lld columns of %lld numbers of %d bits are too few",
             (long long)columns, (long long)inner, bits);
  if (o->message->failed) return NULL;
  from.numbers = numbers->data, from.scales = scales ? scales->data : NULL;
  if (is_float)
    from.float_zeros = zeros->data;
  else if (zeros)
    from.zeros = zeros->data;
  const nnd_size num_words = nnd_ceil_div(piece, nnd_bits_a_word(bits)), pieces = nnd_ceil_div(inner, piece);
  *b = (struct nnd_bits){.inner = inner,
                         .columns = columns,
                         .piece = piece,
                         .pieces = pieces,
                         .words = num_words,
                         .bits = bits,
                         .zero = (float)(zero ^ from.flip),
                         .rounds_rows = words->rounds_rows && nnd_int8_is_quick(o->model->options.plain_bytes != 0)};
  const nnd_size lanes = nnd_blocks(columns) * pieces * NND_LANES;
  void *to = nnd_packed_of(o, numbers, lanes * num_words * nnd_bits_word_bytes(bits));
  float *to_scales = scales ? nnd_packed(o, lanes * (nnd_size)sizeof *to_scales) : NULL;
  uint8_t *to_zeros = from.zeros ? nnd_packed(o, lanes) : NULL;
  float *to_floats = is_float ? nnd_packed(o, lanes * (nnd_size)sizeof *to_floats) : NULL;
  if (o->message->failed) return NULL;
  if (scales) nnd_bits_pack_scales(b, &from, to_scales, to_zeros, to_floats);
  b->numbers = to, b->scales = to_scales, b->zeros = to_zeros, b->float_zeros = to_floats;
  const struct nnd_bits_to_pack t = {*b, from, to};
  nnd_pack(o, numbers, nnd_pack_bits, &t, sizeof t, nnd_blocks(columns), 0);
  return o->message->failed ? NULL : b;
}
