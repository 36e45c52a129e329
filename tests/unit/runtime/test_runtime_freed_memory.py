# SPDX-License-Identifier: Apache-2.0
"""Memory of one record is there for the next: what is taken again costs no page faults."""

import os
import platform
import subprocess
import sys

import pytest

TAKEN_AGAIN = """
import resource, sys, threading
import numpy as np
from nndeploy.runtime.freed_memory import keep_freed_memory
print(keep_freed_memory() if sys.argv[1] == "kept" else None)
def records(count):
    for _ in range(count):
        arrays = [np.ones(size << 18, np.float32) for size in (1, 2, 3, 4)]
def count():
    records(5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    records(20)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 20)
thread = threading.Thread(target=count)
thread.start()
thread.join()
"""
PAGES = (1 + 2 + 3 + 4) << 8
"""So many pages of 4 KiB hold the arrays of a record."""

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another one")


def faults(kind: str, **environment: str) -> tuple[str, float]:
    """Returns whether memory is kept, and the page faults of a record."""
    words = [sys.executable, "-c", TAKEN_AGAIN, kind]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    done = subprocess.run(words, env=plain | environment, capture_output=True, text=True, check=True)
    said, count = done.stdout.split()
    return said, float(count)


def test_a_record_finds_the_memory_of_the_one_before() -> None:
    assert faults("left")[1] > PAGES / 4
    said, count = faults("kept")
    assert said == "True"
    assert count < PAGES / 100


@pytest.mark.parametrize(
    "variable", [{"MALLOC_TRIM_THRESHOLD_": "0"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=0"}]
)
def test_what_the_user_said_of_memory_stays(variable: dict[str, str]) -> None:
    assert faults("kept", **variable)[0] == "False"
