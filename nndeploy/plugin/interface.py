# SPDX-License-Identifier: Apache-2.0
"""The public interface of a backend: what a plugin must offer, and the values that cross the border.

A backend is a class without constructor arguments, named by an entry point of the group `nndeploy.backends`. Its
module imports nothing heavy until a method is called. `supports` and `build` belong to the compile half and see
`onnx_ir` models; `open` and the `Session` belong to the run half and must not import onnx (unless onnx is the
backend's own library). The core checks names, dtypes, shapes and lifetimes once for all, so a session need not.

A refusal is a value with a reason (`Support`, `Probe`), never an exception. The same suite that checks the
backends of this project checks yours: `nndeploy.testing.BackendConformance`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from nndeploy.plugin.pacing import HasPacePoints
from nndeploy.values.types import DimRange, Value, ValueType

if TYPE_CHECKING:
    import onnx_ir as ir

    from nndeploy.target.target import Target

API_VERSION = 2
"""docs/internals/versions.md says when it must rise."""
DEVICE_KINDS = ("cpu", "cuda")
PRECISIONS = ("fp32", "bf16")
CALIBRATIONS = ("min-max", "percentile", "entropy")
"""How the range of a tensor follows from samples: all values, all but the outermost, or least loss of information."""
OWN_KERNELS_TIER = 3
"""Tier of backends whose kernels are compiled for each model."""
FALLBACK_TIER = 4
LAST_RESORT_TIER = 5
"""Tier of backends that are there so that every model runs; a call may take half a minute."""

Json: TypeAlias = Any
"""Plain data: None, bool, int, float, str, list and dict with str keys."""

MayTouch: TypeAlias = "Callable[[ir.Node], bool]"


@dataclass(frozen=True, slots=True)
class Probe:
    """What a backend can do on this machine for one target: build artifacts, run them; and if not, why.

    `hint` is what to type or to install, and every command prints it as it is; "" where nothing helps.
    `absent_hardware` names hardware that is missing ("NVIDIA GPU"), "" where none is; `hint` is "" beside it.
    """

    can_build: bool
    can_run: bool
    version: str = ""
    reason: str = ""
    hint: str = ""
    absent_hardware: str = ""

    @property
    def why_not(self) -> str:
        """Why the backend is of no use, one line: `reason`, or that it is not applicable for want of hardware."""
        if self.absent_hardware and not self.can_build:
            return f"not applicable: no {self.absent_hardware}"
        return self.reason


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a backend takes a node; `reason` is one short line and is never empty for a refusal."""

    ok: bool
    reason: str = ""


TAKEN = Support(True)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a user asked of a build that a backend may care about.

    `ranges` gives the sizes of symbolic dimensions, `threads` is the number that `open` will be asked for (None: the
    backend's default), `custom_op_libraries` are shared libraries that the operator of this machine named. `precision`,
    one of `PRECISIONS`, is the least in which float32 may be computed; "bf16" is asked only for a target that has it.
    With `pace` the artifact will be paced: a backend whose sessions stop between operators alone may cut long ones.
    """

    threads: int | None = None
    ranges: Mapping[str, DimRange] = field(default_factory=dict)
    custom_op_libraries: tuple[str, ...] = ()
    precision: str = "fp32"
    pace: bool = False


@dataclass(frozen=True, slots=True)
class Artifact:
    """One submodel built for one backend and target.

    `files`: relative name (letters a-z, digits, `_`, `-`, `.`; at most one folder) -> bytes.
    `metadata`: plain data handed back to `open` as it is.
    `requires`: what a host must offer to take it: `arch` ("x86_64"), `cpu_features` (list of Linux flag names),
    `custom_ops` (list of operator domains that need a library given at load), `compute_capability` (list of those
    ("8.9") of which a GPU must have one), `compute_capability_min`, `machines` (list of mappings of `arch` and
    `cpu_features`, one of which must be met). A missing key means "anything".
    A file `plan.json` may tell what the artifact does, for `nndeploy inspect`: `nndeploy.values.plan_steps` says how.
    `native_code`: a file is executable code or an engine; see `TellsCode`. `deterministic`: the same input gives the
    same bytes.
    `precision`: in which it computes float32; "bf16" only where that was asked for, and it is compared less closely.
    """

    files: Mapping[str, bytes | memoryview]
    metadata: Mapping[str, Json] = field(default_factory=dict)
    requires: Mapping[str, Json] = field(default_factory=dict)
    native_code: bool = False
    deterministic: bool = True
    log: str = ""
    precision: str = "fp32"


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """How a session is opened: `device` is "cpu" or "cuda:N"; `threads` None means the backend's default.

    `cache_dir` is a folder in which a backend may keep what it compiled or measured for this machine, "" for none; with
    `shares_weights` also weights as it packed them, so that processes which open the same artifact share their memory.
    With `pace` runs will be paced (`nndeploy.plugin.pacing`). `inputs` and `outputs` are what the bundle says of the
    submodel's values, by name, None where nobody says: an artifact that says otherwise is none of this bundle.
    """

    device: str = "cpu"
    threads: int | None = None
    custom_op_libraries: tuple[str, ...] = ()
    cache_dir: str = ""
    pace: bool = False
    inputs: Mapping[str, ValueType] | None = None
    outputs: Mapping[str, ValueType] | None = None
    shares_weights: bool = False


class Session(Protocol):
    """One submodel, loaded on its device.

    A session on a GPU takes arrays of the host or of that GPU and returns `nndeploy.cuda.DeviceArray`, which the core
    copies to the host where a session on the CPU or the caller reads them.
    """

    def run(self, inputs: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the value of every output by name.

        Inputs come with the names, dtypes and ranks that the submodel declares and are not changed. Several threads
        may call at once. Outputs belong to the caller: a later call must not overwrite them.
        """

    def close(self) -> None:
        """Frees what the session holds; a second call does nothing."""


@dataclass(frozen=True, slots=True)
class CodeFiles:
    """The files of an artifact that are executable code or an engine, and whether it cannot be opened without them."""

    names: frozenset[str] = frozenset()
    is_needed: bool = True


NO_CODE = CodeFiles()


@runtime_checkable
class StridedSession(Protocol):
    """What a session may offer besides: to take inputs with whatever strides they have."""

    takes_strided: frozenset[str]
    """Their names. All other inputs come C-contiguous."""


@runtime_checkable
class TunedSession(Protocol):
    """What a session may offer besides: to time other ways of doing its work on this machine, which give the same bits.

    What it found it keeps in `OpenOptions.cache_dir`, and takes when the artifact is opened again on the same machine.
    """

    tuning_note: str
    """Why what was found before is not taken, in one line; "" where it is, or where there is nothing."""
    is_tuned: bool
    """Whether there is nothing more to try."""

    def begin_tuning(self, seconds: float) -> None:
        """Lets runs, for about so many seconds, try other ways and be timed.

        Raises:
            InputOutputError: what is found cannot be kept.
        """

    def end_tuning(self) -> list[Json]:
        """Takes and keeps what was found; returns it as plain data: `tables` with `shapes`, `steps` and times in us.

        Raises:
            InputOutputError: it cannot be kept.
        """

    def replay_tuning(self, data: Sequence[Json]) -> list[Json]:
        """Takes and keeps what `end_tuning` returned before, maybe of other sessions too; returns what is its own.

        Raises:
            DataError: it is malformed, or of another artifact or machine.
            InputOutputError: it cannot be kept.
        """


@runtime_checkable
class FastTunedSession(TunedSession, Protocol):
    """What a session that can be tuned may offer besides: other ways whose results differ in last bits."""

    def begin_fast_tuning(self, seconds: float) -> None:
        """Does what `begin_tuning` does with these ways too.

        Raises:
            InputOutputError: what is found cannot be kept.
        """


@runtime_checkable
class SessionWithTrials(Protocol):
    """What a session may offer besides: to try other ways between its runs, on the inputs of an earlier one.

    Runs are done as ever meanwhile, and wait for one trial at most, which takes about as long as they do.
    """

    def begin_trials(self, seconds: float) -> None:
        """Lets `try_once` make trials, for so many seconds of these at each set of shapes of the inputs.

        Raises:
            InputOutputError: what is found cannot be kept.
            UnavailableError: runs of this session leave no trials between them.
        """

    def try_once(self) -> list[Json] | None:
        """Makes one trial; one thread may ask. Returns what was found, taken and kept with it, as `end_tuning` does.

        None: nothing was tried, for now.

        Raises:
            InputOutputError: what was found is taken, and cannot be kept.
        """

    def end_trials(self) -> None:
        """Tries nothing more."""


class FusedTimes(NamedTuple):
    """The median nanoseconds of a step, fused and apart, of runs that took turns."""

    fused_ns: float
    apart_ns: float


@runtime_checkable
class FusedSession(Protocol):
    """What a session may offer besides: to time its fused steps against the same steps done apart.

    Results may round otherwise meanwhile. Steps are those of its pace points (`nndeploy.plugin.pacing`), in order.
    """

    has_fused_steps: bool
    """Whether there is anything to time."""

    def begin_apart(self) -> None:
        """Lets every second run do its fused steps apart, and times the steps of all runs."""

    def end_apart(self) -> list[FusedTimes | None]:
        """Ends that; returns the times of each step, None of one that is not fused, or that is done apart anyway."""


class Transform(Protocol):
    """A rewrite that helps one backend: it replaces operators by others that mean the same."""

    name: str

    def __call__(self, model: "ir.Model", may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes of the main graph that `may_touch` allows; returns how many it replaced."""


class Backend(Protocol):
    """A toolchain that puts a network on a device.

    `tier` is the default priority: 1 inference library, 2 operator library, 3 own operators, 4 fallback, 5 last
    resort. `device_kind` is where its sessions run: "cpu", or "cuda" for NVIDIA GPUs; it is asked only for targets that
    have such a device. `extra_domains` are operator domains beyond ONNX's own that it may take.
    """

    name: str
    tier: int
    device_kind: str
    api_version: int
    extra_domains: tuple[str, ...]

    def probe(self, target: "Target") -> Probe:
        """Returns what can be done on this machine for `target`, quickly and without side effects."""

    def transforms(self, target: "Target") -> Sequence[Transform]:
        """Returns the rewrites of operators that the backend refuses into ones that it takes, in order."""

    def supports(self, model: "ir.Model", target: "Target", options: BuildOptions) -> list[Support]:
        """Returns one `Support` for each node of `model.graph`, in its order; asked of the real library."""

    def build(self, submodel: "ir.Model", target: "Target", options: BuildOptions, workdir: Path) -> Artifact:
        """Returns the artifact of a submodel whose nodes were all taken.

        The graph's inputs and outputs are the submodel's names in the chain. `workdir` is empty and private.

        Raises:
            BuildRefusedError: the library will not build it; the core moves the nodes to the next backend.
        """

    def open(self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], options: OpenOptions) -> Session:
        """Returns a session over an artifact's files, which stay as they are as long as the session lives.

        Raises:
            UnavailableError: the library or the device is not here.
        """


@runtime_checkable
class RewritesOwn(Protocol):
    """What a backend may do besides: rewrite the nodes that it takes into ones that it does faster, before `build`.

    What comes of it is built and compared as ever. Where it is wrong, is refused, or is measured to be slower, the
    submodel is built as it was, and a warning says so.
    """

    def rewrites(self, target: "Target") -> Sequence[Transform]:
        """Returns these rewrites, in order; inputs and outputs of the graph must keep their names and types."""


@runtime_checkable
class BundledFiles(Protocol):
    """What the files that `open` gets offer besides where they come from a bundle."""

    def sha256(self, name: str) -> str:
        """Returns the SHA-256 that a file has, which is not read for it."""

    def taken(self, name: str) -> memoryview:
        """Returns a file in private pages of the system, which are the caller's alone.

        It may write there, and give pages back to the system while it keeps the view.
        """


@runtime_checkable
class TellsCode(Protocol):
    """What a backend may offer besides: to tell which files are code. All of one that does not tell count as code."""

    def code_files(self, files: Mapping[str, memoryview]) -> CodeFiles:
        """Returns those of an artifact's files that `open` would run or hand to a loader of code.

        The files come from anybody: what counts is what `open` does with each, by its name and bytes, never what
        metadata say. Nothing is loaded. Where what it names is not needed, `open` may get the other files alone.
        """


@runtime_checkable
class TellsSteps(Protocol):
    """What a backend may offer besides: to tell what an artifact would do on this machine, where it chooses there."""

    def steps_here(
        self, files: Mapping[str, memoryview], metadata: Mapping[str, Json]
    ) -> Sequence[Mapping[str, int | str]] | None:
        """Returns the steps (`nndeploy.values.plan_steps`), None where the artifact says them or cannot run here.

        Raises:
            BundleError: the artifact is malformed.
        """


@runtime_checkable
class TellsStepsOfShapes(TellsSteps, Protocol):
    """What a backend may offer besides `TellsSteps`: to tell the steps for shapes of a submodel's inputs."""

    def steps_of_shapes(
        self, files: Mapping[str, memoryview], metadata: Mapping[str, Json], shapes: Mapping[str, tuple[int, ...]]
    ) -> Sequence[Mapping[str, int | str]] | None:
        """Returns what `steps_here` does; an input that is not in `shapes` has the least sizes.

        Raises:
            BundleError: the artifact is malformed.
            OtherSizesError: it was not built for these shapes.
        """


@dataclass(frozen=True, slots=True)
class Roof:
    """The most that a processor was seen to do with `threads` threads, a second.

    `float32_per_s` and `int8_per_s`: operations, a multiply-add being two. `bytes_per_s`: for sizes, each twice the one
    before, how fast so many bytes are read that were read just before: in the smallest cache that holds them.
    """

    threads: int
    float32_per_s: float
    int8_per_s: float
    bytes_per_s: Mapping[int, float]


@runtime_checkable
class MeasuresRoof(Protocol):
    """What a backend may offer besides: to measure what the processor does at most."""

    def roof(self, threads: int | None, most_bytes: int) -> Roof:
        """Returns it for so many threads, None: one a core, and for sizes of memory up to `most_bytes` or a bit more.

        Raises:
            UnavailableError: it cannot be measured here.
        """


@runtime_checkable
class ReferenceEngine(Protocol):
    """What a backend may offer besides: to run a model as the file says, for use as a reference.

    The order in which the core asks is by speed; ONNX's own evaluator defines what is right.
    """

    def evaluate(
        self, model: bytes, samples: Sequence[Mapping[str, Value]], options: BuildOptions
    ) -> list[dict[str, Value]]:
        """Returns all outputs of an ONNX model for each sample: no optimisation, one thread.

        Raises:
            BuildRefusedError: the library cannot run the model, or not on these values.
        """


Ranges: TypeAlias = Mapping[str, tuple[float, float]]
"""Name of a float tensor -> its least and largest value."""


@dataclass(frozen=True, slots=True)
class QuantiseRecipe:
    """Which nodes of a float32 model become integers, and how.

    `form` "static": activations as uint8 by `ranges`, weights as int8 by channel, written as QuantizeLinear and
    DequantizeLinear around each node. "dynamic": products by constant weights as MatMulInteger, whose activations get
    their ranges when they run. "blocks": constant weights of products in 4 bits, 32 of them with a scale, activations
    as they are. `nodes` are the names of those that are quantised; all others stay as they are.
    """

    form: str
    nodes: tuple[str, ...]
    ranges: Ranges = field(default_factory=dict)


@runtime_checkable
class Quantiser(Protocol):
    """What a backend may offer besides `ReferenceEngine`: to quantise float32 models."""

    def calibrate(
        self, model: bytes, samples: Sequence[Mapping[str, Value]], method: str, workdir: Path
    ) -> dict[str, tuple[float, float]]:
        """Returns the range of each float tensor on the samples, by a method of `CALIBRATIONS`; `workdir` is private.

        Raises:
            BuildRefusedError: the library cannot run the model, or not on these values.
        """

    def quantise(self, model: bytes, recipe: QuantiseRecipe, workdir: Path) -> bytes:
        """Returns the model with the nodes of the recipe quantised; the same every time. `workdir` is private.

        Raises:
            BuildRefusedError: the library cannot.
        """


@runtime_checkable
class RunsAlone(Protocol):
    """What a backend may be besides: a box needs nothing but this runtime for its sessions, no library of others."""

    runs_alone: Literal[True]


@runtime_checkable
class Hardened(Protocol):
    """What a backend may be besides: no file and no value of a stranger's ends the process that its sessions run in.

    It checks all that it opens, and all numbers that it follows.
    """

    is_hardened: Literal[True]


@runtime_checkable
class PlansBranches(Protocol):
    """What a backend may do besides: plan each branch of an If by itself; it needs the ranks of all values in it."""

    plans_branches: Literal[True]


@runtime_checkable
class MapsWeights(Protocol):
    """What a backend may do besides: read weights from a file; another gets no more than one message holds, 2 GiB.

    Large initializers of models with more than 16 MiB of weights are external tensors that name one file by its
    absolute path (in `onnx_ir`: `ExternalTensor`); it is there as long as the compile, and never changes.
    """

    maps_weights: Literal[True]


@runtime_checkable
class Forkable(Protocol):
    """What a backend may be besides: a process that is forked after a session was opened may open the same again.

    Opening a session starts no thread, and a session that is open elsewhere in the process lends the new one its
    weights, which nobody writes to: processes so have them in memory once.
    """

    is_forkable: Literal[True]


@runtime_checkable
class HasRunner(Protocol):
    """What a backend may do besides: run its artifacts in a program that needs neither Python nor this package."""

    name: str

    def runner(self, arch: str, metadata: Sequence[Mapping[str, Json]] = ()) -> Path:
        """Returns the program, which runs the bundle that stands behind it (`nndeploy.runtime.exported_program`).

        `metadata` are those of the artifacts in the bundle: a program may leave out what they do not need.
        That for "x86_64-windows" is for Windows, others for Linux.
        For "wasm32" it is a folder with an ES module and its WebAssembly modules (`nndeploy.runtime.exported_web`).

        Raises:
            UnavailableError: there is none for this architecture here.
        """

    def why_not_alone(self, metadata: Mapping[str, Json], file: Callable[[str], bytes | memoryview]) -> str:
        """Returns what of an artifact it does not run, as a noun; "" where it runs all.

        `file` gives the bytes of a file of the artifact by its name.
        """


ABILITIES = (RunsAlone, Hardened, PlansBranches, MapsWeights, Forkable, HasPacePoints)
"""Those that a backend has by an attribute: where it stands it is True, and what is not so has none."""


def builds_for(plugin: Backend, target: "Target") -> bool:
    """Returns whether a backend can build for a target on this machine, by its kind of device and its probe."""
    has_device = plugin.device_kind == "cpu" or bool(target.gpus)
    return has_device and plugin.probe(target).can_build
