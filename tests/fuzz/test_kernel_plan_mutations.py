# SPDX-License-Identifier: Apache-2.0
"""Mutants of plans through the kernel library under AddressSanitizer: refused by a message, or run in their own memory.

More: `make fuzz-kernel-plans ARGS="--count 1000000"`.
"""

import re
from pathlib import Path

import pytest
from kernel_library import LEVELS_HERE
from nndeploy_native.library import zig_missing
from plan_mutants import run_mutants, sanitized_driver, sanitizer_missing, small_plans

COUNT = 20_000
PLANS = 10


@pytest.mark.slow
def test_mutants_of_plans_are_refused_or_touch_their_own_memory(tmp_path: Path) -> None:
    if reason := zig_missing() or sanitizer_missing(tmp_path):
        pytest.skip(reason)
    driver = sanitized_driver(tmp_path, LEVELS_HERE[-1])
    said = run_mutants(driver, small_plans(PLANS), tmp_path, seed=1, count=COUNT)
    count, opened, made, ran = map(int, re.findall(r"\d+", said))
    assert count == COUNT
    assert opened >= made >= ran >= PLANS // 2
    assert ran < opened < count, "some are refused when they are opened, others when their table is made"
