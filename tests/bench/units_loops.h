/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call of a function through Python is too slow to measure: loops around it, for bench_units.py.
 */
#include "units/library.h"

/* Nanoseconds of a look-up, of a quick and of an optimal table over first shapes m, n, k of a product. */
NND_EXPORT void nnd_bench_tables(struct nnd_product *product, const int32_t *shapes, nnd_size count, nnd_size times,
                                 double *ns) {
  struct nnd_table table;
  for (int what = 0; what < 3; what++) {
    const double begin = nnd_now();
    for (nnd_size time = 0; time < times; time++)
      for (nnd_size i = 0; i < count; i++) {
        const int32_t *s = shapes + 3 * i;
        struct nnd_form form = product->form;
        form.n = s[1];
        form.k = s[2];
        const struct nnd_table *found = &table;
        if (what == 0) found = nnd_table_for(product, s[0], s[1], s[2], &table);
        else if (what == 1) nnd_compose_quick(&form, s[0], &table);
        else nnd_compose_optimal(&product->program, &form, s[0], &table);
        __asm__ volatile("" : : "r"(found) : "memory");
      }
    ns[what] = (nnd_now() - begin) / (double)(times * count);
  }
}

/* A call with one argument: ctypes takes as long for each as a small product. */
struct nnd_bound_call {
  struct nnd_matmul op;
  struct nnd_product *product;
  nnd_size m, n, k, scratch;
};

NND_EXPORT void nnd_bench_bound(const struct nnd_bound_call *call) {
  nnd_units_call(call->product, &call->op, call->m, call->n, call->k, call->scratch);
}

/* Nanoseconds of one call, the least of some. */
NND_EXPORT double nnd_bench_call(struct nnd_product *product, const struct nnd_matmul *op, nnd_size m, nnd_size n,
                                 nnd_size k, nnd_size scratch, nnd_size times) {
  const double begin = nnd_now();
  for (nnd_size time = 0; time < times; time++) nnd_units_call(product, op, m, n, k, scratch);
  return (nnd_now() - begin) / (double)times;
}
