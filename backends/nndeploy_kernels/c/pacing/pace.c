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
 * have taken goes into the next one. The stretch is how much longer the work took so far than its baseline, at least 1, and in earlier runs.
 * The last sleep, behind which a burst is enough for all that remains and what a thread does between two items, takes all
 * the slack. Who has no slack left but would still be done in time without the reserve takes the
 * least sleep where one is due, so that others need not wait for longer than a burst: for that a part of the reserve is
 * used that grows as the work that remains shrinks, and the stretch is that of its processor time, for what held it up
 * once need not come again. A delay that is preset is slept as it is, and no part of the slack. Where the item
 * shares the processor with a group (group.h) that alone says when to sleep. A sleep is asked to end earlier by what sleeps of this thread are usually late.
 *
 * How long a thread has run is told by its processor clock, which is a system call and therefore read at sleeps only.
 *
 * Work that passes no points, such as decoding by somebody else's library, is stretched: a timer signals its thread
 * once it has gone on for a while, and the handler sleeps, wherever the thread is. Linux only.
 */
#define _GNU_SOURCE
#include "pacing/paced_item.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NND_EXPORT __attribute__((visibility("default")))

#define NND_KNOWN 0.1        /* of the work must be done for the stretch to count as much as that of earlier runs */
#define NND_KEPT 0.5         /* of the reserve is kept by a late run, at its begin; nothing at its end */
#define NND_MOST_BEFORE 0.75 /* of a burst may be worked by a thread that goes on with another item at once */
#define NND_BETWEEN 4e5      /* nanoseconds that a thread works from an item's last operator to the next one's first */
#define NND_LATE_STEP 1000.0 /* nanoseconds by which one sleep changes what is thought to be usual */
#define NND_MOST_LATE 150000.0  /* more is no habit of the system, but somebody else's work */
#define NND_GROUP_BURST 1.4e6   /* nanoseconds that a member works before it pays */
#define NND_GROUP_LEAST 1e5     /* nanoseconds under which it does not sleep */
#define NND_STRETCHED 1e6       /* nanoseconds after which work without points is interrupted */
#define NND_LEAST_STRETCHED 1e5 /* the least of them, where it sleeps long */
#define NND_MOST_STRETCHED 16e6 /* the most of them, where the thread waits instead of working */
#define NND_LEAST_REST 1e5      /* nanoseconds under which it does not sleep */
#define NND_MOST_REST 5e6       /* and the most where it is interrupted, for it may hold locks, as Python's */
#define NND_BLOCKED 300000      /* nanoseconds between two items in which the thread did not run: it has rested */

NND_EXPORT const int nnd_pace_version = NND_PACE_LIBRARY_VERSION;

/* The item that this thread works on. */
static _Thread_local struct nnd_pace_item *nnd_current;
static _Thread_local int nnd_is_prompt;
static _Thread_local double nnd_usually_late; /* the median of its sleeps, followed in small steps */
/* This thread's last sleep and the end of its last item, by its processor clock, and the latter by time. */
static _Thread_local int64_t nnd_rested_used, nnd_ended_used, nnd_ended;

static double nnd_max(double a, double b) { return a > b ? a : b; }

static double nnd_min(double a, double b) { return a < b ? a : b; }

static int64_t nnd_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t nnd_now(void) { return nnd_clock(CLOCK_MONOTONIC); }
static int64_t nnd_used(void) { return nnd_clock(CLOCK_THREAD_CPUTIME_ID); }

/* struct sched_attr of linux/sched/types.h, which older headers lack. */
struct nnd_scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
};

static _Atomic int64_t nnd_wanted_slice;

/* Asks for scheduling slices of `nanoseconds` for this thread, and for every other one once it sleeps: since Linux 6.12
 * others that wake then interrupt it at once, and its share stays what it was. Returns whether the kernel took it. */
NND_EXPORT int nnd_pace_slice(int64_t nanoseconds) {
  nnd_wanted_slice = nanoseconds;
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
    if (nnd_wanted_slice) nnd_pace_slice(nnd_wanted_slice);
    nnd_is_prompt = 1;
  }
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR) {
  }
}

/* Sleeps until `until`, as nearly as sleeps of this thread do; returns the time then. */
static int64_t nnd_slept_until(int64_t until) {
  nnd_sleep_until(until - (int64_t)nnd_usually_late);
  const int64_t awake = nnd_now();
  nnd_usually_late += awake > until ? NND_LATE_STEP : -NND_LATE_STEP;
  if (nnd_usually_late < 0.0) nnd_usually_late = 0.0;
  if (nnd_usually_late > NND_MOST_LATE) nnd_usually_late = NND_MOST_LATE;
  return awake;
}

/* How long to sleep at a point where `done` nanoseconds of work and `weight` of all delays are over, and behind which
 * `next` nanoseconds of work stand until another one; `presets` are those from there on; 0: not now. */
static double nnd_delay(const struct nnd_pace_item *item, const struct nnd_pace_worker *worker, int64_t now,
                        double done, double weight, double next, double presets) {
  const struct nnd_pace_plan *plan = item->plan;
  const double left = 1.0 - worker->spent, remaining = plan->total - done;
  const int is_last = weight >= 1.0 - 1e-9; /* no sleep is planned behind this point */
  const int has_worked = (double)(now - worker->wake) + next > plan->burst;
  const int is_due = has_worked || (is_last && worker->spent <= 0.0); /* the sleep at the begin spends nothing */
  if (!is_due || next <= 0.0 || (left <= 0.0 && plan->burst <= 0.0)) return 0.0;
  const double worked = (double)(now - item->begin - worker->slept), known = plan->total * NND_KNOWN;
  const double stretch = (plan->stretch * known + nnd_max(worked, done)) / (known + done);
  const double slack = (double)(item->deadline - now) - remaining * stretch - plan->reserve - presets;
  const int takes_all = is_last || remaining + NND_BETWEEN <= plan->burst;
  const double delay = takes_all ? slack : slack * (weight - worker->spent) / left;
  if (delay >= plan->least) return delay;
  if (!has_worked || plan->burst <= 0.0 || remaining <= 0.0) return 0.0;
  const double kept = NND_KEPT * plan->reserve * remaining / nnd_max(1.0, plan->total) + presets;
  const double used = worker == item->workers ? nnd_max((double)(nnd_used() + item->used), done) : worked;
  const double pace = nnd_min(stretch, (plan->stretch * known + used) / (known + done));
  return (double)(item->deadline - now) - remaining * pace - kept >= plan->least ? plan->least : 0.0;
}

/* Pays a group for what this process worked since it last did, and returns for how long to sleep; 0: not now. All its
 * threads count, also those that pass no points; what is too short to sleep stays to be slept with the next. */
static double nnd_group_delay(struct nnd_group *group, int64_t number, int64_t now) {
  struct nnd_group_member *member = &group->members[number];
  const int64_t used = nnd_clock(CLOCK_PROCESS_CPUTIME_ID);
  int64_t paid = atomic_load(&member->paid);
  while (used > paid && !atomic_compare_exchange_weak(&member->paid, &paid, used)) {
  }
  const int64_t owed = used > paid ? used - paid : 0, limit = atomic_load(&member->limit);
  const int64_t paid_at = atomic_exchange(&member->paid_at, now);
  /* Later than that much ago where threads worked at once. */
  const int64_t began = now - owed > paid_at ? now - owed : paid_at;
  if (owed) {
    atomic_fetch_add(&member->worked, owed);
    atomic_fetch_add(&group->worked, owed);
  }
  const int64_t cost = limit > 0 ? (int64_t)((double)owed * 1e6 / (double)limit) : owed;
  int64_t free_at = atomic_load(&group->free_at), wanted;
  do {
    const int is_sane = free_at > began && free_at < now + NND_GROUP_MOST_AHEAD;
    wanted = (is_sane ? free_at : began) + cost;
  } while (!atomic_compare_exchange_weak(&group->free_at, &free_at, wanted));
  const double delay = (double)(wanted - now);
  return delay < NND_GROUP_LEAST ? 0.0 : delay;
}

/* Sleeps for `delay` nanoseconds from `now` on. */
static void nnd_sleep(struct nnd_pace_item *item, int64_t number, int64_t now, double delay) {
  struct nnd_pace_worker *worker = &item->workers[number];
  const int64_t until = now + (int64_t)delay, used = nnd_used();
  const int64_t ran = worker->wake_used ? used - worker->wake_used : now - worker->wake;
  if (ran > worker->longest_run) worker->longest_run = ran;
  const int64_t awake = nnd_slept_until(until), late = awake - until;
  nnd_rested_used = nnd_used();
  worker->waiting_used += nnd_rested_used - used;
  worker->wake_used = nnd_rested_used;
  worker->wake = worker->last = awake;
  worker->slept += awake - now;
  if (number == 0 && worker->sleeps < NND_PACE_LOG) {
    item->log[2 * worker->sleeps] = now;
    item->log[2 * worker->sleeps + 1] = awake;
    item->late[worker->sleeps] = late;
  }
  worker->sleeps++;
}

static void nnd_pass(struct nnd_pace_item *item, int64_t number, int64_t in_submodel, int64_t part, int64_t parts) {
  const int64_t now = nnd_now(), point = item->first + in_submodel;
  struct nnd_pace_worker *worker = &item->workers[number];
  if (point >= item->num_points) return; /* a library that counts other steps than its plan does */
  if (number == 0 && item->times) item->times[point] += now - worker->last;
  if (number == 0 && item->order && part == parts) item->order[point] = item->num_passed++;
  worker->last = now;
  const struct nnd_paced_item *terms = (const struct nnd_paced_item *)item;
  const struct nnd_pace_point *at = item->plan ? &item->plan->points[point] : NULL;
  const double next = !at ? 0.0 : part < parts ? at->duration / (double)parts : at->next;
  if (terms->group) {
    if ((double)(now - worker->wake) + next <= NND_GROUP_BURST) return;
    const double delay = nnd_group_delay(terms->group, terms->member, now);
    if (delay > 0.0) nnd_sleep(item, number, now, delay);
    return;
  }
  if (!at || (terms->presets && part < parts)) return;
  const double share = (double)part / (double)parts, weight = at->weight_before + at->weight * share;
  const double preset = terms->presets ? terms->presets[point] : 0.0;
  const double after = terms->presets ? terms->presets_after[point] + preset : 0.0;
  const double delay = nnd_delay(item, worker, now, at->before + at->duration * share, weight, next, after);
  if (delay + preset <= 0.0) return;
  nnd_sleep(item, number, now, delay + preset);
  if (delay > 0.0) worker->spent = weight;
}

/* Begins an item: what its threads remember is cleared, and this thread works on it until nnd_pace_end(). The deadline
 * is `budget` nanoseconds from `begin` on, which is now where it is 0. What this thread has worked since it last slept
 * counts, unless that was for an item without a plan, or the thread has rested since its last item. */
NND_EXPORT void nnd_pace_begin(struct nnd_pace_item *item, int64_t begin, int64_t budget) {
  const int64_t now = nnd_now(), used = nnd_used();
  const int has_rested = !nnd_ended || (now - nnd_ended) - (used - nnd_ended_used) > NND_BLOCKED;
  if (has_rested) nnd_rested_used = used;
  item->pass = nnd_pass;
  item->begin = begin ? begin : now;
  item->deadline = item->begin + budget;
  item->num_passed = item->first = 0;
  item->used = -used;
  for (int64_t i = 0; item->times && i < item->num_points; i++) item->times[i] = 0;
  for (int64_t i = 0; i < item->num_workers; i++) item->workers[i] = (struct nnd_pace_worker){.last = now, .wake = now};
  item->workers[0].wake_used = nnd_rested_used;
  item->workers[0].wake = now - (used - nnd_rested_used);
  nnd_current = item;
  const struct nnd_paced_item *terms = (const struct nnd_paced_item *)item;
  double delay = terms->group ? nnd_group_delay(terms->group, terms->member, now) : 0.0;
  if (!terms->group && item->plan && (double)(now - item->workers[0].wake) > item->plan->burst * NND_MOST_BEFORE) {
    const double in_time = (double)(item->deadline - now), work = item->plan->total * item->plan->stretch;
    const double slack = in_time - work - item->plan->reserve;
    delay = item->plan->burst > 0.0 && slack >= item->plan->least ? item->plan->least : 0.0;
  }
  if (delay > 0.0) nnd_sleep(item, 0, now, delay);
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
  nnd_ended = item->end = nnd_now();
  nnd_ended_used = nnd_used();
  item->used += nnd_ended_used;
  const int64_t ran = nnd_ended_used - worker->wake_used;
  if (ran > worker->longest_run) worker->longest_run = ran;
  if (!item->plan) nnd_rested_used = nnd_ended_used;
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

/* Work of this thread that passes no points: `factor` times as long as it takes, but no longer than until `due`. */
struct nnd_stretch {
  int64_t begin, due, used; /* CLOCK_MONOTONIC; this thread's processor clock at the begin */
  double factor;
  double tick;  /* nanoseconds from one interruption to the next */
  int64_t seen; /* this thread's processor clock at the last one */
  int64_t slept;
  volatile sig_atomic_t is_on;
  int timer, has_timer; /* the kernel's: glibc before 2.34 has its own in another library */
};
static _Thread_local struct nnd_stretch nnd_stretch;

/* Sleeps for what was worked, at most `most` nanoseconds. */
static void nnd_stretch_rest(struct nnd_stretch *work, double most) {
  const int64_t now = nnd_now(), used = nnd_used();
  const double until = nnd_min((double)work->due, (double)work->begin + (double)(used - work->used) * work->factor);
  const double delay = nnd_min(most, until - (double)now);
  if (delay < NND_LEAST_REST) return;
  work->slept += nnd_slept_until(now + (int64_t)delay) - now;
  nnd_rested_used = nnd_used();
}

/* Interrupts a thread again, the later the longer it waits for something. */
static void nnd_stretch_arm(struct nnd_stretch *work) {
  const int64_t used = nnd_used();
  const int has_worked = (double)(used - work->seen) > work->tick / 4;
  const double usual = nnd_max(NND_LEAST_STRETCHED, nnd_min(NND_STRETCHED, NND_MOST_REST / work->factor));
  work->tick = has_worked ? usual : nnd_min(2 * work->tick, NND_MOST_STRETCHED);
  work->seen = used;
  const struct itimerspec in = {.it_value = {0, (long)work->tick}};
  if (work->has_timer) syscall(SYS_timer_settime, work->timer, 0, &in, NULL);
}

static void nnd_stretch_interrupted(int signal) {
  const int before = errno;
  (void)signal;
  if (nnd_stretch.is_on) {
    nnd_stretch_rest(&nnd_stretch, NND_MOST_REST);
    nnd_stretch_arm(&nnd_stretch);
  }
  errno = before;
}

/* Lets a signal that nobody else has interrupt work; returns its number, 0 where none is free. System calls go on
 * behind it. */
static int nnd_stretch_signal(void) {
  static _Atomic int taken;
  if (taken) return taken;
  const struct sigaction wanted = {.sa_handler = nnd_stretch_interrupted, .sa_flags = SA_RESTART | SA_ONSTACK};
  struct sigaction found;
  for (int number = SIGRTMAX - 1; number > SIGRTMIN; number--) {
    if (sigaction(number, NULL, &found)) return 0;
    if (found.sa_handler == nnd_stretch_interrupted) return taken = number; /* another thread was faster */
    if (found.sa_handler == SIG_DFL && !sigaction(number, &wanted, NULL)) return taken = number;
  }
  return 0;
}

/* Begins work of this thread that passes no points, takes `work` nanoseconds of processor time, and should be done at
 * `due` (CLOCK_MONOTONIC). It is interrupted again and again, and sleeps; where the system does not let it be
 * interrupted it may still sleep at its end. */
NND_EXPORT void nnd_stretch_begin(int64_t due, int64_t work) {
  struct nnd_stretch *own = &nnd_stretch;
  const int number = nnd_stretch_signal();
  struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
  *own = (struct nnd_stretch){.begin = nnd_now(), .due = due, .used = nnd_used()};
  own->factor = work > 0 ? nnd_max(1.0, (double)(due - own->begin) / (double)work) : 1.0;
  event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
  own->has_timer = number && !syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &own->timer);
  own->is_on = 1;
  nnd_stretch_arm(own);
}

/* Ends it, and sleeps for what is left where it `rests`; returns for how many nanoseconds it slept. */
NND_EXPORT int64_t nnd_stretch_end(int rests) {
  struct nnd_stretch *own = &nnd_stretch;
  own->is_on = 0;
  if (own->has_timer) syscall(SYS_timer_delete, own->timer);
  if (rests) nnd_stretch_rest(own, (double)(own->due - own->begin));
  return own->slept;
}

/* Takes a place of a group that is `expected` (0: nobody's) for `identity`, or gives it back (0); returns whether it
 * did. Whoever sees an identity that is not negative sees the limit that belongs to it. */
NND_EXPORT int nnd_group_take(struct nnd_group *group, int64_t number, int64_t expected, int64_t identity,
                              int64_t limit) {
  struct nnd_group_member *member = &group->members[number];
  if (!atomic_compare_exchange_strong(&member->identity, &expected, -identity)) return 0;
  atomic_store(&member->worked, 0);
  atomic_store(&member->paid, nnd_clock(CLOCK_PROCESS_CPUTIME_ID));
  atomic_store(&member->paid_at, nnd_now());
  atomic_store(&member->limit, limit);
  atomic_store(&member->identity, identity);
  return 1;
}

/* Pays for what a member worked, without sleeping: what it owes when it leaves others wait for. */
NND_EXPORT void nnd_group_pay(struct nnd_group *group, int64_t number) { nnd_group_delay(group, number, nnd_now()); }
