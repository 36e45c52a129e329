/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/bundle.h"

#include <string.h>

#define NND_MANIFEST "manifest.json"
#define NND_MOST_MANIFEST ((int64_t)4 << 20)
#define NND_MAJOR 1
#define NND_MINOR 9
#define NND_MOST_BYTES_OF_VALUE ((int64_t)1 << 46)

static const struct {
  const char *name;
  int64_t bytes;
} nnd_types[] = {{"float32", 4}, {"int32", 4}, {"int64", 8}, {"bool", 1}, {"uint8", 1}, {"int8", 1}, {"float16", 2}};

#define NND_NUM_TYPES ((int)(sizeof nnd_types / sizeof *nnd_types))

int64_t nnd_bytes_of(nnd_dtype dtype) { return (int)dtype < NND_NUM_TYPES ? nnd_types[dtype].bytes : 0; }

int nnd_dtype_named(const struct nnd_json *name, nnd_dtype *dtype) {
  for (int i = 0; name && name->kind == NND_STRING && i < NND_NUM_TYPES; i++)
    if (nnd_is_text(&name->text, nnd_types[i].name)) return *dtype = (nnd_dtype)i, 1;
  return 0;
}

int nnd_shape_of(const struct nnd_json *sizes, int *rank, int64_t shape[NND_MAX_RANK], struct nnd_text *symbols) {
  if (!nnd_json_of_kind(sizes, NND_ARRAY) || sizes->count > NND_MAX_RANK) return 0;
  *rank = 0;
  NND_EACH(size, sizes) {
    if (symbols) symbols[*rank] = size->kind == NND_STRING ? size->text : (struct nnd_text){"", 0};
    if (size->kind == NND_NULL || (symbols && size->kind == NND_STRING)) {
      shape[*rank] = -1;
    } else if (!nnd_json_integer(size, 0, (int64_t)1 << 40, &shape[*rank])) {
      return 0;
    }
    ++*rank;
  }
  return 1;
}

int64_t nnd_bytes_in(nnd_dtype dtype, int rank, const int64_t *shape) {
  int64_t bytes = nnd_bytes_of(dtype);
  for (int i = 0; i < rank; i++)
    if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > NND_MOST_BYTES_OF_VALUE) return -1;
  return bytes;
}

static int nnd_check_format(const struct nnd_json *manifest, nnd_error *error) {
  const struct nnd_json *format = nnd_json_member(manifest, "format");
  const struct nnd_json *name = nnd_json_of_kind(nnd_json_member(format, "name"), NND_STRING);
  int64_t major, minor;
  if (!name || !nnd_is_text(&name->text, "nndeploy-bundle") ||
      !nnd_json_integer(nnd_json_member(format, "major"), 0, 1 << 20, &major) ||
      !nnd_json_integer(nnd_json_member(format, "minor"), 0, 1 << 20, &minor))
    return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: manifest.json is not that of a bundle");
  if (major != NND_MAJOR)
    return nnd_fail_with(error, NND_UNAVAILABLE, "a bundle of format %d.%d; this reads %d.%d (hint: a newer runtime)",
                         (int)major, (int)minor, NND_MAJOR, NND_MINOR);
  return 1;
}

int nnd_bundle_open(struct nnd_bundle *bundle, nnd_error *error) {
  static const struct nnd_text manifest = {NND_MANIFEST, sizeof NND_MANIFEST - 1};
  if (!nnd_container_read(&bundle->container, &bundle->arena, error)) return 0;
  const struct nnd_member *member = nnd_member_named(&bundle->container, &manifest);
  if (!member || member->size > NND_MOST_MANIFEST)
    return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: a ZIP archive without a manifest");
  char *text = nnd_arena_take(&bundle->arena, member->size, error);
  if (!text || !nnd_source_read(&bundle->container.source, member->offset, member->size, text, error)) return 0;
  if (nnd_crc32(text, member->size) != member->crc32)
    return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: manifest.json is damaged (hint: copy the bundle again)");
  bundle->manifest = nnd_json_parse(text, member->size, &bundle->arena, error);
  return bundle->manifest ? nnd_check_format(bundle->manifest, error) : 0;
}

void nnd_bundle_close(struct nnd_bundle *bundle) {
  nnd_source_close(&bundle->container.source);
  nnd_arena_free(&bundle->arena);
}

static const struct nnd_json *nnd_listed(const struct nnd_json *list, const struct nnd_text *name) {
  NND_EACH(item, nnd_json_of_kind(list, NND_OBJECT)) {
    if (item->key.size == name->size && !memcmp(item->key.data, name->data, (size_t)name->size)) return item;
  }
  return NULL;
}

uint8_t *nnd_bundle_member(struct nnd_bundle *bundle, const struct nnd_text *name, int64_t *size, nnd_error *error) {
  const struct nnd_member *member = nnd_member_named(&bundle->container, name);
  const struct nnd_json *listed = nnd_listed(nnd_json_member(bundle->manifest, "members"), name);
  const struct nnd_json *wanted = nnd_json_of_kind(nnd_json_member(listed, "sha256"), NND_STRING);
  int64_t said;
  if (!member || !wanted || !nnd_json_integer(nnd_json_member(listed, "size_bytes"), 0, INT64_MAX, &said) ||
      said != member->size) {
    nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: it has no %.*s as its manifest says", (int)name->size, name->data);
    return NULL;
  }
  if (nnd_listed(nnd_json_member(bundle->manifest, "compressed"), name)) {
    nnd_fail_with(error, NND_UNAVAILABLE, "%.*s is stored compressed, which is not read here", (int)name->size,
                  name->data);
    return NULL;
  }
  uint8_t *data = nnd_pages_take(member->size + 1);
  if (!data) {
    nnd_fail_with(error, NND_NO_MEMORY, "no memory for %lld bytes", (long long)member->size);
    return NULL;
  }
  struct nnd_sha256 hash;
  char found[65];
  nnd_sha256_begin(&hash);
  for (int64_t done = 0; done < member->size;) { /* in parts that the cache still holds when they are hashed */
    const int64_t left = member->size - done, part = left < 1 << 18 ? left : 1 << 18;
    if (!nnd_source_read(&bundle->container.source, member->offset + done, part, data + done, error)) {
      nnd_pages_free(data, member->size + 1);
      return NULL;
    }
    nnd_sha256_add(&hash, data + done, part);
    done += part;
  }
  nnd_sha256_text(&hash, found);
  if (!nnd_is_text(&wanted->text, found)) {
    nnd_pages_free(data, member->size + 1);
    nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: %.*s is damaged: its SHA-256 is another (hint: copy the bundle again)",
                  (int)name->size, name->data);
    return NULL;
  }
  *size = member->size;
  return data;
}

static int nnd_order_of_file(const struct nnd_json *header, const struct nnd_text *key, int64_t size, int64_t begin,
                             int64_t *offset) {
  const struct nnd_json *places = nnd_json_member(nnd_listed(header, key), "data_offsets");
  int64_t end;
  if (!places || places->count != 2 || !nnd_json_integer(places->first, 0, INT64_MAX / 2, offset) ||
      !nnd_json_integer(places->first->next, 0, INT64_MAX / 2, &end) || end - *offset != size)
    return 0;
  *offset += begin;
  return 1;
}

int nnd_bundle_values(struct nnd_bundle *bundle, const struct nnd_text *member, struct nnd_held **values, int *count,
                      nnd_error *error) {
  int64_t size, header_bytes = 0, i = 0;
  uint8_t *whole = nnd_bundle_member(bundle, member, &size, error);
  if (!whole) return 0;
  uint8_t *data = nnd_arena_take(&bundle->arena, size + NND_LINE, error);
  if (data) memcpy(data, whole, (size_t)size);
  nnd_pages_free(whole, size + 1);
  if (!data) return 0;
  for (int b = 0; b < 8 && size >= 8; b++) header_bytes |= (int64_t)data[b] << 8 * b;
  if (size < 8 || header_bytes < 0 || header_bytes > size - 8)
    return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: %.*s holds no values", (int)member->size, member->data);
  const struct nnd_json *header = nnd_json_parse((const char *)data + 8, header_bytes, &bundle->arena, error);
  const struct nnd_json *text = nnd_json_member(nnd_json_member(header, "__metadata__"), "nndeploy.values.1");
  if (!nnd_json_of_kind(text, NND_STRING))
    return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: %.*s holds no values", (int)member->size, member->data);
  const struct nnd_json *tree = nnd_json_parse(text->text.data, text->text.size, &bundle->arena, error);
  if (!nnd_json_of_kind(tree, NND_OBJECT)) return 0;
  *values = nnd_arena_take(&bundle->arena, tree->count * (int64_t)sizeof **values, error);
  if (!*values) return 0;
  NND_EACH(node, tree) {
    struct nnd_held *one = &(*values)[i++];
    const struct nnd_json *kind = nnd_json_of_kind(nnd_json_member(node, "kind"), NND_STRING);
    const struct nnd_json *key = nnd_json_of_kind(nnd_json_member(node, "data"), NND_STRING);
    int64_t offset, bytes;
    one->name = node->key;
    if (!kind || !key || !nnd_is_text(&kind->text, "tensor") ||
        !nnd_dtype_named(nnd_json_member(node, "dtype"), &one->dtype))
      return nnd_fail_with(error, NND_UNAVAILABLE, "the value %.*s is of a type that is not run here",
                           (int)node->key.size, node->key.data);
    if (!nnd_shape_of(nnd_json_member(node, "shape"), &one->rank, one->shape, NULL) ||
        (bytes = nnd_bytes_in(one->dtype, one->rank, one->shape)) < 0 ||
        !nnd_order_of_file(header, &key->text, bytes, 8 + header_bytes, &offset) || offset + bytes > size)
      return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: %.*s holds no values", (int)member->size, member->data);
    uint8_t *aligned = nnd_arena_take(&bundle->arena, bytes, error);
    if (!aligned) return 0;
    memcpy(aligned, data + offset, (size_t)bytes);
    one->data = aligned;
  }
  *count = (int)i;
  return 1;
}
