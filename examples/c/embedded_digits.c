/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a digit with a bundle inside the program:
 *
 *   nndeploy export digits.nnd -o digits.a --library
 *   cc embedded_digits.c digits.a -lnndeploy -lpthread -lm -o digits && ./digits
 */
#include <stdio.h>

#include "digits.h"

int main(void) {
  nnd_error error;
  float pixels[64];
  const int64_t shape[] = {1, 1, 8, 8};
  const nnd_tensor image = {NND_FLOAT32, 4, shape, pixels};
  nnd_tensor scores;
  for (int i = 0; i < 64; i++) pixels[i] = i % 8 > 2 && i % 8 < 5 ? 16 : 0; /* an upright stroke */
  nnd_program *program = digits_open(NULL, &error);
  nnd_call *call = program ? nnd_call_new(program, &error) : NULL;
  const int is_read = call && nnd_set_input(call, "image", &image, &error) && nnd_run(call, &error) &&
                      nnd_get_output(call, "probabilities", &scores, &error);
  if (is_read)
    for (int digit = 0; digit < 10; digit++) printf("%d %.4f\n", digit, (double)((const float *)scores.data)[digit]);
  else
    fprintf(stderr, "%s\n", error.text);
  nnd_call_free(call);
  nnd_close(program);
  return is_read ? 0 : error.code;
}
