# SPDX-License-Identifier: Apache-2.0
"""Random graphs out of the nodes of all cases: operators of ONNX of any opset, types and sizes, edge values among them.

    draw(seed) -> `Drawn`: a model, its inputs, and what is right

A node of a case is taken where it means the same in the graph's opset. Its inputs are values that the graph has, cut to
size where need be, or new inputs of the graph; it stays where the oracle gives it outputs. Some nodes then go into a
branch of an If, the body of a Loop, or a function.

How far an engine may be from the oracle follows from the graph: results of all nodes are moved by the last digits of
their type, and what comes of that at the outputs is allowed. Integers that move so are not judged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from oracle.cases import all_cases
from oracle.cases.case import IR_VERSION, Case, edges
from oracle.compare import difference
from oracle.engines import FailedError, RefusedError, outputs_of
from oracle.evaluator import evaluate, evaluate_node, type_of
from oracle.registry import InvalidError, UnspecifiedError, is_float, schema_of

OPSETS = (1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 26, 28)
ML_OPSETS = (1, 2, 3, 4, 5)
MOST_ELEMENTS = 4000
BY_VALUE = ("ConstantOfShape", "Range", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
"""Operators whose inputs say how much they make: they keep those of their cases."""
NUM_NOISY = 5


@dataclass(frozen=True)
class Drawn:
    """A random model with inputs, its right outputs, and outputs that are as right after other rounding."""

    seed: int
    model: ModelProto
    inputs: Mapping[str, Any]
    wanted: Mapping[str, Any]
    noisy: Sequence[Mapping[str, Any]]
    has_empty: bool
    """Whether some value has no elements."""

    def difference(self, got: Mapping[str, Any]) -> str:
        """Returns in one line how outputs differ, "" where they do not; what rounding decides is passed over."""
        for name, want in self.wanted.items():
            others = [noisy[name] for noisy in self.noisy]
            if name not in got or not isinstance(want, np.ndarray):
                return f"{name}: absent"
            if any(_is_elsewhere(want, other) for other in others) or (not want.size and got[name].shape == want.shape):
                continue
            if found := difference({name: want}, got, steps=_steps(want, others)):
                return found
        return ""


def _is_elsewhere(want: Any, other: Any) -> bool:
    """Returns whether rounding decided more than digits: sizes, integers, what is finite."""
    if want.shape != other.shape:
        return True
    if not is_float(want.dtype):
        return not bool((want == other).all())
    w, o = want.astype(np.float64), other.astype(np.float64)
    return not bool((np.isfinite(w) == np.isfinite(o)).all() and (np.isnan(w) == np.isnan(o)).all())


def _steps(want: Any, others: Sequence[Any]) -> float:
    """Returns how many times the usual tolerance an output gets: ten times what noise made of it."""
    if not is_float(want.dtype) or not want.size:
        return 1.0
    w = want.astype(np.float64)
    size = max(1.0, float(np.max(np.abs(w), initial=0, where=np.isfinite(w))))
    with np.errstate(invalid="ignore"):
        moved = max(float(np.max(np.nan_to_num(np.abs(o.astype(np.float64) - w)), initial=0)) for o in others)
    return max(1.0, 10 * moved / (size * _digit(want.dtype) * 64))


def _digit(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


@dataclass
class _Graph:
    """A graph that grows: values by name, nodes in order."""

    rng: np.random.Generator
    opsets: Mapping[str, int]
    has_edges: bool
    values: dict[str, Any] = field(default_factory=dict)
    nodes: list[NodeProto] = field(default_factory=list)
    held: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    functions: list[Any] = field(default_factory=list)

    def name(self) -> str:
        return f"v{len(self.values) + len(self.held) + len(self.nodes)}"

    def hold(self, value: Any) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = value
        return name

    def feed(self, value: Any) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values[name] = value
        return name

    def value(self, name: str) -> Any:
        return None if not name else self.held[name] if name in self.held else self.values[name]

    def add(self, node: NodeProto) -> bool:
        """Adds a node where the oracle gives it outputs of fair size."""
        try:
            outputs = evaluate_node(node, self.opsets, [self.value(name) for name in node.input])
        except (InvalidError, UnspecifiedError, ArithmeticError, LookupError, ValueError):
            return False  # what was drawn makes no sense to the operator
        if not all(isinstance(v, np.ndarray) and v.size <= MOST_ELEMENTS for v in outputs[: len(node.output)]):
            return False
        self.nodes.append(node)
        self.values |= {name: v for name, v in zip(node.output, outputs, strict=False) if name}
        return True


def draw(seed: int, *, has_edges: bool = True) -> Drawn:
    """Returns the random graph of a seed; without `has_edges` its inputs are ordinary numbers and sizes."""
    for attempt in range(50):
        rng = np.random.default_rng([seed, attempt])
        opsets = {"": int(rng.choice(OPSETS)), "ai.onnx.ml": int(rng.choice(ML_OPSETS))}
        graph = _Graph(rng, opsets, has_edges)
        for _ in range(int(rng.integers(4, 20))):
            _add_template(graph, _template(rng, opsets))
        if len(graph.nodes) < 2:
            continue
        _wrap(graph)
        model = _model(graph)
        try:
            wanted = evaluate(model, graph.inputs)
            noisy = [evaluate(model, graph.inputs, _noise(rng)) for _ in range(NUM_NOISY)]
        except (InvalidError, UnspecifiedError):
            continue
        for info in model.graph.output:
            info.type.CopyFrom(type_of(wanted[info.name]))
        has_empty = any(not value.size for value in graph.values.values())
        return Drawn(seed, model, graph.inputs, wanted, noisy, has_empty)
    raise AssertionError(f"no graph of seed {seed}")


def _noise(rng: np.random.Generator) -> Any:
    snaps = bool(rng.integers(2))

    def moved(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            return value
        if snaps:  # what is left where equal numbers were subtracted
            size = np.max(np.abs(value.astype(np.float64)), initial=0, where=np.isfinite(value.astype(np.float64)))
            return np.where(np.abs(value.astype(np.float64)) < 16 * _digit(value.dtype) * size, 0, value).astype(
                value.dtype
            )
        factor = 1 + 4 * _digit(value.dtype) * rng.uniform(-1, 1, value.shape)
        return np.asarray(value.astype(np.float64) * factor).astype(value.dtype)

    return moved


@cache
def _templates(opset: int, ml_opset: int) -> dict[str, list[Case]]:
    """Returns cases of one node on tensors that mean the same at these opsets, by operator."""
    opsets = {"": opset, "ai.onnx.ml": ml_opset}
    found: dict[str, list[Case]] = {}
    for case in all_cases().values():
        (node, *more) = case.proto.graph.node
        own = {entry.domain: entry.version for entry in case.proto.opset_import}
        now, then = (schema_of(node.domain, node.op_type, o.get(node.domain, 1)) for o in (opsets, own))
        is_plain = not more and all(isinstance(value, np.ndarray) for value in case.inputs.values())
        is_same = now is not None and then is not None and now.since_version == then.since_version
        has_graph = any(a.HasField("g") for a in node.attribute)
        if is_plain and is_same and not now.deprecated and not has_graph:
            found.setdefault(case.operator, []).append(case)
    return found


def _template(rng: np.random.Generator, opsets: Mapping[str, int]) -> Case:
    by_operator = _templates(opsets[""], opsets["ai.onnx.ml"])
    cases = by_operator[str(rng.choice(list(by_operator)))]
    return cases[int(rng.integers(len(cases)))]


def _add_template(graph: _Graph, case: Case) -> None:
    """Adds the node of a case, on values of the graph where they fit, else on its own as new inputs."""
    old = case.proto.graph.node[0]
    held = {tensor.name: numpy_helper.to_array(tensor) for tensor in case.proto.graph.initializer}
    fed = _resized(graph, dict(case.inputs)) if graph.has_edges and graph.rng.random() < 0.2 else dict(case.inputs)
    before = len(graph.nodes), dict(graph.values), dict(graph.inputs), dict(graph.held)
    node = NodeProto()
    node.CopyFrom(old)
    schema = schema_of(old.domain, old.op_type, graph.opsets[old.domain])
    names = []
    for i, name in enumerate(old.input):
        if not name:
            names.append("")
        elif name in held:
            names.append(graph.hold(held[name]))
        else:
            kind = schema.inputs[min(i, len(schema.inputs) - 1)].type_str
            is_data = kind == schema.inputs[0].type_str and old.op_type not in BY_VALUE
            names.append(_linked(graph, fed[name]) if is_data else graph.feed(fed[name]))
    node.input[:] = names
    node.output[:] = [f"n{len(graph.nodes)}_{i}" if name else "" for i, name in enumerate(old.output)]
    node.name = f"{old.op_type}_{len(graph.nodes)}"
    if not graph.add(node):
        count, graph.values, graph.inputs, graph.held = before
        del graph.nodes[count:]


def _linked(graph: _Graph, like: Any) -> str:
    """Returns a value of the graph in the type and sizes of an array, cut from another where none has them."""
    if graph.rng.random() < 0.75:
        fitting = [n for n, v in graph.values.items() if v.dtype == like.dtype and n not in graph.inputs]
        graph.rng.shuffle(fitting)
        for name in fitting:
            if graph.values[name].shape == like.shape:
                return name
        for name in fitting:
            if graph.opsets[""] >= 10 and graph.values[name].size >= like.size > 0:
                return _cut(graph, name, like)
    return graph.feed(_with_edges(graph, like))


def _cut(graph: _Graph, name: str, like: Any) -> str:
    """Adds nodes that make the first elements of a value into a tensor of other sizes."""
    steps: list[tuple[str, list[Any]]] = [
        ("Reshape", [np.array([-1])]),
        ("Slice", [np.array([0]), np.array([like.size])]),
        ("Reshape", [np.array(like.shape, np.int64)]),
    ]
    for op, constants in steps:
        output = f"n{len(graph.nodes)}_0"
        graph.add(helper.make_node(op, [name, *map(graph.hold, constants)], [output], f"{op}_{len(graph.nodes)}"))
        name = output
    return name


def _with_edges(graph: _Graph, array: Any) -> Any:
    if not graph.has_edges or graph.rng.random() > 0.25 or array.dtype == object or not array.size:
        return array
    try:
        special = edges(array.dtype, largest=False)
    except ValueError:  # types without limits
        return array
    found = array.copy()
    places = graph.rng.random(array.shape) < 0.3
    found[places] = graph.rng.choice(special, array.shape)[places]
    return found


def _resized(graph: _Graph, fed: dict[str, Any]) -> dict[str, Any]:
    """Returns inputs whose first axis has another size, where it is that of the first of them."""
    first = next(iter(fed.values()), None)
    if first is None or first.ndim == 0 or first.dtype == object:
        return fed
    size = int(graph.rng.choice([0, 1, 3, 7]))
    return {
        name: np.resize(v, (size, *v.shape[1:])) if v.ndim and v.shape[0] == first.shape[0] and v.size else v
        for name, v in fed.items()
    }


def _wrap(graph: _Graph) -> None:
    """Puts some nodes into a branch, a loop or a function."""
    kind = graph.rng.choice(["", "", "If", "Loop", "function"])
    if not kind or (kind == "Loop" and graph.opsets[""] < 11):
        return
    begin = int(graph.rng.integers(len(graph.nodes)))
    end = int(graph.rng.integers(begin, len(graph.nodes))) + 1
    inside = graph.nodes[begin:end]
    made = [name for node in inside for name in node.output if name]
    kept = [name for name in made if name not in {n for node in inside for n in node.input}] or made[-1:]
    later = {n for node in graph.nodes[end:] for n in node.input}
    kept += [name for name in made if name in later and name not in kept]
    new = {"If": _branch, "Loop": _body, "function": _function}[kind](graph, inside, kept)
    graph.nodes[begin:end] = new


def _graph_of(graph: _Graph, nodes: Sequence[NodeProto], kept: Sequence[str], tag: str) -> GraphProto:
    """Returns nodes as a graph of its own whose values are named apart."""
    made = {name for node in nodes for name in node.output}
    copies = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [f"{tag}{n}" if n in made and n else n for n in node.input]
        copy.output[:] = [f"{tag}{n}" if n else n for n in node.output]
        copies.append(copy)
    ends = [helper.make_value_info(f"{tag}{name}", type_of(graph.values[name])) for name in kept]
    return helper.make_graph(copies, f"{tag}graph", [], ends)


def _branch(graph: _Graph, nodes: Sequence[NodeProto], kept: list[str]) -> list[NodeProto]:
    condition = graph.feed(np.array(bool(graph.rng.integers(2))))
    branches = {f"{tag}_branch": _graph_of(graph, nodes, kept, tag) for tag in ("then", "else")}
    return [helper.make_node("If", [condition], kept, "If_0", **branches)]


def _body(graph: _Graph, nodes: Sequence[NodeProto], kept: list[str]) -> list[NodeProto]:
    """Runs twice, and takes what the second time gave."""
    body = _graph_of(graph, nodes, kept, "body")
    body.input.extend([helper.make_tensor_value_info("i", TensorProto.INT64, [])])
    body.input.extend([helper.make_tensor_value_info("go", TensorProto.BOOL, [])])
    body.node.append(helper.make_node("Identity", ["go"], ["on"]))
    body.output.insert(0, helper.make_tensor_value_info("on", TensorProto.BOOL, []))
    scans = [f"{name}_all" for name in kept]
    loop = helper.make_node("Loop", [graph.hold(np.array(2)), ""], scans, "Loop_0", body=body)
    second = graph.hold(np.array(1))
    return [loop, *(helper.make_node("Gather", [s, second], [n], f"of_{n}") for s, n in zip(scans, kept, strict=True))]


def _function(graph: _Graph, nodes: Sequence[NodeProto], kept: list[str]) -> list[NodeProto]:
    made = {name for node in nodes for name in node.output}
    read = list(dict.fromkeys(n for node in nodes for n in node.input if n and n not in made))
    imports = [helper.make_opsetid(domain, version) for domain, version in graph.opsets.items()]
    graph.functions.append(helper.make_function("local", "f", read, kept, nodes, imports))
    return [helper.make_node("f", read, kept, "f_0", domain="local")]


def _model(graph: _Graph) -> ModelProto:
    used = {name for node in graph.nodes for name in node.input}
    used |= {n for node in graph.nodes for a in node.attribute for inner in a.g.node for n in inner.input}
    made = [name for node in graph.nodes for name in node.output if name]
    graph.inputs = {name: value for name, value in graph.inputs.items() if name in used}
    ends = [name for name in made if name not in used]
    held = [numpy_helper.from_array(value, name) for name, value in graph.held.items() if name in used]
    proto = helper.make_graph(
        graph.nodes, "g", [helper.make_value_info(name, type_of(value)) for name, value in graph.inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in ends], held,
    )  # fmt: skip
    opsets = {**graph.opsets, **({"local": 1} if graph.functions else {})}
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(proto, opset_imports=imports, functions=graph.functions, ir_version=IR_VERSION)


def outcome_of(drawn: Drawn, engine: str) -> tuple[str, str]:
    """Returns what comes of a graph on an engine: "right", "refused", "error" or "wrong", and what was seen."""
    try:
        found = drawn.difference(outputs_of(drawn.model, drawn.inputs, engine, is_shown=True))
    except RefusedError as err:
        return "refused", str(err)[:300]
    except FailedError as err:
        return ("right" if drawn.has_empty else "error"), str(err)[:300]  # what has no elements may be an error
    return ("wrong", found) if found else ("right", "")
