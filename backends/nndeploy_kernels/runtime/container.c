/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: APPNOTE.TXT 6.3.10 (PKWARE); the padding field 0xD935 is that of Android's zipalign.
 */
#include "runtime/container.h"

#include <string.h>

#define NND_MOST_MEMBERS 4096
#define NND_MOST_NAME 255
#define NND_MOST_FOLDERS 4
#define NND_LARGE 4096 /* from so many bytes on, and at so many, data lie */
#define NND_LOCAL_BYTES 30
#define NND_CENTRAL_BYTES 46
#define NND_LOCAL_ZIP64 20
#define NND_CENTRAL_ZIP64 28
#define NND_PADDING 6
#define NND_TRAILER_BYTES 98 /* the end record of zip64, its locator, the end record */
#define NND_END_BYTES 22
#define NND_VERSION 45
#define NND_ATTRIBUTES 0x81A40000u /* a regular file, 0644 */

static uint8_t *nnd_put(uint8_t *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *to++ = (uint8_t)(value >> 8 * i);
  return to;
}

static uint64_t nnd_got(const uint8_t *from, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)from[i] << 8 * i;
  return value;
}

static int nnd_bad(nnd_error *error, const char *why) {
  return nnd_fail_with(error, NND_BAD_DATA, "bad-bundle: %s", why);
}

static int64_t nnd_put_local(uint8_t *to, const struct nnd_member *member) {
  const int64_t name = (int64_t)strlen(member->name), extra = member->offset - member->header - NND_LOCAL_BYTES - name;
  uint8_t *at = nnd_put(to, 0x04034b50, 4);
  at = nnd_put(at, NND_VERSION, 2);
  at = nnd_put(at, 0, 4);                            /* flags, method: stored */
  at = nnd_put(at, 0, 2), at = nnd_put(at, 0x21, 2); /* 1980-01-01 00:00 */
  at = nnd_put(at, member->crc32, 4);
  at = nnd_put(at, 0xffffffff, 4), at = nnd_put(at, 0xffffffff, 4);
  at = nnd_put(at, (uint64_t)name, 2), at = nnd_put(at, (uint64_t)extra, 2);
  memcpy(at, member->name, (size_t)name);
  at = nnd_put(at + name, 0x0001, 2), at = nnd_put(at, NND_LOCAL_ZIP64 - 4, 2);
  at = nnd_put(at, (uint64_t)member->size, 8), at = nnd_put(at, (uint64_t)member->size, 8);
  const int64_t padding = extra - NND_LOCAL_ZIP64 - NND_PADDING;
  at = nnd_put(at, 0xd935, 2), at = nnd_put(at, (uint64_t)(NND_PADDING - 4 + padding), 2);
  at = nnd_put(at, member->size >= NND_LARGE ? NND_LARGE : NND_LINE, 2);
  memset(at, 0, (size_t)padding);
  return member->offset - member->header;
}

static int64_t nnd_put_central(uint8_t *to, const struct nnd_member *member) {
  const int64_t name = (int64_t)strlen(member->name);
  uint8_t *at = nnd_put(to, 0x02014b50, 4);
  at = nnd_put(at, 3 << 8 | NND_VERSION, 2), at = nnd_put(at, NND_VERSION, 2);
  at = nnd_put(at, 0, 4);
  at = nnd_put(at, 0, 2), at = nnd_put(at, 0x21, 2);
  at = nnd_put(at, member->crc32, 4);
  at = nnd_put(at, 0xffffffff, 4), at = nnd_put(at, 0xffffffff, 4);
  at = nnd_put(at, (uint64_t)name, 2), at = nnd_put(at, NND_CENTRAL_ZIP64, 2);
  at = nnd_put(at, 0, 6); /* comment, disk, internal attributes */
  at = nnd_put(at, NND_ATTRIBUTES, 4), at = nnd_put(at, 0xffffffff, 4);
  memcpy(at, member->name, (size_t)name);
  at = nnd_put(at + name, 0x0001, 2), at = nnd_put(at, NND_CENTRAL_ZIP64 - 4, 2);
  at = nnd_put(at, (uint64_t)member->size, 8), at = nnd_put(at, (uint64_t)member->size, 8);
  nnd_put(at, (uint64_t)member->header, 8);
  return NND_CENTRAL_BYTES + name + NND_CENTRAL_ZIP64;
}

static void nnd_put_end(uint8_t *to, uint64_t count, uint64_t start, uint64_t directory) {
  uint8_t *at = nnd_put(to, 0x06064b50, 4);
  at = nnd_put(at, 44, 8), at = nnd_put(at, 3 << 8 | NND_VERSION, 2), at = nnd_put(at, NND_VERSION, 2);
  at = nnd_put(at, 0, 8);
  at = nnd_put(at, count, 8), at = nnd_put(at, count, 8);
  at = nnd_put(at, directory, 8), at = nnd_put(at, start, 8);
  at = nnd_put(at, 0x07064b50, 4), at = nnd_put(at, 0, 4);
  at = nnd_put(at, start + directory, 8), at = nnd_put(at, 1, 4);
  at = nnd_put(at, 0x06054b50, 4), at = nnd_put(at, 0, 4);
  at = nnd_put(at, 0xffff, 2), at = nnd_put(at, 0xffff, 2);
  at = nnd_put(at, 0xffffffff, 4), at = nnd_put(at, 0xffffffff, 4);
  nnd_put(at, 0, 2);
}

/* One to five segments of [a-z0-9_.-], divided by /, none of them . or .. */
static int nnd_is_name(const char *name, int64_t size) {
  int64_t begin = 0, folders = 0;
  if (size < 1 || size > NND_MOST_NAME) return 0;
  for (int64_t i = 0; i <= size; i++) {
    if (i < size && name[i] != '/') {
      const char c = name[i];
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-')) return 0;
      continue;
    }
    const int64_t segment = i - begin;
    if (!segment || (segment <= 2 && !memcmp(name + begin, "..", (size_t)segment))) return 0;
    folders += i < size;
    begin = i + 1;
  }
  return folders <= NND_MOST_FOLDERS;
}

/* Reads the record at `from` of `left` bytes, whose member begins at `header`; returns its bytes, 0 and the error. */
static int64_t nnd_central(const uint8_t *from, int64_t left, int64_t header, int64_t start, struct nnd_member *member,
                           nnd_error *error) {
  uint8_t again[NND_CENTRAL_BYTES + NND_MOST_NAME + NND_CENTRAL_ZIP64];
  if (left < NND_CENTRAL_BYTES) return nnd_bad(error, "the directory is shorter than its records");
  const int64_t name = (int64_t)nnd_got(from + 28, 2), size = NND_CENTRAL_BYTES + name + NND_CENTRAL_ZIP64;
  if (name > NND_MOST_NAME || left < size || !nnd_is_name((const char *)from + NND_CENTRAL_BYTES, name))
    return nnd_bad(error, "a member's name is not allowed");
  memcpy(member->name, from + NND_CENTRAL_BYTES, (size_t)name);
  member->crc32 = (uint32_t)nnd_got(from + 16, 4);
  member->size = (int64_t)nnd_got(from + NND_CENTRAL_BYTES + name + 4, 8);
  if (member->size < 0 || member->size > start) return nnd_bad(error, "a member claims more bytes than there are");
  const int64_t unpadded = header + NND_LOCAL_BYTES + name + NND_LOCAL_ZIP64 + NND_PADDING;
  const int64_t at = member->size >= NND_LARGE ? NND_LARGE : NND_LINE;
  member->header = header;
  member->offset = (unpadded + at - 1) / at * at;
  if (nnd_put_central(again, member) != size || memcmp(again, from, (size_t)size))
    return nnd_bad(error, "a record of the directory is not written as a bundle's is");
  if (member->offset + member->size > start) return nnd_bad(error, "a member's data reach past the directory");
  return size;
}

static int nnd_check_local(const struct nnd_source *source, const struct nnd_member *member, nnd_error *error) {
  uint8_t found[NND_LARGE + 512], again[NND_LARGE + 512];
  const int64_t size = nnd_put_local(again, member);
  if (!nnd_source_read(source, member->header, size, found, error)) return 0;
  return memcmp(found, again, (size_t)size) ? nnd_bad(error, "a member's header is not written as a bundle's is") : 1;
}

static int nnd_is_inside(const char *folder, const char *name) {
  const size_t size = strlen(folder);
  return !strncmp(folder, name, size) && name[size] == '/';
}

int nnd_container_read(struct nnd_container *container, struct nnd_arena *arena, nnd_error *error) {
  const struct nnd_source *source = &container->source;
  uint8_t trailer[NND_TRAILER_BYTES], again[NND_TRAILER_BYTES], head[2];
  const int64_t end = source->size - NND_TRAILER_BYTES;
  if (source->size < 2 || !nnd_source_read(source, 0, 2, head, error) || memcmp(head, "PK", 2))
    return nnd_bad(error, "not a bundle: it does not begin like one (hint: nndeploy compile makes bundles)");
  if (end < 0) return nnd_bad(error, "the end record is missing: the file was cut short (hint: copy it again)");
  if (!nnd_source_read(source, end, NND_TRAILER_BYTES, trailer, error)) return 0;
  const int64_t count = (int64_t)nnd_got(trailer + 32, 8), start = (int64_t)nnd_got(trailer + 48, 8);
  if (memcmp(trailer + NND_TRAILER_BYTES - NND_END_BYTES, "PK\5\6", 4))
    return nnd_bad(error, "the end record is missing: the file was cut short (hint: copy it again)");
  if (start < 0 || start > end) return nnd_bad(error, "the zip64 end record is not written as a bundle's is");
  nnd_put_end(again, (uint64_t)count, (uint64_t)start, (uint64_t)(end - start));
  if (memcmp(trailer, again, sizeof again))
    return nnd_bad(error, "the zip64 end record is not written as a bundle's is");
  if (count < 1 || count > NND_MOST_MEMBERS) return nnd_bad(error, "it has no member, or too many");
  if (end - start > NND_MOST_MEMBERS * (NND_CENTRAL_BYTES + NND_MOST_NAME + NND_CENTRAL_ZIP64))
    return nnd_bad(error, "its directory is too large");
  uint8_t *directory = nnd_arena_take(arena, end - start, error);
  container->members = nnd_arena_take(arena, count * (int64_t)sizeof *container->members, error);
  if (!directory || !container->members || !nnd_source_read(source, start, end - start, directory, error)) return 0;
  int64_t at = 0, header = 0;
  for (int64_t i = 0; i < count; i++) {
    struct nnd_member *member = &container->members[i];
    const int64_t size = nnd_central(directory + at, end - start - at, header, start, member, error);
    if (!size || !nnd_check_local(source, member, error)) return 0;
    if (i && strcmp(member[-1].name, member->name) >= 0) return nnd_bad(error, "its members are not in order");
    for (int64_t j = i - 1; j >= 0 && !strncmp(container->members[j].name, member->name, 1); j--)
      if (nnd_is_inside(container->members[j].name, member->name))
        return nnd_bad(error, "a member is both a file and a folder");
    at += size;
    header = member->offset + member->size;
  }
  if (at != end - start || header != start) return nnd_bad(error, "some of its bytes belong to no member");
  container->count = count;
  return 1;
}

const struct nnd_member *nnd_member_named(const struct nnd_container *container, const struct nnd_text *name) {
  for (int64_t i = 0; i < container->count; i++)
    if (nnd_is_text(name, container->members[i].name)) return &container->members[i];
  return NULL;
}
