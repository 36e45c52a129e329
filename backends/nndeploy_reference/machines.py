# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml that ONNX's evaluator has not, or gets wrong: encoders, linear regression, trees.

Trees are walked by all rows at once, one level at a time.

Source: ONNX operators of ai.onnx.ml; scores of two classes as ONNX Runtime gives them.
"""

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np

from nndeploy_reference.operator_table import Array, Node, operator

_ML = "ai.onnx.ml"


@operator("CategoryMapper", domain=_ML)
def _map_categories(node: Node, x: Array) -> Array:
    if x.dtype == object:
        numbers = dict(zip(node.cats_strings, node.cats_int64s, strict=True))
        return np.array([numbers.get(v, node.default_int64) for v in x.ravel()], np.int64).reshape(x.shape)
    words = dict(zip(node.cats_int64s, node.cats_strings, strict=True))
    return _objects([words.get(v, node.default_string) for v in x.ravel().tolist()], x.shape)


def _objects(values: Sequence[Any], shape: Sequence[int]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(shape)


@operator("CastMap", domain=_ML)
def _cast_map(node: Node, x: dict[int, Any]) -> Array:
    """Values in the order of their keys, or each at its key."""
    if node.map_form == "SPARSE":
        if max(x, default=0) >= node.max_map:
            raise IndexError(f"a key out of range in CastMap: {max(x)} of {node.max_map}")
        values = [x.get(i, 0) for i in range(node.max_map)]
    else:
        values = [value for _, value in sorted(x.items())]
    if node.cast_to == "TO_STRING":
        return _objects([str(value) for value in values], (1, -1))
    return np.array([values]).astype(np.float32 if node.cast_to == "TO_FLOAT" else np.int64)


@operator("LabelEncoder", domain=_ML, before=2)
def _old_labels(node: Node, x: Array) -> Array:
    words = node.classes_strings
    if x.dtype == object:
        numbers = {word: i for i, word in enumerate(words)}
        return np.array([numbers.get(v, node.default_int64) for v in x.ravel()], np.int64).reshape(x.shape)
    inside = [words[v] if 0 <= v < len(words) else node.default_string for v in x.ravel().tolist()]
    return _objects(inside, x.shape)


@operator("LabelEncoder", domain=_ML, since=2)
def _labels(node: Node, x: Array) -> Array:
    keys, values = _given(node, "keys"), _given(node, "values")
    default = {"O": node.default_string, "i": node.default_int64}.get(values.dtype.kind, node.default_float)
    if node.default_tensor is not None:
        default = node.default_tensor.reshape(-1)[0]
    table = {_key(k): v for k, v in zip(keys.tolist(), values.tolist(), strict=True)}
    found = [table.get(_key(v), default) for v in x.ravel().tolist()]
    return _objects(found, x.shape) if values.dtype == object else np.array(found, values.dtype).reshape(x.shape)


def _key(value: Any) -> Any:
    return "NaN of any kind" if isinstance(value, float) and isnan(value) else value


def _given(node: Node, kind: str) -> Array:
    if getattr(node, f"{kind}_tensor", None) is not None:
        tensor = getattr(node, f"{kind}_tensor")
        return tensor.astype(object) if tensor.dtype.kind in "SU" else tensor
    types = {"strings": object, "int64s": np.int64, "floats": np.float32}
    return next(np.array(getattr(node, f"{kind}_{n}"), t) for n, t in types.items() if getattr(node, f"{kind}_{n}"))


@operator("OneHotEncoder", domain=_ML)
def _one_hot(node: Node, x: Array) -> Array:
    """Numbers are cast to whole ones before they are looked up."""
    categories = node.cats_strings or node.cats_int64s
    whole = x if x.dtype.kind in "OSUT" else x.astype(np.int64)
    found = whole[..., None] == np.array(categories, whole.dtype if node.cats_int64s else object)
    if not node.zeros and not found.any(-1).all():
        raise ValueError("a value that is no category in OneHotEncoder")
    return found.astype(np.float32)


@operator("Normalizer", domain=_ML)
def _normalise(node: Node, x: Array) -> Array:
    wide = x.astype(np.float64)
    divisor = {"MAX": wide.max, "L1": np.abs(wide).sum}.get(
        node.norm, lambda *a, **k: np.sqrt((wide * wide).sum(*a, **k))
    )
    size = divisor(-1, keepdims=True)
    return np.where(size == 0, wide, wide / np.where(size == 0, 1, size)).astype(np.float32)


@operator("Scaler", domain=_ML)
def _scale(node: Node, x: Array) -> Array:
    return ((x.astype(np.float64) - np.array(node.offset)) * np.array(node.scale)).astype(np.float32)


@operator("ZipMap", domain=_ML)
def _zip(node: Node, x: Array) -> tuple[Any, ...]:
    keys = node.classlabels_strings or node.classlabels_int64s
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    return ([dict(zip(keys, row, strict=True)) for row in rows],)


@operator("DictVectorizer", domain=_ML)
def _vectorise(node: Node, x: dict[Any, Any]) -> Array:
    keys = node.string_vocabulary or node.int64_vocabulary
    kind = np.asarray(next(iter(x.values()))).dtype
    values = [x.get(key, "" if kind.kind in "US" else 0) for key in keys]
    return _objects(values, (1, -1)) if kind.kind in "US" else np.array([values], kind)


@operator("LinearRegressor", domain=_ML)
def _regress(node: Node, x: Array) -> Array:
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    found = rows.astype(np.float64) @ np.array(node.coefficients, np.float64).reshape(node.targets, -1).T
    return _transformed(found + np.array(node.intercepts or [0.0] * node.targets), node.post_transform).astype(
        np.float32
    )


def _transformed(scores: Array, kind: str) -> Array:
    if kind == "LOGISTIC":
        return 1 / (1 + np.exp(-scores))
    if kind in ("SOFTMAX", "SOFTMAX_ZERO"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        if kind == "SOFTMAX_ZERO":
            powers = np.where(scores == 0, 0, powers)
        return powers / powers.sum(-1, keepdims=True)
    if kind == "PROBIT":
        raise ValueError("no post_transform PROBIT")
    return scores


_TESTS = {
    "BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater,
    "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal,
}  # fmt: skip


@operator("TreeEnsembleRegressor", domain=_ML)
def _regression_trees(node: Node, x: Array) -> Array:
    scores = _old_votes(node, x, "target", node.n_targets, node.aggregate_function)
    return _transformed(scores + _base(node, node.n_targets), node.post_transform).astype(np.float32)


@operator("TreeEnsembleClassifier", domain=_ML)
def _classification_trees(node: Node, x: Array) -> tuple[Array, ...]:
    labels = node.classlabels_strings or node.classlabels_int64s
    names = np.array(labels, object if node.classlabels_strings else np.int64)
    scores = _old_votes(node, x, "class", len(labels), "SUM")
    if len(labels) == 2 and len(set(node.class_ids)) == 1:
        return _two_classes(node, names, scores[:, node.class_ids[0]])
    scores = scores + _base(node, len(labels))
    return names[scores.argmax(1)], _transformed(scores, node.post_transform).astype(np.float32)


def _two_classes(node: Node, names: Array, votes: Array) -> tuple[Array, ...]:
    """One score for two classes: of the second, or of a logit whose sign decides where weights are below 0."""
    score = votes + (_either(node, "base_values") or [0.0])[-1]
    is_share = min(_either(node, "class_weights")) >= 0
    chosen = names[(score > (0.5 if is_share else 0)).astype(int)]
    if node.post_transform == "NONE":
        return chosen, np.stack([1 - score if is_share else -score, score], 1).astype(np.float32)
    if node.post_transform == "LOGISTIC":
        return chosen, np.stack([_transformed(-score, "LOGISTIC"), _transformed(score, "LOGISTIC")], 1).astype(
            np.float32
        )
    return chosen, _transformed(np.stack([-score, score], 1), node.post_transform).astype(np.float32)


def _base(node: Node, count: int) -> Array:
    base = _either(node, "base_values")
    return np.zeros(count) if not base else np.array(base, np.float64)


def _either(node: Node, name: str) -> list[float]:
    tensor = getattr(node, f"{name}_as_tensor", None)
    return list(getattr(node, name) or []) if tensor is None else tensor.ravel().tolist()


def _old_votes(node: Node, x: Array, prefix: str, count: int, kind: str) -> Array:
    """Returns votes of all trees (rows, count); nodes and leaves are found by the ids of trees and nodes."""
    place = {ids: i for i, ids in enumerate(zip(node.nodes_treeids, node.nodes_nodeids, strict=True))}
    trees = np.array(node.nodes_treeids)
    children = [
        np.array([place.get((t, c), 0) for t, c in zip(trees.tolist(), ids, strict=True)])
        for ids in (node.nodes_falsenodeids, node.nodes_truenodeids)
    ]
    roots = [int(np.flatnonzero(trees == t)[0]) for t in dict.fromkeys(trees.tolist())]
    modes, tracks = np.array(node.nodes_modes), np.array(node.nodes_missing_value_tracks_true or [0] * len(trees), bool)
    values, features = np.array(_either(node, "nodes_values")), np.array(node.nodes_featureids)
    values = values.astype(x.dtype if x.dtype.kind == "f" else np.float32)
    reached = np.stack([_walked(x, root, modes, features, values, tracks, children) for root in roots], 1)
    leaf_place = [
        place[ids] for ids in zip(getattr(node, f"{prefix}_treeids"), getattr(node, f"{prefix}_nodeids"), strict=True)
    ]
    weights = np.full((len(trees), count), np.nan)
    for leaf, target, weight in zip(
        leaf_place, getattr(node, f"{prefix}_ids"), _either(node, f"{prefix}_weights"), strict=True
    ):
        weights[leaf, target] = weight if np.isnan(weights[leaf, target]) else weights[leaf, target] + weight
    return _aggregated(weights[reached], kind)


def _walked(x: Array, root: int, modes: Array, features: Array, values: Array, tracks: Array, children: Any) -> Array:
    """Returns the leaf that each row comes to from a root."""
    at, rows = np.full(len(x), root), np.arange(len(x))
    for _ in range(len(modes) + 1):
        if (modes[at] == "LEAF").all():
            return at
        value = x[rows, features[at]]
        is_true = np.isnan(value.astype(np.float64)) & tracks[at]
        for name, test in _TESTS.items():
            is_true |= (modes[at] == name) & test(value, values[at])
        at = np.where(modes[at] == "LEAF", at, np.where(is_true, children[1][at], children[0][at]))
    raise ValueError("a tree with a circle")


def _aggregated(votes: Array, kind: str) -> Array:
    """Returns votes (rows, trees, targets), NaN where a leaf has none, over trees."""
    if kind in ("MIN", "MAX"):
        worst = np.inf if kind == "MIN" else -np.inf
        found = (np.min if kind == "MIN" else np.max)(np.where(np.isnan(votes), worst, votes), 1)
        return np.where(np.isfinite(found), found, 0)
    return np.nansum(votes, 1) / (votes.shape[1] if kind == "AVERAGE" else 1)


@operator("TreeEnsemble", domain=_ML)
def _trees(node: Node, x: Array) -> Array:
    """Nodes and leaves are told apart by flags: a leaf is numbered below all nodes here."""
    modes, splits, features = node.nodes_modes, node.nodes_splits, np.array(node.nodes_featureids)
    tracks = np.array(node.nodes_missing_value_tracks_true or [0] * len(modes), bool)
    children = [
        np.where(np.array(leafs, bool), -1 - np.array(ids), np.array(ids))
        for leafs, ids in (
            (node.nodes_falseleafs, node.nodes_falsenodeids),
            (node.nodes_trueleafs, node.nodes_truenodeids),
        )
    ]
    sets, rows, leaves = _members(node), np.arange(len(x)), []
    for root in node.tree_roots:
        at = np.full(len(x), root)
        for _ in range(len(modes) + 1):
            now = np.maximum(at, 0)
            value = x[rows, features[now]]
            is_true = np.isnan(value) & tracks[now]
            for mode, test in enumerate(_TESTS.values()):
                is_true |= (modes[now] == mode) & test(value, splits[now])
            for number, members in sets.items():
                is_true |= (now == number) & np.isin(value, members)
            at = np.where(at < 0, at, np.where(is_true, children[1][now], children[0][now]))
        leaves.append(-1 - at)
    weights = np.full((len(node.leaf_targetids), node.n_targets), np.nan)
    weights[np.arange(len(weights)), node.leaf_targetids] = node.leaf_weights
    scores = _aggregated(weights[np.stack(leaves, 1)], ["AVERAGE", "SUM", "MIN", "MAX"][node.aggregate_function])
    kind = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"][node.post_transform]
    return _transformed(scores, kind).astype(x.dtype)


def _members(node: Node) -> dict[int, Array]:
    """Returns for each node that tests membership the values of its set, which NaN separates."""
    if node.membership_values is None:
        return {}
    ends = np.flatnonzero(np.isnan(node.membership_values))
    parts = [part[~np.isnan(part)] for part in np.split(node.membership_values, ends)]
    return dict(zip(np.flatnonzero(node.nodes_modes == len(_TESTS)).tolist(), parts, strict=False))
