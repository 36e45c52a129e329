/* SPDX-License-Identifier: Apache-2.0
 *
 * All that there is to do with a bundle: it is opened, and run twice on zeros, open sizes being 2; outputs of the first
 * run that fit inputs of the second are these. Its signature is checked; it is given images, verified and described.
 */
#ifndef BUNDLE_TRIAL_H
#define BUNDLE_TRIAL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/command.h"
#include "runtime/command/signature.h"
#include "runtime/program.h"

#define NND_MOST_ENDS 16
#define NND_MOST_ZEROS (1 << 20)

static const char nnd_zeros[NND_MOST_ZEROS];
static const char *nnd_letters[NND_MOST_ZEROS / sizeof(char *)]; /* "a" each */

static int64_t nnd_bytes_of_shape(nnd_dtype dtype, int rank, const int64_t *shape) {
  int64_t bytes = nnd_bytes_of(dtype);
  for (int axis = 0; axis < rank; axis++)
    if (__builtin_mul_overflow(bytes, shape[axis], &bytes)) return -1;
  return bytes;
}

/* Gives an input zeros, or in the second run an output of the first; returns whether it was taken. */
static int nnd_give(nnd_program *program, nnd_call *call, int number, int is_second, nnd_error *error) {
  const nnd_info *input = nnd_input(program, number);
  int64_t shape[NND_MAX_RANK];
  for (int axis = 0; axis < input->rank; axis++) shape[axis] = input->shape[axis] < 0 ? 2 : input->shape[axis];
  const int is_text = input->dtype == NND_TEXT;
  nnd_tensor value = {input->dtype, input->rank, shape, is_text ? (const void *)nnd_letters : nnd_zeros};
  for (int i = 0; is_second && i < nnd_num_outputs(program) && i < NND_MOST_ENDS; i++) {
    nnd_tensor output;
    if (!nnd_get_output(call, nnd_output(program, i)->name, &output, error)) abort();
    if (output.dtype == input->dtype && output.rank == input->rank) value = output;
  }
  const int64_t bytes = nnd_bytes_of_shape(value.dtype, value.rank, value.shape);
  if ((value.data == nnd_zeros || value.data == nnd_letters) && (bytes < 0 || bytes > NND_MOST_ZEROS)) {
    error->code = 1, strcpy(error->text, "an input that is too large for this trial");
    return 0;
  }
  return nnd_set_input(call, input->name, &value, error);
}

static int nnd_run_once(nnd_program *program, nnd_call *call, int is_second, nnd_error *error) {
  for (int i = 0; i < nnd_num_inputs(program); i++)
    if (!nnd_give(program, call, i, is_second, error)) return 0;
  if (!nnd_run(call, error)) return 0;
  volatile unsigned sum = 0; /* every byte that is said to be there is read */
  for (int i = 0; i < nnd_num_outputs(program); i++) {
    nnd_tensor value;
    if (!nnd_get_output(call, nnd_output(program, i)->name, &value, error)) abort();
    const int64_t bytes = nnd_bytes_of_shape(value.dtype, value.rank, value.shape);
    for (int64_t at = 0; at < bytes; at++) sum += ((const unsigned char *)value.data)[at];
    for (int64_t at = 0; value.dtype == NND_TEXT && at < bytes / (int64_t)sizeof(char *); at++)
      sum += (unsigned)strlen(((const char *const *)value.data)[at]);
    const nnd_tensor *keys = nnd_output_keys(program, i);
    if (keys && (value.rank != 2 || value.shape[1] != keys->shape[0])) abort();
  }
  return 1;
}

static void nnd_try_answers(nnd_program *program, const char *path) {
  static const struct nnd_arguments said = {.is_json = 1, .rtol = -1, .atol = -1};
  struct nnd_work work = {.program = program, .said = &said, .path = path};
  nnd_error error = {0, ""};
  if (!nnd_run_goldens(&work, &error) && (error.code == 0 || !error.text[0])) abort();
  nnd_show_info(&work);
  free(work.answer.text);
}

/* Gives an image of each number of channels, wide, high, and of one pixel. */
static void nnd_try_images(nnd_program *program, nnd_call *call) {
  static const int64_t sizes[][2] = {{3, 200}, {150, 2}, {1, 1}, {8, 8}};
  const int channels[] = {1, 3, 4};
  for (int i = 0; nnd_image(program) && i < 12; i++) {
    const int64_t *size = sizes[i / 3];
    const size_t bytes = (size_t)(size[0] * size[1] * channels[i % 3]);
    nnd_error error = {0, ""};
    uint8_t *pixels = malloc(bytes); /* none behind it may be read */
    memset(pixels, 77, bytes);
    if (!nnd_set_image(call, pixels, size[0], size[1], channels[i % 3], &error) && (!error.code || !error.text[0]))
      abort();
    free(pixels);
    nnd_run(call, &error);
  }
}

/* Checks the signature by a key that signed nothing; of a bundle that names none seldom, as all end at one line. */
static void nnd_try_signature(const uint8_t *bytes, int64_t size) {
  static const struct nnd_public_key nobody = {{0}, "nobody", ""};
  struct nnd_bundle bundle = {.container.source = {.file = -1, .memory = bytes, .size = size}};
  nnd_error error = {0, ""};
  if (size % 16 && !memmem(bytes, (size_t)size, "signature", 9)) return;
  if (nnd_bundle_open(&bundle, &error) &&
      (nnd_check_signature(&bundle, &nobody, &error) || !error.code || !error.text[0]))
    abort();
  nnd_bundle_close(&bundle);
}

/* How far bundles came. */
static struct {
  int64_t opened, ran;
} all_bundles;

/* Returns 1 where the bundle ran, 0 where it was refused. */
static int nnd_try_bundle(const uint8_t *bytes, int64_t size) {
  nnd_error error = {0, ""};
  const nnd_options options = {1};
  nnd_try_signature(bytes, size);
  const char *path = size % 2 ? "m.nnd" : NULL; /* as of a file that is mapped, whose weights stay where they lie */
  nnd_program *program = nnd_open_if(path, bytes, size, &options, NULL, (struct nnd_condition){0}, &error);
  nnd_call *call = program ? nnd_call_new(program, &error) : NULL;
  const int is_run = call && nnd_run_once(program, call, 0, &error) && nnd_run_once(program, call, 1, &error);
  if (!is_run && (error.code == 0 || !error.text[0])) abort(); /* refused without a word */
  if (call) nnd_try_images(program, call);
  nnd_call_free(call);
  if (program) nnd_try_answers(program, "m.nnd");
  all_bundles.opened += program != NULL, all_bundles.ran += is_run;
  nnd_close(program);
  return is_run;
}

#endif
