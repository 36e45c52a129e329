/* SPDX-License-Identifier: Apache-2.0
 *
 * The library that delays: what happens at a point, and how an item begins and ends on a thread.
 *
 * A delay is a sleep until an absolute time, never a wait that spins. How long follows from the slack that is left:
 *
 *   slack = deadline - now - remaining work * stretch - reserve
 *   delay = slack * (weight since the last sleep) / (weight from there to the end)
 *
 * so what was lost to others, or gained, is spread over all that is to come, and what a sleep that was left out would
 * have taken goes into the next one. The stretch is how much longer the work took so far than it does calm, at least 1.
 * Linux only.
 */
#define _GNU_SOURCE
#include "pace.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NND_EXPORT __attribute__((visibility("default")))

#define NND_KNOWN 0.1 /* of the work is done before the stretch is believed */

NND_EXPORT const int nnd_pace_version = NND_PACE_VERSION;

/* The item that this thread works on. */
static _Thread_local struct nnd_pace_item *nnd_current;
static _Thread_local int nnd_is_prompt;

static int64_t nnd_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* struct sched_attr of linux/sched/types.h, which older headers lack. */
struct nnd_scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

/* Asks for scheduling slices of `nanoseconds` for this thread: since Linux 6.12 others that wake then interrupt it at
 * once, and its share stays what it was. Returns whether the kernel took it. */
NND_EXPORT int nnd_pace_slice(int64_t nanoseconds) {
  struct nnd_scheduling wanted = {0}, got = {0};
  if (syscall(SYS_sched_getattr, 0, &wanted, sizeof wanted, 0) || wanted.policy != SCHED_OTHER) return 0;
  wanted.size = sizeof wanted;
  wanted.runtime = (uint64_t)nanoseconds;
  if (syscall(SYS_sched_setattr, 0, &wanted, 0)) return 0;
  return !syscall(SYS_sched_getattr, 0, &got, sizeof got, 0) && got.runtime == wanted.runtime;
}

/* Sleeps until `until`; the system may wake this thread exactly then, not 50 microseconds later. */
static void nnd_sleep_until(int64_t until) {
  const struct timespec at = {until / 1000000000, until % 1000000000};
  if (!nnd_is_prompt) {
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    nnd_is_prompt = 1;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
  }
}

/* How long to sleep at a point behind which `next` nanoseconds of work stand until another one; 0: not now. */
static double nnd_delay(const struct nnd_pace_item *item, const struct nnd_pace_worker *worker, int64_t now,
                        double done, double weight, double next) {
  const struct nnd_pace_plan *plan = item->plan;
  const double left = 1.0 - worker->spent;
  if ((double)(now - worker->wake) + next <= plan->burst || left <= 0.0 || next <= 0.0) return 0.0;
  const double worked = (double)(now - item->begin - worker->slept);
  const double stretch = done > plan->total * NND_KNOWN && worked > done ? worked / done : 1.0;
  const double slack = (double)(item->deadline - now) - (plan->total - done) * stretch - plan->reserve;
  const double delay = slack * (weight - worker->spent) / left;
  return delay < plan->least ? 0.0 : delay;
}

static void nnd_pass(struct nnd_pace_item *item, int64_t number, int64_t in_submodel, int64_t part, int64_t parts) {
  const int64_t now = nnd_now(), point = item->first + in_submodel;
  struct nnd_pace_worker *worker = &item->workers[number];
  if (point >= item->num_points) return; /* a library that counts other steps than its plan does */
  if (number == 0 && item->times) item->times[point] += now - worker->last;
  if (number == 0 && item->order && part == parts) item->order[point] = item->num_passed++;
  worker->last = now;
  if (now - worker->wake > worker->longest_run) worker->longest_run = now - worker->wake;
  if (!item->plan) return;
  const struct nnd_pace_point *at = &item->plan->points[point];
  const double share = (double)part / (double)parts, weight = at->weight_before + at->weight * share;
  const double next = part < parts ? at->amount / (double)parts : at->next;
  const double delay = nnd_delay(item, worker, now, at->before + at->amount * share, weight, next);
  if (delay <= 0.0) return;
  const int64_t until = now + (int64_t)delay;
  nnd_sleep_until(until);
  const int64_t awake = nnd_now(), late = awake - until;
  worker->spent = weight;
  worker->wake = worker->last = awake;
  worker->slept += awake - now;
  if (number == 0 && worker->sleeps < NND_PACE_LOG) {
    item->log[2 * worker->sleeps] = now;
    item->log[2 * worker->sleeps + 1] = awake;
  }
  worker->sleeps++;
  worker->late += late;
  if (late > worker->most_late) worker->most_late = late;
}

/* Begins an item: what its threads remember is cleared, and this thread works on it until nnd_pace_end(). The deadline
 * is `cap` nanoseconds from `begin` on, which is now where it is 0. */
NND_EXPORT void nnd_pace_begin(struct nnd_pace_item *item, int64_t begin, int64_t cap) {
  const int64_t now = nnd_now();
  item->pass = nnd_pass;
  item->begin = begin ? begin : now;
  item->deadline = item->begin + cap;
  item->num_passed = item->first = 0;
  for (int64_t i = 0; item->times && i < item->num_points; i++) item->times[i] = 0;
  for (int64_t i = 0; i < item->num_workers; i++)
    item->workers[i] = (struct nnd_pace_worker){.last = now, .wake = now};
  nnd_current = item;
}

/* How long worker 0 worked between `from` and `from` + NND_PACE_WINDOW; of a run with more sleeps than are remembered,
 * nothing is told behind the last of those. */
static int64_t nnd_busy_after(const struct nnd_pace_item *item, int64_t from) {
  const int64_t to = from + NND_PACE_WINDOW, sleeps = item->workers[0].sleeps;
  const int64_t end = sleeps > NND_PACE_LOG ? item->log[2 * NND_PACE_LOG - 1] : item->end;
  int64_t busy = (to < end ? to : end) - from;
  for (int64_t i = 0; i < sleeps && i < NND_PACE_LOG; i++) {
    const int64_t begin = item->log[2 * i] > from ? item->log[2 * i] : from;
    const int64_t end = item->log[2 * i + 1] < to ? item->log[2 * i + 1] : to;
    if (end > begin) busy -= end - begin;
  }
  return busy;
}

/* Ends the item of this thread. The busiest window is one of those that begin with work. */
NND_EXPORT void nnd_pace_end(void) {
  struct nnd_pace_item *item = nnd_current;
  struct nnd_pace_worker *worker = item->workers;
  nnd_current = NULL;
  item->end = nnd_now();
  if (item->end - worker->wake > worker->longest_run) worker->longest_run = item->end - worker->wake;
  item->busiest = nnd_busy_after(item, item->begin);
  for (int64_t i = 0; i < worker->sleeps && i < NND_PACE_LOG; i++) {
    const int64_t busy = nnd_busy_after(item, item->log[2 * i + 1]);
    if (busy > item->busiest) item->busiest = busy;
  }
}

/* The points that follow on this thread are counted from `first` on. */
NND_EXPORT void nnd_pace_from(int64_t first) {
  if (nnd_current) nnd_current->first = first;
}

/* Passes a point of the item that this thread works on, if there is one. */
NND_EXPORT void nnd_pace_pass(int64_t point) {
  if (nnd_current) nnd_pass(nnd_current, 0, point, 1, 1);
}
