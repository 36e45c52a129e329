# SPDX-License-Identifier: Apache-2.0
"""Built submodels -> manifest, members and report of a bundle.

Nothing here depends on the clock, on the machine's paths or on the order of hash tables: the same settled compile
gives the same bytes. Members with equal content are stored once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from nndeploy.bundle.manifest import (
    PORTABLE,
    Golden,
    Limits,
    Manifest,
    NamedType,
    Placing,
    Submodel,
    TargetChain,
    Variant,
)
from nndeploy.bundle.report import (
    GIVEN,
    MADE_UP,
    TRANSFORMS,
    BuildLog,
    Candidate,
    ChainReport,
    CheckReport,
    NodeReport,
    PassReport,
    QuantisationReport,
    Report,
    SubmodelReport,
    TargetReport,
)
from nndeploy.bundle.values import encode_values
from nndeploy.checking.original import Original
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.built_chain import BuiltPiece, BuiltVariant, Settled, precision_of
from nndeploy.compiler.chains.chain_plan import ChainPlan
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.target_chains import PlannedChain, SettledChain, why_idle
from nndeploy.compiler.chains.why_later import why_later
from nndeploy.compiler.compressed_members import Kept, compressed
from nndeploy.compiler.options import CompileOptions, options_to_json
from nndeploy.files.file_content import Content, KnownHashes
from nndeploy.frontend.load import LoadedModel
from nndeploy.graph.nodes import node_name, operator, values_read
from nndeploy.pacing.plan.operators_file import OPERATORS_NAME, CountedOperators, operators_to_json
from nndeploy.partition.count_operators import counted_operators
from nndeploy.partition.placement import Placement
from nndeploy.plugin.interface import Backend
from nndeploy.values.types import DimRange, Value
from nndeploy.version import __version__

MAX_GOLDEN_BYTES = 64 << 20
WhyLater = Callable[[Placement, str, str], str]
"""Says of a node and a backend that takes it why another has it."""
MAX_LOG = 8192  # characters of a build log that travel in the report


@dataclass(frozen=True, slots=True)
class Packing:
    """What stays the same for every bundle, trial or final, of one compile.

    `float_outputs` are those of the float32 model on the samples of `original`, where that is a quantised one.
    """

    loaded: LoadedModel
    original: Original
    passes: tuple[PassReport, ...]
    options: CompileOptions
    portable: TargetBackends
    setting: Setting
    candidates: tuple[Candidate, ...] = ()
    measured_shapes: tuple[str, ...] = ()
    chains: tuple[SettledChain, ...] = ()
    limits: tuple[Mapping[str, Limits], ...] = ()
    targets: tuple[TargetReport, ...] = ()
    quantisation: QuantisationReport | None = None
    float_outputs: tuple[Mapping[str, Value], ...] = ()
    kept: Kept = field(default_factory=dict)
    hashes: KnownHashes = field(default_factory=KnownHashes)


@dataclass(frozen=True, slots=True)
class Findings:
    """What the compile learnt: comparisons beyond those of single submodels, warnings, shapes that a pipeline fixed."""

    checks: tuple[CheckReport, ...] = ()
    warnings: tuple[str, ...] = ()
    shapes_of_pipeline: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Members:
    """Members by path; equal content is stored under the path that came first."""

    hashes: KnownHashes
    contents: dict[str, Content] = field(default_factory=dict)
    _path_of: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, content: Content) -> str:
        stored = self._path_of.setdefault(self.hashes.of(content), path)
        self.contents.setdefault(stored, content)
        return stored


def pack(
    packing: Packing, settled: Settled, findings: Findings, *, compresses: bool = True
) -> tuple[Manifest, dict[str, Content], Report]:
    """Returns the manifest (without its list of members), the members, and the report."""
    loaded, members = packing.loaded, _Members(packing.hashes)
    graph = settled.plan.model.graph
    inputs = {named.name for named in loaded.inputs}
    chains = [settled, *(chain.settled for chain in packing.chains)]
    made_by_all = [{name for built in chain.pieces for name in built.piece.outputs} for chain in chains]
    constants = _constant_outputs(graph, set.intersection(*made_by_all) | inputs)
    interface = {named.name: named.type for named in (*loaded.inputs, *loaded.outputs)}
    manifest = Manifest(
        model_name=loaded.name,
        model_sha256=loaded.sha256,
        inputs=loaded.inputs,
        outputs=loaded.outputs,
        submodels=tuple(_submodel(built, members) for built in settled.pieces),
        values={**settled.types, **interface},
        target_chains=tuple(
            TargetChain(
                chain.id,
                chain.backends.target.name,
                tuple(_submodel(built, members) for built in chain.settled.pieces),
                {**chain.settled.types, **interface},
                chain.ranges,
            )
            for chain in packing.chains
            if chain.uses_gpu
        ),
        ranges=loaded.ranges,
        aliases={value.name: value.name for value in graph.outputs if value.name and value.name in inputs},
        constants=members.add("weights/constants.values", encode_values(constants)) if constants else "",
        defaults=dict.fromkeys(loaded.defaults, members.add("weights/defaults.values", encode_values(loaded.defaults)))
        if loaded.defaults
        else {},
        goldens=_goldens(packing, settled, members),
        tolerances=packing.setting.tolerances[precision_of(chains)],
        checks=tuple(_check_to_json(check) for check in _all_checks(packing, settled, findings)),
        image_input=packing.options.image_input,
        pace_operators=members.add(OPERATORS_NAME, _operators(packing, chains)) if packing.options.pace else "",
        provenance=_provenance(packing),
        placings=_placings(packing, settled),
    )
    carried = packing.options.pipeline.members if packing.options.pipeline is not None else {}
    contents: Mapping[str, Content] = members.contents
    if compresses:
        contents, smaller = compressed(manifest, contents, packing.hashes, packing.kept)
        manifest = replace(manifest, compressed=smaller)
    report = report_of(packing, settled.plan, settled, findings, packing.chains)
    return manifest, {**contents, **carried}, report


def report_of(
    packing: Packing,
    plan: ChainPlan,
    settled: Settled | None,
    findings: Findings,
    chains: Sequence[PlannedChain | SettledChain],
) -> Report:
    """Returns the report of a compile, or of a dry run (`settled` None)."""
    return Report(
        model=packing.loaded.name,
        objective=packing.options.objective,
        shapes=packing.original.shapes,
        samples=MADE_UP if packing.original.is_made_up else GIVEN,
        candidates=packing.candidates,
        measured_shapes=packing.measured_shapes,
        target_chains=tuple(_chain_report(chain, packing) for chain in chains),
        targets=packing.targets,
        quantisation=packing.quantisation,
        shapes_of_pipeline=findings.shapes_of_pipeline,
        **_built(
            packing.portable.backends,
            plan,
            settled,
            why=partial(why_later, candidates=packing.candidates, pins=packing.options.pins),
            passes=packing.passes,
            checks=findings.checks,
            warnings=(*findings.warnings, *plan.placement.warnings),
        ),
    )


def _chain_report(chain: PlannedChain | SettledChain, packing: Packing) -> ChainReport:
    settled = chain.settled if isinstance(chain, SettledChain) else None
    warnings = (*chain.backends.warnings, *chain.plan.placement.warnings)
    why = partial(why_later, candidates=(), pins=packing.options.pins)
    built = _built(chain.backends.backends, chain.plan, settled, why=why, warnings=warnings)
    idle_gpu = why_idle(chain, built["submodels"], _open_inputs(packing, chain.ranges))
    if idle_gpu:
        built["warnings"] = (*warnings, idle_gpu)
    ranges = {} if idle_gpu else {name: str(limits) for name, limits in chain.ranges.items()}
    return ChainReport(id=chain.id, target=chain.backends.target.name, idle_gpu=idle_gpu, ranges=ranges, **built)


def _built(
    order: Sequence[Backend],
    plan: ChainPlan,
    settled: Settled | None,
    *,
    why: WhyLater,
    passes: tuple[PassReport, ...] = (),
    checks: tuple[CheckReport, ...] = (),
    warnings: tuple[str, ...],
) -> dict[str, Any]:
    """Returns the fields of a `BuiltReport`; `passes` and `checks` are those before the chain's own."""
    names = tuple(backend.name for backend in order)
    nodes = tuple(_node_reports(plan, names, why))
    return {
        "backends": names,
        "nodes": nodes,
        "submodels": tuple(_submodel_reports(plan, nodes)),
        "passes": (*passes, *_transforms(plan), *(_rewrites(settled) if settled else ())),
        "checks": (*checks, *(settled.checks if settled else ())),
        "dropped": settled.dropped if settled else (),
        "warnings": warnings,
        "nondeterministic": tuple(_nondeterministic(settled)) if settled else (),
        "logs": tuple(_logs(settled)) if settled else (),
    }


def _open_inputs(packing: Packing, ranges: Mapping[str, DimRange]) -> list[NamedType]:
    """Returns the inputs with a size that has no range, which no backend for GPUs builds for."""
    known = {*packing.loaded.ranges, *ranges}
    return [named for named in packing.loaded.inputs if any(symbol not in known for _, symbol in named.open_axes)]


def _transforms(plan: ChainPlan) -> tuple[PassReport, ...]:
    return tuple(PassReport(f"{TRANSFORMS}{backend}", count) for backend, count in plan.placement.transformed)


def _rewrites(settled: Settled) -> tuple[PassReport, ...]:
    return tuple(PassReport(f"{TRANSFORMS}{backend} on what it takes", count) for backend, count in settled.rewrites)


def _all_checks(packing: Packing, settled: Settled, findings: Findings) -> list[CheckReport]:
    chains = [settled, *(chain.settled for chain in packing.chains)]
    return [*findings.checks, *(check for chain in chains for check in chain.checks)]


def _submodel(built: BuiltPiece, members: _Members) -> Submodel:
    piece = built.piece
    variants = tuple(
        _variant(piece.id, built.variant_id(i), variant, members) for i, variant in enumerate(built.variants)
    )
    return Submodel(piece.id, piece.inputs, piece.outputs, variants)


def _variant(submodel: str, name: str, variant: BuiltVariant, members: _Members) -> Variant:
    files = {
        file: members.add(f"submodels/{submodel}/{name}/{file}", content)
        for file, content in sorted(variant.artifact.files.items())
    }
    return Variant(
        id=name,
        backend=variant.backend,
        target=variant.target.name,
        files=files,
        metadata=variant.artifact.metadata,
        requires=variant.artifact.requires,
        native_code=variant.artifact.native_code,
        deterministic=variant.artifact.deterministic,
    )


def _placings(packing: Packing, settled: Settled) -> dict[str, Placing]:
    """Returns where the submodels of each chain run that spans several places."""
    plans = {PORTABLE: settled.plan, **{chain.id: chain.plan for chain in packing.chains if chain.uses_gpu}}
    found = {name: plan.placing for name, plan in plans.items()}
    return {name: placing for name, placing in found.items() if placing is not None}


def _operators(packing: Packing, chains: Sequence[Settled]) -> bytes:
    """Returns what the operators of each submodel compute at the shapes of the first sample."""
    first = packing.original.samples[0] if packing.original.samples else {}
    submodels = {
        built.piece.id: counted_operators(built.piece.model, shapes)
        for settled in chains
        for shapes in [packing.setting.shapes_of(settled.plan.model)]
        for built in settled.pieces
    }
    shapes = {name: value.shape for name, value in first.items() if isinstance(value, np.ndarray)}
    return operators_to_json(CountedOperators(shapes, submodels))


def _constant_outputs(graph: ir.Graph, computed: set[str]) -> dict[str, Value]:
    return {
        value.name: value.const_value.numpy()
        for value in graph.outputs
        if value.name and value.name not in computed and value.const_value is not None
    }


def _goldens(packing: Packing, settled: Settled, members: _Members) -> tuple[Golden, ...]:
    """Returns the samples that travel; outputs that two right runs need not agree on are left out."""
    original, incomparable = packing.original, packing.setting.incomparable
    kept, size = [], 0
    for i, (sample, outputs) in enumerate(zip(original.samples, original.outputs, strict=True)):
        parts = {"inputs": sample, "outputs": {name: v for name, v in outputs.items() if name not in incomparable}}
        if len(settled.pieces) > 1 and settled.boundaries:
            between = {name for built in settled.pieces for name in (*built.piece.inputs, *built.piece.outputs)}
            parts["boundaries"] = {
                name: value
                for name, value in settled.boundaries[i].items()
                if name in between and name not in sample and name not in outputs and name not in incomparable
            }
        encoded = {part: encode_values(values) for part, values in parts.items() if values or part != "boundaries"}
        size += sum(len(data) for data in encoded.values())
        if i >= packing.options.num_goldens or size > MAX_GOLDEN_BYTES:
            break
        paths = {part: members.add(f"goldens/{i}/{part}.values", data) for part, data in encoded.items()}
        limits = {name: of for name, of in packing.limits[i].items() if name in outputs} if packing.limits else {}
        kept.append(Golden(paths["inputs"], paths["outputs"], paths.get("boundaries", ""), original.origin, limits))
    return tuple(kept)


def _check_to_json(check: CheckReport) -> dict[str, Any]:
    return {name: getattr(check, name) for name in check.__slots__}


def _provenance(packing: Packing) -> dict[str, Any]:
    return {
        "tools": {"nndeploy": __version__, "onnx": onnx.__version__, "onnx-ir": ir.__version__},
        "backends": _versions(packing),
        "options": options_to_json(packing.options),
        "passes": {report.name: report.count for report in packing.passes},
    }


def _versions(packing: Packing) -> dict[str, str]:
    """Returns the version of each backend's library that built something."""
    everyone = (packing.portable, *(chain.backends for chain in packing.chains))
    return {name: version for who in everyone for name, version in who.versions.items()}


def _node_reports(plan: ChainPlan, order: Sequence[str], why: WhyLater) -> list[NodeReport]:
    region_of = {node_name(node): i for i, region in enumerate(plan.regions) for node in region.nodes}
    reports = []
    for node in plan.model.graph:
        name = node_name(node)
        backend = plan.backend_of[name]
        refusals = plan.placement.refusals(name, order, partial(why, plan.placement, name))
        if name in plan.moved:
            refusals[plan.placement.backend_of[name]] = plan.moved[name]
            refusals.pop(backend, None)
        reports.append(
            NodeReport(
                name,
                operator(node),
                backend,
                plan.submodel_id(region_of[name]),
                round(plan.costs.compute_share(name), 6),
                tuple(value.name or "" for value in values_read(node) if not value.is_initializer()),
                tuple(value.name or "" for value in node.outputs if value.name),
                refusals,
            )
        )
    return reports


def _submodel_reports(plan: ChainPlan, nodes: Sequence[NodeReport]) -> list[SubmodelReport]:
    reports = []
    for i, region in enumerate(plan.regions):
        name = plan.submodel_id(i)
        inside = [node for node in nodes if node.submodel == name]
        share = round(sum(node.share for node in inside), 6)
        reports.append(SubmodelReport(name, region.backend, len(inside), share, _main_refusals(inside)))
    return reports


def _main_refusals(nodes: Sequence[NodeReport]) -> dict[str, str]:
    """Returns for each higher backend the reason that stands for most nodes, with an operator if not for all."""
    reasons: dict[str, dict[str, list[NodeReport]]] = {}
    for node in nodes:
        for backend, reason in node.refusals.items():
            reasons.setdefault(backend, {}).setdefault(reason, []).append(node)
    summary = {}
    for backend, by_reason in reasons.items():
        reason, refused = max(by_reason.items(), key=lambda item: len(item[1]))
        more = f" (+{len(by_reason) - 1} other reasons)" if len(by_reason) > 1 else ""
        is_of_all = len(refused) == len(nodes) > 1
        summary[backend] = reason if is_of_all else f"{refused[0].op} {refused[0].name!r}: {reason}{more}"
    return summary


def _logs(settled: Settled) -> Iterator[BuildLog]:
    for built in settled.pieces:
        for i, variant in enumerate(built.variants):
            if text := variant.artifact.log:
                kept = text if len(text) <= MAX_LOG else f"{text[:MAX_LOG]}\n[{len(text) - MAX_LOG} characters more]"
                yield BuildLog(built.piece.id, built.variant_id(i), kept)


def _nondeterministic(settled: Settled) -> list[str]:
    return [
        f"submodels/{built.piece.id}/{built.variant_id(i)}"
        for built in settled.pieces
        for i, variant in enumerate(built.variants)
        if not variant.artifact.deterministic
    ]
