/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens each bundle that is named, and runs it on an image of zeros; built with sanitizers, which end it at a finding.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/nndeploy.h"

static int nnd_try(const char *path) {
  nnd_error error = {0, ""};
  static float pixels[128];
  static const int64_t shape[] = {2, 1, 8, 8};
  const nnd_tensor image = {NND_FLOAT32, 4, shape, pixels};
  const nnd_options options = {1};
  nnd_program *program = nnd_open(path, &options, &error);
  nnd_call *call = program ? nnd_call_new(program, &error) : NULL;
  const int is_run = call && nnd_set_input(call, "image", &image, &error) && nnd_run(call, &error);
  if (!is_run && (error.code == 0 || !error.text[0])) abort(); /* refused without a word */
  double sum = 0;
  for (int i = 0; is_run && i < nnd_num_outputs(program); i++) {
    nnd_tensor value;
    if (!nnd_get_output(call, nnd_output(program, i)->name, &value, &error)) abort();
    int64_t bytes = nnd_bytes_of(value.dtype);
    for (int axis = 0; axis < value.rank; axis++) bytes *= value.shape[axis];
    for (int64_t at = 0; at < bytes; at++) sum += ((const unsigned char *)value.data)[at];
  }
  nnd_call_free(call);
  nnd_close(program);
  return is_run ? 1 + (sum < 0) : 0;
}

int main(int count, char **paths) {
  int taken = 0;
  for (int i = 1; i < count; i++) taken += nnd_try(paths[i]);
  printf("%d of %d\n", taken, count - 1);
  return 0;
}
