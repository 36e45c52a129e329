# SPDX-License-Identifier: Apache-2.0
"""Plans whose shapes are not fixed, and their sessions: what is made for a shape, kept and refused. No Triton here."""

import ctypes
import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from nndeploy_triton.gpu import facts_of
from nndeploy_triton.kernel_specs import planned
from nndeploy_triton.plan import (
    ArenaValue,
    Border,
    Kernel,
    Place,
    Shapes,
    TritonPlan,
    arena_offset,
    plan_from_json,
    plan_to_json,
    solved_size,
)
from nndeploy_triton.plan import Launch as PlannedLaunch
from nndeploy_triton.session import MAX_KEPT, TritonSession, open_session
from nndeploy_triton.shape_plan import plan_at
from nndeploy_triton.steps.matmul import Matmul
from nndeploy_triton.views import View, dense

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import BundleError, InputError
from nndeploy.plugin.interface import OpenOptions
from nndeploy.target.target import Gpu
from nndeploy.testing.host_driver import HostDriver, Launch
from nndeploy.values.size import symbol
from nndeploy.values.solved_symbol import SolvedSymbol

ROWS = SolvedSymbol(number=0, axis=0, offset=0, factor=2, low=1, high=100)
WIDTH = SolvedSymbol(number=1, axis=0, offset=0, factor=1, low=1, high=8)
N, W = 2 * solved_size(0, ROWS), solved_size(1, WIDTH)
KERNEL = Kernel(
    file="add.cubin", symbol="add",
    parameters=(("out", "tensor"), ("x", "tensor"), ("y", "tensor"), ("rows", "i32"), ("width", "i32")), num_null=2,
    grid=((("rows", 4),), (("width", 1),), ()), num_warps=1, shared_bytes=0,
)  # fmt: skip
PLAN = TritonPlan(
    arena_bytes=256 * (25 + 1 + 25), constants_bytes=0,
    inputs=(
        Border("x", Place("arena", arena_offset(0)), "float32", (N, W)),
        Border("y", Place("arena", arena_offset(1)), "float32", (W,)),
    ),
    outputs=(Border("z", Place("arena", arena_offset(2)), "float32", (N, W)),), kernels={"add": KERNEL},
    launches=(PlannedLaunch(
        "add",
        (("out", Place("arena", arena_offset(2))), ("x", Place("arena", arena_offset(0))),
         ("y", Place("arena", arena_offset(1)))),
        (("rows", N), ("width", W)),
    ),),
    shapes=Shapes((ROWS, WIDTH), (ArenaValue(4 * N * W, ()), ArenaValue(4 * W, (0,)), ArenaValue(4 * N * W, (0, 1)))),
)  # fmt: skip
FILES = {"sm_89/plan.json": plan_to_json(PLAN), "sm_89/add.cubin": b"cubin with add"}


def add(launch: Launch) -> None:
    """Does on the host what the kernel `add` would do: out[i, j] = x[i, j] + y[j]."""
    out, x, y = (int.from_bytes(arg, "little") for arg in launch.args[:3])
    rows, width = (int.from_bytes(arg, "little") for arg in launch.args[3:5])
    assert launch.grid == (-(-rows // 4), width, 1)
    arrays = [
        (ctypes.c_float * size).from_address(at) for at, size in ((out, rows * width), (x, rows * width), (y, width))
    ]
    for i in range(rows * width):
        arrays[0][i] = arrays[1][i] + arrays[2][i % width]


@pytest.fixture
def driver() -> Iterator[HostDriver]:
    found = HostDriver(run_kernel=add)
    with injected_driver(found):
        yield found


def opened() -> TritonSession:
    files = {name: memoryview(data) for name, data in FILES.items()}
    return open_session(files, {"format": 2}, OpenOptions(device="cuda:0"))


def inputs(rows: int, width: int) -> dict[str, np.ndarray]:
    x = np.arange(rows * width, dtype=np.float32).reshape(rows, width)
    return {"x": x, "y": -np.arange(width, dtype=np.float32)}


def run(session: TritonSession, rows: int, width: int) -> None:
    given = inputs(rows, width)
    np.testing.assert_array_equal(session.run(given)["z"].numpy(), given["x"] + given["y"])


def test_one_session_runs_at_every_shape_in_any_order(driver: HostDriver) -> None:
    session = opened()
    for rows, width in [(2, 1), (200, 8), (2, 1), (6, 3), (200, 8), (2, 1)]:
        run(session, rows, width)


def test_a_shape_is_recorded_when_it_comes_again(driver: HostDriver) -> None:
    session = opened()
    for number, graphs in enumerate([0, 1, 1]):
        run(session, 4, 2)
        assert (len(driver.launches), driver.live_graphs) == (number + 1, graphs)
    run(session, 6, 2)
    assert driver.live_graphs == 1


def test_memory_grows_with_the_shapes_and_is_taken_once(driver: HostDriver) -> None:
    session = opened()
    for rows, width, num_units in [(2, 1, 3), (200, 8, 51), (2, 1, 51), (200, 8, 51)]:
        run(session, rows, width)
        run(session, rows, width)
        gc.collect()
        assert driver.live_bytes == 256 * num_units
    session.close()
    gc.collect()
    assert (driver.live_bytes, driver.live_graphs, driver.live_modules) == (0, 0, 0)


def test_the_shapes_that_were_used_last_are_kept(driver: HostDriver) -> None:
    session = opened()
    run(session, 200, 8)
    for number in range(MAX_KEPT):
        for rows in (2, 4 + 2 * (number % 90)):
            run(session, rows, 1 + number // 90)
            run(session, rows, 1 + number // 90)
    gc.collect()
    assert driver.live_graphs <= MAX_KEPT
    before = driver.live_graphs
    run(session, 2, 1)
    assert driver.live_graphs == before


@pytest.mark.parametrize(("shapes", "said"), [
    (((3, 2), (2,)), "input 'x': axis 0 has size 3, kernels are for 2..200 in steps of 2"),
    (((202, 2), (2,)), "input 'x': axis 0 has size 202, kernels are for 2..200 in steps of 2"),
    (((2, 9), (9,)), "input 'y': axis 0 has size 9, kernels are for 1..8"),
    (((2, 2), (3,)), "input 'x': expected (2, 3), got (2, 2)"), (((2, 2), ()), "input 'y': expected 1 axes, got ()"),
])  # fmt: skip
def test_a_shape_that_the_kernels_are_not_for_is_refused(
    driver: HostDriver, shapes: tuple[tuple[int, ...], ...], said: str
) -> None:
    given = {name: np.zeros(shape, np.float32) for name, shape in zip("xy", shapes, strict=True)}
    session = opened()
    with pytest.raises(InputError) as caught:
        session.run(given)
    assert str(caught.value) == said
    assert not driver.launches


def test_reading_what_was_written_gives_an_equal_plan() -> None:
    assert plan_from_json(plan_to_json(PLAN)) == PLAN
    assert json.loads(plan_to_json(PLAN))["launches"][0][2] == {"rows": "2*{s0}", "width": "{s1}"}


def test_a_plan_of_numbers_is_one_that_can_be_read() -> None:
    found = plan_at(PLAN, ((6, 3), (3,)))
    assert found.arena_bytes == 3 * 256
    assert found.inputs[1].place.offset == 256
    assert plan_from_json(plan_to_json(found)) == found


def _set(value: object, *path: str | int) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(("change", "said"), [
    (_set("{s2}", "launches", 0, 2, "rows"), "not a size: 's2'"),
    (_set("2**{s0}", "launches", 0, 2, "rows"), "not a size: '2**{s0}'"),
    (_set("(4)//({s0} + -1)", "launches", 0, 2, "rows"), "not a size: '(4)//({s0} + -1)'"),
    (_set("({s0}", "inputs", 0, 3, 0), "not a size: '({s0}'"),
    (_set(2, "shapes", "symbols", 0, "axis"), "a symbol of axis 2 of input 0"),
    (_set(0, "shapes", "symbols", 0, "factor"), "a symbol between 1 and 100 by 0"),
    (_set("1", "shapes", "symbols", 0, "low"), "not a number: '1'"),
    (_set([8, [2]], "shapes", "arena", 2), "a value of the arena that lies on a later one: [2]"),
    (_set(["4*{a0}", []], "shapes", "arena", 2), "not a size: 'a0'"),
    (_set([8], "shapes", "arena", 2), "the plan is malformed: ValueError"),
    (_set(3, "shapes"), "the plan is malformed: TypeError"),
    (_set("other", "launches", 0, 0), "launch 0 names the kernel 'other', which is not there"),
])  # fmt: skip
def test_a_malformed_plan_is_one_clear_line(change: Callable[[Any], None], said: str) -> None:
    data = json.loads(plan_to_json(PLAN))
    change(data)
    with pytest.raises(BundleError) as caught:
        plan_from_json(json.dumps(data).encode())
    assert said in str(caught.value)


@pytest.mark.parametrize(("change", "said"), [
    (_set("256*{a2} + 768", "launches", 0, 1, "out", 1), "launch 0 lies outside the arena of 768 bytes"),
    (_set("256*{a2} + -769", "launches", 0, 1, "out", 1), "launch 0 lies outside the arena of 768 bytes"),
    (_set("{s0} + 254*{s1}", "outputs", 0, 3, 0), "'z' lies outside the arena of 768 bytes"),
    (_set("{s0} + -1000", "outputs", 0, 3, 0), "'z' has a size of -997"),
    (_set("1000000000*{s0}", "launches", 0, 2, "rows"), "launch 0 has a size of 3000000000"),
    (_set("70000*{s0}", "launches", 0, 2, "width"), "launch 0 has a grid of (2, 210000, 1)"),
    (_set("{s0} + -3", "launches", 0, 2, "width"), "launch 0 has a grid of (2, 0, 1)"),
    (_set(["1000000*{s0}", []], "shapes", "arena", 2), "an arena of 3000064 bytes, at most 13056 were declared"),
])  # fmt: skip
def test_a_plan_that_leaves_its_memory_at_some_shape_is_refused_there(change: Callable[[Any], None], said: str) -> None:
    data = json.loads(plan_to_json(PLAN))
    change(data)
    plan = plan_from_json(json.dumps(data).encode())
    with pytest.raises(BundleError) as caught:
        plan_at(plan, ((6, 3), (3,)))
    assert said in str(caught.value)


def test_only_what_holds_at_every_size_is_compiled_in() -> None:
    n = symbol("n", 1, 64)
    step = Matmul(
        dense("y", "float32", (n, 48)),
        View("x", "float32", (1, n, 16 * n), (0, 16 * n, 1), offset=4 * n),
        View("w", "float32", (1, 16 * n, 48), (0, 48, 1), offset=n),
    )
    gpu = facts_of(Gpu("RTX 4090", "8.9"))
    spec = planned(
        step.request(gpu, step.tiles(gpu)[0]), {name: Place("arena", arena_offset(0)) for name in "yxw"}
    ).spec
    assert set(spec.sizes) == {"num_rows", "num_columns", "depth", "left_row_stride", "right_k_stride"}
    assert set(spec.wide) == {"out", "left", "num_columns", "depth", "left_row_stride", "right_k_stride"}
    assert {"left_k_stride": 1, "left_batch_stride": 0}.items() <= dict(spec.constants).items()
