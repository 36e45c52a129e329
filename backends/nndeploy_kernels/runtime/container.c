/* SPDX-License-Identifier: Apache-2.0
 *
 * Source: APPNOTE.TXT 6.3.10 (PKWARE); the padding field 0xD935 is that of Android's zipalign.
 */
#include "runtime/container.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/shown.h"

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
#define NND_TAIL_BYTES (0xffff + NND_END_BYTES) /* with the longest comment that other archives have */
#define NND_MOST_DIRECTORY (NND_MOST_MEMBERS * (NND_CENTRAL_BYTES + NND_MOST_NAME + NND_CENTRAL_ZIP64))
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

__attribute__((format(printf, 2, 3))) static int nnd_bad(nnd_error *error, const char *format, ...) {
  char why[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  return nnd_fail_with(error, NND_BAD_DATA, NND_BAD_BUNDLE "%s", why);
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
const char *nnd_name_fault(const struct nnd_text *name) {
  int64_t begin = 0, folders = 0;
  int is_plain = name->size > 0;
  if (name->size && (*name->data == '/' || (name->size > 1 && name->data[1] == ':'))) return "is an absolute path";
  for (int64_t i = 0; i <= name->size; i++) {
    if (i < name->size && name->data[i] != '/') {
      const char c = name->data[i];
      is_plain &= (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
      continue;
    }
    const int64_t segment = i - begin;
    if (segment && segment <= 2 && !memcmp(name->data + begin, "..", (size_t)segment))
      return "leaves its folder: '.' and '..' are not allowed";
    is_plain &= segment > 0;
    folders += i < name->size;
    begin = i + 1;
  }
  if (name->size > NND_MOST_NAME) return "is longer than 255 bytes";
  if (folders > NND_MOST_FOLDERS) return "is deeper than 4 folders";
  return is_plain ? NULL : "is empty, has an empty segment, or holds other characters than a-z, 0-9, '_', '.', '-'";
}

/* Writes the name of a record, at most 80 bytes of it. */
static const char *nnd_raw_name(const uint8_t *from, int64_t left, char shown[400]) {
  const int64_t said = (int64_t)nnd_got(from + 28, 2), room = left - NND_CENTRAL_BYTES;
  const int64_t size = said < room ? said : room;
  char *to = shown;
  for (int64_t i = 0; i < size && i < 80; i++) {
    const uint8_t c = from[NND_CENTRAL_BYTES + i];
    to += snprintf(to, 5, c < 0x80 ? "%c" : "\\x%02x", c);
  }
  *to = 0;
  return shown;
}

/* Checks what the fixed fields of a record of the directory say. */
static int nnd_check_rules(const uint8_t *from, const char *name, nnd_error *error) {
  const unsigned flags = (unsigned)nnd_got(from + 8, 2), method = (unsigned)nnd_got(from + 10, 2);
  const unsigned attributes = (unsigned)nnd_got(from + 38, 4), internal = (unsigned)nnd_got(from + 36, 2);
  const unsigned comment = (unsigned)nnd_got(from + 32, 2), disk = (unsigned)nnd_got(from + 34, 2);
  const unsigned extra = (unsigned)nnd_got(from + 30, 2), made_by = (unsigned)nnd_got(from + 4, 2);
  const unsigned version = (unsigned)nnd_got(from + 6, 2);
  if (nnd_got(from, 4) != 0x02014b50)
    return nnd_bad(error, "%s: the directory holds something that is no record", name);
  if (flags & 1) return nnd_bad(error, "%s: it is encrypted", name);
  if (flags & 8) return nnd_bad(error, "%s: it has a data descriptor", name);
  if (flags) return nnd_bad(error, "%s: it has flags 0x%04x, expected 0x0000", name, flags);
  if (method) return nnd_bad(error, "%s: it is compressed (method %u); members of a bundle are stored", name, method);
  if (attributes >> 28 == 012) return nnd_bad(error, "%s: it is a symbolic link", name);
  if (attributes != NND_ATTRIBUTES || internal)
    return nnd_bad(error, "%s: it has file attributes 0x%x, 0x%x", name, attributes, internal);
  if (nnd_got(from + 12, 4) != 0x210000) return nnd_bad(error, "%s: it has a time stamp of its own", name);
  if (comment) return nnd_bad(error, "%s: it has a comment of %u bytes", name, comment);
  if (disk) return nnd_bad(error, "%s: it is said to lie on disk %u", name, disk);
  if (nnd_got(from + 20, 8) != UINT64_MAX || nnd_got(from + 42, 4) != UINT32_MAX)
    return nnd_bad(error, "%s: it states sizes outside its zip64 field", name);
  if (extra != NND_CENTRAL_ZIP64)
    return nnd_bad(error, "%s: its record has %u bytes of extra fields, not 28", name, extra);
  return (made_by == (3 << 8 | NND_VERSION) && version == NND_VERSION) ||
         nnd_bad(error, "%s: it was made by 0x%04x and needs version %u, not 0x032d and 45", name, made_by, version);
}

/* Checks where a record says that its member lies: at `header`, with its data before the directory at `start`. */
static int nnd_check_place(const uint8_t *field, const char *name, int64_t header, int64_t start, nnd_error *error) {
  const uint64_t size = nnd_got(field + 4, 8), stored = nnd_got(field + 12, 8), found = nnd_got(field + 20, 8);
  if (size != stored)
    return nnd_bad(error, "%s: it has two sizes, %llu and %llu bytes", name, (unsigned long long)size,
                   (unsigned long long)stored);
  if (size > (uint64_t)start)
    return nnd_bad(error, "%s: it claims %llu bytes, but only %lld lie before the directory", name,
                   (unsigned long long)size, (long long)start);
  if (found < (uint64_t)header)
    return nnd_bad(error, "%s: it overlaps the member before it: begins at %llu, not at %lld", name,
                   (unsigned long long)found, (long long)header);
  return found == (uint64_t)header || nnd_bad(error, "%s: %llu bytes before it belong to no member", name,
                                              (unsigned long long)(found - (uint64_t)header));
}

/* Reads the record at `from` of `left` bytes, whose member begins at `header`; returns its bytes, 0 and the error. */
static int64_t nnd_central(const uint8_t *from, int64_t left, int64_t header, int64_t start, struct nnd_member *member,
                           nnd_error *error) {
  uint8_t again[NND_CENTRAL_BYTES + NND_MOST_NAME + NND_CENTRAL_ZIP64];
  char raw[400], shown[NND_SHOWN];
  if (left < NND_CENTRAL_BYTES) return nnd_bad(error, "the directory is shorter than its records");
  const int64_t name = (int64_t)nnd_got(from + 28, 2), size = NND_CENTRAL_BYTES + name + NND_CENTRAL_ZIP64;
  if (!nnd_check_rules(from, nnd_raw_name(from, left, raw), error)) return 0;
  if (left < size) return nnd_bad(error, "%s: its record reaches past the directory", raw);
  const struct nnd_text text = {(const char *)from + NND_CENTRAL_BYTES, name};
  const struct nnd_text cut = {raw, (int64_t)strlen(raw)};
  const char *fault = nnd_name_fault(&text);
  if (fault) return nnd_bad(error, "the member name %s %s", nnd_shown_text(&cut, 82, shown), fault);
  if (!nnd_check_place(from + NND_CENTRAL_BYTES + name, raw, header, start, error)) return 0;
  memcpy(member->name, text.data, (size_t)name);
  member->crc32 = (uint32_t)nnd_got(from + 16, 4);
  member->size = (int64_t)nnd_got(from + NND_CENTRAL_BYTES + name + 4, 8);
  const int64_t unpadded = header + NND_LOCAL_BYTES + name + NND_LOCAL_ZIP64 + NND_PADDING;
  const int64_t at = member->size >= NND_LARGE ? NND_LARGE : NND_LINE;
  member->header = header;
  member->offset = (unpadded + at - 1) / at * at;
  if (nnd_put_central(again, member) != size || memcmp(again, from, (size_t)size))
    return nnd_bad(error, "%s: its zip64 field is not written as a bundle's is", member->name);
  if (member->offset + member->size > start)
    return nnd_bad(error, "%s: its data reach past the directory at %lld", member->name, (long long)start);
  return size;
}

static int nnd_check_local(const struct nnd_source *source, const struct nnd_member *member, nnd_error *error) {
  uint8_t found[NND_LARGE + 512], again[NND_LARGE + 512];
  const int64_t size = nnd_put_local(again, member), name = (int64_t)strlen(member->name);
  const int64_t behind = NND_LOCAL_BYTES + name + NND_LOCAL_ZIP64;
  if (!nnd_source_read(source, member->header, size, found, error)) return 0;
  if (!memcmp(found, again, (size_t)size)) return 1;
  if (memcmp(found, "PK\3\4", 4))
    return nnd_bad(error, "%s: there is no local header at %lld", member->name, (long long)member->header);
  if (memcmp(found + NND_LOCAL_BYTES, again + NND_LOCAL_BYTES, (size_t)name))
    return nnd_bad(error, "%s: its local header has another name", member->name);
  if (memcmp(found + behind, again + behind, (size_t)(size - behind)))
    return nnd_bad(error, "%s: the padding before its data is not a bundle's", member->name);
  return nnd_bad(error, "%s: its local header does not say what the directory says", member->name);
}

/* Says what follows, or stands in, the last end record of a ZIP archive that is no bundle. */
static int nnd_no_end_record(const struct nnd_source *source, struct nnd_arena *arena, nnd_error *error) {
  const int64_t size = source->size < NND_TAIL_BYTES ? source->size : NND_TAIL_BYTES;
  uint8_t *tail = nnd_arena_take(arena, size, error);
  if (!tail || !nnd_source_read(source, source->size - size, size, tail, error)) return 0;
  int64_t at = size - 4;
  while (at >= 0 && memcmp(tail + at, "PK\5\6", 4)) at--;
  if (at < 0 || size - at < NND_END_BYTES)
    return nnd_bad(error, "the end record is missing: the file was cut short (hint: copy it again)");
  const unsigned comment = (unsigned)nnd_got(tail + at + 20, 2);
  const int64_t follows = size - at - NND_END_BYTES;
  if (comment) return nnd_bad(error, "the archive has a comment of %u bytes; a bundle has none", comment);
  if (follows) return nnd_bad(error, "%lld bytes follow the end record", (long long)follows);
  return nnd_bad(error, "a ZIP archive, but not a bundle: its end record is not that of a bundle");
}

/* Says what is wrong with the end record of zip64, or with its locator. */
static int nnd_bad_end_records(const uint8_t *trailer, int64_t end, nnd_error *error) {
  const uint8_t *locator = trailer + 56;
  const uint64_t here = nnd_got(trailer + 24, 8), count = nnd_got(trailer + 32, 8);
  const uint64_t directory = nnd_got(trailer + 40, 8), start = nnd_got(trailer + 48, 8);
  if (memcmp(trailer, "PK\6\6", 4) || memcmp(locator, "PK\6\7", 4))
    return nnd_bad(error, "a ZIP archive, but not a bundle: it has no zip64 end record");
  if (nnd_got(trailer + 16, 8) || nnd_got(locator + 4, 4) || nnd_got(locator + 16, 4) != 1)
    return nnd_bad(error, "the archive claims to span several disks");
  if (here != count)
    return nnd_bad(error, "the end record counts %llu and %llu members", (unsigned long long)here,
                   (unsigned long long)count);
  if (start > (uint64_t)end || directory != (uint64_t)end - start || nnd_got(locator + 8, 8) != (uint64_t)end)
    return nnd_bad(error, "the directory should end at %lld, the end record says %llu + %llu", (long long)end,
                   (unsigned long long)start, (unsigned long long)directory);
  return nnd_bad(error, "the zip64 end record is not written as a bundle's is");
}

static int nnd_is_inside(const char *folder, const char *name) {
  const size_t size = strlen(folder);
  return !strncmp(folder, name, size) && name[size] == '/';
}

static int nnd_check_order(const struct nnd_member *last, const struct nnd_member *member, nnd_error *error) {
  const int order = last ? strcmp(last->name, member->name) : -1;
  if (!order) return nnd_bad(error, "the member name '%s' stands twice", member->name);
  return order < 0 ||
         nnd_bad(error, "the member '%.100s' stands after '%.100s'; names must be sorted", member->name, last->name);
}

static int nnd_check_folders(const struct nnd_container *container, nnd_error *error) {
  const struct nnd_member *members = container->members;
  for (int64_t i = 0; i < container->count; i++)
    for (int64_t j = i - 1; j >= 0 && !strncmp(members[j].name, members[i].name, 1); j--)
      if (nnd_is_inside(members[j].name, members[i].name))
        return nnd_bad(error, "the member '%.100s' is also the folder of '%.100s'", members[j].name, members[i].name);
  return 1;
}

int nnd_container_read(struct nnd_container *container, struct nnd_arena *arena, nnd_error *error) {
  const struct nnd_source *source = &container->source;
  uint8_t trailer[NND_TRAILER_BYTES], again[NND_TRAILER_BYTES], head[2];
  const int64_t end = source->size - NND_TRAILER_BYTES;
  if (!source->size) return nnd_bad(error, "not a bundle: the file is empty");
  if (source->size < 2 || !nnd_source_read(source, 0, 2, head, error) || memcmp(head, "PK", 2))
    return nnd_bad(error, "not a bundle: it does not begin like one (hint: nndeploy compile makes bundles)");
  if (end < 0) return nnd_no_end_record(source, arena, error);
  if (!nnd_source_read(source, end, NND_TRAILER_BYTES, trailer, error)) return 0;
  const int64_t count = (int64_t)nnd_got(trailer + 32, 8), start = (int64_t)nnd_got(trailer + 48, 8);
  nnd_put_end(again, (uint64_t)count, (uint64_t)start, (uint64_t)end - (uint64_t)start);
  if (memcmp(trailer + NND_TRAILER_BYTES - NND_END_BYTES, again + NND_TRAILER_BYTES - NND_END_BYTES, NND_END_BYTES))
    return nnd_no_end_record(source, arena, error);
  if (start < 0 || start > end || memcmp(trailer, again, sizeof again)) return nnd_bad_end_records(trailer, end, error);
  if (count < 1 || count > NND_MOST_MEMBERS)
    return nnd_bad(error, "%lld members; 1 to %d are allowed", (long long)count, NND_MOST_MEMBERS);
  if (end - start > NND_MOST_DIRECTORY)
    return nnd_bad(error, "a directory of %lld bytes; at most %d are allowed", (long long)(end - start),
                   NND_MOST_DIRECTORY);
  uint8_t *directory = nnd_arena_take(arena, end - start, error);
  container->members = nnd_arena_take(arena, count * (int64_t)sizeof *container->members, error);
  if (!directory || !container->members || !nnd_source_read(source, start, end - start, directory, error)) return 0;
  int64_t at = 0, header = 0;
  for (int64_t i = 0; i < count; i++) {
    struct nnd_member *member = &container->members[i];
    const int64_t size = nnd_central(directory + at, end - start - at, header, start, member, error);
    if (!size || !nnd_check_order(i ? member - 1 : NULL, member, error) || !nnd_check_local(source, member, error))
      return 0;
    at += size;
    header = member->offset + member->size;
  }
  if (at != end - start)
    return nnd_bad(error, "the directory has %lld bytes more than its %lld records", (long long)(end - start - at),
                   (long long)count);
  if (header != start)
    return nnd_bad(error, "%lld bytes between the last member and the directory belong to no member",
                   (long long)(start - header));
  container->count = count;
  return nnd_check_folders(container, error);
}

const struct nnd_member *nnd_member_named(const struct nnd_container *container, const struct nnd_text *name) {
  for (int64_t i = 0; i < container->count; i++)
    if (nnd_is_text(name, container->members[i].name)) return &container->members[i];
  return NULL;
}
