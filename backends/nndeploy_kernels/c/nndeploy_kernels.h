/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of the kernel library: open a plan, ask what it needs for the shapes of its inputs, run.
 *
 *   model = nnd_model_open(plan, ..., weights, ...)       checks the plan, packs the weights for this instruction set
 *   table = nnd_table_make(model, symbols, shapes)        sizes, windows and places for these shapes: microseconds
 *   nnd_run(table, &call, pool)                           the steps, one after the other, in memory of the caller
 *
 * A plan is data (model/plan.h has its layout). Whatever it says, nothing outside of the arrays of a call is touched:
 * what does not fit is refused by a message, at opening or when a table is made. Models and tables may be used by
 * several threads at once; a pool by one call at a time. The library prints nothing, and reads no file.
 */
#ifndef NNDEPLOY_KERNELS_H
#define NNDEPLOY_KERNELS_H

#include <stdint.h>

#define NND_API_VERSION 8

#pragma GCC visibility push(default)

struct nnd_model;
struct nnd_table;
struct nnd_pool;
struct nnd_pace_item;

/* Bytes of the second cache (0: a usual number) and of the buffer of sliding windows (0: what suits the cache), the
 * number of threads that will run, and whether the weights are given away: they lie in private memory of the system,
 * not of an allocator, which nobody else reads, and whose pages are given back where their weights are packed. With
 * `plain_bytes` products of bytes take no instructions beyond those of the level, with `shares_all` threads share the
 * smallest steps too; both are for tests: the results are the same.
 *
 * `ways` has a number for each of the first `num_ways` steps: for which ways of a convolution its weights are packed, where
 * there are two. Which of them is taken changes last bits.
 *
 * `image`: null, or zeroed memory that begins at a cache line, in which the large packed weights will lie; it stays as long
 * as the model. With `image_is_packed` it is what an earlier opening left there, by this library on this processor, of the
 * same plan, weights and options but threads: then these weights are not packed, and their plain bytes not read.
 * `packs_all_late` is for tests: all weights count as large, and plain ones that are given back are overwritten. */
enum { NND_WAY_BY_RULE, NND_WAY_DIRECT, NND_WAY_WINOGRAD, NND_WAY_BOTH };

struct nnd_options {
  int64_t l2_bytes, buffer_bytes, threads, gives_weights, plain_bytes, shares_all;
  const int8_t *ways;
  int64_t num_ways;
  void *image;
  int64_t image_bytes, image_is_packed, packs_all_late;
};

/* How one step is done where not as the rule of its operator says; 0 in each field is the rule. Whatever it says, the
 * bits of the results are the same unless `rounding` or `way` is not 0, and what does not fit a step is the rule.
 *   cache_bytes   the second cache, as the rule counts its blocks with it
 *   buffer_bytes  the buffer of its sliding windows; one larger than all is the pair apart
 *   chunks        into how many each worker's share is cut
 *   sharing       1: one worker does all of it; 2: all of them
 *   stores        1: what it writes goes through the caches; 2: past them
 *   rounding      1: windows may be such that sums round otherwise
 *   way           NND_WAY_DIRECT or NND_WAY_WINOGRAD, of a convolution that is packed for both */
struct nnd_choice {
  int64_t cache_bytes, buffer_bytes, chunks, sharing, stores, rounding, way;
};

/* An index that is out of range: element `at` of the indices of step `step` is `index`, the axis has `size`. */
struct nnd_fault {
  int64_t step, at, index, size;
};

/* One call. `inputs` and `outputs` are in the order of the plan, their elements in the order of ONNX; `arena` and
 * `scratch` begin at 64 bytes; each thread has `scratch_bytes` of scratch. `pace`: null where nothing is paced.
 * `step_ns`: null, or for each step a number to which its nanoseconds are added: of processor time of a caller who works
 * alone, else of the clock. */
struct nnd_call {
  const void *const *inputs;
  void *const *outputs;
  char *arena, *scratch;
  int64_t scratch_bytes;
  struct nnd_pace_item *pace;
  struct nnd_fault fault;
  int64_t *step_ns;
};

/* What the library was built for, as "x86-64-v4", and NND_API_VERSION. */
const char *nnd_level(void);
int nnd_api_version(void);

/* Opens a plan over the weights that it names, which must stay as they are until it is closed. Returns null and writes
 * one line to `message` where that cannot be done; that of a plan that is newer than the library begins with "another
 * library". */
struct nnd_model *nnd_model_open(const void *plan, int64_t plan_bytes, const void *weights, int64_t weights_bytes,
                                 const struct nnd_options *options, char *message, int64_t message_bytes);
void nnd_model_close(struct nnd_model *model);
int64_t nnd_model_num_steps(const struct nnd_model *model);
int64_t nnd_model_num_inputs(const struct nnd_model *model);
int64_t nnd_model_num_outputs(const struct nnd_model *model);
int64_t nnd_model_packed_bytes(const struct nnd_model *model); /* beside the image */
/* Returns how many bytes of the image are used; -1: it is too small, so that it is not whole. */
int64_t nnd_model_image_bytes(const struct nnd_model *model);

/* Makes the table for `symbols`, the numbers that the sizes of the plan depend on, and checks that the inputs have the
 * shapes that follow: for each input its element (0 float32, 1 int32, 2 int64, 3 bool, 4 uint8, 5 int8, 6 float16,
 * 7 float64), its rank, then its sizes, in `shapes`. A message about an input that has another shape begins with "input "
 * and its number. `choices`: one for each step, or null: all as the rules say. */
struct nnd_table *nnd_table_make(const struct nnd_model *model, const int64_t *symbols, int64_t num_symbols,
                                 const int64_t *shapes, int64_t num_shapes, const struct nnd_choice *choices,
                                 char *message, int64_t message_bytes);
void nnd_table_free(struct nnd_table *table);
int64_t nnd_table_arena_bytes(const struct nnd_table *table);
int64_t nnd_table_scratch_bytes(const struct nnd_table *table); /* of each thread */
/* Writes the element, the rank and the sizes of an output, at most 10 numbers; returns how many, -1 where it is none.
 * */
int64_t nnd_table_output(const struct nnd_table *table, int64_t number, int64_t *numbers);
/* The same of what step `step` writes. */
int64_t nnd_table_step_shape(const struct nnd_table *table, int64_t step, int64_t *numbers);
/* Writes what step `step` does with these shapes, for people: its window and the like. */
void nnd_table_describe(const struct nnd_table *table, int64_t step, char *text, int64_t text_bytes);

/* Writes the bytes of scratch of each thread that step `step` takes, and those of what it makes between its convolutions
 * that never leave the second cache; 0 of a step that is none. */
void nnd_table_step_bytes(const struct nnd_table *table, int64_t step, int64_t *scratch, int64_t *kept);

/* Returns a pool of `workers` for a model, the caller being one of them; null where the system gives none. */
struct nnd_pool *nnd_pool_make(const struct nnd_model *model, int workers);
void nnd_pool_free(struct nnd_pool *pool);

/* Runs the steps; `pool` is null where the caller works alone. Returns 0; or 1 where an index was out of range: the
 * first such of the first step is `call->fault` then, whatever the number of threads, and the outputs mean nothing. */
int nnd_run(const struct nnd_table *table, struct nnd_call *call, struct nnd_pool *pool);

/* NonMaxSuppression: writes the batch, the class and the box of what is chosen, in the order of batches, classes and
 * falling scores, of equal ones the first box, and returns how many there are. `sizes`: batches, classes, boxes; `boxes`
 * are corners (y, x, y, x) or, where `is_centred`, (x, y, width, height). Of each class at most `most`, whose scores are
 * above `least` (null: all), and which overlap none that was chosen by more than `overlap` of what both cover. `chosen` has
 * three numbers for each of `rows`, as many as are chosen at most, and six more for each box, in which this works. */
int64_t nnd_suppress(const float *boxes, const float *scores, const int64_t *sizes, int64_t most, double overlap,
                     const float *least, int is_centred, int64_t *chosen, int64_t rows);

/* What nnd_probe() measures: operations on float32, operations on bytes, bytes read. A multiply-add is two operations. */
enum { NND_PROBE_FLOAT32, NND_PROBE_INT8, NND_PROBE_READING };

/* Returns how many of them `workers` threads of this machine do a second, at most; 0: it cannot be measured. What is read
 * are `num_bytes`, again and again, of which each thread has a part: where they fit a cache, they are in it. Takes some
 * milliseconds, and a few more where memory is large. */
double nnd_probe(int what, int64_t num_bytes, int workers);

#pragma GCC visibility pop

#endif
