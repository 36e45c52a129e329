/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a digit with a bundle, from C: cc digits.c -lnndeploy -lpthread -lm -o digits && ./digits digits.nnd
 */
#include <stdio.h>

#include "nndeploy.h"

int main(int count, char **words) {
  nnd_error error;
  float pixels[64];
  const int64_t shape[] = {1, 1, 8, 8};
  const nnd_tensor image = {NND_FLOAT32, 4, shape, pixels};
  nnd_tensor scores;
  for (int i = 0; i < 64; i++) pixels[i] = i % 8 > 2 && i % 8 < 5 ? 16 : 0; /* an upright stroke */
  nnd_program *program = nnd_open(count > 1 ? words[1] : "digits.nnd", NULL, &error);
  nnd_call *call = program ? nnd_call_new(program, &error) : NULL;
  const int is_read = call && nnd_set_input(call, "image", &image, &error) && nnd_run(call, &error) &&
                      nnd_get_output(call, "probabilities", &scores, &error);
  if (is_read) {
    const float *of = scores.data;
    int best = 0;
    for (int digit = 1; digit < 10; digit++)
      if (of[digit] > of[best]) best = digit;
    printf("%d, probability %.4f\n", best, (double)of[best]);
  } else {
    fprintf(stderr, "%s\n", error.text);
  }
  nnd_call_free(call);
  nnd_close(program);
  return is_read ? 0 : error.code;
}
