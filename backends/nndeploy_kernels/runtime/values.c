/* SPDX-License-Identifier: Apache-2.0
 *
 * A member that holds values (`nndeploy/bundle/values.py`): a safetensors file, and in its header a tree that says which
 * of its tensors, which texts and which maps stand under which name.
 */
#include <string.h>

#include "runtime/bundle.h"

/* A member while it is read. */
struct nnd_values {
  struct nnd_arena *arena;
  const struct nnd_text *member;
  const struct nnd_json *header;
  const uint8_t *data;
  int64_t size, begin; /* `begin`: where tensors do */
  nnd_error *error;
};

static int nnd_no_values(const struct nnd_values *in) {
  return nnd_fail_with(in->error, NND_BAD_DATA, "bad-bundle: %.*s holds no values", (int)in->member->size,
                       in->member->data);
}

static int nnd_other_type(const struct nnd_values *in, const struct nnd_json *node) {
  return nnd_fail_with(in->error, NND_UNAVAILABLE, "the value %.*s is of a type that is not run here",
                       (int)node->key.size, node->key.data);
}

/* Finds where the bytes of a tensor begin. */
static int nnd_find_data(const struct nnd_values *in, const struct nnd_text *key, int64_t bytes, int64_t *offset) {
  const struct nnd_json *places = nnd_json_member(nnd_listed(in->header, key), "data_offsets");
  int64_t end;
  if (!places || places->count != 2 || !nnd_json_integer(places->first, 0, INT64_MAX / 2, offset) ||
      !nnd_json_integer(places->first->next, 0, INT64_MAX / 2, &end) || end - *offset != bytes)
    return 0;
  *offset += in->begin;
  return *offset + bytes <= in->size;
}

static int nnd_read_tensor(const struct nnd_values *in, const struct nnd_json *node, struct nnd_held *one) {
  const struct nnd_json *key = nnd_json_of_kind(nnd_json_member(node, "data"), NND_STRING);
  int64_t offset, bytes;
  if (!key || !nnd_dtype_named(nnd_json_member(node, "dtype"), &one->dtype) || one->dtype == NND_TEXT)
    return nnd_other_type(in, node);
  if (!nnd_sizes_of(nnd_json_member(node, "shape"), &one->rank, one->shape, NULL) ||
      (bytes = nnd_bytes_in(one->dtype, one->rank, one->shape)) < 0 || !nnd_find_data(in, &key->text, bytes, &offset))
    return nnd_no_values(in);
  uint8_t *aligned = nnd_arena_take(in->arena, bytes, in->error);
  if (!aligned) return 0;
  memcpy(aligned, in->data + offset, (size_t)bytes);
  one->data = aligned;
  return 1;
}

static int nnd_read_texts(const struct nnd_values *in, const struct nnd_json *node, struct nnd_held *one) {
  const struct nnd_json *items = nnd_json_of_kind(nnd_json_member(node, "items"), NND_ARRAY);
  one->dtype = NND_TEXT;
  if (!items || !nnd_sizes_of(nnd_json_member(node, "shape"), &one->rank, one->shape, NULL) ||
      nnd_bytes_in(NND_TEXT, one->rank, one->shape) != items->count * nnd_bytes_of(NND_TEXT))
    return nnd_no_values(in);
  const char **texts = nnd_arena_take(in->arena, items->count * (int64_t)sizeof *texts, in->error);
  if (!texts) return 0;
  one->data = texts;
  NND_EACH(item, items) {
    if (item->kind != NND_STRING) return nnd_other_type(in, node); /* no UTF-8 */
    *texts++ = item->text.data;
  }
  return 1;
}

/* Reads the keys of the first of some maps. */
static const nnd_tensor *nnd_read_keys(const struct nnd_values *in, const struct nnd_json *map) {
  const struct nnd_json *kind = nnd_json_of_kind(nnd_json_member(map, "key"), NND_STRING);
  const struct nnd_json *entries = nnd_json_of_kind(nnd_json_member(map, "entries"), NND_ARRAY);
  const int is_text = kind && nnd_is_text(&kind->text, "string");
  struct {
    nnd_tensor tensor;
    int64_t shape[1];
  } *keys = nnd_arena_take(in->arena, sizeof *keys, in->error);
  void *data = keys && entries ? nnd_arena_take(in->arena, entries->count * 8, in->error) : NULL;
  int64_t at = 0;
  if (!data || !kind) return NULL;
  NND_EACH(entry, entries) {
    const struct nnd_json *key = nnd_json_of_kind(entry, NND_ARRAY) ? entry->first : NULL;
    if (is_text && nnd_json_of_kind(key, NND_STRING))
      ((const char **)data)[at++] = key->text.data;
    else if (is_text || !nnd_json_integer(key, INT64_MIN, INT64_MAX, &((int64_t *)data)[at++]))
      return NULL;
  }
  keys->shape[0] = at;
  keys->tensor = (nnd_tensor){is_text ? NND_TEXT : NND_INT64, 1, keys->shape, data};
  return &keys->tensor;
}

/* Reads one map, whose keys are those of the first, into a row. */
static int nnd_read_row(const struct nnd_values *in, const struct nnd_json *map, const nnd_tensor *keys, float *row) {
  const struct nnd_json *entries = nnd_json_of_kind(nnd_json_member(map, "entries"), NND_ARRAY);
  int64_t at = 0;
  if (!entries || entries->count != keys->shape[0]) return 0;
  NND_EACH(entry, entries) {
    const struct nnd_json *key = nnd_json_of_kind(entry, NND_ARRAY) ? entry->first : NULL;
    const struct nnd_json *value = key ? key->next : NULL;
    struct nnd_held score = {.rank = -1};
    double number;
    int64_t integer;
    if (!value ||
        (keys->dtype == NND_TEXT
             ? key->kind != NND_STRING || !nnd_is_text(&key->text, ((const char *const *)keys->data)[at])
             : !nnd_json_integer(key, INT64_MIN, INT64_MAX, &integer) || integer != ((const int64_t *)keys->data)[at]))
      return 0;
    if (nnd_json_number(nnd_json_member(value, "value"), &number))
      row[at] = (float)number;
    else if (nnd_json_member(value, "data") && nnd_read_tensor(in, value, &score) && score.dtype == NND_FLOAT32 &&
             !score.rank)
      row[at] = *(const float *)score.data;
    else
      return 0;
    at++;
  }
  return 1;
}

static int nnd_read_maps(const struct nnd_values *in, const struct nnd_json *node, struct nnd_held *one) {
  const struct nnd_json *items = nnd_json_of_kind(nnd_json_member(node, "items"), NND_ARRAY);
  one->keys = items && items->first ? nnd_read_keys(in, items->first) : NULL;
  if (!one->keys) return nnd_other_type(in, node);
  one->dtype = NND_FLOAT32, one->rank = 2, one->shape[0] = items->count, one->shape[1] = one->keys->shape[0];
  const int64_t bytes = nnd_bytes_in(one->dtype, one->rank, one->shape);
  float *rows = bytes < 0 ? NULL : nnd_arena_take(in->arena, bytes, in->error);
  if (!rows) return 0;
  one->data = rows;
  NND_EACH(item, items) {
    if (!nnd_read_row(in, item, one->keys, rows)) return nnd_other_type(in, node);
    rows += one->shape[1];
  }
  return 1;
}

static int nnd_read_value(const struct nnd_values *in, const struct nnd_json *node, struct nnd_held *one) {
  const struct nnd_json *kind = nnd_json_of_kind(nnd_json_member(node, "kind"), NND_STRING);
  one->name = node->key;
  if (kind && nnd_is_text(&kind->text, "tensor")) return nnd_read_tensor(in, node, one);
  if (kind && nnd_is_text(&kind->text, "strings")) return nnd_read_texts(in, node, one);
  return kind && nnd_is_text(&kind->text, "sequence") ? nnd_read_maps(in, node, one) : nnd_other_type(in, node);
}

/* Reads the tree of names; returns null and the error. */
static const struct nnd_json *nnd_tree_of(struct nnd_values *in) {
  uint64_t said = 0;
  for (int b = 0; b < 8 && in->size >= 8; b++) said |= (uint64_t)in->data[b] << 8 * b;
  if (in->size < 8 || said > (uint64_t)in->size - 8) return NULL;
  const int64_t header_bytes = (int64_t)said;
  in->begin = 8 + header_bytes;
  in->header = nnd_json_parse((const char *)in->data + 8, header_bytes, in->arena, in->error);
  const struct nnd_json *text = nnd_json_member(nnd_json_member(in->header, "__metadata__"), "nndeploy.values.1");
  if (!nnd_json_of_kind(text, NND_STRING)) return NULL;
  return nnd_json_of_kind(nnd_json_parse(text->text.data, text->text.size, in->arena, in->error), NND_OBJECT);
}

int nnd_bundle_values(struct nnd_bundle *bundle, const struct nnd_text *member, struct nnd_held **values, int *count,
                      nnd_error *error) {
  struct nnd_values in = {.arena = &bundle->arena, .member = member, .error = error};
  uint8_t *whole = nnd_bundle_member(bundle, member, &in.size, error);
  if (!whole) return 0;
  uint8_t *data = nnd_arena_take(&bundle->arena, in.size + NND_LINE, error);
  if (data) memcpy(data, whole, (size_t)in.size);
  nnd_pages_free(whole, in.size + 1);
  if (!data) return 0;
  in.data = data;
  const struct nnd_json *tree = nnd_tree_of(&in);
  if (!tree) return nnd_no_values(&in);
  *values = nnd_arena_take(&bundle->arena, tree->count * (int64_t)sizeof **values, error);
  if (!*values) return 0;
  *count = 0;
  NND_EACH(node, tree) {
    if (!nnd_read_value(&in, node, &(*values)[(*count)++])) return 0;
  }
  return 1;
}
