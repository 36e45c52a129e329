/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tiled_convolution.h"

#ifdef NND_BF16
#include <stdio.h>

#include "kernels/bf16_tiles.h"
#include "kernels/tile.h"
#include "ops/windows.h"

#define NND_FEW_WINDOWS 8
#define NND_SHORT_LINE 4                      /* pixels: a tile of fewer rows takes as long as one of ten */
#define NND_LARGEST_LINE ((nnd_size)16 << 20) /* bytes that a line of the output reads, packed */

/* Windows are some lines of the output. Workers share windows, or panels where these are few. */
struct nnd_tiled_fields {
  struct nnd_axis y, x;
  nnd_size in_channels, out_channels, images, window;
  struct nnd_amx_strips strips;
  nnd_size pitch; /* pixels of a packed row */
  const nnd_size *offsets;
  struct nnd_end end;
  int by_panels, stream;
};

/* Pixels of a packed row, of which whole strips are read. */
NND_INLINE nnd_size nnd_tiled_pitch(const struct nnd_axis *x) {
  const struct nnd_amx_strips strips = nnd_amx_strips_of(x->out_size, 1);
  const nnd_size read = (strips.count * strips.each - 1) * x->stride + (x->kernel - 1) * x->dilation + 1;
  return nnd_max(x->pad + x->size, read);
}

/* Rows that `lines` lines of the output read, those around the image too, and their bytes. */
NND_INLINE nnd_size nnd_tiled_rows(const struct nnd_axis *y, nnd_size lines) {
  return (lines - 1) * y->stride + (y->kernel - 1) * y->dilation + 1;
}
NND_INLINE nnd_size nnd_tiled_bytes(const struct nnd_axis *y, const struct nnd_axis *x, nnd_size channels,
                                    nnd_size lines) {
  nnd_size bytes = nnd_pixel_blocks(channels) * NND_AMX_BYTES;
  if (__builtin_mul_overflow(bytes, nnd_tiled_pitch(x), &bytes) ||
      __builtin_mul_overflow(bytes, nnd_tiled_rows(y, lines), &bytes))
    return INT64_MAX;
  return bytes;
}

int nnd_tiled_pays(const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x) {
  if (c->groups != 1 || x->out_size < NND_SHORT_LINE || y->out_size < 1) return 0;
  if (nnd_tiled_bytes(y, x, c->in_channels, 1) > NND_LARGEST_LINE) return 0;
  return nnd_bf16_takes_tiles(y->out_size * x->out_size, c->in_channels * y->kernel * x->kernel, c->out_channels);
}

/* Packs what the lines of a window read, [row][block][pitch][NND_PIXEL_BLOCK], from row `top` of an image on. */
static void nnd_pack_window(const struct nnd_tiled_fields *t, const nnd_elem *image, nnd_size top, nnd_size rows,
                            nnd_elem *to) {
  const nnd_size blocks = nnd_pixel_blocks(t->in_channels), of_block = t->pitch * NND_PIXEL_BLOCK;
  const nnd_size row_pixels = t->x.size, plane = t->y.size * row_pixels * NND_LANES;
  const nnd_size behind = t->x.pad + row_pixels, each = NND_PIXEL_BLOCK * (nnd_size)sizeof *to;
  for (nnd_size row = top; row < top + rows; row++, to += blocks * of_block) {
    if (row < 0 || row >= t->y.size) {
      memset(to, 0, (size_t)(blocks * t->pitch * each));
      continue;
    }
    for (nnd_size block = 0; block < blocks; block++) {
      memset(to + block * of_block, 0, (size_t)(t->x.pad * each));
      memset(to + block * of_block + behind * NND_PIXEL_BLOCK, 0, (size_t)((t->pitch - behind) * each));
    }
    nnd_bf16_pack_run(image + row * row_pixels * NND_LANES, plane, t->in_channels, row_pixels, of_block,
                      to + t->x.pad * NND_PIXEL_BLOCK);
  }
}

static void nnd_run_tiled(const void *fields, void *const *at, struct nnd_part part) {
  const struct nnd_tiled_fields *t = fields;
  const nnd_size blocks = nnd_pixel_blocks(t->in_channels), row = blocks * t->pitch * NND_PIXEL_BLOCK;
  const nnd_size out_blocks = nnd_blocks(t->out_channels), out_line = t->x.out_size * NND_LANES;
  const nnd_size out_plane = t->y.out_size * out_line, taps = t->y.kernel * t->x.kernel;
  const nnd_size in_image = nnd_blocks(t->in_channels) * t->y.size * t->x.size * NND_LANES;
  const nnd_size panels = nnd_full_panels(out_blocks) + 1, windows = nnd_ceil_div(t->y.out_size, t->window);
  nnd_size first = 0, last = t->images * windows, first_panel = 0, last_panel = panels;
  if (t->by_panels)
    nnd_share(panels, part, &first_panel, &last_panel);
  else
    nnd_share(last, part, &first, &last);
  if (first_panel >= last_panel) return;
  const nnd_size block = first_panel * NND_PANEL;
  struct nnd_pixel_job job = {
      .width = t->x.out_size,
      .strips = t->strips,
      .packed = (const nnd_elem *)part.scratch,
      .pixel_step = t->x.stride * NND_PIXEL_BLOCK,
      .strip_step = t->strips.each * t->x.stride * NND_PIXEL_BLOCK,
      .line_step = t->y.stride * row,
      .block_step = t->pitch * NND_PIXEL_BLOCK,
      .blocks = blocks,
      .taps = taps,
      .offsets = t->offsets,
      .weights = (const nnd_weight *)at[2] + block * taps * nnd_grouped_channels(t->in_channels) * NND_LANES,
      .bias = (const float *)at[3] + block * NND_LANES,
      .numbers = t->end.number ? (const float *)at[4] + block * NND_LANES : NULL,
      .out_line = out_line,
      .out_plane = out_plane,
      .panels = last_panel - first_panel,
      .last_vectors = last_panel == panels ? nnd_last_panel(out_blocks) : NND_PANEL,
      .end = &t->end,
      .stream = t->stream};
  for (nnd_size unit = first; unit < last; unit++) {
    const nnd_size image = unit / windows, line = unit % windows * t->window;
    const nnd_size to = (image * out_blocks + block) * out_plane + line * out_line;
    job.lines = nnd_min(t->window, t->y.out_size - line);
    job.out = (nnd_elem *)at[0] + to;
    job.residual = t->end.residual ? (const nnd_elem *)at[5] + to : NULL;
    nnd_pack_window(t, (const nnd_elem *)at[1] + image * in_image, line * t->y.stride - t->y.pad,
                    nnd_tiled_rows(&t->y, job.lines), (nnd_elem *)part.scratch);
    nnd_bf16_multiply(&job);
  }
}

int nnd_make_tiled(struct nnd_maker *m, const struct nnd_conv *c, const struct nnd_axis *y, const struct nnd_axis *x) {
  struct nnd_tiled_fields *t = nnd_fields(m, sizeof *t);
  nnd_size *offsets = nnd_memory_take(&m->table->memory, y->kernel * x->kernel * (nnd_size)sizeof *offsets);
  if (!t || !offsets) return nnd_fail(m->message, "no memory for a convolution");
  const nnd_size channels = c->in_channels, pitch = nnd_tiled_pitch(x);
  const nnd_size row = nnd_pixel_blocks(channels) * pitch * NND_AMX_BYTES;
  *t = (struct nnd_tiled_fields){.y = *y,
                                 .x = *x,
                                 .in_channels = channels,
                                 .out_channels = c->out_channels,
                                 .images = nnd_shape_of(m, c->in)->sizes[0],
                                 .strips = nnd_amx_strips_of(x->out_size, 1),
                                 .pitch = pitch,
                                 .offsets = offsets,
                                 .end = c->end,
                                 .stream = nnd_streams(m, nnd_shape_of(m, c->out)->num_bytes)};
  for (nnd_size ky = 0; ky < y->kernel; ky++)
    for (nnd_size kx = 0; kx < x->kernel; kx++) *offsets++ = ky * y->dilation * row + kx * x->dilation * NND_AMX_BYTES;
  const nnd_size around = nnd_tiled_rows(y, 1) - y->stride, fitting = nnd_l2(m) / 4 / row - around;
  t->window = nnd_evened(y->out_size, fitting / y->stride);
  t->by_panels = t->images * nnd_ceil_div(y->out_size, t->window) < NND_FEW_WINDOWS;
  if (t->by_panels) m->instance->chunks = 1; /* each packs all windows */
  m->scratch_bytes = nnd_tiled_bytes(y, x, channels, t->window);
  m->instance->run = nnd_run_tiled;
  snprintf(m->instance->shown, sizeof m->instance->shown, "dense, %lld lines%s", (long long)t->window,
           nnd_shown_tiles(1));
  return 1;
}
#endif
