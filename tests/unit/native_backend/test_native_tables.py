# SPDX-License-Identifier: Apache-2.0
"""Texts and maps beside plans: classifiers with names for labels, encoders of texts, n-grams, and what is refused."""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, Array, built, by_onnxruntime, each_float_level, kernels_of, opened, run
from nndeploy_native.lowering.courses import refusal_of_course
from nndeploy_native.plan import DOCUMENT_FILE
from nndeploy_native.support import supports
from nndeploy_reference.session import evaluator_of
from onnx import TensorProto, helper
from tree_models import Drawn, row_model, trees_of

from nndeploy.errors import BundleError, InputError
from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact, BuildOptions
from nndeploy.target.target import host_target

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"
TEXT, FLOAT, INT64 = TensorProto.STRING, TensorProto.FLOAT, TensorProto.INT64
NAMES = ["setosa", "äö", "", "d"]
ml = partial(helper.make_node, domain=ML)
node = helper.make_node
info = helper.make_tensor_value_info


def text(*values: str, shape: tuple[int, ...] = (-1,)) -> Array:
    return np.array(values, object).reshape(shape)


def table_model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: Mapping[str, Array] | None = None,
) -> ir.Model:
    """Returns a model as a compile has it before it asks a backend."""
    stored = [onnx.numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    imports = [helper.make_opsetid(*each) for each in (("", 19), (ML, 3), (MICROSOFT, 1))]
    loaded = load_model(helper.make_model(graph, opset_imports=imports, ir_version=8))
    optimise(loaded.model, {})
    return loaded.model


def maps_of(name: str, key: int = TEXT) -> onnx.ValueInfoProto:
    """Returns an output that is a sequence of maps."""
    score = helper.make_tensor_type_proto(FLOAT, [])
    return helper.make_value_info(name, helper.make_sequence_type_proto(helper.make_map_type_proto(key, score)))


def assert_same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if isinstance(value, list):
            assert [list(row) for row in found[name]] == [list(row) for row in value]
            rows = [[list(row.values()) for row in rows] for rows in (found[name], value)]
            np.testing.assert_allclose(*rows, rtol=1e-5, atol=1e-6)
        elif value.dtype == object:
            assert found[name].tolist() == value.tolist()
        else:
            assert found[name].dtype == value.dtype
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def classifiers() -> dict[str, tuple[str, int, dict[str, Any]]]:
    """Returns classifiers of three features by name: the operator, how many scores there are, and its attributes."""
    rng = np.random.default_rng(0)
    trees = trees_of(rng, Drawn(7, 3, 3, 4, (0, 1, 2, 3)), "class")
    linear = {"coefficients": rng.standard_normal(12).tolist(), "intercepts": rng.standard_normal(4).tolist()}
    found = {
        "trees": ("TreeEnsembleClassifier", 4, {"classlabels_strings": NAMES, **trees}),
        "linear": ("LinearClassifier", 4, {"classlabels_strings": NAMES, "post_transform": "SOFTMAX", **linear}),
    }
    for kernel, classes in (("RBF", 4), ("LINEAR", 2), ("POLY", 3), ("SIGMOID", 4)):
        counts, pairs = [5, 1, 3, 2][:classes], classes * (classes - 1) // 2
        machine = {
            "support_vectors": rng.standard_normal(3 * sum(counts)).tolist(), "vectors_per_class": counts,
            "coefficients": rng.standard_normal(sum(counts) * (classes - 1)).tolist(), "kernel_type": kernel,
            "kernel_params": [0.3, 0.5, 2.0], "rho": rng.standard_normal(pairs).tolist(),
            "classlabels_strings": NAMES[:classes],
        }  # fmt: skip
        found[f"machine {kernel} {classes}"] = ("SVMClassifier", max(2, pairs), machine)
    return found


@each_float_level
@pytest.mark.parametrize("name", classifiers())
def test_classifiers_with_names_are_those_of_onnxruntime(level: str, name: str) -> None:
    operator, scores, attributes = classifiers()[name]
    model = row_model(operator, 3, {"label": None, "scores": scores}, attributes)
    x = np.random.default_rng(1).standard_normal((37, 3)).astype(np.float32)
    assert_same(run(built(model), {"x": x}, level, threads=2), by_onnxruntime(model, {"x": x}))


def test_names_of_classes_are_taken_where_they_leave_the_model() -> None:
    """Movement and comparisons between are of numbers: one step of Python for each output."""
    model = table_model(
        [
            node("ArgMax", ["x"], ["i"], axis=1), ml("ArrayFeatureExtractor", ["names", "i"], ["picked"]),
            node("Reshape", ["picked", "shape"], ["label"]), node("Equal", ["label", "other"], ["is"]),
            node("Identity", ["label"], ["y"]), ml("ZipMap", ["x"], ["z"], classlabels_strings=NAMES[:3]),
        ],
        [info("x", FLOAT, ["n", 3])], [info("y", TEXT, ["n"]), info("is", TensorProto.BOOL, ["n"]), maps_of("z")],
        {"names": text("b", "a", "b"), "shape": np.array([-1]), "other": text("b")},
    )  # fmt: skip
    artifact = built(model)
    parts = json.loads(artifact.files[DOCUMENT_FILE])["course"]["parts"]
    assert [part if isinstance(part, int) else part["step"] for part in parts] == ["ZipMap", 0, "Gather"]
    x = np.array([[0, 1, 0], [3, 1, 2], [0, 1, 2]], np.float32)
    found = run(artifact, {"x": x})
    assert found["y"].tolist() == ["a", "b", "b"]
    assert found["is"].tolist() == [False, True, True]
    assert [list(row.items()) for row in found["z"]] == [[*zip(NAMES[:3], row, strict=True)] for row in x.tolist()]


def columns_model(zeros: int = 1) -> ir.Model:
    """Returns columns of numbers and of texts, and numbers as categories, side by side."""
    return table_model(
        [
            ml("Imputer", ["x"], ["i"], imputed_value_floats=[9.0, 8.0], replaced_value_float=float("nan")),
            ml("OneHotEncoder", ["town"], ["t"], cats_strings=["York", "Ely"], zeros=zeros),
            ml("OneHotEncoder", ["size"], ["s"], cats_int64s=[40, 38], zeros=zeros),
            node("Reshape", ["t", "shape"], ["u"]), node("Reshape", ["s", "shape"], ["v"]),
            node("Concat", ["i", "u", "v"], ["y"], axis=1),
        ],
        [info("x", FLOAT, ["n", 2]), info("town", TEXT, ["n", 1]), info("size", INT64, ["n", 1])],
        [info("y", FLOAT, ["n", 6])], {"shape": np.array([-1, 2])},
    )  # fmt: skip


@each_float_level
def test_columns_of_texts_and_numbers(level: str) -> None:
    given = {
        "x": np.array([[np.nan, 1], [2, np.nan]], np.float32),
        "town": text("Ely", "Hull", shape=(2, 1)),
        "size": np.array([[40], [41]]),
    }
    artifact = built(columns_model())
    assert "tf_idf" not in kernels_of(artifact)
    found = run(artifact, given, level)["y"]
    assert found.tolist() == [[9, 1, 0, 1, 1, 0], [2, 8, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("town", "size", "said"),
    [("Hull", 38, "element 1 of 'town' is 'Hull', which is no category"), ("York", 41, "element 1 of 'size' is 41")],
)
def test_what_is_no_category_ends_the_call_where_none_may_come(town: str, size: int, said: str) -> None:
    session = opened(built(columns_model(zeros=0)))
    given = {
        "x": np.zeros((2, 2), np.float32),
        "town": text("Ely", town, shape=(2, 1)),
        "size": np.array([[40], [size]]),
    }
    with pytest.raises(InputError, match=said):
        session.run(given)


WORDS = ["ab", "c", "x1", "é", "ÄB", "the"]
PIECES = [*WORDS, "Ab", "C", "THE", "", " ", "-", "\n", "日本", "\x00", "a_b", "9"]
POOL = {"ngram_counts": [0, 6, 10], "ngram_indexes": [1, 0, 2, 5, 4, 3, 7, 6, 8], "min_gram_length": 1}
GRAMS = [*WORDS, "ab", "c", "c", "c", "c", "the", "ab"]


def text_model(expression: str, least: int, case: str, **more: Any) -> ir.Model:
    """Returns how often n-grams stand in texts (n)."""
    attributes: dict[str, Any] = {"mode": "TF", "max_gram_length": 3, "max_skip_count": 1, **POOL, **more}
    return table_model(
        [
            node("StringNormalizer", ["x"], ["l"], case_change_action=case),
            node("Tokenizer", ["l"], ["t"], domain=MICROSOFT, mark=0, mincharnum=least, pad_value="#",
                 tokenexp=expression),
            node("Flatten", ["t"], ["f"]), node("TfIdfVectorizer", ["f"], ["y"], pool_strings=GRAMS, **attributes),
        ],
        [info("x", TEXT, ["n"])], [info("y", FLOAT, ["n", 9])],
    )  # fmt: skip


def texts_drawn(seed: int) -> Array:
    """Returns texts of words, of what is nearly one, and of nothing."""
    rng = np.random.default_rng(seed)
    return text(*["".join(rng.choice(PIECES, int(rng.integers(0, 30)))) for _ in range(11)], "", "ab c ab")


@pytest.mark.parametrize(("mode", "weights"), [("TF", None), ("IDF", 9), ("TFIDF", 9), ("IDF", None)])
@pytest.mark.parametrize(
    ("expression", "least"),
    [("[a-zA-Z0-9_]+", 1), (r"\w+", 2), (r"\b\w\w+\b", 1), ("[^ -]+", 1), ("[^-\n]+", 1), (".", 1), (r"[a-c]\w+", 1)],
)
def test_n_grams_of_texts(expression: str, least: int, mode: str, weights: int | None) -> None:
    """The oracle is ONNX Runtime; letters that a locale may change stay out of it."""
    more = {} if weights is None else {"weights": [0.5 * i + 0.25 for i in range(weights)]}
    model = text_model(expression, least, "NONE", mode=mode, **more)
    artifact = built(model)
    assert ("text_grams" in kernels_of(artifact)) == (expression != r"[a-c]\w+")
    for seed in range(3):
        x = texts_drawn(seed)
        wanted = by_onnxruntime(model, {"x": x})
        for level in FLOAT_LEVELS:
            assert_same(run(artifact, {"x": x}, level, threads=2), wanted)
    for level, x in itertools.product(FLOAT_LEVELS, (text(""), text("", "-"))):
        assert not run(artifact, {"x": x}, level)["y"].any()


@pytest.mark.parametrize(("expression", "mark"), [("[a-zA-Z0-9_]+", 0), (r"\w+", 1), (".", 0), ("[^ ]+", 1)])
def test_the_evaluator_cuts_texts_as_onnxruntime_does(expression: str, mark: int) -> None:
    """Where no engine here has the locale that a model asks for, it alone says what is right."""
    tokenizer = node("Tokenizer", ["x"], ["y"], domain=MICROSOFT, mark=mark, mincharnum=1, pad_value="#",
                     tokenexp=expression)  # fmt: skip
    model = table_model([tokenizer], [info("x", TEXT, ["n"])], [info("y", TEXT, ["n", "m"])])
    x = texts_drawn(0)
    (found,) = evaluator_of(ir.to_proto(model)).run(["y"], {"x": x})
    assert found.tolist() == by_onnxruntime(model, {"x": x})["y"].tolist()


@each_float_level
@pytest.mark.parametrize("case", ["LOWER", "UPPER"])
def test_case_is_that_of_unicode_in_any_locale(level: str, case: str) -> None:
    artifact, plain = built(text_model("[^ ]+", 1, case)), built(text_model("[^ ]+", 1, "NONE"))
    x = text("AB the äb É", "Ab tHe", "STRASSE straße İ", "")
    change = str.lower if case == "LOWER" else str.upper
    assert "text_grams" in kernels_of(artifact)
    assert_same(run(artifact, {"x": x}, level), run(plain, {"x": text(*map(change, x))}, level))


@each_float_level
def test_ends_of_texts_that_lie_elsewhere_are_held_to_what_there_is(level: str) -> None:
    """What a kernel is given may be anything: it reads nothing else, and counts what is there."""
    artifact = built(text_model("[^ ]+", 1, "LOWER"))
    document = json.loads(artifact.files[DOCUMENT_FILE])
    document["course"]["parts"] = document["course"]["parts"][1:]
    names = [border[0] for border in document["plans"][0]["inputs"]]
    document["inputs"] = document["plans"][0]["inputs"]
    lone = replace(artifact, files={**artifact.files, DOCUMENT_FILE: json.dumps(document).encode()})
    data = np.frombuffer(b"ab c the", np.uint8)
    for ends in ([2, 4, 8], [8, 3, 99], [-5, 2**62, -(2**63)]):
        given = dict(zip(names, (data, np.array(ends)), strict=True))
        found = run(lone, given, level)["y"]
        inside = [min(max(0, end), 8) for end in (0, *ends)]
        parts = [data[first:last].tobytes().decode() for first, last in pairwise(inside)]
        assert_same({"y": found}, run(artifact, {"x": text(*parts)}, level))


def maps_model(operator: str, key: int, value: int, outputs: int, **attributes: Any) -> ir.Model:
    given = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    return table_model(
        [ml(operator, ["x"], ["y"], **attributes)], [helper.make_value_info("x", given)], [info("y", outputs, [1, 3])]
    )


def test_maps_become_rows() -> None:
    session = opened(built(maps_model("DictVectorizer", TEXT, FLOAT, FLOAT, string_vocabulary=["a", "b", "c"])))
    assert session.run({"x": {"c": 2.5, "z": 1.0, "a": -1.0}})["y"].tolist() == [[-1, 0, 2.5]]
    session = opened(built(maps_model("CastMap", INT64, TEXT, FLOAT, map_form="SPARSE", max_map=3)))
    assert session.run({"x": {2: "0.5", 0: "-3"}})["y"].tolist() == [[-3, 0, 0.5]]
    with pytest.raises(InputError, match=r"outside of 0\.\.2"):
        session.run({"x": {3: "1"}})
    with pytest.raises(InputError, match="half"):
        session.run({"x": {1: "half"}})


@pytest.mark.parametrize(
    ("nodes", "output", "reason"),
    [
        ([node("StringConcat", ["x", "x"], ["y"])], info("y", TEXT, ["n"]), "no kernel for StringConcat of texts"),
        ([node("Cast", ["x"], ["y"], to=FLOAT)], info("y", FLOAT, ["n"]), "a Cast between texts and numbers"),
        ([ml("LabelEncoder", ["x"], ["y"], keys_strings=["a", "a"], values_int64s=[1, 2])], info("y", INT64, ["n"]),
         "a key stands twice"),
        ([node("Tokenizer", ["x"], ["y"], domain=MICROSOFT, mark=0, mincharnum=1, pad_value="", tokenexp="(a+)+b")],
         info("y", TEXT, ["n", "m"]), r"tokens by the expression '\(a\+\)\+b'"),
        ([node("Tokenizer", ["x"], ["y"], domain=MICROSOFT, mark=1, mincharnum=1, pad_value="", tokenexp=".")],
         info("y", TEXT, ["n", "m"]), "marks"),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_with_a_reason(
    nodes: list[onnx.NodeProto], output: onnx.ValueInfoProto, reason: str
) -> None:
    graph = helper.make_graph(nodes, "g", [info("x", TEXT, ["n"])], [output])
    imports = [helper.make_opsetid(*each) for each in (("", 20), (ML, 3), (MICROSOFT, 1))]
    model = ir.from_proto(helper.make_model(graph, opset_imports=imports, ir_version=10))
    (answer,) = supports(model, host_target(), BuildOptions())
    assert not answer.ok
    assert re.search(reason, answer.reason), answer.reason
    assert refusal_of_course(next(iter(model.graph)), model, {}) == answer.reason


def changed(artifact: Artifact, operator: str, **attributes: object) -> Artifact:
    """Returns an artifact that says something else of a step of Python."""
    document = json.loads(artifact.files[DOCUMENT_FILE])
    (step,) = [part for part in document["course"]["parts"] if isinstance(part, dict) and part["step"] == operator]
    step["with"] |= attributes
    step["step"] = attributes.get("step", operator)
    step["with"].pop("step", None)
    return replace(artifact, files={**artifact.files, DOCUMENT_FILE: json.dumps(document).encode()})


@pytest.mark.parametrize(
    "attributes",
    [
        {"keys": ["York"]}, {"keys": ["York", 5]}, {"keys": ["York", "York"]}, {"keys": "YE"}, {"values": [1.5, 2.0]},
        {"values": [True, False]}, {"element": "float64"}, {"element": "string"}, {"default": [1, 2]}, {"more": 1},
        {"default": ["x"]}, {"step": "ZipMap"}, {"step": "eval"}, {"values": [2**70, 0]},
    ],
)  # fmt: skip
def test_steps_that_say_something_else_are_refused_when_a_bundle_is_opened(attributes: dict[str, object]) -> None:
    artifact = built(text_to_numbers())
    opened(artifact).close()
    with pytest.raises(BundleError):
        opened(changed(artifact, "LabelEncoder", **attributes))


def text_to_numbers() -> ir.Model:
    encoder = ml("LabelEncoder", ["x"], ["y"], keys_strings=["York", "Ely"], values_int64s=[4, 5], default_int64=-7)
    return table_model([encoder], [info("x", TEXT, ["n"])], [info("y", INT64, ["n"])])


def test_readers_before_do_not_know_such_an_artifact() -> None:
    artifact = built(text_to_numbers())
    assert artifact.metadata["format"] == 10
    assert opened(artifact).run({"x": text("Ely", "Hull")})["y"].tolist() == [5, -7]
