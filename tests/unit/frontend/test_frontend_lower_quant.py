# SPDX-License-Identifier: Apache-2.0
"""Quant and BipolarQuant as operators of ONNX give what their definition gives, and what is malformed is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from frontend_builders import model
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from nndeploy.errors import ModelError, PolicyError
from nndeploy.frontend.load import load_model
from nndeploy.frontend.lower_quant import LEAST_OPSET
from nndeploy.graph.operator_rules import QUANT_DOMAINS

Array = np.ndarray[Any, np.dtype[Any]]
ROUNDINGS = {
    "ROUND": np.round, "half_even": np.round, "CEIL": np.ceil, "FLOOR": np.floor,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)), "DOWN": np.trunc,
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + np.float32(0.5)),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - np.float32(0.5)),
}  # fmt: skip


class Quant(OpRun):
    """The definition, with the range by cases."""

    op_domain = QUANT_DOMAINS[0]

    def _run(
        self, x: Array, scale: Array, zero: Array, bits: Array, signed: int, narrow: int, rounding_mode: str
    ) -> tuple[Array]:
        level = x / scale + zero
        if bits == 1 and signed:
            level = np.where(level >= 0, np.float32(1), np.float32(-1))
        else:
            high = 2 ** (int(bits) - 1) - 1 if signed else 2 ** int(bits) - (2 if narrow else 1)
            low = (1 if narrow else 0) - 2 ** (int(bits) - 1) if signed else 0
            level = ROUNDINGS[rounding_mode](np.clip(level, np.float32(low), np.float32(high)))
        return (((level - zero) * scale).astype(np.float32),)


class BipolarQuant(OpRun):
    """The definition."""

    op_domain = QUANT_DOMAINS[0]

    def _run(self, x: Array, scale: Array) -> tuple[Array]:
        return (np.where(x >= 0, scale, -scale),)


def header(opset: int = 17, domain: str = QUANT_DOMAINS[0]) -> str:
    return f'<ir_version: 8, opset_import: ["" : {opset}, "{domain}" : 1]>\n'


def assert_as_defined(proto: onnx.ModelProto, x: Array) -> None:
    """Compares a model's outputs, as it is loaded, with those of the definition, bit by bit."""
    name = proto.graph.input[0].name
    wanted = ReferenceEvaluator(proto, new_ops=[Quant, BipolarQuant]).run(None, {name: x})
    original = load_model(proto.SerializeToString()).original
    assert not {one.domain for one in original.opset_import} & set(QUANT_DOMAINS)
    for found, expected in zip(ReferenceEvaluator(original).run(None, {name: x}), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("bits", [1, 2, 3, 8, 16])
@pytest.mark.parametrize("narrow", [0, 1])
@pytest.mark.parametrize("signed", [0, 1])
def test_quant_is_as_defined(rounding: str, bits: int, narrow: int, signed: int) -> None:
    attributes = f'signed = {signed}, narrow = {narrow}, rounding_mode = "{rounding}"'
    proto = model(
        f"""g (float[4,200] x) => (float[4,200] y, float[4,200] z)
        <float s = {{0.5}}, float[4,1] t = {{0.25, 0.3, 1, 3}}, float o = {{0}}, float[4,1] p = {{0, 1, -2, 0.5}},
        float b = {{{bits}}}> {{
        y = onnx.brevitas.Quant<{attributes}>(x, s, o, b) z = onnx.brevitas.Quant<{attributes}>(x, t, p, b) }}""",
        header(),
    )
    x = np.random.default_rng(bits).standard_normal((4, 200)).astype(np.float32) * 2 ** min(bits, 6)
    x[:, :100] = np.round(x[:, :100] * 8) / 8  # halves and whole numbers
    x[0, :5] = [np.inf, -np.inf, 0, -0.0, 1e30]
    assert_as_defined(proto, x)


def test_bipolar_quant_is_as_defined() -> None:
    body = "g (float[6] x) => (float[6] y) <float s = {0.75}> { y = onnx.brevitas.BipolarQuant(x, s) }"
    assert_as_defined(model(body, header()), np.array([0, -0.0, 1, -1, np.nan, np.inf], np.float32))


def test_in_bodies_too_and_names_in_use_are_left_alone() -> None:
    text = """g (float[3] x) => (float[3] y) <float s = {0.5}, float o = {0}, float b = {2}> {
        c = Constant<value = bool {1}>()
        y = If(c) <then_branch = t () => (float[3] "z") {
            "z/Div" = Neg(x)
            z = onnx.brevitas.Quant<signed = 1, narrow = 0, rounding_mode = "ROUND">("z/Div", s, o, b) },
            else_branch = e () => (float[3] v) { v = Identity(x) }> }"""
    assert_as_defined(model(text, header()), np.array([0.3, -7, 0.25], np.float32))


def test_of_both_domains() -> None:
    body = "g (float[2] x) => (float[2] y) <float s = {1}, float o = {0}, int32 b = {4}> { y = %s.Quant(x, s, o, b) }"
    for domain in QUANT_DOMAINS:
        nodes = load_model(model(body % domain, header(domain=domain)).SerializeToString()).original.graph.node
        assert [node.op_type for node in nodes if node.op_type != "Constant"] == ["Div", "Max", "Min", "Round", "Mul"]


def test_a_function_of_the_model_goes_first() -> None:
    text = """g (float[2] x) => (float[2] y) { y = onnx.brevitas.BipolarQuant(x, x) }
        <domain: "onnx.brevitas", opset_import: ["" : 17]>
        BipolarQuant (a, b) => (c) { c = Add(a, b) }"""
    nodes = load_model(model(text, header()).SerializeToString()).model.graph
    assert [node.op_type for node in nodes] == ["Add"]


@pytest.mark.parametrize(("node", "message"), [
    ("Quant(x, s)", "it has 4 inputs and one output, not 2 and 1"),
    ("BipolarQuant(x)", "it has 2 inputs and one output, not 1 and 1"),
    ("Quant(x, s, o, x)", "the number of bits is not one constant number"),
    ("Quant(x, s, o, many)", "the number of bits is not one constant number"),
    ("Quant(x, s, o, half)", "the number of bits is 2.5"), ("Quant(x, s, o, o)", "the number of bits is 0"),
    ('Quant<rounding_mode = "ODD">(x, s, o, b)', "the rounding mode 'ODD' is unknown"),
])  # fmt: skip
def test_what_is_malformed_is_refused(node: str, message: str) -> None:
    body = f"""g (float[2] x) => (float[2] y)
        <float s = {{1}}, float o = {{0}}, float b = {{4}}, float half = {{2.5}}, float[2] many = {{2, 3}}>
        {{ y = onnx.brevitas.{node} }}"""
    with pytest.raises(ModelError, match=message):
        load_model(model(body, header()).SerializeToString())


def test_an_old_operator_set_is_refused() -> None:
    body = "g (float[2] x) => (float[2] y) <float s = {1}> { y = onnx.brevitas.BipolarQuant(x, s) }"
    with pytest.raises(ModelError, match=f"opset {LEAST_OPSET} or newer"):
        load_model(model(body, header(opset=11)).SerializeToString())


def test_other_operators_of_the_domains_are_refused() -> None:
    with pytest.raises(PolicyError, match=r"onnx\.brevitas::Trunc"):
        load_model(model("g (float[2] x) => (float[2] y) { y = onnx.brevitas.Trunc(x) }", header()).SerializeToString())


def test_a_real_network_is_as_defined(models_folder: Path) -> None:
    proto = onnx.load(models_folder / "unsw_nb15_mlp_w2a2.onnx")
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert_as_defined(proto, np.where(rng.random((1, 600)) < 0.5, -1, 1).astype(np.float32))
