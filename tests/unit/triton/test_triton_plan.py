# SPDX-License-Identifier: Apache-2.0
"""The plan as JSON: the round trip, and a refusal for everything that would address memory that is not there."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nndeploy_triton.plan import Border, Kernel, Launch, Place, TritonPlan, grid_of, plan_from_json, plan_to_json

from nndeploy.errors import BundleError

KERNEL = Kernel(
    file="k.cubin", symbol="scale", parameters=(("out", "tensor"), ("x", "tensor"), ("num_elements", "i32")),
    num_null=2, grid=((("num_elements", 128),), (("num_rows", 1), ("num_groups", 1)), ()), num_warps=4,
    shared_bytes=1024,
)  # fmt: skip
LAUNCH = Launch(
    "k",
    (("out", Place("arena", 256)), ("x", Place("arena", 0))),
    (("num_elements", 300), ("num_groups", 2), ("num_rows", 5)),
)
PLAN = TritonPlan(
    arena_bytes=512, constants_bytes=256, inputs=(Border("x", Place("arena", 0), "float32", (5, 6)),),
    outputs=(Border("y", Place("arena", 256), "float32", (30,)), Border("c", Place("constants", 0), "int64", ())),
    kernels={"k": KERNEL}, launches=(LAUNCH,),
)  # fmt: skip


def test_a_grid_axis_is_the_product_of_sizes_divided_and_rounded_up() -> None:
    assert grid_of(KERNEL, LAUNCH) == (3, 10, 1)


names = st.text(min_size=1, max_size=6)
places = st.builds(Place, st.sampled_from(["arena", "constants"]), st.integers(0, 100))
borders = st.builds(
    Border, names, places, st.sampled_from(["float32", "float16", "bool", "int64", "bfloat16"]),
    st.lists(st.integers(0, 3), max_size=3).map(tuple),
)  # fmt: skip


@settings(max_examples=25)
@given(st.lists(borders, max_size=3).map(tuple), st.lists(borders, max_size=3).map(tuple))
def test_any_borders_come_back(inputs: tuple[Border, ...], outputs: tuple[Border, ...]) -> None:
    plan = TritonPlan(10_000, 10_000, inputs, outputs, {}, ())
    assert plan_from_json(plan_to_json(plan)) == plan


def _without(data: dict[str, Any], *path: str) -> None:
    *outer, last = path
    for key in outer:
        data = data[key]
    del data[last]


def _set(value: object, *path: str | int) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set(3, "format"), "a plan of format 3; this nndeploy reads 1 and 2"),
        (lambda data: _without(data, "kernels"), "the plan is malformed: KeyError: 'kernels'"),
        (_set(-1, "arena_bytes"), "not a size: -1"),
        (_set(True, "arena_bytes"), "not a size: True"),
        (_set(1.5, "constants_bytes"), "not a size: 1.5"),
        (_set(3, "inputs"), "the plan is malformed: TypeError"),
        (_set("float99", "inputs", 0, 2), "not a border"),
        (_set([1 << 40], "inputs", 0, 3), "not a size"),
        (_set("host", "inputs", 0, 1, 0), "not a memory: 'host'"),
        (_set(500, "inputs", 0, 1, 1), "'x' lies outside the arena of 512 bytes"),
        (_set(255, "outputs", 1, 1, 1), "'c' lies outside the constants of 256 bytes"),
        (_set(512, "launches", 0, 1, "x", 1), "launch 0 lies outside the arena of 512 bytes"),
        (_set("other", "launches", 0, 0), "launch 0 names the kernel 'other', which is not there"),
        (lambda data: _without(data, "launches", 0, 1, "out"), "launch 0 lacks 'out'"),  # type: ignore[arg-type]
        (lambda data: _without(data, "launches", 0, 2, "num_rows"), "launch 0 lacks 'num_rows'"),  # type: ignore[arg-type]
        (_set(0, "launches", 0, 2, "num_elements"), "launch 0 has a grid of (0, 10, 1)"),
        (_set(70_000, "launches", 0, 2, "num_rows"), "launch 0 has a grid of (3, 140000, 1)"),
        (_set("many", "launches", 0, 2, "num_rows"), "not a size: 'many'"),
        (_set(0, "kernels", "k", "grid", 0, 0, 1), "a grid divided by 0"),
        (_set([["out", "pointer"]], "kernels", "k", "parameters"), "a kernel with malformed parameters"),
        (_set(64, "kernels", "k", "num_warps"), "a kernel with malformed parameters"),
        (_set(9, "kernels", "k", "num_null"), "not a size: 9"),
    ],
)
def test_a_malformed_plan_is_one_clear_line(change: Callable[[dict[str, Any]], None], said: str) -> None:
    data = json.loads(plan_to_json(PLAN))
    change(data)
    with pytest.raises(BundleError) as caught:
        plan_from_json(json.dumps(data).encode())
    assert said in str(caught.value)
    assert caught.value.exit_code == 65


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_plan_at_all_is_refused(text: bytes) -> None:
    with pytest.raises(BundleError, match="the plan is malformed"):
        plan_from_json(text)
