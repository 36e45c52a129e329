# SPDX-License-Identifier: Apache-2.0
"""What the onnx library has to say about a model: does each operator exist, is each node as its operator wants it.

In comes a model that has passed the gate and `graph_rules.py`, whose nodes have names; nothing is changed. The
library's own messages are put into one line, with the node.
"""

from collections.abc import Iterable, Mapping

import onnx
import onnx.checker
import onnx.defs

from nndeploy.errors import ModelError, PolicyError, did_you_mean
from nndeploy.frontend.operator_sets.changes import NOT_OWN
from nndeploy.frontend.traversal import bodies_of, nodes_below
from nndeploy.graph.operator_rules import OPSETS, normal_domain, shown_domain, shown_operator
from nndeploy.values.types import MAX_RANK

_WITHOUT_SCHEMAS = "com.microsoft"
_CONTEXT = "==> Context:"


def check_operators(model: onnx.ModelProto) -> None:
    """Checks that each operator of ONNX that a node names exists in the operator set that the model imports.

    Raises:
        PolicyError: ONNX knows no such operator.
        ModelError: the operator set is older than the operator, a text among its attributes is not UTF-8, or an
            index among them is one with which onnx's inference would read outside its memory.
    """
    functions = {(normal_domain(f.domain), f.name) for f in model.functions}
    checked: set[tuple[str, str, int]] = set()
    for imports, nodes in _bodies(model):
        for node in nodes_below(nodes):
            domain = normal_domain(node.domain)
            key = (domain, node.op_type, imports.get(domain, 0))
            is_tolerated = not domain and key[2] in NOT_OWN.get(node.op_type, ())
            if domain not in OPSETS or domain == _WITHOUT_SCHEMAS or key[:2] in functions or is_tolerated:
                continue
            _check_texts(node)
            _check_indices(node)
            if key not in checked:
                _check_operator(*key, where=shown_node(node))
                checked.add(key)


def check_with_onnx(model: onnx.ModelProto) -> None:
    """Runs the onnx checker, without shape inference.

    Raises:
        ModelError: it refuses the model; the message names the node where the checker does.
    """
    try:
        onnx.checker.check_model(_with_shapes(model))
    except Exception as err:  # the checker throws whatever its C++ throws
        what = str(err).split(_CONTEXT)[0].strip()
        raise ModelError(what, where=_culprit(model), hint="the onnx checker refuses the model") from err


def _with_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a copy in which inputs and outputs have a shape: the checker asks for one, engines find it out."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in (*copy.graph.input, *copy.graph.output):
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            value.type.tensor_type.shape.SetInParent()
            value.type.tensor_type.elem_type = value.type.tensor_type.elem_type or onnx.TensorProto.FLOAT
    return copy


def check_node(node: onnx.NodeProto, version: int, ir_version: int) -> None:
    """Checks a node of ai.onnx without bodies, written for `version` of it.

    Raises:
        ModelError: it is not as its operator wants it.
    """
    context = onnx.checker.C.CheckerContext()
    context.ir_version, context.opset_imports = ir_version, {"": version}
    try:
        onnx.checker.check_node(node, context)
    except Exception as err:  # see above
        raise ModelError(str(err).split(_CONTEXT)[0].strip(), hint="the onnx checker refuses it") from err


def _culprit(model: onnx.ModelProto) -> str:
    """Returns the node that the checker refuses, "" where it is none; the checker itself names only the outermost."""
    for imports, nodes in _bodies(model):
        context = onnx.checker.C.CheckerContext()
        context.ir_version, context.opset_imports = model.ir_version, dict(imports)
        for node in sorted(nodes_below(nodes), key=_has_bodies):
            try:
                onnx.checker.check_node(node, context)
            except Exception:  # see above
                return shown_node(node)
    return ""


def _has_bodies(node: onnx.NodeProto) -> bool:
    return any(True for _ in bodies_of(node))


def shown_node(node: onnx.NodeProto) -> str:
    """Returns a node as messages name it."""
    return f"node {node.name!r:.80} ({node.op_type:.80})"


def _bodies(model: onnx.ModelProto) -> list[tuple[Mapping[str, int], Iterable[onnx.NodeProto]]]:
    """Returns (imported operator sets, nodes) of the main graph and of every function."""
    owners = [(model.opset_import, model.graph.node), *((f.opset_import, f.node) for f in model.functions)]
    return [(_imports(opsets), nodes) for opsets, nodes in owners]


def _imports(opsets: Iterable[onnx.OperatorSetIdProto]) -> Mapping[str, int]:
    return {normal_domain(opset.domain): opset.version for opset in opsets}


def _check_operator(domain: str, op_type: str, version: int, where: str) -> None:
    if onnx.defs.has(op_type, max_inclusive_version=version, domain=domain):
        return
    name = shown_operator(domain, op_type)
    versions = [s.since_version for s in _schemas(domain) if s.name == op_type]
    if not versions:
        names = sorted({s.name for s in _schemas(domain)})
        raise PolicyError(f"the operator {name} is unknown", where=where, hint=did_you_mean(op_type, names))
    raise ModelError(
        f"the operator {name} is not in version {version} of {shown_domain(domain)}, which the model imports",
        where=where,
        hint=f"it came with version {min(versions)}",
    )


def _check_texts(node: onnx.NodeProto) -> None:
    """Checks what the gate cannot tell from other bytes: in ONNX's own operators they are text."""
    for attribute in node.attribute:
        try:
            for text in (attribute.s, *attribute.strings):
                text.decode()
        except UnicodeDecodeError as err:
            raise ModelError(f"the attribute {attribute.name!r:.80} is not UTF-8", where=shown_node(node)) from err


def _check_indices(node: onnx.NodeProto) -> None:
    """Checks what onnx 1.23 does not before it uses it as an index (found by fuzzing)."""
    for attribute in node.attribute:
        if attribute.name in ("axis", "axes"):
            for axis in (attribute.i, *attribute.ints):
                if not -MAX_RANK <= axis <= MAX_RANK:
                    raise ModelError(f"the attribute {attribute.name!r} is {axis}", where=shown_node(node))
        if attribute.name == "num_outputs" and node.op_type == "Split" and attribute.i != len(node.output):
            what = f"num_outputs is {attribute.i}, but there are {len(node.output)} outputs"
            raise ModelError(what, where=shown_node(node))


def _schemas(domain: str) -> list[onnx.defs.OpSchema]:
    return [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain]
