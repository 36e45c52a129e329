# SPDX-License-Identifier: Apache-2.0
"""Inverted residuals, transposed convolutions and pairs over planes against ONNX Runtime, at random shapes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest
from kernel_library import LEVELS_HERE, RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.expressions import Expression, const, operand
from nndeploy_native.steps.convolution import Convolution, Window
from nndeploy_native.steps.inverted_residual import InvertedResidual
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.tensors import Array, Layout, Tensor, fixed_shape
from onnx import TensorProto, helper, numpy_helper

RELU6: Expression = ("min", ("max", operand(0), const(0.0)), const(6.0))
PRELU: Expression = ("add", ("max", operand(0), const(0.0)), ("mul", operand(2), ("min", operand(0), const(0.0))))
ADDED: Expression = ("add", operand(0), operand(1))
TANH_ADDED: Expression = ("add", ("tanh", operand(0)), operand(1))


@every_level
def test_inverted_residual_gives_what_its_three_convolutions_give(level: str) -> None:
    rng = np.random.default_rng(3)
    for number in range(24):
        _check_inverted(level, rng, number)


@every_level
@pytest.mark.parametrize("buffer_bytes", [1, 9000, 40000, 150000])
def test_inverted_residual_of_a_small_buffer_goes_by_rows_or_groups(level: str, buffer_bytes: int) -> None:
    rng = np.random.default_rng(4)
    for number in range(4):
        _check_inverted(level, rng, number, buffer_bytes)


@every_level
def test_transposed_convolution_of_any_stride_dilation_and_padding(level: str) -> None:
    rng = np.random.default_rng(5)
    for number in range(30):
        _check_transposed(level, rng, number)


@every_level
def test_pair_over_planes_gives_what_its_two_convolutions_give(level: str) -> None:
    rng = np.random.default_rng(6)
    for number in range(36):
        _check_planar(level, rng, number)


def test_convolutions_that_do_not_fit_together_are_refused() -> None:
    rng = np.random.default_rng(7)
    x, hidden, y = (Tensor(name, (1, 8, 5, 5), Layout.BLOCKED) for name in ("xb", "h", "yb"))
    other, plain, result = replace(hidden, name="g"), Tensor("x", x.shape), Tensor("y", y.shape)
    low = replace(hidden, shape=(1, 8, 4, 5))
    first, second = _convolution(rng, hidden, other, (3, 3), groups=8), _convolution(rng, other, y)
    kernel = Window((3, 3), pads=(1, 1))
    wrong: list[NativeStep] = [
        InvertedResidual(_convolution(rng, x, low), Separable(replace(first, x=low), second)),
        InvertedResidual(_convolution(rng, x, low), Separable(first, second)),
        Separable(replace(first, x=plain, window=replace(first.window, pads=(1, -1))), second),
        Separable(replace(first, x=plain), replace(second, x=low)),
        replace(second, x=x, is_transposed=True, weights=np.zeros((8, 7, 3, 3), np.float32), window=kernel),
        replace(second, x=plain, is_transposed=True),
    ]
    for step in wrong:
        plan = plan_of([Convert(x, plain), step, Convert(result, y)], [plain], [result])
        with pytest.raises(RefusedError):
            run_plan(LEVELS_HERE[0], plan, [np.zeros((1, 8, 5, 5), np.float32)], [(1, 8, 5, 5)])


def _check_inverted(level: str, rng: np.random.Generator, number: int, buffer_bytes: int = 0) -> None:
    ranges = ((1, 4), (1, 40), (2, 200), (1, 70))
    images, inputs, wide, outputs = (int(rng.integers(least, most)) for least, most in ranges)
    kernel, stride = [(3, 3), (5, 5), (3, 3), (7, 7), (1, 4)][number % 5], int(rng.integers(1, 3 + (number % 4 == 0)))
    height, width = (int(rng.integers(size, 40)) for size in kernel)
    if number % 3 == 0:
        outputs, stride, kernel = inputs, 1, (3, 3)
    more = 4 if number % 8 == 5 and number % 3 else 0
    x, between, hidden, y = _tensors(
        (images, inputs, height, width), [(wide, (1, 1), 1, 0), (wide, kernel, stride, more), (outputs, (1, 1), 1, 0)]
    )
    expand = _convolution(rng, x, between, expression=[RELU6, PRELU, operand(0)][number % 3])
    first = _more_padded(_convolution(rng, between, hidden, kernel, stride, wide, RELU6), more)
    if number % 3 == 0:
        second = _convolution(rng, hidden, y, expression=[ADDED, TANH_ADDED][number % 2], residual=x)
    else:
        second = _convolution(rng, hidden, y, expression=PRELU)
    step = InvertedResidual(expand, Separable(first, second))
    _check(level, rng, step, [expand, first, second], threads=1 + number % 2, buffer_bytes=buffer_bytes)


def _check_transposed(level: str, rng: np.random.Generator, number: int) -> None:
    images, inputs, outputs = (int(rng.integers(1, most)) for most in (3, 70, 90))
    limits = ((20, 70), (6, 6), (4, 5), (4, 4))
    size, kernel, stride, dilation = ((int(rng.integers(1, y)), int(rng.integers(1, x))) for y, x in limits)
    if number % 3 == 0:
        stride, dilation = (2, 2), (1, 1)
    reach = [(kernel[i] - 1) * dilation[i] + 1 for i in range(2)]
    pads = [int(rng.integers(0, reach[i])) for i in range(2)]
    out = [(size[i] - 1) * stride[i] + reach[i] - pads[i] - int(rng.integers(0, 2)) for i in range(2)]
    out = [max(1, one) + (int(rng.integers(0, stride[i])) if number % 2 else 0) for i, one in enumerate(out)]
    x = Tensor("x0", (images, inputs, *size), Layout.BLOCKED)
    y = Tensor("x1", (images, outputs, *out), Layout.BLOCKED)
    residual = Tensor("r", y.shape, Layout.BLOCKED) if number % 4 == 1 else None
    step = _convolution(rng, x, y, kernel, expression=TANH_ADDED if residual else PRELU, residual=residual)
    window = Window(kernel, stride, (pads[0], pads[1]), dilation)
    step = replace(step, window=window, is_transposed=True)
    _check(level, rng, step, [step], threads=1 + number % 2)


def _check_planar(level: str, rng: np.random.Generator, number: int) -> None:
    images, channels, outputs = (int(rng.integers(1, most)) for most in (4, 40, 90))
    kernel, stride = [(3, 3), (5, 5), (2, 6), (3, 3)][number % 4], int(rng.integers(1, 4 if number % 2 else 3))
    height, width = (int(rng.integers(size, 75)) for size in kernel)
    more = 5 if number % 8 == 7 else 0
    made = [(channels, kernel, stride, more), (outputs, (1, 1), 1, 0)]
    x, hidden, y = _tensors((images, channels, height, width), made)
    if number % 3 != 1:
        x = replace(x, layout=Layout.PLAIN)
    if number % 3 != 2:
        y = replace(y, layout=Layout.PLAIN)
    first = _more_padded(_convolution(rng, x, hidden, kernel, stride, channels, [PRELU, RELU6][number % 2]), more)
    second = _convolution(rng, hidden, y, expression=[RELU6, PRELU][number % 2])
    buffer_bytes = 5000 if number % 5 == 0 else 0
    _check(level, rng, Separable(first, second), [first, second], threads=1 + number % 2, buffer_bytes=buffer_bytes)


def _tensors(shape: tuple[int, int, int, int], steps: Sequence[tuple[int, tuple[int, int], int, int]]) -> list[Tensor]:
    """Returns blocked tensors, each made of the one before: channels, kernel, stride, padding beside half a kernel."""
    tensors = [Tensor("x0", shape, Layout.BLOCKED)]
    for channels, kernel, stride, more in steps:
        images, _, *size = tensors[-1].shape
        out = [(size[i] + 2 * (kernel[i] // 2 + more) - kernel[i]) // stride + 1 for i in range(2)]
        tensors.append(Tensor(f"x{len(tensors)}", (images, channels, out[0], out[1]), Layout.BLOCKED))
    return tensors


def _convolution(
    rng: np.random.Generator,
    x: Tensor,
    output: Tensor,
    kernel: tuple[int, int] = (1, 1),
    stride: int = 1,
    groups: int = 1,
    expression: Expression = RELU6,
    residual: Tensor | None = None,
) -> Convolution:
    inputs, outputs = x.channels // groups, output.channels
    scale = np.float32(1.5 / np.sqrt(inputs * kernel[0] * kernel[1]))
    weights = rng.standard_normal((outputs, inputs, *kernel), np.float32) * scale
    numbers = rng.uniform(0.1, 0.4, outputs).astype(np.float32) if expression is PRELU else None
    window = Window(kernel, (stride, stride), (kernel[0] // 2, kernel[1] // 2))
    bias = None if rng.integers(4) == 0 else rng.standard_normal(outputs, np.float32)
    return Convolution(output, x, weights, bias, window, groups, Epilogue(expression, residual, numbers))


def _more_padded(step: Convolution, more: int) -> Convolution:
    above, left = step.window.pads
    return replace(step, window=replace(step.window, pads=(above + more, left + more)))


def _check(
    level: str,
    rng: np.random.Generator,
    step: NativeStep,
    chain: Sequence[Convolution],
    *,
    threads: int,
    buffer_bytes: int = 0,
) -> None:
    """Runs a step alone, and its convolutions one after the other with ONNX Runtime."""
    read = [*dict.fromkeys(step.inputs)]
    arrays = {tensor.name: rng.standard_normal(fixed_shape(tensor.shape), np.float32) for tensor in read}
    plain = [Tensor(f"p{i}", tensor.shape) if tensor.is_blocked else tensor for i, tensor in enumerate(read)]
    steps: list[NativeStep] = [Convert(a, b) for a, b in zip(read, plain, strict=True) if a != b]
    output = Tensor("y", step.output.shape) if step.output.is_blocked else step.output
    steps += [step, *([Convert(output, step.output)] if output != step.output else [])]
    plan, given = plan_of(steps, plain, [output]), [arrays[tensor.name] for tensor in read]
    found = run_plan(level, plan, given, [fixed_shape(output.shape)], threads=threads, buffer_bytes=buffer_bytes)[0]
    for one in chain:
        arrays[one.output.name] = _expected(one, arrays)
    assert_close(found, arrays[step.output.name], level)


def _expected(step: Convolution, arrays: dict[str, Array]) -> Array:
    window, x, end = step.window, arrays[step.x.name], step.epilogue
    kernel, pads = fixed_shape(window.kernel), fixed_shape(window.pads)
    weights = step.weights.swapaxes(0, 1) if step.is_transposed else step.weights
    size, out = fixed_shape(step.x.shape)[2:], fixed_shape(step.output.shape)[2:]
    small, large = (size, out) if step.is_transposed else (out, size)
    spans = [(small[i] - 1) * window.strides[i] + (kernel[i] - 1) * window.dilations[i] + 1 for i in range(2)]
    behind = [spans[i] - pads[i] - large[i] for i in range(2)]
    after = [max(0, one) for one in behind]
    shortage = [max(0, -one) if step.is_transposed else 0 for one in behind]
    node = helper.make_node(
        "ConvTranspose" if step.is_transposed else "Conv", ["x", "w"], ["y"], strides=window.strides,
        pads=[*pads, *after], dilations=window.dilations, group=step.groups,
    )  # fmt: skip
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ascontiguousarray(weights), "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    sums: Array = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    sums = np.pad(sums, ((0, 0), (0, 0), (0, shortage[0]), (0, shortage[1])))
    if step.bias is not None:
        sums = sums + step.bias.reshape(-1, 1, 1)
    numbers = np.zeros(1) if end.channel is None else end.channel.reshape(-1, 1, 1)
    residual = numbers if end.residual is None else arrays[end.residual.name]
    return _value(end.expression, [sums, residual, numbers]).astype(np.float32)


def _value(expression: Expression, operands: Sequence[Array]) -> Array:
    """Returns an expression's value, of the operators that the tests use."""
    match expression:
        case ("operand", int(number)):
            return operands[number]
        case ("const", float(value)):
            return np.array(value)
    name, *parts = expression
    functions = {"min": np.minimum, "max": np.maximum, "add": np.add, "mul": np.multiply, "tanh": np.tanh}
    values = [_value(part, operands) for part in parts if isinstance(part, tuple)]
    result: Array = functions[str(name)](*values)
    return result
