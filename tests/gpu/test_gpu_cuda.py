# SPDX-License-Identifier: Apache-2.0
"""`nndeploy.cuda` itself: what is here, memory, streams, graphs, kernels, DLPack, staging."""

import gc
import threading
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu_backends import TIERS, built, opened
from gpu_operator_models import model_of
from gpu_problems import peaks_of

from nndeploy.cuda import CudaError, Device, DeviceArray, device
from nndeploy.cuda.staging import PIECE_BYTES
from nndeploy.plugin.registry import backend
from nndeploy.target.target import host_target, target_from_toml, target_to_toml
from nndeploy.values.types import DTYPES, numpy_dtype

SIZES = ((), (0, 3), (1,), (3, 5, 7), (1 << 16,))
LIBRARIES = (
    "onnxruntime", "onnxruntime-gpu", "cuda-bindings", "tensorrt-rtx-cu13-bindings", "tensorrt", "nvidia-cudnn-cu13",
    "nvidia-cuda-nvrtc", "triton", "torch", "cupy-cuda13x", "onnx2torch",
)  # fmt: skip
ADD_PTX = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry add_one(.param .u64 to, .param .u64 from, .param .u32 n)
{
    .reg .pred %p;
    .reg .f32 %f;
    .reg .b32 %r<5>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [to];
    ld.param.u64 %d2, [from];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    mul.wide.u32 %d3, %r2, 4;
    add.s64 %d4, %d2, %d3;
    add.s64 %d5, %d1, %d3;
    ld.global.f32 %f, [%d4];
    add.f32 %f, %f, 0f3F800000;
    st.global.f32 [%d5], %f;
done:
    ret;
}
\0"""
"""y = x + 1, written by hand: a launch without any compiler of ours. The driver compiles it for its GPU."""


@pytest.fixture
def gpu() -> Device:
    return device(0)


def test_the_target_can_be_written_and_read_again(
    request: pytest.FixtureRequest, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    gpu, text = host_target().gpus[0], target_to_toml(host_target())
    path = request.config.getoption("--target-out", default=None) or tmp_path / "target.toml"
    path.write_text(text)
    assert target_to_toml(target_from_toml(path)) == text
    peaks = peaks_of(gpu.compute_capability, dict(gpu.cudnn))
    record_property("GPU", f"{gpu.name} {gpu.compute_capability}, {gpu.memory_bytes / 2**30:.1f} GiB")
    record_property("peak GB/s", f"{peaks.bytes_per_s / 1e9:.0f}")
    record_property("peak float32 TFLOP/s", f"{peaks.float32_per_s / 1e12:.1f}")
    record_property("peak float16 TFLOP/s", f"{peaks.float16_per_s / 1e12:.1f}")


def test_what_is_installed(record_property: Callable[[str, object], None]) -> None:
    for name in LIBRARIES:
        try:
            record_property(name, version(name))
        except PackageNotFoundError:
            record_property(name, "-")
    for name in TIERS:
        record_property(name, backend(name).probe(host_target()).reason or "usable")


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "string"])
def test_arrays_go_up_and_down_bit_for_bit(dtype: str, gpu: Device) -> None:
    kind = numpy_dtype(dtype)
    for shape in SIZES:
        data = np.random.default_rng(7).integers(0, 256, int(np.prod(shape)) * kind.itemsize, dtype=np.uint8)
        if dtype in ("bool", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
            data &= 1
        values = data.view(kind).reshape(shape)
        back = gpu.to_device(values).numpy()
        assert (back.dtype, back.shape, back.tobytes()) == (values.dtype, values.shape, values.tobytes())


def test_a_large_array_goes_through_page_locked_buffers_in_pieces(gpu: Device) -> None:
    values = np.arange(2 * PIECE_BYTES + 4099, dtype=np.uint32).view(np.uint8)[: 2 * PIECE_BYTES + 4099]
    assert np.array_equal(gpu.to_device(values).numpy(), values)


def test_a_host_array_may_be_overwritten_at_once_and_be_strided(gpu: Device) -> None:
    wide = np.arange(4_000_000, dtype=np.float32)
    sources, arrays = [wide + number for number in range(8)], list[DeviceArray]()
    for source in sources:
        arrays.append(gpu.to_device(source))
        source[:] = -1
    for number, array in enumerate(arrays):
        assert np.array_equal(array.numpy(), wide + number), number
    assert np.array_equal(gpu.to_device(wide[::3]).numpy(), wide[::3])


def test_views_see_the_same_bytes_and_copies_others(gpu: Device) -> None:
    first = gpu.to_device(np.arange(12, dtype=np.int32))
    seen, copy = first.reshape((3, 4)), gpu.empty((12,), "int32")
    copy.write(first)
    first.write(np.zeros(12, np.int32))
    del first
    assert not seen.numpy().any()
    assert copy.numpy().tolist() == list(range(12))


def test_memory_that_is_taken_again_never_mixes_values(gpu: Device) -> None:
    for number in range(200):
        array = gpu.to_device(np.full(1 << 18, number, np.int32))
        assert (array.numpy() == number).all(), number
        del array
    gc.collect()


def test_several_threads_use_the_device_at_once(gpu: Device) -> None:
    wrong: list[tuple[int, int]] = []

    def work(number: int) -> None:
        for turn in range(20):
            values = np.full(100_000, 100 * number + turn, np.int64)
            if not np.array_equal(gpu.to_device(values).numpy(), values):
                wrong.append((number, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_kernel_in_ptx_is_launched(gpu: Device) -> None:
    values = np.arange(1000, dtype=np.float32)
    source, target = gpu.to_device(values), gpu.empty(values.shape, "float32")
    _add_one(gpu, target, source)()
    assert np.array_equal(target.numpy(), values + 1)


def test_a_graph_does_not_run_when_it_is_captured_and_does_at_every_launch(gpu: Device) -> None:
    a, b, c = (gpu.to_device(np.zeros(1000, np.float32)) for _ in range(3))
    launch, again = _add_one(gpu, b, a), _add_one(gpu, c, b)
    launch()  # the driver puts code on the GPU at its first launch, which a capture must not do
    again()
    b.write(np.zeros(1000, np.float32))

    def work() -> None:
        launch()
        again()
        a.write(c)

    captured = gpu.capture(work)
    assert not b.numpy().any()
    for turn in range(1, 6):
        captured.launch()
        assert (a.numpy() == 2 * turn).all(), turn


@pytest.mark.parametrize("tier", ["triton"], indirect=True)
def test_a_cubin_of_triton_is_launched_by_the_driver(tier: str, gpu: Device, tmp_path: Path) -> None:
    model = model_of("g ({t}[1000] x, {t}[1000] z) => ({t}[1000] y) { y = Add (x, z) }")
    x, z = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    with closing(opened(tier, built(tier, model, host_target(), tmp_path))) as session:
        found = session.run({"x": x, "z": z})["y"]
        assert isinstance(found, DeviceArray)
        assert np.array_equal(found.numpy(), x + 1)


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_a_library_sees_device_arrays_without_a_copy_and_keeps_them_alive(library: str, gpu: Device) -> None:
    other = pytest.importorskip(library)
    if library == "torch" and not other.cuda.is_available():
        pytest.skip("torch sees no GPU")

    def seen(array: DeviceArray) -> "tuple[int, np.ndarray[Any, Any]]":
        found = other.from_dlpack(array)
        if library == "cupy":
            return found.data.ptr, np.asarray(other.asnumpy(found))
        return found.data_ptr(), (found.float() if found.dtype == other.bfloat16 else found).cpu().numpy()

    names = ["float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64"]
    for name in [*names, "bfloat16"] if library == "torch" else names:
        values = np.arange(24).reshape(2, 3, 4).astype(numpy_dtype(name))
        array = gpu.to_device(values)
        place, found = seen(array)
        assert place == array.ptr, name
        assert np.array_equal(found, values.astype(found.dtype)), name
    kept = other.from_dlpack(gpu.to_device(np.full(1 << 20, 7, np.int32)))
    gc.collect()
    gpu.to_device(np.zeros(1 << 20, np.int32))
    assert bool((kept == 7).all())


@pytest.mark.parametrize(
    "attempt",
    [
        lambda gpu: gpu.empty((1 << 50,), "uint8"),
        lambda gpu: gpu.load_module(b"this is no cubin\0"),
        lambda gpu: gpu.load_module(ADD_PTX).kernel("nobody"),
    ],
    ids=["more_memory_than_there_is", "no_code", "no_such_kernel"],
)
def test_what_cannot_work_is_an_error_in_a_line_and_the_device_goes_on(
    attempt: Callable[[Device], object], gpu: Device
) -> None:
    with pytest.raises(CudaError) as caught:
        attempt(gpu)
    assert "\n" not in str(caught.value)
    assert gpu.to_device(np.ones(3)).numpy().sum() == 3


def _add_one(gpu: Device, target: DeviceArray, source: DeviceArray) -> Callable[[], None]:
    kernel = gpu.load_module(ADD_PTX).kernel("add_one")
    blocks = -(-source.size // 128)
    return lambda: kernel.launch((blocks, 1, 1), (128, 1, 1), 0, [target, source, np.uint32(source.size)])
