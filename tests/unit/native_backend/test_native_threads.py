# SPDX-License-Identifier: Apache-2.0
"""The pool of c/threads.h: every unit once, steps one after the other, nothing spun away between two runs."""

import ctypes
import time
from collections.abc import Iterator

import numpy as np
import pytest
from native_models import needs_zig, runnable_isas
from nndeploy_native.library import library_from_source
from nndeploy_native.shared_object import library_from_bytes

TEXT = """#include "program.h"
static struct nnd_pool pool;
struct work { int *counts; nnd_size units; };
static void count(const void *context, struct nnd_pool *pool, int worker) {
  const struct work *work = context;
  const struct nnd_part part = {worker, pool->workers, 0};
  nnd_size first, last;
  nnd_share(work->units, part, &first, &last);
  for (nnd_size i = first; i < last; i++) work->counts[i]++;
}
/* Row k + 1 is the running sum of row k, each taken by other workers than the row before. */
struct rows { long *sums; nnd_size units; int rows; };
static void sum(const void *context, struct nnd_pool *pool, int worker) {
  const struct rows *rows = context;
  for (int k = 0; k < rows->rows; k++) {
    const long *from = rows->sums + k * rows->units;
    long *to = rows->sums + (k + 1) * rows->units;
    const struct nnd_part part = {(worker + k) % pool->workers, pool->workers, 0};
    nnd_size first, last;
    nnd_share(rows->units, part, &first, &last);
    for (nnd_size i = first; i < last; i++) to[i] = from[i] + from[rows->units - 1 - i] + 1;
    nnd_barrier(pool);
  }
}
NND_EXPORT int start(int workers) { return nnd_pool_start(&pool, workers); }
NND_EXPORT void stop(void) { nnd_pool_stop(&pool); }
NND_EXPORT void run(int *counts, nnd_size units, int times) {
  const struct work work = {counts, units};
  for (int i = 0; i < times; i++) nnd_pool_run(&pool, count, &work);
}
NND_EXPORT void run_rows(long *sums, nnd_size units, int count) {
  const struct rows rows = {sums, units, count};
  nnd_pool_run(&pool, sum, &rows);
}
NND_EXPORT void share(nnd_size units, int worker, int workers, nnd_size *bounds) {
  nnd_share(units, (struct nnd_part){worker, workers, 0}, bounds, bounds + 1);
}
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ctypes.CDLL]:
    needs_zig()
    library = library_from_bytes(library_from_source(TEXT, runnable_isas()[-1], tmp_path_factory.mktemp("pool")))
    library.run.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
    library.run_rows.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
    library.share.argtypes = [ctypes.c_ssize_t, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    yield library
    library.stop()


@pytest.fixture
def started(pool: ctypes.CDLL, request: pytest.FixtureRequest) -> Iterator[ctypes.CDLL]:
    assert pool.start(request.param) == 0
    yield pool
    pool.stop()


@pytest.mark.parametrize("started", [1, 2, 3, 7], indirect=True)
def test_every_unit_is_done_once_in_each_run(started: ctypes.CDLL) -> None:
    counts = np.zeros(1000, np.int32)
    for _ in range(3):  # asleep, then awake
        started.run(counts.ctypes.data, counts.size, 200)
        time.sleep(0.002)
    assert (counts == 600).all()


@pytest.mark.parametrize("started", [5], indirect=True)
def test_fewer_units_than_workers(started: ctypes.CDLL) -> None:
    counts = np.zeros(2, np.int32)
    started.run(counts.ctypes.data, counts.size, 100)
    assert (counts == 100).all()


@pytest.mark.parametrize("started", [1, 2, 3, 7], indirect=True)
def test_no_step_begins_before_the_one_before_it_has_ended(started: ctypes.CDLL) -> None:
    rows, units = 300, 40
    wanted = [np.arange(units, dtype=np.int64)]
    with np.errstate(over="ignore"):
        for _ in range(rows):
            wanted.append(wanted[-1] + wanted[-1][::-1] + 1)
    sums = np.zeros((rows + 1, units), np.int64)
    for _ in range(3):
        sums[0], sums[1:] = wanted[0], 0
        started.run_rows(sums.ctypes.data, units, rows)
        assert np.array_equal(sums, wanted)


@pytest.mark.parametrize("started", [3], indirect=True)
def test_takes_no_processor_time_between_runs(started: ctypes.CDLL) -> None:
    counts = np.zeros(100, np.int32)
    started.run(counts.ctypes.data, counts.size, 10)
    time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1


@pytest.mark.parametrize("workers", [0, -1, 257])
def test_refuses_a_number_of_workers_that_it_cannot_have(pool: ctypes.CDLL, workers: int) -> None:
    assert pool.start(workers) != 0


@pytest.mark.parametrize("units", [0, 1, 2, 3, 10, 1000])
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_shares_follow_each_other_and_cover_all(pool: ctypes.CDLL, units: int, workers: int) -> None:
    bounds = np.zeros((workers, 2), np.int64)
    for worker in range(workers):
        pool.share(units, worker, workers, bounds[worker].ctypes.data)
    assert bounds[0, 0] == 0
    assert bounds[-1, 1] == units
    assert (bounds[1:, 0] == bounds[:-1, 1]).all()
    assert (bounds[:, 1] - bounds[:, 0]).max(initial=0) <= -(-units // workers)
