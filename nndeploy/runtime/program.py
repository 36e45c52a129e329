# SPDX-License-Identifier: Apache-2.0
"""A bundle that is loaded and ready to run: names in, arrays out, whatever libraries do the work.

`load_bundle` reads the bundle, opens one session for each submodel on the best variant that this host can take, and
`Program.run` checks the values, runs the chain and returns the outputs. Several threads may call `run` at once.

Law: an input that does not fit is refused before anything is computed; outputs belong to the caller.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.errors import BundleError, NndeployError, UnavailableError, UsageError
from nndeploy.pacing.run.protocol import NOT_PACED, Part, ProgramPacing
from nndeploy.plugin.interface import Session, StridedSession
from nndeploy.runtime.chain import Chain, ChainStep, Runnable, branch_edges, copied, edges_of
from nndeploy.runtime.chain_stages import staged
from nndeploy.runtime.code_policy import files_in, with_code_flags, without_code
from nndeploy.runtime.code_trust import is_stranger, why_no_code
from nndeploy.runtime.core_pool import PoolStep, SeparateCores
from nndeploy.runtime.crossing import crossings
from nndeploy.runtime.gpu_stream import GpuStreamStep
from nndeploy.runtime.input_checks import InputChecks
from nndeploy.runtime.load_keywords import LoadKeywords
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.opened_chain import OpenedChain, open_sessions
from nndeploy.runtime.outside_sizes import OutsideSizes
from nndeploy.runtime.places import ChainChoice, open_chain, wants_gpu
from nndeploy.runtime.select import VARIANTS_FILE, Choice, SessionOptions
from nndeploy.target.place_limits import num_calls
from nndeploy.values.size import MAX_SIZE
from nndeploy.values.types import Value

if TYPE_CHECKING:  # what paces runs is loaded where one is to be paced
    from nndeploy.pacing.plan.goal import PaceGoal
    from nndeploy.pacing.plan.plan_file import PacePlanFile

CLOSING_SECONDS = 0.001
"""Who closes a program looks this often whether calls still run."""


def _no_other() -> "Program":
    raise UnavailableError("there is no chain for other sizes")


class Program:
    """A loaded bundle; made by `load_bundle`, closed by `close` or the end of its `with` block."""

    def __init__(
        self,
        bundle: Bundle,
        chain: ChainChoice,
        opened: OpenedChain,
        pacing: ProgramPacing = NOT_PACED,
        portable: "Callable[[], Program]" = _no_other,
    ) -> None:
        """Takes over the bundle and the sessions, one for each submodel of the chain in order.

        `portable` opens the same bundle's chain for calls with sizes that this one was not built for.
        """
        manifest = bundle.manifest
        self.manifest: Manifest = manifest
        self.chain: ChainChoice = chain
        self.choices: tuple[Choice, ...] = opened.choices
        self._bundle = bundle
        self._opened = opened
        checks = InputChecks(manifest.inputs, manifest.ranges, _strided_inputs(chain, opened))
        defaults = {name: bundle.values(member)[name] for name, member in manifest.defaults.items()}
        self._checked = (lambda inputs: checks({**defaults, **inputs})) if defaults else checks.__call__
        self._constants = bundle.values(manifest.constants) if manifest.constants else {}
        self._output_names = tuple(output.name for output in manifest.outputs)
        self.pacing = pacing
        parts = _parts(chain, opened)
        paced_steps = pacing.place(
            parts,
            lambda: _edges(parts, opened),
            opened.gpu_streams,
            lambda: self._checked(_sample_of(bundle)),
        )
        steps: Sequence[Runnable] = _in_pools(parts, paced_steps, opened)
        places = [chain.place_of(submodel).name for submodel in chain.submodels]
        spans, kept = len(set(places)) > 1, self._produced()
        stages = staged(steps, places, kept, opened.gpu_streams, _cores_of(opened)) if spans else []
        found = tuple(dict.fromkeys(one.place for one in stages))
        self.stages: tuple[str, ...] = found if len(found) > 1 else ()
        """The places of a chain that spans several, over which calls follow each other; paced ones go one by one."""
        if self.calls_at_once > 1:
            steps = stages
        self._chain = Chain(steps, self._produced(), one_by_one=pacing.runs_one_by_one)
        has_only_produced = not manifest.aliases and not self._constants
        self._run_chain = self._chain.run
        only_produced = self._made if opened.gpu_streams else self._run_chain
        results = pacing.paced(only_produced if has_only_produced else self._with_others)
        self._outside = OutsideSizes(manifest.inputs, chain.id, chain.ranges, portable) if chain.ranges else None
        self.run_checked = results if self._outside is None else self._outside.around(results)
        self._running: list[None] = []  # one for each call; a list is changed in one step, without a lock
        self.variants_note = ""
        """Why variants that were chosen before are not taken, in one line; "" where they are, or nobody chose."""
        self._closing = threading.Lock()
        self._is_closed = False

    @property
    def inputs(self) -> tuple[NamedType, ...]:
        """The inputs, in the model's order."""
        return self.manifest.inputs

    @property
    def outputs(self) -> tuple[NamedType, ...]:
        """The outputs, in the model's order."""
        return self.manifest.outputs

    @property
    def sessions(self) -> dict[str, Session]:
        """The session of each submodel, in the order of the chain."""
        return {
            submodel.id: session for submodel, session in zip(self.chain.submodels, self._opened.sessions, strict=True)
        }

    @property
    def bundle(self) -> Bundle:
        """The bundle itself, which is closed with the program."""
        return self._bundle

    @property
    def path(self) -> Path:
        """The bundle's file."""
        return self._bundle.path

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each chain and variant that this machine should have taken and could not."""
        chain = (self.chain.warning,) if self.chain.warning else ()
        return chain + tuple(
            f"submodel {choice.submodel} runs on {choice.backend} ({choice.variant}), "
            f"not on {loss.backend} ({loss.variant}): {loss.reason}"
            for choice in self.choices
            for loss in choice.losses
        )

    @property
    def rows_at_once(self) -> int:
        """The most rows of the first axis that the chain was built for."""
        batches = {symbol for item in self.inputs for axis, symbol in item.open_axes if axis == 0}
        return min((one.max for name, one in self.chain.ranges.items() if name in batches), default=MAX_SIZE)

    @property
    def calls_at_once(self) -> int:
        """How many calls keep all that it runs on busy (`nndeploy.target.place_limits.num_calls`)."""
        return num_calls(self.stages) if self.stages and not self.pacing.is_paced else 1

    @property
    def outside_note(self) -> str:
        """One line on the first call with sizes that the chain was not built for; "" before it."""
        return "" if self._outside is None else self._outside.note

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Arrays must have the declared dtype; Python numbers and nested lists are converted where nothing is lost.
        Sequences are lists, optionals may be None or left out, strings are object arrays. An input with a default may
        be left out.

        Raises:
            InputError: a name, dtype, rank or size does not fit; nothing was computed.
            DataError: a library failed on these values.
            BundleError: a submodel is not what the manifest says.
            UsageError: the program is closed.
        """
        values = self._checked(inputs)
        self._running.append(None)  # who closes the program sees either the call, or the call sees that it is closed
        try:
            if self._is_closed:
                raise UsageError("the program is closed")
            return self.run_checked(values)
        finally:
            self._running.pop()

    def close(self) -> None:
        """Waits for running calls, then frees sessions and file; a second call does nothing."""
        with self._closing:
            if self._is_closed:
                return
            self._is_closed = True
        while self._running:
            time.sleep(CLOSING_SECONDS)
        self.close_sessions()
        self._bundle.close()

    def close_sessions(self) -> None:
        """Frees the sessions, and leaves the file to who shares it."""
        if self._outside is not None:
            self._outside.close()
        self._chain.close()
        self.pacing.close()
        self._opened.close()
        self._constants = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _produced(self) -> list[str]:
        """Returns the outputs that submodels produce.

        Raises:
            BundleError: an output comes from nowhere.
        """
        made = {name for submodel in self.chain.submodels for name in submodel.outputs}
        for name in self._output_names:
            if name not in made and name not in self.manifest.aliases and name not in self._constants:
                raise BundleError(f"nothing computes the output {name!r}", where=str(self._bundle.path))
        return [name for name in self._output_names if name in made]

    def _made(self, values: dict[str, Value]) -> dict[str, Value]:
        """Returns the outputs that submodels produce, on the host."""
        made = self._run_chain(values)
        return made if self._opened.gpu_streams is None else self._opened.gpu_streams.on_host(made)

    def _with_others(self, values: dict[str, Value]) -> dict[str, Value]:
        """Returns all outputs where some are inputs handed through, or constants; those are copied."""
        passed = {name: copied(values[source]) for name, source in self.manifest.aliases.items()}
        made = self._made(values)
        constant = {name: copied(value) for name, value in self._constants.items() if name not in made}
        found = {**constant, **passed, **made}
        return {name: found[name] for name in self._output_names}


def load_bundle(
    path: str | os.PathLike[str],
    options: LoadOptions = LoadOptions(),
    *,
    pace: "PaceGoal | PacePlanFile | None" = None,
    trusted: bool = False,
    variants: Mapping[str, str] | None = None,
    **given: Unpack[LoadKeywords],
) -> Program:
    """Returns the program of a bundle, with one session open for each submodel of the chain that this machine takes.

    Options are `given` as keywords, in `options`, or both: then keywords win.

    With `pace` each run sleeps between its operators, as far as that goal or plan allows. `trusted` says that the
    caller vouches for the bundle: no signature is asked for. `variants` names by submodel the variant that is taken
    first; None: as `nndeploy tune --fast` found. Submodels of a bundle that nobody answers for run in
    processes of their own, where `options.isolate` says nothing else.

    Raises:
        MissingInputError: there is no such file.
        BundleError: the bundle is malformed, damaged or of a newer format.
        UnavailableError: a submodel has no variant that can run here, or the bundle cannot be paced on it.
        PolicyError: the manifest says of a file that it is no code, which it is, or the other way round; or the bundle
            names files outside of itself; or no trusted key signed code that would run.
        UsageError: an argument has no meaning.
        DataError: the plan was made for another bundle, or for another machine.
    """
    options = replace(options, **given)
    cache_dir = options.cache_of(path)
    asked = {field.name: getattr(options, field.name) for field in fields(LoadOptions)}
    session_options = SessionOptions(**{**asked, "cache_dir": cache_dir})
    bundle, variants_note = open_bundle(Path(path)), ""
    try:
        manifest = with_code_flags(bundle.manifest, files_in(bundle))
        if not trusted:
            why = why_no_code(bundle, manifest, options)
            stranger = options.isolate == "auto" and is_stranger(bundle)
            session_options = replace(session_options, why_no_code=why, is_stranger=stranger)
        if variants is None:
            variants, variants_note = _kept_variants(cache_dir, manifest, session_options)
        session_options = replace(session_options, variants=variants)
        pacing = NOT_PACED if pace is None else _pacing(bundle, session_options, pace)
        try:
            program = _program(bundle, manifest, replace(session_options, pace=pacing.is_paced), pacing)
            program.variants_note = variants_note
            return program
        except BaseException:
            pacing.close()
            raise
    except BaseException as err:
        bundle.close()
        if isinstance(err, NndeployError) and str(path) not in err.where:
            err.within(str(path))
        raise


def _kept_variants(folder: str, manifest: Manifest, options: SessionOptions) -> tuple[Mapping[str, str], str]:
    """Returns which variants `nndeploy tune` chose before, and why they are not taken."""
    if not folder or not Path(folder, VARIANTS_FILE).exists():  # as of most bundles, which load fast
        return {}, ""
    from nndeploy.runtime.kept_variants import kept_variants

    return kept_variants(folder, manifest, options)


def _pacing(bundle: Bundle, options: SessionOptions, pace: "PaceGoal | PacePlanFile") -> ProgramPacing:
    from nndeploy.pacing.run.paced_program import paced_program

    if options.isolates_always:
        raise UsageError("an isolated submodel cannot be paced", hint="either pace or isolate")
    return paced_program(bundle, pace)


def _program(bundle: Bundle, manifest: Manifest, options: SessionOptions, pacing: ProgramPacing) -> Program:
    def opened(choice: ChainChoice) -> OpenedChain:
        return open_sessions(bundle, choice, options)

    def portable() -> Program:
        if options.strict or wants_gpu(options):
            raise UnavailableError("only the GPU was allowed")
        how = replace(options, device="cpu", places=())
        return Program(bundle, *open_chain(allowed, how, lambda choice: open_sessions(bundle, choice, how)))

    allowed = manifest if options.allow_native_code else without_code(manifest, files_in(bundle))
    chain, sessions = open_chain(allowed, options, opened)
    try:
        if pacing.needs_one_thread and any(pool.is_bound for pool in sessions.pools.values()):
            raise UsageError(
                "pools of cores on several NUMA nodes have threads of their own, on which items of a stream cannot be "
                "paced and operators not be timed",
                hint="--device cpu runs all on all cores",
            )
        program = Program(bundle, chain, sessions, pacing, portable)
        pacing.learn(program.run, bundle)
        return program
    except BaseException:
        sessions.close()
        raise


def _sample_of(bundle: Bundle) -> Mapping[str, Value]:
    """Returns inputs to try things with: a sample that the bundle carries, or made-up ones."""
    if goldens := bundle.manifest.goldens:
        return bundle.values(goldens[0].inputs)
    from nndeploy.runtime.sample_inputs import sample_inputs  # which loads numpy's dice, and few need it

    return sample_inputs(bundle.manifest)


def _parts(chain: ChainChoice, opened: OpenedChain) -> Sequence[Part]:
    """Returns the submodels with their steps, each with the streams that it runs with."""
    ways = crossings(chain.submodels, [choice.device for choice in opened.choices])
    every = zip(chain.submodels, opened.sessions, opened.choices, opened.next_variants, ways, strict=True)
    found = list[Part]()
    for submodel, session, choice, other, way in every:
        step: Runnable = ChainStep(submodel, session, choice.backend, chain.values, way, next_variant=other)
        if opened.gpu_streams is not None:
            step = GpuStreamStep(step, opened.gpu_streams)
        found.append(Part(submodel, step, session, choice.backend, choice.device != "cpu"))
    return found


def _in_pools(parts: Sequence[Part], steps: Sequence[Runnable], opened: OpenedChain) -> list[Runnable]:
    """Returns the steps of the parts, each on the threads of its pool of cores, if it has one.

    What paces a step is inside: it sleeps on the thread that works.
    """
    pools = [opened.pools.get(part.submodel.id) for part in parts]
    return [step if pool is None else PoolStep(step, pool) for step, pool in zip(steps, pools, strict=True)]


def _edges(parts: Sequence[Part], opened: OpenedChain) -> tuple[tuple[int, int], ...] | None:
    """Returns (a, b) where part b reads what part a makes, None where the caller's thread does one after another."""
    steps = [part.step for part in parts]
    return edges_of(steps) if any(pool.is_bound for pool in opened.pools.values()) else branch_edges(steps)


def _cores_of(opened: OpenedChain) -> AbstractContextManager[object]:
    """Returns what lets calls compute on cores of their own, where they run in pools that are bound to none."""
    unbound = [pool for pool in opened.pools.values() if not pool.is_bound]
    return SeparateCores() if unbound else nullcontext()


def _strided_inputs(chain: ChainChoice, opened: OpenedChain) -> set[str]:
    """Returns the inputs that all who read them take with any strides."""
    taken, refused = set[str](), set[str]()
    for submodel, session in zip(chain.submodels, opened.sessions, strict=True):
        takes = session.takes_strided if isinstance(session, StridedSession) else frozenset[str]()
        taken |= takes
        refused |= set(submodel.inputs) - takes
    return taken - refused
