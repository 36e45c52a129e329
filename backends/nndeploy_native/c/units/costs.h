/* SPDX-License-Identifier: Apache-2.0
 *
 * What a block costs: nanoseconds for each k and panel of columns, by family and rows. `streamed`: every panel of weights
 * is new, as where one block is all there is; else the panel is in a cache. Measured, for on a panel in the cache other
 * units win than on one that has to come.
 */
#ifndef NND_UNITS_COSTS_H
#define NND_UNITS_COSTS_H

#include <stdlib.h>
#include <time.h>

#include "matmul.h"

struct nnd_costs {
  float of[2][NND_UNITS][NND_MOST_UNIT_ROWS + 1]; /* [streamed]; 0: there is no such unit */
};

/* Without a measurement: multiply-adds, loads and the latency of a chain of sums, at one of each a nanosecond. */
static void nnd_default_costs(struct nnd_costs *costs) {
  memset(costs, 0, sizeof *costs);
  for (int streamed = 0; streamed < 2; streamed++)
    for (int unit = NND_WIDE_1; unit <= NND_WIDE_4; unit++)
      for (int rows = 1; rows <= nnd_most_rows(unit, NND_PANEL_COLUMNS); rows++) {
        const int panels = nnd_unit_panels[unit];
        const float sums = (float)(rows * NND_PANEL), loads = NND_PANEL + (float)rows / panels;
        const float chain = 4.0f / panels, come = streamed ? 3.0f * NND_PANEL : 0.0f;
        float cost = sums > loads ? sums : loads;
        if (cost < chain) cost = chain;
        if (cost < come) cost = come;
        costs->of[streamed][unit][rows] = cost + 0.1f / panels;
      }
}

NND_INLINE double nnd_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

enum { NND_MEASURED_K = 512, NND_MEASURED_PANELS = 64, NND_MEASURED_TIMES = 5 };

/* The least time of some: `panels` panels one after the other, or one again and again. */
static float nnd_measured_cost(int unit, int rows, int streamed, const float *in, const float *weights, float *out) {
  const int panels = nnd_unit_panels[unit], steps = NND_MEASURED_PANELS / panels;
  struct nnd_tile_call call = {.in = in, .in_row = NND_MEASURED_K, .weight_step = NND_PANEL_COLUMNS, .out = out,
                               .weight_panel = NND_MEASURED_K * NND_PANEL_COLUMNS, .k = NND_MEASURED_K,
                               .out_row = panels * NND_PANEL_COLUMNS, .columns = panels * NND_PANEL_COLUMNS};
  double least = 1e30;
  for (int time = 0; time < NND_MEASURED_TIMES; time++) {
    const double begin = nnd_now();
    for (int step = 0; step < steps; step++) {
      call.weights = weights + (streamed ? step * panels : 0) * call.weight_panel;
      call.next = (const char *)(call.weights + (streamed ? panels : 0) * call.weight_panel);
      call.next_step = streamed ? NND_PANEL_COLUMNS * (nnd_size)sizeof(float) : 0;
      nnd_units[0][unit][rows](&call);
    }
    const double took = nnd_now() - begin;
    if (took < least) least = took;
  }
  return (float)(least / (NND_MEASURED_K * NND_MEASURED_PANELS));
}

/* Measures all units, about ten milliseconds. Returns 0 where there is no memory. */
static int nnd_measure_costs(struct nnd_costs *costs) {
  const nnd_size floats = (NND_MEASURED_PANELS + 5) * NND_MEASURED_K * NND_PANEL_COLUMNS;
  float *weights = aligned_alloc(64, (size_t)floats * sizeof(float));
  if (!weights) return 0;
  for (nnd_size i = 0; i < floats; i++) weights[i] = 1.0f;
  float *in = weights + (NND_MEASURED_PANELS + 4) * NND_MEASURED_K * NND_PANEL_COLUMNS;
  float out[NND_ACCUMULATORS * NND_LANES];
  memset(costs, 0, sizeof *costs);
  for (int streamed = 0; streamed < 2; streamed++)
    for (int unit = NND_WIDE_1; unit <= NND_WIDE_4; unit++)
      for (int rows = 1; rows <= nnd_most_rows(unit, NND_PANEL_COLUMNS); rows++)
        costs->of[streamed][unit][rows] = nnd_measured_cost(unit, rows, streamed, in, weights, out);
  free(weights);
  return 1;
}

#endif
