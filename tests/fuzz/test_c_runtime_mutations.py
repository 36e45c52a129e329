# SPDX-License-Identifier: Apache-2.0
"""Bundles that are damaged, or say something else with all hashes made right, through the C library.

Each is refused with a code, or run without a crash; what Python takes too gives the same bits. `NNDEPLOY_FUZZ_C` sets
the number of mutants.
"""

import os
import random
import shutil
import subprocess
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

from c_runtime import CRuntime, RuntimeRefusalError
from forked_trials import outcomes
from member_mutants import Seed, mutant, seeds_in

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


@pytest.mark.slow
def test_sanitizers_find_nothing_in_damaged_bundles(seeds, tmp_path) -> None:
    """Of 20 times as many mutants: changed members, changed bytes, and cut files."""
    compiler = shutil.which("clang") or shutil.which("gcc") or pytest.skip("no C compiler")
    kernels = build_runtime.build_levels(level_here().arch)
    sources = [HERE / "c_runtime_trials.c", *sorted(build_runtime.RUNTIME.glob("*.c"))]
    sources.remove(build_runtime.RUNTIME / "level.c")
    includes = ["-I", build_runtime.RUNTIME.parent, "-I", build_runtime.SOURCES]
    flags = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"]
    program = tmp_path / "trials"
    subprocess.run([compiler, *flags, *includes, *sources, *kernels, "-lm", "-o", program], check=True)
    dice, seed = random.Random(11), seeds["compiled"]  # noqa: S311 - no secret
    whole = seed.container({}, seed.manifest, seed.signature)
    for block in range(20):
        names = []
        for number in range(COUNT):
            data = bytearray(mutant(seeds, block * COUNT + number).data if number % 2 else whole)
            for _ in range(dice.randint(0 if number % 2 else 1, 3)):
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            names.append(tmp_path / f"{number}.nnd")
            names[-1].write_bytes(data[: dice.randrange(len(data))] if number % 16 == 0 else data)
        done = subprocess.run([program, *names], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
