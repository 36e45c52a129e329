/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk of an LSTM through its steps; what the input adds to the gates is there for all steps already:
 *
 *     i, o, f, c~ = gates[t] + weights h[t - 1]
 *     c = sigmoid(f) c + sigmoid(i) tanh(c~),  h[t] = sigmoid(o) tanh(c)
 *
 * Weights are [directions][blocks of hidden units][hidden][4 gates][c]: one stream, in which the four gates of a vector
 * of hidden units meet each number of h[t - 1], broadcast, for as many sequences as sums stay in registers.
 */
#ifndef NND_RECURRENT_H
#define NND_RECURRENT_H

#include "elementwise.h"

#define NND_GATES 4 /* input, output, forget, cell: the order of ONNX */
#define NND_MOST_SEQUENCES (NND_ACCUMULATORS / NND_GATES - 1) /* registers for weights and a number of h */

/* Gates are [steps][batch][directions][4][hidden], the output [steps][batch][directions][hidden]; where `keeps_last`,
 * two more of its rows are the last h and the last c. First states, or null for zeros: [directions][batch][hidden]. */
struct nnd_lstm_step {
  nnd_size steps, batch, directions, hidden;
  int reverse; /* the first direction goes backwards; a second one always does */
  int keeps_last;
  nnd_size most_sequences; /* at once, at most NND_MOST_SEQUENCES: a worker's scratch holds their cells */
};

/* Some sequences of one direction at one step. */
struct nnd_lstm_data {
  const float *gates, *weights;
  const float *before; /* h of the step before, null where it is zero; `apart` floats from sequence to sequence */
  nnd_size apart;
  float *cells; /* [sequence][hidden] */
  float *out;
};

/* One vector of hidden units of `sequences` sequences. */
NND_INLINE void nnd_lstm_block(const struct nnd_lstm_step *t, int sequences, nnd_size block, struct nnd_lstm_data d) {
  vf sums[NND_MOST_SEQUENCES][NND_GATES], gates[NND_MOST_SEQUENCES][NND_GATES];
  const nnd_size at = block * NND_LANES, count = nnd_min(NND_LANES, t->hidden - at), row = t->directions * t->hidden;
  const float *weights = d.weights + at * t->hidden * NND_GATES;
  NND_UNROLL for (int s = 0; s < sequences; s++)
    NND_UNROLL for (int g = 0; g < NND_GATES; g++)
      sums[s][g] = nnd_spread(d.gates + (s * row * NND_GATES + g * t->hidden) + at, 1, count);
  if (d.before)
    NND_NO_UNROLL for (nnd_size k = 0; k < t->hidden; k++) {
      vf w[NND_GATES];
      NND_UNROLL for (int g = 0; g < NND_GATES; g++) w[g] = nnd_load(weights + (k * NND_GATES + g) * NND_LANES);
      NND_UNROLL for (int s = 0; s < sequences; s++) {
        const vf h = nnd_splat(d.before[s * d.apart + k]);
        NND_UNROLL for (int g = 0; g < NND_GATES; g++) sums[s][g] += w[g] * h;
      }
    }
  NND_UNROLL for (int s = 0; s < sequences; s++)
    NND_UNROLL for (int g = 0; g < NND_GATES; g++) gates[s][g] = sums[s][g];
  NND_NO_UNROLL for (int s = 0; s < sequences; s++) {
    float *cells = d.cells + s * t->hidden + at;
    const struct nnd_quotient new = nnd_tanh_quotient(gates[s][3]);
    const vf kept = nnd_spread(cells, 1, count) / (1.0f + nnd_exp_bounded(-gates[s][2]));
    const vf cell = kept + new.over / (new.under * (1.0f + nnd_exp_bounded(-gates[s][0])));
    const struct nnd_quotient state = nnd_tanh_quotient(cell);
    nnd_store_some(cells, cell, count);
    nnd_store_some(d.out + s * row + at, state.over / (state.under * (1.0f + nnd_exp_bounded(-gates[s][1]))), count);
  }
}

/* All steps of `sequences` sequences from `first` on, of one direction. */
NND_INLINE void nnd_lstm_walk(const struct nnd_lstm_step *t, int sequences, nnd_size direction, nnd_size first,
                              float *out, const float *gates, const float *weights, const float *first_h,
                              const float *first_c, float *cells) {
  const nnd_size row = t->directions * t->hidden, of_step = t->batch * row, at = first * row + direction * t->hidden;
  const nnd_size state = (direction * t->batch + first) * t->hidden, num_states = sequences * t->hidden;
  const int backwards = t->reverse || direction == 1;
  struct nnd_lstm_data d = {gates, weights, first_h ? first_h + state : first_h, t->hidden, cells, out};
  d.weights += direction * nnd_blocks(t->hidden) * NND_LANES * t->hidden * NND_GATES;
  for (nnd_size i = 0; i < num_states; i++) cells[i] = first_c ? first_c[state + i] : 0.0f;
  for (nnd_size i = 0; i < t->steps; i++) {
    const nnd_size place = (backwards ? t->steps - 1 - i : i) * of_step + at;
    d.gates = gates + (place - direction * t->hidden) * NND_GATES + direction * NND_GATES * t->hidden;
    d.out = out + place;
    for (nnd_size block = 0; block < nnd_blocks(t->hidden); block++) nnd_lstm_block(t, sequences, block, d);
    d.before = d.out;
    d.apart = row;
  }
  for (int s = 0; t->keeps_last && s < sequences; s++)
    for (nnd_size k = 0; k < t->hidden; k++) {
      float *last = out + t->steps * of_step + at + s * row + k;
      last[0] = d.before[s * row + k];
      last[of_step] = cells[s * t->hidden + k];
    }
}

/* Workers share directions and, as many as there are, sequences. */
NND_INLINE void nnd_lstm_step(const struct nnd_lstm_step *t, float *out, const float *gates, const float *weights,
                              const float *first_h, const float *first_c, struct nnd_part part) {
  const nnd_size wanted = nnd_min(t->batch, nnd_ceil_div(part.count, t->directions));
  const nnd_size groups = nnd_max(wanted, nnd_ceil_div(t->batch, t->most_sequences));
  nnd_size unit, last;
  nnd_share(t->directions * groups, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size direction = unit / groups, group = unit % groups;
    const nnd_size first = group * t->batch / groups, sequences = (group + 1) * t->batch / groups - first;
#define NND_CASE(number)                                                                                        \
  case number:                                                                                                  \
    if (number <= NND_MOST_SEQUENCES)                                                                           \
      nnd_lstm_walk(t, number, direction, first, out, gates, weights, first_h, first_c, (float *)part.scratch); \
    break;
    switch (sequences) {
      NND_CASE(1)
      NND_CASE(2)
      NND_CASE(3)
      NND_CASE(4)
      NND_CASE(5)
      NND_CASE(6)
    }
#undef NND_CASE
  }
}

#endif
