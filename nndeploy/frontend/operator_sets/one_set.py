# SPDX-License-Identifier: Apache-2.0
"""A model whose nodes are of several operator sets, or of an old one, becomes a model of one, without functions.

    calls of functions                       ->  the nodes of their bodies (`function_calls.py`)
    nodes of ai.onnx below the model's set   ->  as that set says them (`changes.py`)

The set is the model's own, raised to the first in which operators broadcast as NumPy does and to what its functions
are written in. A Softmax over several axes, of a set before 13, is one over one axis afterwards: both readings of it
give the same numbers then. In comes a model whose wiring was checked; what a change asks for (ranks, element types) is
inferred node by node, in order.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import onnx
import onnx.defs

from nndeploy.errors import ModelError, NndeployError
from nndeploy.frontend.free_names import FreeNames
from nndeploy.frontend.onnx_checks import check_node, shown_node
from nndeploy.frontend.operator_sets.changes import CHANGES, NOT_OWN, SAME_IN_BOTH
from nndeploy.frontend.operator_sets.function_calls import Calls, FunctionKey, function_key
from nndeploy.frontend.operator_sets.surroundings import Surroundings, take
from nndeploy.frontend.traversal import bodies_of, nodes_below, nodes_of
from nndeploy.frontend.unique_names import made_in
from nndeploy.graph.operator_rules import normal_domain, shown_domain
from nndeploy.onnx_gate.limits import DEFAULT_LIMITS

LEAST_VERSION = 7
"""The first version of ai.onnx in which operators broadcast as NumPy does; most engines know no older one."""
DEFAULT_VERSION = 17
"""The version that a model gets which uses no operator of ai.onnx: rewrites may add some."""
_FIRST_WITHOUT_HINTS = 6

Functions: TypeAlias = Mapping[FunctionKey, onnx.FunctionProto]


def use_one_set(model: onnx.ModelProto) -> None:
    """Rewrites a model in place, as the module's docstring says; nodes have names, new ones may have none.

    Raises:
        ModelError: a node is malformed or cannot be said in the set that the model gets, or functions import another
            version of another operator set than the model does.
    """
    functions = {function_key(function): function for function in model.functions}
    called = list(_called(model.graph.node, functions))
    own = _imported(model)
    target = max([LEAST_VERSION if own else DEFAULT_VERSION, own, *_wanted(model.graph.node, own)])
    target = max([target, *(version for function in called for version in _needed(function))])
    walk = _Walk(model, functions, called, target)
    if called or walk.changes:
        walk.graph(model.graph, own, 1)
        model.graph.initializer.extend(walk.made)
    _import(model, called, target)
    model.ClearField("functions")


def _called(nodes: Iterable[onnx.NodeProto], functions: Functions) -> Iterator[onnx.FunctionProto]:
    """Yields every function that the nodes call, and those that these call, once."""
    seen: set[FunctionKey] = set()
    waiting = [key for node in nodes_below(nodes) if (key := function_key(node)) in functions]
    while waiting:
        key = waiting.pop()
        if key not in seen:
            seen.add(key)
            yield functions[key]
            waiting += [
                inner for node in nodes_below(functions[key].node) if (inner := function_key(node)) in functions
            ]


def _imported(owner: onnx.ModelProto | onnx.FunctionProto) -> int:
    """Returns the version of ai.onnx that a model or function imports, 0 where it imports none."""
    return next((opset.version for opset in owner.opset_import if not normal_domain(opset.domain)), 0)


def _wanted(nodes: Iterable[onnx.NodeProto], version: int) -> Iterator[int]:
    """Yields the versions in which what `version` only tolerates is said."""
    for node in nodes_below(nodes):
        if not node.domain and version in (tolerated := NOT_OWN.get(node.op_type, range(0))):
            yield tolerated.stop


def _needed(function: onnx.FunctionProto) -> Iterator[int]:
    """Yields the versions that a function needs: since when each of its operators is what it is there."""
    version = _imported(function)
    yield from _wanted(function.node, version)
    for node in nodes_below(function.node):
        if not node.domain and onnx.defs.has(node.op_type, max_inclusive_version=version):
            yield onnx.defs.get_schema(node.op_type, version).since_version


def _import(model: onnx.ModelProto, called: Iterable[onnx.FunctionProto], target: int) -> None:
    """Makes the model import what its functions do, and `target`."""
    versions = {opset.domain: opset.version for opset in model.opset_import}
    for function in called:
        for opset in function.opset_import:
            if opset.domain and versions.setdefault(opset.domain, opset.version) != opset.version:
                raise ModelError(
                    f"it imports version {opset.version} of {shown_domain(opset.domain)}, the model version "
                    f"{versions[opset.domain]}",
                    where=f"function {function.name!r:.80}",
                )
    del model.opset_import[:]
    for domain, version in {**versions, "": target}.items():
        model.opset_import.add(domain=domain, version=version)


class _Walk:
    """One walk over a model, which gets version `target` of ai.onnx."""

    def __init__(
        self, model: onnx.ModelProto, functions: Functions, called: Iterable[onnx.FunctionProto], target: int
    ) -> None:
        self._around = Surroundings(target, FreeNames(_names(model)))
        self._calls = Calls(self._around.free_name)
        self._functions, self._target, self._ir_version = functions, target, model.ir_version
        written = [(model.graph.node, _imported(model)), *((f.node, _imported(f)) for f in called)]
        self.changes = any(self._is_changed(node, version) for nodes, version in written for node in nodes_below(nodes))
        """Whether some node may be said otherwise: what is known of its surroundings decides."""

    @property
    def made(self) -> Iterable[onnx.TensorProto]:
        """The constants of changes."""
        return self._around.made

    def graph(self, graph: onnx.GraphProto, version: int, depth: int) -> None:
        """Rewrites the nodes of a graph, which are of `version`, in place."""
        if depth > DEFAULT_LIMITS.max_graph_depth:
            raise ModelError(f"graphs lie more than {depth - 1} deep in one another once functions are in place")
        self._around.enter(graph)
        nodes = list(self._expanded(graph.node, version, depth))
        del graph.node[:]
        graph.node.extend(nodes)

    def _expanded(self, nodes: Iterable[onnx.NodeProto], version: int, depth: int) -> Iterator[onnx.NodeProto]:
        waiting = [(node, version) for node in nodes][::-1]
        while waiting:
            node, written_for = waiting.pop()
            function = self._functions.get(function_key(node))
            if function is not None:
                inner = _imported(function)
                waiting += [(each, inner) for each in self._calls.body(node, function)][::-1]
                continue
            for body in bodies_of(node):
                self.graph(body, written_for, depth + 1)
            for new in self._changed(node, written_for):
                if self.changes:
                    self._around.add(new)
                yield new

    def _changed(self, node: onnx.NodeProto, version: int) -> list[onnx.NodeProto]:
        """Returns what stands for a node that is written for `version`."""
        if not self._is_changed(node, version):
            return [node]
        name, shown = node.name, shown_node(node)
        try:
            if version not in NOT_OWN.get(node.op_type, ()) and not any(True for _ in bodies_of(node)):
                check_node(node, version, self._ir_version)
            nodes = self._anew(node, version)
        except NndeployError as err:
            err.within(shown)
            raise
        nodes[-1].name = name
        return nodes

    def _anew(self, node: onnx.NodeProto, version: int) -> list[onnx.NodeProto]:
        if version < _FIRST_WITHOUT_HINTS:
            take(node, "consumed_inputs")
        following = self._next_version(node, version)
        if not following:
            return [node]
        made = CHANGES[node.op_type][following](node, self._around)
        return [new for each in made for new in self._anew(each, following)]

    def _is_changed(self, node: onnx.NodeProto, version: int) -> bool:
        return not node.domain and (version < _FIRST_WITHOUT_HINTS or self._next_version(node, version) > 0)

    def _next_version(self, node: onnx.NodeProto, version: int) -> int:
        """Returns the first version behind `version` that changes a node, 0 where there is none."""
        changes = () if node.domain else CHANGES.get(node.op_type, ())
        last = max(self._target, SAME_IN_BOTH.get(node.op_type, 0))
        return min((at for at in changes if version < at <= last), default=0)


def _names(model: onnx.ModelProto) -> Iterator[str]:
    yield from made_in(model.graph)
    yield from (name for function in model.functions for name in function.input)
    for node in nodes_of(model):
        yield from node.output
        for body in bodies_of(node):
            yield from made_in(body)
