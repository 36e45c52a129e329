/* SPDX-License-Identifier: Apache-2.0
 *
 * Images as Netpbm writes them: P5 (grey) and P6 (RGB), 8 bits (https://netpbm.sourceforge.net/doc/ppm.html).
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/command/array.h"
#include "runtime/command/command.h"

/* Reads the next number of the header, behind blanks and comments; returns -1 where there is none below 2^31. */
static int64_t nnd_next_number(const char **at, const char *end) {
  int64_t number = -1;
  while (*at < end && (strchr(" \t\r\n\v\f", **at) || **at == '#')) {
    if (**at == '#')
      while (*at < end && **at != '\n') ++*at;
    else
      ++*at;
  }
  for (; *at < end && **at >= '0' && **at <= '9' && number < INT32_MAX / 10; ++*at)
    number = (number < 0 ? 0 : 10 * number) + (**at - '0');
  return number;
}

int nnd_is_image(const struct nnd_file *file) {
  return file->size > 2 && file->bytes[0] == 'P' && (file->bytes[1] == '5' || file->bytes[1] == '6') &&
         strchr(" \t\r\n#", file->bytes[2]) != NULL;
}

int nnd_give_image(nnd_call *call, const struct nnd_file *file, nnd_error *error) {
  const char *at = file->bytes + 2, *end = file->bytes + file->size;
  const int channels = file->bytes[1] == '5' ? 1 : 3;
  const int64_t width = nnd_next_number(&at, end), height = nnd_next_number(&at, end), most = nnd_next_number(&at, end);
  int64_t bytes;
  if (most > 255) return nnd_fail(error, NND_BAD_DATA, file->path, "an image of 16 bits (hint: convert it to 8 bits)");
  if (width < 1 || height < 1 || most < 1 || at == end)
    return nnd_fail(error, NND_BAD_DATA, file->path, "a header that is none of an image");
  at++; /* one blank */
  if (__builtin_mul_overflow(width, height * channels, &bytes) || bytes > end - at)
    return nnd_fail(error, NND_BAD_DATA, file->path, "the image was cut short");
  uint8_t *scaled = most == 255 ? NULL : malloc((size_t)bytes);
  if (most != 255 && !scaled) return nnd_fail(error, NND_NO_MEMORY, file->path, "no memory for it");
  for (int64_t i = 0; scaled && i < bytes; i++) {
    const int64_t pixel = ((uint8_t)at[i] * 510 + most) / (2 * most); /* the nearest */
    scaled[i] = (uint8_t)(pixel > 255 ? 255 : pixel);
  }
  const int is_right = nnd_set_image(call, scaled ? scaled : (const uint8_t *)at, height, width, channels, error);
  free(scaled);
  return is_right;
}
