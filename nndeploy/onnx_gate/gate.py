# SPDX-License-Identifier: Apache-2.0
"""The gate: an untrusted ONNX file is walked, in pure Python, before any library parses it.

In comes a file or its bytes; out come the same bytes and a few facts. Refused are: what is no ONNX model, sizes and
depths beyond `Limits`, tensors whose data does not fit their sizes, versions that are not known, operators that nobody
vouches for, functions that call themselves. The graph's wiring is checked later (`graph_rules.py`), its operators by
the onnx checker. Nothing large is copied; a model of 5,000 nodes takes a fraction of a second.

Law: for any bytes, `check_bytes` returns facts or raises ModelError or PolicyError; it never recurses deeper than
`Limits` allows.

Source: 9-reliability, T1, T2 and T4.
"""

import os
import stat
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from nndeploy.errors import InputOutputError, MissingInputError, ModelError, NndeployError
from nndeploy.graph.operator_rules import (
    FIRST_IR_WITH_IMPORTS,
    check_ir_version,
    check_operator,
    checked_imports,
    normal_domain,
    shown_operator,
)
from nndeploy.onnx_gate import onnx_messages as onnx
from nndeploy.onnx_gate.file_kinds import file_kind_hint
from nndeploy.onnx_gate.limits import DEFAULT_LIMITS, Limits
from nndeploy.onnx_gate.tensor_rules import ELEMENT_TYPES, EXTERNAL, check_tensor, dense_bytes
from nndeploy.onnx_gate.wire import Budget, Fields, Message, Span, fields_of

FunctionId: TypeAlias = tuple[str, str, str]
"""Domain, name and overload of a function that the model defines."""

_NAME_SHOWN = 80
_DEPTH_SHOWN = 2


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the gate learned. `num_nodes` counts every body and function once, `num_expanded_nodes` every call's body.

    `operators` maps (domain, operator) to the number of such nodes, `num_weight_bytes` is the sum over all tensors.
    """

    ir_version: int
    opset_imports: Mapping[str, int]
    operators: Mapping[tuple[str, str], int]
    num_nodes: int
    num_expanded_nodes: int
    num_weight_bytes: int
    has_external_data: bool


def check_file(
    path: Path, limits: Limits = DEFAULT_LIMITS, extra_domains: Set[str] = frozenset()
) -> tuple[bytes, ModelFacts]:
    """Returns the bytes of a model file, read once, and what the gate learned of them.

    `extra_domains` are operator domains that a library named by the user implements. The caller names the file in
    errors.

    Raises:
        MissingInputError: there is no such file.
        InputOutputError: it cannot be read.
        ModelError: it is not a regular file, too large, or malformed.
        PolicyError: it uses an operator that is not allowed.
    """
    data = _read_file(path, limits)
    return data, check_bytes(data, limits, extra_domains)


def check_bytes(data: bytes, limits: Limits = DEFAULT_LIMITS, extra_domains: Set[str] = frozenset()) -> ModelFacts:
    """Returns what the gate learned of a serialised model.

    Raises:
        ModelError: the bytes are no ONNX model, or one that is malformed or too large.
        PolicyError: the model uses an operator that is not allowed.
    """
    if not data:
        raise ModelError("the file is empty")
    if len(data) > limits.max_file_bytes:
        raise _too_large(len(data), limits)
    gate = _Gate(data, limits, extra_domains)
    try:
        model = gate.read((0, len(data)), onnx.MODEL)
        if not model.spans.get("graph"):
            raise ModelError("the model has no graph")
    except ModelError as err:
        if hint := file_kind_hint(data):
            raise ModelError("not an ONNX model", hint=hint) from err
        err.hint = "is the file complete, and is it an ONNX model?"
        raise
    return gate.check_model(model)


def _read_file(path: Path, limits: Limits) -> bytes:
    try:
        with open(path, "rb", opener=_open_quickly) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular()
            if status.st_size > limits.max_file_bytes:
                raise _too_large(status.st_size, limits)
            return file.read(status.st_size)
    except IsADirectoryError as err:
        raise _not_regular() from err
    except FileNotFoundError as err:
        raise MissingInputError("no such model file") from err
    except OSError as err:
        raise InputOutputError(f"the model cannot be read: {err.strerror}") from err


def _open_quickly(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)  # a pipe without a writer must not hold us up


def _not_regular() -> ModelError:
    return ModelError("not a regular file", hint="a model is one .onnx file")


def _too_large(num_bytes: int, limits: Limits) -> ModelError:
    return ModelError(
        f"the model has {num_bytes} bytes, more than {limits.max_file_bytes}",
        hint="use external data: the weights in a file of their own beside the model",
    )


@dataclass(slots=True)
class _Body:
    """The nodes of the main graph or of one function, with those of the bodies inside; `imports` holds for them."""

    imports: Mapping[str, int]
    num_nodes: int = 0
    num_bytes: int = 0
    calls: Counter[FunctionId] = field(default_factory=Counter)


class _Gate:
    """One walk over one model."""

    def __init__(self, data: bytes, limits: Limits, extra_domains: Set[str]) -> None:
        self.data = data
        self.limits = limits
        self.extra_domains = extra_domains
        self.budget = Budget(limits.max_fields, limits.max_nodes, limits.max_name_bytes)
        self.functions: dict[FunctionId, Fields] = {}
        self.operators = Counter[tuple[str, str]]()
        self.num_nodes = 0
        self.num_attributes = 0
        self.num_weight_bytes = 0
        self.has_external_data = False

    def read(self, span: Span, message: Message) -> Fields:
        return fields_of(self.data, span, message, self.budget)

    def check_model(self, model: Fields) -> ModelFacts:
        check_ir_version(ir_version := model.number("ir_version"))
        is_without = (ir_version or 0) < FIRST_IR_WITH_IMPORTS and not model.spans.get("opset_import")
        main = _Body({"": 1} if is_without else self.imports(model))
        self.functions = self.function_definitions(model)
        bodies = {known: self.check_function(known, fields) for known, fields in self.functions.items()}
        self.check_graph(model.spans["graph"][0], 1, main)
        for span in model.spans.get("training_info", ()):
            self.check_training(span, main)
        self.check_others(model)
        num_expanded = _expanded_nodes(main, bodies, self.limits)
        return ModelFacts(
            ir_version=ir_version or 0,
            opset_imports=main.imports,
            operators=dict(self.operators),
            num_nodes=self.num_nodes,
            num_expanded_nodes=num_expanded,
            num_weight_bytes=self.num_weight_bytes,
            has_external_data=self.has_external_data,
        )

    def imports(self, owner: Fields) -> dict[str, int]:
        found = [self.read(span, onnx.OPERATOR_SET_ID) for span in owner.spans.get("opset_import", ())]
        return checked_imports([(f.text("domain"), f.number("version")) for f in found])

    def function_definitions(self, model: Fields) -> dict[FunctionId, Fields]:
        known: dict[FunctionId, Fields] = {}
        for span in model.spans.get("functions", ()):
            fields = self.read(span, onnx.FUNCTION)
            key = (normal_domain(fields.text("domain")), fields.text("name"), fields.text("overload"))
            if key in known:
                raise ModelError(f"the function {_shown_function(key)} is defined twice")
            known[key] = fields
        return known

    def check_function(self, key: FunctionId, function: Fields) -> _Body:
        try:
            body = _Body(self.imports(function))
            self.check_nodes(function.spans.get("node", []), 1, body)
            for span in function.spans.get("attribute_proto", ()):
                self.check_attribute(span, 1, body)
            self.check_others(function)
        except NndeployError as err:
            err.within(f"function {_shown_function(key)}")
            raise
        return body

    def check_training(self, span: Span, main: _Body) -> None:
        training = self.read(span, onnx.TRAINING_INFO)
        for name in ("initialization", "algorithm"):
            for graph in training.spans.get(name, ()):
                self.check_graph(graph, 1, main)
        self.check_others(training)

    def check_graph(self, span: Span, depth: int, body: _Body) -> None:
        if depth > self.limits.max_graph_depth:
            raise ModelError(f"graphs lie more than {self.limits.max_graph_depth} deep in one another")
        graph = self.read(span, onnx.GRAPH)
        for initializer in graph.spans.get("initializer", ()):
            self.check_tensor(initializer)
        for initializer in graph.spans.get("sparse_initializer", ()):
            self.check_sparse_tensor(initializer)
        self.check_nodes(graph.spans.get("node", []), depth, body)
        self.check_others(graph)

    def check_nodes(self, spans: list[Span], depth: int, body: _Body) -> None:
        self.num_nodes += len(spans)
        if self.num_nodes > self.limits.max_nodes:
            raise ModelError(f"the model has more than {self.limits.max_nodes} nodes")
        body.num_nodes += len(spans)
        for index, span in enumerate(spans):
            body.num_bytes += span[1] - span[0]
            node = self.read(span, onnx.NODE)
            try:
                self.check_node(node, depth, body)
            except NndeployError as err:
                op_type = node.text("op_type")
                _add_place(err, f"node {_shown(node.text('name') or f'{op_type}_{index}')} ({op_type:.80})", depth)
                raise

    def check_node(self, node: Fields, depth: int, body: _Body) -> None:
        domain, op_type = normal_domain(node.text("domain")), node.text("op_type")
        if not op_type:
            raise ModelError("the node names no operator")
        called = (domain, op_type, node.text("overload"))
        check_operator(domain, op_type, body.imports, called in self.functions, self.extra_domains)
        self.operators[domain, op_type] += 1
        if called in self.functions:
            body.calls[called] += 1
        attributes = node.spans.get("attribute", [])
        self.num_attributes += len(attributes)
        if self.num_attributes > self.limits.max_attributes:
            raise ModelError(f"the model has more than {self.limits.max_attributes} attributes")
        names = [self.check_attribute(span, depth, body) for span in attributes]
        if len(set(names)) < len(names):
            raise ModelError(f"the attribute {_shown(_first_repeated(names))} is there twice")
        self.check_others(node)

    def check_attribute(self, span: Span, depth: int, body: _Body) -> str:
        attribute = self.read(span, onnx.ATTRIBUTE)
        name = attribute.text("name")
        if attribute.spans:
            try:
                self.check_attribute_values(attribute, depth, body)
            except NndeployError as err:
                _add_place(err, f"attribute {_shown(name)}", depth)
                raise
        return name

    def check_attribute_values(self, attribute: Fields, depth: int, body: _Body) -> None:
        for kind, spans in attribute.spans.items():
            for span in spans:
                if kind in ("g", "graphs"):
                    self.check_graph(span, depth + 1, body)
                elif kind in ("t", "tensors"):
                    self.check_tensor(span)
                elif kind in ("sparse_tensor", "sparse_tensors"):
                    self.check_sparse_tensor(span)
        self.check_others(attribute)

    def check_tensor(self, span: Span) -> Fields:
        tensor = self.read(span, onnx.TENSOR)
        try:
            self.add_weight(check_tensor(tensor, self.limits))
            self.has_external_data |= tensor.number("data_location") == EXTERNAL
            self.check_others(tensor)
        except NndeployError as err:
            err.within(f"tensor {_shown(tensor.text('name'))}")
            raise
        return tensor

    def check_sparse_tensor(self, span: Span) -> None:
        sparse = self.read(span, onnx.SPARSE_TENSOR)
        if not sparse.spans.get("values") or not sparse.spans.get("indices"):
            raise ModelError("a sparse tensor has no values or no indices")
        values = self.check_tensor(sparse.spans["values"][0])
        self.check_tensor(sparse.spans["indices"][0])
        try:
            self.add_weight(dense_bytes(values.number("data_type"), sparse.numbers.get("dims", []), self.limits))
        except ModelError as err:
            err.within(f"sparse tensor {_shown(values.text('name'))}")
            raise

    def add_weight(self, num_bytes: int) -> None:
        self.num_weight_bytes += num_bytes
        if self.num_weight_bytes > self.limits.max_total_bytes:
            raise ModelError(
                f"the tensors together have more than {self.limits.max_total_bytes} bytes",
                hint="--memory-limit, if this machine has the memory",
            )

    def check_others(self, owner: Fields) -> None:
        """Walks those inner messages for which there is no rule but to be well formed."""
        others = onnx.WELL_FORMED
        open_spans = [(span, others[name], 0) for name in owner.spans if name in others for span in owner.spans[name]]
        while open_spans:
            span, message, type_depth = open_spans.pop()
            type_depth += message is onnx.TYPE
            if type_depth > self.limits.max_type_depth:
                raise ModelError(f"types lie more than {self.limits.max_type_depth} deep in one another")
            found = self.read(span, message)
            element = found.number("elem_type") or found.number("key_type")
            if element and element not in ELEMENT_TYPES:
                raise ModelError(f"a value has the unknown element type {element}")
            for name, spans in found.spans.items():
                inner = onnx.MESSAGES[message.inner[name]]
                open_spans.extend((inner_span, inner, type_depth) for inner_span in spans)


def _expanded_nodes(main: _Body, bodies: Mapping[FunctionId, _Body], limits: Limits) -> int:
    """Returns the number of nodes after every call was replaced by the function's body.

    Raises:
        ModelError: functions call each other in a circle, or there would be too many nodes or bytes.
    """
    sizes: dict[FunctionId, tuple[int, int]] = {}
    for key in _callees_first(bodies):
        sizes[key] = _expanded(bodies[key], sizes, limits)
    num_nodes, num_bytes = _expanded(main, sizes, limits)
    if num_nodes > limits.max_nodes or num_bytes > _most_bytes(limits):
        what = f"{limits.max_nodes} nodes" if num_nodes > limits.max_nodes else f"{_most_bytes(limits)} bytes"
        raise ModelError(f"the model has more than {what} once its functions are put in place of their calls")
    return num_nodes


def _expanded(body: _Body, sizes: Mapping[FunctionId, tuple[int, int]], limits: Limits) -> tuple[int, int]:
    """Returns (nodes, bytes) of a body, each held just above its limit so that the numbers stay small."""
    num_nodes = body.num_nodes + sum(count * (sizes[key][0] - 1) for key, count in body.calls.items())
    num_bytes = body.num_bytes + sum(count * sizes[key][1] for key, count in body.calls.items())
    return min(num_nodes, limits.max_nodes + 1), min(num_bytes, _most_bytes(limits) + 1)


def _most_bytes(limits: Limits) -> int:
    """Returns what nodes may have together: they and what is stored in them are one protobuf message."""
    return min(limits.max_file_bytes, limits.max_total_bytes)


def _callees_first(bodies: Mapping[FunctionId, _Body]) -> list[FunctionId]:
    callers: dict[FunctionId, list[FunctionId]] = {key: [] for key in bodies}
    for key, body in bodies.items():
        for callee in body.calls:
            callers[callee].append(key)
    waiting = {key: len(body.calls) for key, body in bodies.items()}
    ordered = [key for key, count in waiting.items() if not count]
    for key in ordered:
        for caller in callers[key]:
            waiting[caller] -= 1
            if not waiting[caller]:
                ordered.append(caller)
    if len(ordered) < len(bodies):
        stuck = next(key for key in bodies if waiting[key])
        raise ModelError(f"the function {_shown_function(stuck)} calls itself, directly or through others")
    return ordered


def _add_place(error: NndeployError, place: str, depth: int) -> None:
    """Adds the innermost place and the outermost ones, so that the message stays one that can be read."""
    if not error.where or depth <= _DEPTH_SHOWN:
        error.within(place)


def _first_repeated(names: list[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)


def _shown_function(key: FunctionId) -> str:
    return _shown(shown_operator(key[0], key[1]) + (f":{key[2]}" if key[2] else ""))


def _shown(name: str) -> str:
    return repr(name if len(name) <= _NAME_SHOWN else name[:_NAME_SHOWN] + "...")
