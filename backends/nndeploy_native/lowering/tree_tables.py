# SPDX-License-Identifier: Apache-2.0
"""The trees of a TreeEnsembleClassifier or TreeEnsembleRegressor -> tables that the kernel library walks.

    x <  t  =>  x <= the number before t
    x >  t  =>  x <= t with the children exchanged, x >= t accordingly

so that nodes are all of one kind but for BRANCH_EQ and BRANCH_NEQ. Source: ONNX TreeEnsembleClassifier, ONNX Runtime.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import ints_attribute
from nndeploy_native.lowering.classes import floats_attribute
from nndeploy_native.steps.trees import EQUAL, GREATER, LEAF, LESS, NAN, TreeTables
from nndeploy_native.tensors import Array

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "LEAF")
_LEQ, _LT, _GTE, _GT, _EQ, _NEQ, _LEAF = range(len(MODES))
MAX_NODES = 2**27
MOST_EMPTY, FEW_NUMBERS = 8, 2**20
"""Leaves whose columns lie far apart are kept with those between: not more than so many for each number, where many."""


class Ensemble(NamedTuple):
    """Trees, and which columns some leaf has a number for; `sure` columns have one in every leaf of some tree."""

    tables: TreeTables
    used: frozenset[int]
    sure: frozenset[int]
    weights: Array


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Nodes in the order of the model: the tree of each, by number, and the nodes that its children are."""

    tree: Array
    mode: Array
    when_false: Array
    when_true: Array


def ensemble_of(node: ir.Node, what: str, num_columns: int, aggregate: str) -> Ensemble:
    """Returns the trees of a node whose leaves' attributes begin with `what`: "class" or "target".

    Raises:
        BuildRefusedError: they are no trees, or numbers of theirs are double precision.
    """
    if any(name.endswith("_as_tensor") for name in node.attributes):
        raise BuildRefusedError("trees of double precision")
    keys, trees = _keys(node)
    nodes = _nodes(node, keys, trees)
    order = _order(nodes)
    position = np.full(len(keys), -1, np.int64)
    position[order] = np.arange(len(order))
    thresholds, rows = _rows(node, nodes, position)
    columns, numbers = _ints(node, f"{what}_ids"), floats_attribute(node, f"{what}_weights")
    leaf = _found(keys, _ints(node, f"{what}_treeids"), _ints(node, f"{what}_nodeids"))
    if not len(columns) == len(numbers) == len(leaf) or np.any(columns < 0) or np.any(columns >= num_columns):
        raise BuildRefusedError("leaves of trees that do not fit their columns")
    kept = (nodes.mode[leaf] == _LEAF) & (position[leaf] >= 0)
    first = np.flatnonzero(np.diff(nodes.tree[order], prepend=-1))
    leaves = _leaves(rows, nodes, order, (position[leaf[kept]], columns[kept], numbers[kept]), aggregate)
    table = np.stack([first, leaves.first, leaves.num_columns], 1).astype(np.int32)
    tables = TreeTables(table, thresholds[order], rows[order].astype(np.int32), leaves.numbers)
    return Ensemble(tables, frozenset(columns[kept].tolist()), leaves.sure, numbers)


class _Keys(NamedTuple):
    """A number for each node, in order, and where it is."""

    names: Array
    sorted: Array
    places: Array

    def __len__(self) -> int:
        return len(self.places)


def _keys(node: ir.Node) -> tuple["_Keys", Array]:
    """Returns how nodes are found, and the number of the tree of each."""
    tree_ids, node_ids = _ints(node, "nodes_treeids"), _ints(node, "nodes_nodeids")
    if not 0 < len(tree_ids) <= MAX_NODES or len(tree_ids) != len(node_ids):
        raise BuildRefusedError(f"trees of {len(tree_ids)} nodes")
    starts = np.flatnonzero(np.diff(tree_ids, prepend=tree_ids[0] - 1))
    names = np.unique(tree_ids)
    if len(names) != len(starts):
        raise BuildRefusedError("trees whose nodes lie among those of others")
    keys = _numbered(names, tree_ids, node_ids)
    places = np.argsort(keys, kind="stable")
    if np.any(keys[places][1:] == keys[places][:-1]):
        raise BuildRefusedError("a node of a tree stands twice")
    return _Keys(names, keys[places], places), np.repeat(np.arange(len(starts)), np.diff(starts, append=len(tree_ids)))


def _numbered(names: Array, tree_ids: Array, node_ids: Array) -> Array:
    """Returns a number for each pair of tree and node, -1 where there is no such tree."""
    if np.any(node_ids < 0) or np.any(node_ids >= 2**31):
        raise BuildRefusedError("a number of a node that is no place")
    tree = np.searchsorted(names, tree_ids)
    tree[tree == len(names)] = 0
    return np.where(names[tree] == tree_ids, tree * 2**31 + node_ids, -1)


def _found(keys: _Keys, tree_ids: Array, node_ids: Array) -> Array:
    """Returns the nodes that pairs of tree and node name."""
    wanted = _numbered(keys.names, tree_ids, node_ids)
    place = np.minimum(np.searchsorted(keys.sorted, wanted), len(keys) - 1)
    if np.any(keys.sorted[place] != wanted):
        raise BuildRefusedError("a tree leads to a node that there is not")
    return keys.places[place]


def _nodes(node: ir.Node, keys: _Keys, trees: Array) -> _Nodes:
    modes = node.attributes["nodes_modes"].as_strings() if "nodes_modes" in node.attributes else ()
    numbers = {name: number for number, name in enumerate(MODES)}
    if unknown := set(modes).difference(numbers):
        raise BuildRefusedError(f"nodes of mode {min(unknown)!r:.40}")
    mode = np.array([numbers[one] for one in modes], np.int64)
    children = [_ints(node, f"nodes_{way}nodeids") for way in ("false", "true")]
    if {len(mode), *map(len, children)} != {len(keys)}:
        raise BuildRefusedError("nodes of trees whose attributes are of several lengths")
    branches, tree_ids = mode != _LEAF, _ints(node, "nodes_treeids")
    found = [np.full(len(keys), -1, np.int64) for _ in children]
    for ends, given in zip(found, children, strict=True):
        ends[branches] = _found(keys, tree_ids[branches], given[branches])
    when_false, when_true = found
    turned = (mode == _GTE) | (mode == _GT)
    return _Nodes(trees, mode, np.where(turned, when_true, when_false), np.where(turned, when_false, when_true))


def _order(nodes: _Nodes) -> Array:
    """Returns the nodes that are reached, tree by tree, level by level, with the children of each side by side."""
    level = np.flatnonzero(np.diff(nodes.tree, prepend=-1))
    levels, count = [level], len(level)
    while True:
        branches = level[nodes.mode[level] != _LEAF]
        if not len(branches):
            break
        level = np.stack([nodes.when_false[branches], nodes.when_true[branches]], 1).reshape(-1)
        levels.append(level)
        count += len(level)
        if count > len(nodes.tree):
            raise BuildRefusedError("a tree that comes back to a node")
    reached = np.concatenate(levels)
    if len(np.unique(reached)) != len(reached):
        raise BuildRefusedError("a node of a tree has two parents")
    return reached[np.argsort(nodes.tree[reached], kind="stable")]


def _rows(node: ir.Node, nodes: _Nodes, position: Array) -> tuple[Array, Array]:
    """Returns the threshold of each node, and its feature, child and relations; those of leaves are filled in later."""
    mode, branches = nodes.mode, nodes.mode != _LEAF
    thresholds, features = floats_attribute(node, "nodes_values"), _ints(node, "nodes_featureids")
    tracks = _ints(node, "nodes_missing_value_tracks_true")
    tracks = np.concatenate([tracks, np.zeros(max(0, len(mode) - len(tracks)), np.int64)]) == 1
    if not len(thresholds) == len(features) == len(tracks) == len(mode):
        raise BuildRefusedError("nodes of trees whose attributes are of several lengths")
    if np.any(np.isnan(thresholds[branches])) or np.any(features[branches] < 0):
        raise BuildRefusedError("a threshold or an element of a tree that is none")
    before = np.where(thresholds == -np.inf, np.nan, np.nextafter(thresholds, np.float32(-np.inf)))
    thresholds = np.where((mode == _LT) | (mode == _GTE), before, thresholds).astype(np.float32)
    turned = (mode == _GTE) | (mode == _GT)
    relations = np.select([mode == _EQ, mode == _NEQ], [EQUAL, LESS | GREATER | NAN], LESS | EQUAL)
    relations |= np.where(tracks != turned, NAN, 0) * (mode != _NEQ)
    children = np.where(branches, position[nodes.when_false], 0)
    return thresholds, np.stack([np.where(branches, features, 0), children, np.where(branches, relations, LEAF)], 1)


class _Leaves(NamedTuple):
    """The numbers of leaves, and by tree their first column and how many these are."""

    numbers: Array
    first: Array
    num_columns: Array
    sure: frozenset[int]


def _leaves(rows: Array, nodes: _Nodes, order: Array, given: tuple[Array, Array, Array], aggregate: str) -> _Leaves:
    """Fills in where the numbers of each leaf begin; `given` are positions of leaves, columns and numbers."""
    at, columns, numbers = given
    tree = nodes.tree[order]
    num_trees = int(tree[-1]) + 1
    first, last = np.full(num_trees, 2**31, np.int64), np.full(num_trees, -1, np.int64)
    np.minimum.at(first, tree[at], columns)
    np.maximum.at(last, tree[at], columns)
    first = np.where(last < 0, 0, first)
    count = np.maximum(1, last - first + 1)
    leaves = np.flatnonzero(nodes.mode[order] == _LEAF)
    sizes = count[tree[leaves]]
    total = int(sizes.sum())
    if total > max(FEW_NUMBERS, MOST_EMPTY * len(numbers)):
        raise BuildRefusedError("leaves of trees with a few columns far apart")
    begin = np.zeros(len(order), np.int64)
    begin[leaves] = np.cumsum(sizes) - sizes
    rows[order[leaves], 1] = begin[leaves]
    place = begin[at] + columns - first[tree[at]]
    found = np.full(total, {"sum": -0.0, "min": np.inf, "max": -np.inf}[aggregate], np.float32)
    {"sum": np.add, "min": np.minimum, "max": np.maximum}[aggregate].at(found, place, numbers + np.float32(0.0))
    is_given = np.zeros(total, bool)
    is_given[place] = True
    found[~is_given] = -0.0
    return _Leaves(found, first, count, _sure(tree, leaves, at, columns))


def _sure(tree: Array, leaves: Array, at: Array, columns: Array) -> frozenset[int]:
    """Returns the columns for which each leaf of some tree has a number."""
    in_tree = np.bincount(tree[leaves])
    pairs = np.unique(np.stack([at, columns], 1), axis=0)
    found, times = np.unique(np.stack([tree[pairs[:, 0]], pairs[:, 1]], 1), axis=0, return_counts=True)
    return frozenset(found[times == in_tree[found[:, 0]], 1].tolist())


def _ints(node: ir.Node, name: str) -> Array:
    return np.array(ints_attribute(node, name) or (), np.int64)
