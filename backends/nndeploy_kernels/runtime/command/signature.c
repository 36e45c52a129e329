/* SPDX-License-Identifier: Apache-2.0
 *
 * The member `signature` (docs/reference/trust.md): a line for each of two statements, which follow from the manifest.
 * They are made again and compared, so that nothing is read of them but the release.
 */
#include "runtime/command/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/canonical.h"
#include "runtime/command/array.h"
#include "runtime/command/base64.h"
#include "runtime/command/command.h"
#include "runtime/command/ed25519.h"
#include "runtime/command/system.h"
#include "runtime/form.h"

#define NND_MOST_PEM (16 << 10)
#define NND_MOST_LINES 2
#define NND_MOST_SIGNERS 64
#define NND_PAYLOAD_TYPE "application/vnd.in-toto+json"

/* SubjectPublicKeyInfo of ed25519 (RFC 8410), before the 32 bytes of the key. */
static const uint8_t nnd_der_head[] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};

#define NND_DER_BYTES ((int64_t)sizeof nnd_der_head + NND_KEY_BYTES)

/* ---- the key */

/* Returns the next line of a text without the blanks around it, null behind the last. */
static const char *nnd_line_of(const char **at, const char *end, int64_t *size) {
  if (*at >= end) return NULL;
  const char *begin = *at, *stop = memchr(begin, '\n', (size_t)(end - begin));
  *at = stop ? stop + 1 : end;
  if (!stop) stop = end;
  while (begin < stop && strchr(" \t\r\f\v", *begin)) begin++;
  while (stop > begin && strchr(" \t\r\f\v", stop[-1])) stop--;
  *size = stop - begin;
  return begin;
}

/* Returns the bytes that a PEM text says, -1 where it says no public key. */
static int64_t nnd_pem_bytes(const struct nnd_file *file, uint8_t *bytes, char *text) {
  static const char first[] = "-----BEGIN PUBLIC KEY-----", last[] = "-----END PUBLIC KEY-----";
  const char *at = file->bytes, *end = file->bytes + file->size, *line;
  int64_t size, used = 0;
  int state = 0; /* 0: before the key, 1: inside, 2: behind it */
  while ((line = nnd_line_of(&at, end, &size))) {
    if (!size && state != 1) continue;
    if (state == 0 ? size != sizeof first - 1 || memcmp(line, first, (size_t)size) : state == 2) return -1;
    if (state == 1 && size == sizeof last - 1 && !memcmp(line, last, (size_t)size))
      state = 2;
    else if (state == 1)
      memcpy(text + used, line, (size_t)size), used += size;
    if (state == 0) state = 1;
  }
  return state == 2 ? nnd_base64_read(text, used, bytes) : -1;
}

static int nnd_holds(const struct nnd_file *file, const char *words) {
  const int64_t size = (int64_t)strlen(words);
  for (int64_t i = 0; i + size <= file->size; i++)
    if (!memcmp(file->bytes + i, words, (size_t)size)) return 1;
  return 0;
}

/* Names a key as its file: what is before its end. */
static void nnd_name_key(const char *path, struct nnd_public_key *key) {
  const char *base = nnd_base_name(path), *end = strrchr(base, '.');
  snprintf(key->name, sizeof key->name, "%.*s", (int)(end && end > base ? end - base : (int64_t)strlen(base)), base);
}

static int nnd_key_from(const struct nnd_file *file, struct nnd_public_key *key, nnd_error *error) {
  uint8_t der[NND_MOST_PEM];
  char text[NND_MOST_PEM];
  struct nnd_sha256 hash;
  if (file->size > NND_MOST_PEM)
    return nnd_fail_with(error, NND_BAD_DATA, "%s: has %lld bytes, more than %d", file->path, (long long)file->size,
                         NND_MOST_PEM);
  const int64_t size = nnd_pem_bytes(file, der, text);
  const int is_private = size < 0 && nnd_holds(file, "PRIVATE KEY");
  if (size < 0)
    return nnd_fail_with(error, NND_BAD_DATA,
                         NND_BAD_DATA_KIND "%s: %s (hint: nndeploy key new writes both; NAME.pub is the public key)",
                         file->path,
                         is_private ? "a private key, but a public key is required" : "no public key in PEM form");
  if (size != NND_DER_BYTES || memcmp(der, nnd_der_head, sizeof nnd_der_head))
    return nnd_fail_with(error, NND_BAD_DATA,
                         NND_BAD_DATA_KIND
                         "%s: not a key of ed25519 (hint: nndeploy key new makes one; so does openssl genpkey "
                         "-algorithm ed25519)",
                         file->path);
  memcpy(key->raw, der + sizeof nnd_der_head, NND_KEY_BYTES);
  nnd_sha256_begin(&hash);
  nnd_sha256_add(&hash, der, size);
  nnd_sha256_text(&hash, key->id);
  nnd_name_key(file->path, key);
  return 1;
}

int nnd_key_read(const char *path, struct nnd_public_key *key, nnd_error *error) {
  struct nnd_file file;
  if (!nnd_has_ed25519(error) || !nnd_file_read(path, &file, error)) return 0;
  const int is_right = nnd_key_from(&file, key, error);
  nnd_file_free(&file);
  return is_right;
}

/* ---- the statements */

static void nnd_say(struct nnd_writing *to, const char *text) { nnd_write(to, text, (int64_t)strlen(text)); }

static void nnd_say_text(struct nnd_writing *to, const char *text) {
  nnd_write_string(to, &(struct nnd_text){text, (int64_t)strlen(text)});
}

static void nnd_say_json(struct nnd_writing *to, const struct nnd_json *value, const char *otherwise) {
  if (value)
    nnd_write_json(to, value);
  else
    nnd_say(to, otherwise);
}

/* The manifest as a subject: of what its hash is. */
struct nnd_subject {
  const struct nnd_json *manifest;
  char sha256[65];
  int64_t size;
};

static void nnd_say_subject(struct nnd_writing *to, const char *sha256, const struct nnd_text *name) {
  nnd_say(to, "{\"digest\":{\"sha256\":");
  nnd_say_text(to, sha256);
  nnd_say(to, "},\"name\":");
  nnd_write_string(to, name);
  nnd_say(to, "}");
}

/* Writes what comes of each member and of the manifest among them, in the order of their names. */
static void nnd_say_members(struct nnd_writing *to, const struct nnd_subject *of, int is_sizes) {
  static const struct nnd_text own = {"manifest.json", 13};
  const struct nnd_json *item = nnd_json_member(of->manifest, "members");
  int is_own_said = 0;
  for (item = item ? item->first : NULL; item || !is_own_said;) {
    const int is_own = !is_own_said && (!item || nnd_text_order(&own, &item->key) < 0);
    const struct nnd_json *sha256 = nnd_json_of_kind(nnd_json_member(item, "sha256"), NND_STRING);
    const struct nnd_text *name = is_own ? &own : &item->key;
    char size[24];
    snprintf(size, sizeof size, "%lld", (long long)of->size);
    if (is_sizes) {
      nnd_write_string(to, name);
      nnd_say(to, ":");
      nnd_say_json(to, is_own ? NULL : nnd_json_member(item, "size_bytes"), size);
    } else {
      nnd_say_subject(to, is_own ? of->sha256 : sha256 ? sha256->text.data : "", name);
    }
    if (is_own)
      is_own_said = 1;
    else
      item = item->next;
    if (item || !is_own_said) nnd_say(to, ",");
  }
}

/* What a bundle is (`bundle_statement`). */
static void nnd_say_bundle(struct nnd_writing *to, const struct nnd_subject *of, const char *release) {
  nnd_say(to, "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{\"model\":{\"name\":");
  nnd_say_json(to, nnd_json_member(of->manifest, "model_name"), "\"\"");
  nnd_say(to, ",\"release\":");
  nnd_say_text(to, release);
  nnd_say(to, "},\"sizes\":{");
  nnd_say_members(to, of, 1);
  nnd_say(to, "}},\"predicateType\":\"urn:nndeploy:bundle:1\",\"subject\":[");
  nnd_say_members(to, of, 0);
  nnd_say(to, "]}");
}

/* How a bundle was made (`provenance_statement`). */
static void nnd_say_provenance(struct nnd_writing *to, const struct nnd_subject *of) {
  const struct nnd_json *found = nnd_json_member(of->manifest, "provenance");
  const struct nnd_json *name = nnd_json_member(of->manifest, "model_name");
  const struct nnd_json *tools = nnd_json_of_kind(nnd_json_member(found, "tools"), NND_OBJECT);
  int is_first = 1;
  nnd_say(to,
          "{\"_type\":\"https://in-toto.io/Statement/v1\",\"predicate\":{\"buildDefinition\":{\"buildType\":"
          "\"urn:nndeploy:compile:1\",\"externalParameters\":{\"model\":");
  nnd_say_json(to, name, "\"\"");
  nnd_say(to, ",\"options\":");
  nnd_say_json(to, nnd_json_member(found, "options"), "{}");
  nnd_say(to, "},\"internalParameters\":{");
  NND_EACH(item, nnd_json_of_kind(found, NND_OBJECT)) {
    if (nnd_is_text(&item->key, "options") || nnd_is_text(&item->key, "tools")) continue;
    if (!is_first) nnd_say(to, ",");
    is_first = 0;
    nnd_write_string(to, &item->key);
    nnd_say(to, ":");
    nnd_write_json(to, item);
  }
  nnd_say(to, "},\"resolvedDependencies\":[{\"digest\":{\"sha256\":");
  nnd_say_json(to, nnd_json_member(of->manifest, "model_sha256"), "\"\"");
  nnd_say(to, "},\"name\":");
  nnd_say_json(to, name, "\"\"");
  nnd_say(to, "}");
  NND_EACH(tool, tools) {
    nnd_say(to, ",{\"annotations\":{\"version\":");
    nnd_write_json(to, tool);
    nnd_say(to, "},\"name\":");
    nnd_write_string(to, &tool->key);
    nnd_say(to, "}");
  }
  nnd_say(to, "]},\"runDetails\":{\"builder\":{\"id\":\"urn:nndeploy:compile\",\"version\":{\"nndeploy\":");
  nnd_say_json(to, nnd_json_member(tools, "nndeploy"), "\"\"");
  nnd_say(to, "}}}},\"predicateType\":\"https://slsa.dev/provenance/v1\",\"subject\":[");
  nnd_say_subject(to, of->sha256, &(struct nnd_text){"manifest.json", 13});
  nnd_say(to, "]}");
}

/* ---- the envelopes */

struct nnd_envelope {
  uint8_t *payload;
  int64_t size;
  const struct nnd_json *signatures;
};

static int nnd_bad_line(int number, const char *why, nnd_error *error) {
  return nnd_fail_with(error, NND_BAD_DATA, "line %d: %s", number, why);
}

/* Checks the signatures of an envelope: who made them, in the order of their keys, and that each is as long as one. */
static int nnd_check_signers(const struct nnd_json *list, int number, nnd_error *error) {
  const struct nnd_text *last = NULL;
  if (!nnd_json_of_kind(list, NND_ARRAY) || !list->count)
    return nnd_bad_line(number, "signatures: expected 1 item or more", error);
  int is_ordered = list->count <= NND_MOST_SIGNERS, is_long_enough = 1;
  NND_EACH(one, list) {
    const struct nnd_json *id = nnd_json_of_kind(nnd_json_member(one, "keyid"), NND_STRING);
    const struct nnd_json *value = nnd_json_of_kind(nnd_json_member(one, "sig"), NND_STRING);
    uint8_t bytes[NND_SIGNATURE_BYTES + 2];
    if (!id || !value || one->count != 2 || !nnd_is_sha256(&id->text))
      return nnd_bad_line(number, "signatures: one that is none", error);
    is_ordered = is_ordered && (!last || nnd_text_order(last, &id->text) < 0);
    last = &id->text;
    is_long_enough = is_long_enough && value->text.size == 88 &&
                     nnd_base64_read(value->text.data, value->text.size, bytes) == NND_SIGNATURE_BYTES;
  }
  if (!is_ordered) return nnd_bad_line(number, "expected 1 to 64 signatures, in the order of their keys", error);
  return is_long_enough || nnd_bad_line(number, "a signature has 64 bytes", error);
}

static int nnd_read_envelope(const char *line, int64_t size, int number, struct nnd_arena *arena,
                             struct nnd_envelope *envelope, nnd_error *error) {
  const struct nnd_json *said = nnd_json_parse(line, size, arena, error);
  if (!said) return nnd_bad_line(number, "not JSON", error);
  if (!nnd_json_check_canonical(said, &(struct nnd_text){line, size}, error))
    return nnd_bad_line(number, "the JSON text is not canonical: keys sorted, no spaces, ASCII", error);
  const struct nnd_json *payload = nnd_json_of_kind(nnd_json_member(said, "payload"), NND_STRING);
  const struct nnd_json *kind = nnd_json_of_kind(nnd_json_member(said, "payloadType"), NND_STRING);
  envelope->signatures = nnd_json_member(said, "signatures");
  if (!payload || !kind || !envelope->signatures || said->count != 3 || !nnd_is_text(&kind->text, NND_PAYLOAD_TYPE))
    return nnd_bad_line(number, "no envelope of a statement", error);
  envelope->payload = nnd_arena_take(arena, payload->text.size + 4, error);
  if (!envelope->payload) return 0;
  envelope->size = nnd_base64_read(payload->text.data, payload->text.size, envelope->payload);
  if (envelope->size < 0) return nnd_bad_line(number, "payload: expected base64", error);
  return nnd_check_signers(envelope->signatures, number, error);
}

/* Reads the lines of the member; returns how many there are, 0 and the error. */
static int nnd_read_envelopes(const char *text, int64_t size, struct nnd_arena *arena,
                              struct nnd_envelope envelopes[NND_MOST_LINES], nnd_error *error) {
  int count = 0;
  for (const char *at = text, *end = text + size; at < end; count++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop || count == NND_MOST_LINES) return nnd_fail_with(error, NND_BAD_DATA, "expected 1 to 2 whole lines");
    if (!nnd_read_envelope(at, stop - at, count + 1, arena, &envelopes[count], error)) return 0;
    at = stop + 1;
  }
  return count ? count : nnd_fail_with(error, NND_BAD_DATA, "expected 1 to 2 whole lines");
}

/* Returns whether a text is numbers with dots, of nine digits at most, or nothing. */
static int nnd_is_release(const struct nnd_text *text) {
  int64_t digits = 0, dots = 0;
  for (int64_t i = 0; i < text->size; i++) {
    const char c = text->data[i];
    const int is_end = i + 1 == text->size || text->data[i + 1] == '.';
    if (c == '.' ? !digits || is_end || ++dots > 5 : c < '0' || c > '9' || ++digits > 9) return 0;
    if (digits == 1 && c == '0' && !is_end) return 0;
    if (c == '.') digits = 0;
  }
  return 1;
}

static int nnd_find_release(const struct nnd_envelope *envelope, struct nnd_arena *arena, const char **release,
                            nnd_error *error) {
  nnd_error ignored;
  const struct nnd_json *said = nnd_json_parse((const char *)envelope->payload, envelope->size, arena, &ignored);
  const struct nnd_json *model = nnd_json_member(nnd_json_member(said, "predicate"), "model");
  const struct nnd_json *found = nnd_json_member(model, "release");
  if (!found) return nnd_fail_with(error, NND_BAD_DATA, "no statement about a bundle is signed");
  if (found->kind != NND_STRING || !nnd_is_release(&found->text))
    return nnd_fail_with(error, NND_BAD_DATA, "the release '%.60s' is none",
                         found->kind == NND_STRING ? found->text.data : "?");
  *release = found->text.data;
  return 1;
}

/* Compares what is signed with what this bundle is. */
static int nnd_check_payloads(const struct nnd_bundle *bundle, const struct nnd_envelope *envelopes, int count,
                              const char *release, nnd_error *error) {
  struct nnd_subject of = {.manifest = bundle->manifest, .size = bundle->manifest_text.size};
  struct nnd_sha256 hash;
  int is_same = count == NND_MOST_LINES, is_lost = 0;
  nnd_sha256_begin(&hash);
  nnd_sha256_add(&hash, bundle->manifest_text.data, bundle->manifest_text.size);
  nnd_sha256_text(&hash, of.sha256);
  for (int i = 0; is_same && i < count; i++) {
    struct nnd_writing wanted = {0};
    if (i)
      nnd_say_provenance(&wanted, &of);
    else
      nnd_say_bundle(&wanted, &of, release);
    is_lost |= wanted.is_lost;
    is_same = wanted.size == envelopes[i].size && !memcmp(wanted.text, envelopes[i].payload, (size_t)wanted.size);
    free(wanted.text);
  }
  if (is_lost) return nnd_fail_with(error, NND_NO_MEMORY, "no memory for a statement");
  return is_same ||
         nnd_fail_with(error, NND_BAD_DATA, "the signature is for another bundle (hint: sign it again: nndeploy sign)");
}

/* ---- who signed */

/* Returns "code" where a bundle says that it holds some, else "data". */
static const char *nnd_scope_of(const struct nnd_json *manifest) {
  const struct nnd_json *chains = nnd_json_member(manifest, "target_chains");
  const struct nnd_json *chain = chains ? chains->first : NULL;
  for (const struct nnd_json *of = manifest; of; of = of == manifest ? chain : of->next)
    NND_EACH(submodel, nnd_json_of_kind(nnd_json_member(of, "submodels"), NND_ARRAY)) {
      NND_EACH(variant, nnd_json_of_kind(nnd_json_member(submodel, "variants"), NND_ARRAY)) {
        if (nnd_json_of_kind(nnd_json_member(variant, "native_code"), NND_TRUE)) return "code";
      }
    }
  return "data";
}

/* Returns whether a signature of an envelope is of a key. */
static int nnd_is_of_key(const struct nnd_envelope *envelope, const struct nnd_json *value,
                         const struct nnd_public_key *key) {
  uint8_t bytes[NND_SIGNATURE_BYTES + 2];
  char head[80];
  struct nnd_writing message = {0};
  if (nnd_base64_read(value->text.data, value->text.size, bytes) != NND_SIGNATURE_BYTES) return 0;
  snprintf(head, sizeof head, "DSSEv1 %d %s %lld ", (int)sizeof NND_PAYLOAD_TYPE - 1, NND_PAYLOAD_TYPE,
           (long long)envelope->size);
  nnd_say(&message, head);
  nnd_write(&message, (const char *)envelope->payload, envelope->size);
  const int is_right = !message.is_lost && nnd_is_signature(key->raw, bytes, message.text, message.size);
  free(message.text);
  return is_right;
}

static int nnd_check_signed_by(const struct nnd_bundle *bundle, const struct nnd_envelope *envelope,
                               const struct nnd_public_key *key, nnd_error *error) {
  char refused[200] = "", *at = refused;
  const char *unknown = NULL;
  NND_EACH(one, envelope->signatures) {
    const char *id = nnd_json_member(one, "keyid")->text.data;
    const int is_known = !strcmp(id, key->id), left = (int)sizeof refused - (int)(at - refused);
    if (is_known && nnd_is_of_key(envelope, nnd_json_member(one, "sig"), key)) return 1;
    const int size = is_known ? snprintf(at, (size_t)left, "%s%s: the signature is not of this key",
                                         at > refused ? "; " : "", key->name)
                              : snprintf(at, (size_t)left, "%sunknown key %.16s: the key is not trusted here",
                                         at > refused ? "; " : "", id);
    at += size < left ? size : left - 1;
    if (!is_known && !unknown) unknown = id;
  }
  char hint[120] = "nndeploy key list says what is asked for here";
  if (unknown)
    snprintf(hint, sizeof hint, "nndeploy key trust KEY.pub, the public key of id %.16s, if you know whose it is",
             unknown);
  return nnd_fail_with(error, NND_POLICY,
                       "not trusted with %s: signed by 0 of the 1 trusted keys required (%s) (hint: %s)",
                       nnd_scope_of(bundle->manifest), refused, hint);
}

int nnd_check_signature(struct nnd_bundle *bundle, const void *key, nnd_error *error) {
  static const struct nnd_text name = {"signature", 9};
  const struct nnd_member *member = nnd_member_named(&bundle->container, &name);
  struct nnd_envelope envelopes[NND_MOST_LINES];
  const char *release;
  if (!member || !member->size)
    return nnd_fail_with(error, NND_POLICY,
                         "not trusted with %s: it is not signed (hint: sign it: nndeploy sign BUNDLE --key KEY.key "
                         "--release RELEASE)",
                         nnd_scope_of(bundle->manifest));
  char *text = nnd_arena_take(&bundle->arena, member->size, error);
  if (!text || !nnd_bundle_unlisted(bundle, member, text, error)) return 0;
  const int count = nnd_read_envelopes(text, member->size, &bundle->arena, envelopes, error);
  if (!count || !nnd_find_release(&envelopes[0], &bundle->arena, &release, error) ||
      !nnd_check_payloads(bundle, envelopes, count, release, error))
    return error->code == NND_BAD_DATA ? nnd_put_place(error, NND_BAD_BUNDLE "signature") : 0;
  return nnd_check_signed_by(bundle, &envelopes[0], key, error);
}
