# SPDX-License-Identifier: Apache-2.0
"""The last way out of a compile: the whole model, as it was loaded, on one backend that is there to take any.

Where a stage meets what it does not know, that is a mistake of ours, and no reason to refuse a model that runs: nothing
is rewritten, weighed or cut, and of the stages before only the model and its reference are used.
"""

import traceback
from collections.abc import Sequence
from pathlib import Path

import onnx_ir as ir

from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.lower import settle_planned
from nndeploy.errors import BundleError, CheckError, ModelError, NndeployError, lacks_space, one_line
from nndeploy.graph.nodes import node_name
from nndeploy.graph.regions import Region
from nndeploy.partition.cost import Costs
from nndeploy.partition.placement import Placement
from nndeploy.plugin.interface import FALLBACK_TIER, TAKEN, Backend, Support

_OF_A_PLACEMENT = ("build", "measure", "fallback", "targets", "partition")
"""The stages in which a refusal (`ModelError`) speaks of how the model was cut, not of the model."""
_OF_A_BUNDLE = ("check and write",)


def may_help(error: BaseException, stage: str) -> bool:
    """Returns whether the model as it is may come through where `stage` raised `error`."""
    if isinstance(error, MemoryError) or lacks_space(error):
        return False
    if not isinstance(error, NndeployError):
        return isinstance(error, Exception)
    if error.code == NndeployError.code or isinstance(error, BundleError):
        return True
    if isinstance(error, ModelError):
        return stage in _OF_A_PLACEMENT
    return isinstance(error, CheckError) and stage in _OF_A_BUNDLE


def described(error: BaseException) -> str:
    """Returns an error in one line; of one that nobody foresaw with its kind and the line that raised it."""
    if isinstance(error, NndeployError) and error.code != NndeployError.code:
        return str(error)
    cause = error.__cause__ or error
    frames = traceback.extract_tb(cause.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    text = str(error) if isinstance(error, NndeployError) else f"{type(error).__name__}: {error}"
    return one_line(text)[:300] + where


def takers_of_all(order: Sequence[Backend]) -> list[Backend]:
    """Returns the backends that are there to take any model, best first."""
    return [backend for backend in order if backend.tier >= FALLBACK_TIER]


def settled_as_it_is(setting: Setting, model: ir.Model, order: Sequence[Backend]) -> Settled:
    """Returns the model on the first backend of `order` for any model that builds it and gives the right numbers.

    Raises:
        ModelError: none does.
    """
    reasons = []
    for backend in takers_of_all(order):
        if refusal := _refusal(setting, model, backend):
            reasons.append(f"{backend.name}: {refusal}")
            continue
        settled, failure = settle_planned(setting, plan_as_it_is(model, backend, order))
        if settled is not None:
            return settled
        reasons.append(f"{backend.name}: {failure}")
    raise ModelError(f"no backend takes the whole model ({'; '.join(reasons)})")


def _refusal(setting: Setting, model: ir.Model, backend: Backend) -> str:
    """Returns why the backend does not take some node, "" where it takes all."""
    said = setting.workers.supports(backend.name, model, setting.target, setting.build_options)
    return next((answer.reason for answer in said if not answer.ok), "")


def plan_as_it_is(model: ir.Model, taker: Backend, order: Sequence[Backend]) -> ChainPlan:
    """Returns the plan in which `taker` has every node, of all that might have been asked; all nodes count alike."""
    names = [node_name(node) for node in model.graph]
    not_asked = Support(False, "was not asked: the whole model goes on as it is")
    answers = {backend.name: dict.fromkeys(names, TAKEN if backend is taker else not_asked) for backend in order}
    placement = Placement(model, answers, dict.fromkeys(names, taker.name))
    costs = Costs(dict.fromkeys(names, 1.0), {})
    regions = (Region(taker.name, tuple(model.graph)),) if names else ()
    return ChainPlan("", placement, regions, placement.backend_of, {}, costs)
