/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs bundles of nndeploy without Python: `nndeploy compile` makes one, this library opens and runs it.
 *
 *   nnd_error error;
 *   nnd_program *program = nnd_open("digits.nnd", NULL, &error);
 *   nnd_call *call = nnd_call_new(program, &error);
 *   const int64_t shape[] = {1, 1, 8, 8};
 *   const nnd_tensor image = {NND_FLOAT32, 4, shape, pixels};
 *   nnd_tensor scores;
 *   if (nnd_set_input(call, "image", &image, &error) && nnd_run(call, &error))
 *     nnd_get_output(call, "probabilities", &scores, &error);
 *
 * A bundle runs here if each of its submodels has a variant of the backend `native`, and its inputs and outputs are
 * tensors of the types below, or outputs lists of maps. Results are those of `nndeploy run`, bit for bit, on the same processor.
 *
 * A program may be used by several threads at once, a call by one at a time. There is no global state; nothing is
 * printed. After the first call with some shapes, further calls with these shapes allocate nothing.
 */
#ifndef NNDEPLOY_H
#define NNDEPLOY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

#define NND_MAX_RANK 8

typedef enum {
  NND_FLOAT32,
  NND_INT32,
  NND_INT64,
  NND_BOOL,
  NND_UINT8,
  NND_INT8,
  NND_FLOAT16,
  NND_FLOAT64,
  NND_TEXT
} nnd_dtype;

/* Codes of errors: the exit codes of the command. */
enum {
  NND_OK = 0,
  NND_BAD_DATA = 65,    /* the bundle is damaged, or a value does not fit */
  NND_NO_INPUT = 66,    /* there is no such file */
  NND_UNAVAILABLE = 69, /* the bundle needs what is not here: another backend, processor or version */
  NND_NO_MEMORY = 71,
  NND_IO = 74,
  NND_POLICY = 77 /* the manifest lies about what is code */
};

/* What went wrong: a code, and one line for people. */
typedef struct {
  int code;
  char text[400];
} nnd_error;

/* An input or output of a program; a size that is open is -1. */
typedef struct {
  const char *name;
  nnd_dtype dtype;
  int rank;
  const int64_t *shape;
} nnd_info;

/* A value in the order of ONNX (the last axis is contiguous); `data` is aligned as its type. Of NND_TEXT it is an array
 * of `const char *`, texts in UTF-8 that end at a zero. */
typedef struct {
  nnd_dtype dtype;
  int rank;
  const int64_t *shape;
  const void *data;
} nnd_tensor;

/* `threads`: of a call; 0 is as many as there are processors for this process. */
typedef struct {
  int threads;
} nnd_options;

/* How an image becomes an input of a program: which input, the size to which images are resized, and the names of the
 * classes of the first output. */
typedef struct {
  const char *input;
  int64_t height, width;
  int num_labels;
  const char *const *labels;
} nnd_image_info;

typedef struct nnd_program nnd_program;
typedef struct nnd_call nnd_call;

/* Opens a bundle; `options` may be null. Each member is read once and its SHA-256 compared before it is used; nothing
 * is read of a file or of bytes in memory after it returned. Returns null and the error where it cannot. */
nnd_program *nnd_open(const char *path, const nnd_options *options, nnd_error *error);
nnd_program *nnd_open_memory(const void *bytes, int64_t size, const nnd_options *options, nnd_error *error);
/* The same, with the text that `nndeploy tune --decisions` wrote, which ends at a zero: how steps are done otherwise than
 * by the rules. What it says of another machine, number of threads or bundle does not count. Results are the same bits,
 * but where it was made with `tune --fast`. */
nnd_program *nnd_open_tuned(const char *path, const char *decisions, const nnd_options *options, nnd_error *error);
/* Returns why nothing of the decisions counts here; "" where something does, or none were given. */
const char *nnd_decisions_note(const nnd_program *program);
void nnd_close(nnd_program *program); /* after its calls were freed; null is nothing */

int nnd_num_inputs(const nnd_program *program);
int nnd_num_outputs(const nnd_program *program);
const nnd_info *nnd_input(const nnd_program *program, int number);
const nnd_info *nnd_output(const nnd_program *program, int number);
/* Returns the keys of an output that is a list of maps, as the scores of classifiers are; null for a tensor. Such an
 * output is a tensor of float32, a row for each map, in which each number stands where its key does among these. */
const nnd_tensor *nnd_output_keys(const nnd_program *program, int number);
const nnd_image_info *nnd_image(const nnd_program *program); /* null where the bundle was compiled without --image */
const char *nnd_model_name(const nnd_program *program);
const char *nnd_level(const nnd_program *program); /* of the kernels that run, as "x86-64-v4" */

nnd_call *nnd_call_new(nnd_program *program, nnd_error *error);
void nnd_call_free(nnd_call *call);

/* Gives a call a value, of which nothing but `shape` is copied: the data must stay as long as runs use them, which is
 * until another value is given. Returns 1, or 0 and the error. An input with a default may be left out. */
int nnd_set_input(nnd_call *call, const char *name, const nnd_tensor *value, nnd_error *error);
/* Gives a call an image, as `nndeploy run` would: resized, scaled, in the layout of the input. Pixels have 8 bits and 1
 * channel (grey), 3 (RGB) or 4 (RGBA, of which A is left out), rows from the top without gaps; they are not used after. */
int nnd_set_image(nnd_call *call, const uint8_t *pixels, int64_t height, int64_t width, int channels, nnd_error *error);
/* Runs the chain. Returns 1, or 0 and the error: then the outputs mean nothing. */
int nnd_run(nnd_call *call, nnd_error *error);
/* Returns an output, which belongs to the call and is there until its next run. It may be given as an input of that
 * run, as states and caches are. */
int nnd_get_output(const nnd_call *call, const char *name, nnd_tensor *value, nnd_error *error);

int64_t nnd_bytes_of(nnd_dtype dtype);
const char *nnd_dtype_name(nnd_dtype dtype); /* as "float32"; null where there is none such */

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
