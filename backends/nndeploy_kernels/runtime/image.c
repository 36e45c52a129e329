/* SPDX-License-Identifier: Apache-2.0
 *
 * pixels -> grey or RGB -> resized by triangles -> (pixel - mean) / std -> layout, batch of one.
 *
 * Values are those of `nndeploy/stream/formats/images.py`, which resizes by Pillow: weights of the filter are rounded to
 * 22 bits, what a pass gives to 8; columns come first where more than twice as many rows as columns are lost.
 */
#include "runtime/image.h"

#include <math.h>
#include <string.h>

#include "runtime/call.h"

#define NND_WEIGHT_BITS 22

static int nnd_bad_image_input(nnd_error *error, const char *why) {
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: manifest.json: image_input: %s", why);
}

static int nnd_read_floats(const struct nnd_json *list, int count, float *to) {
  if (!nnd_json_of_kind(list, NND_ARRAY) || list->count != count) return 0;
  NND_EACH(item, list) {
    double number;
    if (!nnd_json_number(item, &number)) return 0;
    *to++ = (float)number;
  }
  return 1;
}

static int nnd_read_labels(struct nnd_program *program, const struct nnd_json *list, struct nnd_image_way *way,
                           nnd_error *error) {
  if (!nnd_json_of_kind(list, NND_ARRAY)) return nnd_bad_image_input(error, "labels");
  const char **labels = nnd_arena_take(&program->bundle.arena, list->count * (int64_t)sizeof *labels, error);
  if (!labels) return 0;
  way->info.labels = labels;
  NND_EACH(item, list) {
    if (item->kind != NND_STRING) return nnd_bad_image_input(error, "labels");
    labels[way->info.num_labels++] = item->text.data;
  }
  return 1;
}

/* Reads the words for channels and layout. */
static int nnd_read_order(const struct nnd_json *said, struct nnd_image_way *way) {
  const struct nnd_json *channels = nnd_json_of_kind(nnd_json_member(said, "channels"), NND_STRING);
  const struct nnd_json *layout = nnd_json_of_kind(nnd_json_member(said, "layout"), NND_STRING);
  if (!channels || !layout) return 0;
  way->is_bgr = nnd_is_text(&channels->text, "BGR");
  way->channels = nnd_is_text(&channels->text, "L") ? 1 : 3;
  way->is_planar = nnd_is_text(&layout->text, "NCHW");
  return (way->channels == 1 || way->is_bgr || nnd_is_text(&channels->text, "RGB")) &&
         (way->is_planar || nnd_is_text(&layout->text, "NHWC"));
}

int nnd_image_read(struct nnd_program *program, struct nnd_image_way **way, nnd_error *error) {
  const struct nnd_json *said = nnd_json_of_kind(nnd_json_member(program->bundle.manifest, "image_input"), NND_OBJECT);
  const struct nnd_json *name = nnd_json_of_kind(nnd_json_member(said, "name"), NND_STRING);
  *way = NULL;
  if (!said) return 1;
  struct nnd_image_way *made = nnd_arena_take(&program->bundle.arena, sizeof *made, error);
  if (!made) return 0;
  const struct nnd_end_of_program *input =
      name ? nnd_end_named(program->inputs, program->num_inputs, &name->text) : NULL;
  if (!input || input->info.dtype == NND_TEXT) return nnd_bad_image_input(error, "it is of no input");
  made->info.input = input->info.name, made->dtype = input->info.dtype;
  if (!nnd_json_integer(nnd_json_member(said, "height"), 1, NND_MOST_PIXELS, &made->info.height) ||
      !nnd_json_integer(nnd_json_member(said, "width"), 1, NND_MOST_PIXELS, &made->info.width) ||
      made->info.height * made->info.width > NND_MOST_PIXELS)
    return nnd_bad_image_input(error, "a size");
  if (!nnd_read_order(said, made)) return nnd_bad_image_input(error, "channels or a layout");
  if (!nnd_read_floats(nnd_json_member(said, "mean"), made->channels, made->mean) ||
      !nnd_read_floats(nnd_json_member(said, "std"), made->channels, made->std))
    return nnd_bad_image_input(error, "a mean or a standard deviation");
  for (int c = 0; c < made->channels; c++)
    if (made->std[c] == 0) return nnd_bad_image_input(error, "a standard deviation of 0 cannot be divided by");
  *way = made;
  return nnd_read_labels(program, nnd_json_member(said, "labels"), made, error);
}

/* What one pass does: for each place of what comes out the first place that is read, how many, and their weights. */
struct nnd_pass {
  int64_t size, most;
  int32_t *first, *count, *weights;
};

static int64_t nnd_pass_bytes(int64_t from, int64_t to, int64_t *most) {
  const double scale = (double)from / (double)to;
  *most = (int64_t)ceil(scale > 1 ? scale : 1) * 2 + 1;
  return to * (*most + 2) * (int64_t)sizeof(int32_t);
}

/* Fills a pass from `from` places to `to`: each is a mean of those under a triangle around its middle. */
static void nnd_fill_pass(struct nnd_pass *pass, int64_t from, int64_t to, int64_t most, int32_t *memory) {
  const double scale = (double)from / (double)to, support = scale > 1 ? scale : 1;
  *pass = (struct nnd_pass){to, most, memory, memory + to, memory + 2 * to};
  for (int64_t i = 0; i < to; i++) {
    const double middle = ((double)i + 0.5) * scale;
    int64_t begin = (int64_t)(middle - support + 0.5), end = (int64_t)(middle + support + 0.5);
    int32_t *weights = pass->weights + i * most;
    double sum = 0;
    if (begin < 0) begin = 0;
    if (end > from) end = from;
    if (end - begin > most) end = begin + most;
    for (int64_t x = begin; x < end; x++) {
      const double apart = fabs(((double)x - middle + 0.5) / support);
      sum += apart < 1 ? 1 - apart : 0;
    }
    for (int64_t x = begin; x < end; x++) {
      const double apart = fabs(((double)x - middle + 0.5) / support), weight = apart < 1 ? 1 - apart : 0;
      weights[x - begin] = (int32_t)(0.5 + (sum > 0 ? weight / sum : weight) * (1 << NND_WEIGHT_BITS));
    }
    pass->first[i] = (int32_t)begin, pass->count[i] = (int32_t)(end - begin);
  }
}

/* Sums places that lie `stride` bytes from each other. */
static uint8_t nnd_weighted(const struct nnd_pass *pass, int64_t at, const uint8_t *from, int64_t stride) {
  const int32_t *weights = pass->weights + at * pass->most;
  int64_t sum = 1 << (NND_WEIGHT_BITS - 1);
  for (int32_t i = 0; i < pass->count[at]; i++) sum += (int64_t)from[i * stride] * weights[i];
  sum >>= NND_WEIGHT_BITS;
  return (uint8_t)(sum > 255 ? 255 : sum);
}

/* Makes pixels grey, or RGB. */
static void nnd_convert(const uint8_t *from, int64_t count, int from_channels, int to_channels, uint8_t *to) {
  for (int64_t i = 0; i < count; i++, from += from_channels) {
    if (to_channels == 3)
      for (int c = 0; c < 3; c++) *to++ = from[c];
    else /* ITU-R BT.601, in 16 bits */
      *to++ = (uint8_t)((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
  }
}

/* Changes the width of `height` rows of `width` pixels. */
static void nnd_run_across(const struct nnd_pass *pass, const uint8_t *from, int64_t height, int64_t width,
                           int channels, uint8_t *to) {
  for (int64_t y = 0; y < height; y++, from += width * channels)
    for (int64_t x = 0; x < pass->size; x++)
      for (int c = 0; c < channels; c++)
        *to++ = nnd_weighted(pass, x, from + (int64_t)pass->first[x] * channels + c, channels);
}

/* Changes the number of rows. */
static void nnd_run_down(const struct nnd_pass *pass, const uint8_t *from, int64_t row_bytes, uint8_t *to) {
  for (int64_t y = 0; y < pass->size; y++)
    for (int64_t i = 0; i < row_bytes; i++)
      *to++ = nnd_weighted(pass, y, from + (int64_t)pass->first[y] * row_bytes + i, row_bytes);
}

/* An image of 8 bits on its way. */
struct nnd_pixels {
  const uint8_t *data;
  int64_t height, width;
  int channels;
};

/* The memory of a resize: passes, the image in other channels, resized along one side, and along both. */
struct nnd_resize {
  struct nnd_pass across, down;
  uint8_t *converted, *half, *whole;
};

static int64_t nnd_lines(int64_t bytes) { return (bytes + NND_LINE - 1) / NND_LINE * NND_LINE; }

static int nnd_prepare_resize(nnd_call *call, const struct nnd_pixels *from, const nnd_image_info *to, int channels,
                              struct nnd_resize *resize, nnd_error *error) {
  struct nnd_image_memory *memory = &call->image;
  int64_t most_across, most_down;
  const int64_t across = nnd_lines(nnd_pass_bytes(from->width, to->width, &most_across));
  const int64_t down = nnd_lines(nnd_pass_bytes(from->height, to->height, &most_down));
  const int64_t converted = from->channels == channels ? 0 : nnd_lines(from->height * from->width * channels);
  const int64_t rows = from->height * to->width, columns = to->height * from->width;
  const int64_t half = nnd_lines((rows > columns ? rows : columns) * channels);
  const int64_t bytes = across + down + converted + half + to->height * to->width * channels;
  if (!nnd_have(&memory->pixels, &memory->pixels_bytes, bytes, error)) return 0;
  char *at = memory->pixels;
  nnd_fill_pass(&resize->across, from->width, to->width, most_across, (int32_t *)at);
  nnd_fill_pass(&resize->down, from->height, to->height, most_down, (int32_t *)(at + across));
  resize->converted = (uint8_t *)at + across + down;
  resize->half = resize->converted + converted, resize->whole = resize->half + half;
  return 1;
}

/* Returns the pixels in the size of the input. */
static const uint8_t *nnd_resized(const struct nnd_resize *resize, const struct nnd_pixels *from,
                                  const nnd_image_info *to, int channels) {
  const uint8_t *data = from->data;
  const int changes_width = from->width != to->width, changes_height = from->height != to->height;
  const int64_t lost = from->height - to->height;
  const int is_down_first = changes_height && lost > 0 && lost > (from->width - to->width) * 2;
  int64_t height = from->height;
  if (from->channels != channels) {
    nnd_convert(data, from->height * from->width, from->channels, channels, resize->converted);
    data = resize->converted;
  }
  if (is_down_first) {
    nnd_run_down(&resize->down, data, from->width * channels, resize->half);
    data = resize->half, height = to->height;
  }
  if (changes_width) {
    uint8_t *to_here = data == resize->half ? resize->whole : resize->half;
    nnd_run_across(&resize->across, data, height, from->width, channels, to_here);
    data = to_here;
  }
  if (!changes_height || is_down_first) return data;
  nnd_run_down(&resize->down, data, to->width * channels, resize->whole);
  return resize->whole;
}

/* Writes an element of the input; whole numbers are the nearest, inside of their type. */
static void nnd_put_value(void *values, nnd_dtype dtype, int64_t at, float value) {
  static const double least[] = {0, INT32_MIN, -0x1p63, 0, 0, INT8_MIN};
  static const double most[] = {0, INT32_MAX, 0x1.fffffffffffffp62, 1, UINT8_MAX, INT8_MAX};
  const double nearest = nearbyint((double)value);
  if (dtype == NND_FLOAT32) ((float *)values)[at] = value;
  if (dtype == NND_FLOAT64) ((double *)values)[at] = (double)value;
  if (dtype == NND_FLOAT16) ((uint16_t *)values)[at] = nnd_to_half((double)value);
  if (dtype == NND_BOOL) ((uint8_t *)values)[at] = value != 0;
  if (dtype == NND_FLOAT32 || dtype == NND_FLOAT64 || dtype == NND_FLOAT16 || dtype == NND_BOOL) return;
  const double inside = nearest < least[dtype] ? least[dtype] : nearest > most[dtype] ? most[dtype] : nearest;
  if (dtype == NND_INT64) ((int64_t *)values)[at] = (int64_t)inside;
  if (dtype == NND_INT32) ((int32_t *)values)[at] = (int32_t)inside;
  if (dtype == NND_INT8) ((int8_t *)values)[at] = (int8_t)inside;
  if (dtype == NND_UINT8) ((uint8_t *)values)[at] = (uint8_t)inside;
}

/* Scales pixels of one or three channels, in the order and layout of the input. */
static void nnd_scale(const struct nnd_image_way *way, const uint8_t *pixels, int channels, void *values) {
  const int64_t count = way->info.height * way->info.width;
  for (int64_t i = 0; i < count; i++)
    for (int c = 0; c < way->channels; c++) {
      const int from = channels == 1 ? 0 : way->is_bgr ? 2 - c : c;
      const float value = ((float)pixels[i * channels + from] - way->mean[c]) / way->std[c];
      nnd_put_value(values, way->dtype, way->is_planar ? c * count + i : i * way->channels + c, value);
    }
}

int nnd_set_image(nnd_call *call, const uint8_t *pixels, int64_t height, int64_t width, int channels,
                  nnd_error *error) {
  const struct nnd_image_way *way = call->program->image;
  struct nnd_resize resize;
  if (!way)
    return nnd_fail_with(error, NND_BAD_DATA,
                         "this bundle does not say how an image becomes an input (hint: compile it with --image)");
  if (height < 1 || width < 1 || height > NND_MOST_PIXELS || width > NND_MOST_PIXELS ||
      height * width > NND_MOST_PIXELS || (channels != 1 && channels != 3 && channels != 4))
    return nnd_fail_with(error, NND_BAD_DATA, "an image of %lld x %lld pixels and %d channels is not taken",
                         (long long)width, (long long)height, channels);
  const nnd_image_info *to = &way->info;
  const struct nnd_pixels from = {pixels, height, width, channels};
  const int kept = channels == 1 ? 1 : way->channels;
  const int64_t shape[] = {1, way->is_planar ? way->channels : to->height, way->is_planar ? to->height : to->width,
                           way->is_planar ? to->width : way->channels};
  if (!nnd_prepare_resize(call, &from, to, kept, &resize, error) ||
      !nnd_have(&call->image.values, &call->image.values_bytes, nnd_bytes_in(way->dtype, 4, shape), error))
    return 0;
  nnd_scale(way, nnd_resized(&resize, &from, to, kept), kept, call->image.values);
  return nnd_set_input(call, to->input, &(nnd_tensor){way->dtype, 4, shape, call->image.values}, error);
}

const nnd_image_info *nnd_image(const nnd_program *program) { return program->image ? &program->image->info : NULL; }
