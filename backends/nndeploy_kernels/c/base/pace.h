/* SPDX-License-Identifier: Apache-2.0
 *
 * How a program of steps is paced: an item that is under way, and the points that it passes.
 *
 * A point is the end of an operator, or of a part of a long one. There `pass` is called, which may sleep; it belongs to
 * the library of pace.c, so kernels hold nothing but the call. Memory is the caller's (nndeploy/pacing/run/item.py).
 */
#ifndef NND_PACE_H
#define NND_PACE_H

#include <stdint.h>

#define NND_PACE_VERSION 2 /* of these structures: who was compiled with another does not take part */

/* What is planned for one point. `before`, `duration`: baseline nanoseconds of work until its operator, and of it;
 * `weight_before`, `weight`: shares of all delays until then, and behind it; `next`: baseline work until the next
 * point; `parts`: how many the operator should be cut in. */
struct nnd_pace_point {
  double before, duration, weight_before, weight, next;
  int64_t parts;
};

/* `total`: baseline nanoseconds of all work; `stretch`: how many times as long it took in earlier runs; `reserve`:
 * nanoseconds that are kept back until the deadline; no sleep before `burst` nanoseconds of work were done, if the next
 * point is not beyond; none under `least`. */
struct nnd_pace_plan {
  const struct nnd_pace_point *points;
  int64_t num_points;
  double total, stretch, reserve, burst, least;
};

/* What a thread that works on an item remembers, and what it did. `late` may be negative: a sleep that ended early. */
struct nnd_pace_worker {
  _Alignas(64) int64_t last; /* the last point, or the end of the last sleep */
  int64_t wake;              /* the end of the last sleep */
  int64_t wake_used;         /* what this thread's processor clock said then; 0: not known */
  double spent;              /* the weight until which delays were slept */
  int64_t slept, sleeps;
  int64_t waiting_used; /* processor time that sleeping took */
  int64_t longest_run;  /* the most processor time between two sleeps */
};

#define NND_PACE_WINDOW 10000000 /* nanoseconds over which the load is told */
#define NND_PACE_LOG 256         /* sleeps of worker 0 that are remembered */

struct nnd_pace_item {
  void (*pass)(struct nnd_pace_item *item, int64_t worker, int64_t point, int64_t part, int64_t parts);
  const struct nnd_pace_plan *plan; /* null: only measure */
  int64_t begin, deadline;          /* CLOCK_MONOTONIC in nanoseconds */
  int64_t *times;                   /* of each point: nanoseconds of work, by worker 0; null: not wanted */
  int64_t *order;                   /* of each point: which one it was; null: not wanted */
  int64_t num_points, num_passed, num_workers;
  int64_t first; /* the number of the first point of the submodel that runs; each counts its own from 0 */
  struct nnd_pace_worker *workers;
  int64_t end, busiest;          /* when the item was done; the most work of worker 0 in any NND_PACE_WINDOW */
  int64_t used;                  /* processor time of worker 0 */
  int64_t log[2 * NND_PACE_LOG]; /* from when until when worker 0 slept */
  int64_t late[NND_PACE_LOG];    /* by how much each of them ended later than planned, negative where earlier */
};

#endif
