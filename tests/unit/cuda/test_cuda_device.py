# SPDX-License-Identifier: Apache-2.0
"""Memory, copies, launches and graphs of a device, over a driver that pretends."""

import gc
import threading

import numpy as np
import pytest

from nndeploy.cuda import CudaError, Device, DeviceArray, cuda_unavailable, device
from nndeploy.cuda.current_driver import injected_driver
from nndeploy.errors import InputError, UnavailableError, UsageError
from nndeploy.testing.host_driver import GARBAGE, HostDriver, HostGpu, Launch

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)
CUBIN = b"\x7fELF ... scale ..."


def test_a_device_says_what_it_is_and_is_always_the_same_object(driver: HostDriver) -> None:
    found = device(0)
    assert found is device(0)
    assert (found.name, found.ordinal, found.compute_capability) == ("cuda:0", 0, "8.9")
    assert repr(found) == "Device(cuda:0: Pretended GPU, compute capability 8.9)"


def test_a_device_that_is_not_there_is_one_clear_line(driver: HostDriver) -> None:
    with pytest.raises(UnavailableError) as caught:
        device(1)
    assert str(caught.value) == "cuda:1: there is no such GPU, this machine has 1"
    assert caught.value.exit_code == 69


def test_no_gpu_at_all_is_one_clear_line() -> None:
    with injected_driver(HostDriver(gpus=())):
        assert cuda_unavailable() == "there is an NVIDIA driver but no GPU"
        with pytest.raises(UnavailableError, match="cuda:0: there is an NVIDIA driver but no GPU"):
            device(0)


def test_values_come_back_as_they_went(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    assert (array.shape, array.dtype, array.nbytes, array.device.name) == ((3, 4), np.dtype("f4"), 48, "cuda:0")
    np.testing.assert_array_equal(array.numpy(), VALUES)


@pytest.mark.parametrize(
    "values",
    [np.zeros((0, 3), np.float32), np.array(7, np.int64), np.array([[True, False]]),
     np.arange(24, dtype=np.float16).reshape(2, 3, 4).transpose(2, 0, 1), np.arange(10, dtype=np.uint8)[::2]],
    ids=["empty", "scalar", "bool", "transposed", "strided"],
)  # fmt: skip
def test_every_kind_of_array_comes_back(driver: HostDriver, values: np.ndarray) -> None:
    back = device(0).to_device(values).numpy()
    assert back.shape == values.shape
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_the_host_array_may_change_right_after_the_call(driver: HostDriver) -> None:
    values = VALUES.copy()
    array = device(0).to_device(values)
    values[:] = -1
    np.testing.assert_array_equal(array.numpy(), VALUES)


def test_an_array_larger_than_a_staging_piece_comes_back(driver: HostDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nndeploy.cuda.devices.PIECE_BYTES", 100)
    values = np.arange(1000, dtype=np.int16)
    np.testing.assert_array_equal(device(0).to_device(values).numpy(), values)


def test_text_cannot_be_on_a_gpu(driver: HostDriver) -> None:
    with pytest.raises(InputError, match="values of type string cannot be on a GPU"):
        device(0).to_device(np.array(["a"], dtype=object))
    with pytest.raises(InputError, match="values of type string cannot be on a GPU"):
        device(0).empty((2,), "string")


def test_an_empty_array_is_not_cleared_memory(driver: HostDriver) -> None:
    assert set(device(0).empty((4,), "uint8").numpy()) == {GARBAGE}


def test_memory_is_freed_when_the_last_view_is_dropped(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    view = array.reshape((4, 3))
    del array
    np.testing.assert_array_equal(view.numpy(), VALUES.reshape(4, 3))
    assert driver.live_bytes == 48
    del view
    gc.collect()
    assert driver.live_bytes == 0


def test_a_view_of_another_size_is_refused(driver: HostDriver) -> None:
    with pytest.raises(UsageError, match=r"cannot see an array of shape \(3, 4\) as \(5,\)"):
        device(0).to_device(VALUES).reshape((5,))


def test_a_view_outside_its_memory_is_refused(driver: HostDriver) -> None:
    array = device(0).empty((4,), "float32")
    with pytest.raises(UsageError, match="an array of 16 bytes at 4 is outside its memory"):
        DeviceArray(array._allocation, (4,), np.dtype("f4"), 4)


def test_full_memory_is_one_clear_line() -> None:
    with injected_driver(HostDriver(gpus=[HostGpu(memory_bytes=100)])), pytest.raises(CudaError) as caught:
        device(0).empty((101,), "uint8")
    assert str(caught.value) == "cuda:0: cuMemAllocAsync failed: out of memory"
    assert caught.value.exit_code == 69


def test_writing_checks_shape_dtype_and_device() -> None:
    with injected_driver(HostDriver(gpus=[HostGpu(), HostGpu()])):
        array = device(0).empty((3, 4), "float32")
        with pytest.raises(InputError, match=r"cuda:0: expected float32\[3, 4\], got float32\[4, 3\]"):
            array.write(VALUES.T)
        with pytest.raises(InputError, match=r"expected float32\[3, 4\], got int32\[3, 4\]"):
            array.write(VALUES.astype(np.int32))
        with pytest.raises(InputError, match="cannot copy"):
            array.write(device(1).to_device(VALUES))
        array.write(device(0).to_device(VALUES))
        np.testing.assert_array_equal(array.numpy(), VALUES)


def test_every_thread_may_use_a_device(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    found: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: found.append(array.numpy()))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], VALUES)


def test_an_array_dropped_in_another_thread_is_freed(driver: HostDriver) -> None:
    arrays = [device(0).to_device(VALUES)]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    assert driver.live_bytes == 0


def launched(gpu: Device, *args: object, shared_bytes: int = 0) -> None:
    gpu.load_module(CUBIN).kernel("scale").launch((5, 1, 1), (128, 1, 1), shared_bytes, args)  # type: ignore[arg-type]


def test_a_launch_hands_over_addresses_and_the_bytes_of_numbers(driver: HostDriver) -> None:
    array = device(0).to_device(VALUES)
    launched(device(0), array, np.int32(-2), np.float32(1.5), np.int64(3), None, shared_bytes=64)
    address = array.ptr.to_bytes(8, "little")
    parameters = (address, b"\xfe\xff\xff\xff", b"\0\0\xc0\x3f", b"\3" + b"\0" * 7, b"\0" * 8)
    assert driver.launches == [Launch("scale", (5, 1, 1), (128, 1, 1), 64, parameters)]


@pytest.mark.parametrize("argument", [3, 1.5, VALUES, "x"])
def test_an_argument_of_no_known_width_is_refused(driver: HostDriver, argument: object) -> None:
    with pytest.raises(UsageError, match="not a kernel argument"):
        launched(device(0), argument)
    assert driver.launches == []


def test_much_shared_memory_is_asked_for_once_and_little_never(driver: HostDriver) -> None:
    kernel = device(0).load_module(CUBIN).kernel("scale")
    kernel.launch((1, 1, 1), (32, 1, 1), 48 * 1024, [])
    assert driver.allowed_shared_bytes == {}
    kernel.launch((1, 1, 1), (32, 1, 1), 99 * 1024, [])
    kernel.launch((1, 1, 1), (32, 1, 1), 64 * 1024, [])
    assert driver.allowed_shared_bytes == {"scale": 99 * 1024}


def test_a_kernel_that_is_not_in_the_module_is_one_clear_line(driver: HostDriver) -> None:
    with pytest.raises(CudaError, match="cuda:0: cuModuleGetFunction failed: named symbol not found"):
        device(0).load_module(CUBIN).kernel("other")


def test_a_module_lives_as_long_as_its_kernels(driver: HostDriver) -> None:
    kernel = device(0).load_module(CUBIN).kernel("scale")
    assert driver.live_modules == 1
    kernel.launch((1, 1, 1), (32, 1, 1), 0, [])
    del kernel
    gc.collect()
    assert driver.live_modules == 0


def test_a_captured_graph_runs_only_when_it_is_launched(driver: HostDriver) -> None:
    gpu = device(0)
    source, target = gpu.to_device(VALUES), gpu.to_device(np.zeros_like(VALUES))
    kernel = gpu.load_module(CUBIN).kernel("scale")

    def work() -> None:
        gpu.copy(target, source)
        kernel.launch((1, 1, 1), (32, 1, 1), 0, [target])

    graph = gpu.capture(work)
    assert driver.launches == []
    assert not target.numpy().any()
    graph.launch()
    graph.launch()
    assert len(driver.launches) == 2
    np.testing.assert_array_equal(target.numpy(), VALUES)
    del graph
    gc.collect()
    assert driver.live_graphs == 0


def test_an_error_in_captured_work_leaves_the_device_usable(driver: HostDriver) -> None:
    gpu = device(0)
    with pytest.raises(ZeroDivisionError):
        gpu.capture(lambda: 1 // 0)
    np.testing.assert_array_equal(gpu.to_device(VALUES).numpy(), VALUES)
    assert driver.live_graphs == 0


def test_waiting_inside_a_capture_is_an_error(driver: HostDriver) -> None:
    gpu = device(0)
    with pytest.raises(CudaError, match="the stream is being captured"):
        gpu.capture(gpu.synchronize)


def test_an_array_dropped_during_a_capture_is_freed_afterwards(driver: HostDriver) -> None:
    gpu = device(0)
    arrays = [gpu.to_device(VALUES)]
    seen: list[int] = []

    def work() -> None:
        arrays.clear()
        seen.append(driver.live_bytes)

    gpu.capture(work)
    assert seen == [48]
    assert driver.live_bytes == 0


def test_other_threads_are_not_recorded_by_a_capture(driver: HostDriver) -> None:
    gpu = device(0)
    target = gpu.to_device(np.zeros_like(VALUES))
    source = gpu.to_device(VALUES)

    def work() -> None:
        thread = threading.Thread(target=lambda: target.write(source))
        thread.start()
        thread.join()

    gpu.capture(work)
    np.testing.assert_array_equal(target.numpy(), VALUES)
