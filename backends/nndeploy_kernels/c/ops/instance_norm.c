/* SPDX-License-Identifier: Apache-2.0
 *
 * instance_norm: each channel of each image in blocks, (x - mean) / sqrt(variance + epsilon) * scale + bias, with an end.
 *
 *   input (tensor), scale, bias (tensors, a number of each channel), epsilon (a double), program of the end (-1: none),
 *   numbers of the end (channels; -1: none), residual (tensor; -1: none), output
 *
 * Workers share channel blocks.
 */
#include "kernels/lanes.h"
#include "ops/conv_record.h"

#define NND_PIECE 256  /* pixels whose mean and variance are found while they are in L1 */
#define NND_TOGETHER 4 /* pixels, none of which waits for another */

struct nnd_instance_own {
  int in, scale, bias, residual, out; /* tensors; residual -1: none */
  float epsilon;
  nnd_size num_numbers;
  const float *numbers; /* in blocks */
  struct nnd_end end;
};

struct nnd_instance_fields {
  nnd_size images, channels, pixels;
  float epsilon;
  const float *numbers;
  struct nnd_end end;
};

static int nnd_open_instance(struct nnd_opener *o) {
  struct nnd_instance_own *own = nnd_own(o, sizeof *own);
  if (!own) return 0;
  own->in = nnd_read_tensor(o);
  own->scale = nnd_read_tensor(o), own->bias = nnd_read_tensor(o);
  own->epsilon = (float)nnd_double_word(o, -1e30, 1e30);
  const struct nnd_program *program = nnd_read_program(o);
  const struct nnd_weight_data *numbers = nnd_read_weight(o);
  own->residual = nnd_read_optional_tensor(o);
  own->out = nnd_write_tensor(o);
  if (o->message->failed) return 0;
  own->end = nnd_end_of(o, program, own->residual >= 0, numbers != NULL);
  if (numbers) {
    own->num_numbers = numbers->count;
    own->numbers = nnd_pack_channels(o, numbers, numbers->count);
  }
  const struct nnd_tensor *tensors = o->model->tensors;
  if (!tensors[own->in].is_blocked || !tensors[own->out].is_blocked || tensors[own->scale].is_blocked ||
      tensors[own->bias].is_blocked || (own->residual >= 0 && !tensors[own->residual].is_blocked))
    return nnd_fail(o->message, "channels of images that are not in blocks");
  return !o->message->failed;
}

/* Of each lane: `mean` is the difference from the first value, `squares` the sum of squared differences from the mean. */
struct nnd_lane_moments {
  vf first, mean, squares;
};

NND_INLINE vf nnd_sum_of_pixels(const nnd_elem *in, nnd_size count, vf first, vf mean, int is_square) {
  vf sums[NND_TOGETHER] = {0};
  nnd_size p = 0;
  for (; p + NND_TOGETHER <= count; p += NND_TOGETHER) NND_UNROLL
  for (int i = 0; i < NND_TOGETHER; i++) {
    const vf x = nnd_read(in + (p + i) * NND_LANES) - first - mean;
    sums[i] += is_square ? x * x : x;
  }
  for (; p < count; p++) {
    const vf x = nnd_read(in + p * NND_LANES) - first - mean;
    sums[0] += is_square ? x * x : x;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Piece by piece; two are joined as Chan, Golub and LeVeque (1979) do. */
NND_INLINE struct nnd_lane_moments nnd_moments_of_plane(const nnd_elem *in, nnd_size pixels) {
  struct nnd_lane_moments all = {.first = nnd_read(in)};
  for (nnd_size at = 0; at < pixels; at += NND_PIECE) {
    const nnd_size count = nnd_min(NND_PIECE, pixels - at);
    const float share = (float)count / (float)(at + count);
    const vf mean = nnd_sum_of_pixels(in + at * NND_LANES, count, all.first, nnd_splat(0.0f), 0) / (float)count;
    const vf squares = nnd_sum_of_pixels(in + at * NND_LANES, count, all.first, mean, 1), apart = mean - all.mean;
    all.mean += apart * share;
    all.squares += squares + apart * apart * (share * (float)at);
  }
  return all;
}

static void nnd_run_instance(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_instance_fields *t = fields;
  const nnd_size blocks = nnd_blocks(t->channels);
  nnd_size unit, last;
  nnd_share(t->images * blocks, part, &unit, &last);
  for (; unit < last; unit++) {
    const nnd_size block = unit % blocks, plane = unit * t->pixels * NND_LANES;
    const nnd_size lanes = nnd_min(NND_LANES, t->channels - block * NND_LANES);
    const nnd_elem *in = (const nnd_elem *)at[1] + plane;
    const nnd_elem *residual = at[4] ? (const nnd_elem *)at[4] + plane : NULL;
    nnd_elem *out = (nnd_elem *)at[0] + plane;
    const struct nnd_lane_moments found = nnd_moments_of_plane(in, t->pixels);
    const vf deviation = nnd_op_sqrt(found.squares / (float)t->pixels + t->epsilon);
    const vf factor = nnd_load_some((const float *)at[2] + block * NND_LANES, lanes) / deviation;
    const vf shift = nnd_load_some((const float *)at[3] + block * NND_LANES, lanes) - found.mean * factor;
    const vf number = nnd_end_number(&t->end, t->numbers, block);
    nnd_size p = 0;
    for (; p + NND_TOGETHER <= t->pixels; p += NND_TOGETHER) {
      vf sums[NND_TOGETHER];
      NND_UNROLL
      for (int i = 0; i < NND_TOGETHER; i++)
        sums[i] = (nnd_read(in + (p + i) * NND_LANES) - found.first) * factor + shift;
      nnd_end_sums(&t->end, sums, NND_TOGETHER, residual ? residual + p * NND_LANES : NULL, number);
      NND_UNROLL
      for (int i = 0; i < NND_TOGETHER; i++) nnd_write(out + (p + i) * NND_LANES, sums[i]);
    }
    for (; p < t->pixels; p++) {
      vf sum = (nnd_read(in + p * NND_LANES) - found.first) * factor + shift;
      nnd_end_sums(&t->end, &sum, 1, residual ? residual + p * NND_LANES : NULL, number);
      nnd_write(out + p * NND_LANES, sum);
    }
  }
}

static int nnd_make_instance(struct nnd_maker *m) {
  const struct nnd_instance_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const struct nnd_shape *residual = own->residual >= 0 ? nnd_shape_of(m, own->residual) : out;
  struct nnd_instance_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  for (int axis = 0; axis < 4; axis++)
    if (in->sizes[axis] != out->sizes[axis] || residual->sizes[axis] != out->sizes[axis])
      return nnd_fail(m->message, "images that are normalised have different shapes");
  *t = (struct nnd_instance_fields){in->sizes[0], in->sizes[1], in->sizes[2] * in->sizes[3],
                                    own->epsilon, own->numbers, own->end};
  if (nnd_shape_of(m, own->scale)->count != t->channels || nnd_shape_of(m, own->bias)->count != t->channels ||
      (own->numbers && own->num_numbers != t->channels))
    return nnd_fail(m->message, "there are not as many numbers as channels");
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_give_tensor(m, own->scale);
  nnd_give_tensor(m, own->bias);
  nnd_give_tensor(m, own->residual);
  m->instance->run = nnd_run_instance;
  return 1;
}

const struct nnd_op nnd_op_instance_norm = {"instance_norm", nnd_open_instance, nnd_make_instance};
