# SPDX-License-Identifier: Apache-2.0
"""How far a quantised bundle agrees with float32 in the terms of its task: classes, vectors, boxes, texts.

Where a pipeline says what becomes of the outputs, its results are compared: the texts that are the same, how far boxes
cover each other, the likeliest labels that are the same, the angle of vectors. Else the outputs tell it: rows of
numbers from 0 on that add up to 1 are probabilities of classes, whole numbers are classes, other floats are vectors.
Law: every measure is 1 where all is the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nndeploy.bundle.report import TaskMeasure
from nndeploy.quantisation.accuracy import Outputs
from nndeploy.values.types import Value

Array = np.ndarray[Any, Any]
Results = Callable[[Mapping[str, Value]], Mapping[str, Value]]
SUM_SLACK = 1e-3
"""How far probabilities may be from 1 in all."""
DIGITS = 4


def task_measures(got: Outputs, want: Outputs, names: Iterable[str], results: Results | None) -> list[TaskMeasure]:
    """Returns the measures of `got` against `want`, over all samples.

    They are those of what `results` makes of the outputs of a sample, by the names of processors; where there is
    nothing of the kind, those of the outputs `names`.
    """
    if results is not None:
        found = _of_results([results(one) for one in got], [results(one) for one in want])
        if found:
            return found
    return [_of_output(name, [g[name] for g in got], [w[name] for w in want]) for name in names]


def _of_results(got: Outputs, want: Outputs) -> list[TaskMeasure]:
    known = frozenset.intersection(*(frozenset(one) for one in (*got, *want)))
    has_boxes = bool(known & {"boxes", "quads"})
    found = []
    for name in sorted(known & _MEASURES.keys()):
        if name == "classes" and (has_boxes or "labels" in known):
            continue
        kind, measure = _MEASURES[name]
        pairs = [measure(g, w, name) for g, w in zip(got, want, strict=True)]
        found.append(_measure(name, kind, pairs))
    return found


def _of_output(name: str, got: Sequence[Value], want: Sequence[Value]) -> TaskMeasure:
    pairs = [(np.asarray(g), np.asarray(w)) for g, w in zip(got, want, strict=True)]
    if any(g.shape != w.shape or g.dtype != w.dtype for g, w in pairs):
        return TaskMeasure(name, "classes", 0.0, len(pairs))
    if all(w.dtype.kind not in "fV" for _, w in pairs):
        return _measure(name, "classes", [_share(g == w) for g, w in pairs])
    floats = [(g.astype(np.float64), w.astype(np.float64)) for g, w in pairs]
    if all(_is_probabilities(w) for _, w in floats):
        return _measure(name, "classes", [_share(g.argmax(-1) == w.argmax(-1)) for g, w in floats])
    return _measure(name, "cosine", [_cosines(g, w) for g, w in floats])


def _measure(name: str, kind: str, pairs: Sequence[tuple[float, int]]) -> TaskMeasure:
    """Returns the mean of figures that are sums over so many."""
    count = sum(number for _, number in pairs)
    agreement = sum(figure for figure, _ in pairs) / count if count else 1.0
    return TaskMeasure(name, kind, round(agreement, DIGITS), count)


def _is_probabilities(array: Array) -> bool:
    if array.ndim < 2 or array.shape[-1] < 2 or not array.size:
        return False
    return bool(array.min() >= 0 and np.all(np.abs(array.sum(-1) - 1) <= SUM_SLACK))


def _share(equal: Array) -> tuple[float, int]:
    return float(np.sum(equal)), int(np.size(equal))


def _cosines(got: Array, want: Array) -> tuple[float, int]:
    """Returns the cosine of rows (N, D), of anything else as one vector; two without a length are the same."""
    rows = (array if array.ndim == 2 else array.reshape(1, -1) for array in (got, want))
    g, w = (np.nan_to_num(array, posinf=0.0, neginf=0.0) for array in rows)
    lengths = np.linalg.norm(g, axis=1) * np.linalg.norm(w, axis=1)
    same = np.all(g == w, axis=1).astype(np.float64)
    cosines = np.divide(np.sum(g * w, axis=1), lengths, out=same, where=lengths > 0)
    return float(np.sum(cosines)), len(cosines)


def _equal(got: Mapping[str, Value], want: Mapping[str, Value], name: str) -> tuple[float, int]:
    return float(got[name] == want[name]), 1


def _same_label(got: Mapping[str, Value], want: Mapping[str, Value], name: str) -> tuple[float, int]:
    first = [list(one[name])[:1] for one in (got, want)]
    return float(first[0] == first[1]), 1


def _vectors(got: Mapping[str, Value], want: Mapping[str, Value], name: str) -> tuple[float, int]:
    return _cosines(*(np.asarray(one[name], np.float64).reshape(1, -1) for one in (got, want)))


def _class_map(got: Mapping[str, Value], want: Mapping[str, Value], name: str) -> tuple[float, int]:
    g, w = np.asarray(got[name]), np.asarray(want[name])
    return _share(g == w) if g.shape == w.shape else (0.0, w.size)


def _boxes(got: Mapping[str, Value], want: Mapping[str, Value], name: str) -> tuple[float, int]:
    """Returns the sum of what each box has in common with the best one of its class of the other side, over both."""
    sides = [(_corners(one[name]), np.asarray(one.get("classes", ())).reshape(-1)) for one in (got, want)]
    (g, of_g), (w, of_w) = sides
    if not len(g) or not len(w):
        return 0.0, len(g) + len(w)
    shared = _overlaps(g, w)
    if len(of_g) == len(g) and len(of_w) == len(w):
        shared = shared * (of_g[:, None] == of_w[None])
    return float(shared.max(1).sum() + shared.max(0).sum()), len(g) + len(w)


def _corners(value: Value) -> Array:
    """Returns (N, 4) left, top, right, bottom of boxes, or around quadrilaterals (N, 4, 2)."""
    boxes = np.asarray(value, np.float64)
    return np.concatenate([boxes.min(1), boxes.max(1)], 1) if boxes.ndim == 3 else boxes.reshape(-1, 4)


def _overlaps(a: Array, b: Array) -> Array:
    """Returns intersection over union of each box with each other one, (N, M); 0 where both are empty."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=-1)
    areas = [np.prod(np.maximum(one[:, 2:] - one[:, :2], 0), axis=-1) for one in (a, b)]
    union = areas[0][:, None] + areas[1][None] - common
    shared: Array = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return shared


_Measure = Callable[[Mapping[str, Value], Mapping[str, Value], str], tuple[float, int]]
# What processors call what they give, the kind of the measure, and the figure of a sample with over how many it sums.
_MEASURES: Mapping[str, tuple[str, _Measure]] = {
    "boxes": ("boxes", _boxes),
    "classes": ("classes", _class_map),
    "embedding": ("cosine", _vectors),
    "labels": ("classes", _same_label),
    "quads": ("boxes", _boxes),
    "text": ("texts", _equal),
}
