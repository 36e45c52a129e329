# SPDX-License-Identifier: Apache-2.0
"""Plan -> built submodels: each piece through its backend's build, run on the samples, compared with the reference.

    place -> regions -> pieces -> build (several at once) -> compare
      a failed build or wrong numbers: the piece's nodes are taken from that backend, with the reason, and again

Every round takes at least one node from a backend for good, so this ends; when nobody is left, placement says which
node has no taker and why.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from nndeploy.bundle.manifest import Tolerance
from nndeploy.errors import ModelError, one_line
from nndeploy.frontend.onnx_types import value_type_from_onnx
from nndeploy.jobs.messages import model_bytes
from nndeploy.jobs.tasks import Built
from nndeploy.jobs.workers import Workers
from nndeploy.judge import BY_ROWS
from nndeploy.partition.cost import Costs, estimate_costs
from nndeploy.partition.derived_ranges import derived_ranges
from nndeploy.partition.extract import region_inputs, region_outputs, submodel_of, values_between
from nndeploy.partition.graph import node_name
from nndeploy.partition.islands import merge_islands
from nndeploy.partition.placement import Banned, Placement, place
from nndeploy.partition.regions import Region
from nndeploy.plugin import registry
from nndeploy.plugin.interface import (
    LAST_RESORT_TIER,
    OWN_KERNELS_TIER,
    Artifact,
    Backend,
    BuildOptions,
    BuildRefusedError,
    Support,
)
from nndeploy.report import CheckReport
from nndeploy.target import Target, has_bf16
from nndeploy.value_types import VALUE_TYPE, Value, ValueType, shapes_text, type_of_value
from nndeploy.verify.check import SampleLimits, compare_outputs, describe_failure, in_precision, not_compared
from nndeploy.verify.cuts import model_before_cuts
from nndeploy.verify.reference import Reference

Events = Callable[[str, str], None]
"""(stage, what is being done): for progress."""

ConcreteShapes = Callable[[ir.Model], Mapping[str, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Setting:
    """What stays the same while one chain is made.

    The chain is cut and built for `target`.
    `tolerances` maps a precision and an element type to its tolerance; `min_cosine` is for outputs of what computes in
    less than float32; with `has_limits` what is outside a tolerance is judged by how far right engines differ.
    `prefix` begins the ids of its submodels. `made_up` says the shapes of inputs that nobody gave, where the model
    leaves sizes open; else "". `answers` keeps what backends said of graphs: each is asked once.
    """

    workers: Workers
    target: Target
    build_options: BuildOptions
    reference: Reference
    samples: tuple[Mapping[str, Value], ...]
    incomparable: Mapping[str, str]
    tolerances: Mapping[str, Mapping[str, Tolerance]]
    min_cosine: float
    shapes_of: ConcreteShapes
    events: Events
    made_up: str = ""
    prefix: str = ""
    has_limits: bool = True
    answers: dict[tuple[str, Target, str], list[Support]] = field(default_factory=dict)

    def limits(
        self,
        model: Callable[[], ir.Model],
        samples: Sequence[Mapping[str, Value]],
        want: Sequence[Mapping[str, Value]],
        types: Mapping[str, ValueType],
    ) -> SampleLimits | None:
        """Returns what tells how far right engines differ on these samples; None where the user said how far."""
        if not self.has_limits:
            return None
        return lambda: self.reference.limits(model(), samples, want, types, self.tolerances["fp32"])


@dataclass(frozen=True, slots=True)
class Plan:
    """Who runs what: the placement, the regions in running order, and what the nodes cost."""

    prefix: str
    placement: Placement
    regions: tuple[Region, ...]
    backend_of: Mapping[str, str]
    moved: Mapping[str, str]
    costs: Costs

    @property
    def model(self) -> ir.Model:
        """The model after the backends' transforms."""
        return self.placement.model

    def submodel_id(self, index: int) -> str:
        """Returns the id of the submodel made of a region."""
        return f"{self.prefix}s{index}"


@dataclass(frozen=True, slots=True)
class Piece:
    """One region as a model of its own."""

    id: str
    backend: str
    nodes: tuple[str, ...]
    model: ir.Model
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BuiltVariant:
    """One submodel built by one backend for one target."""

    backend: str
    target: Target
    artifact: Artifact


@dataclass(frozen=True, slots=True)
class BuiltPiece:
    """A piece with its variants, best first."""

    piece: Piece
    variants: tuple[BuiltVariant, ...]

    def variant_id(self, index: int) -> str:
        """Returns the id that a variant has in the bundle."""
        return f"v{index}-{self.variants[index].backend}"


@dataclass(frozen=True, slots=True)
class Settled:
    """A plan whose every piece was built and gave the right numbers.

    `boundaries` holds for each sample the reference's value of everything that enters or leaves a piece (empty where
    no reference engine could run the model); `types` the type of each of those.
    """

    plan: Plan
    pieces: tuple[BuiltPiece, ...]
    boundaries: tuple[Mapping[str, Value], ...]
    types: Mapping[str, ValueType]
    checks: tuple[CheckReport, ...]
    dropped: tuple[str, ...]


def plan_for(
    setting: Setting,
    model: ir.Model,
    order: Sequence[Backend],
    pins: Sequence[tuple[str, str]] = (),
    banned: Banned | None = None,
) -> Plan:
    """Returns who runs which node of `model`, asked of the backends in `order`."""
    by_name = {backend.name: backend for backend in order}

    def ask(name: str, asked: ir.Model) -> list[Support]:
        key = (name, setting.target, _fingerprint(asked))
        if key not in setting.answers:
            setting.events("partition", f"asking {name}")
            options = options_for(setting, asked)
            setting.answers[key] = setting.workers.supports(name, asked, setting.target, options)
        return setting.answers[key]

    def costs_of(asked: ir.Model) -> Costs:
        return estimate_costs(asked, setting.shapes_of(asked))

    placement = place(
        model,
        list(by_name),
        ask,
        transforms=lambda name: by_name[name].transforms(setting.target),
        seconds=lambda asked: costs_of(asked).seconds,
        pins=pins,
        banned=banned,
    )
    costs = costs_of(placement.model)
    last_resorts = [backend.name for backend in order if backend.tier == LAST_RESORT_TIER]
    regions, backend_of, moved = merge_islands(placement, costs, last_resorts)
    return Plan(setting.prefix, placement, tuple(regions), backend_of, moved, costs)


MAX_BYTES_LOOKED_AT = 512
"""Of constants: those that decide what a backend takes (shapes, axes, scales) are smaller."""


def _fingerprint(model: ir.Model) -> str:
    """Returns what tells graphs of one compile apart: nodes with their attributes, and the types of what enters."""
    digest = hashlib.sha256()
    graph = model.graph
    for node in graph:
        digest.update(ir.serde.serialize_node(node).SerializeToString(deterministic=True))
    for value in (*graph.inputs, *graph.initializers.values(), *graph.outputs):
        digest.update(f"{value.name}:{value.type}:{value.shape};".encode())
        if value.const_value is not None and value.const_value.nbytes <= MAX_BYTES_LOOKED_AT:
            digest.update(value.const_value.tobytes())
    return digest.hexdigest()


Memo = dict[tuple[str, tuple[str, ...]], "Outcome"]
"""(backend, nodes) -> what came of building them; for plans of one graph, where the same nodes are the same piece."""


def settle(
    setting: Setting,
    model: ir.Model,
    order: Sequence[Backend],
    pins: Sequence[tuple[str, str]] = (),
    *,
    first: Plan | None = None,
    memo: Memo | None = None,
) -> Settled:
    """Returns a plan that was built and checked, moving nodes to the next backend until all is right.

    `first` is the plan to begin with where it is known; `memo` keeps what was built for further plans of this graph.

    Raises:
        ModelError: some node has no backend left.
    """
    banned, lost = Banned(), list[str]()
    memo = {} if memo is None else memo
    while True:
        try:
            plan = first or plan_for(setting, model, order, pins, banned)
        except ModelError as err:
            err.hint = _of_made_up(setting, lost) or err.hint
            raise
        first = None
        pieces = pieces_of(plan)
        boundaries, note = _boundaries(setting, pieces)
        here = replace(setting, build_options=options_for(setting, plan.model))
        outcomes = _build_all(here, pieces, boundaries, note, memo)
        failed = [outcome for outcome in outcomes if outcome.failure]
        if not failed:
            built = tuple(_built_piece(setting, outcome) for outcome in outcomes)
            checks = tuple(check for outcome in outcomes for check in outcome.checks)
            reverted = [outcome.reverted for outcome in outcomes]
            dropped = tuple(filter(None, (*lost, *reverted, _of_made_up(setting, lost))))
            return Settled(plan, built, boundaries, _types(pieces, boundaries), checks, dropped)
        for outcome in failed:
            piece = outcome.piece
            banned = banned.with_nodes(piece.backend, piece.nodes, outcome.failure)
            lost.append(f"{piece.backend} lost {len(piece.nodes)} nodes: {outcome.failure}")


def settle_planned(setting: Setting, plan: Plan) -> tuple[Settled | None, str]:
    """Returns `plan` once it was built and checked as it stands; None and the reason where that fails."""
    pieces = pieces_of(plan)
    boundaries, note = _boundaries(setting, pieces)
    outcomes = [_build(setting, piece, piece.backend, boundaries, note) for piece in pieces]
    failure = next((outcome.failure for outcome in outcomes if outcome.failure), "")
    if failure:
        return None, failure
    built = tuple(_built_piece(setting, outcome) for outcome in outcomes)
    checks = tuple(check for outcome in outcomes for check in outcome.checks)
    return Settled(plan, built, boundaries, _types(pieces, boundaries), checks, ()), ""


def _of_made_up(setting: Setting, lost: Sequence[str]) -> str:
    """Says that what was lost may only not suit the sizes that were made up, "" where nothing was or none were."""
    if not lost or not setting.made_up:
        return ""
    return (
        f"nobody gave inputs, so it was tried with {setting.made_up}: where the model needs other sizes, say them with "
        "--shape, or give --samples"
    )


def options_for(setting: Setting, model: ir.Model) -> BuildOptions:
    """Returns the build options for the target, with the ranges of sizes inside `model`, which GPUs' backends need."""
    options = options_on(setting.target, setting.build_options)
    if not setting.target.gpus or not options.ranges:
        return options
    return replace(options, ranges={**derived_ranges(model, options.ranges), **options.ranges})


def options_on(target: Target, options: BuildOptions) -> BuildOptions:
    """Returns the build options in a precision that the target has."""
    return options if has_bf16(target) else replace(options, precision="fp32")


def precision_of(chains: Iterable[Settled]) -> str:
    """Returns the least precision in which a variant of some chain computes."""
    computed = {v.artifact.precision for settled in chains for built in settled.pieces for v in built.variants}
    return "bf16" if "bf16" in computed else "fp32"


def with_fallbacks(setting: Setting, settled: Settled) -> Settled:
    """Returns the same with more variants for each piece: of the next backends that take it and are right.

    The last of them is the first without code in it, so that the bundle runs on other machines, and where no code is
    allowed.
    """
    here = replace(setting, build_options=options_for(setting, settled.plan.model))
    found = [_with_fallback(here, settled, built) for built in settled.pieces]
    checks = (check for _, made in found for check in made)
    return replace(settled, pieces=tuple(built for built, _ in found), checks=(*settled.checks, *checks))


def pieces_of(plan: Plan) -> list[Piece]:
    """Returns the regions of a plan as models, in running order."""
    between = values_between(list(plan.regions), plan.model.graph)
    return [
        Piece(
            id=plan.submodel_id(i),
            backend=region.backend,
            nodes=tuple(node_name(node) for node in region.nodes),
            model=submodel_of(plan.model, region, between),
            inputs=tuple(value.name or "" for value in region_inputs(region)),
            outputs=tuple(value.name or "" for value in region_outputs(region, between)),
        )
        for i, region in enumerate(plan.regions)
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of building a piece: an artifact and comparisons, or the reason why not.

    `reverted` says why it is in float32 although less was allowed, "" where it is not so.
    """

    piece: Piece
    built: Built | None
    checks: tuple[CheckReport, ...] = ()
    failure: str = ""
    reverted: str = ""

    @property
    def made(self) -> list[CheckReport]:
        """The comparisons that could be made."""
        return [check for check in self.checks if check.was_made]


def _boundaries(setting: Setting, pieces: Sequence[Piece]) -> tuple[tuple[Mapping[str, Value], ...], str]:
    if not setting.samples:
        return (), "no sample that the reference can run"
    setting.events("reference", "values between submodels")
    try:
        return tuple(setting.reference.along_chain([piece.model for piece in pieces], setting.samples)), ""
    except BuildRefusedError as err:
        return (), one_line(str(err))


def _build_all(
    setting: Setting,
    pieces: Sequence[Piece],
    boundaries: Sequence[Mapping[str, Value]],
    note: str,
    memo: Memo,
) -> list[Outcome]:
    def build(piece: Piece) -> Outcome:
        key = (piece.backend, piece.nodes)
        if key not in memo:
            memo[key] = _build(setting, piece, piece.backend, boundaries, note)
        return replace(memo[key], piece=piece)

    if setting.workers.num_parallel == 1 or len(pieces) == 1:
        return [build(piece) for piece in pieces]
    with ThreadPoolExecutor(setting.workers.num_parallel) as pool:
        return list(pool.map(build, pieces))


def _build(
    setting: Setting, piece: Piece, backend: str, boundaries: Sequence[Mapping[str, Value]], note: str
) -> Outcome:
    """Builds and compares a piece; where that fails in a lower precision than float32, in float32."""
    outcome = _tried(setting, piece, backend, boundaries, note)
    allowed = setting.build_options.precision
    if not outcome.failure or allowed == "fp32" or (outcome.built and outcome.built.artifact.precision == "fp32"):
        return outcome
    in_float32 = replace(setting, build_options=replace(setting.build_options, precision="fp32"))
    again = _tried(in_float32, piece, backend, boundaries, note)
    reason = f"{backend} computes {len(piece.nodes)} nodes in fp32, not in {allowed}: {outcome.failure}"
    return again if again.failure else replace(again, reverted=reason)


def _tried(
    setting: Setting, piece: Piece, backend: str, boundaries: Sequence[Mapping[str, Value]], note: str
) -> Outcome:
    setting.events("build", f"{piece.id} for {backend}, {len(piece.nodes)} nodes")
    fed = [{name: values[name] for name in piece.inputs} for values in boundaries]
    try:
        built = setting.workers.build(backend, piece.model, setting.target, setting.build_options, fed)
    except BuildRefusedError as err:
        return Outcome(piece, None, failure=one_line(str(err)))
    if note or built.not_run:
        return Outcome(
            piece, built, (not_compared(piece.id, backend, built.not_run or note, absent=bool(built.not_run)),)
        )
    types = _types([piece], boundaries)
    precision = built.artifact.precision
    compared = compare_outputs(
        piece.id,
        backend,
        built.outputs,
        boundaries,
        {name: types[name] for name in piece.outputs},
        setting.tolerances[precision],
        setting.incomparable,
        setting.limits(lambda: piece.model, fed, boundaries, {name: types[name] for name in piece.outputs}),
    )
    checks = in_precision(compared, precision, setting.min_cosine)
    if any(check.rule == BY_ROWS for check in checks):
        checks += _before_cuts(setting, piece, backend, fed)
    wrong = next((check for check in checks if not check.ok), None)
    if wrong is None:
        return Outcome(piece, built, tuple(checks))
    at = f" at {shapes_text(fed[wrong.sample])}" if len(set(map(shapes_text, fed))) > 1 else ""
    return Outcome(piece, built, tuple(checks), f"wrong numbers: {describe_failure(wrong)}{at}")


def _before_cuts(setting: Setting, piece: Piece, backend: str, fed: Sequence[Mapping[str, Value]]) -> list[CheckReport]:
    """Returns comparisons of what operators that choose and sort are given in a piece: that is no list, but numbers.

    The backend builds the part of the piece before them; where it will not, there is nothing more to compare.
    """
    before = model_before_cuts(piece.model)
    if before is None:
        return []
    part = replace(piece, model=before, outputs=tuple(value.name or "" for value in before.graph.outputs))
    names = [value.name or "" for value in before.graph.inputs]
    samples = [{name: values[name] for name in names} for values in fed]
    try:
        want = setting.reference.evaluate(model_bytes(before), samples)
        built = setting.workers.build(backend, before, setting.target, setting.build_options, samples)
    except BuildRefusedError:
        return []
    types = {name: kind for name, kind in _types([part], want).items() if name in part.outputs}
    limits = setting.limits(lambda: before, samples, want, types)
    tolerances = setting.tolerances[built.artifact.precision]
    checks = compare_outputs(piece.id, backend, built.outputs, want, types, tolerances, setting.incomparable, limits)
    return in_precision(checks, built.artifact.precision, setting.min_cosine)


def _built_piece(setting: Setting, outcome: Outcome) -> BuiltPiece:
    assert outcome.built is not None
    return BuiltPiece(outcome.piece, (BuiltVariant(outcome.piece.backend, setting.target, outcome.built.artifact),))


def takers_below(placement: Placement, piece: Piece) -> list[str]:
    """Returns the backends below a piece's own that take all of it, best first; own kernels for CPUs behind libraries.

    Those are compiled for one kind of processor, and where they are not the first choice they are not worth that time.
    """
    backends = list(placement.answers)
    below = backends[backends.index(piece.backend) + 1 :]
    takers = [registry.backend(name) for name in below if placement.takes_all(name, piece.nodes)]
    takers.sort(key=lambda taker: (taker.tier == LAST_RESORT_TIER, _is_made_for_one_cpu(taker)))
    return [taker.name for taker in takers]


def _is_made_for_one_cpu(taker: Backend) -> bool:
    return taker.tier == OWN_KERNELS_TIER and taker.device_kind == "cpu"


def _with_fallback(setting: Setting, settled: Settled, built: BuiltPiece) -> tuple[BuiltPiece, list[CheckReport]]:
    """Returns a piece with its fallbacks, and the comparisons of these that were made."""
    variants, checks = list(built.variants), list[CheckReport]()
    for backend in takers_below(settled.plan.placement, built.piece):
        outcome = built_and_checked(setting, settled, built.piece, backend)
        if outcome.built is not None and not outcome.failure:
            variants.append(BuiltVariant(backend, setting.target, outcome.built.artifact))
            checks += outcome.made
            if not outcome.built.artifact.native_code:
                break
    return replace(built, variants=in_order(variants)), checks


def built_and_checked(setting: Setting, settled: Settled, piece: Piece, backend: str) -> Outcome:
    """Returns what comes of building a piece of a settled plan with another backend, or for another target."""
    note = "" if settled.boundaries else "no sample that the reference can run"
    return _build(setting, piece, backend, settled.boundaries, note)


def in_order(variants: Sequence[BuiltVariant]) -> tuple[BuiltVariant, ...]:
    """Returns the variants of a piece, best first: a box takes the first that it can run.

    The first was chosen, and stays the first wherever it runs. Behind it stand those that need most of a processor,
    then those that run on any; equal ones are kept once.
    """
    chosen, *others = variants
    needs = [variant for variant in variants if variant.artifact.requires.get("arch")]
    anywhere = [variant for variant in others if variant not in needs]
    needs.sort(key=lambda variant: -len(variant.artifact.requires.get("cpu_features", ())))
    kept: list[BuiltVariant] = []
    for variant in (*(() if chosen in needs else (chosen,)), *needs, *anywhere):
        built = variant.backend, variant.artifact
        number = next((i for i, other in enumerate(kept) if (other.backend, other.artifact) == built), None)
        if number is None:
            kept.append(variant)
        elif kept[number].target.is_host:
            kept[number] = variant  # it is the one for that box too, which was named
    return tuple(kept)


def _types(pieces: Sequence[Piece], boundaries: Sequence[Mapping[str, Value]]) -> dict[str, ValueType]:
    """Returns the type of every value that enters or leaves a piece: the inferred one, else that of its value."""
    types: dict[str, ValueType] = {}
    for piece in pieces:
        for value in (*piece.model.graph.inputs, *piece.model.graph.outputs):
            name = value.name or ""
            known = _inferred_type(value)
            if known is None and boundaries and boundaries[0].get(name) is not None:
                known = type_of_value(boundaries[0][name])
            if known is not None:
                types[name] = known
    return types


def _inferred_type(value: ir.Value) -> ValueType | None:
    if value.type is None:
        known: ValueType | None = value.meta.get(VALUE_TYPE)
        return known
    try:
        return value_type_from_onnx(ir.to_proto(value).type)
    except ModelError:
        return None  # inference left it open; the reference's value tells
