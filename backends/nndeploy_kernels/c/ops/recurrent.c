/* SPDX-License-Identifier: Apache-2.0
 *
 * lstm, gru, rnn: the walk of a recurrent layer through its steps; what the input adds to the gates is there for all
 * steps already, x. f, g and h are sigmoid, tanh and tanh (f of rnn: tanh), or programs:
 *
 *     lstm   i = f(xi + Ri h + Pi c), o = f(xo + Ro h + Po c'), k = f(xf + Rf h + Pf c), c' = k c + i g(xc + Rc h),
 *            h' = o h(c'); joined: k = 1 - i
 *     gru    z = f(xz + Rz h), r = f(xr + Rr h), n = g(xn + Rn (r h)), h' = (1 - z) n + z h;
 *            where it resets after the product: n = g(xn + r (Rn h + bias))
 *     rnn    h' = f(x + R h)
 *
 * Weights are packed [directions][blocks of hidden units][hidden][gates][c]: one stream, in which the gates of a vector
 * of hidden units meet each number of h, broadcast, for as many sequences as sums stay in registers; those of a gru that
 * resets before the product in two such streams. Those of int8 are packed as kernels/int8_tile.h says, in the same
 * order of columns, and meet h of a sequence as bytes of its own range, as DynamicQuantizeLinear makes them. The first
 * of two directions goes forwards, a lone one backwards where it is reversed. A sequence that ends earlier has zeros
 * behind its end, and goes backwards from there.
 */
#include <stdio.h>

#include "base/operators.h"
#include "kernels/int8_tile.h"
#include "kernels/lanes.h"
#include "model/words.h"

enum nnd_layer { NND_LSTM, NND_GRU, NND_RNN };
static const int nnd_gates_of[] = {4, 3, 1}, nnd_programs_of[] = {3, 2, 1};
static const char *const nnd_layer_names[] = {"an LSTM", "a GRU", "an RNN"};

#define NND_MOST_GATES 4
#define NND_MOST_PROGRAMS 3
#define NND_SEQUENCES 6 /* that there are kernels for */
#define NND_BYTE_SEQUENCES (NND_INT8_ROWS > NND_SEQUENCES ? NND_INT8_ROWS : NND_SEQUENCES) /* room for */
/* Sums that stay in registers, beside the weights of each gate and a number of h: fewer than this wait for each other.
 */
#define NND_SUMS 12

enum nnd_gate_of_lstm { NND_GATE_INPUT, NND_GATE_OUTPUT, NND_GATE_FORGET, NND_GATE_CELL }; /* the order of ONNX */
enum nnd_gate_of_gru { NND_GATE_UPDATE, NND_GATE_RESET, NND_GATE_HIDDEN };

struct nnd_recurrent_own {
  int gates, first_h, first_c, lengths, out; /* tensors; -1: none */
  int layer, is_reversed, is_joined, resets_after;
  nnd_size directions, hidden;
  const float *packed, *peepholes, *bias; /* null where there are none */
  const int8_t *bytes;                    /* null: weights are floats */
  const int32_t *byte_sums;               /* of columns, less their zero points */
  const int32_t *byte_zeros;              /* of columns; null where all are zero */
  const float *scales;
  const struct nnd_program *programs[2][NND_MOST_PROGRAMS];
};

struct nnd_recurrent {
  const struct nnd_recurrent_own *own;
  nnd_size steps, batch;
  int keeps_last;
  const struct nnd_int8_kernels *kernels;
  int plain; /* kernels of the level */
};

/* Sums of some gates of one vector of hidden units of some sequences: sums[s][g] += R h. */
struct nnd_gate_sums {
  const float *weights; /* [hidden][gates][c] */
  const float *before;  /* h, `apart` floats from sequence to sequence */
  nnd_size apart, hidden;
  vf *sums; /* [sequence][gate] */
};

/* Sums of few gates and sequences are several each, or they would wait. */
NND_INLINE void nnd_add_products(int sequences, int gates, const struct nnd_gate_sums *d) {
  const int all = sequences * gates, split = 8 * all <= NND_SUMS   ? 8
                                             : 4 * all <= NND_SUMS ? 4
                                             : 2 * all <= NND_SUMS ? 2
                                                                   : 1;
  vf sums[NND_SEQUENCES * NND_MOST_GATES + NND_SUMS];
  NND_UNROLL
  for (int i = 0; i < split * all; i++) sums[i] = i < all ? d->sums[i] : nnd_splat(0.0f);
  const float *weights = d->weights, *before = d->before;
  nnd_size k = 0;
  NND_NO_UNROLL
  for (; k + split <= d->hidden; k += split) NND_UNROLL
  for (int part = 0; part < split; part++, weights += gates * NND_LANES) {
    vf w[NND_MOST_GATES];
    NND_UNROLL
    for (int g = 0; g < gates; g++) w[g] = nnd_load(weights + g * NND_LANES);
    NND_UNROLL
    for (int s = 0; s < sequences; s++) {
      const vf h = nnd_splat(before[s * d->apart + k + part]);
      NND_UNROLL
      for (int g = 0; g < gates; g++) {
        sums[part * all + s * gates + g] += w[g] * h;
        NND_IN_TURN(sums[part * all + s * gates + g]);
      }
    }
  }
  NND_NO_UNROLL
  for (; k < d->hidden; k++, weights += gates * NND_LANES) NND_UNROLL
  for (int s = 0; s < sequences; s++) NND_UNROLL
  for (int g = 0; g < gates; g++) sums[s * gates + g] += nnd_load(weights + g * NND_LANES) * before[s * d->apart + k];
  NND_UNROLL
  for (int i = 0; i < all; i++) {
    NND_UNROLL
    for (int part = 1; part < split; part++) sums[i] += sums[part * all + i];
    d->sums[i] = sums[i];
  }
}

#define NND_EACH_SEQUENCE(X, gates) X(1, gates) X(2, gates) X(3, gates) X(4, gates) X(5, gates) X(6, gates)
#define NND_KEEPS(sequences, gates) ((sequences) * (gates) + (gates) <= NND_ACCUMULATORS || (sequences) == 1)
#define NND_DEFINE_SUMS(sequences, gates)                                                                              \
  static void nnd_add_##gates##_##sequences(const struct nnd_gate_sums *d) {                                           \
    if (NND_KEEPS(sequences, gates)) nnd_add_products(sequences, gates, d);                                            \
  }
#define NND_LISTED_SUMS(sequences, gates) nnd_add_##gates##_##sequences,
NND_EACH_SEQUENCE(NND_DEFINE_SUMS, 1)
NND_EACH_SEQUENCE(NND_DEFINE_SUMS, 2)
NND_EACH_SEQUENCE(NND_DEFINE_SUMS, 3)
NND_EACH_SEQUENCE(NND_DEFINE_SUMS, 4)
typedef void (*nnd_gate_kernel)(const struct nnd_gate_sums *d);
/* By gates and sequences. */
static const nnd_gate_kernel nnd_add_kernels[NND_MOST_GATES + 1][NND_SEQUENCES + 1] = {
    {0},
    {0, NND_EACH_SEQUENCE(NND_LISTED_SUMS, 1)},
    {0, NND_EACH_SEQUENCE(NND_LISTED_SUMS, 2)},
    {0, NND_EACH_SEQUENCE(NND_LISTED_SUMS, 3)},
    {0, NND_EACH_SEQUENCE(NND_LISTED_SUMS, 4)},
};

/* Sequences whose sums stay in registers. */
static nnd_size nnd_most_sequences(const struct nnd_recurrent_own *own) {
  if (own->bytes) return NND_INT8_ROWS;
  return nnd_min(NND_SEQUENCES, NND_ACCUMULATORS / nnd_gates_of[own->layer] - 1);
}

/* Some sequences of one direction at one step. */
struct nnd_recurrent_step {
  const struct nnd_recurrent_own *own;
  const struct nnd_program *const *programs;
  const float *gates, *weights, *peepholes, *bias;
  const float *before; /* h of the step before, null where it is zero; `apart` floats from sequence to sequence */
  nnd_size apart, row; /* floats from sequence to sequence of the output */
  int sequences;
  float *kept; /* of this thread: c of an lstm, z and r h of a gru, each [sequence][hidden] */
  float *out;
  nnd_size direction;
  const struct nnd_int8_kernels *kernels;
  nnd_int8_multiplier multiply; /* null: sequences are rows of `kernels` */
};

/* Columns of all gates of weights of bytes, and bytes of one direction. */
static nnd_size nnd_byte_columns(nnd_size hidden) { return nnd_blocks(hidden) * NND_LANES * nnd_gates_of[NND_LSTM]; }
static nnd_size nnd_byte_rows(nnd_size hidden) { return nnd_int8_groups(hidden) * NND_INT8_DEPTH; }

/* Where a strip of such rows is packed, behind those of all sequences: at a line. */
static char *nnd_byte_strip(uint8_t *bytes, nnd_size hidden) {
  const uintptr_t behind = (uintptr_t)bytes + (uintptr_t)(NND_BYTE_SEQUENCES * nnd_byte_rows(hidden));
  return (char *)((behind + NND_LINE_BYTES - 1) / NND_LINE_BYTES * NND_LINE_BYTES);
}

/* h of a sequence as bytes of its range. */
struct nnd_byte_state {
  float scale;
  uint32_t zero, sum; /* of the bytes, where weights have zero points */
};

static struct nnd_byte_state nnd_byte_state_of(const float *h, nnd_size hidden, uint8_t *to) {
  typedef uint8_t bytes __attribute__((vector_size(NND_LANES)));
  vf least = {0}, most = {0};
  for (nnd_size at = 0; at < hidden; at += NND_LANES) {
    const vf x = nnd_load_some(h + at, nnd_min(NND_LANES, hidden - at));
    least = __builtin_elementwise_min(least, x), most = __builtin_elementwise_max(most, x);
  }
  float low = 0.0f, high = 0.0f;
  for (int lane = 0; lane < NND_LANES; lane++) {
    low = least[lane] < low ? least[lane] : low;
    high = most[lane] > high ? most[lane] : high;
  }
  const float scale = high > low ? (high - low) / 255.0f : 1.0f;
  const vf zero = nnd_saturated(0.0f, 255.0f, nnd_op_round(nnd_splat(-low / scale)));
  for (nnd_size at = 0; at < hidden; at += NND_LANES) {
    const nnd_size lanes = nnd_min(NND_LANES, hidden - at);
    const vf whole = nnd_op_round(nnd_load_some(h + at, lanes) / scale) + zero;
    const bytes made = __builtin_convertvector(__builtin_convertvector(nnd_saturated(0.0f, 255.0f, whole), vi), bytes);
    memcpy(to + at, &made, (size_t)lanes);
  }
  return (struct nnd_byte_state){scale, (uint32_t)zero[0], 0};
}

/* R h of all gates and sequences, whole numbers [sequence][column], by weights of bytes. */
static void nnd_sum_bytes(const struct nnd_recurrent_step *d, uint8_t *bytes, struct nnd_byte_state *states,
                          int32_t *sums) {
  const nnd_size hidden = d->own->hidden, columns = nnd_byte_columns(hidden), rows = nnd_byte_rows(hidden);
  const void *rows_at[NND_BYTE_SEQUENCES];
  for (int s = 0; s < d->sequences; s++) {
    rows_at[s] = bytes + s * rows;
    states[s] = nnd_byte_state_of(d->before + s * d->apart, hidden, bytes + s * rows);
    if (d->own->byte_zeros)
      for (nnd_size k = 0; k < hidden; k++) states[s].sum += bytes[s * rows + k];
  }
  static const nnd_size nowhere = 0;
  const nnd_size strip_bytes = nnd_int8_strip_bytes(1, hidden);
  struct nnd_int8_blocks blocks = {.tiles = {.rows = {nnd_byte_strip(bytes, hidden)},
                                             .offsets = &nowhere,
                                             .taps = 1,
                                             .count = strip_bytes / (NND_INT8_STRIP * NND_INT8_BLOCK),
                                             .size = NND_INT8_BLOCK,
                                             .step = NND_INT8_BLOCK,
                                             .block = NND_INT8_STRIP * NND_INT8_BLOCK,
                                             .strips = 1,
                                             .height = d->sequences,
                                             .vectors = NND_PANEL,
                                             .wide = NND_PANEL,
                                             .sums_row = columns}};
  if (d->multiply) nnd_int8_pack_strip(rows_at, 0, 1, hidden, d->sequences, nnd_byte_strip(bytes, hidden));
  for (nnd_size column = 0; column < columns; column += NND_INT8_COLUMNS) {
    const struct nnd_int8_job job = {.rows = rows_at,
                                     .taps = 1,
                                     .k = hidden,
                                     .weights = d->own->bytes + (d->direction * columns + column) * rows,
                                     .column_sums = d->own->byte_sums + d->direction * columns + column,
                                     .sums = sums + column,
                                     .sums_row = columns};
    blocks.tiles.weights = job.weights, blocks.tiles.sums[0] = job.sums;
    if (d->multiply)
      d->multiply(&blocks);
    else
      d->kernels->of[NND_PANEL][d->sequences](&job);
    /* What the input adds comes from far behind the caches, and is read next. */
    const nnd_size end = nnd_min(column + NND_INT8_COLUMNS, NND_MOST_GATES * hidden);
    for (int s = 0; s < d->sequences; s++)
      for (nnd_size at = column; at < end; at += NND_LINE_BYTES / (nnd_size)sizeof(float))
        __builtin_prefetch(d->gates + s * d->row * NND_MOST_GATES + at);
  }
}

/* Adds the numbers that such sums of the gates of a vector of hidden units stand for. */
static void nnd_add_bytes(const struct nnd_recurrent_step *d, const struct nnd_byte_state *states, const int32_t *sums,
                          nnd_size at, vf *gates) {
  const nnd_size columns = nnd_byte_columns(d->own->hidden), begin = at * NND_MOST_GATES;
  for (int s = 0; s < d->sequences; s++)
    for (int g = 0; g < NND_MOST_GATES; g++) {
      const nnd_size column = begin + g * NND_LANES, place = d->direction * columns + column;
      nnd_vu sum = *(const nnd_vu_any *)(sums + s * columns + column) -
                   *(const nnd_vu_any *)(d->own->byte_sums + place) * states[s].zero;
      if (d->own->byte_zeros) sum -= *(const nnd_vu_any *)(d->own->byte_zeros + place) * states[s].sum;
      const vf scale = nnd_load_any(d->own->scales + place) * states[s].scale;
      gates[s * NND_MOST_GATES + g] += __builtin_convertvector((vi)sum, vf) * scale;
    }
}

/* What the input adds to gates [first, first + count) of a vector of hidden units, and R h. */
static void nnd_sum_gates(const struct nnd_recurrent_step *d, const float *weights, const float *before, nnd_size apart,
                          nnd_size at, int first, int count, vf *sums) {
  const nnd_size hidden = d->own->hidden, lanes = nnd_min(NND_LANES, hidden - at);
  const int gates = nnd_gates_of[d->own->layer];
  for (int s = 0; s < d->sequences; s++)
    for (int g = 0; g < count; g++)
      sums[s * count + g] = nnd_load_some(d->gates + s * d->row * gates + (first + g) * hidden + at, lanes);
  if (!before) return;
  const struct nnd_gate_sums a = {weights + at * hidden * count, before, apart, hidden, sums};
  nnd_add_kernels[count][d->sequences](&a);
}

static vf nnd_run_one(const struct nnd_program *program, vf x) {
  vf results[NND_RESULTS * NND_AT_ONCE];
  const struct nnd_source one = {&x, 0}, operands[NND_OPERANDS] = {one, one, one, one};
  return nnd_vector_of(nnd_program_run(program, operands, 1, results), 0);
}

NND_INLINE vf nnd_sigmoid_or(const struct nnd_program *program, vf x) {
  return program ? nnd_run_one(program, x) : nnd_op_sigmoid(x);
}

NND_INLINE vf nnd_tanh_or(const struct nnd_program *program, vf x) {
  return program ? nnd_run_one(program, x) : nnd_op_tanh(x);
}

/* The quotients of sigmoids and hyperbolic tangents are divided once. */
NND_INLINE vf nnd_usual_cell(const vf *gates, vf *cell) {
  const struct nnd_quotient new = nnd_tanh_quotient(gates[NND_GATE_CELL]);
  const vf kept = *cell / (1.0f + nnd_exp_bounded(-gates[NND_GATE_FORGET]));
  *cell = kept + new.over / (new.under * (1.0f + nnd_exp_bounded(-gates[NND_GATE_INPUT])));
  const struct nnd_quotient state = nnd_tanh_quotient(*cell);
  return state.over / (state.under * (1.0f + nnd_exp_bounded(-gates[NND_GATE_OUTPUT])));
}

NND_NOINLINE vf nnd_other_cell(const struct nnd_recurrent_step *d, const vf *gates, nnd_size at, nnd_size lanes,
                               vf *cell) {
  const nnd_size hidden = d->own->hidden;
  vf peepholes[3]; /* input, output, forget */
  for (int i = 0; i < 3; i++) peepholes[i] = nnd_load_some(d->peepholes ? d->peepholes + i * hidden + at : NULL, lanes);
  const vf in = nnd_sigmoid_or(d->programs[0], gates[NND_GATE_INPUT] + peepholes[0] * *cell);
  const vf forget =
      d->own->is_joined ? 1.0f - in : nnd_sigmoid_or(d->programs[0], gates[NND_GATE_FORGET] + peepholes[2] * *cell);
  *cell = forget * *cell + in * nnd_tanh_or(d->programs[1], gates[NND_GATE_CELL]);
  const vf out = nnd_sigmoid_or(d->programs[0], gates[NND_GATE_OUTPUT] + peepholes[1] * *cell);
  return out * nnd_tanh_or(d->programs[2], *cell);
}

static void nnd_step_lstm(const struct nnd_recurrent_step *d) {
  const nnd_size hidden = d->own->hidden;
  const int is_usual = !d->peepholes && !d->own->is_joined && !d->programs[0] && !d->programs[1] && !d->programs[2];
  const int is_of_bytes = d->own->bytes && d->before;
  int32_t *byte_sums = (int32_t *)(d->kept + 2 * NND_BYTE_SEQUENCES * hidden);
  struct nnd_byte_state states[NND_BYTE_SEQUENCES];
  uint8_t *bytes = (uint8_t *)(byte_sums + NND_BYTE_SEQUENCES * nnd_byte_columns(hidden));
  if (is_of_bytes) nnd_sum_bytes(d, bytes, states, byte_sums);
  vf sums[NND_BYTE_SEQUENCES * NND_MOST_GATES];
  for (nnd_size at = 0; at < hidden; at += NND_LANES) {
    const nnd_size lanes = nnd_min(NND_LANES, hidden - at);
    nnd_sum_gates(d, d->weights, d->own->bytes ? NULL : d->before, d->apart, at, 0, 4, sums);
    if (is_of_bytes) nnd_add_bytes(d, states, byte_sums, at, sums);
    for (int s = 0; s < d->sequences; s++) {
      float *cells = d->kept + s * hidden + at;
      vf cell = nnd_load_some(cells, lanes);
      const vf h = is_usual ? nnd_usual_cell(sums + s * 4, &cell) : nnd_other_cell(d, sums + s * 4, at, lanes, &cell);
      nnd_store_some(cells, cell, lanes);
      nnd_store_some(d->out + s * d->row + at, h, lanes);
    }
  }
}

static void nnd_step_gru_after(const struct nnd_recurrent_step *d) {
  const nnd_size hidden = d->own->hidden;
  vf sums[NND_SEQUENCES * NND_MOST_GATES];
  for (nnd_size at = 0; at < hidden; at += NND_LANES) {
    const nnd_size lanes = nnd_min(NND_LANES, hidden - at);
    const vf bias = nnd_load_some(d->bias ? d->bias + at : NULL, lanes);
    for (int s = 0; s < d->sequences; s++) {
      const float *from = d->gates + s * d->row * 3 + at;
      sums[s * 3] = nnd_load_some(from, lanes);
      sums[s * 3 + 1] = nnd_load_some(from + hidden, lanes);
      sums[s * 3 + 2] = bias;
    }
    const struct nnd_gate_sums a = {d->weights + at * hidden * 3, d->before, d->apart, hidden, sums};
    if (d->before) nnd_add_kernels[3][d->sequences](&a);
    for (int s = 0; s < d->sequences; s++) {
      const vf x = nnd_load_some(d->gates + s * d->row * 3 + 2 * hidden + at, lanes);
      const vf h = nnd_load_some(d->before ? d->before + s * d->apart + at : NULL, lanes);
      const vf update = nnd_sigmoid_or(d->programs[0], sums[s * 3]);
      const vf reset = nnd_sigmoid_or(d->programs[0], sums[s * 3 + 1]);
      const vf new = nnd_tanh_or(d->programs[1], x + reset * sums[s * 3 + 2]);
      nnd_store_some(d->out + s * d->row + at, (1.0f - update) * new + update * h, lanes);
    }
  }
}

static void nnd_step_gru_before(const struct nnd_recurrent_step *d) {
  const nnd_size hidden = d->own->hidden;
  vf sums[NND_SEQUENCES * NND_MOST_GATES];
  float *updates = d->kept, *resets = d->kept + d->sequences * hidden;
  for (nnd_size at = 0; at < hidden; at += NND_LANES) {
    const nnd_size lanes = nnd_min(NND_LANES, hidden - at);
    nnd_sum_gates(d, d->weights, d->before, d->apart, at, NND_GATE_UPDATE, 2, sums);
    for (int s = 0; s < d->sequences; s++) {
      const vf h = nnd_load_some(d->before ? d->before + s * d->apart + at : NULL, lanes);
      nnd_store_some(updates + s * hidden + at, nnd_sigmoid_or(d->programs[0], sums[s * 2]), lanes);
      nnd_store_some(resets + s * hidden + at, nnd_sigmoid_or(d->programs[0], sums[s * 2 + 1]) * h, lanes);
    }
  }
  const float *weights = d->weights + nnd_blocks(hidden) * NND_LANES * hidden * 2;
  for (nnd_size at = 0; at < hidden; at += NND_LANES) {
    const nnd_size lanes = nnd_min(NND_LANES, hidden - at);
    nnd_sum_gates(d, weights, d->before ? resets : NULL, hidden, at, NND_GATE_HIDDEN, 1, sums);
    for (int s = 0; s < d->sequences; s++) {
      const vf h = nnd_load_some(d->before ? d->before + s * d->apart + at : NULL, lanes);
      const vf update = nnd_load_some(updates + s * hidden + at, lanes);
      nnd_store_some(d->out + s * d->row + at, (1.0f - update) * nnd_tanh_or(d->programs[1], sums[s]) + update * h,
                     lanes);
    }
  }
}

static void nnd_step_rnn(const struct nnd_recurrent_step *d) {
  vf sums[NND_SEQUENCES * NND_MOST_GATES];
  for (nnd_size at = 0; at < d->own->hidden; at += NND_LANES) {
    nnd_sum_gates(d, d->weights, d->before, d->apart, at, 0, 1, sums);
    for (int s = 0; s < d->sequences; s++)
      nnd_store_some(d->out + s * d->row + at, nnd_tanh_or(d->programs[0], sums[s]),
                     nnd_min(NND_LANES, d->own->hidden - at));
  }
}

/* The last states of `d`, behind the steps of the output; zeros of sequences without steps, as ONNX Runtime has it. */
static void nnd_keep_last(const struct nnd_recurrent *t, const struct nnd_recurrent_step *d, nnd_size steps,
                          float *last) {
  const nnd_size hidden = t->own->hidden, of_step = t->batch * d->row;
  for (int s = 0; s < d->sequences; s++)
    for (nnd_size k = 0; k < hidden; k++) {
      last[s * d->row + k] = steps ? d->before[s * d->apart + k] : 0.0f;
      if (t->own->layer == NND_LSTM) last[of_step + s * d->row + k] = steps ? d->kept[s * hidden + k] : 0.0f;
    }
}

/* The first `steps` steps of `sequences` sequences from `first` on, of one direction. */
static void nnd_walk(const struct nnd_recurrent *t, nnd_size direction, nnd_size first, int sequences, nnd_size steps,
                     void *const *at, float *kept) {
  const struct nnd_recurrent_own *own = t->own;
  const nnd_size hidden = own->hidden, row = own->directions * hidden, of_step = t->batch * row;
  const nnd_size offset = first * row + direction * hidden, state = (direction * t->batch + first) * hidden;
  const nnd_size gates = nnd_gates_of[own->layer], floats = gates * nnd_blocks(hidden) * NND_LANES * hidden;
  const float *first_h = at[2], *first_c = at[3];
  const int backwards = own->is_reversed || direction == 1;
  struct nnd_recurrent_step d = {.own = own,
                                 .programs = own->programs[direction],
                                 .weights = own->bytes ? NULL : own->packed + direction * floats,
                                 .peepholes = own->peepholes ? own->peepholes + direction * 3 * hidden : NULL,
                                 .bias = own->bias ? own->bias + direction * hidden : NULL,
                                 .before = first_h ? first_h + state : NULL,
                                 .apart = hidden,
                                 .row = row,
                                 .sequences = sequences,
                                 .kept = kept,
                                 .direction = direction,
                                 .kernels = t->kernels};
  if (own->bytes) d.multiply = nnd_int8_multiplier_here(t->plain, sequences, hidden, nnd_byte_columns(hidden));
  for (nnd_size i = 0; own->layer == NND_LSTM && i < sequences * hidden; i++)
    kept[i] = first_c ? first_c[state + i] : 0.0f;
  for (nnd_size i = 0; i < steps; i++) {
    const nnd_size place = (backwards ? steps - 1 - i : i) * of_step + offset;
    d.gates = (const float *)at[1] + (place - direction * hidden) * gates + direction * gates * hidden;
    d.out = (float *)at[0] + place;
    if (own->layer == NND_LSTM)
      nnd_step_lstm(&d);
    else if (own->layer == NND_RNN)
      nnd_step_rnn(&d);
    else if (own->resets_after)
      nnd_step_gru_after(&d);
    else
      nnd_step_gru_before(&d);
    d.before = d.out;
    d.apart = row;
  }
  for (nnd_size i = steps; i < t->steps; i++) /* of one sequence */
    memset((float *)at[0] + i * of_step + offset, 0, (size_t)hidden * sizeof(float));
  if (t->keeps_last) nnd_keep_last(t, &d, steps, (float *)at[0] + t->steps * of_step + offset);
}

/* Workers share directions and, as many as there are, sequences. */
static void nnd_run_recurrent(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_recurrent *t = fields;
  const int32_t *lengths = at[4];
  const nnd_size wanted = nnd_min(t->batch, nnd_ceil_div(part.count, t->own->directions));
  const nnd_size groups = lengths ? t->batch : nnd_max(wanted, nnd_ceil_div(t->batch, nnd_most_sequences(t->own)));
  nnd_size unit, last;
  nnd_share(t->own->directions * groups, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size direction = unit / groups, group = unit % groups, first = group * t->batch / groups;
    const nnd_size steps = lengths ? nnd_max(0, nnd_min(lengths[group], t->steps)) : t->steps;
    nnd_walk(t, direction, first, (int)((group + 1) * t->batch / groups - first), steps, at, (float *)part.scratch);
  }
}

/* Packs `count` gates of one direction from the first one on; returns what is behind them. */
static float *nnd_pack_gates(const float *from, nnd_size hidden, int first, int count, float *to) {
  for (int gate = 0; gate < count; gate++)
    for (nnd_size unit = 0; unit < hidden; unit++) {
      const float *row = from + ((first + gate) * hidden + unit) * hidden;
      float *here = to + unit / NND_LANES * NND_LANES * hidden * count + gate * NND_LANES + unit % NND_LANES;
      for (nnd_size k = 0; k < hidden; k++) here[k * count * NND_LANES] = row[k];
    }
  return to + nnd_blocks(hidden) * NND_LANES * hidden * count;
}

struct nnd_directions {
  const float *from;
  float *to;
  nnd_size hidden;
  int gates, apart; /* the last gate, which follows when the others are known */
};

static void nnd_pack_directions(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_directions *t = fields;
  for (nnd_size direction = first; direction < last; direction++) {
    const float *from = t->from + direction * t->gates * t->hidden * t->hidden;
    float *to = t->to + direction * t->gates * nnd_blocks(t->hidden) * NND_LANES * t->hidden;
    to = nnd_pack_gates(from, t->hidden, 0, t->gates - t->apart, to);
    if (t->apart) nnd_pack_gates(from, t->hidden, t->gates - 1, 1, to);
  }
}

/* Weights of bytes to their columns; scales and zero points are there already. */
struct nnd_byte_directions {
  const int8_t *from;
  int8_t *to;
  int32_t *sums;
  const int32_t *zeros; /* null: none */
  nnd_size hidden;
  const struct nnd_int8_kernels *kernels;
};

/* A zero point, which is a whole number of a byte. */
static int32_t nnd_byte_of(float x) { return x >= -128.0f && x <= 127.0f ? (int32_t)x : 0; }

static nnd_size nnd_byte_column(nnd_size gate, nnd_size unit) {
  return (unit / NND_LANES * NND_MOST_GATES + gate) * NND_LANES + unit % NND_LANES;
}

static void nnd_pack_byte_directions(const void *fields, nnd_size first, nnd_size last) {
  const struct nnd_byte_directions *t = fields;
  const nnd_size hidden = t->hidden, columns = nnd_byte_columns(hidden), rows = nnd_byte_rows(hidden);
  for (nnd_size number = first * NND_MOST_GATES * hidden; number < last * NND_MOST_GATES * hidden; number++) {
    const nnd_size direction = number / hidden / NND_MOST_GATES, gate = number / hidden % NND_MOST_GATES;
    const nnd_size column = nnd_byte_column(gate, number % hidden), within = column % NND_INT8_COLUMNS;
    int8_t *to = t->to + (direction * columns + column - within) * rows + within * NND_INT8_DEPTH;
    const int8_t *from = t->from + number * hidden;
    int32_t sum = t->zeros ? -(int32_t)hidden * t->zeros[direction * columns + column] : 0;
    for (nnd_size k = 0; k < hidden; k++) {
      to[k / NND_INT8_DEPTH * NND_INT8_COLUMNS * NND_INT8_DEPTH + k % NND_INT8_DEPTH] = from[k];
      sum += from[k];
    }
    t->sums[direction * columns + column] = sum;
  }
  for (nnd_size column = first * columns; column < last * columns; column += NND_INT8_COLUMNS)
    nnd_int8_settle(t->kernels, hidden, NND_INT8_COLUMNS, t->to + column * rows);
}

static int nnd_pack_bytes_of_lstm(struct nnd_opener *o, struct nnd_recurrent_own *own,
                                  const struct nnd_weight_data *weights, const struct nnd_weight_data *scales) {
  const nnd_size hidden = own->hidden, columns = nnd_byte_columns(hidden), each = NND_MOST_GATES * hidden;
  const int has_zeros = scales->count == 2 * own->directions * each;
  if (own->layer != NND_LSTM || (!has_zeros && scales->count != own->directions * each))
    return nnd_fail(o->message, "%s of bytes whose scales do not fit it", nnd_layer_names[own->layer]);
  const nnd_size floats = own->directions * columns * (nnd_size)sizeof(float);
  int32_t *byte_zeros = has_zeros ? nnd_packed(o, floats) : NULL;
  const nnd_size packed_bytes = own->directions * columns * nnd_byte_rows(hidden) + NND_INT8_BEHIND;
  const struct nnd_int8_kernels *kernels = nnd_int8_kernels_here(o->model->options.plain_bytes != 0);
  int8_t *to = nnd_packed_of(o, weights, packed_bytes);
  int32_t *sums = nnd_packed_of(o, weights, floats);
  struct nnd_byte_directions t = {weights->data, to, sums, byte_zeros, hidden, kernels};
  float *spread = nnd_packed(o, floats);
  if (!t.to || !t.sums || !spread || (has_zeros && !byte_zeros)) return 0;
  const float *from = scales->data;
  for (nnd_size number = 0; number < own->directions * each; number++) {
    const nnd_size column =
        number / each * columns + nnd_byte_column(number / hidden % NND_MOST_GATES, number % hidden);
    spread[column] = from[number];
    if (has_zeros) byte_zeros[column] = nnd_byte_of(from[own->directions * each + number]);
  }
  own->bytes = t.to, own->byte_sums = t.sums, own->byte_zeros = byte_zeros, own->scales = spread;
  nnd_pack(o, weights, nnd_pack_byte_directions, &t, sizeof t, own->directions, 0);
  return 1;
}

static int nnd_pack_recurrent(struct nnd_opener *o, struct nnd_recurrent_own *own,
                              const struct nnd_weight_data *weights, const struct nnd_weight_data *scales) {
  const int gates = nnd_gates_of[own->layer];
  if (!weights || weights->rank != 3 || weights->sizes[0] > 2 || weights->sizes[1] % gates ||
      weights->sizes[1] / gates != weights->sizes[2] || (own->is_reversed && weights->sizes[0] != 1))
    return nnd_fail(o->message, "%s without weights that fit it", nnd_layer_names[own->layer]);
  const nnd_size hidden = own->hidden = weights->sizes[2];
  own->directions = weights->sizes[0];
  if (scales) return nnd_pack_bytes_of_lstm(o, own, weights, scales);
  const nnd_size floats = own->directions * gates * nnd_blocks(hidden) * NND_LANES * hidden;
  struct nnd_directions t = {weights->data, nnd_packed_of(o, weights, floats * (nnd_size)sizeof(float)), hidden, gates,
                             own->layer == NND_GRU && !own->resets_after};
  own->packed = t.to;
  if (t.to) nnd_pack(o, weights, nnd_pack_directions, &t, sizeof t, own->directions, 0);
  return t.to != NULL;
}

NND_RECORD(activation)
NND_RECORD(states)
NND_RECORD(recurrent_layer)

static int nnd_open_recurrent(struct nnd_opener *o, int layer) {
  struct nnd_recurrent_own *own = nnd_own(o, sizeof *own);
  struct nnd_recurrent_layer words;
  if (!own || !nnd_read_recurrent_layer(o, &words)) return 0;
  const struct nnd_weight_data *peepholes = words.peepholes, *bias = words.reset_bias;
  const struct nnd_weight_data *weights =
      words.scales ? nnd_constant_of(o, words.weights, NND_INT8) : nnd_float_weight(o, words.weights);
  own->layer = layer;
  own->gates = words.gates, own->first_h = words.first.h, own->first_c = words.first.c, own->lengths = words.lengths;
  own->is_reversed = words.is_reverse, own->is_joined = words.is_joined, own->resets_after = words.resets_after;
  own->out = words.out;
  if (!nnd_pack_recurrent(o, own, weights, words.scales)) return 0;
  const int each = nnd_programs_of[layer];
  if (words.num_activations != own->directions * each)
    return nnd_fail(o->message, "%d activations of %s", words.num_activations, nnd_layer_names[layer]);
  for (int i = 0; i < words.num_activations; i++) own->programs[i / each][i % each] = words.activations[i].program;
  const int tensors[] = {own->gates, own->out, own->first_h, own->first_c};
  for (int i = 0; i < 4; i++)
    if (tensors[i] >= 0 && o->model->tensors[tensors[i]].is_blocked)
      return nnd_fail(o->message, "%s of tensors that are not plain", nnd_layer_names[layer]);
  if (own->lengths >= 0 &&
      (o->model->tensors[own->lengths].element != NND_INT32 || o->model->tensors[own->lengths].is_blocked))
    return nnd_fail(o->message, "lengths of sequences that are not int32");
  if ((peepholes && peepholes->count != own->directions * 3 * own->hidden) ||
      (bias && bias->count != own->directions * own->hidden))
    return nnd_fail(o->message, "numbers of %s that do not fit it", nnd_layer_names[layer]);
  own->peepholes = peepholes ? peepholes->data : NULL;
  own->bias = bias ? bias->data : NULL;
  return 1;
}

static int nnd_make_recurrent(struct nnd_maker *m) {
  const struct nnd_recurrent_own *own = m->step->own;
  const char *name = nnd_layer_names[own->layer];
  struct nnd_recurrent *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *gates = nnd_shape_of(m, own->gates), *out = nnd_shape_of(m, own->out);
  if (gates->rank < 2 || out->rank < 1) return nnd_fail(m->message, "the gates of %s do not fit it", name);
  const nnd_size row = own->directions * own->hidden, of_gates = row * nnd_gates_of[own->layer];
  const int plain = m->table->model->options.plain_bytes != 0;
  *t = (struct nnd_recurrent){own, gates->sizes[0], gates->sizes[1], 0, nnd_int8_kernels_here(plain), plain};
  t->keeps_last = out->sizes[0] != t->steps;
  const nnd_size last = !t->keeps_last ? 0 : own->layer == NND_LSTM ? 2 : 1;
  if (gates->count / t->steps / t->batch != of_gates || gates->count % of_gates || out->sizes[0] != t->steps + last ||
      out->count % row || out->count / row % t->batch || out->count / row / t->batch != out->sizes[0])
    return nnd_fail(m->message, "the gates of %s do not fit it", name);
  const int states[2] = {own->first_h, own->first_c};
  for (int i = 0; i < 2; i++)
    if (states[i] >= 0 && nnd_shape_of(m, states[i])->count != t->batch * row)
      return nnd_fail(m->message, "the first state of %s does not fit it", name);
  if (own->lengths >= 0 && nnd_shape_of(m, own->lengths)->count != t->batch)
    return nnd_fail(m->message, "the lengths of the sequences of %s do not fit it", name);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->gates);
  nnd_give_tensor(m, own->first_h);
  nnd_give_tensor(m, own->first_c);
  nnd_give_tensor(m, own->lengths);
  m->scratch_bytes = NND_SEQUENCES * own->hidden * 2 * (nnd_size)sizeof(float);
  if (own->bytes) {
    const nnd_size numbers = own->hidden * 2 + nnd_byte_columns(own->hidden);
    m->scratch_bytes = NND_BYTE_SEQUENCES * (numbers * (nnd_size)sizeof(float) + nnd_byte_rows(own->hidden)) +
                       nnd_int8_strip_bytes(1, own->hidden) + NND_LINE_BYTES;
  }
  m->instance->run = nnd_run_recurrent;
  m->instance->chunks = 1;
  if (own->directions * t->batch == 1) nnd_tell_operations(m, 1, 0); /* a walk that cannot be shared */
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld steps of %lld sequences", (long long)t->steps,
           (long long)t->batch);
  return 1;
}

static int nnd_open_lstm(struct nnd_opener *o) { return nnd_open_recurrent(o, NND_LSTM); }
static int nnd_open_gru(struct nnd_opener *o) { return nnd_open_recurrent(o, NND_GRU); }
static int nnd_open_rnn(struct nnd_opener *o) { return nnd_open_recurrent(o, NND_RNN); }
const struct nnd_op nnd_op_lstm = {"lstm", nnd_open_lstm, nnd_make_recurrent};
const struct nnd_op nnd_op_gru = {"gru", nnd_open_gru, nnd_make_recurrent};
const struct nnd_op nnd_op_rnn = {"rnn", nnd_open_rnn, nnd_make_recurrent};
