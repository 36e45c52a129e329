# SPDX-License-Identifier: Apache-2.0
"""Bytes by the tiles of AMX, whose instructions a model in C stands in for (tests/unit/kernels/amx_model.h).

They are held against the oracle and against the same plans on the level without tiles. No test here runs on a processor
that has AMX.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import test_native_quantised_lstm as lstm
from kernel_library import AMX, LEVELS_HERE, Options, library, opened, plan_of, run_plan
from native_models import Array, built, contrib_model, run
from nndeploy_native.roof import INT8
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.tensors import Tensor
from oracle.cases import wide
from oracle.compare import difference
from random_networks import network_of, wrong_numbers

from nndeploy.passes import optimise

LEVEL = AMX.split()[0]
pytestmark = pytest.mark.skipif(LEVEL not in LEVELS_HERE, reason=f"this machine lacks {LEVEL}")

SIZES = [
    (12, 64, 32), (9, 128, 16), (25, 192, 48), (4, 68, 33), (31, 63, 17), (13, 65, 32), (12, 1000, 40), (3, 256, 32),
    (24, 20, 32), (48, 4, 64),
]  # fmt: skip
"""Rows, k and columns: whole tiles, what is left of them, and what is left to VNNI."""

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
def test_sums_are_exact(rows: int, inner: int, columns: int, element: str) -> None:
    plan, x, sums = product(rows, inner, columns, element)
    for threads in (1, 2):
        np.testing.assert_array_equal(run_plan(AMX, plan, [x], threads=threads)[0], sums)


def test_tiles_are_taken_where_they_are_wanted() -> None:
    plan, x, _ = product(*SIZES[0], "uint8")
    assert way_of(plan, x) == "amx"
    assert way_of(plan, x, plain_bytes=True) == "pairs"


def test_the_most_that_tiles_do_is_measured() -> None:
    probe = library(AMX).nnd_probe
    probe.restype = ctypes.c_double
    assert probe(INT8, ctypes.c_int64(0), 2) > 0


@pytest.mark.parametrize("operator", ["ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"])
def test_operators_give_the_bits_of_the_level(operator: str) -> None:
    for number, case in enumerate(one for one in wide.cases() if one.operator == operator):
        model = ir.from_proto(onnx.shape_inference.infer_shapes(case.model, data_prop=True))
        optimise(model, {})
        artifact = built(model)
        found = run(artifact, case.inputs, AMX, threads=1 + number % 2)
        assert difference(case.wanted or {}, found, steps=case.steps) == "", case.name
        for name, array in run(artifact, case.inputs, LEVEL).items():
            np.testing.assert_array_equal(found[name], array, err_msg=case.name)


def test_an_lstm_of_bytes_gives_the_bits_of_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    batch, hidden = 6, 70  # enough rows and k for tiles
    monkeypatch.setattr(lstm, "BATCH", batch)
    one = lstm.network("forward", hidden, np.int8, by_column=True, zeros=0, with_lengths=False, with_states=False)
    text = f"""g (float[{lstm.STEPS},{batch},{lstm.INPUTS}] x) => (float[{lstm.STEPS},1,{batch},{hidden}] y) {{
        y = com.microsoft.DynamicQuantizeLSTM<{one.kind}>(x, w, r, b, , , , , ws, wz, rs, rz) }}"""
    artifact = built(contrib_model(text, one.constants))
    found, wanted = (run(artifact, one.given, level)["y"] for level in (AMX, LEVEL))
    np.testing.assert_array_equal(found, wanted)


def test_random_networks_touch_their_own_memory_and_are_right() -> None:
    assert [wrong for seed in SEEDS_OF_BYTES for wrong in wrong_numbers(network_of(seed), AMX)] == []


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


def way_of(plan: tuple[bytes, bytes], x: Array, *, plain_bytes: bool = False) -> str:
    """Returns how the first step of a plan multiplies bytes."""
    words, weights = plan
    kept, text = ctypes.create_string_buffer(weights, len(weights) + 64), ctypes.create_string_buffer(200)
    lib, at = library(AMX), -(-ctypes.addressof(kept) // 64) * 64
    ctypes.memmove(at, weights, len(weights))
    model, table = opened(lib, words, at, len(weights), Options(0, 0, 1, 0, plain_bytes), [x])
    lib.nnd_table_describe(ctypes.c_void_p(table), ctypes.c_int64(0), text, ctypes.c_int64(len(text)))
    lib.nnd_table_free(table)
    lib.nnd_model_close(model)
    return text.value.decode().split(" by ")[1].split(",")[0]
