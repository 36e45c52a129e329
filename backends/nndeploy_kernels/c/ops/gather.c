/* SPDX-License-Identifier: Apache-2.0
 *
 * gather_places: elements one by one from a table of places, in the order of ONNX whatever the layout of the input.
 *
 * Where a table consists of even runs, these are kept and not the places; where those of an image in channel blocks are
 * even along a few axes, these alone. Workers share elements.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/layout.h"
#include "model/words.h"

#define NND_MOST_PLACES ((nnd_size)INT32_MAX) /* elements of an input with its padding */
#define NND_WORTHWHILE_RUN 8                  /* elements, on average */

/* Elements from `begin` to that of the next run: places `place`, `place` + `step` ...; zeros where `place` is
 * negative. */
struct nnd_run_of_places {
  int32_t place, step;
  nnd_size begin;
};

/* Places in memory: of `num_runs` runs and one behind the last, or where that is 0 one by one. */
struct nnd_places {
  nnd_size count, num_runs;
  const int32_t *places;
  const struct nnd_run_of_places *runs;
  int has_zeros;
};

/* Places that are even along `rank` axes, of at least one; the innermost first. */
#define NND_NEST_AXES 8
#define NND_NEST_LINES 256 /* vectors that stay in the first cache while all of their lanes are taken */

struct nnd_nest_axis {
  nnd_size size, in, out; /* steps in the input and the output */
};

struct nnd_nest {
  int rank;
  nnd_size start, rows;
  struct nnd_nest_axis axes[NND_NEST_AXES + 2];
};

struct nnd_gather_fields {
  struct nnd_places places;
  struct nnd_nest nest;
};

struct nnd_gather_own {
  int in, out;
  nnd_size reach;           /* one more than the largest place */
  int32_t *places;          /* in the order of ONNX */
  struct nnd_places as_are; /* of a plain input */
};

/* The end of the even run that begins at `begin`. */
static nnd_size nnd_even_run(const int32_t *places, nnd_size begin, nnd_size count) {
  nnd_size end = begin + 1;
  if (places[begin] < 0) {
    while (end < count && places[end] < 0) end++;
    return end;
  }
  if (end == count || places[end] < 0) return end;
  const nnd_size step = (nnd_size)places[end] - places[begin];
  while (end < count && places[end] >= 0 && (nnd_size)places[end] - places[end - 1] == step) end++;
  return end;
}

/* Counts the even runs, and keeps them in `memory` where they are few. Returns 0 where there is none. */
static int nnd_keep_places(struct nnd_memory *memory, const int32_t *places, nnd_size count, struct nnd_places *kept) {
  nnd_size num_runs = 0;
  *kept = (struct nnd_places){.count = count, .places = places};
  for (nnd_size at = 0; at < count; num_runs++) {
    kept->has_zeros |= places[at] < 0;
    at = nnd_even_run(places, at, count);
  }
  if (num_runs > count / NND_WORTHWHILE_RUN) return 1;
  struct nnd_run_of_places *runs = nnd_memory_take(memory, (num_runs + 1) * (nnd_size)sizeof *runs);
  if (!runs) return 0;
  num_runs = 0;
  for (nnd_size at = 0, end; at < count; at = end, num_runs++) {
    end = nnd_even_run(places, at, count);
    const int32_t step = end > at + 1 && places[at] >= 0 ? places[at + 1] - places[at] : 1;
    runs[num_runs] = (struct nnd_run_of_places){places[at], step, at};
  }
  runs[num_runs] = (struct nnd_run_of_places){-1, 1, count};
  kept->runs = runs, kept->num_runs = num_runs;
  return 1;
}

NND_RECORD(gather_places)

static int nnd_open_gather(struct nnd_opener *o) {
  struct nnd_gather_own *own = nnd_own(o, sizeof *own);
  struct nnd_gather_places words;
  if (!own || !nnd_read_gather_places(o, &words)) return 0;
  const struct nnd_weight_data *table = words.places;
  own->in = words.in, own->out = words.out;
  const struct nnd_tensor *in = &o->model->tensors[own->in], *out = &o->model->tensors[own->out];
  if (!table) return nnd_fail(o->message, "elements are moved without a table of places");
  if (out->is_blocked || in->element != out->element)
    return nnd_fail(o->message, "elements are moved to another layout or type");
  own->places = nnd_packed(o, table->count * (nnd_size)sizeof *own->places);
  if (!own->places) return 0;
  memcpy(own->places, table->data, (size_t)table->count * sizeof *own->places); /* what was checked must not change */
  for (nnd_size i = 0; i < table->count; i++) {
    if (own->places[i] < -1) return nnd_fail(o->message, "place %d of an element", (int)own->places[i]);
    own->reach = nnd_max(own->reach, (nnd_size)own->places[i] + 1);
  }
  own->as_are.count = table->count;
  if (!in->is_blocked && !nnd_keep_places(&o->model->packed, own->places, table->count, &own->as_are))
    return nnd_fail(o->message, "no memory for a table of places");
  return 1;
}

/* The places of a table in an image in channel blocks. */
static void nnd_blocked_places(const int32_t *places, nnd_size count, const struct nnd_shape *in, int32_t *to) {
  const nnd_size channels = in->sizes[1], pixels = in->sizes[2] * in->sizes[3], blocks = nnd_blocks(channels);
  nnd_size first = 0, base = 0, end = 0; /* the plane of the place before: its first place, where that lies */
  for (nnd_size i = 0; i < count; i++) {
    const nnd_size place = places[i];
    if (place < 0) {
      to[i] = -1;
      continue;
    }
    if (place < first || place >= end) {
      const uint32_t plane = (uint32_t)place / (uint32_t)pixels; /* no place is more than 31 bits wide */
      const nnd_size image = plane / (uint32_t)channels, channel = plane % (uint32_t)channels;
      first = plane * pixels, end = first + pixels;
      base = (image * blocks + channel / NND_LANES) * pixels * NND_LANES + channel % NND_LANES;
    }
    to[i] = (int32_t)(base + (place - first) * NND_LANES);
  }
}

/* Adds an axis of the output, of `size` elements `inner` apart, as one or as two: of its even runs, and within one.
 * Returns 0 where it is neither. */
static int nnd_nest_add(struct nnd_nest *nest, const int32_t *places, nnd_size size, nnd_size inner) {
  nnd_size run = 1;
  if (size == 1) return 1;
  const nnd_size step = (nnd_size)places[inner] - places[0];
  while (run < size && (nnd_size)places[run * inner] - places[(run - 1) * inner] == step) run++;
  if (size % run || nest->rank + 2 > NND_NEST_AXES) return 0;
  struct nnd_nest_axis *before = nest->rank ? &nest->axes[nest->rank - 1] : NULL;
  if (before && before->in * before->size == step && before->out * before->size == inner)
    before->size *= run;
  else
    nest->axes[nest->rank++] = (struct nnd_nest_axis){run, step, inner};
  if (run < size)
    nest->axes[nest->rank++] =
        (struct nnd_nest_axis){size / run, (nnd_size)places[run * inner] - places[0], run * inner};
  return 1;
}

/* Whether every place is where the axes say; the output's elements lie in their order. */
static int nnd_nest_holds(const struct nnd_nest *nest, const int32_t *places, nnd_size count) {
  nnd_size index[NND_NEST_AXES] = {0}, place = nest->start;
  for (nnd_size i = 0; i < count; i++) {
    if (places[i] != place) return 0;
    for (int axis = 0; axis < nest->rank; axis++) {
      place += nest->axes[axis].in;
      if (++index[axis] < nest->axes[axis].size) break;
      place -= nest->axes[axis].in * nest->axes[axis].size;
      index[axis] = 0;
    }
  }
  return 1;
}

/* Takes all lanes of a few vectors one after the other: else each vector is fetched anew for every one of its lanes. */
static void nnd_nest_order(struct nnd_nest *nest) {
  int lanes = 0, to = 0;
  for (int axis = 1; axis < nest->rank; axis++)
    if (llabs(nest->axes[axis].in) < llabs(nest->axes[lanes].in)) lanes = axis;
  if (!lanes || llabs(nest->axes[lanes].in) >= NND_LANES) return;
  struct nnd_nest_axis *first = &nest->axes[0];
  if (first->size > NND_NEST_LINES) { /* in two */
    nnd_size part = NND_NEST_LINES;
    while (first->size % part) part--;
    if (part < NND_LANES) return;
    memmove(nest->axes + 1, nest->axes, (size_t)nest->rank++ * sizeof *first);
    first[1] = (struct nnd_nest_axis){first->size / part, first->in * part, first->out * part};
    first->size = part;
    lanes++;
  }
  for (nnd_size lines = first->size; to < lanes && lines <= NND_NEST_LINES; lines *= nest->axes[to].size) to++;
  const struct nnd_nest_axis moved = nest->axes[lanes];
  for (int axis = lanes; axis > to; axis--) nest->axes[axis] = nest->axes[axis - 1];
  nest->axes[to] = moved;
}

/* Finds the axes along which places are even; returns 0 where they are not. */
static int nnd_nest_of(const int32_t *places, const struct nnd_shape *out, struct nnd_nest *nest) {
  *nest = (struct nnd_nest){.start = places[0]};
  nnd_size inner = 1;
  for (int axis = out->rank - 1; axis >= 0; inner *= out->sizes[axis], axis--)
    if (!nnd_nest_add(nest, places, out->sizes[axis], inner)) return 0;
  if (nest->start < 0 || !nnd_nest_holds(nest, places, out->count)) return 0;
  if (!nest->rank) nest->axes[nest->rank++] = (struct nnd_nest_axis){1, 1, 1};
  nnd_nest_order(nest);
  nest->rows = out->count / nest->axes[0].size;
  return 1;
}

/* `rows` rows of `count` elements each. */
NND_INLINE void nnd_nest_rows(nnd_size count, nnd_size rows, struct nnd_nest_axis row, struct nnd_nest_axis next,
                              const nnd_elem *from, float *to) {
  for (nnd_size k = 0; k < rows; k++)
    for (nnd_size i = 0; i < count; i++) to[k * next.out + i * row.out] = nnd_to_float(from[k * next.in + i * row.in]);
}

/* Short rows: `count` is a compile-time constant; mostly they are neighbouring lanes of neighbouring pixels. */
NND_INLINE void nnd_nest_short(nnd_size count, nnd_size rows, struct nnd_nest_axis row, struct nnd_nest_axis next,
                               const nnd_elem *from, float *to) {
  if (row.in != 1 || row.out != 1 || next.in != NND_LANES)
    nnd_nest_rows(count, rows, row, next, from, to);
  else {
    const struct nnd_nest_axis lanes = {count, 1, 1};
    if (next.out == count)
      nnd_nest_rows(count, rows, lanes, (struct nnd_nest_axis){rows, NND_LANES, count}, from, to);
    else
      nnd_nest_rows(count, rows, lanes, (struct nnd_nest_axis){rows, NND_LANES, next.out}, from, to);
  }
}

/* `held` lanes from `lane` on, of `pixels` neighbours from `from` on, which begins at a vector: each lane as a row, and
 * rows lie `plane` floats apart. There are at least NND_LANES pixels. */
NND_INLINE void nnd_nest_lanes(nnd_size lane, nnd_size held, nnd_size pixels, nnd_size plane, const nnd_elem *from,
                               float *to) {
  for (nnd_size next = 0; next < pixels; next += NND_LANES) {
    const nnd_size pixel = nnd_min(next, pixels - NND_LANES); /* the last vector may overlap the one before */
    vf rows[NND_LANES];
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++) rows[i] = nnd_read(from + (pixel + i) * NND_LANES);
    nnd_transpose(rows);
    NND_UNROLL
    for (int i = 0; i < NND_LANES; i++)
      if (i >= lane && i < lane + held) nnd_store_any(to + (i - lane) * plane + pixel, rows[i]);
  }
}

static void nnd_run_gather_nest(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_nest *t = &((const struct nnd_gather_fields *)fields)->nest;
  const struct nnd_nest_axis row = t->axes[0], next = t->rank > 1 ? t->axes[1] : (struct nnd_nest_axis){1, 0, 0};
  const int is_lanes = row.in == NND_LANES && row.out == 1 && next.in == 1 && row.size >= NND_LANES;
  const nnd_elem *from = (const nnd_elem *)at[1] + t->start;
  float *to = at[0];
  nnd_size index[NND_NEST_AXES + 2] = {0}, first, last;
  nnd_share(t->rows, part, &first, &last);
  if (first >= last) return;
  nnd_size rest = first;
  for (int axis = 1; axis < t->rank; axis++) {
    index[axis] = rest % t->axes[axis].size;
    rest /= t->axes[axis].size;
    from += index[axis] * t->axes[axis].in, to += index[axis] * t->axes[axis].out;
  }
  while (first < last) {
    const nnd_size rows = nnd_min(last - first, next.size - index[1]);
    const nnd_size lane = (from - (const nnd_elem *)at[1]) % NND_LANES;
    switch (row.size) {
      case 2: nnd_nest_short(2, rows, row, next, from, to); break;
      case 3: nnd_nest_short(3, rows, row, next, from, to); break;
      case 4: nnd_nest_short(4, rows, row, next, from, to); break;
      default:
        if (is_lanes && lane + rows <= NND_LANES)
          nnd_nest_lanes(lane, rows, row.size, next.out, from - lane, to);
        else if (row.out == 1)
          nnd_nest_rows(row.size, rows, (struct nnd_nest_axis){row.size, row.in, 1}, next, from, to);
        else
          nnd_nest_rows(row.size, rows, row, next, from, to);
    }
    first += rows, index[1] += rows, from += rows * next.in, to += rows * next.out;
    for (int axis = 1; axis < t->rank && index[axis] == t->axes[axis].size; axis++) {
      from -= t->axes[axis].size * t->axes[axis].in, to -= t->axes[axis].size * t->axes[axis].out;
      index[axis] = 0;
      if (axis + 1 == t->rank) break;
      index[axis + 1]++;
      from += t->axes[axis + 1].in, to += t->axes[axis + 1].out;
    }
  }
}

#define NND_GATHER_RUNS(name, type, made, of)                                                                          \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_places *t = &((const struct nnd_gather_fields *)fields)->places;                                  \
    const type *in = at[1];                                                                                            \
    made *out = at[0];                                                                                                 \
    nnd_size first, last, low = 0, high = t->num_runs;                                                                 \
    nnd_share(t->count, part, &first, &last);                                                                          \
    while (high - low > 1) { /* the run that `first` is in */                                                          \
      const nnd_size middle = (low + high) / 2;                                                                        \
      if (t->runs[middle].begin <= first)                                                                              \
        low = middle;                                                                                                  \
      else                                                                                                             \
        high = middle;                                                                                                 \
    }                                                                                                                  \
    for (const struct nnd_run_of_places *run = t->runs + low; first < last; run++) {                                   \
      const nnd_size end = nnd_min(last, run[1].begin), count = end - first, step = run->step;                         \
      const type *from = in + (run->place < 0 ? 0 : run->place + (first - run->begin) * step);                         \
      made *to = out + first;                                                                                          \
      if (run->place < 0)                                                                                              \
        memset(to, 0, (size_t)count * sizeof *to);                                                                     \
      else if (step == 1)                                                                                              \
        for (nnd_size i = 0; i < count; i++) to[i] = of(from[i]);                                                      \
      else if (step == NND_LANES) /* along the pixels of a channel in blocks */                                        \
        for (nnd_size i = 0; i < count; i++) to[i] = of(from[i * NND_LANES]);                                          \
      else                                                                                                             \
        for (nnd_size i = 0; i < count; i++) to[i] = of(from[i * step]);                                               \
      first = end;                                                                                                     \
    }                                                                                                                  \
  }

#define NND_GATHER(name, type, made, of)                                                                               \
  static void name(const void *fields, void *const *at, struct nnd_part part) {                                        \
    const struct nnd_places *t = &((const struct nnd_gather_fields *)fields)->places;                                  \
    const int32_t *restrict places = t->places;                                                                        \
    const type *restrict in = at[1];                                                                                   \
    made *restrict out = at[0];                                                                                        \
    nnd_size first, last;                                                                                              \
    nnd_share(t->count, part, &first, &last);                                                                          \
    if (t->has_zeros)                                                                                                  \
      for (nnd_size i = first; i < last; i++) out[i] = places[i] < 0 ? 0 : of(in[places[i]]);                          \
    else                                                                                                               \
      for (nnd_size i = first; i < last; i++) out[i] = of(in[places[i]]);                                              \
  }

NND_GATHER_RUNS(nnd_run_gather_runs_1, int8_t, int8_t, )
NND_GATHER_RUNS(nnd_run_gather_runs_4, float, float, )
NND_GATHER_RUNS(nnd_run_gather_runs_8, int64_t, int64_t, )
NND_GATHER_RUNS(nnd_run_gather_blocked_runs, nnd_elem, float, nnd_to_float)
NND_GATHER(nnd_run_gather_1, int8_t, int8_t, )
NND_GATHER(nnd_run_gather_4, float, float, )
NND_GATHER(nnd_run_gather_8, int64_t, int64_t, )
NND_GATHER(nnd_run_gather_blocked, nnd_elem, float, nnd_to_float)

/* Keeps what is known of the places in an image in channel blocks; 0 with a message where they cannot be kept. */
static int nnd_make_blocked_gather(struct nnd_maker *m, const struct nnd_gather_own *own, const struct nnd_shape *in,
                                   struct nnd_gather_fields *t) {
  const nnd_size count = t->places.count, num_bytes = count * (nnd_size)sizeof(int32_t);
  if (in->num_bytes / (nnd_size)sizeof(nnd_elem) > NND_MOST_PLACES)
    return nnd_fail(m->message, "an image is too large for a table of places");
  int32_t *places = malloc((size_t)num_bytes), *kept = NULL;
  int is_kept = places != NULL;
  m->instance->run = nnd_run_gather_nest;
  if (is_kept) nnd_blocked_places(own->places, count, in, places);
  if (is_kept && !nnd_nest_of(places, nnd_shape_of(m, own->out), &t->nest)) {
    t->nest.rank = 0;
    is_kept = nnd_keep_places(&m->table->memory, places, count, &t->places);
    m->instance->run = nnd_run_gather_blocked_runs;
    if (is_kept && !t->places.num_runs) {
      t->places.places = kept = nnd_memory_take(&m->table->memory, num_bytes);
      if (kept) memcpy(kept, places, (size_t)num_bytes);
      is_kept = kept != NULL;
      m->instance->run = nnd_run_gather_blocked;
    }
  }
  free(places);
  return is_kept || nnd_fail(m->message, "no memory for a table of places");
}

static int nnd_make_gather(struct nnd_maker *m) {
  const struct nnd_gather_own *own = m->step->own;
  const struct nnd_shape *in = nnd_shape_of(m, own->in), *out = nnd_shape_of(m, own->out);
  struct nnd_gather_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  t->places = own->as_are;
  if (out->count != t->places.count || own->reach > in->count)
    return nnd_fail(m->message, "a table of places does not fit its tensors");
  const nnd_size each = nnd_element_bytes[in->element];
  if (t->places.num_runs)
    m->instance->run = each == 1 ? nnd_run_gather_runs_1 : each == 4 ? nnd_run_gather_runs_4 : nnd_run_gather_runs_8;
  else
    m->instance->run = each == 1 ? nnd_run_gather_1 : each == 4 ? nnd_run_gather_4 : nnd_run_gather_8;
  if (in->is_blocked && !nnd_make_blocked_gather(m, own, in, t)) return 0;
  nnd_tell_operations(m, out->count, 16);
  nnd_give_tensor(m, own->out);
  nnd_give_tensor(m, own->in);
  snprintf(m->instance->shown, sizeof m->instance->shown, "%d axes, %lld runs", t->nest.rank,
           (long long)t->places.num_runs);
  return 1;
}

const struct nnd_op nnd_op_gather_places = {"gather_places", nnd_open_gather, nnd_make_gather};
