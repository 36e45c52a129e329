# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml: encoders, linear models, trees, machines of support vectors.

SVMClassifier is absent: its schema gives no formula. A classifier of two classes with one row of coefficients, or one
weight, has scores that its schema does not define.
"""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from oracle.registry import Call, InvalidError, UnspecifiedError, operator

ML = "ai.onnx.ml"


def ml(*names: str, since: int = 1) -> Any:
    """Declares a function of operators of ai.onnx.ml."""
    return operator(*names, since=since, domain=ML)


def _objects(values: Any, like: Any) -> Any:
    found = np.empty(len(values), object)
    found[:] = values
    return found.reshape(like)


@ml("ArrayFeatureExtractor")
def _extract(_: Call, x: Any, y: Any) -> Any:
    indices = y.ravel().tolist()
    if any(not 0 <= i < x.shape[-1] for i in indices):
        raise InvalidError(f"indices {indices} of {x.shape[-1]}")
    found = np.take(x, indices, -1)
    return found.reshape(1, -1) if x.ndim == 1 else found


@ml("Binarizer")
def _binarise(call: Call, x: Any) -> Any:
    return (x > call.threshold).astype(x.dtype)


@ml("CastMap")
def _cast_map(call: Call, x: Any) -> Any:
    pairs = sorted(x.items())
    if call.map_form == "SPARSE":
        if any(not 0 <= key < call.max_map for key, _ in pairs):
            raise InvalidError(f"keys outside of 0..{call.max_map - 1}")
        dense: list[Any] = [0.0] * call.max_map
        for key, value in pairs:
            dense[key] = value
        values = dense
    else:
        values = [value for _, value in pairs]
    if call.cast_to == "TO_STRING":
        raise UnspecifiedError("the text of a number")
    return np.array(values, np.float32 if call.cast_to == "TO_FLOAT" else np.int64).reshape(1, -1)


@ml("CategoryMapper")
def _map_categories(call: Call, x: Any) -> Any:
    pairs = list(zip(call.cats_strings, call.cats_int64s, strict=True))
    if x.dtype == object:
        table = dict(pairs)
        return np.array([table.get(v, call.default_int64) for v in x.ravel()], np.int64).reshape(x.shape)
    names = {number: text for text, number in pairs}
    return _objects([names.get(v, call.default_string) for v in x.ravel().tolist()], x.shape)


@ml("DictVectorizer")
def _vectorise(call: Call, x: Any) -> Any:
    vocabulary = call.string_vocabulary or call.int64_vocabulary
    values = [x.get(key, type(next(iter(x.values())))()) for key in vocabulary]
    kinds: dict[str, Any] = {"U": object, "f": np.float32, "i": np.int64}
    return np.array(values, kinds[np.asarray(next(iter(x.values()))).dtype.kind]).reshape(1, -1)


@ml("FeatureVectorizer")
def _features(_: Call, *xs: Any) -> Any:
    return np.concatenate([x.reshape(1, -1) if x.ndim == 1 else x for x in xs], 1).astype(np.float32)


@ml("Imputer")
def _impute(call: Call, x: Any) -> Any:
    if call.imputed_value_floats:
        new, old = np.array(call.imputed_value_floats), call.replaced_value_float
    else:
        new, old = np.array(call.imputed_value_int64s, np.int64), call.replaced_value_int64
    is_old = np.isnan(x) if isinstance(old, float) and math.isnan(old) else x == old
    return np.where(is_old, new, x)


@ml("LabelEncoder")
def _old_labels(call: Call, x: Any) -> Any:
    classes = call.classes_strings
    if x.dtype == object:
        table = {text: i for i, text in enumerate(classes)}
        return np.array([table.get(v, call.default_int64) for v in x.ravel()], np.int64).reshape(x.shape)
    inside = [classes[v] if 0 <= v < len(classes) else call.default_string for v in x.ravel().tolist()]
    return _objects(inside, x.shape)


@ml("LabelEncoder", since=2)
def _labels(call: Call, x: Any) -> Any:
    """Of a key that is there twice the last counts, from version 4 on; a key NaN is any NaN."""
    kinds = {"strings": object, "int64s": np.int64, "floats": np.float32, "tensor": None}
    (keys,) = (getattr(call, f"keys_{kind}") for kind in kinds if getattr(call, f"keys_{kind}") is not None)
    ((kind, values),) = (
        (kind, getattr(call, f"values_{kind}")) for kind in kinds if getattr(call, f"values_{kind}") is not None
    )
    values = np.array(values, kinds[kind]) if kind != "tensor" else values
    default: Any = {"O": call.default_string, "i": call.default_int64}.get(values.dtype.kind, call.default_float)
    if call.default_tensor is not None:
        default = call.default_tensor.reshape(-1)[0]
    keys = np.asarray(keys).tolist()
    if call.version < 4 and len(set(keys)) != len(keys):
        raise UnspecifiedError("a key twice")

    def looked_up(value: Any) -> Any:
        fitting = [v for k, v in zip(keys, values, strict=True) if k == value or (k != k and value != value)]
        return fitting[-1] if fitting else default

    found = [looked_up(value) for value in x.ravel().tolist()]
    return _objects(found, x.shape) if values.dtype == object else np.array(found, values.dtype).reshape(x.shape)


@ml("OneHotEncoder")
def _one_hot(call: Call, x: Any) -> Any:
    categories = call.cats_strings or call.cats_int64s
    values = [v if isinstance(v, str) else int(v) for v in x.ravel().tolist()]
    if not call.zeros and any(v not in categories for v in values):
        raise InvalidError("a value that is no category")
    return np.array([[float(v == c) for c in categories] for v in values]).reshape(*x.shape, len(categories))


@ml("Scaler")
def _scale(call: Call, x: Any) -> Any:
    return (x - np.array(call.offset)) * np.array(call.scale)


@ml("Normalizer")
def _normalise(call: Call, x: Any) -> Any:
    """By the text: X / max(X), X / sum(X), sqrt(X^2 / sum(X^2)), whose signs engines keep: left open below 0."""
    if (x < 0).any():
        raise UnspecifiedError("what is below 0")
    divisor = {"MAX": x.max(-1, keepdims=True), "L1": x.sum(-1, keepdims=True)}.get(call.norm)
    if divisor is None:
        divisor = np.sqrt((x * x).sum(-1, keepdims=True))
    return np.where(divisor == 0, x, x / np.where(divisor == 0, 1, divisor))


def transformed(scores: Any, kind: str) -> Any:
    """Returns scores after a post_transform."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return 1 / (1 + np.exp(-scores))
    if kind == "SOFTMAX":
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)
    if kind == "PROBIT":
        if ((scores <= 0) | (scores >= 1)).any():
            raise UnspecifiedError("the quantile of what is no probability")
        return np.vectorize(NormalDist().inv_cdf)(scores)
    raise UnspecifiedError(kind)


def _by_class(call: Call, scores: Any) -> Any:
    """Returns the label of the greatest score of each row, and the scores."""
    labels = call.classlabels_strings or call.classlabels_ints or call.classlabels_int64s
    shares = transformed(scores, call.post_transform)
    if not np.isfinite(scores).all() or (scores.argmax(1) != shares.astype(np.float32).argmax(1)).any():
        raise UnspecifiedError("a class that the transform decides")
    chosen = [labels[i] for i in scores.argmax(1)]
    kind: Any = object if isinstance(labels[0], str) else np.int64
    return np.array(chosen, kind), shares


@ml("LinearClassifier")
def _classify(call: Call, x: Any) -> Any:
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    weights = np.array(call.coefficients).reshape(-1, rows.shape[1])
    if len(weights) < 3:
        raise UnspecifiedError("two classes")
    return _by_class(call, rows @ weights.T + np.array(call.intercepts or [0.0] * len(weights)))


@ml("LinearRegressor")
def _regress(call: Call, x: Any) -> Any:
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    weights = np.array(call.coefficients).reshape(call.targets, -1)
    found = rows @ weights.T + np.array(call.intercepts or [0.0] * call.targets)
    return transformed(found, call.post_transform)


@ml("SVMRegressor")
def _svm(call: Call, x: Any) -> Any:
    """sum of coefficient times kernel(x, vector), plus rho; of one class the sign, in 1 and -1."""
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    gamma, coef0, degree = call.kernel_params or (0.0, 0.0, 0.0)
    vectors = np.array(call.support_vectors).reshape(call.n_supports, -1)
    products = rows @ vectors.T
    kernel = {
        "LINEAR": lambda: products,
        "POLY": lambda: (gamma * products + coef0) ** degree,
        "SIGMOID": lambda: np.tanh(gamma * products + coef0),
        "RBF": lambda: np.exp(-gamma * ((rows[:, None] - vectors[None]) ** 2).sum(-1)),
    }[call.kernel_type]()
    found = (kernel @ np.array(call.coefficients) + call.rho[0]).reshape(-1, 1)
    if call.one_class:
        return np.where(found > 0, 1.0, -1.0)
    return transformed(found, call.post_transform)


@ml("ZipMap")
def _zip(call: Call, x: Any) -> Any:
    keys = call.classlabels_strings or call.classlabels_int64s
    rows = x.reshape(1, -1) if x.ndim == 1 else x
    if rows.shape[1] != len(keys):
        raise InvalidError(f"{rows.shape[1]} columns, {len(keys)} keys")
    return [dict(zip(keys, map(np.float32, row.tolist()), strict=True)) for row in rows]


_BRANCHES = {
    "BRANCH_LEQ": lambda a, b: a <= b, "BRANCH_LT": lambda a, b: a < b, "BRANCH_GTE": lambda a, b: a >= b,
    "BRANCH_GT": lambda a, b: a > b, "BRANCH_EQ": lambda a, b: a == b, "BRANCH_NEQ": lambda a, b: a != b,
}  # fmt: skip


@ml("TreeEnsembleRegressor", "TreeEnsembleClassifier")
def _trees(call: Call, x: Any) -> Any:
    is_class = call.op == "TreeEnsembleClassifier"
    prefix, ids = ("class", call.class_ids) if is_class else ("target", call.target_ids)
    labels = call.classlabels_strings or call.classlabels_int64s
    count = len(labels) if is_class else call.n_targets
    if is_class and count < 3:
        raise UnspecifiedError("two classes")
    weights = _either(call, f"{prefix}_weights")
    nodes = zip(getattr(call, f"{prefix}_treeids"), getattr(call, f"{prefix}_nodeids"), ids, weights, strict=True)
    votes: dict[Any, list[tuple[int, float]]] = {}
    for tree, node, target, weight in nodes:
        votes.setdefault((tree, node), []).append((target, weight))
    rows = [_summed(call, [votes.get(leaf, []) for leaf in _leaves(call, row)], count) for row in x.tolist()]
    base = _either(call, "base_values")
    scores = np.array(rows).reshape(len(rows), count) + (np.array(base) if base is not None else 0)
    return _by_class(call, scores) if is_class else transformed(scores, call.post_transform)


def _either(call: Call, name: str) -> Any:
    tensor = getattr(call, f"{name}_as_tensor")
    return getattr(call, name) if tensor is None else tensor.tolist()


def _leaves(call: Call, row: list[float]) -> list[tuple[int, int]]:
    """Returns the leaf that a row comes to in each tree."""
    thresholds = _either(call, "nodes_values")
    at = {pair: i for i, pair in enumerate(zip(call.nodes_treeids, call.nodes_nodeids, strict=True))}
    missing = call.nodes_missing_value_tracks_true or [0] * len(at)
    found = []
    for tree in dict.fromkeys(call.nodes_treeids):
        i = next(i for i, t in enumerate(call.nodes_treeids) if t == tree)
        while call.nodes_modes[i] != "LEAF":
            value = row[call.nodes_featureids[i]]
            is_true = _BRANCHES[call.nodes_modes[i]](value, thresholds[i]) or (math.isnan(value) and missing[i])
            child = call.nodes_truenodeids[i] if is_true else call.nodes_falsenodeids[i]
            i = at[tree, child]
        found.append((tree, call.nodes_nodeids[i]))
    return found


def _summed(call: Call, leaves: list[list[tuple[int, float]]], count: int) -> list[float]:
    kind = call.aggregate_function or "SUM"
    found = []
    for target in range(count):
        weights = [weight for votes in leaves for to, weight in votes if to == target]
        if kind in ("MIN", "MAX"):
            found.append((min if kind == "MIN" else max)(weights, default=0.0))
        else:
            found.append(math.fsum(weights) / (len(leaves) if kind == "AVERAGE" else 1))
    return found


@ml("TreeEnsemble")
def _tree_ensemble(call: Call, x: Any) -> Any:
    members = _member_sets(call)
    rows = [[_leaf_of(call, root, row, members) for root in call.tree_roots] for row in x.tolist()]
    weights, count = call.leaf_weights.tolist(), call.n_targets
    kind = ["AVERAGE", "SUM", "MIN", "MAX"][call.aggregate_function]
    found = []
    for leaves in rows:
        votes = [[(call.leaf_targetids[leaf], weights[leaf])] for leaf in leaves]
        call.attributes = {**call.attributes, "aggregate_function": kind}
        found.append(_summed(call, votes, count))
    names = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
    return transformed(np.array(found).reshape(len(rows), count), names[call.post_transform])


def _member_sets(call: Call) -> list[set[float]]:
    found: list[set[float]] = [set()]
    for value in [] if call.membership_values is None else call.membership_values.tolist():
        if math.isnan(value):
            found.append(set())
        else:
            found[-1].add(value)
    return found


def _leaf_of(call: Call, node: int, row: list[float], members: list[set[float]]) -> int:
    modes, splits = call.nodes_modes.tolist(), call.nodes_splits.tolist()
    missing = call.nodes_missing_value_tracks_true or [0] * len(modes)
    while True:
        value, mode = row[call.nodes_featureids[node]], modes[node]
        if mode == 6:
            is_true = value in members[modes[:node].count(6)]
        else:
            is_true = list(_BRANCHES.values())[mode](value, splits[node])
        is_true = is_true or bool(math.isnan(value) and missing[node])
        is_leaf = call.nodes_trueleafs[node] if is_true else call.nodes_falseleafs[node]
        node = call.nodes_truenodeids[node] if is_true else call.nodes_falsenodeids[node]
        if is_leaf:
            return node
