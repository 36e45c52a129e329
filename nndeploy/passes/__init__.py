# SPDX-License-Identifier: Apache-2.0
"""Backend-independent optimisation: the one ordered list of rewrites that every model goes through.

A checked `ir.Model` with inferred shapes comes in and is rewritten in place; outputs do not change. The list runs
from the top, again and again, until every pass has run without changing anything (or `max_rounds` is reached: each
round leaves a valid model, so stopping early costs only speed). The graph is checked before the first pass and after
each one that changed anything, so that a mistake is reported by the pass that made it.

Law: `optimise` of its own result changes nothing.
"""

import itertools
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from nndeploy.bundle.report import PassReport
from nndeploy.errors import NndeployError
from nndeploy.graph.invariants import BrokenGraphError, Signature, check_graph, check_signature, signature_of
from nndeploy.passes.constants_to_initializers import ConstantsToInitializers
from nndeploy.passes.decompose_batchnorm import DecomposeBatchnorm
from nndeploy.passes.deduplicate_initializers import DeduplicateInitializers
from nndeploy.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from nndeploy.passes.eliminate_dead_code import EliminateDeadCode
from nndeploy.passes.eliminate_no_ops import EliminateNoOps
from nndeploy.passes.fold_constants import FoldConstants
from nndeploy.passes.fold_shapes import FoldShapes
from nndeploy.passes.fuse_conv_batchnorm import FuseConvBatchnorm
from nndeploy.passes.fuse_conv_bias import FuseConvBias
from nndeploy.passes.fuse_conv_scale import FuseConvScale
from nndeploy.passes.fuse_pad_conv import FusePadConv
from nndeploy.passes.fuse_pad_pool import FusePadPool
from nndeploy.passes.group_conv_activations import GroupConvActivations
from nndeploy.passes.infer_shapes import InferShapes
from nndeploy.passes.inline_constant_if import InlineConstantIf
from nndeploy.passes.leave_out_zero_states import LeaveOutZeroStates
from nndeploy.passes.merge_casts import MergeCasts
from nndeploy.passes.merge_clips import MergeClips
from nndeploy.passes.merge_concats import MergeConcats
from nndeploy.passes.merge_conv_sums import MergeConvSums
from nndeploy.passes.merge_reshapes import MergeReshapes
from nndeploy.passes.merge_transposes import MergeTransposes
from nndeploy.passes.model_pass import ModelPass
from nndeploy.passes.move_gather_down import MoveGatherDown
from nndeploy.passes.move_into_branches import MoveIntoBranches
from nndeploy.passes.move_slice_up import MoveSliceUp
from nndeploy.passes.name_sizes import NameSizes
from nndeploy.passes.one_hot_matmul_to_gather import OneHotMatmulToGather
from nndeploy.passes.optimise_branches import OptimiseBranches
from nndeploy.passes.vectorise_scan import VectoriseScan
from nndeploy.values.types import DimRange

MAX_ROUNDS = 10
"""Real models need 2 to 4 rounds; each further one costs a walk over the graph for each pass."""


def optimisations(ranges: Mapping[str, DimRange], *, plans_branches: bool = True) -> tuple[ModelPass, ...]:
    """Returns the list; `ranges` are those of the symbols of the inputs.

    With `plans_branches` it is for a backend that plans branches of If one by one. Others infer types through them, and
    refuse a branch that can never run although its If is right.
    """
    of_each_graph = _of_each_graph(ranges, plans_branches=plans_branches)

    def rewritten(branch: ir.Model) -> int:
        return sum(report.count for report in optimise(branch, ranges, passes=of_each_graph))

    return (*of_each_graph, OptimiseBranches(rewritten))


def _of_each_graph(ranges: Mapping[str, DimRange], *, plans_branches: bool) -> tuple[ModelPass, ...]:
    return (
        ConstantsToInitializers(),
        FoldShapes(ranges),
        FoldConstants(),
        InferShapes(),
        NameSizes(ranges),
        InlineConstantIf(),
        *((MoveIntoBranches(),) if plans_branches else ()),
        VectoriseScan(),
        EliminateNoOps(),
        LeaveOutZeroStates(),
        OneHotMatmulToGather(),
        MoveGatherDown(),
        MoveSliceUp(),
        MergeCasts(),
        MergeTransposes(),
        MergeReshapes(),
        MergeClips(),
        MergeConcats(),
        FusePadConv(),
        FusePadPool(),
        FuseConvBatchnorm(),
        DecomposeBatchnorm(),
        FuseConvScale(),
        FuseConvBias(),
        MergeConvSums(),
        EliminateCommonSubexpressions(),
        EliminateDeadCode(),
        DeduplicateInitializers(),
        GroupConvActivations(),
    )


OPTIMISATIONS = optimisations({})


class PassError(NndeployError):
    """A pass failed or broke the graph; `name` is the pass, "" where the model that came in was not in order."""

    def __init__(self, name: str, what: str, ran: Sequence[str]) -> None:
        before = f"after {', '.join(ran[-len(OPTIMISATIONS) :])}" if ran else "before any other pass"
        super().__init__(what, where=f"optimise, {before}", hint="this is a bug; please report it")
        self.name = name


def optimise(
    model: ir.Model,
    ranges: Mapping[str, DimRange] | None = None,
    *,
    max_rounds: int = MAX_ROUNDS,
    passes: Sequence[ModelPass] | None = None,
) -> tuple[PassReport, ...]:
    """Rewrites the model in place; returns how many places each pass changed, in the order of the list.

    `ranges` are those of the symbols of the inputs; `passes` are `optimisations(ranges)` unless others are given.

    Raises:
        PassError: a pass failed or broke the graph; the model is then of no use.
    """
    passes = optimisations(ranges or {}) if passes is None else passes
    counts = dict.fromkeys((optimisation.name for optimisation in passes), 0)
    signature, ran, num_idle = signature_of(model), list[str](), 0
    _check(model, signature, "", "the model that came in is not in order", ran)
    for optimisation in itertools.chain.from_iterable(itertools.repeat(passes, max_rounds)):
        count = _rewrite(optimisation, model, ran)
        if count:
            _check(model, signature, optimisation.name, f"{optimisation.name} broke the graph", ran)
        counts[optimisation.name] += count
        ran.append(optimisation.name)
        num_idle = 0 if count else num_idle + 1
        if num_idle == len(passes):
            break
    return tuple(PassReport(name, count) for name, count in counts.items())


def _rewrite(optimisation: ModelPass, model: ir.Model, ran: Sequence[str]) -> int:
    try:
        return optimisation.rewrite(model)
    except Exception as err:
        what = f"{optimisation.name} failed: {type(err).__name__}: {err}"
        raise PassError(optimisation.name, what, ran) from err


def _check(model: ir.Model, signature: Signature, name: str, fault: str, ran: Sequence[str]) -> None:
    try:
        check_signature(model, signature)
        check_graph(model)
    except BrokenGraphError as err:
        raise PassError(name, f"{fault}: {err}", ran) from err
