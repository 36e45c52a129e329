# SPDX-License-Identifier: Apache-2.0
"""Bundles that are damaged, or say something else with all hashes made right, through the WebAssembly module.

Each is refused with the code and the words of the C library, or run without a trap where that runs it too.
`NNDEPLOY_FUZZ_WEB` sets the number of mutants.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "flow")]

from c_runtime import CRuntime, RuntimeRefusalError
from forked_trials import outcomes
from member_mutants import mutant, seeds_in
from node_runs import in_node
from test_c_runtime_mutations import growing, other_documents

__all__ = ["growing"]  # the fixture

COUNT = int(os.environ.get("NNDEPLOY_FUZZ_WEB", "240"))
SECONDS, MEMORY_BYTES = 60.0, 4 << 30
IMAGE = {"image": np.random.default_rng(5).standard_normal((2, 1, 8, 8)).astype(np.float32)}
NO_MEMORY = 71


def by_c(library: Path, data: bytes, inputs: Mapping[str, Any]) -> str:
    """Returns what the C library says of a bundle and a run."""
    try:
        CRuntime(library).run(data, inputs)
    except RuntimeRefusalError as err:
        return f"{err.code} {err.text}"
    return "taken"


def by_wasm(found: Mapping[str, Any]) -> str:
    """Returns the same of the module."""
    failed = found if "error" in found else found["runs"][0]
    return f"{failed['error']['code']} {failed['error']['text']}" if "error" in failed else "taken"


def test_mutants_are_refused_as_by_the_c_library(growing, tmp_path) -> None:
    library = build_runtime.build_libraries(level_here().arch)[1]
    seeds = seeds_in(tmp_path)
    seed = seeds["compiled"]
    whole = seed.container({}, seed.manifest, seed.signature)
    x = np.random.default_rng(9).standard_normal((1, 3, 8)).astype(np.float32)
    growth = {"x": x, "before": np.zeros((1, 2, 8), np.float32), "first": np.array([True])}
    dice = random.Random(13)  # noqa: S311 - no secret

    def bundle(number: int) -> bytes:
        if number % 4 == 0:
            return bytes(mutant(seeds, number).data)
        if number % 4 == 1:
            return other_documents(growing, number)
        if number % 4 == 2:
            return whole[: dice.randrange(len(whole))]
        data = bytearray(whole)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        return bytes(data)

    bundles = [bundle(number) for number in range(COUNT)]
    paths = [tmp_path / f"{number}.nnd" for number in range(COUNT)]
    for path, data in zip(paths, bundles, strict=True):
        path.write_bytes(data)
    of_growth = range(1, COUNT, 4)
    others = [number for number in range(COUNT) if number not in of_growth]
    found = dict(zip(others, map(by_wasm, in_node([paths[i] for i in others], [IMAGE])), strict=True))
    found |= dict(zip(of_growth, map(by_wasm, in_node([paths[i] for i in of_growth], [growth])), strict=True))

    def trial(number: int) -> str:
        return by_c(library, bundles[number], growth if number in of_growth else IMAGE)

    wanted = dict(outcomes(trial, range(COUNT), SECONDS, MEMORY_BYTES))
    # Memory of 32 bits ends sooner: what it cannot hold is refused there.
    different = {
        number: (found[number], wanted[number])
        for number in range(COUNT)
        if found[number] != wanted[number] and not found[number].startswith(f"{NO_MEMORY} ")
    }
    assert not different
    kinds = Counter(line.split()[0] for line in found.values())
    assert kinds["taken"]
    assert kinds["65"]
