# SPDX-License-Identifier: Apache-2.0
"""The program file: round trip, and a line for whatever is not one. Graphs on the way to the child: round trip."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from nndeploy_cudnn.graph import Graph, GraphOperation, GraphTensor, graph_from_json, graph_to_json
from nndeploy_cudnn.program import Binding, Program, ProgramStep, Tensor, program_from_json, program_to_json

from nndeploy.errors import BundleError

PROGRAM = Program(
    cudnn_version=92800, gpu="NVIDIA H200", inputs=(Tensor("x", "float32", (1, 3)),),
    outputs=(Tensor("y", "float16", ()),), constant_bytes=512, arena_bytes=256, workspace_bytes=0,
    constants=(("c000001", 256, 12),), plans=((0, 10), (10, 5)),
    steps=(
        ProgramStep("t", 0, (Binding(1, "input", 0, 0), Binding(2, "constant", 0, 256), Binding(3, "arena", 0, 0))),
        ProgramStep("y", 1, (Binding(1, "arena", 0, 0), Binding(2, "output", 0, 0)), ((3, 0.001),)),
    ),
)  # fmt: skip


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    data = json.loads(program_to_json(PROGRAM))
    change(data)
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def test_program_comes_back_from_its_text() -> None:
    assert program_from_json(program_to_json(PROGRAM)) == PROGRAM


@pytest.mark.parametrize(("change", "said"), [
    (lambda d: d.update(format=2), "format 1"), (lambda d: d.update(more=1), "unknown fields"),
    (lambda d: d.pop("gpu"), "malformed at None"), (lambda d: d.update(arena_bytes=-1), "malformed at -1"),
    (lambda d: d.update(arena_bytes=True), "malformed at True"), (lambda d: d.update(arena_bytes=1 << 60), "malformed"),
    (lambda d: d.update(steps={}), "malformed at {}"), (lambda d: d["inputs"][0].pop(), "malformed"),
    (lambda d: d["inputs"][0].__setitem__(1, "int64"), "'x' is of type 'int64'"),
    (lambda d: d["steps"][0].__setitem__(1, 2), "runs plan 2 of 2"),
    (lambda d: d["steps"][0][2][0].__setitem__(1, "stack"), "malformed at 'stack'"),
    (lambda d: d["steps"][0][2][0].__setitem__(2, 1), "outside the input memory"),
    (lambda d: d["steps"][0][2][1].__setitem__(3, 512), "outside the constant memory"),
    (lambda d: d["steps"][0][2][2].__setitem__(3, 256), "outside the arena memory"),
    (lambda d: d["steps"][1][2][1].__setitem__(2, 1), "outside the output memory"),
    (lambda d: d["steps"][1][3][0].__setitem__(1, "x"), "malformed at 'x'"),
    (lambda d: d["constants"][0].__setitem__(2, 257), "'c000001' reaches outside"),
])  # fmt: skip
def test_what_is_no_program_gets_one_line(change: Callable[[dict[str, Any]], object], said: str) -> None:
    with pytest.raises(BundleError, match=said) as caught:
        program_from_json(changed(change))
    assert "\n" not in str(caught.value)


def test_text_that_is_no_json_gets_one_line() -> None:
    with pytest.raises(BundleError):
        program_from_json(b"{")


def test_program_without_steps_is_one() -> None:
    empty = replace(PROGRAM, steps=(), plans=(), constants=())
    assert program_from_json(program_to_json(empty)) == empty


def test_graph_comes_back_from_its_text() -> None:
    graph = Graph(
        (GraphTensor(1, (1, 3, 8, 8), (192, 64, 8, 1), "float32"),
         GraphTensor(2, (1, 1, 1, 1), (1, 1, 1, 1), "float32", by_value=True),
         GraphTensor(3, (1, 3, 8, 8), (192, 64, 8, 1), "float16", virtual=True, alignment=4)),
        (GraphOperation("pool", (("x", 1), ("y", 3)), (("mode", "max"), ("window", (2, 2)), ("scale", 0.5))),),
        exact=True,
    )  # fmt: skip
    assert graph_from_json(graph_to_json(graph)) == graph
