/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of one level; compiled with the kernels of that level, under its names. NND_TABLE is the table's.
 */
#include <stddef.h>

#include "runtime/kernels.h"

static void *nnd_open_model(const void *plan, int64_t plan_bytes, const void *weights, int64_t weights_bytes,
                            const void *options, char *message, int64_t message_bytes) {
  return nnd_model_open(plan, plan_bytes, weights, weights_bytes, options, message, message_bytes);
}

static void nnd_close_model(void *model) { nnd_model_close(model); }

static int64_t nnd_inputs_of(const void *model) { return nnd_model_num_inputs(model); }

static int64_t nnd_outputs_of(const void *model) { return nnd_model_num_outputs(model); }

static int64_t nnd_steps_of(const void *model) { return nnd_model_num_steps(model); }

static void *nnd_make_table(const void *model, const int64_t *symbols, int64_t num_symbols, const int64_t *shapes,
                            int64_t num_shapes, const void *choices, char *message, int64_t message_bytes) {
  return nnd_table_make(model, symbols, num_symbols, shapes, num_shapes, choices, message, message_bytes);
}

static void nnd_free_table(void *table) { nnd_table_free(table); }

static int64_t nnd_arena_of(const void *table) { return nnd_table_arena_bytes(table); }

static int64_t nnd_scratch_of(const void *table) { return nnd_table_scratch_bytes(table); }

static int64_t nnd_output_of(const void *table, int64_t number, int64_t *numbers) {
  return nnd_table_output(table, number, numbers);
}

static void *nnd_make_pool(const void *model, int workers) { return nnd_pool_make(model, workers); }

static void nnd_free_pool(void *pool) { nnd_pool_free(pool); }

static int nnd_run_table(const void *table, void *call, void *pool) { return nnd_run(table, call, pool); }

const struct nnd_kernels NND_TABLE = {
    nnd_level,     nnd_open_model, nnd_close_model, nnd_inputs_of, nnd_outputs_of,
    nnd_steps_of,  nnd_make_table, nnd_free_table,  nnd_arena_of,  nnd_scratch_of,
    nnd_output_of, nnd_make_pool,  nnd_free_pool,   nnd_run_table, nnd_suppress,
};
