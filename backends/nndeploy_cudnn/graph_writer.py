# SPDX-License-Identifier: Apache-2.0
"""Writes one cuDNN graph: numbers its tensors and remembers which memory each stands for.

Tensors are numbered in the order in which they are written, so the same work on other memory gives an equal graph and
one plan serves both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nndeploy_cudnn.frames import Frame
from nndeploy_cudnn.graph import MAX_ALIGNMENT, Graph, GraphOperation, GraphTensor, Scalar
from nndeploy_cudnn.operations import Pointwise, Value
from nndeploy_cudnn.views import Dims, View


@dataclass(frozen=True, slots=True)
class Work:
    """A graph, the memory of its tensors (uid, view), and the numbers that it gets by value (uid, number).

    `writes` is the view that it makes; `is_copy`: the values were there already.
    """

    graph: Graph
    bindings: tuple[tuple[int, View], ...]
    scalars: tuple[tuple[int, float], ...]
    writes: View
    is_copy: bool = False


class GraphWriter:
    """Collects tensors and operations."""

    def __init__(self) -> None:
        self._tensors: list[GraphTensor] = []
        self._operations: list[GraphOperation] = []
        self._bindings: list[tuple[int, View]] = []
        self._scalars: list[tuple[int, float]] = []

    def bound(self, dims: Dims, strides: Dims, view: View) -> int:
        """Returns the uid of a tensor in the memory of `view`."""
        alignment = math.gcd(MAX_ALIGNMENT, view.offset_bytes)
        uid = self._add(dims, strides, view.dtype, alignment=alignment)
        self._bindings.append((uid, view))
        return uid

    def virtual(self, dims: Dims, strides: Dims) -> int:
        """Returns the uid of a tensor that exists only inside the graph, in float32."""
        return self._add(dims, strides, "float32", virtual=True)

    def number(self, number: float, rank: int) -> int:
        """Returns the uid of a float32 number that is handed over by value."""
        uid = self._add((1,) * rank, (1,) * rank, "float32", by_value=True)
        self._scalars.append((uid, number))
        return uid

    def operation(self, kind: str, ports: Mapping[str, int], **attributes: Scalar | Dims) -> None:
        """Appends an operation."""
        self._operations.append(GraphOperation(kind, tuple(ports.items()), tuple(attributes.items())))

    def pointwise(
        self, operations: Sequence[Pointwise], frame: Frame, known: Mapping[Value, int], views: Mapping[Value, View],
        made: tuple[Value, View],
    ) -> None:  # fmt: skip
        """Appends element-wise operations in a frame; `known` are tensors that the graph has, `views` the others'.

        Raises:
            MisfitError: an operand does not fit the frame.
        """
        uids = dict(known)
        for operation in operations:
            for value in operation.inputs:
                if value not in uids:
                    view = views[value]
                    uids[value] = self.bound(*frame.fit(view.dims, view.strides), view)
            uids[operation.y] = self.result(operation.y, frame, made)
            ports = dict(zip(("x", "b"), (uids[value] for value in operation.inputs), strict=False))
            self.operation("pointwise", {**ports, "y": uids[operation.y]}, mode=operation.mode, **operation.attributes)

    def result(self, value: Value, frame: Frame, made: tuple[Value, View]) -> int:
        """Returns the uid of what an operation makes: in memory where it is the graph's result, else virtual."""
        result, view = made
        if value is result:
            return self.bound(*frame.fit(view.dims, view.strides), view)
        return self.virtual(*frame.inside(value.dims))

    def work(self, writes: View, exact: bool) -> Work:
        """Returns the graph and what belongs to it."""
        graph = Graph(tuple(self._tensors), tuple(self._operations), exact)
        return Work(graph, tuple(self._bindings), tuple(self._scalars), writes)

    def _add(
        self, dims: Dims, strides: Dims, dtype: str, *, virtual: bool = False, by_value: bool = False,
        alignment: int = MAX_ALIGNMENT,
    ) -> int:  # fmt: skip
        uid = len(self._tensors) + 1
        self._tensors.append(GraphTensor(uid, dims, strides, dtype, virtual, by_value, alignment))
        return uid
