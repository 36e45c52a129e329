# SPDX-License-Identifier: Apache-2.0
"""Random networks of all operators that the backend has, in all orders; the same for the same seed.

Values are images (N, C, H, W) or of any other rank; plain and blocked ends, residuals that are read again, activations
in every form, several outputs. Numbers stay near one, so that a difference to float64 is an error and no rounding.
"""

import math
import random
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import onnx
from native_models import Array
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]
MOST_ELEMENTS = 60_000
MOST_PRODUCTS = 12_000_000
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 19, 24, 31, 32, 33, 40, 48, 63, 64, 70, 96, 129, 160, 200)
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 15, 16, 17, 20, 28, 29, 31, 32, 33, 40, 56, 64, 100, 112, 160, 200)
ACTIVATIONS = (
    "Relu", "HardSwish", "Sigmoid", "Tanh", "Elu", "LeakyRelu", "HardSigmoid", "Softplus", "Abs", "Neg", "Erf", "Gelu",
    "clip", "silu", "hardswish spelled", "prelu", "channel", "square", "bounded", "Mish", "Sin", "Cos", "Atan", "Asinh",
    "Celu", "Selu", "Softsign", "leaky spelled",
)  # fmt: skip
WHOLE_OPERATORS = ("Add", "Sub", "Mul", "Max", "Min", "Mod", "BitwiseAnd", "BitwiseXor", "Neg", "Abs", "Sign")
WHOLE_TYPES = (TensorProto.INT8, TensorProto.INT32, TensorProto.INT64)
ALONG_AXES = (
    "Softmax", "LogSoftmax", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


def short(array: Array) -> Array:
    """Returns float32 numbers that bfloat16 holds as well: what becomes whole numbers must not be rounded before."""
    kept: Array = (array.view(np.uint32) & 0xFFFF0000).view(np.float32)
    return kept


class Drawn:
    """A graph that grows node by node; `keeps_sizes` leaves out what only shapes that are fixed allow."""

    def __init__(self, seed: int, *, keeps_sizes: bool = False) -> None:
        self.random, self.numbers = random.Random(seed), np.random.default_rng(seed)  # noqa: S311 - no secret
        self.keeps_sizes = keeps_sizes
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}
        """The shapes of the values that nodes may be drawn to read."""
        self.all_shapes: dict[str, Shape] = {}
        self.inputs: dict[str, Array] = {}
        self.read: set[str] = set()
        self.types: dict[str, int] = {}
        self.said: set[str] = set()
        self.new_input(self.image_shape())

    def image_shape(self) -> Shape:
        while True:
            if self.keeps_sizes:
                return (1, self.random.choice(CHANNELS[:20]), 24, 24)
            channels = self.random.choice((1, 2, 3, 4)) if self.random.random() < 0.35 else self.random.choice(CHANNELS)
            shape = (
                self.random.choice((1, 1, 1, 2, 3)), channels, self.random.choice(SIZES), self.random.choice(SIZES),
            )  # fmt: skip
            if math.prod(shape) <= MOST_ELEMENTS:
                return shape

    def new_input(self, shape: Shape) -> str:
        name = self.given("x", short(self.normal(*shape)))
        self.shapes[name] = shape
        return name

    def given(self, prefix: str, array: Array) -> str:
        """Returns an input that no other draw takes."""
        name = f"{prefix}{len(self.inputs)}"
        self.inputs[name] = array
        return self._typed(name, array)

    def _typed(self, name: str, array: Array) -> str:
        self.types[name], self.all_shapes[name] = helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        return name

    def normal(self, *shape: int) -> Array:
        return self.numbers.standard_normal(shape).astype(np.float32)

    def constant(self, array: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return self._typed(name, array)

    def number(self, value: float, element: type[np.generic] = np.float32) -> str:
        return self.constant(np.array(value, element))

    def whole(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def shape_of(self, operator: str, *operands: str | Shape, **attributes: object) -> Shape:
        """Returns the shape that onnx infers for a node's first output; operands are values, or shapes of floats."""
        names = [one if isinstance(one, str) else f"s{i}" for i, one in enumerate(operands)]
        known, held, said = self.constants | self.inputs, [], []
        for name, one in dict(zip(names, operands, strict=True)).items():
            if name in known and known[name].size < 9:
                held.append(numpy_helper.from_array(known[name], name))
            elif name:
                shape = self.all_shapes[one] if isinstance(one, str) else one
                said.append(helper.make_tensor_value_info(name, self.types.get(name, TensorProto.FLOAT), shape))
        node = helper.make_node(operator, names, ["y"], **attributes)
        graph = helper.make_graph([node], "one", said, [onnx.ValueInfoProto(name="y")], held)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph.output[0].type.tensor_type.shape
        return tuple(dim.dim_value for dim in inferred.dim)

    def node(self, operator: str, inputs: Sequence[str], shape: Shape | None = None, **attributes: object) -> str:
        """Returns the output of a new node; onnx says of which shape, but of few operators."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=f"n{len(self.nodes)}", **attributes))
        self.read.update(inputs)
        found = self.shape_of(operator, *inputs, **attributes) if shape is None else shape
        self.shapes[name] = self.all_shapes[name] = found
        return name

    def hidden(self, kind: int, operator: str, inputs: Sequence[str], **attributes: object) -> str:
        """Returns the output of a new node of another type than float32, which no other draw takes."""
        name = self.node(operator, inputs, **attributes)
        del self.shapes[name]
        self.types[name] = kind
        return name

    def values(self, rank: int = 4) -> list[str]:
        return [name for name, shape in self.shapes.items() if len(shape) == rank]

    def same(self, name: str) -> list[str]:
        """Returns the values that have the same shape as one, without it."""
        return [other for other, shape in self.shapes.items() if shape == self.shapes[name] and other != name]

    # Convolutions.

    def conv(self, x: str, kind: str, *, keeps: bool = False, channels: int = 0) -> str | None:
        """Returns a convolution of an image or a row of pixels, None where it would be too large."""
        shape, inputs = self.shapes[x], self.shapes[x][1]
        kernel = 1 if kind == "pointwise" else self.random.choice((1, 2, 3, 3, 3, 5, 7))
        groups = inputs if kind == "depthwise" else 1
        if kind == "grouped":
            groups = self.random.choice([one for one in (2, 3, 4, 5) if inputs % one == 0] or [1])
        outputs = inputs if kind == "depthwise" else channels or self.random.choice(CHANNELS)
        outputs = max(1, outputs // groups) * groups
        kernels, strides, pads, dilations = [], [], [[], []], []
        for size in shape[2:]:
            one = self.random.choice((1, kernel)) if self.random.random() < 0.1 else kernel
            dilation = self.random.choice((1, 1, 1, 1, 2, 3)) if one > 1 else 1
            reach = (one - 1) * dilation
            before, after = self._pads(reach, kind)
            stride = 1 if kind == "pointwise" or self.random.random() < 0.7 else self.random.choice((2, 2, 3))
            if keeps or size + before + after <= reach:
                before, after = reach // 2, reach - reach // 2
            stride = 1 if keeps else stride
            for to, number in zip((kernels, strides, dilations), (one, stride, dilation), strict=True):
                to.append(number)
            pads[0].append(before)
            pads[1].append(after)
        of_group = inputs // groups
        ways = {"group": groups, "strides": strides, "pads": [*pads[0], *pads[1]], "dilations": dilations}
        out = self.shape_of("Conv", x, (outputs, of_group, *kernels), **ways)
        if math.prod(out) > MOST_ELEMENTS or math.prod(out) * of_group * math.prod(kernels) > MOST_PRODUCTS:
            return None
        weights = self.normal(outputs, of_group, *kernels) / np.float32(math.sqrt(of_group * math.prod(kernels)))
        operands = [x, self.constant(weights)]
        if self.random.random() < 0.7:
            operands.append(self.constant(self.normal(outputs) * np.float32(0.3)))
        return self.node("Conv", operands, **ways)

    def _pads(self, reach: int, kind: str) -> tuple[int, int]:
        if kind == "pointwise":
            return 0, 0
        match self.random.randrange(8):
            case 0:
                return 0, 0
            case 1:
                return self.random.randint(0, reach), self.random.randint(0, reach)
            case 2:
                return self.random.randint(0, reach + 9), self.random.randint(0, reach + 9)
        return reach // 2, reach - reach // 2

    def activation(self, x: str) -> str:
        shape = self.shapes[x]

        name = self.random.choice(ACTIVATIONS)
        per_channel = (shape[1], *[1] * (len(shape) - 2)) if len(shape) > 2 else (shape[-1],)
        match name:
            case "clip":
                return self.node("Clip", [x, self.number(0), self.number(6)])
            case "silu":
                return self.node("Mul", [x, self.node("Sigmoid", [x])])
            case "hardswish spelled":
                above = self.node("Clip", [self.node("Add", [x, self.number(3)]), self.number(0), self.number(6)])
                return self.node("Div", [self.node("Mul", [x, above]), self.number(6)])
            case "prelu":
                return self.node("PRelu", [x, self.constant(self.normal(*per_channel) * np.float32(0.3))])
            case "channel":
                numbers = self.constant(self.normal(*per_channel))
                return self.node(self.random.choice(("Mul", "Add", "Sub")), [x, numbers])
            case "leaky spelled":
                below = self.node("Mul", [x, self.number(0.3)])
                return self.node("Max", [x, below])
            case "square":
                return self.node("Pow", [self.node("Tanh", [x]), self.number(2)])
            case "bounded":  # a quotient, a root, an exponential and a logarithm of what cannot be near zero
                large = self.node("Add", [self.node("Exp", [self.node("Tanh", [x])]), self.number(1)])
                return self.node(self.random.choice(("Sqrt", "Reciprocal", "Log")), [large])
        return self.node(name, [x])

    def end(self, x: str) -> str:
        """Returns what may follow a convolution: activations and residuals, in any order."""
        for _ in range(self.random.choice((0, 1, 1, 2))):
            others = self.same(x)
            if others and self.random.random() < 0.5:
                operator = self.random.choice(("Add", "Add", "Add", "Mul", "Sub", "Max", "Min", "Sum"))
                pair = [x, self.random.choice(others[-4:] + others[:1])]
                self.random.shuffle(pair)
                x = self.node(operator, pair)
            else:
                x = self.activation(x)
        return x

    def one_conv(self, x: str) -> str | None:
        kind = self.random.choice(("pointwise", "depthwise", "depthwise", "dense", "dense", "grouped"))
        made = self.conv(x, kind, keeps=self.random.random() < 0.5)
        return None if made is None else self.end(made)

    def pair(self, x: str) -> str | None:
        """Returns depthwise and pointwise, often before that what makes a stem or an inverted residual of it."""
        first, keeps = self.random.random(), self.random.random() < 0.6
        at: str | None = x
        if first < 0.35:
            at = self.conv(x, "pointwise", channels=min(200, 2 * self.shapes[x][1] + self.random.randint(0, 20)))
        elif first < 0.6:
            at = self.conv(x, "dense", keeps=keeps)
        if at is not None and at != x and self.random.random() < 0.7:
            at = self.activation(at)
        before = at
        at = None if at is None else self.conv(at, "depthwise", keeps=keeps)
        if at is not None and self.random.random() < 0.7:
            at = self.activation(at)
        if at is None or before is None:
            return None
        at = self.conv(at, "pointwise", channels=self.shapes[before][1] if self.random.random() < 0.3 else 0)
        if at is not None and self.shapes[at] == self.shapes[before] and self.random.random() < 0.5:
            at = self.node("Add", [before, at])  # reads again what the pair reads
        elif at is not None and self.shapes[at] == self.shapes[x] and self.random.random() < 0.5:
            at = self.node("Add", [at, x])
        return None if at is None else self.end(at)

    def squeeze_excite(self, x: str) -> str | None:
        """Returns an image times a number of each channel, which follows from the image."""
        shape = self.shapes[x]
        pooled = self.node("GlobalAveragePool", [x])
        made = self.conv(pooled, "pointwise", channels=shape[1])
        return None if made is None else self.node("Mul", [x, self.node("Sigmoid", [made])])

    def batch_normalization(self, x: str) -> str:
        channels = self.shapes[x][1]
        numbers = [self.normal(channels) for _ in range(3)] + [np.abs(self.normal(channels)) + np.float32(0.5)]
        return self.node("BatchNormalization", [x, *map(self.constant, numbers)])

    def pool(self, x: str) -> str:
        kinds = ("MaxPool", "AveragePool", "LpPool")
        shape, kind = self.shapes[x], self.random.choice((*kinds[:2], *kinds, *(f"Global{one}" for one in kinds)))
        more = {"p": self.random.choice((1, 2, 3))} if kind.endswith("LpPool") else {}
        if kind.startswith("Global"):
            return self.node(kind, [x], **more)
        kernel = [min(self.random.choice((2, 3, 3, 5)), size) for size in shape[2:]]
        strides = [self.random.choice((1, 2, 2, 3)) for _ in kernel]
        dilations = [self.random.choice((1, 1, 1, 2))] * len(kernel)
        begins, ends = ([self.random.randint(0, (one - 1) // 2) for one in kernel] for _ in range(2))
        sides = zip(shape[2:], begins, ends, dilations, kernel, strict=True)
        if any(size + begin + end <= dilation * (one - 1) for size, begin, end, dilation, one in sides):
            dilations = [1] * len(kernel)
        rounds_up = self.random.random() < 0.3
        if kind == "AveragePool":
            more = {"count_include_pad": self.random.randrange(2)}
        return self.node(
            kind, [x], kernel_shape=kernel, strides=strides, pads=[*begins, *ends],
            dilations=dilations, ceil_mode=int(rounds_up), **more,
        )  # fmt: skip

    def resize(self, x: str) -> str | None:
        shape, mode = self.shapes[x], self.random.choice(("nearest", "linear", "linear", "cubic"))
        by = [self.random.choice((0.5, 1.0, 1.5, 2.0, 2.0, 3.0)) for _ in shape[2:]]
        by = by if self.random.random() < 0.3 else [by[0]] * len(by)
        out = [int(size * one) for size, one in zip(shape, (1, 1, *by), strict=True)]
        if math.prod(out) > MOST_ELEMENTS or 0 in out:
            return None
        coordinates = self.random.choice(("half_pixel", "half_pixel", "asymmetric", "pytorch_half_pixel"))
        smooth = int(mode != "nearest" and self.random.random() < 0.2)
        scales = self.number([1, 1, *by])
        return self.node(
            "Resize", [x, "", scales], mode=mode, coordinate_transformation_mode=coordinates, antialias=smooth
        )

    def join(self, x: str) -> str | None:
        """Returns the channels of several images as one, shuffled now and then."""
        shape = self.shapes[x]
        others = [
            name for name in self.values() if self.shapes[name][:1] + self.shapes[name][2:] == shape[:1] + shape[2:]
        ]
        parts = [x, *(self.random.choice(others) for _ in range(self.random.randint(1, 3)))]
        is_small = sum(math.prod(self.shapes[name]) for name in parts) <= MOST_ELEMENTS
        return self.node("Concat", parts, axis=1) if is_small else None

    def shuffle(self, x: str) -> str | None:
        """Returns an image with its channels in the order of a shuffle."""
        n, c, h, w = self.shapes[x]
        groups = next((one for one in (2, 3, 4, 5) if c % one == 0), 0)
        if not groups:
            return None
        apart = self.node("Reshape", [x, self.whole(n, groups, c // groups, h, w)])
        turned = self.node("Transpose", [apart], perm=[0, 2, 1, 3, 4])
        return self.node("Reshape", [turned, self.whole(n, c, h, w)])

    def split(self, x: str) -> str | None:
        """Returns the first of two parts of the channels; the other is there for later."""
        shape = self.shapes[x]
        if shape[1] < 2:
            return None
        first = self.random.randint(1, shape[1] - 1)
        names = [f"v{len(self.nodes)}{side}" for side in "ab"]
        self.nodes.append(helper.make_node("Split", [x, self.whole(first, shape[1] - first)], names, axis=1))
        self.read.add(x)
        for name, channels in zip(names, (first, shape[1] - first), strict=True):
            self.shapes[name] = self.all_shapes[name] = (shape[0], channels, *shape[2:])
        return names[0]

    def slice_(self, x: str) -> str:
        """Returns a part of a value along one axis, forwards or backwards, at places that may be data."""
        shape = self.shapes[x]
        axis, step = self.random.randrange(1, len(shape)), self.random.choice((1, 1, 2, -1))
        start = self.random.randint(0, shape[axis] - 1)
        count = self.random.randint(1, 1 + (start if step < 0 else shape[axis] - 1 - start) // abs(step))
        end = start + count * step
        bounds = [self.maybe_data(start), self.maybe_data(end if end >= 0 else -(2**31))]
        made = self.node("Slice", [x, *bounds, self.whole(axis), self.whole(step)])
        self.said.add(made)
        return made

    def maybe_data(self, *numbers: int) -> str:
        """Returns the name of whole numbers that are a constant, or an input."""
        if self.random.random() < 0.7:
            return self.whole(*numbers)
        return self.given("m", np.array(numbers, np.int64))

    def pad(self, x: str) -> str | None:
        """Returns a value with more around it, or less of it."""
        shape, mode = self.shapes[x], self.random.choice(("constant", "constant", "edge", "reflect", "wrap"))
        widths = [
            [self.random.randint(-1 if size > 2 else 0, min(3, size - 1)) if axis > 1 else 0 for axis, size in sizes]
            for sizes in [list(enumerate(shape))] * 2
        ]
        operands = [x, self.maybe_data(*widths[0], *widths[1])]
        if mode == "constant" and self.random.random() < 0.5:
            operands.append(self.constant(self.normal()))
        made = self.node("Pad", operands, mode=mode)
        self.said.add(made)
        return made

    def transposed_conv(self, x: str) -> str | None:
        """Returns a transposed convolution of an image or a volume, now and then with groups."""
        shape, kernel, stride = self.shapes[x], self.random.choice((2, 3, 4)), self.random.choice((1, 2, 2, 3))
        rank, inputs = len(shape) - 2, shape[1]
        groups = self.random.choice([one for one in (1, 1, 2, 3, inputs) if inputs % one == 0])
        of_group, pad = self.random.choice(CHANNELS[:14] if groups < 4 else (1, 2)), self.random.choice((0, 0, 1))
        more = self.random.randrange(stride)
        sizes = [(size - 1) * stride + kernel - 2 * pad + more for size in shape[2:]]
        products = math.prod(shape) * of_group * kernel**rank
        if (
            min(sizes) < 1
            or shape[0] * groups * of_group * math.prod(sizes) > MOST_ELEMENTS
            or products > MOST_PRODUCTS
        ):
            return None
        weights = self.normal(inputs, of_group, *[kernel] * rank) / np.float32(math.sqrt(inputs // groups))
        return self.node(
            "ConvTranspose", [x, self.constant(weights)], strides=[stride] * rank, pads=[pad] * 2 * rank,
            group=groups, output_padding=[more] * rank,
        )  # fmt: skip

    def volume(self, x: str) -> str | None:
        """Returns what is made of an image whose rows are those of several images."""
        n, c, h, w = self.shapes[x]
        depth = self.random.choice([one for one in (1, 2, 3, 4) if h % one == 0])
        deep = (n, c, depth, h // depth, w)
        at: str | None = self.node("Reshape", [x, self.whole(*deep)])
        for _ in range(self.random.randint(1, 2)):
            makers = (self.transposed_conv, self.pool, self.activation)
            if self.random.random() < 0.5:
                made = self.conv(at, self.random.choice(("dense", "dense", "pointwise", "grouped", "depthwise")))
                at = None if made is None else self.end(made)
            else:
                at = self.random.choice(makers)(at)
            if at is None:
                return None
        n, c, depth, h, w = self.shapes[at]
        return self.node("Reshape", [at, self.whole(n, c, depth * h, w)])

    def depth_to_space(self, x: str) -> str | None:
        if self.shapes[x][1] % 4:
            return None
        return self.node("DepthToSpace", [x], blocksize=2, mode=self.random.choice(("DCR", "CRD")))

    def space_to_depth(self, x: str) -> str | None:
        *_, h, w = self.shapes[x]
        by = next((one for one in (3, 2) if h % one == 0 and w % one == 0), 0)
        return self.node("SpaceToDepth", [x], blocksize=by) if by else None

    def tile(self, x: str) -> str | None:
        shape = self.shapes[x]
        times = [1 if axis == 0 else self.random.choice((1, 1, 2, 3)) for axis in range(len(shape))]
        is_small = math.prod((*shape, *times)) <= MOST_ELEMENTS
        return self.node("Tile", [x, self.whole(*times)]) if is_small else None

    def triangle(self, x: str) -> str:
        diagonal = self.number(self.random.randint(-5, 5), np.int64)
        return self.node("Trilu", [x, diagonal], upper=self.random.randrange(2))

    def backwards(self, x: str) -> str:
        """Returns a value whose second axis begins backwards."""
        batch, length = self.shapes[x][:2]
        lengths = self.constant(self.numbers.integers(1, length + 1, batch))
        return self.node("ReverseSequence", [x, lengths], batch_axis=0, time_axis=1)

    def add_one_hot(self, x: str) -> str:
        """Returns a value with numbers as an axis, one element of which is on, added to its last axis."""
        shape = self.shapes[x]
        depth, values = self.number(shape[-1], np.int64), self.constant(self.normal(2))
        numbers = self.places(shape[1:-1], shape[-1])
        return self.node("Add", [x, self.node("OneHot", [numbers, depth, values])])

    def transpose(self, x: str) -> str:
        shape = self.shapes[x]
        order = self.random.sample(range(len(shape)), len(shape))
        return self.node("Transpose", [x], perm=order)

    def along(self, x: str) -> str:
        """Returns a softmax along an axis or a reduction over several, scaled where it adds up many numbers."""
        shape, kind = self.shapes[x], self.random.choice(ALONG_AXES)
        if "Softmax" in kind:
            return self.node(kind, [x], axis=self.random.randrange(len(shape)))
        axes = self.random.sample(range(len(shape)), self.random.randint(1, len(shape)))
        made = self.node(kind, [x, self.whole(*axes)], keepdims=1)
        count = math.prod(shape[axis] for axis in axes)
        by = {"ReduceSum": 1 / count, "ReduceL1": 1 / count, "ReduceSumSquare": 1 / count, "ReduceL2": count**-0.5}
        return self.node("Mul", [made, self.number(by[kind])]) if kind in by else made

    def normalise(self, x: str) -> str:
        """Returns a value normalised; what is added to variances keeps small ones from making rounding large."""
        shape = self.shapes[x]
        kinds = ["LpNormalization"] + ["InstanceNormalization", "GroupNormalization"] * (len(shape) > 2)
        kinds += ["LayerNormalization", "MeanVarianceNormalization"] * (not self.keeps_sizes)
        kind = self.random.choice(kinds)
        if kind == "LpNormalization":
            large = self.node("Add", [self.node("Tanh", [x]), self.number(2)])
            return self.node(kind, [large], axis=self.random.randrange(len(shape)), p=self.random.choice((1, 2)))
        if kind == "MeanVarianceNormalization" and x in self.inputs:  # adds nothing: of noise it makes large numbers
            axes = sorted(self.random.sample(range(len(shape)), self.random.randint(2, len(shape))))
            return self.node(kind, [x], axes=axes)
        if "L" in kind or "V" in kind:
            axis = self.random.randrange(len(shape))
            operands = [x, *(self.constant(self.normal(*shape[axis:])) for _ in range(self.random.choice((1, 2))))]
            return self.node("LayerNormalization", operands, axis=axis, epsilon=0.1)
        operands = [x, *(self.constant(self.normal(shape[1])) for _ in range(2))]
        if kind == "InstanceNormalization":
            return self.node(kind, operands, epsilon=0.1)
        groups = self.random.choice([n for n in range(1, 9) if shape[1] % n == 0])
        return self.node(kind, operands, shape, num_groups=groups, epsilon=0.1)

    def ranked(self, x: str) -> str:
        """Returns the largest or smallest of an axis in order; of an input also numbers by where the first one is."""
        shape, axis = self.shapes[x], self.random.randrange(len(self.shapes[x]))
        if x in self.inputs and self.random.random() < 0.5:  # of what was computed a tiny difference may win
            if self.random.random() < 0.5:
                return self.node("Hardmax", [x], axis=axis)
            kind = self.random.choice(("ArgMax", "ArgMin"))
            place = self.hidden(TensorProto.INT64, kind, [x], axis=axis, keepdims=0)
            return self.node("Gather", [self.constant(self.normal(shape[axis])), place])
        count = self.random.randint(1, shape[axis])
        out = (*shape[:axis], count, *shape[axis + 1 :])
        name, largest = f"v{len(self.nodes)}", self.random.randrange(2)
        operands = [x, self.whole(count)]
        self.nodes.append(helper.make_node("TopK", operands, [name, ""], axis=axis, largest=largest))
        self.read.update(operands)
        self.shapes[name] = self.all_shapes[name] = out
        return name

    def beside(self, x: str) -> str:
        """Returns running sums along an axis, or an image less the more its neighbouring channels hold."""
        shape = self.shapes[x]
        if len(shape) == 4 and self.random.random() < 0.5:
            return self.node("LRN", [x], size=self.random.randint(1, 6), alpha=0.1)
        axis = self.random.randrange(len(shape))
        ways = {"exclusive": self.random.randrange(2), "reverse": self.random.randrange(2)}
        made = self.node("CumSum", [x, self.number(axis, np.int64)], **ways)
        return self.node("Mul", [made, self.number(1 / shape[axis])])

    def flat(self, x: str) -> str | None:
        """Returns a fully connected layer of a value as rows."""
        shape = self.shapes[x]
        width, outputs = math.prod(shape[1:]), self.random.choice(CHANNELS)
        if width > 20_000:
            return None
        rows = self.node("Flatten", [x], axis=1)
        weights = self.normal(outputs, width) / np.float32(math.sqrt(width))
        if self.random.random() < 0.5:
            operands = [rows, self.constant(weights), self.constant(self.normal(outputs))]
            return self.node("Gemm", operands, transB=1)
        return self.node("MatMul", [rows, self.constant(np.ascontiguousarray(weights.T))])

    def rows(self, x: str) -> str | None:
        """Returns a convolution of an image whose pixels are one row."""
        n, c, h, w = self.shapes[x]
        flat = self.node("Reshape", [x, self.whole(n, c, h * w)])
        made = self.conv(flat, self.random.choice(("pointwise", "depthwise", "dense")))
        return None if made is None else self.end(made)

    def attention(self, x: str) -> str | None:
        """Returns the product of an image's rows with those of another one, or of itself."""
        n, c, h, w = self.shapes[x]
        if n * c * h * h > MOST_ELEMENTS or n * c * h * h * w > MOST_PRODUCTS:
            return None
        turned = self.node("Transpose", [x], perm=[0, 1, 3, 2])
        made = self.node("MatMul", [x, turned])
        return self.node("Softmax", [made], axis=-1)

    def heads(self, x: str) -> str | None:
        """Returns attention of channels to channels, a head for each row of an image, in the order of the image."""
        n, c, h, w = self.shapes[x]
        if n * h * c * c > MOST_ELEMENTS or n * h * c * c * w > MOST_PRODUCTS:
            return None
        query = self.node("Transpose", [x], perm=[0, 2, 1, 3])
        key = self.node("Transpose", [x], perm=[0, 2, 3, 1])
        scores = self.node("MatMul", [query, key])
        scaled = self.node("Div", [scores, self.number(math.sqrt(w))])
        if self.random.random() < 0.5:
            mask = self.constant(self.normal(*self.random.choice(((h, 1, c), (c, c), (1, h, c, 1), (n, 1, 1, c)))))
            scaled = self.node("Add", [scaled, mask])
        shares = self.node("Softmax", [scaled], axis=-1)
        made = self.node("MatMul", [shares, query])
        return self.node("Transpose", [made], perm=[0, 2, 1, 3])

    def product(self, x: str) -> str | None:
        """Returns a value by a constant on either side: a matrix, one for each channel, or a vector; then an end."""
        *batch, rows, inner = self.shapes[x]
        columns, scale = self.random.choice(CHANNELS[:20]), np.float32(1 / math.sqrt(max(rows, inner)))
        if max(math.prod(batch) * max(rows, inner) * columns, rows * columns) > MOST_ELEMENTS:
            return None
        if math.prod(batch) * rows * inner * columns > MOST_PRODUCTS:
            return None
        match self.random.randrange(5):
            case 0:
                made = self.node("MatMul", [self.constant(self.normal(columns, rows) * scale), x])
            case 1 if batch:
                weights = self.constant(self.normal(batch[-1], inner, columns) * scale)
                made = self.node("MatMul", [x, weights])
            case 2 if batch:
                vector = self.constant(self.normal(inner) * scale)
                made = self.node("MatMul", [x, vector])
            case 3 if not batch:
                weights = self.constant(self.normal(columns, rows) * scale)
                made = self.node("Gemm", [x, weights], transA=1, transB=1, alpha=0.5)
            case _:
                weights = self.quantised(inner, columns) or self.constant(self.normal(inner, columns) * scale)
                made = self.node("MatMul", [x, weights])
        return self.end(made)

    def quantised(self, inner: int, columns: int) -> str | None:
        """Returns constant weights of 4 or 8 bits, dequantised in blocks or in columns; None now and then."""
        block = self.random.choice([size for size in (8, 16, 24, 32, 96, 128) if inner % size == 0] or [0])
        if self.random.random() < 0.5:
            return None
        dtype = self.random.choice((ml_dtypes.int4, ml_dtypes.uint4, np.int8, np.uint8))
        low, high = int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max)
        of_scales = (inner // block, columns) if block else (columns,)

        def drawn(*shape: int) -> str:
            return self.constant(self.numbers.integers(low, high + 1, shape).astype(dtype))

        scales = self.numbers.random(of_scales).astype(np.float32) / np.float32(high * math.sqrt(inner))
        inputs = [drawn(inner, columns), self.constant(scales), *([drawn(*of_scales)] * self.random.randrange(2))]
        attributes = {"axis": 0, "block_size": block} if block else {"axis": 1}
        return self.hidden(TensorProto.FLOAT, "DequantizeLinear", inputs, **attributes)

    def integer_conv(self, x: str) -> str | None:
        """Returns convolutions of an input as quantisers write them; all is exact, as scales are powers of two."""
        images = [name for name in self.values() if name in self.inputs]
        if not images:
            return None
        element = self.random.choice((np.uint8, np.int8))
        first = y = self.bytes_of(self.random.choice(images), element)
        for _ in range(self.random.randint(1, 3)):
            made = self.conv_of_bytes(y)
            if made is None:
                break
            y = made
            if self.random.random() < 0.5:
                y = self.node(*self.random.choice((("Relu", [y], self.shapes[y]), ("Abs", [y], self.shapes[y]))))
            y = self.bytes_of(y, element)
            if self.shapes[y] == self.shapes[first] and self.random.random() < 0.7:
                y = self.bytes_of(self.node("Add", [y, first]), element)
            if self.random.random() < 0.3:  # a gate
                y = self.bytes_of(self.node("Mul", [y, self.node("GlobalMaxPool", [y])]), element)
        return y

    def bytes_of(self, x: str, element: type[np.uint8] | type[np.int8]) -> str:
        kind = TensorProto.UINT8 if element is np.uint8 else TensorProto.INT8
        zero = self.random.choice((0, 3, 100) if element is np.uint8 else (0, 3, -100))
        numbers = (np.array(2.0 ** -self.random.randint(3, 6), np.float32), np.array(zero, element))
        given = [self.constant(one) for one in numbers]
        name = self.hidden(kind, "QuantizeLinear", [x, *given])
        return self.node("DequantizeLinear", [name, *given])

    def conv_of_bytes(self, x: str) -> str | None:
        """Returns a convolution of dequantised bytes by such weights, one scale each; None where it is large."""
        batch, channels, *sizes = self.shapes[x]
        groups = channels if self.random.random() < 0.4 else 1
        outputs = channels if groups > 1 else self.random.choice(CHANNELS)
        kernel = [self.random.choice((1, 2, 3, 3, 5)) for _ in sizes]
        strides = [self.random.choice((1, 1, 2)) for _ in sizes]
        pads = [self.random.randint(0, size // 2) for size in (*kernel, *kernel)]
        out = [
            (size + pads[axis] + pads[axis + 2] - kernel[axis]) // strides[axis] + 1 for axis, size in enumerate(sizes)
        ]
        shape = (batch, outputs, *out)
        if min(out) < 1 or math.prod((*shape, channels // groups, *kernel)) > MOST_PRODUCTS:
            return None
        weights = self.numbers.integers(-7, 8, (outputs, channels // groups, *kernel)).astype(np.int8)
        scale = np.array(2.0 ** -self.random.randint(4, 6), np.float32)
        w = self.hidden(TensorProto.FLOAT, "DequantizeLinear", [self.constant(weights), self.constant(scale)])
        return self.node("Conv", [x, w], group=groups, strides=strides, pads=pads)

    def recurrent(self, x: str) -> str | None:
        """Returns the states of a recurrent layer that walks down an image's rows."""
        n, c, h, w = self.shapes[x]
        hidden, directions = self.random.choice((1, 5, 8, 16, 17, 33)), self.random.choice((1, 2))
        operator, gates = self.random.choice((("LSTM", 4), ("LSTM", 4), ("GRU", 3), ("GRU", 3), ("RNN", 1)))
        if c * w > 3000 or h * n * gates * hidden * c * w > MOST_PRODUCTS or h > 40:
            return None
        turned = self.node("Transpose", [x], perm=[2, 0, 1, 3])
        steps = self.node("Reshape", [turned, self.whole(h, n, c * w)])
        weights = self.normal(directions, gates * hidden, c * w) / np.float32(math.sqrt(c * w))
        again = self.normal(directions, gates * hidden, hidden) / np.float32(2 * math.sqrt(hidden))
        direction = "bidirectional" if directions == 2 else self.random.choice(("forward", "reverse"))
        operands = [steps, self.constant(weights), self.constant(again)]
        if self.random.random() < 0.5:
            operands.append(self.constant(self.normal(directions, 2 * gates * hidden) * np.float32(0.3)))
        more = {"linear_before_reset": self.random.randrange(2)} if operator == "GRU" else {}
        return self.node(operator, operands, hidden_size=hidden, direction=direction, **more)

    def gather(self, x: str) -> str:
        shape = self.shapes[x]
        axis, count = self.random.randrange(1, len(shape)), self.random.randint(1, 9)
        numbers = [self.random.randint(-shape[axis], shape[axis] - 1) for _ in range(count)]
        return self.node("Gather", [x, self.whole(*numbers)], axis=axis)

    def pick(self, x: str) -> str:
        """Returns elements or slices of a value that constants name, or another input of whole numbers."""
        shape, axis = self.shapes[x], self.random.randrange(1, len(self.shapes[x]))
        match self.random.randrange(3):
            case 0:
                count = self.random.randint(1, 9)
                numbers = self.places((count,), shape[axis])
                return self.node("Gather", [x, numbers], axis=axis)
            case 1:
                out = tuple(self.random.randint(1, 9) if i == axis else size for i, size in enumerate(shape))
                return self.node("GatherElements", [x, self.places(out, shape[axis])], axis=axis)
        tuples = self.places((shape[0], 3, 1), shape[1])
        return self.node("GatherND", [x, tuples], batch_dims=1)

    def put(self, x: str) -> str:
        """Returns a value with elements or slices put in, or added to what is there."""
        shape, axis = self.shapes[x], self.random.randrange(1, len(self.shapes[x]))
        reduction = self.random.choice(("none", "add", "max", "min"))
        if self.random.random() < 0.5:
            out = tuple(self.random.randint(1, min(5, size)) if i == axis else size for i, size in enumerate(shape))
            places = self.places(out, shape[axis], apart=axis if reduction == "none" else None)
            operands = [x, places, self.constant(self.normal(*out))]
            return self.node("ScatterElements", operands, axis=axis, reduction=reduction)
        count = self.random.randint(1, min(5, shape[0]))
        places = self.places((count, 1), shape[0], apart=0 if reduction == "none" else None)
        updates = self.constant(self.normal(count, *shape[1:]))
        return self.node("ScatterND", [x, places, updates], reduction=reduction)

    def places(self, shape: Shape, size: int, apart: int | None = None) -> str:
        """Returns the name of places of an axis: a constant or an input; none comes twice along the axis `apart`."""
        element = self.random.choice((np.int32, np.int64))
        places = self.numbers.integers(-size, size, shape)
        if apart is not None:
            every = np.arange(size).reshape([-1 if axis == apart else 1 for axis in range(len(shape))])
            whole = np.broadcast_to(every, (*shape[:apart], size, *shape[apart + 1 :]))
            places = self.numbers.permuted(whole, axis=apart).take(range(shape[apart]), apart)
        if self.random.random() < 0.5:
            return self.constant(places.astype(element))
        return self.given("i", places.astype(element))

    def expand(self, x: str) -> str | None:
        shape = self.shapes[x]
        axis = next((i for i, size in enumerate(shape) if size == 1 and i), 0)
        by = self.random.choice(SIZES)
        out = (*shape[:axis], by, *shape[axis + 1 :])
        return self.node("Expand", [x, self.whole(*out)]) if axis and math.prod(out) <= MOST_ELEMENTS else None

    def round_(self, x: str) -> str | None:
        """Returns an input's numbers rounded: of what was computed a tiny difference could be a whole one."""
        if x not in self.inputs:
            return None
        return self.node(self.random.choice(("Floor", "Ceil")), [x])

    def input_like(self, x: str) -> str | None:
        """Returns an input of the same shape, None where none can be: what is compared or rounded must be exact."""
        found = [name for name in self.inputs if self.shapes.get(name) == self.shapes[x]]
        if not found and not self.keeps_sizes:
            found = [self.new_input(self.shapes[x])]
        return self.random.choice(found) if found else None

    def choose(self, x: str) -> str | None:
        """Returns a value where an input is larger than a number, and elsewhere another one."""
        given, operators = self.input_like(x), ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")
        if given is None:
            return None
        where = self.hidden(TensorProto.BOOL, self.random.choice(operators), [given, self.number(0.2)])
        if self.random.random() < 0.5:
            other = self.hidden(TensorProto.BOOL, "Less", [given, self.number(-0.7)])
            where = self.hidden(TensorProto.BOOL, self.random.choice(("And", "Or", "Xor", "Equal")), [where, other])
        if self.random.random() < 0.3:
            where = self.hidden(TensorProto.BOOL, "Not", [where])
        others = self.same(x) or [self.number(0.5)]
        pair = [x, self.random.choice(others)]
        self.random.shuffle(pair)
        return self.node("Where", [where, *pair])

    def count(self, x: str) -> str | None:
        """Returns a value with whole numbers added that are computed from an input."""
        given, kind = self.input_like(x), self.random.choice(WHOLE_TYPES)
        if given is None:
            return None
        larger = self.node("Mul", [given, self.number(4)])
        at = self.hidden(kind, "Cast", [larger], to=kind)
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        for _ in range(self.random.randint(1, 3)):
            operator = self.random.choice(WHOLE_OPERATORS)
            number = self.constant(np.array(self.random.choice((-3, 2, 5, 7)), dtype))
            at = self.hidden(kind, operator, [at] if operator in ("Neg", "Abs", "Sign") else [at, number])
        at = self.hidden(kind, "Mod", [at, self.number(5, dtype)])
        floats = self.node("Cast", [at], to=TensorProto.FLOAT)
        return self.node("Add", [x, self.node("Mul", [floats, self.number(0.2)])])

    def widened(self, x: str) -> str:
        """Returns a value that was float64 for some steps, and moved or joined with another of that type."""
        at = self.hidden(TensorProto.DOUBLE, "Cast", [x], to=TensorProto.DOUBLE)
        for _ in range(self.random.randint(1, 3)):
            operator = self.random.choice(("Add", "Mul", "Abs", "Neg", "Sigmoid", "Min", "Softmax", "Identity"))
            number = self.number(self.random.choice((0.3, -0.7, 1.1)), np.float64)
            operands = [at] if operator in ("Abs", "Neg", "Sigmoid", "Softmax", "Identity") else [at, number]
            at = self.hidden(TensorProto.DOUBLE, operator, operands)
        return self.node("Cast", [at], to=TensorProto.FLOAT)

    def measure(self, x: str) -> str:
        """Returns a value with a number added that follows from its shape, or times one of that shape."""
        if self.random.random() < 0.5:
            half = helper.make_tensor("half", TensorProto.FLOAT, [1], [0.5])
            filled = self.node(
                "ConstantOfShape", [self.hidden(TensorProto.INT64, "Shape", [x])], self.shapes[x], value=half
            )
            return self.node("Mul", [x, filled])
        operator, attributes = self.random.choice((("Shape", {"start": -1}), ("Size", {})))
        size = self.hidden(TensorProto.INT64, operator, [x], **attributes)
        rest = self.hidden(TensorProto.INT64, "Mod", [size, self.whole(3)])
        return self.node("Add", [x, self.node("Cast", [rest], to=TensorProto.FLOAT)])

    def second_input(self, x: str) -> str:
        return self.node("Add", [x, self.new_input(self.shapes[x])])

    def step(self, x: str) -> str | None:
        """Returns the output of one or several new nodes that read `x`, None where the draw does not fit."""
        if len(self.shapes[x]) != 4:
            return self.random.choice((
                self.activation, self.activation, self.along, self.normalise, self.ranked, self.beside, self.slice_,
                self.transpose, self.product, self.choose, self.count, self.measure, self.widened,
            ))(x)  # fmt: skip
        images: list[tuple[int, Callable[[str], str | None]]] = [
            (16, self.pair), (8, self.one_conv), (3, self.end), (2, self.pool), (2, self.squeeze_excite),
            (2, self.join), (2, self.resize), (1, self.batch_normalization), (1, self.normalise), (1, self.choose),
            (1, self.count), (1, self.measure), (1, self.widened),
        ]  # fmt: skip
        if not self.keeps_sizes:
            images += [
                (1, one)
                for one in (
                    self.shuffle, self.split, self.slice_, self.pad, self.transposed_conv, self.volume,
                    self.depth_to_space,
                    self.space_to_depth, self.tile, self.triangle, self.backwards, self.add_one_hot,
                    self.transpose, self.along, self.flat, self.rows, self.attention, self.heads, self.recurrent,
                    self.product, self.gather, self.expand, self.pick, self.put, self.round_, self.second_input,
                    self.ranked, self.beside, self.integer_conv,
                )
            ]  # fmt: skip
        weights, makers = zip(*images, strict=True)
        return self.random.choices(makers, weights)[0](x)

    def grown(self, steps: int) -> "Drawn":
        """Returns the graph with so many steps drawn; each mostly goes on where the last one ended."""
        at = "x0"
        for _ in range(steps):
            if self.random.random() < 0.2:
                at = self.random.choice(self.values() or list(self.shapes))
            at = self.step(at) or at
        return self

    def model(self, symbols: Sequence[str] = ()) -> onnx.ModelProto:
        """Returns the model, its inputs of symbolic sizes; what nobody reads is an output, now and then more."""
        made = [name for node in self.nodes for name in node.output if name]
        outputs = [name for name in made if name not in self.read or self.random.random() < 0.08]
        shapes = {
            name: [symbol or size for symbol, size in zip(symbols or [""] * len(one.shape), one.shape, strict=True)]
            for name, one in self.inputs.items()
        }
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(self.inputs[name].dtype), shapes[name])
            for name in shapes
            if name in self.read
        ]
        graph = helper.make_graph(
            self.nodes, "random", inputs, [self._said(name, symbols) for name in outputs],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
            value_info=[self._said(name, symbols) for name in made if name in self.shapes and name not in outputs],
        )  # fmt: skip
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)

    def _said(self, name: str, symbols: Sequence[str]) -> onnx.ValueInfoProto:
        """Returns a type, with its fixed shape where it depends on data or onnx 1.23 infers none."""
        is_inferred = name not in self.said and all(
            node.op_type != "GroupNormalization" or name not in node.output for node in self.nodes
        )
        kind = self.types.get(name, TensorProto.FLOAT)
        return helper.make_tensor_value_info(name, kind, None if is_inferred or symbols else self.shapes[name])
