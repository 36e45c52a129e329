# SPDX-License-Identifier: Apache-2.0
"""Products of matrices: MatMul, Gemm, Einsum, Det."""

import math
from itertools import product
from typing import Any

import numpy as np

from oracle.elementwise import broadcasts, old_broadcast
from oracle.registry import Call, InvalidError, UnspecifiedError, is_float, operator


def matmul(a: Any, b: Any) -> Any:
    """Returns a product as numpy.matmul defines it; integers wrap."""
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise InvalidError(f"{a.shape} x {b.shape}")
    broadcasts(a.shape[:-2], b.shape[:-2])
    return np.matmul(a, b)


@operator("MatMul")
def _matmul(_: Call, a: Any, b: Any) -> Any:
    return matmul(a, b)


@operator("Gemm")
def _gemm(call: Call, a: Any, b: Any, c: Any = None) -> Any:
    if a.ndim != 2 or b.ndim != 2:
        raise InvalidError("matrices are asked for")
    left, right = (a.T if call.transA else a), (b.T if call.transB else b)
    found = matmul(left, right)
    if is_float(found.dtype):
        found = call.alpha * found
    elif call.alpha != 1 or call.beta not in (1, 0):
        found = np.trunc(call.alpha * found)
    if c is None:
        return found
    if call.version < 7:
        c = old_broadcast(call, found, c)
    if broadcasts(found.shape, c.shape) != found.shape:
        raise InvalidError(f"{c.shape} is larger than {found.shape}")
    return found + (call.beta * c if is_float(c.dtype) or call.beta != 1 else c)


@operator("Det")
def _det(_: Call, x: Any) -> Any:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InvalidError(f"{x.shape} has no square matrices")
    return np.linalg.det(x)


@operator("Einsum")
def _einsum(call: Call, *xs: Any) -> Any:
    left, arrow, right = call.equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(xs):
        raise InvalidError("as many terms as inputs")
    if len(xs) > 2 and not all(np.isfinite(x.astype(np.float64)).all() for x in xs):
        raise UnspecifiedError("in which order factors that are not finite meet")
    free = max((x.ndim - len(t.replace("...", "")) for t, x in zip(terms, xs, strict=True) if "..." in t), default=0)
    names = [_named(term, x.ndim) for term, x in zip(terms, xs, strict=True)]
    sizes: dict[Any, int] = {}
    for labels, x in zip(names, xs, strict=True):
        for label, size in zip(labels, x.shape, strict=True):
            known = sizes.setdefault(label, size)
            if known != size and not (isinstance(label, int) and 1 in (known, size)):
                raise InvalidError(f"{label}: {known} and {size}")
            sizes[label] = size if known == 1 else known
    if arrow:
        result = _named(right, len(right.replace("...", "")) + (free if "..." in right else 0))
    else:
        flat = left.replace(",", "").replace("...", "")
        result = list(range(-free, 0)) + [c for c in sorted(set(flat)) if flat.count(c) == 1]
    return _summed(xs, names, result, sizes)


def _named(term: str, rank: int) -> list[Any]:
    """Returns a label for each axis of a term: letters, and numbers below 0 for the axes of an ellipsis."""
    if "..." not in term:
        if len(term) != rank:
            raise InvalidError(f"{term} of rank {rank}")
        return list(term)
    before, after = term.split("...")
    return [*before, *range(-(rank - len(before) - len(after)), 0), *after]


def _summed(xs: Any, names: list[list[Any]], result: list[Any], sizes: dict[Any, int]) -> Any:
    inner = [label for label in sizes if label not in result]
    found = np.zeros([sizes[label] for label in result], np.result_type(*xs))
    for place in product(*(range(sizes[label]) for label in result)):
        for rest in product(*(range(sizes[label]) for label in inner)):
            at = dict(zip([*result, *inner], place + rest, strict=True))
            factors = (
                x[tuple(0 if x.shape[k] == 1 else at[label] for k, label in enumerate(labels))]
                for x, labels in zip(xs, names, strict=True)
            )
            found[place] += math.prod(factors, start=found.dtype.type(1))
    return found
