# SPDX-License-Identifier: Apache-2.0
"""Attention of the kernel library against NumPy: sizes, operands of the score, steps of views; misfits are refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernel_library import RefusedError, assert_close, every_level, plan_of, run_plan
from nndeploy_native.expressions import const, operand
from nndeploy_native.steps.attention import Attention
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Array, Tensor

SIZES = (
    (1, 1, 1, 1), (1, 4, 7, 3), (2, 8, 16, 16), (3, 33, 17, 40), (5, 16, 33, 1), (14, 64, 64, 64), (15, 20, 31, 24),
    (29, 24, 300, 70), (43, 32, 129, 32),
)  # fmt: skip
"""Rows, inner, keys, columns."""


def softmax(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        e: Array = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def views(arrays: dict[str, Array]) -> tuple[View, View, View]:
    """Returns views of q, of k with its axes turned, and of v."""
    q, k, v = (View.of(Tensor(name, arrays[name].shape)) for name in "qkv")
    rank = len(k.sizes)
    return q, k.transposed((*range(rank - 2), rank - 1, rank - 2)), v


def drawn(batch: tuple[int, ...], sizes: tuple[int, int, int, int], seed: int = 0) -> dict[str, Array]:
    """Returns q (rows, inner), k (keys, inner), v (keys, columns) of a batch."""
    rng, (rows, inner, keys, columns) = np.random.default_rng(seed), sizes
    shapes = {"q": (rows, inner), "k": (keys, inner), "v": (keys, columns)}
    return {name: rng.standard_normal((*batch, *shape)).astype(np.float32) for name, shape in shapes.items()}


def ran(level: str, step: Attention, arrays: dict[str, Array], threads: int = 1) -> Array:
    inputs = [Tensor(name, array.shape, element=ELEMENTS[array.dtype.name]) for name, array in arrays.items()]
    shape = tuple(int(size) for size in step.output.shape if isinstance(size, int))
    return run_plan(level, plan_of([step], inputs, [step.output]), [*arrays.values()], [shape], threads=threads)[0]


ELEMENTS = {"float32": "fp32", "bool": "bool", "int64": "int64", "float16": "fp16"}


@every_level
@pytest.mark.parametrize("threads", [1, 2])
def test_attention(level: str, threads: int) -> None:
    for number, sizes in enumerate(SIZES):
        for batch in ((), (3,), (2, 3)):
            arrays = drawn(batch, sizes, number)
            q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
            output = Tensor("y", (*batch, sizes[0], sizes[3]))
            wanted = softmax(q @ k.swapaxes(-1, -2)) @ v
            assert_close(ran(level, Attention(output, *views(arrays)), arrays, threads), wanted, level)


OTHERS: tuple[tuple[Any, ...], ...] = ((2, 3, 19, 37), (2, 1, 1, 37), (3, 19, 1), (19, 37), (1, 1), (37,))
"""Shapes that are broadcast to (2, 3, 19, 37)."""


@every_level
@pytest.mark.parametrize("shape", OTHERS)
@pytest.mark.parametrize("kind", ["float32", "bool", "constant"])
def test_operands_of_scores(level: str, shape: tuple[int, ...], kind: str) -> None:
    """Sums with a mask, and a choice by truths."""
    rng, arrays = np.random.default_rng(4), drawn((2, 3), (19, 16, 37, 24))
    other = rng.random(shape) < 0.7 if kind == "bool" else rng.standard_normal(shape).astype(np.float32)
    scaled = ("mul", operand(0), const(0.25))
    score = ("where", operand(1), scaled, const(-1e4)) if kind == "bool" else ("add", scaled, operand(1))
    if kind == "constant":
        given = Operand(shape, None, other)
    else:
        given, arrays = Operand(shape, Tensor("m", shape, element=ELEMENTS[other.dtype.name])), {**arrays, "m": other}
    step = Attention(Tensor("y", (2, 3, 19, 24)), *views(arrays), score, (given,))
    q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
    sums = q @ k.swapaxes(-1, -2) * 0.25
    wanted = softmax(np.where(other, sums, -1e4) if kind == "bool" else sums + other) @ v
    assert_close(ran(level, step, arrays, 2), wanted, level)


@every_level
def test_masked_rows(level: str) -> None:
    """Rows of which all is masked by an infinity are NaN, or zeros where they are guarded; the others are numbers."""
    arrays = {**drawn((2,), (5, 8, 21, 9)), "m": np.zeros((5, 21), np.float32)}
    arrays["m"][2], arrays["m"][3, 4:] = -np.inf, -np.inf
    given = Operand((5, 21), Tensor("m", (5, 21)))
    step = Attention(Tensor("y", (2, 5, 9)), *views(arrays), ("add", operand(0), operand(1)), (given,))
    q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
    wanted = softmax(q @ k.swapaxes(-1, -2) + arrays["m"]) @ v
    found = ran(level, step, arrays)
    assert np.isnan(found[:, 2]).all()
    assert_close(found[:, [0, 1, 3, 4]], wanted[:, [0, 1, 3, 4]], level)
    guarded = ran(level, replace(step, is_guarded=True), arrays)
    assert not guarded[:, 2].any()
    assert np.array_equal(np.delete(guarded, 2, 1), np.delete(found, 2, 1))


@every_level
@pytest.mark.parametrize("rows", [1, 6])
@pytest.mark.parametrize("threads", [1, 2])
def test_heads_side_by_side_that_share_keys(level: str, rows: int, threads: int) -> None:
    """Heads of queries and of the output lie in one row; keys are shared by some heads each; a mask a head."""
    rng, (batch, shared, each, inner, keys) = np.random.default_rng(5), (2, 3, 4, 16, 23)
    arrays = {
        "q": rng.standard_normal((batch, rows, shared * each * inner)).astype(np.float32),
        "k": rng.standard_normal((batch, keys, shared * inner)).astype(np.float32),
        "v": rng.standard_normal((batch, shared, keys, inner)).astype(np.float32),
        "m": rng.standard_normal((batch, shared, each, 1, keys)).astype(np.float32),
    }
    sizes = (batch, shared, each)
    q, k, v = (Tensor(name, arrays[name].shape) for name in "qkv")
    of_q = (rows * shared * each * inner, each * inner, inner, shared * each * inner, 1)
    step = Attention(
        Tensor("y", (batch, rows, shared * each * inner)),
        View(q, 0, (*sizes, rows, inner), of_q),
        View(k, 0, (*sizes, inner, keys), (keys * shared * inner, inner, 0, 1, shared * inner)),
        View(v, 0, (*sizes, keys, inner), (shared * keys * inner, keys * inner, 0, inner, 1)),
        ("add", operand(0), operand(1)),
        (Operand(arrays["m"].shape, Tensor("m", arrays["m"].shape)),),
        strides=of_q,
    )
    heads = arrays["q"].reshape(batch, rows, shared, each, inner).transpose(0, 2, 3, 1, 4).astype(np.float64)
    turned = arrays["k"].reshape(batch, keys, shared, inner).transpose(0, 2, 3, 1)[:, :, None]
    wanted = softmax(heads @ turned + arrays["m"]) @ arrays["v"][:, :, None]
    found = ran(level, step, arrays, threads)
    assert_close(found, wanted.transpose(0, 3, 1, 2, 4).reshape(found.shape), level)


@every_level
@pytest.mark.parametrize(
    "wrong",
    [
        {"q": lambda view: replace(view, offset=1)},
        {"k": lambda view: replace(view, offset=1)},
        {"v": lambda view: replace(view, offset=1)},
        {"q": lambda view: replace(view, sizes=(2, 5, 9))},
        {"v": lambda view: replace(view, sizes=(2, 22, 9))},
        {"others": lambda _: (Operand((5, 20), Tensor("m", (5, 20))),)},
        {"strides": lambda _: (5, 9, 1)},
    ],
)
def test_misfits_are_refused(level: str, wrong: dict[str, Any]) -> None:
    """Views beyond their tensors, operands that cannot be broadcast, outputs that are not filled."""
    arrays = {**drawn((2,), (5, 8, 21, 9)), "m": np.zeros((5, 20), np.float32)}
    step = Attention(Tensor("y", (2, 5, 9)), *views(arrays), ("add", operand(0), operand(1)), (
        Operand((1,), None, np.zeros(1, np.float32)),
    ))  # fmt: skip
    ran(level, step, arrays)
    with pytest.raises(RefusedError, match=r"attention|scores"):
        ran(level, replace(step, **{name: change(getattr(step, name)) for name, change in wrong.items()}), arrays)


@every_level
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("lies_apart", [False, True])
def test_keys_and_values_of_float16(level: str, threads: int, lies_apart: bool) -> None:
    """Each alone and both; rows of keys lie together, or numbers of a row apart."""
    for number, sizes in enumerate(SIZES):
        arrays = drawn((2, 3), sizes, number)
        narrow = [name for name in "kv" if number % 3 != "kv".index(name)]
        arrays |= {name: arrays[name].astype(np.float16) for name in narrow}
        q, k, v = (arrays[name].astype(np.float64) for name in "qkv")
        wanted = softmax(q @ k.swapaxes(-1, -2)) @ v
        if lies_apart:
            arrays |= {name: np.ascontiguousarray(arrays[name].swapaxes(-1, -2)) for name in "kv"}
        seen = [
            View.of(Tensor(name, array.shape, element=ELEMENTS[array.dtype.name])) for name, array in arrays.items()
        ]
        as_columns = (0, 1, 3, 2)
        of_k, of_v = (
            (seen[1], seen[2].transposed(as_columns)) if lies_apart else (seen[1].transposed(as_columns), seen[2])
        )
        step = Attention(Tensor("y", wanted.shape), seen[0], of_k, of_v)
        assert_close(ran(level, step, arrays, threads), wanted, level)


@every_level
@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_other_elements_are_refused(level: str, name: str) -> None:
    arrays = drawn((2,), SIZES[2])
    arrays[name] = arrays[name].astype(np.float16 if name == "q" else np.int64)
    q, k, v = (View.of(Tensor(one, array.shape, element=ELEMENTS[array.dtype.name])) for one, array in arrays.items())
    step = Attention(Tensor("y", (2, SIZES[2][0], SIZES[2][3])), q, k.transposed((0, 2, 1)), v)
    with pytest.raises(RefusedError, match=r"not take float16|not plain"):
        ran(level, step, arrays)
