/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps that only move elements.
 */
#include <stdio.h>

#include "kernels/layout.h"
#include "kernels/rows.h"
#include "model/words.h"

NND_RECORD(pair)

static int nnd_open_pair(struct nnd_opener *o, int in_blocked, int out_blocked) {
  struct nnd_pair *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_pair(o, own)) return 0;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (in->is_blocked != in_blocked || out->is_blocked != out_blocked || in->element != NND_FLOAT32 ||
      out->element != NND_FLOAT32)
    return nnd_fail(o->message, "a layout is changed that is another");
  return 1;
}

static int nnd_open_to_blocked(struct nnd_opener *o) { return nnd_open_pair(o, 0, 1); }
static int nnd_open_to_plain(struct nnd_opener *o) { return nnd_open_pair(o, 1, 0); }

static void nnd_run_to_blocked(const void *fields, void *const *at, struct nnd_part part) {
  nnd_blocked_from_plain_step(fields, at[0], at[1], part);
}
static void nnd_run_to_plain(const void *fields, void *const *at, struct nnd_part part) {
  nnd_plain_from_blocked_step(fields, at[0], at[1], part);
}

/* Every pixel's channels, one after the other. Whole vectors are stored: what is next overwrites what is too much. */
static void nnd_run_channels_last(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_layout_step *t = fields;
  const nnd_size blocks = nnd_blocks(t->channels), plane = t->pixels * NND_LANES;
  nnd_size first, last;
  nnd_share(t->images * t->pixels, part, &first, &last);
  float *to = (float *)at[0] + first * t->channels, *end = (float *)at[0] + last * t->channels;
  nnd_size image = first / t->pixels, pixel = first % t->pixels;
  for (nnd_size i = first; i < last; i++) {
    const nnd_elem *from = (const nnd_elem *)at[1] + image * blocks * plane + pixel * NND_LANES;
    for (nnd_size channel = 0; channel < t->channels; channel += NND_LANES, from += plane) {
      const nnd_size held = nnd_min(NND_LANES, t->channels - channel);
      if (end - to >= NND_LANES)
        nnd_store_any(to, nnd_read(from));
      else
        for (nnd_size lane = 0; lane < held; lane++) to[lane] = nnd_to_float(from[lane]);
      to += held;
    }
    if (++pixel == t->pixels) pixel = 0, image++;
  }
}

static int nnd_make_layout(struct nnd_maker *m, void (*run)(const void *, void *const *, struct nnd_part)) {
  const struct nnd_pair *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  const struct nnd_shape *image = in->is_blocked ? in : out;
  struct nnd_layout_step *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  if (in->count != out->count) return nnd_fail(m->message, "a layout is changed and the number of elements too");
  *t = (struct nnd_layout_step){image->sizes[0], image->sizes[1], image->sizes[2] * image->sizes[3]};
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  nnd_tell_operations(m, out->count, 16);
  m->instance->run = run;
  return 1;
}

static int nnd_make_to_blocked(struct nnd_maker *m) { return nnd_make_layout(m, nnd_run_to_blocked); }
static int nnd_make_to_plain(struct nnd_maker *m) { return nnd_make_layout(m, nnd_run_to_plain); }
static int nnd_make_channels_last(struct nnd_maker *m) { return nnd_make_layout(m, nnd_run_channels_last); }

const struct nnd_op nnd_op_to_blocked = {"to_blocked", nnd_open_to_blocked, nnd_make_to_blocked};
const struct nnd_op nnd_op_to_plain = {"to_plain", nnd_open_to_plain, nnd_make_to_plain};
const struct nnd_op nnd_op_channels_last = {"channels_last", nnd_open_to_plain, nnd_make_channels_last};

#define NND_MOST_PARTS 16

NND_RECORD(joined)
NND_RECORD(join)

struct nnd_join_fields {
  int count;
  nnd_size outer, inner[NND_MOST_PARTS], total; /* in bytes */
};

static int nnd_open_join(struct nnd_opener *o) {
  struct nnd_join *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_join(o, own)) return 0;
  o->step->takes_empty = 1;
  for (int k = 0; k < own->num_xs; k++) {
    const struct nnd_tensor *in = &o->model->tensors[own->xs[k].in], *out = &o->model->tensors[own->out];
    if (in->is_blocked || out->is_blocked || in->element != out->element)
      return nnd_fail(o->message, "parts of another layout or type");
  }
  return !o->message->failed;
}

static void nnd_run_join(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_join_fields *t = fields;
  nnd_size first, last;
  nnd_share(t->outer, part, &first, &last);
  char *to = (char *)at[0] + first * t->total;
  for (int k = 0; k < t->count; to += t->inner[k], k++)
    nnd_copy_rows(to, t->total, (const char *)at[1 + k] + first * t->inner[k], t->inner[k], t->inner[k], last - first);
}

static int nnd_make_join(struct nnd_maker *m) {
  const struct nnd_join *own = m->step->own;
  struct nnd_join_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->count = own->num_xs, t->outer = nnd_size_of(m, own->outer);
  nnd_give_tensor(m, own->out);
  for (int k = 0; k < own->num_xs; k++) {
    const struct nnd_shape *in = nnd_shape_of(m, own->xs[k].in);
    if (t->outer < 1 || in->count % t->outer) return nnd_fail(m->message, "parts cannot be joined");
    t->inner[k] = in->num_bytes / t->outer;
    t->total += t->inner[k];
    nnd_give_tensor(m, own->xs[k].in);
  }
  if (t->total * t->outer != nnd_shape_of(m, own->out)->num_bytes)
    return nnd_fail(m->message, "parts are not the whole");
  nnd_tell_operations(m, nnd_shape_of(m, own->out)->count, 8);
  m->instance->run = nnd_run_join;
  return 1;
}

const struct nnd_op nnd_op_join = {"join", nnd_open_join, nnd_make_join};

/* Output block b takes its lanes from `count` vectors, each by a permutation. */
struct nnd_channel_source {
  int input;
  nnd_size block;
  int is_first, is_whole; /* of the sources of its output block; all lanes at their places */
  vi lanes, takes;        /* of this source; -1 where a lane is taken from it */
};

NND_RECORD(channel_part)

struct nnd_parts_own {
  NND_FIELDS(channel_parts)
  nnd_size num_sources, *first_source; /* of each output block, and behind the last */
  struct nnd_channel_source *sources;
};

struct nnd_parts_fields {
  const struct nnd_parts_own *own;
  nnd_size images, blocks, pixels, in_blocks[NND_MOST_PARTS];
};

NND_READER(channel_parts, struct nnd_parts_own)

static int nnd_open_parts(struct nnd_opener *o) {
  struct nnd_parts_own *own = nnd_own(o, sizeof *own);
  if (!own || !nnd_read_channel_parts(o, own)) return 0;
  for (nnd_size i = 0; i < own->num_channels; i++)
    if (own->channels[2 * i] < 0 || own->channels[2 * i] >= own->num_xs || own->channels[2 * i + 1] < 0 ||
        own->channels[2 * i + 1] > NND_MOST_BYTES)
      return nnd_fail(o->message, "channel %lld of no tensor", (long long)i);
  for (int k = 0; k < own->num_xs; k++)
    if (!o->model->tensors[own->xs[k].in].is_blocked)
      return nnd_fail(o->message, "channels of a tensor that is not in blocks");
  if (!o->model->tensors[own->out].is_blocked)
    return nnd_fail(o->message, "channels of a tensor that is not in blocks");
  const nnd_size blocks = nnd_blocks(own->num_channels);
  own->sources = nnd_packed(o, own->num_channels * (nnd_size)sizeof *own->sources);
  own->first_source = nnd_packed(o, (blocks + 1) * (nnd_size)sizeof *own->first_source);
  if (!own->sources || !own->first_source) return 0;
  for (nnd_size block = 0; block < blocks; block++) {
    const nnd_size begin = own->num_sources, held = nnd_min(NND_LANES, own->num_channels - block * NND_LANES);
    own->first_source[block] = begin;
    for (nnd_size lane = 0; lane < held; lane++) {
      const int64_t *channel = own->channels + 2 * (block * NND_LANES + lane);
      nnd_size at = begin;
      while (at < own->num_sources &&
             (own->sources[at].input != channel[0] || own->sources[at].block != channel[1] / NND_LANES))
        at++;
      struct nnd_channel_source *one = &own->sources[at];
      if (at == own->num_sources) {
        *one = (struct nnd_channel_source){(int)channel[0], channel[1] / NND_LANES, at == begin, 0, {0}, {0}};
        own->num_sources++;
      }
      one->lanes[lane] = (int32_t)(channel[1] % NND_LANES);
      one->takes[lane] = -1;
    }
    for (nnd_size at = begin; at < own->num_sources; at++) {
      int is_whole = own->num_sources == begin + 1;
      for (nnd_size lane = 0; lane < held; lane++)
        is_whole &= own->sources[at].lanes[lane] == lane && own->sources[at].takes[lane];
      own->sources[at].is_whole = is_whole;
    }
  }
  own->first_source[blocks] = own->num_sources;
  return 1;
}

NND_INLINE vf nnd_permuted(vf x, vi lanes) {
#if defined(__AVX512F__)
  typedef float wide __attribute__((vector_size(64)));
  typedef int wide_numbers __attribute__((vector_size(64)));
  wide result;
  __asm__("vpermps %2, %1, %0" : "=v"(result) : "v"((wide_numbers)lanes), "v"((wide)x));
  return (vf)result;
#elif defined(__AVX2__)
  vf result;
  __asm__("vpermps %2, %1, %0" : "=x"(result) : "x"(lanes), "x"(x));
  return result;
#else
  vf result;
  NND_UNROLL
  for (int lane = 0; lane < NND_LANES; lane++) result[lane] = x[lanes[lane] & (NND_LANES - 1)];
  return result;
#endif
}

#define NND_MOVED_PIXELS 64 /* a run's sources stay in the first cache while all output blocks are made */

/* The plane that a source is, of an image. */
static const nnd_elem *nnd_source_of_channels(const struct nnd_parts_fields *t, void *const *at, nnd_size image,
                                              const struct nnd_channel_source *source, nnd_size plane) {
  return (const nnd_elem *)at[1 + source->input] + (image * t->in_blocks[source->input] + source->block) * plane;
}

static void nnd_run_parts(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_parts_fields *t = fields;
  const struct nnd_parts_own *own = t->own;
  const nnd_size plane = t->pixels * NND_LANES, runs = nnd_ceil_div(t->pixels, NND_MOVED_PIXELS);
  nnd_size begin, end;
  nnd_share(t->images * runs, part, &begin, &end);
  for (nnd_size unit = begin; unit < end; unit++) {
    const nnd_size image = unit / runs, first = unit % runs * NND_MOVED_PIXELS;
    const nnd_size last = nnd_min(t->pixels, first + NND_MOVED_PIXELS);
    for (nnd_size block = 0; block < t->blocks; block++) {
      nnd_elem *to = (nnd_elem *)at[0] + (image * t->blocks + block) * plane;
      nnd_size k = own->first_source[block];
      const nnd_size end_source = own->first_source[block + 1];
      if (own->sources[k].is_whole) {
        const nnd_elem *from = nnd_source_of_channels(t, at, image, &own->sources[k], plane);
        for (nnd_size p = first * NND_LANES; p < last * NND_LANES; p += NND_LANES)
          nnd_write(to + p, nnd_read(from + p));
        continue;
      }
      for (; k < end_source; k += 2) { /* two sources at once, the second of an odd number being the first again */
        const struct nnd_channel_source *a = &own->sources[k], *b = k + 1 < end_source ? a + 1 : a;
        const nnd_elem *from = nnd_source_of_channels(t, at, image, a, plane);
        const nnd_elem *other = nnd_source_of_channels(t, at, image, b, plane);
        const vi lanes = a->lanes, other_lanes = b->lanes, takes = a->takes, other_takes = b->takes;
        for (nnd_size p = first * NND_LANES; p < last * NND_LANES; p += NND_LANES) {
          vf moved = nnd_permuted(nnd_read(from + p), lanes);
          if (b != a) moved = nnd_select(other_takes, nnd_permuted(nnd_read(other + p), other_lanes), moved);
          if (!a->is_first) moved = nnd_select(takes | other_takes, moved, nnd_read(to + p));
          nnd_write(to + p, moved);
        }
      }
    }
  }
}

static int nnd_make_parts(struct nnd_maker *m) {
  const struct nnd_parts_own *own = m->step->own;
  const struct nnd_shape *out = nnd_shape_of(m, own->out);
  struct nnd_parts_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_parts_fields){.own = own,
                                 .images = out->sizes[0],
                                 .blocks = nnd_blocks(own->num_channels),
                                 .pixels = out->sizes[2] * out->sizes[3]};
  if (out->sizes[1] != own->num_channels) return nnd_fail(m->message, "channels are moved to an image of others");
  nnd_give_tensor(m, own->out);
  for (int k = 0; k < own->num_xs; k++) {
    const struct nnd_shape *in = nnd_shape_of(m, own->xs[k].in);
    if (in->sizes[0] != out->sizes[0] || in->sizes[2] * in->sizes[3] != t->pixels)
      return nnd_fail(m->message, "channels of images of other sizes");
    t->in_blocks[k] = nnd_blocks(in->sizes[1]);
    nnd_give_tensor(m, own->xs[k].in);
  }
  for (nnd_size i = 0; i < own->num_channels; i++)
    if (own->channels[2 * i + 1] >= nnd_shape_of(m, own->xs[own->channels[2 * i]].in)->sizes[1])
      return nnd_fail(m->message, "a channel is moved that there is not");
  m->instance->run = nnd_run_parts;
  return 1;
}

const struct nnd_op nnd_op_channel_parts = {"channel_parts", nnd_open_parts, nnd_make_parts};
