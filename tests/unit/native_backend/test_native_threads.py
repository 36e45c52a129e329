# SPDX-License-Identifier: Apache-2.0
"""The pool of base/threads.h: every unit once, steps one after the other, nothing spun away between two runs."""

import ctypes
import time
from collections.abc import Iterator

import numpy as np
import pytest
from c_library import library_from_source, zig_missing

CHUNKS = 4
MOST_STEPS = 300
TEXT = f"""#include "base/threads.h"
#define NND_EXPORT __attribute__((visibility("default")))
NND_EXPORT struct nnd_pool *nnd_start(int workers) {{ return nnd_pool_start(workers, {MOST_STEPS}); }}
NND_EXPORT void nnd_stop(struct nnd_pool *pool) {{ nnd_pool_stop(pool); }}
struct work {{ int *counts; nnd_size units; }};
static void count(const void *context, struct nnd_part part) {{
  const struct work *work = context;
  nnd_size first, last;
  nnd_share(work->units, part, &first, &last);
  for (nnd_size i = first; i < last; i++) work->counts[i]++;
}}
static void count_all(const void *context, struct nnd_pool *pool, int worker) {{
  nnd_pool_step(pool, 0, worker, {CHUNKS}, count, context, 0);
}}
/* Row k + 1 is made of row k, each part of places that other parts of the row before have written. */
struct rows {{ long *sums; nnd_size units; int rows, row; }};
static void sum(const void *context, struct nnd_part part) {{
  const struct rows *rows = context;
  const long *from = rows->sums + rows->row * rows->units;
  nnd_size first, last;
  nnd_share(rows->units, part, &first, &last);
  long *to = rows->sums + (rows->row + 1) * rows->units;
  for (nnd_size i = first; i < last; i++) to[i] = from[i] + from[rows->units - 1 - i] + 1;
}}
static void sum_all(const void *context, struct nnd_pool *pool, int worker) {{
  struct rows rows = *(const struct rows *)context;
  for (rows.row = 0; rows.row < rows.rows; rows.row++) nnd_pool_step(pool, rows.row, worker, {CHUNKS}, sum, &rows, 0);
}}
/* The same, with two rows of every five made by one worker alone. */
static void sum_some_alone(const void *context, struct nnd_pool *pool, int worker) {{
  struct rows rows = *(const struct rows *)context;
  int is_mine = 0;
  for (rows.row = 0; rows.row < rows.rows; rows.row++) {{
    const int place = rows.row % 5;
    if (place == 2) is_mine = nnd_pool_claim(pool, rows.row);
    if (place != 2 && place != 3)
      nnd_pool_step(pool, rows.row, worker, {CHUNKS}, sum, &rows, 0);
    else if (is_mine)
      sum(&rows, (struct nnd_part){{.count = 1}});
    if (place == 3 || (place == 2 && rows.row + 1 == rows.rows)) nnd_pool_claimed_done(pool, rows.row, is_mine);
  }}
}}
NND_EXPORT void run(struct nnd_pool *pool, int *counts, nnd_size units, int times) {{
  const struct work work = {{counts, units}};
  for (int i = 0; i < times; i++) nnd_pool_run(pool, count_all, &work);
}}
NND_EXPORT void run_rows(struct nnd_pool *pool, long *sums, nnd_size units, int count) {{
  const struct rows rows = {{sums, units, count, 0}};
  nnd_pool_run(pool, sum_all, &rows);
}}
NND_EXPORT void run_some_alone(struct nnd_pool *pool, long *sums, nnd_size units, int count) {{
  const struct rows rows = {{sums, units, count, 0}};
  nnd_pool_run(pool, sum_some_alone, &rows);
}}
NND_EXPORT void share(nnd_size units, int number, int count, nnd_size *bounds) {{
  nnd_share(units, (struct nnd_part){{.number = number, .count = count}}, bounds, bounds + 1);
}}
"""


class Pool:
    """A pool of the library, as the tests call it."""

    def __init__(self, library: ctypes.CDLL, workers: int) -> None:
        self._library = library
        self.address = library.nnd_start(workers)

    def run(self, counts: np.ndarray[tuple[int], np.dtype[np.int32]], times: int) -> None:
        self._library.run(self.address, counts.ctypes.data, counts.size, times)

    def run_rows(self, sums: np.ndarray[tuple[int, int], np.dtype[np.int64]], *, some_alone: bool) -> None:
        run = self._library.run_some_alone if some_alone else self._library.run_rows
        run(self.address, sums.ctypes.data, sums.shape[1], sums.shape[0] - 1)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if reason := zig_missing():
        pytest.skip(reason)
    made = ctypes.CDLL(str(library_from_source([TEXT], tmp_path_factory.mktemp("pool"))))
    made.nnd_start.argtypes, made.nnd_start.restype = [ctypes.c_int], ctypes.c_void_p
    made.nnd_stop.argtypes = [ctypes.c_void_p]
    made.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
    for function in (made.run_rows, made.run_some_alone):
        function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
    made.share.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    return made


@pytest.fixture
def pool(library: ctypes.CDLL, request: pytest.FixtureRequest) -> Iterator[Pool]:
    made = Pool(library, request.param)
    assert made.address
    yield made
    library.nnd_stop(made.address)


@pytest.mark.parametrize("pool", [2, 3, 7], indirect=True)
def test_every_unit_is_done_once_in_each_run(pool: Pool) -> None:
    counts = np.zeros(1000, np.int32)
    for _ in range(3):  # asleep, then awake
        pool.run(counts, 200)
        time.sleep(0.002)
    assert (counts == 600).all()


@pytest.mark.parametrize("pool", [5], indirect=True)
def test_fewer_units_than_workers(pool: Pool) -> None:
    counts = np.zeros(2, np.int32)
    pool.run(counts, 100)
    assert (counts == 100).all()


@pytest.mark.parametrize("some_alone", [False, True])
@pytest.mark.parametrize("pool", [2, 3, 7], indirect=True)
def test_no_step_begins_before_the_one_before_it_has_ended(pool: Pool, some_alone: bool) -> None:
    units = 40
    wanted = [np.arange(units, dtype=np.int64)]
    with np.errstate(over="ignore"):
        for _ in range(MOST_STEPS):
            wanted.append(wanted[-1] + wanted[-1][::-1] + 1)
    sums = np.zeros((MOST_STEPS + 1, units), np.int64)
    for _ in range(3):
        sums[0], sums[1:] = wanted[0], 0
        pool.run_rows(sums, some_alone=some_alone)
        assert np.array_equal(sums, wanted)


def test_a_worker_that_is_not_let_run_holds_nobody_up(library: ctypes.CDLL) -> None:
    """Sixty workers on few processors: a call takes what its work takes, not sixty turns of the scheduler."""
    made, counts = Pool(library, 60), np.zeros(1000, np.int32)
    made.run(counts, 1)
    start = time.perf_counter()
    made.run(counts, 100)
    taken = time.perf_counter() - start
    library.nnd_stop(made.address)
    assert (counts == 101).all()
    assert taken < 5


@pytest.mark.parametrize("workers", [0, -1, 1, 257])
def test_refuses_a_number_of_workers_that_it_cannot_have(library: ctypes.CDLL, workers: int) -> None:
    assert not library.nnd_start(workers)


@pytest.mark.parametrize("units", [0, 1, 2, 3, 10, 1000])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_shares_follow_each_other_and_cover_all(library: ctypes.CDLL, units: int, workers: int) -> None:
    bounds = np.zeros((workers, 2), np.int64)
    for worker in range(workers):
        library.share(units, worker, workers, bounds[worker].ctypes.data)
    assert bounds[0, 0] == 0
    assert bounds[-1, 1] == units
    assert (bounds[1:, 0] == bounds[:-1, 1]).all()
    assert (bounds[:, 1] - bounds[:, 0]).max(initial=0) <= -(-units // workers)
