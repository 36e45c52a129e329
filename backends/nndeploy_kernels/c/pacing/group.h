/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of memory by which processes share a part of the processor; together they never take more.
 *
 * Time is handed out as it was worked: who worked w nanoseconds of processor time moves `free_at`, the moment until
 * which all work is paid for, on by w / limit, and sleeps until the moment that it moved it to. So what all do between
 * two moments is at most the limit's share of the time between them and what each does between two of its points. Time
 * in which nobody worked is lost: none is saved up.
 *
 * There is no lock. `free_at` is moved by compare and exchange, so whoever is killed in between has either paid or not;
 * members are told apart by an identity, process and start of it, and a place whose process is gone is taken over.
 */
#ifndef NND_GROUP_H
#define NND_GROUP_H

#include <stdatomic.h>
#include <stdint.h>

#define NND_GROUP_VERSION 1
#define NND_GROUP_MEMBERS 62             /* with what stands before them: one page */
#define NND_GROUP_MOST_AHEAD 60000000000 /* nanoseconds: a moment further ahead was never paid for, it is damage */

struct nnd_group_member {
  _Alignas(64) _Atomic int64_t identity; /* 0: nobody; negative: of whoever is just taking the place */
  _Atomic int64_t limit;                 /* millionths of a processor */
  _Atomic int64_t paid;                  /* processor time of the process until which it has paid, in nanoseconds */
  _Atomic int64_t paid_at;               /* when it last did, by CLOCK_MONOTONIC */
  _Atomic int64_t worked;                /* what it paid for since it came, in nanoseconds */
};

struct nnd_group {
  char magic[8];
  int64_t version;
  _Alignas(64) _Atomic int64_t free_at; /* CLOCK_MONOTONIC in nanoseconds */
  _Atomic int64_t worked;               /* what all paid for since the page was made, in nanoseconds */
  struct nnd_group_member members[NND_GROUP_MEMBERS];
};

#endif
