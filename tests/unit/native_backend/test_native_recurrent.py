# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and RNN in all forms against ONNX Runtime, the cases of ONNX's own suite, and what is refused."""

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from kernel_library import every_level
from native_models import Array, built, dynamic, each_float_level, model_of, reals, run
from nndeploy_native.lowering.table import refusal_of
from onnx_node_cases import node_cases

from nndeploy.values.types import DimRange

CASES = node_cases("test_(lstm|gru|rnn|simple)_", "gru", "lstm", "rnn")
GATES, ACTIVATIONS = {"LSTM": 4, "GRU": 3, "RNN": 1}, {"LSTM": 3, "GRU": 2, "RNN": 1}


def case_of_suite(name: str) -> tuple[ir.Model, dict[str, Array], list[Array]]:
    """Returns a model of the suite whose inputs are constants but for x, with its inputs and outputs."""
    case = CASES[name]
    proto, ((inputs, outputs),) = onnx.ModelProto.FromString(case.model.SerializeToString()), case.data_sets
    x, *others = proto.graph.input
    for value, array in zip(others, inputs[1:], strict=True):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    del proto.graph.input[1:]
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto)), {x.name: inputs[0]}, outputs


@each_float_level
@pytest.mark.parametrize("name", CASES)
def test_case_of_onnx_suite(name: str, level: str) -> None:
    model, inputs, outputs = case_of_suite(name)
    found = run(built(model), inputs, level)
    names = [value.name or "" for value in model.graph.outputs]
    for value, wanted in zip(names, outputs, strict=True):
        np.testing.assert_allclose(found[value], wanted, rtol=1e-3, atol=1e-7)


@dataclass(frozen=True)
class Layer:
    """A model of one layer; `given` are what its inputs hold, those of `constants` initializers."""

    operator: str
    steps: int = 5
    batch: int = 3
    width: int = 6
    hidden: int = 17
    direction: str = "forward"
    extras: str = "b"
    lengths: Sequence[int] | None = None
    attributes: str = ""
    outputs: str = "yhc"
    symbols: tuple[str, str] | None = None
    is_batch_first: bool = False
    inputs: str = field(default="x")
    """What is no constant: of x, h, c, l."""

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @cached_property
    def given(self) -> dict[str, Array]:
        gates, hidden, directions = GATES[self.operator], self.hidden, self.directions
        ends = (self.batch, directions) if self.is_batch_first else (directions, self.batch)
        values = {
            "x": reals(*((self.batch, self.steps) if self.is_batch_first else (self.steps, self.batch)), self.width),
            "w": reals(directions, gates * hidden, self.width, seed=1) / 3,
            "r": reals(directions, gates * hidden, hidden, seed=2) / 4,
            "b": reals(directions, 2 * gates * hidden, seed=3) / 2,
            "h": reals(*ends, hidden, seed=4),
            "c": reals(*ends, hidden, seed=5),
            "p": reals(directions, 3 * hidden, seed=6) / 2,
            "l": np.array(self.lengths if self.lengths is not None else (), np.int32),
        }
        return {name: values[name] for name in self.names if name}

    @property
    def names(self) -> list[str]:
        """Returns the node's operands, those that are left out empty."""
        last = "hcp" if self.operator == "LSTM" else "h"
        length = "l" if self.lengths is not None else ""
        return [
            "x",
            "w",
            "r",
            "b" if "b" in self.extras else "",
            length,
            *(c if c in self.extras else "" for c in last),
        ]

    @property
    def text(self) -> str:
        steps, batch = self.symbols or (self.steps, self.batch)
        kinds = {"x": f"float[{batch},{steps},6] x" if self.is_batch_first else f"float[{steps},{batch},6] x"}
        state = f"{batch},{self.directions}" if self.is_batch_first else f"{self.directions},{batch}"
        for name in "hc":
            kinds[name] = f"float[{state},{self.hidden}] {name}"
        kinds["l"] = f"int32[{batch}] l"
        whole = f"{batch},{steps},{self.directions}" if self.is_batch_first else f"{steps},{self.directions},{batch}"
        made = {"y": f"float[{whole},{self.hidden}] y"} | {
            f"y{name}": f"float[{state},{self.hidden}] y{name}" for name in "hc"
        }
        named = ["y" if "y" in self.outputs else "", *(f"y{n}" if n in self.outputs else "" for n in "hc")]
        named = named[: 3 if self.operator == "LSTM" else 2]
        while not named[-1]:
            named.pop()
        more = f", {self.attributes}" if self.attributes else ""
        more += ", layout=1" if self.is_batch_first else ""
        return f"""g ({", ".join(kinds[name] for name in self.inputs if name in self.given)}) =>
            ({", ".join(made[name] for name in named if name)}) {{ {", ".join(named)} =
            {self.operator}<hidden_size={self.hidden}, direction="{self.direction}"{more}>
            ({", ".join(self.names)}) }}"""

    @property
    def constants(self) -> dict[str, Array]:
        return {name: array for name, array in self.given.items() if name not in self.inputs}

    @property
    def fed(self) -> dict[str, Array]:
        return {name: self.given[name] for name in self.inputs if name in self.given}

    def check(self, level: str, threads: int = 1, ranges: dict[str, DimRange] | None = None) -> None:
        """Compares with ONNX Runtime, which knows no layout of batch first: it gets the other one."""
        model = dynamic(self.text, ranges, self.constants) if ranges else model_of(self.text, self.constants)
        found = run(built(model, ranges), self.fed, level, threads=threads)
        wanted = self.wanted()
        assert set(found) <= set(wanted)
        for name, array in found.items():
            np.testing.assert_allclose(array, wanted[name], rtol=2e-5, atol=2e-5, err_msg=f"{self}: {name}")

    def wanted(self) -> dict[str, Array]:
        plain = Layer(**{**{f: getattr(self, f) for f in self.__dataclass_fields__}, "is_batch_first": False,
                         "outputs": "yhc", "symbols": None})  # fmt: skip
        values = dict(self.given)
        if self.is_batch_first:
            values |= {name: values[name].swapaxes(0, 1) for name in "xhc" if name in values}
        model = model_of(plain.text, {name: np.ascontiguousarray(values[name]) for name in self.constants})
        session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
        fed = {name: np.ascontiguousarray(values[name]) for name in self.fed}
        names = [one.name for one in session.get_outputs()]
        found = dict(zip(names, session.run(None, fed), strict=True))
        if self.is_batch_first:
            found = {name: array.transpose((2, 0, 1, 3) if name == "y" else (1, 0, 2)) for name, array in found.items()}
        return found


OPERATORS = [("LSTM", ""), ("GRU", ""), ("GRU", "linear_before_reset=1"), ("RNN", "")]
DIRECTIONS = ("forward", "reverse", "bidirectional")


@every_level
@pytest.mark.parametrize(("operator", "attributes"), OPERATORS)
def test_sizes_and_directions(level: str, operator: str, attributes: str) -> None:
    """Hidden units in whole vectors and not, more sequences than meet the weights at once, with and without states."""
    forms = itertools.cycle([("", "y"), ("b", "yhc"), ("bhc", "h"), ("hc", "yh"), ("bh", "yhc")])
    for number, (hidden, batch) in enumerate(
        itertools.product((1, 3, 16, 17, 33), (1, 2, 3, 4, 7))  # and so each direction with each form
    ):
        extras, outputs = next(forms)
        layer = Layer(operator, 1 + number % 4, batch, 6, hidden, DIRECTIONS[number % 3], extras, None, attributes,
                      outputs, inputs="xh" if number % 2 else "x")  # fmt: skip
        layer.check(level, 1 + number % 2)


@each_float_level
@pytest.mark.parametrize(("operator", "attributes"), OPERATORS)
@pytest.mark.parametrize("lengths", [(5, 3, 1), (0, 5, 2), (5, 5, 5)])
def test_sequences_of_other_lengths(level: str, operator: str, attributes: str, lengths: tuple[int, ...]) -> None:
    for direction in DIRECTIONS:
        for inputs in ("x", "xl"):
            Layer(operator, lengths=lengths, direction=direction, extras="bhc", attributes=attributes,
                  inputs=inputs).check(level, 2)  # fmt: skip


@each_float_level
@pytest.mark.parametrize("threads", [1, 2])
def test_lengths_beyond_the_steps_are_all_of_them(level: str, threads: int) -> None:
    """What a caller says is wrong stays inside the arrays."""
    layer = Layer("GRU", lengths=(5, 5, 5), inputs="xl")
    artifact = built(model_of(layer.text, layer.constants))
    wanted = run(artifact, layer.fed, level, threads=threads)
    found = run(artifact, {**layer.fed, "l": np.array([2**31 - 1, 6, 5], np.int32)}, level, threads=threads)
    for name, array in found.items():
        np.testing.assert_array_equal(array, wanted[name])
    found = run(artifact, {**layer.fed, "l": np.array([-(2**31), -1, 0], np.int32)}, level, threads=threads)
    assert not any(array.any() for array in found.values())


@each_float_level
@pytest.mark.parametrize(("operator", "attributes"), OPERATORS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_batch_first(level: str, operator: str, attributes: str, direction: str) -> None:
    for inputs, lengths in (("x", None), ("xhc", None), ("xl", (2, 5, 4))):
        Layer(operator, direction=direction, extras="bhc", attributes=attributes, lengths=lengths, inputs=inputs,
              is_batch_first=True).check(level)  # fmt: skip


@each_float_level
@pytest.mark.parametrize(("operator", "attributes"), OPERATORS)
@pytest.mark.parametrize("is_batch_first", [False, True])
def test_any_number_of_steps_and_sequences(level: str, operator: str, attributes: str, is_batch_first: bool) -> None:
    ranges = {"t": DimRange(1, 9, 3), "n": DimRange(1, 9, 2)}
    for steps, batch in ((1, 1), (9, 2), (4, 9)):
        Layer(operator, steps, batch, direction="bidirectional", extras="bhc", attributes=attributes, inputs="xhc",
              symbols=("t", "n"), is_batch_first=is_batch_first).check(level, 2, ranges)  # fmt: skip


@each_float_level
@pytest.mark.parametrize(
    ("extras", "attributes"),
    [
        ("bhcp", ""),
        ("p", ""),
        ("bhc", "input_forget=1"),
        ("bhc", "clip=0.3"),
        ("bhcp", "clip=0.5, input_forget=1"),
    ],
)
def test_forms_of_lstm(level: str, extras: str, attributes: str) -> None:
    for direction in DIRECTIONS:
        Layer("LSTM", direction=direction, extras=extras, attributes=attributes).check(level)


FUNCTIONS = {
    "Relu": 0, "Sigmoid": 0, "Softplus": 0, "Softsign": 0, "Tanh": 0, "LeakyRelu": 1, "ThresholdedRelu": 1, "Elu": 1,
    "Affine": 2, "ScaledTanh": 2, "HardSigmoid": 2,
}  # fmt: skip
"""How many numbers each activation has."""


@each_float_level
@pytest.mark.parametrize(("operator", "attributes"), OPERATORS)
@pytest.mark.parametrize("clip", ["", ", clip=0.4"])
def test_activations(level: str, operator: str, attributes: str, clip: str) -> None:
    """Each function in each place, both directions with functions of their own."""
    count = 2 * ACTIVATIONS[operator]
    functions = itertools.cycle(FUNCTIONS)
    for _ in range(len(FUNCTIONS) if count % len(FUNCTIONS) else 1):
        names = [next(functions) for _ in range(count)]
        alphas = [0.1 * (number + 3) for number, name in enumerate(names) if FUNCTIONS[name]]
        betas = [0.1 * (number + 2) for number, name in enumerate(names) if FUNCTIONS[name] == 2]
        text = f"activations=[{','.join(map(repr, names))}]".replace("'", '"') + clip
        for name, numbers in (("alpha", alphas), ("beta", betas)):
            text += f", activation_{name}=[{','.join(f'{one:.1f}' for one in numbers)}]" if numbers else ""
        text += f", {attributes}" if attributes else ""
        Layer(operator, 2, 2, 6, 5, "bidirectional", "bhc", None, text).check(level)


WEIGHTS = {"w": reals(1, 12, 5), "r": reals(1, 12, 3, seed=1), "b": reals(1, 24, seed=2)}
NODE = (
    "g (float[4,2,5] x{inputs}) => (float[4,1,2,3] y) <int32[2] whole = {{4,4}}, int64[2] less = {{4,3}}> {{ {node} }}"
)


@pytest.mark.parametrize(
    ("inputs", "node", "why"),
    [
        ("", 'y = LSTM<hidden_size=3, activations=["Cos","Tanh","Tanh"]>(x, w, r)', "'cos', which ONNX does not list"),
        ("", 'y = LSTM<hidden_size=3, activations=["Tanh","Tanh"]>(x, w, r)', "2 activations instead of 3"),
        ("", 'y = LSTM<hidden_size=3, activations=["Affine","Tanh","Tanh"]>(x, w, r)', "'affine' without its numbers"),
        ("", 'y = LSTM<hidden_size=3, direction="up">(x, w, r)', "the direction 'up'"),
        ("", "y = LSTM<hidden_size=3>(x, w, r, b, less)", "lengths of sequences of int64"),
        ("", "y = LSTM<hidden_size=3>(x, w, r, r)", "a bias that does not fit"),
        ("", "y = LSTM<hidden_size=3>(x, w, r, b, , , , b)", "peepholes of shape"),
        (", float[1,12,3] v", "y = LSTM<hidden_size=3>(x, w, v)", "weights that is no float32 constant"),
        (", float[1,2,4] h", "y = LSTM<hidden_size=3>(x, w, r, b, , h)", "a first state of shape"),
        ("", "y = LSTM<hidden_size=3>(x, w, w)", "weights that do not fit together"),
        ("", "y = GRU<hidden_size=3>(x, w, r)", "weights that do not fit together"),
    ],
)
def test_what_is_refused_and_why(inputs: str, node: str, why: str) -> None:
    model = model_of(NODE.format(inputs=inputs, node=node), WEIGHTS)
    assert why in refusal_of(model.graph[-1], model, {})


def test_lengths_of_whole_sequences_change_nothing() -> None:
    x, results = reals(4, 2, 5), []
    for lengths in ("", "whole"):
        text = NODE.format(inputs="", node=f"y = LSTM<hidden_size=3>(x, w, r, b, {lengths})")
        results.append(run(built(model_of(text, WEIGHTS)), {"x": x})["y"])
    np.testing.assert_array_equal(*results)
