/* SPDX-License-Identifier: Apache-2.0
 *
 * amx_misuse RULE: breaks a rule of the instructions of AMX, with "none" none; compiled with their model.
 */
#include "../kernels/amx_model.h"

static const uint8_t memory[1024];

int main(int count, char **arguments) {
  const char *rule = count == 2 ? arguments[1] : "";
  uint8_t sizes[64] = {1}, sums[1024];
  for (int tile = 0; tile < 4; tile++) sizes[16 + 2 * tile] = 64, sizes[48 + tile] = 16;
  if (!strcmp(rule, "palette")) sizes[0] = 2;
  if (!strcmp(rule, "rows")) sizes[48] = 17;
  if (!strcmp(rule, "bytes")) sizes[16] = 65;
  if (!strcmp(rule, "reserved")) sizes[5] = 1;
  if (!strcmp(rule, "other rows")) sizes[48] = 15;
  if (!strcmp(rule, "other columns")) sizes[16] = 60;
  if (!strcmp(rule, "other k")) sizes[17 + 1] = 32;
  if (strcmp(rule, "no configuration") != 0) _tile_loadconfig(sizes);
  _tile_zero(!strcmp(rule, "unconfigured tile") ? 5 : 0);
  _tile_loadd(1, memory, 64);
  _tile_loadd(2, memory, 64);
  if (!strcmp(rule, "released")) _tile_release();
  if (!strcmp(rule, "one tile twice"))
    _tile_dpbssd(0, 1, 1);
  else
    _tile_dpbusd(0, 1, 2);
  _tile_stored(0, sums, 64);
  _tile_release();
  return 0;
}
