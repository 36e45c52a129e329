# SPDX-License-Identifier: Apache-2.0
"""Chooses, for each submodel, the best variant that this host can take, and says why each better one was passed over.

In: a submodel of the manifest, what the operator asked for (`SessionOptions`). Out: an open session and the `Choice`.
Variants stand best first. A variant that was built for another machine (its `requires` name another architecture or
CPU features that this one lacks) is simply not meant for this host. Any other variant that cannot be taken is a loss
that the user is told of: a warning, or with `strict` an error.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from nndeploy.bundle.manifest import Submodel, Variant
from nndeploy.errors import BundleError, InputOutputError, PolicyError, UnavailableError, one_line
from nndeploy.plugin.interface import OpenOptions, Session
from nndeploy.plugin.registry import backend, is_installed
from nndeploy.runtime.code_policy import FilesOf
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.target.target import Target, unmet
from nndeploy.values.types import ValueType
from nndeploy.version import install_command

EXTRAS = {
    "onnxruntime": "cpu",
    "openvino": "openvino",
    "tensorrt": "tensorrt-rtx",
    "cudnn": "cudnn",
    "triton": "triton",
    "reference": "compile",
}
"""Backends whose library is an extra of this project."""
VARIANTS_FILE = "variants.json"
"""In the cache folder: which variants `nndeploy tune` found to be the fastest (`kept_variants.py`)."""
UNTRUSTED = (
    "nndeploy key trust KEY.pub trusts who signed it; --no-native-code does without; --allow-unsigned-code runs it now"
)


@dataclass(frozen=True, slots=True)
class SessionOptions(LoadOptions):
    """Those of one bundle; with `pace` its runs are paced.

    `variants` names the variants that submodels take first. `why_no_code` says why a variant that is code must not be
    opened, "" where it may be. `is_stranger` says that nobody answers for the bundle.
    """

    pace: bool = False
    variants: Mapping[str, str] = field(default_factory=dict)
    why_no_code: str = ""
    is_stranger: bool = False

    def for_backend(self, device: str) -> OpenOptions:
        """Returns what a backend's `open` is told."""
        return OpenOptions(
            device, self.threads, self.custom_op_libraries, self.cache_dir or "", self.pace,
            shares_weights=self.share_weights,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A variant that was not taken; `is_loss` is False for one that was built for another machine."""

    variant: str
    backend: str
    reason: str
    hint: str = ""
    is_loss: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """The variant that a submodel got ("" when none can be taken), and the better ones that it did not get.

    `device` is where it runs: "cpu" or "cuda:N"; `is_isolated`: in a process of its own.
    """

    submodel: str
    variant: str
    backend: str
    passed_over: tuple[PassedOver, ...] = ()
    device: str = "cpu"
    is_isolated: bool = field(default=False, compare=False)

    @property
    def losses(self) -> tuple[PassedOver, ...]:
        """The better variants that this machine should have taken."""
        return tuple(other for other in self.passed_over if other.is_loss)


def install_hint(name: str) -> str:
    """Returns what to install where no plugin offers the backend `name`, so that there is no probe to ask."""
    if name in EXTRAS:
        return install_command(EXTRAS[name])
    return f"install the plugin that offers the backend {name!r}"


def why_not(variant: Variant, options: LoadOptions, host: Target) -> PassedOver | None:
    """Returns why `variant` cannot be taken on `host`, or None when nothing speaks against opening it."""

    def passed(reason: str, hint: str = "", *, is_loss: bool = True) -> PassedOver:
        return PassedOver(variant.id, variant.backend, one_line(reason), hint, is_loss)

    if reason := unmet(variant.requires, host):
        return passed(reason, is_loss=False)
    if not is_installed(variant.backend):
        return passed(f"the backend {variant.backend} is not installed here", install_hint(variant.backend))
    if variant.native_code and not options.allow_native_code:
        return passed("holds native code, which is not allowed here")
    if (domains := variant.requires.get("custom_ops")) and not options.custom_op_libraries:
        return passed(f"needs an operator library for {', '.join(domains)}", "name it with --custom-ops")
    try:
        probe = backend(variant.backend).probe(host)
    except UnavailableError as err:
        return passed(err.what, err.hint)
    except Exception as err:  # a third party's probe should refuse by a value, but may fail
        return passed(f"its probe failed: {type(err).__name__}: {err}")
    if probe.can_run:
        return None
    return passed(probe.reason or "cannot run here", probe.hint)


def _why_not(variant: Variant, submodel: Submodel, options: LoadOptions, host: Target) -> PassedOver | None:
    """Returns the same as `why_not`; a library that is missing is no loss on a box that was given a variant of its own.

    Such a box was named (`compile --target`), and this machine is one: nobody said that it has the library.
    """
    refusal = why_not(variant, options, host)
    if refusal is None or not refusal.is_loss or _has_library(variant, host):
        return refusal
    own = any(
        other.target != variant.target
        and not other.requires.keys().isdisjoint(("arch", "machines"))
        and why_not(other, options, host) is None
        for other in submodel.variants
    )
    return replace(refusal, is_loss=not own)


def _has_library(variant: Variant, host: Target) -> bool:
    try:
        return is_installed(variant.backend) and backend(variant.backend).probe(host).can_run
    except Exception:  # a third party's probe may fail in any way; why it is passed over is told elsewhere
        return False


def choose(submodel: Submodel, options: LoadOptions, host: Target, gpu: str = "") -> Choice:
    """Returns the choice that would be made, without opening anything."""
    passed_over: list[PassedOver] = []
    for variant in submodel.variants:
        refusal = _why_not(variant, submodel, options, host)
        if refusal is None:
            return Choice(submodel.id, variant.id, variant.backend, tuple(passed_over), _device_of(variant, gpu))
        passed_over.append(refusal)
    return Choice(submodel.id, "", "", tuple(passed_over))


def open_submodel(
    submodel: Submodel,
    files_of: FilesOf,
    options: SessionOptions,
    host: Target,
    gpu: str = "",
    types: Mapping[str, ValueType] | None = None,
    open_variant: "OpenVariant | None" = None,
) -> tuple[Session, Choice]:
    """Returns a session over the best variant that opens, and the choice; `gpu` is the GPU to use ("cuda:0").

    `types` are those of the chain's values, by name. `open_variant` opens it; None: here.

    Raises:
        UnavailableError: no variant can be taken, or with `strict` one that is meant for this machine cannot.
        BundleError: a file of the variant is damaged.
        InputOutputError: a file of the variant cannot be read.
        PolicyError: a file of the variant names others outside of the bundle, or it is code that is not trusted.
    """
    passed_over: list[PassedOver] = []
    for variant in submodel.variants:
        refusal = _why_not(variant, submodel, options, host)
        if refusal is None:
            if variant.native_code and options.why_no_code:
                raise PolicyError(
                    f"the variant {variant.id} is code, and is not trusted: {options.why_no_code}",
                    where=submodel.id,
                    hint=UNTRUSTED,
                )
            device = _device_of(variant, gpu)
            asked = _of_submodel(options.for_backend(device), submodel, types)
            opened = _open(open_variant or opened_here, variant, files_of(variant), asked)
            if not isinstance(opened, PassedOver):
                return opened, Choice(submodel.id, variant.id, variant.backend, tuple(passed_over), device)
            refusal = opened
        passed_over.append(refusal)
        if options.strict and refusal.is_loss:
            raise UnavailableError(
                f"variant {refusal.variant} cannot be taken: {refusal.reason}", where=submodel.id, hint=refusal.hint
            )
    raise UnavailableError(_nothing_left(passed_over), where=submodel.id, hint=_hints(passed_over))


def _device_of(variant: Variant, gpu: str) -> str:
    return gpu if gpu and backend(variant.backend).device_kind == "cuda" else "cpu"


def _of_submodel(options: OpenOptions, submodel: Submodel, types: Mapping[str, ValueType] | None) -> OpenOptions:
    if types is None:
        return options
    inputs, outputs = ({name: types[name] for name in names} for names in (submodel.inputs, submodel.outputs))
    return replace(options, inputs=inputs, outputs=outputs)


OpenVariant = Callable[[Variant, Mapping[str, memoryview], OpenOptions], Session]
"""Opens a variant over its files, here or elsewhere."""


def opened_here(variant: Variant, files: Mapping[str, memoryview], options: OpenOptions) -> Session:
    """Returns the session that the variant's backend opens in this process."""
    return backend(variant.backend).open(files, variant.metadata, options)


def _open(
    open_variant: OpenVariant, variant: Variant, files: Mapping[str, memoryview], options: OpenOptions
) -> Session | PassedOver:
    try:
        return open_variant(variant, files, options)
    except (BundleError, InputOutputError, PolicyError):
        raise
    except UnavailableError as err:
        return PassedOver(variant.id, variant.backend, one_line(err.what), err.hint)
    except Exception as err:  # a library may refuse an artifact in any way; the next variant is then tried
        return PassedOver(variant.id, variant.backend, one_line(f"did not open: {type(err).__name__}: {err}"))


def _nothing_left(passed_over: Iterable[PassedOver]) -> str:
    reasons = "; ".join(f"{other.backend}: {other.reason}" for other in passed_over)
    return f"no variant can run here: {reasons}" if reasons else "has no variants"


def _hints(passed_over: Iterable[PassedOver]) -> str:
    return "; ".join(dict.fromkeys(other.hint for other in passed_over if other.hint))
