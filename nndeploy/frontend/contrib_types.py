# SPDX-License-Identifier: Apache-2.0
"""Output types of ONNX Runtime's own operators (com.microsoft), which onnx's inference does not know.

Without them nothing after the first such operator has a type. Each has the output type of an ONNX operator on some of
its inputs, so onnx's own rule for that one is asked:

    com.microsoft::QLinearAdd(a, a_scale, a_zero, b, ...)  has the type of  Add(a, b)

The rules are known to onnx only inside `contrib_types_known`: its checker must not hold nodes against them.

Source: ONNX Runtime, docs/ContribOperators.md.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import onnx
import onnx.defs
import onnx.helper
import onnx.shape_inference

from nndeploy.frontend.traversal import nodes_of

_DOMAIN, _VERSION = "com.microsoft", 1
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Rule:
    """Output 0 has the type of `like` on the inputs `inputs`; it has the element type of the first of `element_of`.

    `every` N repeats the last input every N inputs (a variadic one). The attributes `unless` must be missing or 0.
    `turned` are the attributes that say which of the inputs have their last two axes the other way round; `last` is the
    attribute with the last size of the output, `thirds` says that it is a third, `has_own_last` that it is another one.
    With `adds_axis` it has one more. The outputs `also` have the same type. The inputs `same_last` must be of equally
    many axes, equal in the last.
    """

    like: str
    inputs: tuple[int, ...] = (0,)
    attributes: tuple[str, ...] = ()
    element_of: tuple[int, ...] = ()
    every: int = 0
    unless: tuple[str, ...] = ()
    turned: tuple[str, ...] = ()
    last: str = ""
    thirds: bool = False
    has_own_last: bool = False
    same_last: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
    adds_axis: bool = False


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")

_RULES: dict[str, _Rule] = {
    "Attention": _Rule("MatMul", (0, 1), thirds=True),
    "BiasGelu": _Rule("Relu"),
    "DynamicQuantizeMatMul": _Rule("MatMul", (0, 1), element_of=(0,)),
    "FastGelu": _Rule("Relu"),
    "FusedConv": _Rule("Conv", (0, 1), _CONV),
    "FusedGemm": _Rule("Gemm", (0, 1), ("transA", "transB")),
    "FusedMatMul": _Rule("MatMul", (0, 1), unless=("transBatchA", "transBatchB"), turned=("transA", "transB")),
    "Gelu": _Rule("Relu"),
    "GroupQueryAttention": _Rule("Relu", has_own_last=True),
    "MatMulIntegerToFloat": _Rule("MatMul", (0, 1), element_of=(2,)),
    "MatMulNBits": _Rule("Relu", last="N"),
    "MultiHeadAttention": _Rule("Relu", same_last=(0, 2)),
    "QGemm": _Rule("Gemm", (0, 3), ("transA", "transB"), element_of=(8, 1)),
    "QLinearAdd": _Rule("Add", (0, 3)),
    "QLinearAveragePool": _Rule("AveragePool", (0,), _POOL, unless=("channels_last",)),
    "QLinearConcat": _Rule("Concat", (2,), ("axis",), every=3),
    "QLinearGlobalAveragePool": _Rule("GlobalAveragePool", unless=("channels_last",)),
    "QLinearLeakyRelu": _Rule("Relu"),
    "QLinearMul": _Rule("Mul", (0, 3)),
    "QLinearSigmoid": _Rule("Relu"),
    "QLinearSoftmax": _Rule("Relu"),
    "QuickGelu": _Rule("Relu"),
    "RotaryEmbedding": _Rule("Relu"),
    "SkipLayerNormalization": _Rule("Relu", also=(3,)),
    "SkipSimplifiedLayerNormalization": _Rule("Relu", also=(3,)),
    "Tokenizer": _Rule("Relu", adds_axis=True),
}


@contextmanager
def contrib_types_known(model: onnx.ModelProto) -> Iterator[None]:
    """Lets onnx's shape inference know the operators of the table that the model uses, while the context lasts."""
    used = {node.op_type for node in nodes_of(model) if node.domain == _DOMAIN}
    with _lock:
        known = [op for op in sorted(used & _RULES.keys()) if not onnx.defs.has(op, domain=_DOMAIN)]
        for op_type in known:
            onnx.defs.register_schema(_schema(op_type, _RULES[op_type]))
        try:
            yield
        finally:
            for op_type in known:
                onnx.defs.deregister_schema(op_type, _VERSION, _DOMAIN)


def _schema(op_type: str, rule: _Rule) -> onnx.defs.OpSchema:
    any_number = onnx.defs.OpSchema.FormalParameterOption.Variadic
    several = [
        onnx.defs.OpSchema.FormalParameter(name, name, param_option=any_number, is_homogeneous=False, min_arity=0)
        for name in ("I", "O")
    ]
    every_type = onnx.defs.get_schema("Identity").type_constraints[0].allowed_type_strs
    constraints = [(name, every_type, "") for name in ("I", "O")]
    schema = onnx.defs.OpSchema(
        op_type, _DOMAIN, _VERSION, inputs=several[:1], outputs=several[1:], type_constraints=constraints
    )
    schema.set_type_and_shape_inference_function(lambda context: _infer(context, rule))
    return schema


def _infer(context: onnx.shape_inference.InferenceContext, rule: _Rule) -> None:
    """Sets the type of output 0 where all that it depends on is known; a node that does not fit gets none."""
    indices = list(rule.inputs)
    if rule.every:
        indices += range(indices[-1] + rule.every, context.get_num_inputs(), rule.every)
    if max(indices) >= context.get_num_inputs() or any(_attribute(context, name).i for name in rule.unless):
        return
    types = [_tensor_type(context, index) for index in indices]
    given = (one for index in rule.element_of if (one := _tensor_type(context, index)) is not None)
    element = next(given, None) if rule.element_of else types[0]
    if element is None or None in types or not _have_the_same_last(context, rule.same_last):
        return
    for name, one in zip(rule.turned, types, strict=False):
        if _attribute(context, name).i and one is not None and not _turn(one):
            return
    node = onnx.helper.make_node(rule.like, [f"i{index}" for index in indices], ["o"])
    node.attribute.extend(a for name in rule.attributes if (a := _attribute(context, name)).name)
    result = _output_type(node, [t for t in types if t is not None])
    if rule.thirds and (result is None or not _take_a_third(result, _attribute(context, "qkv_hidden_sizes").ints)):
        return
    if result is None or (rule.last and not _end_with(result, _attribute(context, rule.last).i)):
        return
    if rule.has_own_last and result.tensor_type.shape.dim:
        result.tensor_type.shape.dim[-1].Clear()
    if rule.adds_axis:
        result.tensor_type.shape.dim.add()
    result.tensor_type.elem_type = element.tensor_type.elem_type
    for number in (0, *rule.also):
        if number < context.get_num_outputs():
            context.set_output_type(number, result)


def _have_the_same_last(context: onnx.shape_inference.InferenceContext, indices: Sequence[int]) -> bool:
    """Returns whether inputs are there, of equally many axes, the last one of the same size."""
    types = [_tensor_type(context, index) for index in indices]
    shapes = [list(one.tensor_type.shape.dim) for one in types if one is not None]
    ends = {(len(dims), dims[-1].dim_value if dims else 0) for dims in shapes}
    return not indices or (len(shapes) == len(indices) and len(ends) == 1 and min(ends)[1] > 0)


def _take_a_third(value_type: onnx.TypeProto, parts: Sequence[int]) -> bool:
    """Makes the last axis that of the values among queries, keys and values; returns False where it is not known."""
    dims = value_type.tensor_type.shape.dim
    size = dims[-1].dim_value if dims else 0
    if not size or (parts and (len(parts) != 3 or sum(parts) != size)) or (not parts and size % 3):
        return False
    return _end_with(value_type, parts[2] if parts else size // 3)


def _turn(value_type: onnx.TypeProto) -> bool:
    """Puts the last two axes the other way round; returns False where there are none."""
    dims = value_type.tensor_type.shape.dim
    if len(dims) < 2:
        return False
    last = onnx.TensorShapeProto.Dimension()
    last.CopyFrom(dims[-1])
    dims[-1].CopyFrom(dims[-2])
    dims[-2].CopyFrom(last)
    return True


def _end_with(value_type: onnx.TypeProto, size: int) -> bool:
    """Gives the last axis another size; returns False where there is no axis, or no such size."""
    dims = value_type.tensor_type.shape.dim
    if not dims or size < 1:
        return False
    dims[-1].Clear()
    dims[-1].dim_value = size
    return True


def _tensor_type(context: onnx.shape_inference.InferenceContext, index: int) -> onnx.TypeProto | None:
    found = context.get_input_type(index) if index < context.get_num_inputs() else None
    return found if found is not None and found.HasField("tensor_type") else None


def _attribute(context: onnx.shape_inference.InferenceContext, name: str) -> onnx.AttributeProto:
    return context.get_attribute(name) or onnx.AttributeProto()


def _output_type(node: onnx.NodeProto, types: list[onnx.TypeProto]) -> onnx.TypeProto | None:
    """Returns the type of the output of a node of ONNX; the elements count as float, which every operator takes."""
    as_float = {}
    for name, value_type in zip(node.input, types, strict=True):
        as_float[name] = onnx.TypeProto()
        as_float[name].CopyFrom(value_type)
        as_float[name].tensor_type.elem_type = onnx.TensorProto.FLOAT
    try:
        return onnx.shape_inference.infer_node_outputs(onnx.defs.get_schema(node.op_type), node, as_float).get("o")
    except Exception:  # whatever the library's C++ throws: then nothing is known of the output
        return None
