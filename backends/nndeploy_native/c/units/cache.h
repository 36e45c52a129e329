/* SPDX-License-Identifier: Apache-2.0
 *
 * A product that runs at any first shape of its form: its dynamic program and a bounded cache of tables.
 *
 * A slot is a table under a version, odd while it is written. Where all three dimensions are dynamic its table may be
 * replaced: a reader copies it and looks at the version again. Else every slot is of one table, written once, and read
 * where it is. Whoever finds a slot busy composes its table and does not keep it. No locks, any number of threads.
 */
#ifndef NND_UNITS_CACHE_H
#define NND_UNITS_CACHE_H

#include <stdatomic.h>

#include "optimal.h"

#define NND_DYNAMIC_SLOTS 128

_Static_assert(2 * NND_THIN_ROWS < NND_PLANNED + NND_UNIT_ROWS, "first shapes that tables are of have slots");

struct nnd_slot {
  atomic_uint version;
  struct nnd_table table;
};

struct nnd_product {
  struct nnd_form form; /* n = 0: all three dimensions are dynamic */
  struct nnd_program program;
  nnd_size num_slots;
  struct nnd_slot slot[];
};

static struct nnd_product *nnd_product_open(const struct nnd_form *form, const struct nnd_costs *costs) {
  const nnd_size slots = form->n ? NND_PLANNED + NND_UNIT_ROWS : NND_DYNAMIC_SLOTS;
  struct nnd_product *product = calloc(1, sizeof *product + (size_t)slots * sizeof(struct nnd_slot));
  if (!product) return 0;
  product->form = *form;
  product->num_slots = slots;
  nnd_fill_program(costs, &product->program);
  return product;
}

NND_INLINE struct nnd_slot *nnd_slot_of(struct nnd_product *product, nnd_size base, nnd_size n, nnd_size k) {
  if (product->form.n) return &product->slot[base];
  const uint64_t mixed = ((uint64_t)base * 0x9e3779b97f4a7c15u ^ (uint64_t)n) * 0xff51afd7ed558ccdu ^ (uint64_t)k;
  return &product->slot[(mixed * 0xc4ceb9fe1a85ec53u >> 32) % NND_DYNAMIC_SLOTS];
}

NND_INLINE int nnd_serves(const struct nnd_table *table, nnd_size base, nnd_size n, nnd_size k) {
  const int32_t *first = table->header.first;
  return table->header.magic && first[0] == base && first[1] == n && first[2] == k;
}

/* Copies the slot's table where it serves the shape. */
NND_INLINE int nnd_look_up(struct nnd_slot *slot, nnd_size base, nnd_size n, nnd_size k, struct nnd_table *to) {
  const unsigned before = atomic_load_explicit(&slot->version, memory_order_acquire);
  if (before & 1 || !nnd_serves(&slot->table, base, n, k)) return 0;
  to->header = slot->table.header;
  for (int i = 0; i < to->header.rows && i < NND_TABLE_ROWS; i++) to->row[i] = slot->table.row[i];
  atomic_thread_fence(memory_order_acquire);
  return atomic_load_explicit(&slot->version, memory_order_relaxed) == before;
}

static void nnd_keep(struct nnd_slot *slot, const struct nnd_table *table, int replaces) {
  unsigned before = atomic_load(&slot->version);
  if (before & 1 || (before && !replaces) || !atomic_compare_exchange_strong(&slot->version, &before, before + 1)) return;
  slot->table = *table;
  atomic_store_explicit(&slot->version, before + 2, memory_order_release);
}

/* The table of a first shape: the cache's, or one that is written to `room`. */
NND_INLINE const struct nnd_table *nnd_table_for(struct nnd_product *product, nnd_size m, nnd_size n, nnd_size k,
                                                 struct nnd_table *room) {
  const nnd_size base = nnd_base_of(m, n, k);
  struct nnd_slot *slot = nnd_slot_of(product, base, n, k);
  const int is_dynamic = product->form.n == 0;
  if (!is_dynamic && atomic_load_explicit(&slot->version, memory_order_acquire) == 2) return &slot->table;
  if (is_dynamic && nnd_look_up(slot, base, n, k, room)) return room;
  struct nnd_form form = product->form;
  form.n = n;
  form.k = k;
  nnd_compose_optimal(&product->program, &form, m, room);
  nnd_keep(slot, room, is_dynamic);
  return room;
}

#endif
