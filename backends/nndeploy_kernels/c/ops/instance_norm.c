/* SPDX-License-Identifier: Apache-2.0
 *
 * instance_norm: each channel of each image in blocks, (x - mean) / sqrt(variance + epsilon) * scale + bias, with an end.
 *
 * Workers share channel blocks.
 */
#include "kernels/lanes.h"
#include "model/words.h"
#include "ops/conv_record.h"

#define NND_PIECE 256  /* pixels whose mean and variance are found while they are in L1 */
#define NND_TOGETHER 4 /* pixels, none of which waits for another */

struct nnd_instance_own {
  NND_FIELDS(instance_norm)
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

NND_READER(instance_norm, struct nnd_instance_own)

static int nnd_open_instance(struct nnd_opener *o) {
  struct nnd_instance_own *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_instance_norm(o, own)) return 0;
  const struct nnd_weight_data *numbers = own->epilogue.channel;
  own->end = nnd_end_of_words(o, &own->epilogue);
  if (numbers) {
    own->num_numbers = numbers->count;
    own->numbers = nnd_pack_channels(o, numbers, numbers->count);
  }
  const struct nnd_tensor *tensors = o->model->tensors;
  if (!tensors[own->in].is_blocked || !tensors[own->out].is_blocked || tensors[own->scale].is_blocked ||
      tensors[own->bias].is_blocked || (own->epilogue.residual >= 0 && !tensors[own->epilogue.residual].is_blocked))
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
  const struct nnd_shape *residual = own->epilogue.residual >= 0 ? nnd_shape_of(m, own->epilogue.residual) : out;
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
  nnd_give_tensor(m, own->epilogue.residual);
  m->instance->run = nnd_run_instance;
  return 1;
}

const struct nnd_op nnd_op_instance_norm = {"instance_norm", nnd_open_instance, nnd_make_instance};
