# SPDX-License-Identifier: Apache-2.0
"""What the operator of a machine asks for and allows when a bundle is loaded, with the defaults of every command."""

import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nndeploy.cuda import gpu_number, spelled_device
from nndeploy.errors import UsageError
from nndeploy.options.described import described
from nndeploy.options.texts import bytes_in, library_paths
from nndeploy.target.place_limits import PlaceLimit, places_in, why_no_places

_MACHINE = "Machine"
ISOLATED = ("none", "code", "all", "auto")
"""Which submodels run in processes of their own."""
Isolated: TypeAlias = Literal["none", "code", "all", "auto"]


_ISOLATE = (
    "Run submodels in sandboxed processes: `none`, only native `code`, or `all`. `auto`: all CPU submodels except "
    "those of the native backend, if the bundle was neither compiled here nor signed by a trusted key. A crashed "
    "process is restarted; an item that crashes it twice fails. Adds about 50 us and one copy of inputs and outputs "
    "per call."
)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How the submodels of a bundle are opened; what each option means is its help.

    `custom_op_libraries` are code, and only this names them: a bundle cannot. `cache_dir` None means
    `<bundle>.cache` beside the bundle, "" nowhere.
    """

    threads: int | None = described(
        None,
        "Number of threads that each submodel may use. Default: the library's own default.",
        section=_MACHINE,
        least=1,
    )
    device: str = described(
        "auto",
        "Device to run on: `auto` (a GPU if the bundle has a chain for it), `cpu`, or `cuda:N` (this GPU, else fail).",
        section=_MACHINE,
    )  # fmt: skip
    places: tuple[PlaceLimit, ...] = described(
        (),
        "Devices for a bundle compiled with --place, in order, with memory limits: cuda:0=4GiB,cuda:1,cpu. cpu:0 and "
        "cpu:1 are pools of cores. Default: as compiled.",
        section=_MACHINE, flags=("--place",), metavar="PLACE=SIZE,..", from_text=places_in,
    )  # fmt: skip
    strict: bool = described(
        False,
        "Fail if this machine cannot run the best chain or variant, or if pacing exceeds what was granted.",
        section=_MACHINE,
    )
    cache_dir: str | None = described(
        None,
        "Cache directory for GPU kernels compiled on this machine and for what `nndeploy tune` found; '' disables it. "
        "Default: BUNDLE.cache.",
        section=_MACHINE, flags=("--cache",), metavar="FOLDER",
    )  # fmt: skip
    share_weights: bool = described(
        False,
        "Keep packed weights in the cache directory, as much disk as the weights. Processes that do so share their "
        "memory, and only the first of them packs. Native backend only.",
        section=_MACHINE,
    )
    custom_op_libraries: tuple[str, ...] = described(
        (),
        "Shared library of operators that the bundle needs (repeatable). Its code is executed: pass only libraries "
        "you trust.",
        section=_MACHINE, flags=("--custom-ops",), is_path=True, from_texts=library_paths,
    )  # fmt: skip
    allow_native_code: bool = described(
        True, "Do not load variants that contain executable code.", section=_MACHINE, flags=("--no-native-code",)
    )
    allow_unsigned_code: bool = described(
        False, "Run the bundle's executable code even if no trusted key has signed it.", section=_MACHINE
    )
    isolate: Isolated = described("none", _ISOLATE, section=_MACHINE, choices=ISOLATED)
    item_timeout: float | None = described(
        None,
        "Time limit of an isolated submodel per item, in seconds. On a timeout its process is killed and the item "
        "fails. With --isolate auto, isolates all submodels. Default: 60 if `auto` isolates, else no limit.",
        section=_MACHINE, least=0, is_above=True, metavar="SECONDS",
    )  # fmt: skip
    memory_limit: int | None = described(
        None,
        "Memory limit of an isolated submodel. Default: a quarter of this machine's memory plus four times the size "
        "of the submodel's files.",
        section=_MACHINE, flags=("--isolated-memory",), metavar="SIZE", from_text=bytes_in("--isolated-memory"),
    )  # fmt: skip

    @property
    def isolates_always(self) -> bool:
        """Whether submodels are isolated, whoever made the bundle."""
        return self.isolate in ("code", "all") or self.item_timeout is not None

    def cache_of(self, bundle: "str | os.PathLike[str]") -> str:
        """Returns the cache folder of a bundle, "" for none."""
        return os.fspath(bundle) + ".cache" if self.cache_dir is None else self.cache_dir

    def __post_init__(self) -> None:
        if self.isolate not in ISOLATED:
            raise UsageError(f"isolate is {' or '.join(ISOLATED)}, not {self.isolate!r}")
        if (self.item_timeout, self.memory_limit) != (None, None) and self.isolate == "none":
            raise UsageError("only an isolated submodel can have limits", hint="--isolate all, auto or code")
        if self.item_timeout is not None and not self.item_timeout > 0:
            raise UsageError(f"item_timeout must be more than 0 seconds, not {self.item_timeout}")
        if self.share_weights and self.cache_dir == "":
            raise UsageError("--share-weights needs a cache directory", hint="--cache FOLDER")
        object.__setattr__(self, "device", spelled_device(self.device))
        if self.device not in ("auto", "cpu") and gpu_number(self.device) is None:
            raise UsageError(f"unknown device {self.device!r}", hint="auto, cpu or cuda:N")
        if self.places and (reason := why_no_places(self.places)):
            raise UsageError(f"places: {reason}")
        if self.places and self.device != "auto":
            raise UsageError(f"--place and --device {self.device} exclude each other", hint="one of them")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads must be at least 1, not {self.threads}")


@dataclass(frozen=True, slots=True)
class CautiousLoadOptions(LoadOptions):
    """Those of what opens bundles of strangers to look at them, or for the requests of strangers."""

    isolate: Isolated = described("auto", _ISOLATE, section=_MACHINE, choices=ISOLATED)
