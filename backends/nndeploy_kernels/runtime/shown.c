/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/canonical.h"

#define NND_ENOUGH 400 /* bytes of which no more is shown */

static void nnd_show_text(struct nnd_writing *to, const struct nnd_text *text) {
  const int has_single = memchr(text->data, '\'', (size_t)text->size) != NULL;
  const char quote = has_single && !memchr(text->data, '"', (size_t)text->size) ? '"' : '\'';
  nnd_write(to, &quote, 1);
  for (int64_t i = 0; i < text->size && to->size < NND_ENOUGH; i++) {
    const char c = text->data[i], *found = c ? strchr("\n\r\t\\", c) : NULL;
    char escape[8];
    if (found || c == quote) {
      const char pair[] = {'\\', found ? "nrt\\"[strchr("\n\r\t\\", c) - "\n\r\t\\"] : c};
      nnd_write(to, pair, 2);
    } else if ((uint8_t)c < 0x20 || c == 0x7f) {
      nnd_write(to, escape, snprintf(escape, sizeof escape, "\\x%02x", (unsigned)c));
    } else {
      nnd_write(to, &c, 1);
    }
  }
  nnd_write(to, &quote, 1);
}

static void nnd_show(struct nnd_writing *to, const struct nnd_json *value) {
  static const char *const words[] = {"None", "False", "True"};
  switch (value->kind) {
    case NND_NULL:
    case NND_FALSE:
    case NND_TRUE: nnd_write(to, words[value->kind], (int64_t)strlen(words[value->kind])); break;
    case NND_STRING: nnd_show_text(to, &value->text); break;
    case NND_INTEGER:
    case NND_REAL: nnd_write_json(to, value); break;
    default: {
      const int is_object = value->kind == NND_OBJECT;
      nnd_write(to, is_object ? "{" : "[", 1);
      NND_EACH(item, value) {
        if (to->size > NND_ENOUGH) break;
        if (item != value->first) nnd_write(to, ", ", 2);
        if (is_object) nnd_show_text(to, &item->key), nnd_write(to, ": ", 2);
        nnd_show(to, item);
      }
      nnd_write(to, is_object ? "}" : "]", 1);
    }
  }
}

static const char *nnd_cut(struct nnd_writing *whole, int most, char shown[NND_SHOWN]) {
  const int64_t size = whole->is_lost ? 0 : whole->size < most ? whole->size : most;
  if (size) memcpy(shown, whole->text, (size_t)size);
  shown[size] = 0;
  for (int64_t i = size; i > 0 && shown[i - 1] == ' '; i--) shown[i - 1] = 0; /* as lines end */
  free(whole->text);
  return shown;
}

const char *nnd_shown(const struct nnd_json *value, int most, char shown[NND_SHOWN]) {
  struct nnd_writing whole = {0};
  if (!value || value->kind == NND_NULL)
    nnd_write(&whole, "nothing", 7);
  else
    nnd_show(&whole, value);
  return nnd_cut(&whole, most, shown);
}

const char *nnd_shown_text(const struct nnd_text *text, int most, char shown[NND_SHOWN]) {
  struct nnd_writing whole = {0};
  nnd_show_text(&whole, text);
  return nnd_cut(&whole, most, shown);
}
