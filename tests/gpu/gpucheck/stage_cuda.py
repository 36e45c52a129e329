# SPDX-License-Identifier: Apache-2.0
"""Stage 2: `nndeploy.cuda` itself. Memory, streams, graphs, kernels, DLPack, staging: each checked on its own."""

import gc
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from gpucheck.options import Options
from gpucheck.rows import NOT_RUN, OK, WRONG, Row
from nndeploy.cuda import CudaError, Device, DeviceArray, device
from nndeploy.cuda.staging import PIECE_BYTES
from nndeploy.values.types import DTYPES, numpy_dtype

STAGE = "cuda"
SIZES = ((), (0, 3), (1,), (3, 5, 7), (1 << 16,))

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


class WrongError(Exception):
    """What came back is not what should have."""


def items(options: Options) -> list[str]:
    """Returns the names of the checks."""
    return list(CHECKS)


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields what one check found."""
    try:
        note = CHECKS[item](device(0))
    except WrongError as err:
        yield Row(STAGE, item, "cuda", WRONG, str(err))
    except ImportError as err:
        yield Row(STAGE, item, "cuda", NOT_RUN, str(err))
    else:
        yield Row(STAGE, item, "cuda", OK, note)


def expect(holds: bool, what: str) -> None:
    """Raises WrongError with `what` where something does not hold."""
    if not holds:
        raise WrongError(what)


def round_trips(gpu: Device) -> str:
    """Every element type, in several shapes, up and down again, bit for bit."""
    dtypes = [name for name in DTYPES if name != "string"]
    for name in dtypes:
        for shape in SIZES:
            values = _bits(shape, name)
            back = gpu.to_device(values).numpy()
            expect(back.dtype == values.dtype and back.shape == values.shape, f"{name}{list(shape)}: another type")
            expect(back.tobytes() == values.tobytes(), f"{name}{list(shape)}: other bytes")
    return f"{len(dtypes)} element types"


def large_arrays(gpu: Device) -> str:
    """An array that goes through the page-locked buffers in several pieces."""
    values = np.arange(2 * PIECE_BYTES + 4099, dtype=np.uint32).view(np.uint8)[: 2 * PIECE_BYTES + 4099]
    expect(np.array_equal(gpu.to_device(values).numpy(), values), "other bytes")
    return f"{values.nbytes} bytes"


def staging(gpu: Device) -> str:
    """A host array may be overwritten at once, and strided ones are right."""
    wide = np.arange(4_000_000, dtype=np.float32)
    sources = [wide + number for number in range(8)]
    arrays = []
    for source in sources:
        arrays.append(gpu.to_device(source))
        source[:] = -1
    for number, array in enumerate(arrays):
        expect(np.array_equal(array.numpy(), wide + number), f"array {number} was staged wrongly")
    expect(np.array_equal(gpu.to_device(wide[::3]).numpy(), wide[::3]), "a strided array is wrong")
    return ""


def views(gpu: Device) -> str:
    """Reshaped and copied arrays see the same and other bytes, and outlive the array they came from."""
    first = gpu.to_device(np.arange(12, dtype=np.int32))
    seen, copy = first.reshape((3, 4)), gpu.empty((12,), "int32")
    copy.write(first)
    first.write(np.zeros(12, np.int32))
    del first
    expect(not seen.numpy().any(), "a view does not see a write")
    expect(copy.numpy().tolist() == list(range(12)), "a copy changed")
    return ""


def reuse_of_memory(gpu: Device) -> str:
    """Memory that is dropped and taken again in stream order never mixes values."""
    for number in range(200):
        array = gpu.to_device(np.full(1 << 18, number, np.int32))
        expect(bool((array.numpy() == number).all()), f"round {number} reads another one's values")
        del array
    gc.collect()
    return ""


def threads(gpu: Device) -> str:
    """Several threads use the device at once."""
    wrong: list[str] = []

    def work(number: int) -> None:
        for turn in range(20):
            values = np.full(100_000, 100 * number + turn, np.int64)
            if not np.array_equal(gpu.to_device(values).numpy(), values):
                wrong.append(f"thread {number}, turn {turn}")

    started = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    expect(not wrong, f"wrong in {', '.join(wrong[:3])}")
    return "8 threads"


def ptx_kernel(gpu: Device) -> str:
    """A kernel written by hand is loaded and launched."""
    values = np.arange(1000, dtype=np.float32)
    source, target = gpu.to_device(values), gpu.empty(values.shape, "float32")
    _add_one(gpu, target, source)()
    expect(np.array_equal(target.numpy(), values + 1), "other numbers")
    return ""


def graph(gpu: Device) -> str:
    """Launches and copies are captured once, do not run then, and run at every launch, on new inputs."""
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
    expect(not b.numpy().any(), "the capture ran")
    for turn in range(1, 6):
        captured.launch()
        expect(bool((a.numpy() == 2 * turn).all()), f"launch {turn} gave {a.numpy()[0]} instead of {2 * turn}")
    return ""


def triton_kernel(gpu: Device) -> str:
    """A small cubin that Triton builds here is launched through the driver, as a bundle's would be."""
    from gpucheck.onnx_text import model_of
    from gpucheck.tiers import built, opened
    from nndeploy.target.target import host_target

    artifact = built("triton", model_of("g ({t}[1000] x, {t}[1000] z) => ({t}[1000] y) { y = Add (x, z) }"),
                     host_target())  # fmt: skip
    cubins = [name for name in artifact.files if name.endswith(".cubin")]
    session = opened("triton", artifact)
    x, z = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    found = session.run({"x": x, "z": z})["y"]
    expect(isinstance(found, DeviceArray) and np.array_equal(found.numpy(), x + 1), "other numbers")
    session.close()
    return f"{', '.join(cubins)}"


def dlpack_torch(gpu: Device) -> str:
    """torch sees device arrays without a copy, and keeps them alive."""
    import torch

    def seen(array: DeviceArray) -> Any:
        tensor = torch.from_dlpack(array)
        expect(tensor.data_ptr() == array.ptr, "torch made a copy")
        return tensor.float().cpu().numpy() if tensor.dtype == torch.bfloat16 else tensor.cpu().numpy()

    _exchange(gpu, seen, bfloat16=True)
    tensor = torch.from_dlpack(gpu.to_device(np.full(1 << 20, 7, np.int32)))
    gc.collect()
    gpu.to_device(np.zeros(1 << 20, np.int32))
    expect(bool((tensor == 7).all()), "the memory was freed under torch")
    return f"torch {torch.__version__}"


def dlpack_cupy(gpu: Device) -> str:
    """Cupy sees device arrays without a copy."""
    import cupy

    def seen(array: DeviceArray) -> np.ndarray:
        found = cupy.from_dlpack(array)
        expect(found.data.ptr == array.ptr, "cupy made a copy")
        return np.asarray(cupy.asnumpy(found))

    _exchange(gpu, seen, bfloat16=False)
    return f"cupy {cupy.__version__}"


def errors(gpu: Device) -> str:
    """What cannot work is a CudaError in a line, and the device goes on."""
    attempts: dict[str, Callable[[], object]] = {
        "more memory than there is": lambda: gpu.empty((1 << 50,), "uint8"),
        "no code": lambda: gpu.load_module(b"this is no cubin\0"),
        "no such kernel": lambda: gpu.load_module(ADD_PTX).kernel("nobody"),
    }
    for what, attempt in attempts.items():
        try:
            attempt()
        except CudaError as err:
            expect("\n" not in str(err), f"{what}: more than a line")
        else:
            raise WrongError(f"{what}: no error")
    expect(gpu.to_device(np.ones(3)).numpy().sum() == 3, "the device is lost")
    return ""


CHECKS: Mapping[str, Callable[[Device], str]] = {
    "round trips": round_trips, "large arrays": large_arrays, "staging": staging, "views": views,
    "reuse of memory": reuse_of_memory, "threads": threads, "errors": errors, "kernel in PTX": ptx_kernel,
    "graph": graph, "kernel by Triton": triton_kernel, "DLPack with torch": dlpack_torch,
    "DLPack with cupy": dlpack_cupy,
}  # fmt: skip


def _bits(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Returns random bytes as an array; booleans are 0 and 1, 4-bit and 2-bit types keep to their range."""
    kind, size = numpy_dtype(dtype), int(np.prod(shape))
    data = np.random.default_rng(size).integers(0, 256, size * kind.itemsize, dtype=np.uint8)
    if dtype == "bool":
        data &= 1
    if dtype in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        data &= 1
    return data.view(kind).reshape(shape)


def _add_one(gpu: Device, target: DeviceArray, source: DeviceArray) -> Callable[[], None]:
    kernel = gpu.load_module(ADD_PTX).kernel("add_one")
    blocks = -(-source.size // 128)
    return lambda: kernel.launch((blocks, 1, 1), (128, 1, 1), 0, [target, source, np.uint32(source.size)])


def _exchange(gpu: Device, seen: Callable[[DeviceArray], Any], bfloat16: bool) -> None:
    names = ["float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64"]
    for name in names + (["bfloat16"] if bfloat16 else []):
        values = np.arange(24).reshape(2, 3, 4).astype(numpy_dtype(name))
        found = seen(gpu.to_device(values))
        expect(np.array_equal(found, values.astype(found.dtype)), f"{name}: other values")
