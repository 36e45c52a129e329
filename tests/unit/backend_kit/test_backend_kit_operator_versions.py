# SPDX-License-Identifier: Apache-2.0
"""A model may say an older operator set exactly where its operators mean the same there."""

from itertools import pairwise

import numpy as np
import onnx
import onnx.defs
import onnx.parser
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator

from nndeploy.backend_kit.transforms.operator_versions import (
    GREW_ONLY,
    means_same,
    operator_newer_than,
    restamp,
    version_of,
)


def model_of(text: str, opset: int = 28) -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>{text}'))


@pytest.mark.parametrize(
    ("op_type", "version", "other", "same"),
    [
        ("Relu", 28, 14, True),  # one definition since 14
        ("Cast", 28, 25, True),  # only types were added
        ("OneHot", 28, 11, True),
        ("Range", 27, 26, True),  # types, and an attribute that only those know
        ("Relu", 28, 5, False),  # 6 dropped an attribute
        ("Softmax", 13, 12, False),  # flattening became one axis
        ("ReduceMean", 18, 17, False),  # axes became an input
        ("SwiGLU", 28, 26, False),  # new
        ("CastLike", 21, 18, True),  # attributes that may be left out were added
        ("Div", 21, 12, True),
        ("Div", 21, 6, False),  # 7 changed how shapes are broadcast
        ("NoSuchOperator", 28, 26, True),  # nobody's: no version of it is known to ONNX
    ],
)
def test_operator_means_the_same(op_type: str, version: int, other: int, same: bool) -> None:
    assert means_same("", op_type, version, other) is same
    assert means_same("", op_type, other, version) is same


def test_operator_that_is_too_new_is_named() -> None:
    model = model_of("g (float[2] x) => (float[2] y) { t = Relu(x) y = SwiGLU(t, x) }")
    assert operator_newer_than(model, {"": 26}) == "SwiGLU of opset 28"
    assert operator_newer_than(model, {"": 28}) == ""


def test_operator_inside_a_body_counts() -> None:
    model = model_of("""g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) { p = SwiGLU(x, x) },
                    else_branch = e () => (float[2] q) { q = Neg(x) }> }""")  # fmt: skip
    assert operator_newer_than(model, {"": 26}) == "SwiGLU of opset 28"


def test_older_model_is_never_too_new() -> None:
    model = model_of("g (float[2,2] x) => (float[2,2] y) { y = Softmax<axis=1>(x) }", opset=12)
    assert operator_newer_than(model, {"": 26}) == ""


def test_restamped_model_computes_the_same() -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { t = Cast<to=11>(x) u = Exp(t) y = Cast<to=1>(u) }"
    model = model_of(text)
    assert operator_newer_than(model, {"": 26}) == ""
    proto = ir.to_proto(model)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    before = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    restamp(proto, {"": 26}, 9)
    assert (proto.opset_import[0].version, proto.ir_version) == (26, 9)
    np.testing.assert_array_equal(ReferenceEvaluator(proto).run(None, {"x": x})[0], before)


def test_restamping_leaves_older_versions_and_other_domains_alone() -> None:
    text = '<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : 1]> g (float[2] x) => (float[2] y) { y = Neg(x) }'
    proto = onnx.parser.parse_model(text)
    restamp(proto, {"": 26}, 13)
    assert {o.domain: o.version for o in proto.opset_import} == {"": 13, "com.microsoft": 1}
    assert proto.ir_version == 8


def test_both_names_of_the_standard_domain_are_one() -> None:
    assert version_of({"ai.onnx": 21}, "") == version_of({"": 21}, "ai.onnx") == 21
    assert version_of({"": 21}, "com.microsoft") is None


def test_every_standard_operator_means_the_same_as_itself() -> None:
    newest = onnx.defs.onnx_opset_version()
    for schema in onnx.defs.get_all_schemas():
        if schema.domain == "" and not schema.deprecated:
            assert means_same("", schema.name, newest, newest)


@pytest.mark.parametrize("op_type", GREW_ONLY)
def test_operator_of_the_table_only_grew(op_type: str) -> None:
    history = [s for s in onnx.defs.get_all_schemas_with_history() if s.name == op_type and s.domain == ""]
    since = sorted((s for s in history if s.since_version >= GREW_ONLY[op_type]), key=lambda s: s.since_version)
    for older, newer in pairwise(since):
        assert [(v.name, v.option) for v in older.inputs] == [(v.name, v.option) for v in newer.inputs]
        assert [(v.name, v.option) for v in older.outputs] == [(v.name, v.option) for v in newer.outputs]
        for name, attribute in newer.attributes.items():
            if name in older.attributes:
                assert attribute.default_value == older.attributes[name].default_value
                assert attribute.required == older.attributes[name].required
            else:
                assert not attribute.required
        assert older.attributes.keys() <= newer.attributes.keys()
