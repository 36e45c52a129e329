/* SPDX-License-Identifier: Apache-2.0
 *
 * Zero points of weights are taken from these when they are packed: what does not fit a byte then is the sum of some.
 * Quads of four rows serve two output rows where windows are three rows high and go on by one: the second one by
 * weights that lie a row lower.
 */
#include "ops/int8_depthwise.h"

#include <stdio.h>

#include "kernels/int8_depthwise.h"
#include "ops/windows.h"

#define NND_MOST_REACH 1024 /* columns of an image that one window spans */
#define NND_QUAD_BYTES ((nnd_size)24 << 10)

struct nnd_int8_deep {
  nnd_size blocks, groups, kernel; /* groups of four rows; columns of a window */
  nnd_size *passes, *at;           /* of each block; at: where its weights begin, those of the second row behind them */
  nnd_size rows;                   /* output rows that are made of the same quads: 1 or 2 */
  int joined;                      /* pixels */
  int8_t *weights;
  int32_t *bias, *sums; /* of columns, four vectors a block */
  float *factors;
  int is_quick; /* sums become bytes where they are made */
};

int nnd_int8_is_deep(const struct nnd_int8_window *w, const struct nnd_int8_record *r) {
  return w->channels == 1 && w->groups == r->columns && w->kernel[0] <= NND_MOST_REACH &&
         (w->kernel[1] - 1) * w->dilation[1] < NND_MOST_REACH;
}

static nnd_size nnd_deep_weight(const struct nnd_int8_record *r, nnd_size channel, nnd_size tap) {
  const uint8_t byte = ((const uint8_t *)r->weights->data)[channel * r->inner + tap];
  const nnd_size weight = r->weights->element == NND_UINT8 ? byte - 128 : (int8_t)byte;
  return weight - (r->zeros ? r->zeros[channel] : 0);
}

/* What a weight adds in a pass: the least or largest number of a byte, for as long as there is more of it. */
static int8_t nnd_part_of(nnd_size weight, nnd_size pass) {
  const nnd_size most = weight < 0 ? -128 : 127, before = most * pass;
  if (weight < 0) return (int8_t)nnd_min(0, nnd_max(most, weight - before));
  return (int8_t)nnd_max(0, nnd_min(most, weight - before));
}

static nnd_size nnd_passes_of(const struct nnd_int8_record *r, nnd_size begin, nnd_size end) {
  nnd_size passes = 1;
  for (nnd_size c = begin; c < end; c++)
    for (nnd_size tap = 0; tap < r->inner; tap++)
      while (nnd_part_of(nnd_deep_weight(r, c, tap), passes)) passes++;
  return passes;
}

/* Bytes of the weights of a block for one row. */
static nnd_size nnd_deep_bytes(const struct nnd_int8_deep *d, nnd_size block) {
  return d->passes[block] * d->kernel * d->groups * NND_INT8_DEPTH * NND_INT8_DEEP;
}

static void nnd_pack_deep_block(const struct nnd_int8_window *w, const struct nnd_int8_record *r,
                                const struct nnd_int8_deep *d, nnd_size block) {
  const nnd_size begin = block * NND_INT8_DEEP, end = nnd_min(d->joined * r->columns, begin + NND_INT8_DEEP);
  int8_t *to = d->weights + d->at[block];
  for (nnd_size at = begin; at < end; at++) {
    const nnd_size place = nnd_int8_deep_place(at - begin), c = at % r->columns;
    int32_t sum = 0;
    for (nnd_size y = 0; y < w->kernel[0]; y++)
      for (nnd_size x = 0; x < w->kernel[1]; x++) {
        const nnd_size weight = nnd_deep_weight(r, c, y * w->kernel[1] + x);
        for (nnd_size pass = 0; pass < d->rows * d->passes[block]; pass++) {
          const nnd_size low = y + pass / d->passes[block]; /* the row of a quad */
          const nnd_size quads = (pass * d->kernel + x) * d->groups + low / NND_INT8_DEPTH;
          to[(quads * NND_INT8_DEEP + place) * NND_INT8_DEPTH + low % NND_INT8_DEPTH] =
              nnd_part_of(weight, pass % d->passes[block]);
        }
        sum += (int32_t)weight;
      }
    d->sums[begin + place] = sum;
    d->bias[begin + place] = r->whole_bias ? r->whole_bias[c] : 0;
    d->factors[begin + place] = r->factors ? r->factors[c] : 1.0f;
  }
}

const struct nnd_int8_deep *nnd_open_int8_deep(struct nnd_opener *o, const struct nnd_int8_window *w,
                                               const struct nnd_int8_record *r) {
  struct nnd_int8_deep *d = nnd_packed(o, sizeof *d);
  if (!d) return NULL;
  d->blocks = nnd_ceil_div(r->columns, NND_INT8_DEEP), d->kernel = w->kernel[1];
  d->groups = nnd_ceil_div(w->kernel[0], NND_INT8_DEPTH);
  d->joined = nnd_int8_joined(r->columns);
  d->rows = w->kernel[0] == NND_INT8_DEPTH - 1 && w->stride[0] == 1 && w->dilation[0] == 1 ? 2 : 1;
  d->passes = nnd_packed(o, d->blocks * (nnd_size)sizeof *d->passes);
  d->at = nnd_packed(o, d->blocks * (nnd_size)sizeof *d->at);
  const nnd_size columns = d->blocks * NND_INT8_DEEP;
  d->bias = nnd_packed(o, columns * (nnd_size)sizeof *d->bias);
  d->sums = nnd_packed(o, columns * (nnd_size)sizeof *d->sums);
  d->factors = nnd_packed(o, columns * (nnd_size)sizeof *d->factors);
  if (o->message->failed) return NULL;
  nnd_size bytes = 0;
  for (nnd_size block = 0; block < d->blocks; block++) {
    const nnd_size begin = block * NND_INT8_DEEP, end = nnd_min(r->columns, begin + NND_INT8_DEEP);
    d->passes[block] = nnd_passes_of(r, begin, end), d->at[block] = bytes;
    bytes += d->rows * nnd_deep_bytes(d, block);
  }
  d->weights = nnd_packed(o, bytes);
  if (!d->weights) return NULL;
  for (nnd_size block = 0; block < d->blocks; block++) nnd_pack_deep_block(w, r, d, block);
  d->is_quick = r->end.is_quick && !r->bias;
  return d;
}

/* Scratch: pixels outside of the image, pixels of each row of a window that are copied, quads. */
struct nnd_int8_deep_fields {
  const struct nnd_int8_deep *deep;
  const struct nnd_int8_record *record;
  nnd_int8_deep_kernel kernel;
  struct nnd_int8_image image;
  nnd_size columns, rows_at, quads_at; /* columns of an output row that are done at once */
  nnd_size plane_bytes;                /* of quads of joined pixels, one of four vectors of a phase */
  int is_signed, factor_step;
};

struct nnd_int8_deep_run {
  const struct nnd_int8_data *data;
  uint8_t *outside, *copied;
  char *quads;
  struct nnd_int8_quads made;
  const uint8_t *end;                                   /* of the image's bytes */
  const uint8_t *rows[NND_MOST_REACH + NND_INT8_DEPTH]; /* of a window; null outside of the image */
  struct nnd_int8_column columns[NND_MOST_REACH + NND_INT8_DEPTH];
  nnd_size to_pixel, column_at[NND_MOST_REACH]; /* of the kernels' jobs */
  uint32_t zero;                                /* as the kernels read it */
};

/* Columns from `x` on, at most `count`, of which NND_INT8_DEEP bytes may be read in each row of a window. */
static nnd_size nnd_readable(const struct nnd_int8_deep_run *run, nnd_size kernel, nnd_size offset, nnd_size step,
                             nnd_size count) {
  for (nnd_size k = 0; k < kernel; k++) {
    if (!run->rows[k]) continue;
    const nnd_size left = run->end - run->rows[k] - offset - NND_INT8_DEEP;
    count = left < 0 ? 0 : nnd_min(count, left / step + 1);
  }
  return count;
}

/* Copies the pixels from `x` on that are joined, `each` columns apart, some of which may lie outside. */
static void nnd_copy_joined(const struct nnd_int8_deep_fields *t, const uint8_t *outside, const uint8_t *row,
                            nnd_size x, nnd_size each, nnd_size channel, uint8_t *to) {
  const nnd_size channels = t->image.channels, count = nnd_min(NND_INT8_DEEP, channels - channel);
  for (nnd_size i = 0; i < t->deep->joined; i++, x += each, to += count)
    memcpy(to, x >= 0 && x < t->image.x.size ? row + x * channels + channel : outside, (size_t)count);
}

/* Makes the quads of columns [from, to) of the image, `each` apart, some of which may lie outside, for channels from
 * `channel` on. */
static void nnd_make_phase(const struct nnd_int8_deep_fields *t, struct nnd_int8_deep_run *run, nnd_size from,
                           nnd_size to, nnd_size each, nnd_size channel, char *quads) {
  const struct nnd_int8_deep *d = t->deep;
  const nnd_size channels = t->image.channels, padded = d->groups * NND_INT8_DEPTH, width = t->image.x.size;
  const nnd_size kernel = t->image.y.kernel + d->rows - 1; /* rows that are read */
  const nnd_size next = each * d->joined, reach = (d->joined - 1) * each;
  struct nnd_int8_column *at = run->columns;
  for (nnd_size x = from, count; x < to; x += count * next, quads += count * run->made.to_next) {
    const int is_inside = x + reach >= 0 && x < width; /* the last or the first of them */
    const nnd_size offset = x * channels + channel;
    nnd_size whole = 0;
    if (x >= 0 && x + reach < width) {
      whole = nnd_min(nnd_ceil_div(to - x, next), (width - reach - x - 1) / next + 1);
      if (d->joined == 1) whole = nnd_readable(run, kernel, offset, channels, whole);
    }
    count = nnd_max(1, whole);
    for (nnd_size k = 0; k < padded; k++) {
      at[k] = (struct nnd_int8_column){run->outside, channels, 0};
      if (k >= kernel || !is_inside || !run->rows[k]) continue;
      at[k] = (struct nnd_int8_column){run->rows[k] + offset, each * channels, next * channels};
      if (whole) continue;
      at[k] = (struct nnd_int8_column){run->copied + k * NND_INT8_DEEP, channels, 0};
      nnd_copy_joined(t, run->outside, run->rows[k], x, each, channel, run->copied + k * NND_INT8_DEEP);
    }
    nnd_int8_quads(&run->made, at, quads, count);
  }
}

static void nnd_make_quads(const struct nnd_int8_deep_fields *t, struct nnd_int8_deep_run *run, nnd_size from,
                           nnd_size to, nnd_size channel) {
  const nnd_size phases = t->deep->joined > 1 ? t->image.x.stride : 1;
  for (nnd_size phase = 0; phase < nnd_min(phases, to - from); phase++)
    nnd_make_phase(t, run, from + phase, to, phases, channel, run->quads + phase * 4 * t->plane_bytes);
}

/* Ends sums of pixels, which lie in the order of the channels. */
static void nnd_finish_deep(const struct nnd_int8_deep_fields *t, const struct nnd_int8_data *data, const int32_t *sums,
                            nnd_size pixel, nnd_size pixels, nnd_size channel) {
  const struct nnd_int8_record *r = t->record;
  const nnd_size last = nnd_min(r->columns, channel + NND_INT8_DEEP);
  float factors[NND_INT8_COLUMNS];
  for (nnd_size c = channel; c < last; c += NND_INT8_COLUMNS) {
    const nnd_size columns = nnd_min(NND_INT8_COLUMNS, last - c), at = pixel * r->columns + c;
    for (nnd_size i = 0; i < NND_INT8_COLUMNS; i++) {
      const nnd_size column = nnd_min(c + i, r->columns - 1);
      const float factor = r->factors ? r->factors[column] : 1.0f;
      factors[i] = data->factor ? data->factor[t->factor_step ? column : 0] * factor : factor;
    }
    const struct nnd_int8_ended ended = {.sums = sums + c - channel,
                                         .sums_row = NND_INT8_DEEP / t->deep->joined,
                                         .rows = pixels,
                                         .columns = columns,
                                         .factors = factors,
                                         .bias = r->bias ? r->bias + c : NULL,
                                         .numbers = r->numbers ? r->numbers + c : NULL,
                                         .residual = data->residual ? data->residual + at : NULL,
                                         .out = data->out + at * nnd_element_bytes[r->end.element],
                                         .out_row = r->columns};
    nnd_int8_finish(&r->end, &ended);
    nnd_int8_look_up_rows(&r->end, ended.out, pixels, columns, r->columns);
  }
}

/* Columns [begin, last) of an output row that begins with pixel `first`, whose quads are `job`'s. */
static void nnd_run_deep_pixels(const struct nnd_int8_deep_fields *t, const struct nnd_int8_deep_run *run,
                                struct nnd_int8_deep_job *job, nnd_size first, nnd_size begin, nnd_size last,
                                nnd_size channel) {
  const nnd_size joined = t->deep->joined, channels = t->image.channels, count = last - begin;
  const nnd_size whole = count / joined, most = t->deep->is_quick ? whole : NND_INT8_PIXELS;
  job->quads = run->quads;
  job->out = (uint8_t *)run->data->out + (first + begin) * channels + channel;
  job->channels = nnd_min(NND_INT8_DEEP, joined * channels - channel);
  for (nnd_size at = 0, wide; at < count; at += wide * joined) {
    wide = nnd_max(1, nnd_min(most, whole - at / joined));
    const nnd_size pixels = nnd_min(wide * joined, count - at);
    if (pixels < joined) job->channels = pixels * channels;
    t->kernel(job, wide);
    job->quads += wide * run->to_pixel, job->out += wide * job->out_pixel;
    for (nnd_size i = 0; !t->deep->is_quick && i < pixels; i += NND_INT8_PIXELS)
      nnd_finish_deep(t, run->data, job->sums + i * (NND_INT8_DEEP / joined), first + begin + at + i,
                      nnd_min(NND_INT8_PIXELS, pixels - i), channel);
  }
  if (t->deep->is_quick) {
    uint8_t *out = (uint8_t *)run->data->out + (first + begin) * channels + channel;
    nnd_int8_look_up_rows(&t->record->end, out, count, nnd_min(NND_INT8_DEEP, channels - channel), channels);
  }
}

/* One row of the output, or two of one image, for one block of channels. */
static void nnd_run_deep_rows(const struct nnd_int8_deep_fields *t, struct nnd_int8_deep_run *run, nnd_size unit,
                              nnd_size block) {
  const struct nnd_int8_deep *d = t->deep;
  const struct nnd_axis *y = &t->image.y, *x = &t->image.x;
  const nnd_size channel = block * NND_INT8_DEEP, channels = t->image.channels;
  const nnd_size units = nnd_ceil_div(y->out_size, d->rows), number = unit / units, top = unit % units * d->rows;
  const nnd_size rows = nnd_min(d->rows, y->out_size - top);
  for (nnd_size k = 0; k < y->kernel + d->rows - 1; k++) {
    const nnd_size at = top * y->stride - y->pad + k * y->dilation;
    const int is_inside = at >= 0 && at < y->size;
    run->rows[k] = is_inside ? run->data->a + (number * y->size + at) * x->size * channels : NULL;
  }
  nnd_vu first[4];
  int32_t sums[NND_INT8_PIXELS * NND_INT8_DEEP];
  for (int v = 0; v < 4; v++) {
    const nnd_size at = channel + v * NND_LANES;
    first[v] = *(const nnd_vu_any *)(d->bias + at) - *(const nnd_vu_any *)(d->sums + at) * run->zero;
  }
  struct nnd_int8_deep_job job = {.is_joined = d->joined > 1,
                                  .to_pixel = run->to_pixel,
                                  .to_vector = run->made.to_vector,
                                  .to_group = run->made.to_group,
                                  .column_at = run->column_at,
                                  .columns = d->kernel,
                                  .groups = d->groups,
                                  .passes = d->passes[block],
                                  .first = first,
                                  .end = d->is_quick ? &t->record->end : NULL,
                                  .factors = d->factors + channel,
                                  .out_pixel = d->joined * channels,
                                  .sums = sums};
  for (nnd_size begin = 0; begin < x->out_size; begin += t->columns) {
    const nnd_size last = nnd_min(x->out_size, begin + t->columns), from = begin * x->stride - x->pad;
    nnd_make_quads(t, run, from, from + (last - begin - 1) * x->stride + (x->kernel - 1) * x->dilation + 1, channel);
    for (nnd_size row = 0; row < rows; row++) {
      job.weights = d->weights + d->at[block] + row * nnd_deep_bytes(d, block);
      nnd_run_deep_pixels(t, run, &job, (number * y->out_size + top + row) * x->out_size, begin, last, channel);
    }
  }
}

/* How quads are made, and how kernels walk through them. */
static void nnd_place_quads(const struct nnd_int8_deep_fields *t, struct nnd_int8_deep_run *run) {
  const struct nnd_int8_deep *d = t->deep;
  const struct nnd_axis *x = &t->image.x;
  const nnd_size vector = sizeof(nnd_vu), pixel = d->groups * 4 * vector;
  run->made = (struct nnd_int8_quads){.groups = d->groups,
                                      .to_group = d->joined > 1 ? x->stride * 4 * t->plane_bytes : 4 * vector,
                                      .to_vector = d->joined > 1 ? t->plane_bytes : vector,
                                      .to_next = d->joined > 1 ? vector : pixel,
                                      .together = x->stride > 1 ? d->joined : 1,
                                      .flip = t->is_signed != NND_INT8_DEEP_SIGNED ? 0x80 : 0};
  run->to_pixel = d->joined > 1 ? vector : x->stride * pixel;
  for (nnd_size k = 0; k < d->kernel; k++) {
    const nnd_size column = k * x->dilation, phase = column % x->stride, along = column / x->stride;
    run->column_at[k] = d->joined > 1 ? phase * 4 * t->plane_bytes + along * t->image.channels : column * pixel;
  }
}

static void nnd_run_int8_deep(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_int8_deep_fields *t = fields;
  const struct nnd_int8_image *image = &t->image;
  const struct nnd_int8_data data = {at[0], at[1], at[2], at[3], at[4]};
  struct nnd_int8_deep_run run;
  run.data = &data;
  run.outside = (uint8_t *)part.scratch, run.copied = (uint8_t *)part.scratch + t->rows_at;
  run.end = data.a + image->images * image->y.size * image->x.size * image->channels;
  run.zero = nnd_int8_zero(&data, t->is_signed);
  run.quads = part.scratch + t->quads_at;
  nnd_place_quads(t, &run);
  if (run.made.flip) run.zero += t->is_signed ? 128 : (uint32_t)-128;
  memset(run.outside, data.zero ? *data.zero : 0, NND_INT8_DEEP);
  nnd_size unit, last;
  nnd_share(image->images * nnd_ceil_div(image->y.out_size, t->deep->rows) * t->deep->blocks, part, &unit, &last);
  for (; unit < last; unit++) nnd_run_deep_rows(t, &run, unit / t->deep->blocks, unit % t->deep->blocks);
}

int nnd_make_int8_deep(struct nnd_maker *m, const struct nnd_int8_deep *deep, const struct nnd_int8_record *r,
                       const struct nnd_int8_image *image) {
  struct nnd_int8_deep_fields *t = nnd_fields(m, sizeof *t);
  if (!t) return 0;
  *t = (struct nnd_int8_deep_fields){.deep = deep,
                                     .record = r,
                                     .kernel = nnd_int8_deep_kernel_here(m->table->model->options.plain_bytes != 0),
                                     .image = *image,
                                     .is_signed = nnd_shape_of(m, r->a)->element == NND_INT8,
                                     .factor_step = r->factor >= 0 && nnd_shape_of(m, r->factor)->count != 1};
  const struct nnd_axis *x = &t->image.x;
  const nnd_size joined = deep->joined, each = deep->groups * 4 * (nnd_size)sizeof(nnd_vu) / joined;
  const nnd_size reach = (x->kernel - 1) * x->dilation + 1, least = NND_INT8_PIXELS * joined;
  const nnd_size fitting = nnd_max(1, (NND_QUAD_BYTES / each - reach) / x->stride + 1);
  t->columns = nnd_evened(x->out_size, nnd_min(x->out_size, nnd_max(least, fitting)));
  t->columns = nnd_ceil_div(t->columns, joined) * joined;
  const nnd_size span = nnd_ceil_div((t->columns - 1) * x->stride + reach, joined) * joined; /* columns that are read */
  t->plane_bytes = nnd_ceil_div(nnd_ceil_div(span, x->stride), joined) * NND_INT8_DEEP;
  t->rows_at = NND_INT8_DEEP;
  t->quads_at = t->rows_at + deep->groups * NND_INT8_DEPTH * NND_INT8_DEEP;
  m->scratch_bytes = t->quads_at + (joined > 1 ? deep->groups * x->stride * 4 * t->plane_bytes : span * each);
  m->instance->run = nnd_run_int8_deep;
  snprintf(m->instance->shown, sizeof m->instance->shown, "%lld pixels at once, %lld channels, %s",
           (long long)t->columns, (long long)NND_INT8_DEEP, deep->is_quick ? "ended at once" : "ended later");
  return 1;
}
