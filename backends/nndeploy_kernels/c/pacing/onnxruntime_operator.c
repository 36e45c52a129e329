/* SPDX-License-Identifier: Apache-2.0
 *
 * The operator nndeploy.Pace of ONNX Runtime: y = x, the same memory, and a point that is passed.
 *
 *   x  any tensor      point (int)  the number of the point
 *
 * ONNX Runtime's wheel has no headers. What is declared here are the first entries of its C API, whose places are
 * promised never to change, and its structure of an operator as of version 18. Where the output is not the input's
 * memory the operator copies, so that no run fails, and tells a thread that watches: such a point is not worth it.
 * Source: onnxruntime_c_api.h of ONNX Runtime, "OrtApi", "OrtCustomOp", "ONNXTensorElementDataType".
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NND_EXPORT __attribute__((visibility("default")))
#define NND_API_VERSION 18
#define NND_MOST_AXES 64
#define NND_FAIL 1

void nnd_pace_pass(int64_t point);

typedef void *nnd_status; /* null: fine */

/* Places in struct OrtApi. */
enum {
  NND_CREATE_STATUS = 0,
  NND_CREATE_CUSTOM_OP_DOMAIN = 26,
  NND_CUSTOM_OP_DOMAIN_ADD = 27,
  NND_ADD_CUSTOM_OP_DOMAIN = 28,
  NND_GET_TENSOR_MUTABLE_DATA = 51,
  NND_GET_TENSOR_ELEMENT_TYPE = 60,
  NND_GET_DIMENSIONS_COUNT = 61,
  NND_GET_DIMENSIONS = 62,
  NND_GET_TENSOR_TYPE_AND_SHAPE = 65,
  NND_KERNEL_INFO_GET_ATTRIBUTE_INT64 = 86,
  NND_KERNEL_CONTEXT_GET_INPUT = 90,
  NND_KERNEL_CONTEXT_GET_OUTPUT = 91,
  NND_RELEASE_TENSOR_TYPE_AND_SHAPE_INFO = 99,
};

typedef void *const *nnd_api;

struct nnd_api_base {
  nnd_api (*get_api)(uint32_t version);
  const char *(*get_version)(void);
};

/* struct OrtCustomOp of version 18. */
struct nnd_operator {
  uint32_t version;
  void *(*create_kernel)(const struct nnd_operator *, nnd_api, const void *info);
  const char *(*name)(const struct nnd_operator *);
  const char *(*provider)(const struct nnd_operator *);
  int (*input_type)(const struct nnd_operator *, size_t);
  size_t (*num_inputs)(const struct nnd_operator *);
  int (*output_type)(const struct nnd_operator *, size_t);
  size_t (*num_outputs)(const struct nnd_operator *);
  void (*compute)(void *kernel, void *context);
  void (*destroy)(void *kernel);
  int (*input_kind)(const struct nnd_operator *, size_t);
  int (*output_kind)(const struct nnd_operator *, size_t);
  int (*input_memory)(const struct nnd_operator *, size_t);
  int (*variadic_input_least)(const struct nnd_operator *);
  int (*variadic_input_same)(const struct nnd_operator *);
  int (*variadic_output_least)(const struct nnd_operator *);
  int (*variadic_output_same)(const struct nnd_operator *);
  nnd_status (*create_kernel_2)(const struct nnd_operator *, nnd_api, const void *info, void **kernel);
  nnd_status (*compute_2)(void *kernel, void *context);
  nnd_status (*infer_shape)(const struct nnd_operator *, void *context);
  int (*first_version)(const struct nnd_operator *);
  int (*last_version)(const struct nnd_operator *);
  size_t (*may_inplace)(int **inputs, int **outputs);
  void (*release_may_inplace)(int *inputs, int *outputs);
  size_t (*aliases)(int **inputs, int **outputs);
  void (*release_aliases)(int *inputs, int *outputs);
};

struct nnd_kernel {
  nnd_api api;
  int64_t point;
};

/* What ONNX Runtime hands to every function of a kind, and this one has no use for. */
#define NND_UNUSED __attribute__((unused))
#define NND_CALL(api, entry, ...) ((nnd_status (*)(__VA_ARGS__))(api)[entry])

static const char *nnd_name(NND_UNUSED const struct nnd_operator *self) { return "Pace"; }
static const char *nnd_provider(NND_UNUSED const struct nnd_operator *self) { return NULL; }
static int nnd_any(NND_UNUSED const struct nnd_operator *self, NND_UNUSED size_t index) { return 0; }
static size_t nnd_one(NND_UNUSED const struct nnd_operator *self) { return 1; }
static int nnd_zero(NND_UNUSED const struct nnd_operator *self, NND_UNUSED size_t index) { return 0; }
static int nnd_is_one(NND_UNUSED const struct nnd_operator *self) { return 1; }
static int nnd_newest(NND_UNUSED const struct nnd_operator *self) { return 1 << 20; }

static size_t nnd_aliases(int **inputs, int **outputs) {
  static int first[1] = {0};
  *inputs = *outputs = first;
  return 1;
}

static void nnd_keep(NND_UNUSED int *inputs, NND_UNUSED int *outputs) {}

static size_t nnd_none(int **inputs, int **outputs) {
  *inputs = *outputs = NULL;
  return 0;
}

static nnd_status nnd_create(NND_UNUSED const struct nnd_operator *self, nnd_api api, const void *info, void **made) {
  struct nnd_kernel *kernel = calloc(1, sizeof *kernel);
  *made = kernel;
  if (!kernel) abort();
  kernel->api = api;
  return NND_CALL(api, NND_KERNEL_INFO_GET_ATTRIBUTE_INT64, const void *, const char *, int64_t *)(info, "point",
                                                                                                   &kernel->point);
}

/* Of each element type, by its number: how many bits it takes; 0: none that can be copied as bytes, or unknown. */
static const uint8_t nnd_bits[] = {0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4};

/* By point, how often it copied on this thread; null: nobody watches. */
static _Thread_local int64_t *nnd_copies;
static _Thread_local int64_t nnd_num_copies;

/* Counts from now on what points of this thread copy; ends with null. */
NND_EXPORT void nnd_pace_watch(int64_t *copies, int64_t num_points) {
  nnd_copies = copies;
  nnd_num_copies = copies ? num_points : 0;
}

static nnd_status nnd_copied(const struct nnd_kernel *kernel, const void *shape, const int64_t *sizes, size_t axes,
                             const void *from, void *to) {
  nnd_api api = kernel->api;
  int type = 0;
  nnd_status status = NND_CALL(api, NND_GET_TENSOR_ELEMENT_TYPE, const void *, int *)(shape, &type);
  if (status) return status;
  int64_t count = 1;
  for (size_t i = 0; i < axes; i++) count *= sizes[i];
  if (count == 0) return NULL;
  if (kernel->point < nnd_num_copies) nnd_copies[kernel->point]++;
  if (type < 0 || type >= (int)sizeof nnd_bits || !nnd_bits[type])
    return NND_CALL(api, NND_CREATE_STATUS, int, const char *)(NND_FAIL, "a pace point cannot copy this type");
  memcpy(to, from, ((size_t)count * nnd_bits[type] + 7) / 8);
  return NULL;
}

static nnd_status nnd_compute(void *self, void *context) {
  const struct nnd_kernel *kernel = self;
  nnd_api api = kernel->api;
  const void *input = NULL;
  void *shape = NULL, *output = NULL, *from = NULL, *to = NULL;
  size_t axes = 0;
  int64_t sizes[NND_MOST_AXES];
  nnd_status status =
      NND_CALL(api, NND_KERNEL_CONTEXT_GET_INPUT, const void *, size_t, const void **)(context, 0, &input);
  if (!status) status = NND_CALL(api, NND_GET_TENSOR_TYPE_AND_SHAPE, const void *, void **)(input, &shape);
  if (status) return status;
  status = NND_CALL(api, NND_GET_DIMENSIONS_COUNT, const void *, size_t *)(shape, &axes);
  if (!status && axes > NND_MOST_AXES) abort();
  if (!status) status = NND_CALL(api, NND_GET_DIMENSIONS, const void *, int64_t *, size_t)(shape, sizes, axes);
  if (!status)
    status = NND_CALL(api, NND_KERNEL_CONTEXT_GET_OUTPUT, void *, size_t, const int64_t *, size_t, void **)(
        context, 0, sizes, axes, &output);
  if (!status) status = NND_CALL(api, NND_GET_TENSOR_MUTABLE_DATA, const void *, void **)(input, &from);
  if (!status) status = NND_CALL(api, NND_GET_TENSOR_MUTABLE_DATA, void *, void **)(output, &to);
  if (!status && from != to) status = nnd_copied(kernel, shape, sizes, axes, from, to);
  ((void (*)(void *))api[NND_RELEASE_TENSOR_TYPE_AND_SHAPE_INFO])(shape);
  if (!status) nnd_pace_pass(kernel->point);
  return status;
}

static const struct nnd_operator nnd_pace_operator = {
    .version = NND_API_VERSION,
    .name = nnd_name,
    .provider = nnd_provider,
    .input_type = nnd_any,
    .num_inputs = nnd_one,
    .output_type = nnd_any,
    .num_outputs = nnd_one,
    .destroy = free,
    .input_kind = nnd_zero,
    .output_kind = nnd_zero,
    .input_memory = nnd_zero,
    .variadic_input_least = nnd_is_one,
    .variadic_input_same = nnd_is_one,
    .variadic_output_least = nnd_is_one,
    .variadic_output_same = nnd_is_one,
    .create_kernel_2 = nnd_create,
    .compute_2 = nnd_compute,
    .first_version = nnd_is_one,
    .last_version = nnd_newest,
    .may_inplace = nnd_none,
    .release_may_inplace = nnd_keep,
    .aliases = nnd_aliases,
    .release_aliases = nnd_keep,
};

/* What ONNX Runtime calls when it loads this library: its options get the operator. The domain lives as long as the
 * process, as does this library. */
NND_EXPORT nnd_status RegisterCustomOps(void *options, const struct nnd_api_base *base) {
  static void *domain;
  nnd_api api = base->get_api(NND_API_VERSION);
  nnd_status status = NULL;
  if (!domain) {
    status = NND_CALL(api, NND_CREATE_CUSTOM_OP_DOMAIN, const char *, void **)("nndeploy", &domain);
    if (!status) status = NND_CALL(api, NND_CUSTOM_OP_DOMAIN_ADD, void *, const void *)(domain, &nnd_pace_operator);
  }
  return status ? status : NND_CALL(api, NND_ADD_CUSTOM_OP_DOMAIN, void *, void *)(options, domain);
}
