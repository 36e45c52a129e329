/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/bundle.h"

#include "runtime/canonical.h"
#include "runtime/expand.h"
#include "runtime/fit.h"
#include "runtime/form.h"

#include <string.h>

#define NND_MANIFEST "manifest.json"
#define NND_SIGNATURE "signature"
#define NND_MOST_SIGNATURE ((int64_t)4 << 20)
#define NND_MOST_MANIFEST ((int64_t)4 << 20)
#define NND_MOST_BASES 32
#define NND_MOST_BYTES_OF_VALUE ((int64_t)1 << 46)

static const struct {
  const char *name;
  int64_t bytes;
} nnd_types[] = {{"float32", 4}, {"int32", 4},   {"int64", 8},
                 {"bool", 1},    {"uint8", 1},   {"int8", 1},
                 {"float16", 2}, {"float64", 8}, {"string", (int64_t)sizeof(char *)}};

#define NND_NUM_TYPES (sizeof nnd_types / sizeof *nnd_types)

int64_t nnd_bytes_of(nnd_dtype dtype) { return (unsigned)dtype < NND_NUM_TYPES ? nnd_types[dtype].bytes : 0; }

const char *nnd_dtype_name(nnd_dtype dtype) { return (unsigned)dtype < NND_NUM_TYPES ? nnd_types[dtype].name : NULL; }

int nnd_dtype_named(const struct nnd_json *name, nnd_dtype *dtype) {
  for (int i = 0; name && name->kind == NND_STRING && i < (int)NND_NUM_TYPES; i++)
    if (nnd_is_text(&name->text, nnd_types[i].name)) return *dtype = (nnd_dtype)i, 1;
  return 0;
}

int nnd_sizes_of(const struct nnd_json *sizes, int *rank, int64_t shape[NND_MAX_RANK], struct nnd_text *symbols) {
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

void nnd_be_maps(struct nnd_type *type, nnd_dtype keys) {
  *type = (struct nnd_type){.dtype = NND_FLOAT32, .keys = keys, .is_maps = 1, .rank = 2, .shape = {-1, -1}};
}

int nnd_type_of(const struct nnd_json *said, struct nnd_type *type) {
  const struct nnd_json *kind = nnd_json_of_kind(nnd_json_member(said, "kind"), NND_STRING);
  const struct nnd_json *sizes = nnd_json_member(said, "shape");
  *type = (struct nnd_type){0};
  if (!kind) return 0;
  if (nnd_is_text(&kind->text, "tensor")) {
    if (!nnd_dtype_named(nnd_json_member(said, "dtype"), &type->dtype)) return 0;
    if (sizes && sizes->kind == NND_NULL) return type->rank = -1, 1;
    return nnd_sizes_of(sizes, &type->rank, type->shape, type->symbols);
  }
  const struct nnd_json *map = nnd_json_member(said, "element"), *value = nnd_json_member(map, "value");
  struct nnd_type score;
  nnd_dtype keys;
  if (!nnd_is_text(&kind->text, "sequence") || !nnd_json_member(map, "value") ||
      !nnd_dtype_named(nnd_json_member(map, "key"), &keys) || (keys != NND_TEXT && keys != NND_INT64) ||
      !nnd_json_of_kind(nnd_json_member(value, "shape"), NND_ARRAY) || !nnd_type_of(value, &score) || score.is_maps ||
      score.dtype != NND_FLOAT32 || score.rank)
    return 0;
  nnd_be_maps(type, keys);
  return 1;
}

int64_t nnd_bytes_in(nnd_dtype dtype, int rank, const int64_t *shape) {
  int64_t bytes = nnd_bytes_of(dtype);
  for (int i = 0; i < rank; i++)
    if (shape[i] < 0 || __builtin_mul_overflow(bytes, shape[i], &bytes) || bytes > NND_MOST_BYTES_OF_VALUE) return -1;
  return bytes;
}

static uint8_t *nnd_pages_or_error(int64_t bytes, nnd_error *error) {
  uint8_t *data = bytes < 0 || bytes >= NND_MOST_BYTES_OF_VALUE ? NULL : nnd_pages_take(bytes + 1);
  if (!data) nnd_fail_with(error, NND_NO_MEMORY, "no memory for %lld bytes", (long long)bytes);
  return data;
}

int nnd_bundle_unlisted(const struct nnd_bundle *bundle, const struct nnd_member *member, void *target,
                        nnd_error *error) {
  if (!nnd_source_read(&bundle->container.source, member->offset, member->size, target, error)) return 0;
  if (nnd_crc32(target, member->size) == member->crc32) return 1;
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: %s: damaged: its CRC-32 is not that of its data",
                       member->name);
}

/* Checks a member that the manifest does not list: the manifest itself, signatures. */
static int nnd_check_unlisted(const struct nnd_bundle *bundle, const struct nnd_member *member, nnd_error *error) {
  uint8_t *data = nnd_pages_or_error(member->size, error);
  const int is_right = data && nnd_bundle_unlisted(bundle, member, data, error);
  if (data) nnd_pages_free(data, member->size + 1);
  return is_right;
}

/* Checks that a container holds what its manifest lists, in the sizes listed, and beside it a signature at most. */
static int nnd_check_lists(const struct nnd_bundle *bundle, nnd_error *error) {
  const struct nnd_json *listed = nnd_json_member(bundle->manifest, "members");
  const struct nnd_container *container = &bundle->container;
  int64_t at = 0;
  const struct nnd_json *item = listed->first;
  for (; at < container->count || item;) {
    const struct nnd_member *member = at < container->count ? &container->members[at] : NULL;
    const struct nnd_text name = {member ? member->name : "", member ? (int64_t)strlen(member->name) : 0};
    const int order = !member ? 1 : !item ? -1 : nnd_text_order(&name, &item->key);
    if (order < 0 && !nnd_is_text(&name, NND_MANIFEST) && !nnd_is_text(&name, NND_SIGNATURE))
      return nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "the manifest does not list the member '%s'",
                           member->name);
    at += order <= 0;
    if (order >= 0) item = item->next;
  }
  NND_EACH(one, listed) {
    if (!nnd_member_named(container, &one->key))
      return nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "the member '%s', which the manifest lists, is missing",
                           one->key.data);
  }
  NND_EACH(one, listed) {
    const int64_t size = nnd_json_member(one, "size_bytes")->integer;
    const int64_t found = nnd_member_named(container, &one->key)->size;
    if (found != size)
      return nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "%s: %lld bytes, the manifest lists %lld", one->key.data,
                           (long long)found, (long long)size);
  }
  return 1;
}

/* Parses the manifest, which has one text. */
static int nnd_read_manifest(struct nnd_bundle *bundle, nnd_error *error) {
  const struct nnd_text *text = &bundle->manifest_text;
  for (int64_t i = 0; i < text->size; i++)
    if ((uint8_t)text->data[i] > 0x7f)
      return nnd_fail_with(error, NND_BAD_DATA, "the JSON text is not ASCII at byte %lld", (long long)i);
  bundle->manifest = nnd_json_parse(text->data, text->size, &bundle->arena, error);
  return bundle->manifest && nnd_json_check_canonical(bundle->manifest, text, error);
}

static int nnd_check_size(const struct nnd_member *member, int64_t most, nnd_error *error) {
  return member->size <= most ||
         nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "%s: %lld bytes; at most %lld are allowed", member->name,
                       (long long)member->size, (long long)most);
}

int nnd_bundle_open(struct nnd_bundle *bundle, nnd_error *error) {
  static const struct nnd_text manifest = {NND_MANIFEST, sizeof NND_MANIFEST - 1};
  static const struct nnd_text signature = {NND_SIGNATURE, sizeof NND_SIGNATURE - 1};
  if (!nnd_container_read(&bundle->container, &bundle->arena, error)) return 0;
  const struct nnd_member *member = nnd_member_named(&bundle->container, &manifest);
  if (!member)
    return nnd_fail_with(error, NND_BAD_DATA,
                         NND_BAD_BUNDLE "a ZIP archive, but not a bundle: it has no " NND_MANIFEST);
  if (!nnd_check_size(member, NND_MOST_MANIFEST, error)) return 0;
  char *text = nnd_arena_take(&bundle->arena, member->size, error);
  if (!text || !nnd_bundle_unlisted(bundle, member, text, error)) return 0;
  bundle->manifest_text = (struct nnd_text){text, member->size};
  if (!nnd_read_manifest(bundle, error))
    return error->code == NND_BAD_DATA ? nnd_put_place(error, NND_BAD_BUNDLE NND_MANIFEST) : 0;
  if (!nnd_check_form(bundle->manifest, error) || !nnd_check_fit(bundle->manifest, error) ||
      !nnd_check_lists(bundle, error))
    return 0;
  member = nnd_member_named(&bundle->container, &signature);
  return !member || (nnd_check_size(member, NND_MOST_SIGNATURE, error) && nnd_check_unlisted(bundle, member, error));
}

void nnd_bundle_close(struct nnd_bundle *bundle) {
  nnd_source_close(&bundle->container.source);
  nnd_arena_free(&bundle->arena);
}

const struct nnd_json *nnd_listed(const struct nnd_json *list, const struct nnd_text *name) {
  NND_EACH(item, nnd_json_of_kind(list, NND_OBJECT)) {
    if (nnd_is_same_text(&item->key, name)) return item;
  }
  return NULL;
}

/* Reads the bytes of a member that are stored, in parts that the cache still holds when they are hashed. */
static int nnd_read_stored(struct nnd_bundle *bundle, const struct nnd_member *member, uint8_t *data,
                           struct nnd_sha256 *hash, nnd_error *error) {
  for (int64_t done = 0; done < member->size;) {
    const int64_t left = member->size - done, part = left < 1 << 18 ? left : 1 << 18;
    if (!nnd_source_read(&bundle->container.source, member->offset + done, part, data + done, error)) return 0;
    nnd_sha256_add(hash, data + done, part);
    done += part;
  }
  return 1;
}

/* Checks what was read against what the manifest says of it. */
static int nnd_check_hash(const struct nnd_json *listed, struct nnd_sha256 *hash, const struct nnd_text *name,
                          nnd_error *error) {
  char found[65];
  nnd_sha256_text(hash, found);
  const struct nnd_json *wanted = nnd_json_of_kind(nnd_json_member(listed, "sha256"), NND_STRING);
  if (wanted && nnd_is_text(&wanted->text, found)) return 1;
  return nnd_fail_with(error, NND_BAD_DATA,
                       NND_BAD_BUNDLE
                       "%s: damaged: its SHA-256 is %.12s..., the manifest lists %.12s... (hint: copy "
                       "the bundle again, or compile again)",
                       name->data, found, wanted ? wanted->text.data : "");
}

static uint8_t *nnd_stored_member(struct nnd_bundle *bundle, const struct nnd_text *name, int64_t *size,
                                  nnd_error *error) {
  const struct nnd_member *member = nnd_member_named(&bundle->container, name);
  const struct nnd_json *listed = nnd_listed(nnd_json_member(bundle->manifest, "members"), name);
  if (!member || !nnd_json_integer(nnd_json_member(listed, "size_bytes"), member->size, member->size, size)) {
    nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: it has no %.*s as its manifest says", (int)name->size, name->data);
    return NULL;
  }
  uint8_t *data = nnd_pages_or_error(member->size, error);
  struct nnd_sha256 hash;
  nnd_sha256_begin(&hash);
  if (data && nnd_read_stored(bundle, member, data, &hash, error) && nnd_check_hash(listed, &hash, name, error))
    return data;
  nnd_pages_free(data, member->size + 1);
  return NULL;
}

/* Returns the members of which a compressed one has parts: plain ones, each of its own right size. */
static int nnd_find_bases(struct nnd_bundle *bundle, const struct nnd_json *list,
                          const struct nnd_member *bases[NND_MOST_BASES], int64_t *count, nnd_error *error) {
  *count = 0;
  NND_EACH(item, nnd_json_of_kind(list, NND_ARRAY)) {
    const struct nnd_member *found =
        item->kind == NND_STRING ? nnd_member_named(&bundle->container, &item->text) : NULL;
    if (!found || *count == NND_MOST_BASES)
      return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: a compressed member is made of what is not there");
    bases[(*count)++] = found;
  }
  return 1;
}

static uint8_t *nnd_expanded_member(struct nnd_bundle *bundle, const struct nnd_text *name,
                                    const struct nnd_json *compressed, int64_t *size, nnd_error *error) {
  const struct nnd_member *bases[NND_MOST_BASES];
  int64_t num_bases, stored_bytes;
  if (!nnd_json_integer(nnd_json_member(compressed, "size_bytes"), 0, NND_MOST_BYTES_OF_VALUE, size) ||
      !nnd_find_bases(bundle, nnd_json_member(compressed, "bases"), bases, &num_bases, error)) {
    nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: a compressed member is malformed");
    return NULL;
  }
  uint8_t *stored = nnd_stored_member(bundle, name, &stored_bytes, error);
  uint8_t *data = stored ? nnd_pages_or_error(*size, error) : NULL;
  struct nnd_sha256 hash;
  int is_right =
      data && nnd_expand(stored, stored_bytes, &bundle->container.source, bases, num_bases, data, *size, error);
  if (is_right) {
    nnd_sha256_begin(&hash);
    nnd_sha256_add(&hash, data, *size);
    is_right = nnd_check_hash(compressed, &hash, name, error);
  }
  if (stored) nnd_pages_free(stored, stored_bytes + 1);
  if (is_right) return data;
  nnd_pages_free(data, *size + 1);
  return NULL;
}

uint8_t *nnd_bundle_member(struct nnd_bundle *bundle, const struct nnd_text *name, int64_t *size, nnd_error *error) {
  const struct nnd_json *compressed = nnd_listed(nnd_json_member(bundle->manifest, "compressed"), name);
  return compressed ? nnd_expanded_member(bundle, name, compressed, size, error)
                    : nnd_stored_member(bundle, name, size, error);
}

int nnd_bundle_in_place(const struct nnd_bundle *bundle, const struct nnd_text *name, const uint8_t **data,
                        int64_t *size) {
  const struct nnd_source *source = &bundle->container.source;
  const struct nnd_member *member = source->stays ? nnd_member_named(&bundle->container, name) : NULL;
  if (!member || nnd_listed(nnd_json_member(bundle->manifest, "compressed"), name)) return 0;
  *data = source->memory + member->offset, *size = member->size;
  return (uintptr_t)*data % NND_LINE == 0;
}

int nnd_bundle_check_bytes(const struct nnd_bundle *bundle, const struct nnd_text *name, const uint8_t *data,
                           int64_t size, nnd_error *error) {
  struct nnd_sha256 hash;
  nnd_sha256_begin(&hash);
  nnd_sha256_add(&hash, data, size);
  return nnd_check_hash(nnd_listed(nnd_json_member(bundle->manifest, "members"), name), &hash, name, error);
}

int nnd_bundle_check(struct nnd_bundle *bundle, nnd_error *error) {
  for (int64_t i = 0; i < bundle->container.count; i++) {
    const struct nnd_member *member = &bundle->container.members[i];
    const struct nnd_text name = {member->name, (int64_t)strlen(member->name)};
    int64_t size;
    if (!nnd_listed(nnd_json_member(bundle->manifest, "members"), &name)) {
      if (!nnd_check_unlisted(bundle, member, error)) return 0;
      continue;
    }
    uint8_t *data = nnd_bundle_member(bundle, &name, &size, error);
    if (!data) return 0;
    nnd_pages_free(data, size + 1);
  }
  return 1;
}
