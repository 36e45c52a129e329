# SPDX-License-Identifier: Apache-2.0
"""Linear models, what scales rows and support vectors of ai.onnx.ml, as ONNX Runtime computes them."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_models import Array, built, each_float_level, reals, run
from nndeploy_native.lowering.table import refusal_of
from onnx import TensorProto
from test_native_contrib import assert_close
from tree_models import row_model

from nndeploy.passes import optimise


def numbers(*shape: int, seed: int = 0) -> list[float]:
    return [float(one) for one in reals(*shape, seed=seed).reshape(-1)]


@each_float_level
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 5])
def test_linear_classifier(level: str, transform: str, classes: int) -> None:
    attributes = {
        "coefficients": numbers(classes, 13), "intercepts": numbers(classes, seed=1), "post_transform": transform,
        "classlabels_ints": list(range(3, 3 + classes)),
    }  # fmt: skip
    model = row_model("LinearClassifier", 13, {"label": None, "y": classes}, attributes)
    for rows in (1, 9):
        assert_close(model, {"x": reals(rows, 13, seed=2)}, level)


@each_float_level
def test_probit_of_shares(level: str) -> None:
    """The formula loses digits about a half in float32, so it is compared with float64."""
    attributes = {"coefficients": [1.0, 0, 0, 1.0], "intercepts": [0.0, 0.0], "classlabels_ints": [0, 1]}
    model = row_model("LinearClassifier", 2, {"label": None, "y": 2}, {**attributes, "post_transform": "PROBIT"})
    x = np.array([[0.0, 1.0], [0.25, 0.49999], [0.5001, 0.9], [1e-30, 0.999]], np.float32)
    found = run(built(model), {"x": x}, level)["y"]
    z = 2 * x.astype(np.float64) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log((1 - z) * (1 + z))
        v = 2 / (3.14159 * 0.147) + log / 2
        wanted = np.where(z < 0, -1, 1) * np.sqrt(2) * np.sqrt(np.sqrt(v * v - log / 0.147) - v)
    np.testing.assert_allclose(found, wanted, rtol=2e-5)


@each_float_level
@pytest.mark.parametrize("targets", [1, 4])
@pytest.mark.parametrize("has_intercepts", [False, True])
def test_linear_regressor(level: str, targets: int, has_intercepts: bool) -> None:
    given = {"intercepts": numbers(targets, seed=1)} if has_intercepts else {}
    attributes = {"coefficients": numbers(targets, 7), "targets": targets, **given}
    assert_close(row_model("LinearRegressor", 7, {"y": targets}, attributes), {"x": reals(5, 7, seed=2)}, level)


@each_float_level
@pytest.mark.parametrize("size", [1, 11])
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.INT64])
def test_scaler(level: str, size: int, element: int) -> None:
    attributes = {"offset": numbers(size), "scale": numbers(size, seed=1)}
    x = reals(6, 11, seed=2) if element == TensorProto.FLOAT else np.arange(66).reshape(6, 11)
    assert_close(row_model("Scaler", 11, {"y": 11}, attributes, element), {"x": x}, level)


@each_float_level
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer_leaves_rows_of_zeros(level: str, norm: str) -> None:
    x = reals(9, 19)
    x[4] = 0
    assert_close(row_model("Normalizer", 19, {"y": 19}, {"norm": norm}), {"x": x}, level)


@each_float_level
def test_binarizer(level: str) -> None:
    x = np.array([[0.25, 0.3, -0.0, -np.inf, np.inf]], np.float32)
    assert_close(row_model("Binarizer", 5, {"y": 5}, {"threshold": 0.25}), {"x": x}, level)


@each_float_level
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.INT64])
def test_label_encoder_of_whole_numbers(level: str, element: int) -> None:
    """Keys in any order and twice, labels that are none of them, the ends of the type."""
    keys, ends = [5, -3, 0, 9, 5], np.iinfo(np.int64)
    name, values = ("floats", numbers(5)) if element == TensorProto.FLOAT else ("int64s", [7, 2**40, 0, -1, 4])
    default = {"default_float": 0.5} if element == TensorProto.FLOAT else {}
    x = np.array([[5, -3, 0, 9], [1, -4, 10, ends.max], [ends.min, 8, 5, -2]], np.int64)
    attributes = {"keys_int64s": keys, f"values_{name}": values, **default}
    node = onnx.helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    borders = [onnx.helper.make_tensor_value_info(*one) for one in (("x", 7, ["n", 4]), ("y", element, ["n", 4]))]
    imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("ai.onnx.ml", 2)]
    graph = onnx.helper.make_graph([node], "g", borders[:1], borders[1:])
    model = ir.from_proto(onnx.helper.make_model(graph, opset_imports=imports, ir_version=8))
    assert_close(model, {"x": x}, level)


@each_float_level
@pytest.mark.parametrize("shape", [(7,), (4, 7), (2, 3, 7)])
def test_array_feature_extractor(level: str, shape: tuple[int, ...]) -> None:
    kept = (*(shape[:-1] or (1,)), 3)
    text = f"""<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 1]> g
        (float[{",".join(map(str, shape))}] x, int64[1,3] i) => (float[{",".join(map(str, kept))}] y)
        {{ y = ai.onnx.ml.ArrayFeatureExtractor(x, i) }}"""
    x, places = reals(*shape), np.array([[6, 0, 6]], np.int64)
    found = run(built(ir.from_proto(onnx.parser.parse_model(text))), {"x": x, "i": places}, level)["y"]
    np.testing.assert_array_equal(found, x[..., [6, 0, 6]].reshape(kept))


@each_float_level
@pytest.mark.parametrize("kernel", ["RBF", "LINEAR", "POLY", "SIGMOID"])
def test_svm_regressor(level: str, kernel: str) -> None:
    attributes = {
        "kernel_type": kernel, "kernel_params": [0.1, 0.5, 3.0], "support_vectors": numbers(23, 6),
        "coefficients": numbers(23, seed=1), "n_supports": 23, "rho": [0.3],
    }  # fmt: skip
    assert_close(row_model("SVMRegressor", 6, {"y": 1}, attributes), {"x": reals(10, 6, seed=2)}, level)


def test_support_vectors_far_from_zero_keep_their_digits() -> None:
    """Rows at 1,000 that differ by one: squares alone would leave no digit of their distances."""
    vectors, weights = 1000 + reals(9, 4), reals(9, seed=1)
    attributes = {
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "support_vectors": vectors.reshape(-1).tolist(),
        "coefficients": weights.tolist(), "n_supports": 9, "rho": [0.0],
    }  # fmt: skip
    x = 1000 + reals(5, 4, seed=2)
    distances = ((x[:, None].astype(np.float64) - vectors[None]) ** 2).sum(2)
    wanted = np.exp(-0.5 * distances) @ weights.astype(np.float64)
    found = run(built(row_model("SVMRegressor", 4, {"y": 1}, attributes)), {"x": x})["y"]
    np.testing.assert_allclose(found[:, 0], wanted, rtol=2e-4, atol=2e-5)


def test_sizes_behind_classical_operators_are_known() -> None:
    """The scores of a scaled classifier have as many rows as its input, whatever onnx infers of them."""
    text = """<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 1]> g (float[n,3] x) => (float[n,2] y, int64[n] l)
        { a = ai.onnx.ml.Scaler<offset=[0.0], scale=[2.0]>(x) l, s = ai.onnx.ml.LinearClassifier<coefficients=
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], intercepts=[0.5, 0.25], classlabels_ints=[0, 1]>(a)
        n = ai.onnx.ml.Normalizer<norm="L1">(s) y = Exp(n) }"""
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    optimise(model, {})
    assert all(refusal_of(node, model, {}) == "" for node in model.graph)
    assert_close(model, {"x": reals(4, 3)}, "x86-64-v2")


@pytest.mark.parametrize(
    ("operator", "outputs", "attributes", "why"),
    [
        ("LinearClassifier", {"l": None, "y": 2}, {"coefficients": [1.0, 2.0], "intercepts": [1.0]}, "strings"),
        (
            "LinearClassifier", {"l": None, "y": 2},
            {"coefficients": [1.0, 2.0], "intercepts": [1.0], "classlabels_ints": [0, 1]}, "1 intercepts for 2 labels",
        ),
        ("LinearRegressor", {"y": 1}, {"coefficients": [1.0], "targets": 1}, "rows of 2 for 1 coefficients"),
        ("LinearRegressor", {"y": 1}, {"coefficients": [1.0, 1.0], "post_transform": "PROBIT"}, "'PROBIT'"),
        ("Scaler", {"y": 2}, {"offset": [1.0, 2.0, 3.0], "scale": [1.0]}, "3 offsets"),
        ("Normalizer", {"y": 2}, {"norm": "L3"}, "'L3'"),
        ("SVMRegressor", {"y": 1}, {}, "without support vectors"),
        (
            "SVMRegressor", {"y": 1},
            {"support_vectors": [0.0, 0.0, 1e3, 1e3], "coefficients": [1.0, 1.0], "n_supports": 2, "rho": [0.0],
             "kernel_type": "RBF", "kernel_params": [1.0, 0.0, 0.0]}, "too far apart",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_says_why(
    operator: str, outputs: dict[str, int | None], attributes: dict[str, object], why: str
) -> None:
    model = row_model(operator, 2, outputs, attributes)
    assert why in refusal_of(next(iter(model.graph)), model, {})


def test_doubles_are_refused() -> None:
    array: Array = np.zeros(1)
    assert array.dtype == np.float64
    model = row_model("Scaler", 2, {"y": 2}, {"offset": [1.0], "scale": [1.0]}, TensorProto.DOUBLE)
    assert "no kernel reads double" in refusal_of(next(iter(model.graph)), model, {})
