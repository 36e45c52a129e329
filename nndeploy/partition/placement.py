# SPDX-License-Identifier: Apache-2.0
"""Placement: every node goes to the first backend, in the order of priority, that takes it.

The backends are asked (each asks its real library), several at once where that is allowed. Then each one's own
transforms are tried, one after the other, on what it refused; they stay only if it then takes more of the model's
compute, and those behind it are asked again. The reason of every refusal is kept. Nodes that the optimiser marked as
one group (a convolution and its activation) stay together where one backend takes them all.
"""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from nndeploy.errors import ModelError, UnavailableError, UsageError, did_you_mean, one_line
from nndeploy.graph.nodes import node_name, operator
from nndeploy.plugin.interface import TAKEN, Support, Transform

GROUP_KEY = "nndeploy.group"

Ask = Callable[[str, ir.Model], list[Support]]
"""(backend, model) -> one answer for each node of the main graph, in its order."""


@dataclass(frozen=True, slots=True)
class Banned:
    """Nodes that a backend said it takes but then would not build, or got wrong: backend -> node -> reason."""

    reasons: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def reason(self, backend: str, node: str) -> str:
        """Returns why `backend` may not have `node`, or ""."""
        return self.reasons.get(backend, {}).get(node, "")

    def with_nodes(self, backend: str, nodes: Sequence[str], reason: str) -> "Banned":
        """Returns a copy in which `backend` may not have `nodes` either."""
        return Banned({**self.reasons, backend: {**self.reasons.get(backend, {}), **dict.fromkeys(nodes, reason)}})


@dataclass(frozen=True, slots=True)
class Placement:
    """Who takes which node.

    `model` is the model after the transforms that helped. `answers` maps backend -> node -> its answer, in the order
    of priority; `backend_of` and `pinned` are by node name.
    """

    model: ir.Model
    answers: Mapping[str, Mapping[str, Support]]
    backend_of: Mapping[str, str]
    pinned: frozenset[str] = frozenset()
    transformed: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()

    def refusals(self, node: str, order: Sequence[str], why_later: Callable[[str], str]) -> dict[str, str]:
        """Returns why each backend that stands in `order` before the one that took `node` did not.

        `why_later` says it of those that would take it.
        """
        refusals = {}
        for backend in order:
            if backend == self.backend_of[node]:
                break
            answer = self.answers.get(backend, {}).get(node, TAKEN)  # who was not asked might
            refusals[backend] = answer.reason or why_later(backend)
        return refusals

    def takes_all(self, backend: str, nodes: Sequence[str]) -> bool:
        """Returns whether `backend` takes every one of `nodes`."""
        return all(self.answers[backend][node].ok for node in nodes)


def place(
    model: ir.Model,
    order: Sequence[str],
    ask: Ask,
    *,
    transforms: Callable[[str], Sequence[Transform]],
    seconds: Callable[[ir.Model], Mapping[str, float]],
    pins: Sequence[tuple[str, str]] = (),
    banned: Banned | None = None,
    num_at_once: int = 1,
) -> Placement:
    """Returns the placement of every node of the main graph; nodes whose outputs nobody reads are removed first.

    `seconds` estimates each node's compute; a pin is (glob of node names, backend); `num_at_once` backends are asked
    at the same time.

    Raises:
        UsageError: a pin names no node, or a backend that is not in `order`.
        ModelError: no backend takes some node; the reasons are in the message.
        UnavailableError: `order` is empty.
    """
    if not order:
        raise UnavailableError("no backend is left to compile for", hint="nndeploy backends lists what is installed")
    banned = banned or Banned()
    RemoveUnusedNodesPass()(model)  # a node that nobody reads is nobody's
    answers: dict[str, dict[str, Support]] = {}
    claimed: set[str] = set()
    transformed: list[tuple[str, int]] = []
    warnings: list[str] = []
    asked = _asked_at_once(order, model, ask, banned, num_at_once)
    for backend in order:
        answers[backend] = _answers(backend, model, ask, banned) if transformed else asked[backend]
        try:
            rewritten = _transformed(
                backend, model, answers[backend], claimed, ask, banned, transforms(backend), seconds
            )
        except Exception as err:  # a plugin's rewrite may fail in any way; the model is then left as it was
            rewritten = None
            warnings.append(one_line(f"a transform of {backend} failed: {type(err).__name__}: {err}"))
        if rewritten is not None:
            model, answers[backend], count = rewritten
            transformed.append((backend, count))
            names = {node_name(node) for node in model.graph}
            for earlier in order[: order.index(backend)]:
                answers[earlier] = _carried_over(answers[earlier], names)
            claimed &= names
        claimed |= {node for node, answer in answers[backend].items() if answer.ok}
    backend_of = _first_that_takes(model, answers)
    pinned = _apply_pins(pins, backend_of, answers)
    _keep_groups_together(model, backend_of, answers, pinned)
    return Placement(model, answers, backend_of, frozenset(pinned), tuple(transformed), tuple(warnings))


def _asked_at_once(
    order: Sequence[str], model: ir.Model, ask: Ask, banned: Banned, num_at_once: int
) -> dict[str, dict[str, Support]]:
    with ThreadPoolExecutor(num_at_once) as pool:
        return dict(zip(order, pool.map(lambda name: _answers(name, model, ask, banned), order), strict=True))


def _answers(backend: str, model: ir.Model, ask: Ask, banned: Banned) -> dict[str, Support]:
    names = [node_name(node) for node in model.graph]
    said = ask(backend, model)
    assert len(said) == len(names), f"{backend} answered for {len(said)} of {len(names)} nodes"
    return {
        name: Support(False, banned.reason(backend, name)) if banned.reason(backend, name) else answer
        for name, answer in zip(names, said, strict=True)
    }


def _transformed(
    backend: str,
    model: ir.Model,
    answers: Mapping[str, Support],
    claimed: set[str],
    ask: Ask,
    banned: Banned,
    transforms: Sequence[Transform],
    seconds: Callable[[ir.Model], Mapping[str, float]],
) -> tuple[ir.Model, dict[str, Support], int] | None:
    """Returns (model, answers, rewrites) after the backend's transforms, or None where they do not help."""
    open_nodes = {
        node for node, answer in answers.items() if not answer.ok and node not in claimed
    } - banned.reasons.get(backend, {}).keys()
    if not transforms or not open_nodes:
        return None
    trial = model.clone()
    count = sum(transform(trial, lambda node: node.name in open_nodes) for transform in transforms)
    if not count:
        return None
    RemoveUnusedNodesPass()(trial)
    _name_new_nodes(trial, backend)
    new_answers = _answers(backend, trial, ask, banned)
    before = _refused_seconds(answers, seconds(model), claimed)
    after = _refused_seconds(new_answers, seconds(trial), claimed)
    return (trial, new_answers, count) if after < before else None


def _refused_seconds(
    answers: Mapping[str, Support], seconds: Mapping[str, float], claimed: set[str]
) -> tuple[float, int]:
    refused = [node for node, answer in answers.items() if not answer.ok and node not in claimed]
    return sum(seconds[node] for node in refused), len(refused)


def _name_new_nodes(model: ir.Model, backend: str) -> None:
    taken = {node.name for node in model.graph if node.name}
    seen: set[str] = set()
    for i, node in enumerate(model.graph):
        if not node.name or node.name in seen:
            name = f"{backend}_{node.op_type}_{i}"
            while name in taken:
                name += "_"
            node.name = name
            taken.add(name)
        seen.add(node.name)


def _carried_over(answers: Mapping[str, Support], names: set[str]) -> dict[str, Support]:
    """Keeps what an earlier backend said of nodes that are still there; those a later one made are not its own."""
    made_later = Support(False, "made by a later backend's transform of a node that this one refused")
    return {name: answers.get(name, made_later) for name in names}


def _first_that_takes(model: ir.Model, answers: Mapping[str, Mapping[str, Support]]) -> dict[str, str]:
    backend_of = {}
    for node in model.graph:
        name = node_name(node)
        taker = next((backend for backend, said in answers.items() if said[name].ok), None)
        if taker is None:
            reasons = "; ".join(f"{backend}: {said[name].reason}" for backend, said in answers.items())
            raise ModelError(
                f"no backend takes this {operator(node)} ({reasons})",
                where=f"node {name!r}",
                hint="`nndeploy backends` lists what is installed; a custom operator needs --custom-ops or a plugin",
            )
        backend_of[name] = taker
    return backend_of


def _apply_pins(
    pins: Sequence[tuple[str, str]], backend_of: dict[str, str], answers: Mapping[str, Mapping[str, Support]]
) -> set[str]:
    pinned: set[str] = set()
    for glob, backend in pins:
        if backend not in answers:
            raise UsageError(f"--pin names the backend {backend!r}", hint=did_you_mean(backend, answers))
        nodes = [node for node in backend_of if fnmatch.fnmatchcase(node, glob)]
        if not nodes:
            raise UsageError(f"--pin {glob!r} matches no node", hint=did_you_mean(glob, backend_of))
        for node in nodes:
            if not answers[backend][node].ok:
                raise UsageError(f"{backend} does not take the pinned node {node!r}: {answers[backend][node].reason}")
            backend_of[node] = backend
        pinned.update(nodes)
    return pinned


def _keep_groups_together(
    model: ir.Model, backend_of: dict[str, str], answers: Mapping[str, Mapping[str, Support]], pinned: set[str]
) -> None:
    groups: dict[str, list[str]] = {}
    for node in model.graph:
        if GROUP_KEY in node.metadata_props:
            groups.setdefault(node.metadata_props[GROUP_KEY], []).append(node_name(node))
    for nodes in groups.values():
        if len({backend_of[node] for node in nodes}) == 1 or pinned.intersection(nodes):
            continue
        whole = next((b for b, said in answers.items() if all(said[node].ok for node in nodes)), None)
        if whole is not None:
            backend_of.update(dict.fromkeys(nodes, whole))
