# SPDX-License-Identifier: Apache-2.0
"""Sessions over a pretended TensorRT and a GPU whose memory is on the host."""

import gc
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nndeploy_tensorrt.artifact_facts import Binding, EngineFacts, metadata_from_facts
from nndeploy_tensorrt.files import ENGINE_FILE
from nndeploy_tensorrt.session import open_session
from tests_tensorrt_fake import VERSION, FakeTensorRt, engine_bytes

from nndeploy.cuda import DeviceArray, device
from nndeploy.errors import BundleError, DataError, UnavailableError, UsageError
from nndeploy.plugin.interface import OpenOptions, Session
from nndeploy.testing.host_driver import HostDriver, HostGpu

X = {"name": "x", "dtype": "float32", "shape": [2, 3]}
Y = {"name": "y", "dtype": "float32", "shape": [2, 3]}
ANY_X = {"name": "x", "dtype": "float32", "shape": [-1, 3]}
ANY_Y = {"name": "y", "dtype": "float32", "shape": [-1, 3]}
VECTOR = {"name": "x", "dtype": "float32", "shape": [-1]}
SOME = {"name": "y", "dtype": "float32", "shape": [-1]}
GPU = OpenOptions(device="cuda:0")


def binding(said: Mapping[str, Any]) -> Binding:
    return Binding(said["name"], said["dtype"], tuple(said["shape"]))


def opened(
    inputs: list[dict[str, Any]], outputs: list[dict[str, Any]], options: OpenOptions = GPU, *,
    capabilities: tuple[str, ...] = ("8.9",), version: str = VERSION, library: str = "rtx", **more: Any,
) -> Session:  # fmt: skip
    facts = EngineFacts(library, version, capabilities, tuple(map(binding, inputs)), tuple(map(binding, outputs)))
    data = engine_bytes(inputs, outputs, **more)
    return open_session({ENGINE_FILE: memoryview(data)}, metadata_from_facts(facts), options)


def numbers(*shape: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 2


@pytest.mark.usefixtures("fake")
def test_static_engine_gives_device_arrays_with_the_right_numbers() -> None:
    session = opened([X], [Y])
    found = session.run({"x": numbers(2, 3)})
    assert session.device == "cuda:0"
    assert isinstance(found["y"], DeviceArray)
    assert np.array_equal(found["y"].numpy(), 2 * numbers(2, 3))


@pytest.mark.usefixtures("fake")
def test_arrays_of_the_gpu_are_taken_as_they_are(driver: HostDriver) -> None:
    session = opened([ANY_X], [ANY_Y])
    given = device(0).to_device(numbers(4, 3))
    before = driver.live_bytes
    found = session.run({"x": given})["y"]
    assert np.array_equal(found.numpy(), 2 * numbers(4, 3))
    assert driver.live_bytes == before + found.nbytes


def test_array_of_another_gpu_is_brought_over(fake: FakeTensorRt) -> None:
    fake.driver.gpus = (HostGpu(), HostGpu())
    session = opened([X], [Y])
    for _ in range(3):
        found = session.run({"x": device(1).to_device(numbers(2, 3))})["y"]
        assert found.device is device(0)
        assert np.array_equal(found.numpy(), 2 * numbers(2, 3))


@pytest.mark.usefixtures("fake")
def test_dynamic_engine_takes_every_size_of_its_range() -> None:
    session = opened([ANY_X], [ANY_Y], profiles=[{"x": [[1, 3], [8, 3]]}])
    for size in (1, 8, 3, 8):
        assert np.array_equal(session.run({"x": numbers(size, 3)})["y"].numpy(), 2 * numbers(size, 3))


@pytest.mark.usefixtures("fake")
def test_size_outside_the_range_is_bad_data() -> None:
    session = opened([ANY_X], [ANY_Y], profiles=[{"x": [[1, 3], [8, 3]]}])
    with pytest.raises(DataError, match=r"^x\[9, 3\]: outside the sizes that the engine was built for"):
        session.run({"x": numbers(9, 3)})


def test_each_profile_has_a_context_and_runs_the_sizes_that_lie_in_it(fake: FakeTensorRt) -> None:
    session = opened([ANY_X], [ANY_Y], profiles=[{"x": [[1, 3], [8, 3]]}, {"x": [[9, 3], [64, 3]]}])
    for size in (1, 64, 8, 9, 30):
        assert np.array_equal(session.run({"x": numbers(size, 3)})["y"].numpy(), 2 * numbers(size, 3))
    assert [(context.profile, context.num_queued) for context in fake.contexts] == [(0, 2), (1, 3)]
    with pytest.raises(DataError, match=r"^x\[65, 3\]: outside the sizes that the engine was built for"):
        session.run({"x": numbers(65, 3)})


@pytest.mark.usefixtures("fake")
def test_fixed_size_that_does_not_fit_never_reaches_the_gpu() -> None:
    session = opened([X], [Y])
    for _ in range(4):
        with pytest.raises(DataError, match=r"\[3, 3\]"):
            session.run({"x": numbers(3, 3)})
        session.run({"x": numbers(2, 3)})


@pytest.mark.usefixtures("fake")
def test_arrays_without_elements_go_through() -> None:
    session = opened([ANY_X], [ANY_Y])
    assert session.run({"x": numbers(0, 3)})["y"].numpy().shape == (0, 3)


@pytest.mark.usefixtures("fake")
def test_output_whose_size_depends_on_values_has_that_size() -> None:
    session = opened([VECTOR], [SOME], op="positive")
    for _ in range(2):
        assert session.run({"x": numbers(6)})["y"].numpy().tolist() == [1.0, 2.0, 3.0]
    assert session.run({"x": -np.ones(4, np.float32)})["y"].numpy().tolist() == []


@pytest.mark.usefixtures("fake")
def test_outputs_of_earlier_calls_stay_what_they_were() -> None:
    for kinds, more in (([X], {}), ([VECTOR], {"op": "positive"})):
        session = opened(kinds, [Y if kinds == [X] else SOME], **more)
        shape = (2, 3) if kinds == [X] else (6,)
        kept = [session.run({"x": numbers(*shape) + i})["y"] for i in range(4)]
        copies = [array.numpy() for array in kept]
        session.run({"x": numbers(*shape) * 100})
        assert all(np.array_equal(array.numpy(), copy) for array, copy in zip(kept, copies, strict=True))
        assert not np.array_equal(copies[2], copies[3])


def test_static_engine_is_captured_once_and_then_launched(fake: FakeTensorRt) -> None:
    session = opened([X], [Y])
    for i in range(6):
        assert np.array_equal(session.run({"x": numbers(2, 3) + i})["y"].numpy(), 2 * (numbers(2, 3) + i))
    assert fake.contexts[0].num_queued == 3, "two runs, one capture, then only graphs"
    assert fake.driver.live_graphs == 1


def test_captured_engine_takes_arrays_of_the_gpu(fake: FakeTensorRt) -> None:
    session = opened([X], [Y])
    for i in range(4):
        found = session.run({"x": device(0).to_device(numbers(2, 3) + i)})["y"].numpy()
        assert np.array_equal(found, 2 * (numbers(2, 3) + i))
    assert fake.driver.live_graphs == 1


@pytest.mark.parametrize("why", ["dynamic", "not capturable"])
def test_engine_that_cannot_be_captured_is_queued_each_time(fake: FakeTensorRt, why: str) -> None:
    session = opened([ANY_X], [ANY_Y]) if why == "dynamic" else opened([X], [Y], capturable=False)
    for _ in range(4):
        session.run({"x": numbers(2, 3)})
    assert fake.contexts[0].num_queued == 4
    assert fake.driver.live_graphs == 0


def test_failed_capture_costs_nothing_but_speed(fake: FakeTensorRt, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened([X], [Y])
    context = fake.contexts[0]
    queue = context.execute_async_v3
    monkeypatch.setattr(context, "execute_async_v3", lambda stream: context.num_queued != 2 and queue(stream))
    for i in range(5):
        if i == 2:
            monkeypatch.setattr(context, "execute_async_v3", queue)
        assert np.array_equal(session.run({"x": numbers(2, 3) + i})["y"].numpy(), 2 * (numbers(2, 3) + i))
    assert fake.driver.live_graphs == 0


@pytest.mark.usefixtures("fake")
def test_several_threads_may_call() -> None:
    session = opened([X], [Y])
    wrong: list[int] = []

    def call(seed: int) -> None:
        for i in range(20):
            given = numbers(2, 3) * seed + i
            if not np.array_equal(session.run({"x": given})["y"].numpy(), 2 * given):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_closing_frees_the_gpu_and_a_second_time_does_nothing(fake: FakeTensorRt) -> None:
    session = opened([X], [Y])
    for _ in range(4):
        session.run({"x": numbers(2, 3)})
    session.close()
    session.close()
    del session
    fake.contexts.clear()
    gc.collect()
    assert fake.driver.live_bytes == 0
    assert fake.driver.live_graphs == 0


@pytest.mark.usefixtures("fake")
def test_closed_session_says_so() -> None:
    session = opened([X], [Y])
    session.close()
    with pytest.raises(UsageError, match="the session is closed"):
        session.run({"x": numbers(2, 3)})


@pytest.mark.usefixtures("fake")
def test_failure_of_the_library_is_bad_data_with_its_reason() -> None:
    with pytest.raises(DataError, match="TensorRT failed: no room"):
        opened([X], [Y], fails=True).run({"x": numbers(2, 3)})


def test_output_that_gets_no_memory_says_so(fake: FakeTensorRt) -> None:
    session = opened([VECTOR], [SOME], op="positive")
    given = device(0).to_device(numbers(6))
    fake.driver.gpus = (HostGpu(memory_bytes=fake.driver.live_bytes + 8),)
    with pytest.raises(UnavailableError, match="out of memory"):
        session.run({"x": given})


TWO = [{"x": [[1, 3], [8, 3]]}, {"x": [[9, 3], [64, 3]]}]


@pytest.mark.parametrize(
    ("more", "error", "why"),
    [
        *(
            ({"options": OpenOptions(device=name)}, UnavailableError, f"TensorRT runs on a GPU, not on '{name}'")
            for name in ("cpu", "cuda", "cuda:x", "tpu:0")
        ),
        ({"options": OpenOptions(device="cuda:7")}, UnavailableError, "there is no such GPU, this machine has 1"),
        ({"capabilities": ("7.5", "8.6")}, UnavailableError, r"compute capability 7\.5 or 8\.6, cuda:0 has 8\.9"),
        ({"profiles": TWO, "stuck": True}, UnavailableError, "does not take up optimisation profile 1 of 2"),
        ({"location": "HOST"}, BundleError, "wants 'x' in host memory"),
    ],
)
@pytest.mark.usefixtures("fake")
def test_what_cannot_be_opened_says_why(more: dict[str, Any], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        opened([ANY_X] if "profiles" in more else [X], [ANY_Y] if "profiles" in more else [Y], **more)


def test_portable_engine_does_not_run_on_older_gpus(fake: FakeTensorRt) -> None:
    opened([X], [Y], capabilities=())
    attributes = {"COMPUTE_CAPABILITY_MAJOR": 7, "COMPUTE_CAPABILITY_MINOR": 5, "MEMORY_POOLS_SUPPORTED": 1}
    fake.driver.gpus = (HostGpu(), HostGpu(attributes=attributes))
    with pytest.raises(UnavailableError, match=r"the engine is for compute capability 8\.0 or later, cuda:1 has 7\.5"):
        opened([X], [Y], OpenOptions(device="cuda:1"), capabilities=())


@pytest.mark.usefixtures("fake")
def test_engine_of_another_version_is_unavailable_with_what_to_install() -> None:
    with pytest.raises(UnavailableError, match=r"the engine is for TensorRT-RTX 1\.6, here is 1\.7\.1\.116") as caught:
        opened([X], [Y], version="1.6")
    assert caught.value.hint == "pip install tensorrt-rtx-cu13==1.6"


def test_engine_that_the_library_finds_invalid_is_unavailable_with_its_causes(fake: FakeTensorRt) -> None:
    fake.diagnostics = 3
    with pytest.raises(UnavailableError, match="cannot use the engine here: version mismatch, unsupported cc"):
        opened([X], [Y])


@pytest.mark.usefixtures("fake")
def test_engine_that_does_not_load_is_unavailable_with_the_reason() -> None:
    facts = EngineFacts("rtx", VERSION, ("8.9",), (binding(X),), (binding(Y),))
    with pytest.raises(UnavailableError, match="cannot load the engine: no magic tag"):
        open_session({ENGINE_FILE: memoryview(b"garbage")}, metadata_from_facts(facts), GPU)


def test_no_context_is_unavailable(fake: FakeTensorRt) -> None:
    fake.no_context = True
    with pytest.raises(UnavailableError, match="no execution context"):
        opened([X], [Y])


@pytest.mark.parametrize(("inputs", "outputs", "why"), [
    ([{**X, "name": "z"}], [Y], "other inputs and outputs than the bundle says"),
    ([X], [X | {"name": "y2"}], "other inputs and outputs than the bundle says"),
    ([X | {"dtype": "float16"}], [Y], "float16"), ([X | {"shape": [3, 2]}], [Y], r"\(3, 2\)"),
])  # fmt: skip
@pytest.mark.usefixtures("fake")
def test_engine_that_is_not_what_the_bundle_says_is_refused(
    inputs: list[dict[str, Any]], outputs: list[dict[str, Any]], why: str
) -> None:
    facts = EngineFacts("rtx", VERSION, ("8.9",), tuple(map(binding, inputs)), tuple(map(binding, outputs)))
    engine = memoryview(engine_bytes([X], [Y]))
    with pytest.raises(BundleError, match=why):
        open_session({ENGINE_FILE: engine}, metadata_from_facts(facts), GPU)


@pytest.mark.usefixtures("fake")
def test_artifact_without_an_engine_is_refused() -> None:
    facts = EngineFacts("rtx", VERSION, ("8.9",), (binding(X),), (binding(Y),))
    with pytest.raises(BundleError, match=r"the artifact has no engine\.trt"):
        open_session({}, metadata_from_facts(facts), GPU)


def test_library_runs_no_host_code_and_writes_no_file(fake: FakeTensorRt) -> None:
    opened([X], [Y])
    assert fake.runtimes[0].engine_host_code_allowed is False
    assert fake.runtimes[0].tempfile_control_flags == 1


def test_compiled_kernels_are_kept_after_the_first_run_and_used_again(fake: FakeTensorRt, tmp_path: Path) -> None:
    options = OpenOptions(device="cuda:0", cache_dir=str(tmp_path / "cache"))
    opened([X], [Y], options).run({"x": numbers(2, 3)})
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.read_bytes() == b"kernels for double"
    opened([X], [Y], options)
    assert fake.caches[1].loaded == b"kernels for double"


def test_another_engine_has_a_cache_of_its_own(fake: FakeTensorRt, tmp_path: Path) -> None:
    options = OpenOptions(device="cuda:0", cache_dir=str(tmp_path))
    opened([X], [Y], options).run({"x": numbers(2, 3)})
    opened([VECTOR], [SOME], options, op="positive")
    assert fake.caches[1].loaded == b""


def test_cache_that_the_library_refuses_is_written_anew(fake: FakeTensorRt, tmp_path: Path) -> None:
    options = OpenOptions(device="cuda:0", cache_dir=str(tmp_path))
    opened([X], [Y], options).run({"x": numbers(2, 3)})
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"of another driver")
    opened([X], [Y], options).run({"x": numbers(2, 3)})
    assert kept.read_bytes() == b"kernels for double"
    assert fake.caches[1].loaded == b""


def test_nothing_is_kept_unless_a_folder_is_named(fake: FakeTensorRt) -> None:
    opened([X], [Y]).run({"x": numbers(2, 3)})
    assert fake.caches == []


def test_classic_library_has_no_kernel_cache(fake: FakeTensorRt, tmp_path: Path) -> None:
    options = OpenOptions(device="cuda:0", cache_dir=str(tmp_path))
    session = opened([X], [Y], options, library="classic")
    assert np.array_equal(session.run({"x": numbers(2, 3)})["y"].numpy(), 2 * numbers(2, 3))
    assert fake.contexts[0].config is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("driver")
def test_library_that_is_not_installed_is_unavailable(fake: FakeTensorRt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_rtx_bindings", None)
    with pytest.raises(UnavailableError, match="TensorRT-RTX is not installed"):
        opened([X], [Y])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "int32", "int64", "uint8", "bool"])
@pytest.mark.usefixtures("fake")
def test_every_element_type_crosses(dtype: str) -> None:
    kind = {"dtype": dtype, "shape": [4]}
    session = opened([{"name": "x", **kind}], [{"name": "y", **kind}])
    given = device(0).empty((4,), dtype).dtype
    values = np.array([0, 1, 2, 3]).astype(given)
    assert np.array_equal(session.run({"x": values})["y"].numpy(), values + values)
