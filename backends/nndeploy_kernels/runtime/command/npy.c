/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/bundle.h"
#include "runtime/command/array.h"
#include "runtime/command/command.h"
#include "runtime/command/system.h"
#include "runtime/utf8.h"

#define NND_MOST_HEADER 65536
#define NND_NUM_KINDS 8
#define NND_MOST_WIDTH (1 << 24)

static const char *const nnd_descriptions[] = {"<f4", "<i4", "<i8", "|b1", "|u1", "|i1", "<f2", "<f8"};

/* Returns what stands behind a key of the header, null where it has none. */
static const char *nnd_behind(const char *header, const char *key) {
  const char *found = strstr(header, key);
  if (!found) return NULL;
  found += strlen(key);
  while (*found == ' ' || *found == ':') found++;
  return found;
}

/* Returns "" and what the header says, or why no array of its kind is run here. `*width`: characters of a text. */
static const char *nnd_read_header(const char *header, struct nnd_array *array, int64_t *width) {
  const char *type = nnd_behind(header, "'descr'"), *order = nnd_behind(header, "'fortran_order'");
  const char *shape = nnd_behind(header, "'shape'");
  int found = 0;
  if (!type || !order || !shape || *type != '\'' || *shape++ != '(') return "a header that is none of NumPy";
  if (strncmp(order, "False", 5)) return "an array in Fortran order (hint: numpy.ascontiguousarray)";
  while (found < NND_NUM_KINDS && strncmp(type + 1, nnd_descriptions[found], 3)) found++;
  if (type[1] == '>') return "an array of the other byte order (hint: numpy.astype with '<')";
  char *behind = NULL;
  const int is_text = !strncmp(type + 1, "<U", 2);
  *width = is_text ? strtoll(type + 3, &behind, 10) : 0;
  if (is_text ? *width < 0 || *width > NND_MOST_WIDTH || *behind != '\'' : found == NND_NUM_KINDS || type[4] != '\'')
    return "an array of another type than float32, int32, int64, bool, uint8, int8, float16, float64 and text";
  array->tensor.dtype = is_text ? NND_TEXT : (nnd_dtype)found;
  for (array->tensor.rank = 0;; array->tensor.rank++) {
    char *end;
    while (*shape == ' ' || *shape == ',') shape++;
    if (*shape == ')') return "";
    const long long size = strtoll(shape, &end, 10);
    if (end == shape || size < 0 || array->tensor.rank == NND_MAX_RANK)
      return "a shape that is none, or of too many axes";
    array->shape[array->tensor.rank] = size;
    shape = end;
  }
}

/* Makes texts of `width` characters each, UTF-32 with zeros behind. Returns them with their memory, null where they are
 * none, or there is no memory. */
static void *nnd_texts_of(const char *from, int64_t count, int64_t width) {
  const char **texts = nnd_lines_take(count * ((int64_t)sizeof *texts + width * 4 + 1));
  char *to = (char *)(texts + count);
  for (int64_t i = 0; texts && i < count; i++, *to++ = 0) {
    int64_t used = width;
    uint32_t character;
    const char *text = from + i * width * 4;
    texts[i] = to;
    while (used && !memcmp(text + (used - 1) * 4, "\0\0\0", 4)) used--;
    for (int64_t j = 0; j < used; j++) {
      memcpy(&character, text + j * 4, 4);
      const int size = character ? nnd_utf8_put(character, to) : 0;
      if (!size) {
        nnd_lines_free(texts);
        return NULL;
      }
      to += size;
    }
  }
  return texts;
}

int nnd_npy_read(struct nnd_file *file, struct nnd_array *array, nnd_error *error) {
  int64_t header_bytes = 0, width = 0;
  char header[NND_MOST_HEADER + 1];
  const char *why = "no array of NumPy: a .npy file is wanted";
  const int64_t size = file->size, begin = size > 8 && file->bytes[6] >= 2 ? 12 : 10;
  array->tensor.shape = array->shape;
  for (int64_t i = 8; i < begin && i < size; i++) header_bytes |= (int64_t)(uint8_t)file->bytes[i] << 8 * (i - 8);
  if (size >= begin && !memcmp(file->bytes, NND_NPY_MAGIC, 6) && header_bytes <= NND_MOST_HEADER &&
      header_bytes <= size - begin) {
    memcpy(header, file->bytes + begin, (size_t)header_bytes);
    header[header_bytes] = 0;
    why = nnd_read_header(header, array, &width);
    const int is_text = !*why && array->tensor.dtype == NND_TEXT;
    const int64_t count = *why ? 0 : nnd_bytes_in(NND_BOOL, array->tensor.rank, array->shape);
    const int64_t item = is_text ? 4 * width : nnd_bytes_of(array->tensor.dtype), bytes = count * item;
    if (!*why && (count < 0 || count > size || bytes != size - begin - header_bytes))
      why = "it has not as many bytes as its shape says";
    const char *data = file->bytes + begin + header_bytes;
    if (!*why && is_text) {
      array->tensor.data = array->memory = nnd_texts_of(data, count, width);
      if (!array->memory) why = "texts that are no Unicode, or hold a zero";
    } else if (!*why) {
      nnd_array_of_file(file, begin + header_bytes, array);
    }
  }
  if (array->memory) return 1;
  return nnd_fail(error, *why ? NND_BAD_DATA : NND_NO_MEMORY, file->path, *why ? why : "no memory for it");
}

/* Returns how many characters a text of UTF-8 has, and writes them as UTF-32 where `to` is not null. */
static int64_t nnd_characters_of(const char *text, char *to) {
  int64_t count = 0;
  for (const uint8_t *at = (const uint8_t *)text; *at; count++) {
    const int size = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t character = size == 1 ? at[0] : at[0] & (0x7fu >> size);
    for (int i = 1; i < size && at[i]; i++) character = character << 6 | (at[i] & 0x3f);
    if (to) memcpy(to + 4 * count, &character, 4);
    for (int i = 0; i < size && *at; i++) at++;
  }
  return count;
}

/* Returns texts as NumPy writes them, of `*width` characters each; null where there is no memory. */
static char *nnd_characters(const nnd_tensor *tensor, int64_t count, int64_t *width) {
  const char *const *texts = tensor->data;
  *width = 1;
  for (int64_t i = 0; i < count; i++) {
    const int64_t size = nnd_characters_of(texts[i], NULL);
    if (size > *width) *width = size;
  }
  char *data = calloc((size_t)(count * *width) + 1, 4);
  for (int64_t i = 0; data && i < count; i++) nnd_characters_of(texts[i], data + 4 * i * *width);
  return data;
}

int nnd_npy_write(const char *path, const nnd_tensor *tensor, nnd_error *error) {
  const int64_t count = nnd_bytes_in(NND_BOOL, tensor->rank, tensor->shape);
  int64_t item = nnd_bytes_of(tensor->dtype), width = 0;
  char header[512], description[32], *characters = NULL;
  if (tensor->dtype == NND_TEXT) {
    characters = nnd_characters(tensor, count, &width);
    if (!characters) return nnd_fail(error, NND_NO_MEMORY, path, "no memory for it");
    item = 4 * width;
    snprintf(description, sizeof description, "<U%lld", (long long)width);
  } else {
    snprintf(description, sizeof description, "%s", nnd_descriptions[tensor->dtype]);
  }
  int used = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (", description);
  for (int i = 0; i < tensor->rank; i++)
    used += snprintf(header + used, sizeof header - (size_t)used, i || tensor->rank > 1 ? "%lld, " : "%lld,",
                     (long long)tensor->shape[i]);
  if (tensor->rank > 1) used -= 2; /* NumPy writes (1, 2) and (1,) */
  used += snprintf(header + used, sizeof header - (size_t)used, "), }");
  while ((10 + used + 1) % 64) header[used++] = ' ';
  header[used++] = '\n';
  const size_t bytes = (size_t)(count * item);
  FILE *file = nnd_file_create(path);
  const char begin[] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, (char)(used & 255), (char)(used >> 8)};
  int is_written = file && fwrite(begin, sizeof begin, 1, file) == 1 && fwrite(header, (size_t)used, 1, file) == 1 &&
                   (!bytes || fwrite(characters ? characters : tensor->data, bytes, 1, file) == 1);
  free(characters);
  if (!file) return nnd_fail(error, NND_CANNOT_CREATE, path, strerror(errno));
  is_written = !fclose(file) && is_written;
  return is_written ? 1 : nnd_fail(error, NND_IO, path, "it cannot be written whole");
}
