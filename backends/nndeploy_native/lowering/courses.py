# SPDX-License-Identifier: Apache-2.0
"""A model with choices (If), texts or maps -> a course: plans, steps of Python, and a course for each branch.

    turns: 0 Python, 1 a plan, 2 choices, 3 Python, 4 a plan...
    turn(node) = the first of its kind that is not before those of what it reads

What has its turn together is one plan, so that there are few. A branch is lowered as a model of its own, whose inputs
are what it captures: every rule and fusion sees it so.

Where sizes decide, a branch that has no rule is for sizes that the artifact is not built for: `Refused`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

import onnx_ir as ir

from nndeploy.backend_kit.kernels.tensor_sizes import sizes_of
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.branches import branches_of, is_choice, model_of_branch
from nndeploy.graph.constants import constant_array
from nndeploy.graph.named_sizes import name_sizes
from nndeploy.graph.nodes import bodies, captured_values, is_constant, values_read
from nndeploy.graph.operators import operand
from nndeploy.graph.regions import Region
from nndeploy.graph.submodels import submodel_of
from nndeploy.values.size import Dim, of_atom
from nndeploy.values.solving import solved_symbols
from nndeploy.values.types import DimRange
from nndeploy_native.course import MAX_DEPTH, Choice, Course, Empty, Part, Refused
from nndeploy_native.lowering.context import Lowered
from nndeploy_native.lowering.python_rules import border_of, is_python, python_step
from nndeploy_native.lowering.table import lower
from nndeploy_native.transforms import transformed
from nndeploy_native.transforms.texts_as_numbers import TextsAsNumbers

Made = TypeVar("Made")
_READ_SIZES_ALONE = ("Constant", "Shape", "Size")


def is_beside_plans(node: ir.Node) -> bool:
    """Whether a node is more than steps of one plan: a choice, or of texts, maps or sequences."""
    return is_choice(node) or is_python(node)


def refusal_of_course(node: ir.Node, model: ir.Model, ranges: Mapping[str, DimRange]) -> str:
    """Returns why a node that is more than steps of one plan cannot be lowered alone, or ""."""
    alone = submodel_of(model, Region("native", (node,)), {id(output) for output in node.outputs if output.name})
    lowering = CourseLowering(ranges, lambda lowered: lowered)
    if is_choice(node) and node.inputs[0] is not None and lowering.follows_from_sizes(node.inputs[0]):
        lowering.sized.add(node.inputs[0].name or "")
    try:
        lowering.course(alone)
    except BuildRefusedError as err:
        return str(err)
    return ""


@dataclass(slots=True)
class CourseLowering(Generic[Made]):
    """Lowers the parts of one model; `plans` are what `make` returned of each, in the order of their numbers.

    `sized` names values that are read from outside of a graph and follow from shapes there.
    """

    ranges: Mapping[str, DimRange]
    make: Callable[[Lowered], Made]
    plans: list[Made] = field(default_factory=list)
    sized: set[str] = field(default_factory=set)

    def course(self, model: ir.Model, depth: int = 0) -> Course:
        """Returns the course of a model, whose results are its outputs.

        Raises:
            BuildRefusedError: a node has no rule, or its rule says no; or `make` does.
        """
        if any(map(is_python, model.graph)):
            model = model.clone()
            TextsAsNumbers()(model, lambda _: True)
        graph = model.graph
        empty = {node: border_of(node.outputs[0]) for node in graph if _is_empty_output(node)}
        parts: list[Part] = [
            Empty(border.name, border.element, tuple(size or 0 for size in border.shape)) for border in empty.values()
        ]
        for kind, nodes in _turns([node for node in graph if node not in empty]):
            if kind is _Turn.CHOICES:
                parts += [self._choice(node, model, depth + 1) for node in nodes]
            elif kind is _Turn.PYTHON:
                parts += [python_step(node, model) for node in nodes if node.op_type != "Constant"]
            else:
                parts.append(self._plan(nodes, model))
        return Course(tuple(parts), tuple(value.name or "" for value in graph.outputs))

    def _plan(self, nodes: tuple[ir.Node, ...], model: ir.Model) -> int:
        between = {id(value) for value in model.graph.outputs}
        between |= {id(value) for node in set(model.graph) - set(nodes) for value in values_read(node)}
        alone = submodel_of(model, Region("native", nodes), between)
        _name_own_sizes(alone, self.ranges)
        alone = transformed(alone)
        self.plans.append(self.make(lower(alone, self.ranges)))
        return len(self.plans) - 1

    def _choice(self, node: ir.Node, model: ir.Model, depth: int) -> Choice:
        condition, outputs = operand(node, 0), [output for output in node.outputs if output.name]
        if condition is None or is_constant(condition) or condition.dtype != ir.DataType.BOOL:
            raise BuildRefusedError(f"If {node.name!r}: a condition that is constant, or no truth")
        if depth > MAX_DEPTH:
            raise BuildRefusedError(f"more than {MAX_DEPTH} Ifs inside of each other")
        courses, refusals = [], []
        for branch in branches_of(node):
            num_plans = len(self.plans)
            try:
                courses.append(self._branch(node, branch, model, depth))
            except BuildRefusedError as err:
                del self.plans[num_plans:]
                courses.append(Course((Refused(str(err)),), ()))
                refusals.append(str(err))
        if len(refusals) == len(courses) or (refusals and not self.follows_from_sizes(condition)):
            raise BuildRefusedError(f"If {node.name!r}: {refusals[0]}")
        return Choice(condition.name or "", tuple(output.name or "" for output in outputs), (courses[0], courses[1]))

    def _branch(self, node: ir.Node, branch: ir.Graph, model: ir.Model, depth: int) -> Course:
        results = [result for output, result in zip(node.outputs, branch.outputs, strict=True) if output.name]
        wanted = [border_of(output) for output in node.outputs if output.name]
        own = {output for inner in branch for output in inner.outputs}
        if len(set(results)) != len(results) or not own.issuperset(results):
            raise BuildRefusedError("a branch gives a value twice, or one that it does not compute")
        for border, result in zip(wanted, map(border_of, results), strict=True):
            if (border.element, len(border.shape)) != (result.element, len(result.shape)):
                raise BuildRefusedError(f"the branches give {border.name!r} in other types or ranks")
        self.sized |= {value.name or "" for value in captured_values(branch) if self.follows_from_sizes(value)}
        course = self.course(model_of_branch(model, branch), depth)
        return course._replace(results=tuple(result.name or "" for result in results))

    def follows_from_sizes(self, value: ir.Value) -> bool:
        """Whether shapes decide what a value is."""
        waiting, seen = [value], {value}
        while waiting:
            one = waiting.pop()
            producer = one.producer()
            if is_constant(one) or one.name in self.sized:
                continue
            if producer is None or next(bodies(producer), None) is not None:
                return False
            if producer.op_type not in _READ_SIZES_ALONE:
                waiting += [read for read in producer.inputs if read is not None and read not in seen]
                seen.update(waiting)
        return True


def _name_own_sizes(model: ir.Model, ranges: Mapping[str, DimRange]) -> None:
    """Names sizes of the inputs of a part that say how they were computed before, where no input tells of what."""
    shapes = [sizes_of(value, ranges) for value in model.graph.inputs]
    told, own = solved_symbols(shapes), dict[Dim, str]()
    for value, shape in zip(model.graph.inputs, shapes, strict=True):
        dims: list[int | str | ir.SymbolicDim | None] = list(value.shape or ())
        for axis, size in enumerate(shape):
            atoms = () if isinstance(size, int) else [atom for atoms, _ in size.terms for atom in atoms]
            if not all(atom in told or of_atom(atom).symbols <= told.keys() for atom in atoms):
                dims[axis] = own.setdefault(size, f"{value.name}.{axis}")
        value.shape = ir.Shape(dims)
    if own:
        name_sizes(model, ranges)


def _is_empty_output(node: ir.Node) -> bool:
    """Whether a node is a constant without elements that its graph gives."""
    if node.op_type != "Constant" or not node.outputs[0].is_graph_output():
        return False
    array = constant_array(node.outputs[0])
    return array is not None and array.size == 0


class _Turn(IntEnum):
    PYTHON = 0
    PLAN = 1
    CHOICES = 2


def _turns(nodes: Sequence[ir.Node]) -> list[tuple[_Turn, tuple[ir.Node, ...]]]:
    """Returns the nodes of each turn in order, and its kind."""
    turn_of: dict[ir.Value, int] = {}
    turns: defaultdict[int, list[ir.Node]] = defaultdict(list)
    for node in nodes:
        kind = _Turn.CHOICES if is_choice(node) else _Turn.PYTHON if is_python(node) else _Turn.PLAN
        least = max((turn_of.get(value, 0) for value in values_read(node)), default=0)
        turn = least + (kind - least) % len(_Turn)
        turns[turn].append(node)
        turn_of |= dict.fromkeys(node.outputs, turn)
    return [(_Turn(turn % len(_Turn)), tuple(turns[turn])) for turn in sorted(turns)]
