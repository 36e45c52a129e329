/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing: what lies anywhere, at any strides, into the formats that the units read.
 *
 *   input    tiles of rows, one after the other: [k / NND_UNIT_K][rows][NND_UNIT_K]; what is behind the last k is not
 *            written and not read
 *   weights  panels: [panel][k][NND_PANEL vectors], anything behind the last column; where at most one vector is left
 *            the last panel is [k][one vector]. For dot units: [column][k], NND_UNIT_K-fold; for thin ones:
 *            [k][column], whole vectors
 */
#ifndef NND_UNITS_PACK_H
#define NND_UNITS_PACK_H

#include "units.h"

/* A matrix in a buffer: element (i, j) lies at data + i * stride[0] + j * stride[1]. */
struct nnd_bound {
  float *data;
  nnd_size stride[2];
};

/* Binds axis `axis` of a matrix: `stride` floats from one element to the next, beginning with element `offset`. */
NND_INLINE void nnd_bind_buffer(struct nnd_bound *to, int axis, nnd_size stride, nnd_size offset) {
  to->stride[axis] = stride;
  to->data += offset * stride;
}

NND_INLINE float *nnd_at(const struct nnd_bound *matrix, nnd_size i, nnd_size j) {
  return matrix->data + i * matrix->stride[0] + j * matrix->stride[1];
}

NND_INLINE nnd_size nnd_packed_k(nnd_size k) { return nnd_ceil_div(k, NND_UNIT_K) * NND_UNIT_K; }

/* `rows` rows from `row` on as one tile. */
static void nnd_pack_tile(const struct nnd_bound *in, nnd_size row, nnd_size rows, nnd_size k, float *to) {
  for (nnd_size i = 0; i < k; i += NND_UNIT_K) {
    const nnd_size count = nnd_min(NND_UNIT_K, k - i);
    for (nnd_size r = 0; r < rows; r++, to += NND_UNIT_K) {
      const float *from = nnd_at(in, row + r, i);
      if (in->stride[1] == 1 && count == NND_UNIT_K) memcpy(to, from, NND_UNIT_K * sizeof(float));
      else
        for (nnd_size j = 0; j < count; j++) to[j] = from[j * in->stride[1]];
    }
  }
}

/* `columns` columns from `column` on as one panel of `vectors`. */
static void nnd_pack_panel(const struct nnd_bound *weights, nnd_size k, nnd_size column, nnd_size columns, int vectors,
                           float *to) {
  const nnd_size wide = vectors * NND_LANES, step = weights->stride[0], across = weights->stride[1];
  const float *from = nnd_at(weights, 0, column);
  nnd_size i = 0;
  if (across == 1 && step >= columns) { /* whole vectors, while what is read behind the columns is of later rows */
    const nnd_size behind = (k - 1) * step + columns - wide, rows = behind < 0 ? 0 : nnd_min(k, behind / step + 1);
    if (vectors == NND_PANEL)
      for (; i < rows; i++, from += step, to += NND_PANEL_COLUMNS)
        memcpy(to, from, NND_PANEL_COLUMNS * sizeof(float));
    else
      for (; i < rows; i++, from += step, to += NND_LANES) nnd_store_any(to, nnd_load_any(from));
  }
  for (; i < k; i++, from += step, to += wide) {
    for (nnd_size c = 0; c < columns; c++) to[c] = from[c * across];
    for (nnd_size c = columns; c < wide; c++) to[c] = 0.0f;
  }
}

/* Vectors of the panel that begins at a column, and floats of all panels before it. */
NND_INLINE int nnd_panel_vectors(nnd_size columns, nnd_size column) {
  return columns - column <= NND_LANES ? 1 : NND_PANEL;
}
NND_INLINE nnd_size nnd_panel_offset(nnd_size k, nnd_size column) { return column * k; }

/* All columns, as the units of such a product read them. Returns the floats, also where `to` is null. */
static nnd_size nnd_pack_weights(const struct nnd_bound *weights, nnd_size k, nnd_size columns, float *to) {
  const nnd_size step = weights->stride[0], across = weights->stride[1];
  const int unit = nnd_only_unit(k, columns);
  nnd_size floats = 0;
  if (unit == NND_THIN) {
    const nnd_size row = nnd_vectors_of(columns) * NND_LANES;
    for (nnd_size i = 0; to && i < k; i++)
      for (nnd_size c = 0; c < columns; c++) to[i * row + c] = weights->data[i * step + c * across];
    return k * row;
  }
  if (unit == NND_DOT) {
    for (nnd_size c = 0; to && c < columns; c++)
      for (nnd_size i = 0; i < k; i++) to[c * nnd_packed_k(k) + i] = weights->data[i * step + c * across];
    return columns * nnd_packed_k(k);
  }
  for (nnd_size c = 0; c < columns; c += NND_PANEL_COLUMNS) {
    const int vectors = nnd_panel_vectors(columns, c);
    if (to) nnd_pack_panel(weights, k, c, nnd_min(NND_PANEL_COLUMNS, columns - c), vectors, to + floats);
    floats += k * vectors * NND_LANES;
  }
  return floats;
}

#endif
