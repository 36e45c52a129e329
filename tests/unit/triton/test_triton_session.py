# SPDX-License-Identifier: Apache-2.0
"""The session over a GPU that pretends: what it launches, copies, owns and refuses. No Triton here."""

import ctypes
import dataclasses
import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from nndeploy_triton.plan import Border, Kernel, Place, TritonPlan, plan_to_json
from nndeploy_triton.plan import Launch as PlannedLaunch
from nndeploy_triton.session import TritonSession, open_session

from nndeploy.cuda import device
from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import BundleError, InputError, UnavailableError, UsageError
from nndeploy.plugin.interface import OpenOptions
from nndeploy.testing.host_driver import HostDriver, HostGpu, Launch

KERNEL = Kernel(
    file="add.cubin", symbol="add", parameters=(("out", "tensor"), ("x", "tensor"), ("c", "tensor"), ("n", "i32")),
    num_null=2, grid=((("n", 4),), (), ()), num_warps=2, shared_bytes=0,
)  # fmt: skip
PLAN = TritonPlan(
    arena_bytes=768,
    constants_bytes=256,
    inputs=(Border("x", Place("arena", 0), "float32", (2, 3)),),
    outputs=(Border("y", Place("arena", 512), "float32", (2, 3)), Border("k", Place("constants", 0), "float32", (6,))),
    kernels={"add": KERNEL},
    launches=(
        PlannedLaunch(
            "add", (("out", Place("arena", 256)), ("x", Place("arena", 0)), ("c", Place("constants", 0))), (("n", 6),)
        ),
        PlannedLaunch(
            "add", (("out", Place("arena", 512)), ("x", Place("arena", 256)), ("c", Place("constants", 0))), (("n", 6),)
        ),
    ),
)
CONSTANT = np.arange(6, dtype=np.float32)
FILES = {
    "constants.bin": memoryview(CONSTANT.tobytes() + bytes(256 - CONSTANT.nbytes)),
    "sm_89/plan.json": memoryview(plan_to_json(PLAN)),
    "sm_89/add.cubin": memoryview(b"cubin with add"),
}
METADATA = {"format": 1}
X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def add(launch: Launch) -> None:
    """Does on the host what the kernel `add` would do: out = x + c."""
    assert launch.kernel == "add"
    assert (launch.grid, launch.block, launch.args[4:]) == ((2, 1, 1), (64, 1, 1), (bytes(8), bytes(8)))
    out, x, c = (int.from_bytes(arg, "little") for arg in launch.args[:3])
    n = int.from_bytes(launch.args[3], "little")
    arrays = [(ctypes.c_float * n).from_address(address) for address in (out, x, c)]
    for i in range(n):
        arrays[0][i] = arrays[1][i] + arrays[2][i]


@pytest.fixture
def driver() -> Iterator[HostDriver]:
    found = HostDriver([HostGpu(), HostGpu()], add)
    with injected_driver(found):
        yield found


def opened(files: dict[str, memoryview] = FILES, device_name: str = "cuda:0") -> TritonSession:
    return open_session(files, METADATA, OpenOptions(device=device_name))


def with_plan(plan: TritonPlan) -> dict[str, memoryview]:
    return {**FILES, "sm_89/plan.json": memoryview(plan_to_json(plan))}


def test_a_run_gives_every_output_on_the_device(driver: HostDriver) -> None:
    session = opened()
    outputs = session.run({"x": X})
    assert session.device == "cuda:0"
    assert outputs["y"].device.name == "cuda:0"
    np.testing.assert_array_equal(outputs["y"].numpy(), X + 2 * CONSTANT.reshape(2, 3))
    np.testing.assert_array_equal(outputs["k"].numpy(), CONSTANT)


def test_a_session_runs_on_the_gpu_that_it_is_told(driver: HostDriver) -> None:
    session = opened(device_name="cuda:1")
    assert session.run({"x": X})["y"].device.name == "cuda:1"


def test_an_input_may_be_on_the_device_already(driver: HostDriver) -> None:
    session = opened()
    np.testing.assert_array_equal(
        session.run({"x": device(0).to_device(X)})["y"].numpy(), session.run({"x": X})["y"].numpy()
    )


def test_an_input_on_another_device_is_brought_over(driver: HostDriver) -> None:
    found = opened().run({"x": device(1).to_device(X)})["y"]
    np.testing.assert_array_equal(found.numpy(), X + 2 * CONSTANT.reshape(2, 3))


def test_an_input_of_another_shape_or_type_is_refused(driver: HostDriver) -> None:
    with pytest.raises(InputError, match=r"expected float32\[2, 3\], got float32\[3, 2\]"):
        opened().run({"x": X.T})
    with pytest.raises(InputError, match=r"expected float32\[2, 3\], got float64\[2, 3\]"):
        opened().run({"x": X.astype(np.float64)})


def test_inputs_are_not_changed_and_outputs_belong_to_the_caller(driver: HostDriver) -> None:
    session, x = opened(), X.copy()
    first = session.run({"x": x})["y"]
    session.run({"x": x * 10})
    np.testing.assert_array_equal(first.numpy(), X + 2 * CONSTANT.reshape(2, 3))
    np.testing.assert_array_equal(x, X)


def test_a_run_waits_for_nothing(driver: HostDriver) -> None:
    session = opened()
    before = driver.num_synchronized
    session.run({"x": X})
    assert driver.num_synchronized == before


def test_constants_are_placed_once_and_a_run_is_one_graph(driver: HostDriver) -> None:
    session = opened()
    num_launches, live = len(driver.launches), driver.live_bytes
    assert (num_launches, driver.live_graphs) == (2, 1)
    for number in range(1, 4):
        outputs = session.run({"x": X})
        assert len(driver.launches) == num_launches + 2 * number
        del outputs
    assert driver.live_bytes == live == PLAN.arena_bytes + PLAN.constants_bytes
    assert driver.live_graphs == 1


def test_several_threads_may_run_at_once(driver: HostDriver) -> None:
    session = opened()
    results: dict[int, np.ndarray] = {}

    def work(number: int) -> None:
        results[number] = session.run({"x": X * number})["y"].numpy()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(8):
        np.testing.assert_array_equal(results[number], X * number + 2 * CONSTANT.reshape(2, 3))


def test_closing_frees_everything_and_twice_does_nothing(driver: HostDriver) -> None:
    session = opened()
    session.close()
    session.close()
    gc.collect()
    assert (driver.live_bytes, driver.live_graphs, driver.live_modules) == (0, 0, 0)
    with pytest.raises(UsageError, match="the session is closed"):
        session.run({"x": X})


def test_outputs_outlive_their_session(driver: HostDriver) -> None:
    session = opened()
    outputs = session.run({"x": X})
    session.close()
    np.testing.assert_array_equal(outputs["y"].numpy(), X + 2 * CONSTANT.reshape(2, 3))


def test_a_plan_without_launches_still_copies(driver: HostDriver) -> None:
    plan = TritonPlan(256, 256, PLAN.inputs, (Border("y", Place("arena", 0), "float32", (3, 2)),), {}, ())
    np.testing.assert_array_equal(opened(with_plan(plan)).run({"x": X})["y"].numpy(), X.reshape(3, 2))
    assert driver.live_graphs == 0


@pytest.mark.parametrize("name", ["cpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "gpu:0"])
def test_another_device_than_a_gpu_is_one_clear_line(driver: HostDriver, name: str) -> None:
    with pytest.raises(UnavailableError, match="Triton kernels run on an NVIDIA GPU, not on"):
        opened(device_name=name)


def test_no_gpu_is_one_clear_line() -> None:
    with injected_driver(HostDriver(gpus=())), pytest.raises(UnavailableError) as caught:
        opened()
    assert str(caught.value) == "cuda:0: there is an NVIDIA driver but no GPU"
    assert caught.value.exit_code == 69


def test_a_gpu_of_another_kind_is_told_what_was_built() -> None:
    turing = HostGpu("Tesla T4", attributes={"COMPUTE_CAPABILITY_MAJOR": 7, "COMPUTE_CAPABILITY_MINOR": 5})
    with injected_driver(HostDriver([turing])), pytest.raises(UnavailableError) as caught:
        opened()
    assert str(caught.value) == (
        "cuda:0: built for sm_89, this one is sm_75 (Tesla T4) (hint: compile with --target for this GPU)"
    )


@pytest.mark.parametrize(("files", "said"), [
    ({**FILES, "constants.bin": memoryview(b"short")}, "constants.bin has 5 bytes, the plan says 256"),
    ({name: FILES[name] for name in FILES if name != "constants.bin"}, "constants.bin has 0 bytes"),
    ({name: FILES[name] for name in FILES if "cubin" not in name}, "the artifact has no 'sm_89/add.cubin'"),
    ({**FILES, "sm_89/plan.json": memoryview(b"{}")}, "the plan is malformed: KeyError: 'format'"),
    (with_plan(dataclasses.replace(PLAN, arena_bytes=100)), "lies outside the arena of 100 bytes"),
])  # fmt: skip
def test_a_damaged_artifact_is_one_clear_line(driver: HostDriver, files: dict[str, memoryview], said: str) -> None:
    with pytest.raises(BundleError) as caught:
        opened(files)
    assert said in str(caught.value)


@pytest.mark.parametrize("metadata", [{}, {"format": 3}, {"format": "1"}])
def test_an_artifact_of_another_format_is_refused(driver: HostDriver, metadata: dict[str, object]) -> None:
    with pytest.raises(BundleError, match="an artifact of format"):
        open_session(FILES, metadata, OpenOptions(device="cuda:0"))
