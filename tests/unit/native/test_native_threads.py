# SPDX-License-Identifier: Apache-2.0
"""The pool of c/threads.h: every unit once, any number of workers, nothing spun away between two runs."""

import ctypes
import time
from importlib.util import find_spec

import numpy as np
import pytest
from nndeploy_native.kernels.compiler import HINT, compile_library
from nndeploy_native.kernels.instance import cpu_features
from nndeploy_native.kernels.isa import AVX2

TEXT = """#include "threads.h"
static struct nnd_pool pool;
struct work { int *counts; ptrdiff_t units; };
static void count(void *context, int worker, int workers) {
  const struct work *work = context;
  nnd_size first, last;
  nnd_share(work->units, worker, workers, &first, &last);
  for (nnd_size i = first; i < last; i++) work->counts[i]++;
}
int start(int workers) { return nnd_pool_start(&pool, workers); }
void stop(void) { nnd_pool_stop(&pool); }
void run(int *counts, ptrdiff_t units, int times) {
  struct work work = {counts, units};
  for (int i = 0; i < times; i++) nnd_pool_run(&pool, count, &work);
}
"""


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if find_spec("ziglang") is None:
        pytest.skip(f"ziglang is not installed ({HINT})")
    if "avx2" not in cpu_features():
        pytest.skip("this processor has no avx2")
    folder = tmp_path_factory.mktemp("pool")
    (folder / "pool.c").write_text(TEXT)
    compile_library(AVX2, folder / "pool.c", folder / "pool.so", ("-pthread",))
    library = ctypes.CDLL(str(folder / "pool.so"))
    library.run.argtypes = [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int]
    return library


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_every_unit_is_done_once_in_each_run(pool: ctypes.CDLL, workers: int) -> None:
    counts = np.zeros(1000, np.int32)
    assert pool.start(workers) == 0
    for _ in range(3):  # asleep, then awake
        pool.run(counts.ctypes.data, counts.size, 200)
        time.sleep(0.002)
    pool.stop()
    assert (counts == 600).all()


def test_fewer_units_than_workers(pool: ctypes.CDLL) -> None:
    counts = np.zeros(2, np.int32)
    assert pool.start(5) == 0
    pool.run(counts.ctypes.data, counts.size, 100)
    pool.stop()
    assert (counts == 100).all()


def test_takes_no_processor_time_between_runs(pool: ctypes.CDLL) -> None:
    counts = np.zeros(100, np.int32)
    assert pool.start(3) == 0
    pool.run(counts.ctypes.data, counts.size, 10)
    time.sleep(0.01)
    before = time.process_time()
    time.sleep(0.3)
    spent = time.process_time() - before
    pool.stop()
    assert spent < 0.1


@pytest.mark.parametrize("workers", [0, -1, 257])
def test_refuses_a_number_of_workers_that_it_cannot_have(pool: ctypes.CDLL, workers: int) -> None:
    assert pool.start(workers) != 0
