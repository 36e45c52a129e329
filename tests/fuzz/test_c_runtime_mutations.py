# SPDX-License-Identifier: Apache-2.0
"""Bundles that are damaged, or say something else with all hashes made right, through the C library.

Each is refused with a code, or run without a crash; what Python takes too gives the same bits. `NNDEPLOY_FUZZ_C` sets
the number of mutants.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here

import nndeploy
from nndeploy.errors import NndeployError

sys.path.append(str(Path(__file__).parent))

from c_library import zig_missing
from c_runtime import CRuntime, RuntimeRefusalError
from c_runtime_mutants import growing_bundle, other_documents, run_mutants, sanitized_program, seed_files
from forked_trials import outcomes
from member_mutants import Seed, mutant, seeds_in
from sanitizer import FoundError, sanitizer_missing

HERE = Path(__file__).parent
COUNT = int(os.environ.get("NNDEPLOY_FUZZ_C", "400"))
SECONDS, MEMORY_BYTES = 60.0, 4 << 30
CODES = {65, 69, 71}
IMAGE = np.random.default_rng(5).standard_normal((2, 1, 8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def library() -> Path:
    return build_runtime.build_libraries(level_here().arch)[1]


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Seed]:
    return seeds_in(tmp_path_factory.mktemp("seeds"))


def found_by_c(library: Path, data: bytes) -> dict[str, Any] | None:
    """Returns the outputs, None where the bundle or the input is refused."""
    try:
        return CRuntime(library).run(data, {"image": IMAGE})
    except RuntimeRefusalError as err:
        if err.code not in CODES or not err.text.strip() or "\n" in err.text:
            raise
        return None


def found_by_python(data: bytes, path: Path) -> dict[str, Any] | None:
    """Returns the outputs, None where Python refuses it, or where it runs by another backend."""
    path.write_bytes(data)
    try:
        with nndeploy.load_bundle(path, threads=1) as program:
            is_native = all(choice.backend == "native" for choice in program.choices)
            return program.run({"image": IMAGE}) if is_native else None
    except NndeployError:
        return None


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_mutants_with_right_hashes_are_refused_or_give_what_python_gives(library, seeds, tmp_path) -> None:
    def trial(number: int) -> str:
        data = mutant(seeds, number).data
        c = found_by_c(library, data)
        if c is None:
            return "refused"
        python = found_by_python(data, tmp_path / f"{os.getpid()}.nnd")
        return "taken here alone" if python is None else "same" if is_same(c, python) else "OTHER BITS"

    found = Counter(line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    assert set(found) <= {"refused", "same", "taken here alone"}, found
    assert found["same"]
    assert found["refused"]


def test_a_changed_byte_is_refused_or_changes_nothing(library, seeds) -> None:
    seed = seeds["compiled"]
    data = seed.container({}, seed.manifest, seed.signature)
    wanted = found_by_c(library, data)
    assert wanted is not None
    dice = random.Random(7)  # noqa: S311
    places = dice.sample(range(len(data)), COUNT)

    def trial(number: int) -> str:
        changed = bytearray(data)
        changed[places[number]] ^= 1 << dice.randrange(8)
        c = found_by_c(library, bytes(changed))
        return "refused" if c is None else "same" if is_same(c, wanted) else "OTHER BITS"

    found = Counter(line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    assert set(found) <= {"refused", "same"}, found
    assert found["refused"]


def test_a_bundle_cut_anywhere_is_refused(library, seeds) -> None:
    seed = seeds["compiled"]
    data = seed.container({}, seed.manifest, seed.signature)

    def trial(number: int) -> str:
        return str(found_by_c(library, data[: len(data) * number // COUNT]))

    assert {line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES)} == {"None"}


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return growing_bundle(tmp_path_factory.mktemp("growing") / "m.nnd")


def test_plans_that_say_something_else_are_refused_or_stay_in_their_memory(library, growing) -> None:
    draw = np.random.default_rng(9)
    x = draw.standard_normal((1, 3, 8)).astype(np.float32)
    each = [{"x": x, "before": np.zeros((1, 2, 8), np.float32), "first": np.array([True])}, {"x": x}]

    def trial(number: int) -> str:
        try:
            list(CRuntime(library).runs(other_documents(growing, number), each, {"before": "after"}))
        except RuntimeRefusalError as err:
            return "refused" if err.code in CODES else f"code {err.code}"
        return "taken"

    assert len(list(CRuntime(library).runs(growing, each, {"before": "after"}))) == len(each)
    found = Counter(line for _, line in outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    assert set(found) <= {"refused", "taken"}, found
    assert found["refused"]


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("damaged")
    if reason := zig_missing() or sanitizer_missing(folder):
        pytest.skip(reason)
    return seed_files(folder)


@pytest.mark.slow
def test_sanitizers_find_nothing_in_damaged_bundles(damaged, tmp_path) -> None:
    """`make fuzz-c-runtime` tries more."""
    program = sanitized_program(tmp_path)
    found = run_mutants(program, damaged, tmp_path, seed=1, count=50 * COUNT)
    assert found.mutants == 50 * COUNT > found.opened >= found.ran > COUNT
    assert found.edges > found.reached > 1.2 * found.reached_by_seeds > 0
    assert found.corpus > len(damaged)
    assert found == run_mutants(program, damaged, tmp_path, seed=1, count=50 * COUNT), "the seed decides"


@pytest.mark.slow
@pytest.mark.parametrize(("source", "check", "instead"), [
    ("expand.c", "piece->size <= left;", "piece->size <= left + 64;"),
    ("values.c", "*offset + bytes <= in->size", "1"),
])  # fmt: skip
def test_a_check_that_is_taken_out_is_found_missing(damaged, tmp_path, capfd, source, check, instead) -> None:
    program = sanitized_program(tmp_path, (source, check, instead))
    with pytest.raises(FoundError):
        run_mutants(program, damaged, tmp_path, seed=1, count=1_000_000)
    assert source in capfd.readouterr().err
    assert (tmp_path / "finding.nnd").stat().st_size
