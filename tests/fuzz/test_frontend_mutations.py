# SPDX-License-Identifier: Apache-2.0
"""Mutated models: the gate says yes or raises one of our errors, and what it accepts protobuf reads the same way.

Behind the gate are libraries in C++ that a model may crash, so that part runs in a process of its own: this file is
also that program (`python test_frontend_mutations.py SEED COUNT`).
"""

import re
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import NndeployError
from nndeploy.frontend.load import load_model
from nndeploy.frontend.traversal import nodes_of
from nndeploy.onnx_gate.gate import check_bytes

TEXTS = (
    """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,1,8,8] x) => (float[1,2,8,8] y) <float[2,1,1,2] w = {1,2,3,4}, float[2] b = {1,2}> {
        c = Conv <kernel_shape = [1,2], pads = [0,0,0,1]> (x, w, b)
        y = LeakyRelu <alpha = 0.1> (c)
    }""",
    """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4] x, bool c) => (float[N,A] y) <int64[2] s = {0, -1}> {
        r = Reshape(x, s)
        y = If(c) <then_branch = t () => (float[i,j] p) { a = Shape(r)  p = Expand(r, a) },
                   else_branch = e () => (float[k,l] q) { q = Concat <axis = 1> (r, r) }>
    }""",
    """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[N] x) => (float[N] y) { h = local.f <a = 2> (x)  y = local.f <a = 3> (h) }
    <domain: "local", opset_import: ["" : 17]> f <a> (i) => (o) { o = CastLike(i, i)  t = Cast <to: int = @a> (i) }""",
    """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (uint8[1,8,4,4] x, float s, uint8 z) => (uint8[1,8,1,1] y) {
        a = com.microsoft.QLinearAdd(x, s, z, x, s, z, s, z)
        y = com.microsoft.QLinearGlobalAveragePool(a, s, z, s, z)
    }""",
    """<ir_version: 8, opset_import: ["" : 17]>
    g (int64 n, bool c, float[2] x) => (float[2] y, seq(float[2]) q) {
        y, o = Loop(n, c, x) <body = b (int64 i, bool ci, float[2] s) => (bool co, float[2] so, float[2] t)
            { co = Identity(ci)  so = Add(s, s)  t = Mul(s, s) }>
        q = SplitToSequence <axis = 0> (o)
    }""",
)


def base_models() -> list[bytes]:
    models = [onnx.parser.parse_model(text) for text in TEXTS]
    sparse = models[0].graph.sparse_initializer.add(dims=[4])
    sparse.values.CopyFrom(onnx.numpy_helper.from_array(np.array([5], np.float32), "s"))
    sparse.indices.CopyFrom(onnx.numpy_helper.from_array(np.array([2], np.int64)))
    models[1].metadata_props.add(key="author", value="someone")
    return [model.SerializeToString() for model in models]


BASES = base_models()
KINDS = ("set", "flip", "cut", "insert", "copy")
Change: TypeAlias = tuple[str, int, int, int]
"""Kind of change, where, and two bytes that it uses."""

byte = st.integers(0, 255)
edits = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 10**6), byte, byte), min_size=1, max_size=4)


def mutant(base: bytes, changes: list[Change]) -> bytes:
    data = bytearray(base)
    for kind, where, first, second in changes:
        at = where % max(1, len(data))
        if kind == "set":
            data[at : at + 1] = bytes([first])
        elif kind == "flip":
            data[at : at + 1] = bytes([(data[at] if data else 0) ^ 1 << first % 8])
        elif kind == "cut":
            del data[at : at + 1 + first % 8]
        elif kind == "insert":
            data[at:at] = bytes([first, second])[: 1 + second % 2]
        else:
            source = first * 256 + second
            data[at : at + 8] = data[source % max(1, len(data)) :][:8]
    return bytes(data)


def refusal_of(step: Callable[[bytes], object], data: bytes) -> NndeployError | None:
    """Returns the refusal, None where the step accepts; any other exception gets out and fails the test."""
    try:
        step(data)
    except NndeployError as err:
        return err
    return None


def is_clean(error: NndeployError) -> bool:
    return error.exit_code in (65, 77) and "\n" not in str(error)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(range(len(BASES))), edits)
def test_the_gate_agrees_with_protobuf_or_refuses(base: int, changes: list[Change]) -> None:
    data = mutant(BASES[base], changes)
    error = refusal_of(check_bytes, data)
    if error is not None:
        assert is_clean(error)
        return
    facts, parsed = check_bytes(data), onnx.load_from_string(data)
    assert facts.num_nodes == sum(1 for _ in nodes_of(parsed))
    assert facts.ir_version == parsed.ir_version
    assert {op for _, op in facts.operators} == {node.op_type for node in nodes_of(parsed)}


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=200))
def test_the_gate_refuses_random_bytes(data: bytes) -> None:
    error = refusal_of(check_bytes, data)
    assert error is not None
    assert is_clean(error)


def wild_numbers(text: str, rng: np.random.Generator) -> bytes | None:
    """Returns the model of a text in which some numbers are others, None where that is no text of a model."""
    wild = [-1, 0, 1, 2, 7, 65, 2**31, 2**36, -(2**63), 2**63 - 1]
    head, body = text.split("\n", 1)
    changed = re.sub(r"\b\d+\b", lambda m: m[0] if rng.random() < 0.85 else str(wild[rng.integers(len(wild))]), body)
    try:
        return onnx.parser.parse_model(f"{head}\n{changed}").SerializeToString()
    except onnx.parser.ParseError:
        return None


def byte_mutant(rng: np.random.Generator) -> bytes:
    kinds = KINDS if rng.random() < 0.2 else KINDS[:2]
    change = (kinds[rng.integers(len(kinds))], *map(int, rng.integers([10**6, 256, 256])))
    return mutant(BASES[rng.integers(len(BASES))], [change])


def load_mutants(seed: int, count: int) -> tuple[int, int]:
    """Loads mutants; returns how many loaded and how many were refused, and lets any other exception out."""
    rng = np.random.default_rng(seed)
    texts = [wild_numbers(TEXTS[rng.integers(len(TEXTS))], rng) for _ in range(count // 2)]
    models = [text for text in texts if text] + [byte_mutant(rng) for _ in range(count // 2)]
    errors = [refusal_of(load_model, model) for model in models]
    refused = [error for error in errors if error is not None]
    assert all(is_clean(error) for error in refused)
    return len(models) - len(refused), len(refused)


def test_no_mutant_crashes_the_whole_load_stage() -> None:
    """In a child, because what the gate accepts goes through the libraries."""
    command = [sys.executable, __file__, "1", "700"]
    child = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert child.returncode == 0, f"exit {child.returncode}: {child.stdout[-300:]} {child.stderr[-1500:]}"
    loaded, refused = map(int, child.stdout.split())
    assert loaded > 45
    assert refused > 160


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # a bomb is to be a failed test, not a dead machine
    print(*load_mutants(int(sys.argv[1]), int(sys.argv[2])))
