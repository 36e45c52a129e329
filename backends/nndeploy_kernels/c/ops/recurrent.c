/* SPDX-License-Identifier: Apache-2.0
 *
 * lstm: the walk of an LSTM through its steps; what the input adds to the gates is there for all steps already:
 *
 *     i, o, f, c~ = gates[t] + weights h[t - 1]
 *     c = sigmoid(f) c + sigmoid(i) tanh(c~),  h[t] = sigmoid(o) tanh(c)
 *
 *   gates (steps, batch, directions, 4, hidden), weights (directions, 4 * hidden, hidden),
 *   first h, first c (tensors (directions, batch, hidden); -1: zeros), is reversed, output (steps, batch, directions,
 *   hidden), or two steps more: the last h and the last c
 *
 * Weights are packed [directions][blocks of hidden units][hidden][4 gates][c]: one stream, in which the four gates of a
 * vector of hidden units meet each number of h[t - 1], broadcast, for as many sequences as sums stay in registers. The
 * first of two directions goes forwards, a lone one backwards where it is reversed.
 */
#include <stdio.h>

#include "kernels/lanes.h"
#include "model/model.h"

#define NND_GATES 4                                           /* input, output, forget, cell: the order of ONNX */
#define NND_MOST_SEQUENCES (NND_ACCUMULATORS / NND_GATES - 1) /* registers for weights and a number of h */
_Static_assert(NND_MOST_SEQUENCES <= 6, "more sequences than there are kernels");

struct nnd_lstm_own {
  int gates, first_h, first_c, out; /* tensors; -1: none */
  int is_reversed;
  nnd_size directions, hidden;
  const float *packed;
};

struct nnd_lstm {
  nnd_size steps, batch, directions, hidden;
  int is_reversed, keeps_last;
};

/* Some sequences of one direction at one step. */
struct nnd_lstm_data {
  const float *gates, *weights;
  const float *before; /* h of the step before, null where it is zero; `apart` floats from sequence to sequence */
  nnd_size apart;
  float *cells; /* [sequence][hidden] */
  float *out;
};

/* One vector of hidden units of `sequences` sequences. Sums of few sequences are two each, or they would wait. */
NND_INLINE void nnd_lstm_block(const struct nnd_lstm *t, int sequences, nnd_size block, struct nnd_lstm_data d) {
  const int split = 2 * sequences <= NND_MOST_SEQUENCES ? 2 : 1;
  vf sums[2 * NND_MOST_SEQUENCES][NND_GATES], gates[NND_MOST_SEQUENCES][NND_GATES];
  const nnd_size at = block * NND_LANES, count = nnd_min(NND_LANES, t->hidden - at), row = t->directions * t->hidden;
  const float *weights = d.weights + at * t->hidden * NND_GATES;
  NND_UNROLL
  for (int s = 0; s < split * sequences; s++) NND_UNROLL
  for (int g = 0; g < NND_GATES; g++)
    sums[s][g] =
        s < sequences ? nnd_load_some(d.gates + (s * row * NND_GATES + g * t->hidden) + at, count) : nnd_splat(0.0f);
  if (d.before) {
    nnd_size k = 0;
    NND_NO_UNROLL
    for (; k + split <= t->hidden; k += split) NND_UNROLL
    for (int half = 0; half < split; half++) {
      vf w[NND_GATES];
      const float *from = weights + (k + half) * NND_GATES * NND_LANES;
      NND_UNROLL
      for (int g = 0; g < NND_GATES; g++) w[g] = nnd_load(from + g * NND_LANES);
      NND_UNROLL
      for (int s = 0; s < sequences; s++) {
        const vf h = nnd_splat(d.before[s * d.apart + k + half]);
        NND_UNROLL
        for (int g = 0; g < NND_GATES; g++) sums[half * sequences + s][g] += w[g] * h;
      }
    }
    if (k < t->hidden) NND_UNROLL
    for (int s = 0; s < sequences; s++) NND_UNROLL
    for (int g = 0; g < NND_GATES; g++)
      sums[s][g] += nnd_load(weights + (k * NND_GATES + g) * NND_LANES) * d.before[s * d.apart + k];
  }
  NND_UNROLL
  for (int s = 0; s < sequences; s++) NND_UNROLL
  for (int g = 0; g < NND_GATES; g++) gates[s][g] = split == 2 ? sums[s][g] + sums[sequences + s][g] : sums[s][g];
  NND_NO_UNROLL
  for (int s = 0; s < sequences; s++) {
    float *cells = d.cells + s * t->hidden + at;
    const struct nnd_quotient new = nnd_tanh_quotient(gates[s][3]);
    const vf kept = nnd_load_some(cells, count) / (1.0f + nnd_exp_bounded(-gates[s][2]));
    const vf cell = kept + new.over / (new.under * (1.0f + nnd_exp_bounded(-gates[s][0])));
    const struct nnd_quotient state = nnd_tanh_quotient(cell);
    nnd_store_some(cells, cell, count);
    nnd_store_some(d.out + s * row + at, state.over / (state.under * (1.0f + nnd_exp_bounded(-gates[s][1]))), count);
  }
}

/* All steps of `sequences` sequences from `first` on, of one direction. */
NND_INLINE void nnd_lstm_walk(const struct nnd_lstm *t, int sequences, nnd_size direction, nnd_size first, float *out,
                              const float *gates, const float *weights, const float *first_h, const float *first_c,
                              float *cells) {
  const nnd_size row = t->directions * t->hidden, of_step = t->batch * row, at = first * row + direction * t->hidden;
  const nnd_size state = (direction * t->batch + first) * t->hidden, num_states = sequences * t->hidden;
  const int backwards = t->is_reversed || direction == 1;
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

typedef void (*nnd_lstm_walker)(const struct nnd_lstm *t, nnd_size direction, nnd_size first, float *out,
                                const float *gates, const float *weights, const float *first_h, const float *first_c,
                                float *cells);

#define NND_EACH_SEQUENCE(X) X(1) X(2) X(3) X(4) X(5) X(6)
#define NND_DEFINE_WALK(number)                                                                                        \
  static void nnd_lstm_walk_##number(const struct nnd_lstm *t, nnd_size direction, nnd_size first, float *out,         \
                                     const float *gates, const float *weights, const float *first_h,                   \
                                     const float *first_c, float *cells) {                                             \
    if (number <= NND_MOST_SEQUENCES)                                                                                  \
      nnd_lstm_walk(t, number, direction, first, out, gates, weights, first_h, first_c, cells);                        \
  }
#define NND_LISTED_WALK(number) nnd_lstm_walk_##number,
NND_EACH_SEQUENCE(NND_DEFINE_WALK)
static const nnd_lstm_walker nnd_lstm_walks[] = {0, NND_EACH_SEQUENCE(NND_LISTED_WALK)};

/* Workers share directions and, as many as there are, sequences. */
static void nnd_run_lstm(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_lstm *t = fields;
  const nnd_size wanted = nnd_min(t->batch, nnd_ceil_div(part.count, t->directions));
  const nnd_size groups = nnd_max(wanted, nnd_ceil_div(t->batch, NND_MOST_SEQUENCES));
  nnd_size unit, last;
  nnd_share(t->directions * groups, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size direction = unit / groups, group = unit % groups;
    const nnd_size first = group * t->batch / groups, sequences = (group + 1) * t->batch / groups - first;
    nnd_lstm_walks[sequences](t, direction, first, at[0], at[1], at[2], at[3], at[4], (float *)part.scratch);
  }
}

static int nnd_open_lstm(struct nnd_opener *o) {
  struct nnd_lstm_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->gates = nnd_read_tensor(o);
  const struct nnd_weight_data *weights = nnd_read_weight(o);
  own->first_h = nnd_read_optional_tensor(o);
  own->first_c = nnd_read_optional_tensor(o);
  own->is_reversed = (int)nnd_word(o, 0, 1);
  own->out = nnd_write_tensor(o);
  if (o->message->failed) return 0;
  const int tensors[] = {own->gates, own->out, own->first_h, own->first_c};
  for (int i = 0; i < 4; i++) {
    const struct nnd_tensor *one = tensors[i] < 0 ? NULL : &o->model->tensors[tensors[i]];
    if (one && (one->is_blocked || one->element != NND_FLOAT32))
      return nnd_fail(o->message, "an LSTM of tensors that are not plain float32");
  }
  if (!weights || weights->rank != 3 || weights->sizes[0] > 2 || weights->sizes[1] % NND_GATES ||
      weights->sizes[1] / NND_GATES != weights->sizes[2] || (own->is_reversed && weights->sizes[0] != 1))
    return nnd_fail(o->message, "an LSTM without weights that fit it");
  own->directions = weights->sizes[0], own->hidden = weights->sizes[2];
  const nnd_size hidden = own->hidden, of_direction = nnd_blocks(hidden) * NND_LANES * hidden * NND_GATES;
  float *to = nnd_packed(o, own->directions * of_direction * (nnd_size)sizeof *to);
  if (!to) return 0;
  own->packed = to;
  const float *from = weights->data;
  for (nnd_size direction = 0; direction < own->directions; direction++, to += of_direction)
    for (nnd_size gate = 0; gate < NND_GATES; gate++)
      for (nnd_size unit = 0; unit < hidden; unit++, from += hidden) {
        float *here = to + unit / NND_LANES * NND_LANES * hidden * NND_GATES + gate * NND_LANES + unit % NND_LANES;
        for (nnd_size k = 0; k < hidden; k++) here[k * NND_GATES * NND_LANES] = from[k];
      }
  return 1;
}

static int nnd_make_lstm(struct nnd_maker *m) {
  const struct nnd_lstm_own *own = m->step->own;
  struct nnd_lstm *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  const struct nnd_shape *gates = nnd_shape_of(m, own->gates), *out = nnd_shape_of(m, own->out);
  if (gates->rank < 2 || out->rank < 1) return nnd_fail(m->message, "the gates of an LSTM do not fit it");
  const nnd_size of_gates = own->directions * NND_GATES * own->hidden, row = own->directions * own->hidden;
  *t = (struct nnd_lstm){gates->sizes[0], gates->sizes[1], own->directions, own->hidden, own->is_reversed, 0};
  t->keeps_last = out->sizes[0] != t->steps;
  if (gates->count / t->steps / t->batch != of_gates || gates->count % of_gates ||
      out->sizes[0] != t->steps + 2 * t->keeps_last || out->count % row || out->count / row % t->batch ||
      out->count / row / t->batch != out->sizes[0])
    return nnd_fail(m->message, "the gates of an LSTM do not fit it");
  const int states[2] = {own->first_h, own->first_c};
  for (int i = 0; i < 2; i++)
    if (states[i] >= 0 && nnd_shape_of(m, states[i])->count != t->batch * row)
      return nnd_fail(m->message, "the first state of an LSTM does not fit it");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->gates);
  nnd_give(m, own->packed);
  nnd_give_tensor(m, own->first_h);
  nnd_give_tensor(m, own->first_c);
  m->scratch_bytes = own->hidden * NND_MOST_SEQUENCES * (nnd_size)sizeof(float);
  m->instance->run = nnd_run_lstm;
  m->instance->chunks = 1;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld steps of %lld sequences", (long long)t->steps,
           (long long)t->batch);
  return 1;
}

const struct nnd_op nnd_op_lstm = {"lstm", nnd_open_lstm, nnd_make_lstm};
