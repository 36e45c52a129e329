# SPDX-License-Identifier: Apache-2.0
"""Decision trees against a walk node by node: odd numbers of rows and trees, every relation, what is no number."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_library import RefusedError, every_level, plan_of, run_plan
from nndeploy_native.steps.trees import AGGREGATES, EQUAL, GREATER, LEAF, LESS, NAN, Trees, TreeTables
from nndeploy_native.tensors import Array, Tensor

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45], np.float32)


def _tables(rng: np.random.Generator, num_trees: int, features: int, columns: int, relations: list[int]) -> TreeTables:
    """Returns trees of up to six levels, some of which are one leaf; a fifth of the numbers of leaves are none."""
    trees, nodes, thresholds, leaves = list[list[int]](), list[list[int]](), list[float](), list[float]()
    for _ in range(num_trees):
        first = int(rng.integers(0, columns))
        count, root = int(rng.integers(1, columns - first + 1)), len(nodes)
        trees.append([root, first, count])
        waiting = [int(rng.integers(0, 6))]
        while waiting:
            levels = waiting.pop(0)
            thresholds.append(float(rng.choice([*SPECIAL[1:], 0.5, -0.25, np.nan])))
            if levels == 0 or rng.random() < 0.2:
                nodes.append([0, len(leaves), LEAF])
                numbers = rng.standard_normal(count).astype(np.float32)
                leaves += np.where(rng.random(count) < 0.2, np.float32(-0.0), numbers).tolist()
            else:
                child = len(nodes) + 1 + len(waiting)
                nodes.append([int(rng.integers(0, features)), child, int(rng.choice(relations))])
                waiting += [levels - 1, levels - 1]
    arrays = (np.array(trees, np.int32), np.array(nodes, np.int32))
    return TreeTables(arrays[0], np.array(thresholds, np.float32), arrays[1], np.array(leaves, np.float32))


def _relation(x: float, threshold: float) -> int:
    if np.isnan(x):
        return NAN
    if np.isnan(threshold):
        return GREATER  # a threshold that no number is below
    return LESS if x < threshold else EQUAL if x == threshold else GREATER


def _walked(step: Trees, x: Array) -> Array:
    tables, (rows, columns) = step.tables, (len(x), step.output.shape[1])
    assert isinstance(columns, int)
    out = np.full((rows, columns), -0.0, np.float32)
    for row in range(rows):
        for root, first, count in tables.trees:
            at = root
            while tables.nodes[at, 2] != LEAF:
                feature, child, relations = tables.nodes[at]
                at = child + int(bool(relations & _relation(x[row, feature], tables.thresholds[at])))
            for k, number in enumerate(tables.leaves[tables.nodes[at, 1] :][:count], first):
                now = out[row, k]
                if number == 0 and np.signbit(number):
                    continue
                is_first = now == 0 and np.signbit(now)
                out[row, k] = (
                    number
                    if is_first
                    else {"sum": now + number, "min": min(now, number)}.get(step.aggregate, max(now, number))
                )
    out /= np.float32(step.divisor)
    return out if step.base is None else out + step.base


def _step(rng: np.random.Generator, rows: int, relations: list[int], aggregate: str = "sum") -> Trees:
    features, columns = int(rng.integers(1, 20)), int(rng.integers(1, 5))
    tables = _tables(rng, int(rng.integers(1, 20)), features, columns, relations)
    base = rng.standard_normal(columns).astype(np.float32) if rng.random() < 0.5 else None
    x = Tensor("x", (rows, features + int(rng.integers(0, 3))))
    return Trees(Tensor("y", (rows, columns)), x, tables, aggregate, int(rng.integers(1, 3)), base)


def _drawn(rng: np.random.Generator, step: Trees, *, has_special: bool = True) -> Array:
    x: Array = rng.integers(-4, 5, step.x.shape).astype(np.float32) / 4
    return np.where(rng.random(x.shape) < 0.3 * has_special, rng.choice(SPECIAL, x.shape), x)


def _ran(level: str, step: Trees, x: Array, threads: int = 1) -> Array:
    return run_plan(level, plan_of([step], [step.x], [step.output]), [x], threads=threads)[0]


@every_level
@pytest.mark.parametrize(
    "relations", [[LESS | EQUAL], [LESS | EQUAL, LESS | EQUAL | NAN], list(range(16))], ids=["least", "missing", "any"]
)
def test_trees(level: str, relations: list[int]) -> None:
    rng = np.random.default_rng(31)
    for rows in (1, 2, 7, 8, 9, 16, 67, 130):
        step = _step(rng, rows, relations)
        for has_special in (False, True):
            x = _drawn(rng, step, has_special=has_special)
            found = _ran(level, step, x)
            np.testing.assert_array_equal(found, _walked(step, x))
            np.testing.assert_array_equal(found, _ran(level, step, x, threads=3))


@every_level
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_what_becomes_of_leaves(level: str, aggregate: str) -> None:
    rng = np.random.default_rng(32)
    for rows in (1, 5, 8, 19):
        step = _step(rng, rows, [LESS | EQUAL, GREATER], aggregate)
        x = _drawn(rng, step)
        np.testing.assert_array_equal(_ran(level, step, x), _walked(step, x))


@every_level
def test_wide_rows(level: str) -> None:
    """Rows of which a cache holds few."""
    rng = np.random.default_rng(33)
    tables = _tables(rng, 5, 9000, 2, [LESS | EQUAL])
    step = Trees(Tensor("y", (21, 2)), Tensor("x", (21, 9000)), tables, "sum", 1, None)
    x = _drawn(rng, step, has_special=False)
    np.testing.assert_array_equal(_ran(level, step, x), _walked(step, x))


STUMP = TreeTables(
    np.array([[0, 0, 1]], np.int32),
    np.array([0.5, 0, 0], np.float32),
    np.array([[1, 1, 3], [0, 0, LEAF], [0, 1, LEAF]], np.int32),
    np.array([1, 2], np.float32),
)


def _changed(array: Array, place: tuple[int, ...], number: int) -> Array:
    copy = array.copy()
    copy[place] = number
    return copy


@every_level
@pytest.mark.parametrize(
    "tables",
    [
        *(replace(STUMP, nodes=_changed(STUMP.nodes, (0, 1), child)) for child in (0, 2, 3, -1, 2**31 - 1)),
        *(replace(STUMP, nodes=_changed(STUMP.nodes, (0, 0), feature)) for feature in (2, -1)),
        *(replace(STUMP, nodes=_changed(STUMP.nodes, (0, 2), relations)) for relations in (16, -2)),
        *(replace(STUMP, nodes=_changed(STUMP.nodes, (2, 1), leaf)) for leaf in (2, -1)),
        *(replace(STUMP, trees=_changed(STUMP.trees, (0, 0), root)) for root in (3, -1)),
        *(replace(STUMP, trees=_changed(STUMP.trees, (0, 1), first)) for first in (1, -1)),
        *(replace(STUMP, trees=_changed(STUMP.trees, (0, 2), count)) for count in (0, 2)),
        replace(STUMP, trees=np.array([[0, 0, 1], [0, 0, 1]], np.int32)),
        replace(STUMP, trees=np.array([[0, 0, 1], [2, 0, 1]], np.int32)),
        replace(STUMP, nodes=STUMP.nodes[:2]),
        replace(STUMP, leaves=STUMP.leaves[:1]),
    ],
)
def test_trees_that_lead_elsewhere_are_refused(level: str, tables: TreeTables) -> None:
    step = Trees(Tensor("y", (3, 1)), Tensor("x", (3, 2)), tables, "sum", 1, None)
    with pytest.raises(RefusedError):
        _ran(level, step, np.zeros((3, 2), np.float32))


@every_level
@pytest.mark.parametrize(
    ("x", "out", "base"),
    [((3, 2), (4, 1), None), ((3, 1), (3, 1), None), ((3, 2), (3, 1), np.zeros(2, np.float32)), ((6,), (3, 1), None)],
)
def test_rows_that_do_not_fit_are_refused(
    level: str, x: tuple[int, ...], out: tuple[int, ...], base: Array | None
) -> None:
    step = Trees(Tensor("y", out), Tensor("x", x), STUMP, "sum", 1, base)
    with pytest.raises(RefusedError):
        _ran(level, step, np.zeros(x, np.float32))
