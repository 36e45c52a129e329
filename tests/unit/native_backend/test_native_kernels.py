# SPDX-License-Identifier: Apache-2.0
"""Convolutions and LSTMs against NumPy in float64 on random shapes, for each instruction set and number of threads.

Many steps are one program, for each costs the compiler a second; native_programs.py says how memory is watched.
"""

from pathlib import Path

import numpy as np
import pytest
from native_cases import KINDS, Draw
from native_models import needs_zig, runnable_isas
from native_programs import Program
from nndeploy_native.isa import Isa

COUNTS = {
    "separable": 8, "planar_separable": 6, "stem": 4, "inverted_residual": 5, "pointwise": 4, "depthwise": 4,
    "dense": 5, "grouped": 3, "transposed": 3, "lstm": 6,
}  # fmt: skip
SEED = 1
HERE = [*runnable_isas(), *runnable_isas("bf16")]


@pytest.mark.parametrize("isa", HERE, ids=lambda isa: isa.name)
@pytest.mark.parametrize("kind", KINDS)
def test_kernel_equals_float64_however_many_threads_share_it(kind: str, isa: Isa, tmp_path: Path) -> None:
    needs_zig()
    draw = Draw(isa, SEED)
    program = Program([KINDS[kind](draw, turn) for turn in range(COUNTS[kind])])
    alone, two, three = program.run(tmp_path, (1, 2, 3))
    for found in (alone, two, three):
        program.check(found)
    for case, call, *found in zip(program.cases, program.calls, alone, two, three, strict=True):
        assert np.array_equal(found[1], found[2]), case.name
        assert call.shared_fields or np.array_equal(found[0], found[1]), case.name
