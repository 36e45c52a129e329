# SPDX-License-Identifier: Apache-2.0
"""Cases of graphs inside nodes, of sequences, optional values, functions and attention."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from oracle.cases.case import Case, Fixed, floats, graph, integers, one

F32, F64 = np.float32, np.float64


def cases() -> Iterator[Case]:
    yield from _control()
    yield from _sequences()
    yield from _functions()
    yield from _attention()


IF = """g (bool c, float[N] x) => (float[M] y) {
  y = If (c) <then_branch = t () => (float[A] p) { p = Add(x, x) },
              else_branch = e () => (float[B] q) { q = Concat<axis=0>(x, x) }>
}"""
LOOP = """g (int64 n, bool go, float[2] x) => (float[2] y, float[K,2] all) {
  y, all = Loop (INPUTS) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] e, float[2] f) {
    e = Add(a, x) s = ReduceSum<keepdims=0>(e) d = Less(s, limit) f = Mul(e, a) }>
}"""
SCAN = """g (float[2] s, float[3,2] x) => (float[2] t, float[A,B] y) {
  t, y = Scan <num_scan_inputs = 1, MORE
    body = b (float[2] a, float[E] i) => (float[2] c, float[2] o) { c = Add(a, i) o = Mul(c, a) }> (s, x)
}"""


def _control() -> Iterator[Case]:
    for opset, c in product((11, 16, 21), (True, False)):
        yield graph(f"If {c} ranks alike", IF, opset=opset, c=np.array(c), x=floats(3))
    yield graph("If of one element", IF, c=np.array([True]), x=floats(3))
    header = LOOP.replace("=> (float[2] y, float[K,2] all)", "=> (float[2] y, float[K,2] all) <float limit = {9.0}>")
    for inputs, n, go in product(("n, go, x", " , go, x", "n, , x"), (0, 1, 4, 9), (True, False)):
        if "go" not in inputs and not go:
            continue
        fed = {"n": np.array(n), "go": np.array(go), "x": np.array([0.5, 1.0], F32)}
        yield graph(f"Loop ({inputs}) n={n} go={go}", header.replace("INPUTS", inputs), opset=13, **fed)
    for opset in (11, 19):
        yield graph(
            "Loop", header.replace("INPUTS", "n, go, x"), opset=opset, n=np.array(3), go=np.array(True), x=floats(2)
        )
    for more in (
        "", "scan_input_directions = [1],", "scan_output_directions = [1],", "scan_output_axes = [1],",
        "scan_input_directions = [1], scan_output_axes = [-1],",
    ):  # fmt: skip
        yield graph(f"Scan {more}", SCAN.replace("MORE", more), opset=11, s=floats(2), x=floats(3, 2))
    column = SCAN.replace("float[3,2] x", "float[2,3] x")
    yield graph(
        "Scan of columns", column.replace("MORE", "scan_input_axes = [1],"), opset=9, s=floats(2), x=floats(2, 3)
    )
    batches = """g (int64[2] n, float[2,2] s, float[2,3,2] x) => (float[2,2] t, float[2,3,2] y) {
      t, y = Scan <num_scan_inputs = 1,
        body = b (float[2] a, float[2] i) => (float[2] c, float[2] o) { c = Add(a, i) o = Mul(c, a) }> (LENGTHS, s, x)
    }"""
    for lengths in ("n", ""):
        yield graph(
            f"Scan of batches lengths={lengths}", batches.replace("LENGTHS", lengths), opset=8, n=np.array([3, 1]),
            s=floats(2, 2), x=floats(2, 3, 2),
        )  # fmt: skip
    nested = """g (bool c, int64 n, float[2] x) => (float[2] y) {
      y = Loop (n, c, x) <body = b (int64 i, bool k, float[2] a) => (bool d, float[2] e) {
      d = Identity(k) z = Cast<to=1>(i) p = Greater(z, one)
      e = If (p) <then_branch = t () => (float[2] u) { u = Add(a, x) },
                  else_branch = f () => (float[2] v) { v = Mul(a, z) }> }> }"""
    yield graph(
        "If in a Loop", nested.replace("=> (float[2] y)", "=> (float[2] y) <float one = {1.0}>"), c=np.array(True),
        n=np.array(4), x=floats(2),
    )  # fmt: skip


def _sequences() -> Iterator[Case]:
    a, b, c = floats(2), floats(2), floats(2)
    items = [a, b, c]
    for position in (0, 2, -1, -3, 3):
        yield one("SequenceAt", 11, items, np.array(position))
        yield one("SequenceErase", 11, items, np.array(position))
        yield one("SequenceInsert", 11, items, floats(2), np.array(position))
    yield one("SequenceErase", 11, items)
    yield one("SequenceInsert", 11, items, floats(2))
    yield one("SequenceInsert", 11, items, floats(2), np.array(4), note="position 4 of 3")
    yield one("SequenceConstruct", 11, a, b)
    yield one("SequenceLength", 11, items)
    for axis, new in ((0, 0), (0, 1), (1, 1), (-1, 1)):
        yield one("ConcatFromSequence", 11, items, axis=axis, new_axis=new)
    x = floats(5, 3)
    for split in (None, Fixed(np.array(2)), Fixed(np.array([1, 4])), np.array([2, 3])):
        for keep in (0, 1):
            yield one(
                "SplitToSequence", 11, x, *([] if split is None else [split]), axis=0, keepdims=keep,
                note=f"{None if split is None else 'sizes'} {getattr(split, 'value', split)} keep={keep}",
            )  # fmt: skip
    yield one("SplitToSequence", 11, x, axis=-1)
    yield one("SplitToSequence", 11, x, np.array(0), note="parts of 0")
    yield graph(
        "SequenceEmpty",
        "g (float[2] x) => (seq(float[2]) y) { e = SequenceEmpty() y = SequenceInsert(e, x) }",
        x=floats(2),
    )
    body = "SequenceMap <body = b (float[K] a, float[2] b) => (float[K] c) { c = Add(a, b) }>"
    yield graph(
        "SequenceMap", f"g (seq(float[2]) s, float[2] x) => (seq(float[2]) y) {{ y = {body} (s, x) }}", opset=17,
        s=items, x=a,
    )  # fmt: skip
    yield graph(
        "OptionalHasElement", "g (optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }", opset=18, x=a
    )
    yield graph(
        "OptionalHasElement of nothing", "g (optional(float[2]) x) => (bool y) { y = OptionalHasElement(x) }", opset=18,
        x=None,
    )  # fmt: skip
    yield graph(
        "OptionalGetElement", "g (optional(float[2]) x) => (float[2] y) { y = OptionalGetElement(x) }", opset=18, x=a
    )
    yield graph(
        "Optional", "g (float[2] x) => (float[2] y) { o = Optional(x) y = OptionalGetElement(o) }", opset=18, x=a
    )


CALL = """g (float[3] x) => (float[3] y) { y = local.f ATTRIBUTES (INPUTS) }
<domain: "local", opset_import: ["" : 17]> f FORMALS (a, b) => (c) { BODY }"""


def _functions() -> Iterator[Case]:
    local = ', "local" : 1'
    for name, formals, attributes, body in (
        ("default attribute", "<alpha: float = 0.25>", "", "c = Elu<alpha: float = @alpha>(a)"),
        ("given attribute", "<alpha: float = 0.25>", "<alpha = 2.0>", "c = Elu<alpha: float = @alpha>(a)"),
        ("attribute that nobody gives", "<alpha>", "", "c = Elu<alpha: float = @alpha>(a)"),
        ("required attribute", "<alpha>", "<alpha = 0.5>", "c = Elu<alpha: float = @alpha>(a)"),
        ("integer attribute", "<to: int = 6>", "", "i = Cast<to: int = @to>(a) c = CastLike(i, a)"),
        ("default of IsInf", "<n: int = 0>", "", "i = IsInf<detect_negative: int = @n>(a) c = Cast<to = 1>(i)"),
    ):  # fmt: skip
        text = CALL.replace("FORMALS", formals).replace("ATTRIBUTES", attributes).replace("BODY", body)
        x = np.array([-1.5, 2.25, -np.inf if "IsInf" in body else 0.5], F32)
        text = text.replace("INPUTS", "x").replace("(a, b)", "(a)")
        yield graph(f"function: {name}", text, opset=17, imports=local, x=x)
    absent = (
        CALL.replace("FORMALS", "").replace("ATTRIBUTES", "").replace("BODY", "c = Clip(a, b)").replace("INPUTS", "x")
    )
    yield graph("function: input that is absent", absent, opset=17, imports=local, x=floats(3))
    nested = """g (float[3] x) => (float[3] y) { y = local.f<s = 0.5>(x) }
    <domain: "local", opset_import: ["" : 17, "local" : 1]> f <s: float = 1.0> (a) => (c) {
      b = local.h<t: float = @s>(a) c = Add(b, a) }
    <domain: "local", opset_import: ["" : 17]> h <t: float = 3.0> (a) => (c) { c = LeakyRelu<alpha: float = @t>(a) }"""
    yield graph("function in a function", nested, opset=17, imports=local, x=floats(3))
    other = """g (float[2,3,2] x) => (float[2,3,2] y) { y = local.f(x) }
    <domain: "local", opset_import: ["" : 11]> f (a) => (c) { c = Softmax<axis = 1>(a) }"""
    yield graph("function of another opset", other, opset=17, imports=local, x=floats(2, 3, 2))
    branch = """g (bool k, float[3] x) => (float[3] y) { y = local.f<alpha = 0.5>(k, x) }
    <domain: "local", opset_import: ["" : 17]> f <alpha> (k, a) => (c) {
      c = If (k) <then_branch = t () => (p) { p = Elu<alpha: float = @alpha>(a) },
                  else_branch = e () => (q) { q = Neg(a) }> }"""
    for k in (True, False):
        yield graph(f"function with an If {k}", branch, opset=17, imports=local, k=np.array(k), x=floats(3))


def _attention() -> Iterator[Case]:
    q, k, v = floats(2, 2, 3, 4) / F32(2), floats(2, 2, 5, 4) / F32(2), floats(2, 2, 5, 2)
    for causal, cap in product((0, 1), (0.0, 2.0)):
        yield one("Attention", 23, q, k, v, is_causal=causal, softcap=cap)
    shut = np.array([[False] * 5, [True, False, True, True, False], [True] * 5])
    for mask in (floats(3, 5), floats(2, 1, 3, 5), integers(3, 5, low=0, high=2).astype(bool), shut):
        yield one(
            "Attention", 23, q, k, v, mask, note=f"mask {mask.dtype.name} {mask.shape} {int(mask[..., 0, :].any())}"
        )
    yield one("Attention", 23, floats(1, 4, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4), note="heads in groups")
    packed = {"q_num_heads": 2, "kv_num_heads": 2}
    yield one("Attention", 23, floats(2, 3, 8), floats(2, 5, 8), floats(2, 5, 8), scale=0.5, **packed)
    past = floats(2, 2, 2, 4), floats(2, 2, 2, 2)
    for causal, mode in product((0, 1), (0, 1, 2, 3)):
        yield one(
            "Attention", 23, q, k, v, None, *past, is_causal=causal, qk_matmul_output_mode=mode, softcap=1.5, outputs=4
        )
    lengths = np.array([2, 5])
    for causal in (0, 1):
        yield one("Attention", 24, q, k, v, None, None, None, lengths, is_causal=causal)
    yield one("Attention", 24, q, k, v, floats(3, 4), note="a short mask")
    yield one("Attention", 24, np.where(q < 0, -np.inf, q), np.abs(k), v, note="infinite queries")
    yield one("Attention", 25, q, k, v, left_window_size=1, right_window_size=1)
    yield one("Attention", 25, q, k, v, None, *past, left_window_size=2, is_causal=1, outputs=3)
    yield one("Attention", 23, q.astype(F64), k.astype(F64), v.astype(F64))
    yield one("Attention", 23, q.astype(np.float16), k.astype(np.float16), v.astype(np.float16), is_causal=1)
    for interleaved, width, with_ids in product((0, 1), (0, 4), (True, False)):
        half = (width or 8) // 2
        caches = ([floats(6, half), floats(6, half), integers(2, 3, low=0)] if with_ids else [
            floats(2, 3, half), floats(2, 3, half),
        ])  # fmt: skip
        yield one(
            "RotaryEmbedding", 23, floats(2, 2, 3, 8), *caches, interleaved=interleaved, rotary_embedding_dim=width
        )
    yield one("RotaryEmbedding", 23, floats(2, 3, 16), floats(2, 3, 4), floats(2, 3, 4), num_heads=2)
    yield one(
        "RotaryEmbedding", 23, floats(2, 2, 3, 8), floats(6, 4), floats(6, 4), np.full((2, 3), 6),
        note="position out of range",
    )  # fmt: skip
    for rule, past_state in product(("linear", "gated", "delta", "gated_delta"), (False, True)):
        yield _linear_attention(rule, past_state)


def _linear_attention(rule: str, past: bool) -> Case:
    x: list[Any] = [
        floats(1, 3, 8) / F32(4), floats(1, 3, 4) / F32(4), floats(1, 3, 6), floats(1, 2, 2, 3) if past else None,
    ]  # fmt: skip
    x.append(-np.abs(floats(1, 3, 4)) if "gated" in rule else None)
    x.append(np.abs(floats(1, 3, 2)) / F32(3) if "delta" in rule else None)
    while x[-1] is None:
        x.pop()
    note = f"{rule} past={past}"
    return one("LinearAttention", 27, *x, q_num_heads=4, kv_num_heads=2, update_rule=rule, outputs=2, note=note)
