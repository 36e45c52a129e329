# SPDX-License-Identifier: Apache-2.0
"""Matrix products with a constant as convolutions: the same numbers, for Turing GPUs only."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from nndeploy_tensorrt.plugin import Plugin
from nndeploy_tensorrt.transforms.lower_quantised import LowerQuantised
from nndeploy_tensorrt.transforms.matmul_as_convolution import MatmulAsConvolution

from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import Target
from nndeploy.values.types import DimRange

onnx_reference = pytest.importorskip("onnx.reference")

Model = Callable[..., ir.Model]
Array = "np.ndarray[Any, np.dtype[np.float32]]"

CASES: dict[str, str] = {
    "matrix": "g (float[4,6] x) => (float[4,3] y) <float[6,3] w = {W}> { y = MatMul(x, w) }",
    "batch of matrices": "g (float[2,4,6] x) => (float[2,4,3] y) <float[6,3] w = {W}> { y = MatMul(x, w) }",
    "four axes": "g (float[2,2,4,6] x) => (float[2,2,4,3] y) <float[6,3] w = {W}> { y = MatMul(x, w) }",
    "one dynamic axis": "g (float[N,4,6] x) => (float[N,4,3] y) <float[6,3] w = {W}> { y = MatMul(x, w) }",
    "two dynamic axes": "g (float[N,M,6] x) => (float[N,M,3] y) <float[6,3] w = {W}> { y = MatMul(x, w) }",
    "gemm": "g (float[4,6] x) => (float[4,3] y) <float[6,3] w = {W}> { y = Gemm(x, w) }",
    "gemm, transposed": "g (float[4,6] x) => (float[4,3] y) <float[3,6] w = {W}> { y = Gemm<transB=1>(x, w) }",
    "gemm with everything": """
        g (float[4,6] x) => (float[4,3] y) <float[3,6] w = {W}, float[3] c = {1, -2, 3}>
        { y = Gemm<transB=1, alpha=0.5, beta=-2.0>(x, w, c) }""",
    "gemm with one number added": """
        g (float[4,6] x) => (float[4,3] y) <float[6,3] w = {W}, float c = {1.5}> { y = Gemm(x, w, c) }""",
    "matrix kept in 8 bits": """
        g (float[4,6] x) => (float[4,3] y) <int8[6,3] q = {Q}, float[3] s = {0.1, 0.2, 0.3}, int8[3] z = {0, 1, -2}>
        { w = DequantizeLinear<axis=-1>(q, s, z) y = MatMul(x, w) }""",
    "einsum": """
        g (float[2,4,6] x) => (float[2,4,3] y) <float[6,3] w = {W}> { y = Einsum<equation="bij, jk -> bik">(x, w) }""",
}  # fmt: skip

LEFT: dict[str, str] = {
    "both factors at run time": "g (float[4,6] x, float[6,3] w) => (float[4,3] y) { y = MatMul(x, w) }",
    "constant on the left": "g (float[6,3] x) => (float[3,3] y) <float[3,6] w = {W}> { y = MatMul(w, x) }",
    "vector": "g (float[6] x) => (float[3] y) <float[6,3] w = {W}> { y = MatMul(x, w) }",
    "batch of constants": "g (float[1,4,6] x) => (float[1,4,3] y) <float[1,6,3] w = {W}> { y = MatMul(x, w) }",
    "transposed input": "g (float[6,4] x) => (float[4,3] y) <float[6,3] w = {W}> { y = Gemm<transA=1>(x, w) }",
    "a number for each row": """
        g (float[4,6] x) => (float[4,3] y) <float[6,3] w = {W}, float[4,1] c = {1, 2, 3, 4}> { y = Gemm(x, w, c) }""",
    "other einsum": """
        g (float[2,6,4] x) => (float[2,3,4] y) <float[6,3] w = {W}> { y = Einsum<equation="bji,jk->bki">(x, w) }""",
    "einsum with a diagonal": """
        g (float[6,6] x) => (float[6,3] y) <float[6,3] w = {W}> { y = Einsum<equation="jj,jk->jk">(x, w) }""",
    "double": "g (double[4,6] x) => (double[4,3] y) <double[6,3] w = {W}> { y = MatMul(x, w) }",
}  # fmt: skip


def filled(text: str) -> str:
    numbers = np.random.default_rng(3).normal(0, 1, 18).astype(np.float32)
    text = text.replace("{Q}", "{" + ", ".join(str(7 * i - 60) for i in range(18)) + "}")
    return text.replace("{W}", "{" + ", ".join(f"{number:.6f}" for number in numbers) + "}")


def outputs(model: ir.Model, x: Array) -> Array:
    found: Array = onnx_reference.ReferenceEvaluator(ir.to_proto(model)).run(None, {"x": x})[0]
    return found


def sample(model: ir.Model) -> Array:
    shape = model.graph.inputs[0].shape
    assert shape is not None
    sizes = [dim if isinstance(dim, int) else 5 for dim in shape]
    return np.random.default_rng(4).normal(0, 1, sizes).astype(np.float32)


def replaced(model: ir.Model) -> int:
    return MatmulAsConvolution()(model, lambda _node: True)


@pytest.mark.parametrize("name", CASES)
def test_numbers_names_and_types_do_not_change(model: Model, name: str) -> None:
    original = model(filled(CASES[name]))
    changed = original.clone()
    assert replaced(changed) == 1
    assert "Conv" in {node.op_type for node in changed.graph}
    x = sample(original)
    np.testing.assert_allclose(outputs(changed, x), outputs(original, x), rtol=1e-5, atol=1e-5)
    before = [(value.name, value.type, str(value.shape)) for value in original.graph.outputs]
    assert [(value.name, value.type, str(value.shape)) for value in changed.graph.outputs] == before


@pytest.mark.parametrize("name", LEFT)
def test_products_of_another_form_are_left(model: Model, name: str) -> None:
    found = model(filled(LEFT[name]))
    before = ir.to_proto(found).SerializeToString(deterministic=True)
    assert replaced(found) == 0
    assert ir.to_proto(found).SerializeToString(deterministic=True) == before


def test_product_that_an_earlier_transform_made_is_touched(model: Model) -> None:
    found = model(
        """
        g (uint8[4,6] x) => (float[4,3] y)
        <float s = {0.1}, uint8 z = {9}, uint8[6,3] w = {WHOLE}>
        { q = QLinearMatMul(x, s, z, w, s, z, s, z) y = DequantizeLinear(q, s, z) }""".replace(
            "WHOLE", ", ".join("123456789" * 2)
        )
    )
    original = found.clone()
    names = {node.name for node in found.graph}
    LowerQuantised()(found, lambda node: node.name in names)
    assert "MatMul" in {node.op_type for node in found.graph}
    assert MatmulAsConvolution()(found, lambda node: node.name in names) == 1
    assert "MatMul" not in {node.op_type for node in found.graph}
    x = np.arange(24, dtype=np.uint8).reshape(4, 6) * 10
    np.testing.assert_allclose(outputs(found, x), outputs(original, x), atol=1e-6)


def test_old_operator_sets_are_left(model: Model) -> None:
    assert replaced(model(filled(CASES["matrix"]), opset=9)) == 0


def test_only_allowed_nodes_are_touched(model: Model) -> None:
    assert MatmulAsConvolution()(model(filled(CASES["matrix"])), lambda _node: False) == 0


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("name", ["matrix", "two dynamic axes", "gemm with everything"])
def test_turing_refuses_the_product_and_takes_the_convolution(
    model: Model, with_gpu: Callable[..., Target], name: str
) -> None:
    options = BuildOptions(ranges={"N": DimRange(1, 8, 4), "M": DimRange(1, 8, 4)})
    asked = model(filled(CASES[name]))
    (refused,) = Plugin().supports(asked, with_gpu("7.5"), options)
    assert "FP32 GEMM is not supported" in refused.reason
    assert all(answer.ok for answer in Plugin().supports(asked, with_gpu("8.9"), options))
    replaced(asked)
    assert [answer.reason for answer in Plugin().supports(asked, with_gpu("7.5"), options) if not answer.ok] == []


@pytest.mark.usefixtures("library")
def test_all_products_are_refused_in_one_go(
    model: Model, with_gpu: Callable[..., Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    from nndeploy_tensorrt import support

    asked: list[int] = []
    builder = support.refused_by_builder

    def counted(part: ir.Model, *more: Any) -> str:
        asked.append(len(part.graph))
        return builder(part, *more)

    monkeypatch.setattr(support, "refused_by_builder", counted)
    found = Plugin().supports(
        model("""
        g (float[4,6] x, float[6,6] w) => (float[4,6] y)
        { a = MatMul(x, w) b = Relu(a) c = MatMul(b, w) d = Relu(c) e = MatMul(d, w) y = Relu(e) }"""),
        with_gpu("7.5"),
        BuildOptions(),
    )
    assert [answer.ok for answer in found] == [False, True] * 3
    assert asked == [6, 1, 1, 1, 1, 1], "the whole, the two others like it, then the three that are left"
