# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 and 8 bits in blocks, in every spelling: right against float64, and as small as the model has them."""

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_models import (
    FLOAT_LEVELS,
    Array,
    built,
    by_onnxruntime,
    contrib_model,
    each_float_level,
    kernels_of,
    model_of,
    reals,
    run,
)
from nndeploy_native.lowering.table import refusal_of
from nndeploy_native.plan import WEIGHTS_FILE


def nbits_model(rows: int, attributes: Mapping[str, int], constants: Mapping[str, Array], names: str) -> ir.Model:
    """Returns a model of one MatMulNBits; `names` are its inputs."""
    k, n = attributes["K"], attributes["N"]
    said = ", ".join(f"{name}={value}" for name, value in attributes.items())
    text = f"g (float[{rows},{k}] x) => (float[{rows},{n}] y) {{ y = com.microsoft.MatMulNBits<{said}>({names}) }}"
    return contrib_model(text, constants)


def unpacked(array: Array, bits: int, count: int) -> Array:
    """Returns the numbers of rows of bytes, the low ones first, as many of each row as `count`."""
    pairs = np.stack([array & 15, array >> 4], axis=-1) if bits == 4 else array
    return pairs.reshape(array.shape[0], -1)[:, :count].astype(np.int64)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", ["", "bytes", "floats"])
@pytest.mark.parametrize("block", [16, 32, 128, 256])
def test_matmul_nbits(bits: int, zeros: str, block: int) -> None:
    """One row and more, rows that end within a block, a bias."""
    rng = np.random.default_rng(block)
    for rows, k, n in ((1, block, 16), (1, 3 * block, 37), (5, 2 * block + 10, 19), (21, 4 * block, 33)):
        blocks = -(-k // block)
        constants = {
            "q": rng.integers(0, 256, (n, blocks, block * bits // 8)).astype(np.uint8),
            "s": (rng.random((n, blocks)) / 10).astype(np.float32),
        }
        wide = unpacked(constants["q"].reshape(n, -1), bits, k).astype(np.float64)
        taken: Array = np.full((n, blocks), 2.0 ** (bits - 1))
        if zeros == "bytes":
            constants["z"] = rng.integers(0, 256, (n, -(-blocks * bits // 8))).astype(np.uint8)
            taken = unpacked(constants["z"], bits, blocks)
        elif zeros == "floats":
            constants["z"] = (rng.random((n, blocks)) * 2**bits).astype(np.float32)
            taken = constants["z"].astype(np.float64)
        if rows == 5:
            constants["b"] = rng.standard_normal(n).astype(np.float32)
        names = (
            "x, q, s" + (", z" if zeros else "") + (", , b" if rows == 5 and zeros else ", , , b" if rows == 5 else "")
        )
        attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
        artifact = built(nbits_model(rows, attributes, constants, names))
        x = rng.standard_normal((rows, k)).astype(np.float32)
        weights = (wide - np.repeat(taken, block, 1)[:, :k]) * np.repeat(constants["s"].astype(np.float64), block, 1)[
            :, :k
        ]
        wanted = x.astype(np.float64) @ weights.T + constants.get("b", np.zeros(1))
        for level in FLOAT_LEVELS:
            found = run(artifact, {"x": x}, level, threads=2)["y"]
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))
        assert kernels_of(artifact) == ["bits_connected"]


@each_float_level
@pytest.mark.parametrize("rows", [1, 40])
def test_bytes_of_activations_are_as_near_to_the_truth_as_onnxruntime_is(level: str, rows: int) -> None:
    """Where the model says accuracy level 4; of 8 bits they stay floats."""
    rng = np.random.default_rng(1)
    x, scales = reals(rows, 150), (rng.random((40, 5)) / 10).astype(np.float32)
    for bits in (4, 8):
        numbers = rng.integers(0, 256, (40, 5, 4 * bits)).astype(np.uint8)
        attributes = {"K": 150, "N": 40, "bits": bits, "block_size": 32, "accuracy_level": 4}
        model = nbits_model(rows, attributes, {"q": numbers, "s": scales}, "x, q, s")
        wide = unpacked(numbers.reshape(40, -1), bits, 150) - 2.0 ** (bits - 1)
        truth = x.astype(np.float64) @ (wide * np.repeat(scales.astype(np.float64), 32, 1)[:, :150]).T
        theirs = by_onnxruntime(model, {"x": x})["y"]
        ours, size = run(built(model), {"x": x}, level)["y"], np.abs(truth).max()
        assert np.abs(ours - truth).max() <= np.abs(theirs - truth).max() * 1.01 + 1e-6 * size
        assert bits == 4 or np.abs(ours - truth).max() <= 1e-5 * size


FORMS = (
    ("w = DequantizeLinear<axis=0, block_size={block}>(q, s{z}) y = MatMul(x, w)", False, True),
    ("t = DequantizeLinear<axis=1, block_size={block}>(q, s{z}) w = Transpose<perm=[1,0]>(t) y = MatMul(x, w)", True,
     True),
    ("w = DequantizeLinear<axis=1, block_size={block}>(q, s{z}) y = Gemm<transB=1, alpha=0.5>(x, w, b)", True, True),
    ("w = DequantizeLinear<axis=0, block_size={block}>(q, s{z}) y = Gemm(x, w, b)", False, True),
    ("w = DequantizeLinear<axis=1>(q, s{z}) y = MatMul(x, w)", False, False),
    ("w = DequantizeLinear<axis=0>(q, s{z}) y = Gemm<transB=1>(x, w)", True, False),
    ("w = DequantizeLinear(q, s{z}) m = MatMul(x, w) y = Add(m, b)", False, None),
)  # fmt: skip
"""Texts; whether the constant is (columns, inner); whether scales are of blocks, columns, or of all (None)."""


@pytest.mark.parametrize("element", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize(("text", "is_turned", "has_blocks"), FORMS)
@pytest.mark.parametrize("has_zeros", [False, True])
def test_dequantised_constants(
    element: str, text: str, is_turned: bool, has_blocks: bool | None, has_zeros: bool
) -> None:
    rng, dtype = np.random.default_rng(1), getattr(ml_dtypes, element, np.dtype(element))
    limits, (inner, columns, block) = ml_dtypes.iinfo(dtype), (96, 27, 24)
    of_scales = (inner // block, columns) if has_blocks else (columns,) if has_blocks is False else ()
    numbers = rng.integers(int(limits.min), int(limits.max) + 1, (inner, columns))
    scales = ((rng.random(of_scales) + 0.1) / 50).astype(np.float32)
    zeros = (
        rng.integers(int(limits.min), int(limits.max) + 1, of_scales) if has_zeros else np.zeros(of_scales, np.int64)
    )
    factors, shifts = scales.astype(np.float64), zeros
    if has_blocks:
        factors, shifts = (np.repeat(one, block, 0) for one in (factors, shifts))
    wanted = (numbers - shifts) * factors
    stored = [one.T if is_turned and one.ndim == 2 else one for one in (numbers, scales, zeros)]
    constants = {"q": np.ascontiguousarray(stored[0]).astype(dtype), "s": np.ascontiguousarray(stored[1])}
    if has_zeros:
        constants["z"] = np.ascontiguousarray(stored[2]).astype(dtype)
    if "b)" in text:
        constants["b"] = reals(columns)
    for rows in (1, 13):
        nodes = text.format(block=block, z=", z" if has_zeros else "")
        artifact = built(
            model_of(f"g (float[{rows},{inner}] x) => (float[{rows},{columns}] y) {{ {nodes} }}", constants)
        )
        x = reals(rows, inner, seed=2)
        sums = x.astype(np.float64) @ wanted * (0.5 if "alpha" in text else 1) + constants.get("b", np.zeros(1))
        for level in FLOAT_LEVELS:
            found = run(artifact, {"x": x}, level)["y"]
            np.testing.assert_allclose(found, sums, rtol=1e-5, atol=1e-5 * float(np.abs(sums).max()))
        assert kernels_of(artifact) == ["bits_connected"]


def test_weights_stand_in_the_plan_as_the_model_has_them() -> None:
    """A quarter of the numbers' bytes is what scales of blocks of 32 take; nothing is there twice."""
    rng = np.random.default_rng(2)
    numbers = rng.integers(0, 16, (256, 96)).astype(ml_dtypes.uint4)
    scales = rng.random((8, 96)).astype(np.float32)
    text = """g (float[1,256] x) => (float[1,96] y) {
        w = DequantizeLinear<axis=0, block_size=32>(q, s) y = MatMul(x, w) }"""
    model = model_of(text, {"q": numbers, "s": scales})
    stored = built(model).files[WEIGHTS_FILE]
    raw = onnx.numpy_helper.from_array(numbers).raw_data
    assert len(raw) == 256 * 96 // 2
    assert bytes(raw) in stored
    assert scales.tobytes() in stored
    assert len(stored) == len(raw) + scales.nbytes


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        ("w = DequantizeLinear<axis=0>(q, s) y = MatMul(x, w)", {"s": (64,)}),  # a scale for each row
        ("w = DequantizeLinear<axis=1, block_size=8>(q, s) y = MatMul(x, w)", {"s": (64, 2)}),  # blocks along columns
        ("w = DequantizeLinear<axis=0, block_size=4>(q, s) y = MatMul(x, w)", {"s": (16, 16)}),  # short blocks
    ],
)
def test_other_forms_are_floats(text: str, constants: dict[str, tuple[int, ...]]) -> None:
    numbers = np.arange(64 * 16).reshape(64, 16).astype(ml_dtypes.int4)
    given = {"q": numbers, **{name: np.abs(reals(*shape)) for name, shape in constants.items()}}
    artifact = built(model_of(f"g (float[3,64] x) => (float[3,16] y) {{ {text} }}", given))
    scales = given["s"]
    axis = 0 if scales.ndim == 1 or scales.shape[0] < 64 else 1
    whole = np.repeat(scales, 64 // scales.shape[0] if axis == 0 else 8, axis).reshape(64, -1)
    wanted = reals(3, 64).astype(np.float64) @ (numbers.astype(np.float64) * whole)
    np.testing.assert_allclose(run(artifact, {"x": reals(3, 64)}, FLOAT_LEVELS[-1])["y"], wanted, rtol=1e-4, atol=1e-4)
    assert kernels_of(artifact) == ["fully_connected"]


def test_what_is_refused_says_why() -> None:
    def good() -> dict[str, Array]:
        return {"q": np.zeros((8, 2, 16), np.uint8), "s": np.ones((8, 2), np.float32), "z": np.zeros((8, 1), np.uint8),
                "g": np.zeros(64, np.int32), "b": np.zeros(8, np.float32)}  # fmt: skip

    usual = {"K": 64, "N": 8, "bits": 4, "block_size": 32}
    cases = [
        (usual, {}, "x, q, s, z, g", "g_idx"),
        ({**usual, "bits": 2}, {}, "x, q, s", "2 bits"),
        ({**usual, "block_size": 48}, {}, "x, q, s", "blocks of 48"),
        ({**usual, "K": 65}, {}, "x, q, s", "constant bytes for all blocks"),
        (usual, {"s": np.ones((8, 1), np.float32)}, "x, q, s", "8 scales for 2 blocks of 8 columns"),
        (usual, {"z": np.zeros((8, 2), np.uint8)}, "x, q, s, z", "zero points"),
        (usual, {"b": np.zeros(7, np.float32)}, "x, q, s, , , b", "a bias of 7 numbers for 8 columns"),
        (usual, {}, "x, q, x", "a scale that is no float32 constant"),
    ]
    for attributes, changed, names, reason in cases:
        model = nbits_model(2, attributes, {**good(), **changed}, names)
        assert reason in refusal_of(model.graph[0], model, {})


@each_float_level
def test_rows_are_picked_from_a_table_of_float16_as_it_is(level: str) -> None:
    rng = np.random.default_rng(3)
    table = rng.standard_normal((60, 37)).astype(np.float16)
    model = model_of(
        "g (int64[n,2] i) => (float[n,2,37] y, float16[n,2,37] z) { z = Gather(table, i) y = Cast<to=1>(z) }",
        {"table": table},
    )
    artifact = built(model)
    assert len(artifact.files[WEIGHTS_FILE]) < 1.1 * table.nbytes
    places = np.array([[0, 59], [-1, 7], [7, -60]])
    found = run(artifact, {"i": places}, level, threads=2)
    np.testing.assert_array_equal(found["y"], table[places].astype(np.float32))
    np.testing.assert_array_equal(found["z"], table[places])
