/* SPDX-License-Identifier: Apache-2.0
 *
 * What a library of units exports: ../../units/runtime.py calls it.
 */
#ifndef NND_UNITS_LIBRARY_H
#define NND_UNITS_LIBRARY_H

#include "cache.h"
#include "images.h"
#include "python_call.h"

#define NND_EXPORT __attribute__((visibility("default")))

/* Floats of packed weights; writes them where `to` is not null. */
NND_EXPORT nnd_size nnd_units_pack(const struct nnd_bound *weights, nnd_size k, nnd_size n, float *to) {
  return nnd_pack_weights(weights, k, n, to);
}
NND_EXPORT void nnd_units_default_costs(struct nnd_costs *costs) { nnd_default_costs(costs); }
NND_EXPORT int nnd_units_measure_costs(struct nnd_costs *costs) { return nnd_measure_costs(costs); }

NND_EXPORT struct nnd_product *nnd_units_open(const struct nnd_form *form, const struct nnd_costs *costs) {
  return nnd_product_open(form, costs);
}
NND_EXPORT void nnd_units_close(struct nnd_product *product) { free(product); }

NND_EXPORT void nnd_units_table(struct nnd_product *product, nnd_size m, nnd_size n, nnd_size k,
                                struct nnd_table *to) {
  const struct nnd_table *found = nnd_table_for(product, m, n, k, to);
  if (found != to) *to = *found;
}
NND_EXPORT void nnd_units_quick(const struct nnd_form *form, nnd_size m, struct nnd_table *to) {
  nnd_compose_quick(form, m, to);
}
/* Runs by a given table, or by the product's own. Returns 0, or the floats of scratch that it needs where `scratch` is
 * less: then nothing is done. */
NND_EXPORT nnd_size nnd_units_run(const struct nnd_matmul *op, const struct nnd_table *table, nnd_size m,
                                  nnd_size scratch) {
  const nnd_size needed = nnd_matmul_scratch(table, m);
  if (needed > scratch) return needed;
  nnd_matmul_run(op, table, m);
  return 0;
}
NND_EXPORT nnd_size nnd_units_call(struct nnd_product *product, const struct nnd_matmul *op, nnd_size m, nnd_size n,
                                   nnd_size k, nnd_size scratch) {
  struct nnd_table room;
  return nnd_units_run(op, nnd_table_for(product, m, n, k, &room), m, scratch);
}

/* Element-wise chains and units along the last axis. */
NND_EXPORT struct nnd_rows *nnd_units_rows_open(const struct nnd_operation *operations, int count) {
  return nnd_rows_open(operations, count);
}
NND_EXPORT void nnd_units_rows_close(struct nnd_rows *rows) { free(rows); }
NND_EXPORT const struct nnd_table *nnd_units_rows_table(const struct nnd_rows *rows, nnd_size n, int single,
                                                        int in_place) {
  return nnd_rows_table(rows, n, single, in_place);
}
/* What Python makes a function of; `python` are the functions that it calls. */
NND_EXPORT const struct nnd_method *nnd_units_rows_method(const struct nnd_python *python) {
  nnd_python = *python;
  return &nnd_rows_method;
}

/* Convolution, separable pairs, pooling. */
NND_EXPORT void nnd_units_default_image_costs(struct nnd_image_costs *costs) { nnd_default_image_costs(costs); }
NND_EXPORT void nnd_units_measure_image_costs(struct nnd_image_costs *costs) { nnd_measure_image_costs(costs); }
NND_EXPORT struct nnd_images *nnd_units_images_open(int kind, const struct nnd_image_form *form, const float *weights,
                                                    const float *bias, const struct nnd_pointwise_part *point,
                                                    int counts_padding, const struct nnd_image_costs *costs) {
  return nnd_images_open(kind, form, weights, bias, point, counts_padding, costs);
}
NND_EXPORT void nnd_units_images_close(struct nnd_images *op) { nnd_images_close(op); }
NND_EXPORT void nnd_units_images_table(struct nnd_images *op, nnd_size length, nnd_size rows, int columns, int in_place,
                                       int quick, struct nnd_table *to) {
  nnd_images_table(op, length, rows, columns, in_place, quick, to);
}
NND_EXPORT nnd_size nnd_units_images_call(struct nnd_images *op, const struct nnd_table *table,
                                          const struct nnd_python *python, void *const *object, float *scratch,
                                          nnd_size floats) {
  return nnd_images_call(op, table, python, object, scratch, floats);
}

#endif
