/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of each level as a table of functions, so that one program holds all levels and takes the widest that its
 * processor has. The sources of kernels are compiled once for each level, with all of their names made the level's.
 */
#ifndef NND_RUNTIME_KERNELS_H
#define NND_RUNTIME_KERNELS_H

#ifndef NND_NAMES_OF_LEVEL /* the public header has these names too */
#define nnd_call nnd_kernel_call
#define nnd_options nnd_kernel_options
#define nnd_run nnd_kernel_run
#define nnd_level nnd_kernel_level
#endif
#include "nndeploy_kernels.h"
#ifndef NND_NAMES_OF_LEVEL
#undef nnd_call
#undef nnd_options
#undef nnd_run
#undef nnd_level
#endif

/* As in nndeploy_kernels.h; what a level made goes to that level alone. */
struct nnd_kernels {
  const char *(*level)(void);
  void *(*model_open)(const void *plan, int64_t plan_bytes, const void *weights, int64_t weights_bytes,
                      const void *options, char *message, int64_t message_bytes);
  void (*model_close)(void *model);
  int64_t (*num_inputs)(const void *model);
  int64_t (*num_outputs)(const void *model);
  int64_t (*num_steps)(const void *model);
  void *(*table_make)(const void *model, const int64_t *symbols, int64_t num_symbols, const int64_t *shapes,
                      int64_t num_shapes, const void *choices, char *message, int64_t message_bytes);
  void (*table_free)(void *table);
  int64_t (*arena_bytes)(const void *table);
  int64_t (*scratch_bytes)(const void *table);
  int64_t (*output)(const void *table, int64_t number, int64_t *numbers);
  void *(*pool_make)(const void *model, int workers);
  void (*pool_free)(void *pool);
  int (*run)(const void *table, void *call, void *pool);
  int64_t (*suppress)(const float *boxes, const float *scores, const int64_t *sizes, int64_t most, double overlap,
                      const float *least, int is_centred, int64_t *chosen, int64_t rows);
};

/* Returns the kernels of the widest level of a precision that this processor has, of float32 where it has none of that;
 * null where it has not even the least, whose name is then `*least`. */
const struct nnd_kernels *nnd_kernels_here(int is_bf16, const char **least);

#endif
