# SPDX-License-Identifier: Apache-2.0
"""Bytes by the tiles of AMX: by its instructions where the processor has them, and by a model of them in C, which ends
where a processor would fault (tests/unit/kernels/amx_model.h).

They are held against the oracle and against the same plans on the level without tiles.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import test_native_quantised_lstm as lstm
from kernel_library import AMX, AMX_MODEL, HOST, LEVELS_HERE, library, on_each, plan_of, run_plan, told_steps
from native_models import Array, built, contrib_model, run
from nndeploy_native.expressions import const, operand
from nndeploy_native.roof import INT8
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.integer_convolution import IntegerConvolution
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.tensors import Tensor
from oracle.cases import wide
from oracle.compare import difference
from random_networks import network_of, wrong_numbers

from nndeploy.passes import optimise

LEVEL = AMX.split()[0]
pytestmark = pytest.mark.skipif(LEVEL not in LEVELS_HERE, reason=f"this machine lacks {LEVEL}")

has_amx = {"amx_tile", "amx_int8"}.issubset(HOST.cpu_features)
every_amx = on_each([AMX_MODEL, AMX] if has_amx else [AMX_MODEL])
needs_amx = pytest.mark.skipif(not has_amx, reason="this machine lacks AMX")

SIZES = [
    (32, 64, 32), (12, 64, 32), (9, 128, 16), (25, 192, 48), (4, 68, 33), (31, 63, 17), (33, 65, 32), (12, 1000, 40),
    (3, 256, 32), (24, 20, 32), (48, 4, 64), (17, 96, 80), (50, 100, 300), (100, 144, 24), (1, 512, 64),
]  # fmt: skip
"""Rows, k and columns: whole tiles, what is left of them, even blocks, and rows that are packed."""

WINDOWS = [
    ((1, 9, 35, 64), 48, 3, (1, 1), 1, 1, "uint8"),  # read where they lie, the last strip on rows of the one before
    ((2, 7, 7, 64), 33, 3, (1, 1), 1, 1, "int8"),  # strips that are whole lines
    ((1, 12, 20, 16), 16, 3, (1, 1), 1, 1, "uint8"),  # blocks of 48
    ((1, 18, 21, 3), 40, 7, (2, 2), 3, 1, "uint8"),  # runs that are no groups of k
    ((1, 6, 19, 24), 320, 3, (1, 2), 1, 1, "int8"),  # packed
    ((1, 11, 9, 32), 32, 3, (1, 1), 2, 2, "uint8"),  # dilated
    ((1, 5, 3, 80), 48, 1, (2, 1), 0, 1, "uint8"),  # few pixels of a line
]
"""Images (N, H, W, C), columns, the window's size, strides, padding and dilation, and the type of the bytes."""

MISUSES = (
    "no configuration", "palette", "rows", "bytes", "reserved", "unconfigured tile", "other rows", "other columns",
    "other k", "one tile twice", "released",
)  # fmt: skip
SEEDS_OF_BYTES = (13, 57, 145)
"""Networks with convolutions of bytes that are large enough for tiles."""


def product(rows: int, inner: int, columns: int, element: str) -> tuple[tuple[bytes, bytes], Array, Array]:
    """Returns a plan, its input with numbers at both ends, and the exact sums."""
    numbers, limits = np.random.default_rng(rows * inner + columns), np.iinfo(element)
    x = numbers.integers(limits.min, limits.max, (rows, inner), element, endpoint=True)
    w = numbers.integers(-128, 127, (inner, columns), np.int8, endpoint=True)
    x[0], w[:, 0] = limits.max, -128
    step = IntegerProduct(Tensor("y", (rows, columns), element="int32"), Tensor("x", x.shape, element=element), w)
    return plan_of([step], list(step.inputs), [step.output]), x, (x.astype(np.int64) @ w.astype(np.int64))


@pytest.mark.parametrize("element", ["uint8", "int8"])
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
@every_amx
def test_sums_are_exact(level: str, rows: int, inner: int, columns: int, element: str) -> None:
    plan, x, sums = product(rows, inner, columns, element)
    for threads in (1, 2):
        np.testing.assert_array_equal(run_plan(level, plan, [x], threads=threads)[0], sums)


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
@every_amx
def test_windows_give_the_bytes_of_the_level(level: str, window: tuple[Any, ...], table: bool) -> None:
    """Bytes that an end makes while the next tile is multiplied, in two spellings: rounded, and looked up."""
    shape, columns, kernel, strides, pad, dilation, element = window
    numbers, limits = np.random.default_rng(columns), np.iinfo(element)
    x = numbers.integers(limits.min, limits.max, shape, element, endpoint=True)
    span = (kernel - 1) * dilation + 1
    sizes = tuple((size + 2 * pad - span) // stride + 1 for size, stride in zip(shape[1:3], strides, strict=True))
    step = IntegerConvolution(
        Tensor("y", (shape[0], *sizes, columns), element="uint8"), Tensor("x", shape, element=element),
        numbers.integers(-128, 127, (columns, shape[3], kernel, kernel), np.int8, endpoint=True),
        zero=np.array([7], element), factors=(numbers.random(columns) / 2000).astype(np.float32),
        bias=numbers.random(columns, np.float32) * 200, output_zero=5,
        table=("sub", const(250.0), operand(0)) if table else None,
        window=Window((kernel, kernel), strides, (pad, pad), (dilation, dilation)),
    )  # fmt: skip
    plan = plan_of([step], list(step.inputs), [step.output])
    (wanted,) = run_plan(LEVEL, plan, [x], plain_bytes=True)
    assert len(np.unique(wanted)) > 99
    for threads in (1, 2):
        np.testing.assert_array_equal(run_plan(level, plan, [x], threads=threads)[0], wanted)


@every_amx
def test_tiles_are_taken_where_they_are_wanted(level: str) -> None:
    plan, x, _ = product(*SIZES[0], "uint8")
    assert way_of(level, plan, x) == "amx"
    assert way_of(level, plan, x, plain_bytes=True) == "pairs"


@needs_amx
def test_small_products_are_left_to_vnni() -> None:
    for sizes, way in (((32, 64, 32), "vnni"), ((64, 256, 64), "amx"), ((3, 2048, 512), "vnni")):
        plan, x, _ = product(*sizes, "uint8")
        assert way_of(LEVEL, plan, x) == way


@pytest.fixture(scope="module")
def num_tiles_in_use(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], int]:
    """Returns a function that says whether the calling thread's registers of tiles hold anything."""
    folder = tmp_path_factory.mktemp("in_use")
    source, made = folder / "in_use.c", folder / "in_use.so"
    source.write_text("""int tiles_in_use(void) {
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
        return low >> 17 & 3;
    }""")
    subprocess.run([sys.executable, "-m", "ziglang", "cc", "-shared", str(source), "-o", str(made)], check=True)
    return ctypes.CDLL(str(made)).tiles_in_use


@needs_amx
def test_a_thread_gives_its_tiles_back(num_tiles_in_use: Callable[[], int]) -> None:
    plan, x, sums = product(64, 256, 64, "uint8")
    np.testing.assert_array_equal(run_plan(AMX, plan, [x])[0], sums)
    assert num_tiles_in_use() == 0


@needs_amx
def test_tiles_of_threads_that_take_turns_keep_apart() -> None:
    """More threads than processors, with tiles of other heights and blocks, are stopped within products."""
    cases = [product(rows, inner, 96, "uint8") for rows, inner in ((33, 2048), (64, 1536), (9, 2400), (50, 2000))]

    def right(case: tuple[tuple[bytes, bytes], Array, Array]) -> bool:
        plan, x, sums = case
        return all(np.array_equal(run_plan(LEVEL, plan, [x], threads=2)[0], sums) for _ in range(10))

    with ThreadPoolExecutor(4 * len(cases)) as pool:
        assert all(pool.map(right, cases * 4))


@needs_amx
def test_a_child_of_fork_multiplies_by_tiles() -> None:
    plan, x, sums = product(64, 256, 64, "uint8")
    assert np.array_equal(run_plan(LEVEL, plan, [x], threads=2)[0], sums)
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(run_plan(LEVEL, plan, [x], threads=2)[0], sums) else 1)
    assert os.waitpid(child, 0)[1] == 0


@every_amx
def test_the_most_that_tiles_do_is_measured(level: str) -> None:
    probe = library(level).nnd_probe
    probe.restype = ctypes.c_double
    assert probe(INT8, ctypes.c_int64(0), 2) > 0


@pytest.mark.parametrize("operator", ["ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"])
@every_amx
def test_operators_give_the_bits_of_the_level(level: str, operator: str) -> None:
    for number, case in enumerate(one for one in wide.cases() if one.operator == operator):
        model = ir.from_proto(onnx.shape_inference.infer_shapes(case.model, data_prop=True))
        optimise(model, {})
        artifact = built(model)
        found = run(artifact, case.inputs, level, threads=1 + number % 2)
        assert difference(case.wanted or {}, found, steps=case.steps) == "", case.name
        for name, array in run(artifact, case.inputs, LEVEL).items():
            np.testing.assert_array_equal(found[name], array, err_msg=case.name)


@every_amx
def test_an_lstm_of_bytes_gives_the_bits_of_the_level(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, hidden = 6, 70  # enough rows and k for tiles
    monkeypatch.setattr(lstm, "BATCH", batch)
    one = lstm.network("forward", hidden, np.int8, by_column=True, zeros=0, with_lengths=False, with_states=False)
    text = f"""g (float[{lstm.STEPS},{batch},{lstm.INPUTS}] x) => (float[{lstm.STEPS},1,{batch},{hidden}] y) {{
        y = com.microsoft.DynamicQuantizeLSTM<{one.kind}>(x, w, r, b, , , , , ws, wz, rs, rz) }}"""
    artifact = built(contrib_model(text, one.constants))
    found, wanted = (run(artifact, one.given, way)["y"] for way in (level, LEVEL))
    np.testing.assert_array_equal(found, wanted)


@every_amx
def test_random_networks_touch_their_own_memory_and_are_right(level: str) -> None:
    assert [wrong for seed in SEEDS_OF_BYTES for wrong in wrong_numbers(network_of(seed), level)] == []


@pytest.fixture(scope="module")
def misuse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns amx_misuse.c, built."""
    source, program = Path(__file__).with_name("amx_misuse.c"), tmp_path_factory.mktemp("misuse") / "misuse"
    subprocess.run([sys.executable, "-m", "ziglang", "cc", str(source), "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize("wrong", MISUSES)
def test_the_model_ends_where_a_processor_would(wrong: str, misuse: Path) -> None:
    """Or kernels that break a rule of the instructions would pass."""
    assert subprocess.run([misuse, "none"], check=False).returncode == 0
    done = subprocess.run([misuse, wrong], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("AMX: ")) == (-6, True)


def way_of(level: str, plan: tuple[bytes, bytes], x: Array, *, plain_bytes: bool = False) -> str:
    """Returns how the first step of a plan multiplies bytes."""
    return told_steps(level, plan, [x], plain_bytes=plain_bytes)[0].split(" by ")[1].split(",")[0]
