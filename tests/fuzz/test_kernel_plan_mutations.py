# SPDX-License-Identifier: Apache-2.0
"""Mutants of plans through the kernel library under AddressSanitizer: refused by a message, or run in their own memory.

Of the levels the least is taken: what a plan says is read and checked by the same code in all of them, and the widest
takes clang twice as long. More, and the other levels: `make fuzz-kernel-plans ARGS="--count 1000000 --level ..."`.
"""

import re
import subprocess
from pathlib import Path

import pytest
from c_library import zig_missing
from kernel_library import LEVELS_HERE
from nndeploy_native.plan_words import table
from plan_mutants import SanitizedLibrary, run_mutants, small_plans
from sanitizer import FoundError, sanitizer_missing

pytestmark = pytest.mark.slow

COUNT = 20_000
PLANS = 10
LONG_ENOUGH = 60_000
"""Mutants after which it shows that edges guide them."""


@pytest.fixture(scope="module")
def plans() -> list[tuple[bytes, bytes]]:
    return small_plans(PLANS)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> SanitizedLibrary:
    folder = tmp_path_factory.mktemp("sanitized")
    if reason := zig_missing() or sanitizer_missing(folder):
        pytest.skip(reason)
    return SanitizedLibrary(folder, LEVELS_HERE[0])


def test_every_operator_of_the_library_is_in_a_plan_that_mutants_are_made_from() -> None:
    seeds = b"".join(plan for plan, _ in small_plans(0))
    assert len(table().operators) > 60
    assert [name for name in table().operators if _text(name) not in seeds] == []


def _text(name: str) -> bytes:
    """Returns a text as it lies in a plan: its length, then whole words."""
    return len(name).to_bytes(8, "little") + name.encode().ljust(-(-len(name) // 8) * 8, b"\0")


def test_mutants_of_plans_are_refused_or_touch_their_own_memory(
    library: SanitizedLibrary, plans: list[tuple[bytes, bytes]], tmp_path: Path
) -> None:
    outcome = run_mutants(library.driver(), plans, tmp_path, seed=1, count=COUNT)
    assert outcome.mutants == COUNT
    assert outcome.opened >= outcome.made >= outcome.ran >= PLANS // 2
    assert outcome.ran < outcome.opened < COUNT, "some are refused when opened, others when their table is made"
    assert outcome == run_mutants(library.driver(), plans, tmp_path, seed=1, count=COUNT), "the seed decides"
    assert outcome != run_mutants(library.driver(), plans, tmp_path, seed=2, count=COUNT)


def test_edges_that_were_reached_guide_the_mutants(
    library: SanitizedLibrary, plans: list[tuple[bytes, bytes]], tmp_path: Path
) -> None:
    driver = library.driver()
    guided = run_mutants(driver, plans, tmp_path, seed=1, count=LONG_ENOUGH)
    blind = run_mutants(driver, plans, tmp_path, seed=1, count=LONG_ENOUGH, is_guided=False)
    assert guided.reached_by_seeds == blind.reached_by_seeds > 0
    assert blind.corpus == len(plans) < guided.corpus
    assert 1.5 * guided.reached_by_seeds < guided.reached <= guided.edges
    assert guided.reached > blind.reached


@pytest.mark.parametrize(("source", "check", "function"), [
    ("ops/attention.c", "nnd_reach(&k, t->keys, scores.b_column, 1, of_k)", "nnd_run_attention"),
    ("ops/pad.c", "nnd_reach_is_within(reach, in->count)", "nnd_run_pad"),
])  # fmt: skip
def test_a_check_that_is_taken_out_is_found_missing(
    library: SanitizedLibrary, plans: list[tuple[bytes, bytes]], tmp_path: Path, source: str, check: str, function: str
) -> None:
    driver = library.driver_without(source, check)
    with pytest.raises(FoundError, match=f"AddressSanitizer(.|\n)*{function}") as found:
        run_mutants(driver, plans, tmp_path, seed=1, count=5 * LONG_ENOUGH)
    again = re.search(r"again: (.*)$", str(found.value), re.MULTILINE)
    assert again is not None
    done = subprocess.run(again[1].split(), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
