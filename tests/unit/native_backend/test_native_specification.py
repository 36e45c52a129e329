# SPDX-License-Identifier: Apache-2.0
"""Every operator, version, attribute, edge value and size of the oracle's tables on every level of this machine."""

from collections import Counter
from functools import cache
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
from kernel_library import LEVELS_HERE, OutOfRangeError
from native_models import FLOAT_LEVELS, built, run
from oracle.cases import all_cases, wide
from oracle.cases.case import Case
from oracle.compare import difference
from oracle.engines import RefusedError, built_alone
from oracle.page import cell
from oracle.registry import UnspecifiedError

from nndeploy.errors import BuildRefusedError, NndeployError
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact
from nndeploy.values.types import DimRange

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "operators.md"
OPERATORS = sorted({case.operator for case in all_cases().values()})
WIDE = list(wide.cases())
NEED_SIZES = {"Attention", "GatherND", "GroupNormalization", "Pad", "Range", "Resize", "RotaryEmbedding", "Slice"}
"""What is refused where some of the sizes are open."""
BF16_STEPS = 1500
"""How much more a product of bfloat16 may be apart."""


@cache
def promised() -> dict[str, str]:
    """Returns what the page says of native, by operator."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    header = next(row for row in rows if row[0] == "operator")
    return {row[0]: row[header.index("native")] for row in rows if len(row) == len(header)}


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_operator_is_what_the_page_says(operator: str, tmp_path: Path) -> None:
    cases = [case for case in all_cases().values() if case.operator == operator]
    outcomes = {case.name: outcome(case, tmp_path) for case in cases}
    assert cell(Counter(outcomes.values())) == promised()[operator], outcomes


def outcome(case: Case, folder: Path) -> str:
    """Returns what comes of a case, on every level; nothing is read or written beside what it is given."""
    try:
        wanted = case.wanted
        artifact = built_alone(case.model, "native", folder)
    except UnspecifiedError:
        return "unspecified"
    except RefusedError:
        return "refused"
    found = {}
    for number, level in enumerate(FLOAT_LEVELS):
        try:
            got = run(artifact, case.inputs, level, threads=1 + number % 2)
        except (OutOfRangeError, NndeployError):
            found[level] = "right" if wanted is None else "error"
            continue
        is_right = wanted is not None and not difference(
            wanted, got, signed_zeros=case.signed_zeros, steps=case.steps
        )  # fmt: skip
        found[level] = "right" if is_right else "wrong"
    assert len({*found.values()}) == 1, (case.name, found)
    return next(iter(found.values()))


each_wide_operator = pytest.mark.parametrize("operator", sorted({case.operator for case in WIDE}))


def planned(proto: onnx.ModelProto, ranges: dict[str, DimRange]) -> Artifact:
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    optimise(model, ranges)
    return built(model, ranges)


@each_wide_operator
def test_odd_and_large_sizes(operator: str) -> None:
    """On one thread or two in turn, bytes with what the processor has or with the instructions of the level alone."""
    for at, case in enumerate(one for one in WIDE if one.operator == operator):
        artifact, wanted = planned(case.model, {}), case.wanted
        assert wanted is not None, case.name
        for number, level in enumerate(LEVELS_HERE):
            steps = case.steps * (BF16_STEPS if level.endswith("bf16") else 1)
            turn, is_plain = at + number, (at // 2 + number) % 2 == 0
            got = run(artifact, case.inputs, level, threads=1 + turn % 2, plain_bytes=is_plain)
            assert difference(wanted, got, steps=steps) == "", (case.name, level, turn, is_plain)


@each_wide_operator
def test_sizes_that_come_with_the_call(operator: str) -> None:
    for number, case in enumerate(one for one in WIDE if one.operator == operator):
        proto, ranges = opened(case)
        try:
            artifact = planned(proto, ranges)
        except BuildRefusedError:
            assert operator in NEED_SIZES, case.name
            continue
        got = run(artifact, case.inputs, FLOAT_LEVELS[number % len(FLOAT_LEVELS)], threads=1 + number % 2)
        assert difference(case.wanted or {}, got, steps=case.steps) == "", case.name


def opened(case: Case) -> tuple[onnx.ModelProto, dict[str, DimRange]]:
    """Returns a model whose inputs have a symbol for each size that no constant has, and the ranges of these."""
    proto, ranges = onnx.ModelProto(), {}
    proto.CopyFrom(case.proto)
    fixed = {1, *(size for one in proto.graph.initializer for size in one.dims)}
    for dim in (dim for info in proto.graph.input for dim in info.type.tensor_type.shape.dim):
        if (size := dim.dim_value) not in fixed:
            dim.dim_param = f"n{size}"
            ranges[dim.dim_param] = DimRange(max(1, size // 2), 2 * size, 1)
    return proto, ranges
