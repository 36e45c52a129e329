/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command asks of Windows.
 */
#include "runtime/command/system.h"

#include <corecrt_startup.h>
#include <direct.h>
#include <fcntl.h>
#include <io.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "windows/wide.h"

static UINT nnd_console_before;

static void nnd_console_restore(void) { SetConsoleOutputCP(nnd_console_before); }

/* Returns a word of the command line as UTF-8, null where there is no memory. */
static char *nnd_narrow(const wchar_t *word) {
  const int room = WideCharToMultiByte(CP_UTF8, 0, word, -1, NULL, 0, NULL, NULL);
  char *narrow = malloc((size_t)room + 1);
  if (narrow) WideCharToMultiByte(CP_UTF8, 0, word, -1, narrow, room, NULL, NULL);
  return narrow;
}

void nnd_process_begin(int *count, char ***words) {
  FILE *const streams[] = {stdin, stdout, stderr};
  for (int i = 0; i < 3; i++) _setmode(_fileno(streams[i]), _O_BINARY);
  if ((nnd_console_before = GetConsoleOutputCP())) {
    SetConsoleOutputCP(CP_UTF8);
    atexit(nnd_console_restore);
  }
  if (_configure_wide_argv(_crt_argv_unexpanded_arguments)) return;
  wchar_t **const wide = *__p___wargv();
  char **narrow = calloc((size_t)*count + 1, sizeof *narrow);
  for (int i = 0; narrow && i < *count; i++)
    if (!(narrow[i] = nnd_narrow(wide[i]))) return;
  if (narrow) *words = narrow;
}

const char *nnd_base_name(const char *path) {
  for (const char *next; (next = strpbrk(path, "/\\"));) path = next + 1;
  return path;
}

static FILE *nnd_opened(const char *path, const wchar_t *mode) {
  wchar_t *wide = nnd_wide(path);
  FILE *file = wide ? _wfopen(wide, mode) : NULL;
  free(wide);
  return file;
}

FILE *nnd_file_open(const char *path) { return nnd_opened(path, L"rbN"); }

FILE *nnd_file_create(const char *path) { return nnd_opened(path, L"wbN"); }

int64_t nnd_file_size(FILE *file) {
  struct _stat64 about;
  if (_fstat64(_fileno(file), &about)) return -1;
  return (about.st_mode & _S_IFMT) == _S_IFREG ? about.st_size : 0;
}

int64_t nnd_line_read(char **line, size_t *room, FILE *from) {
  int64_t used = 0;
  for (int c = 0; c != '\n' && (c = _getc_nolock(from)) != EOF; (*line)[used++] = (char)c) {
    if (used + 1 < (int64_t)*room) continue;
    char *larger = realloc(*line, 2 * *room + 256);
    if (!larger) return -1;
    *line = larger, *room = 2 * *room + 256;
  }
  if (used) (*line)[used] = 0;
  return used ? used : -1;
}

int nnd_folder_make(const char *path) {
  wchar_t *wide = nnd_wide(path);
  const int is_made = wide && (!_wmkdir(wide) || errno == EEXIST);
  free(wide);
  return is_made;
}

const uint8_t *nnd_program_map(int64_t *size) {
  static wchar_t path[32768];
  LARGE_INTEGER bytes;
  if (!GetModuleFileNameW(NULL, path, sizeof path / sizeof *path)) return NULL;
  const HANDLE file =
      CreateFileW(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0, NULL);
  if (file == INVALID_HANDLE_VALUE) return NULL;
  const HANDLE mapping = GetFileSizeEx(file, &bytes) ? CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL) : NULL;
  const uint8_t *mapped = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
  if (mapping) CloseHandle(mapping);
  CloseHandle(file);
  *size = mapped ? bytes.QuadPart : 0;
  return mapped;
}

int64_t nnd_program_end(const uint8_t *program, int64_t size) { /* of its last section */
  IMAGE_DOS_HEADER dos;
  IMAGE_NT_HEADERS64 head;
  IMAGE_SECTION_HEADER section;
  int64_t end = 0;
  memcpy(&dos, program, sizeof dos);
  memcpy(&head, program + dos.e_lfanew, sizeof head); /* the system has read them: the process runs */
  const uint8_t *at = program + dos.e_lfanew + offsetof(IMAGE_NT_HEADERS64, OptionalHeader);
  at += head.FileHeader.SizeOfOptionalHeader;
  for (int i = 0; i < head.FileHeader.NumberOfSections && at + sizeof section <= program + size; i++) {
    memcpy(&section, at, sizeof section);
    const int64_t section_end = (int64_t)section.PointerToRawData + section.SizeOfRawData;
    if (section_end > end) end = section_end;
    at += sizeof section;
  }
  return end;
}

int64_t nnd_nanoseconds(void) {
  LARGE_INTEGER now, each_second;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&each_second);
  return now.QuadPart / each_second.QuadPart * 1000000000 +
         now.QuadPart % each_second.QuadPart * 1000000000 / each_second.QuadPart;
}
