# SPDX-License-Identifier: Apache-2.0
"""A backend's own rewrites of a piece whose nodes it takes, made before it builds them.

    piece -> the backend's rewrites, in order -> `Rewritten`, or the reason why it is built as it is

Law: the inputs and outputs of a piece keep their names; a rewrite that fails costs nothing but a warning.
"""

from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from nndeploy.errors import one_line
from nndeploy.plugin.interface import RewritesOwn
from nndeploy.plugin.registry import backend
from nndeploy.target.target import Target


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A piece after a backend's rewrites, and how many nodes these replaced; `model` is None where none helped.

    `why_not` says in one line why a rewrite was left out, "" where there was none.
    """

    model: ir.Model | None = None
    count: int = 0
    why_not: str = ""


def rewritten(model: ir.Model, name: str, target: Target) -> Rewritten:
    """Returns a piece as the backend `name` rewrites it for a target; `model` stays as it is."""
    plugin = backend(name)
    if not isinstance(plugin, RewritesOwn):
        return Rewritten()
    trial = model.clone()
    try:
        count = sum(rewrite(trial, lambda _: True) for rewrite in plugin.rewrites(target))
        RemoveUnusedNodesPass()(trial)
    except Exception as err:  # a plugin's rewrite may fail in any way; the piece is then built as it was
        return Rewritten(why_not=one_line(f"a rewrite of {name} failed: {type(err).__name__}: {err}"))
    if not count:
        return Rewritten()
    if _ends(trial) != _ends(model):
        return Rewritten(why_not=f"a rewrite of {name} renames inputs or outputs: it was left out")
    return Rewritten(trial, count)


def _ends(model: ir.Model) -> tuple[list[str | None], list[str | None]]:
    return [value.name for value in model.graph.inputs], [value.name for value in model.graph.outputs]
