# SPDX-License-Identifier: Apache-2.0
"""What the operator of a machine asks for and allows when a bundle is loaded, with the defaults of every command."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from nndeploy.cuda import gpu_number
from nndeploy.errors import UsageError
from nndeploy.options.described import described
from nndeploy.options.texts import bytes_in, library_paths
from nndeploy.target.place_limits import PlaceLimit, places_in, why_no_places

_MACHINE = "Machine"
ISOLATED = ("none", "code", "all", "auto")
"""Which submodels run in processes of their own."""
Isolated: TypeAlias = Literal["none", "code", "all", "auto"]


_ISOLATE = (
    "Run submodels in sandboxed processes of their own: none, those that are code, or all. auto: in a bundle that was "
    "not compiled here and that no trusted key signed, those on the CPU of every backend but native. A process that "
    "crashes is replaced; the item that crashes it twice is an error. A call costs some 50 us and copies of its values "
    "more."
)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How the submodels of a bundle are opened; what each option means is its help.

    `custom_op_libraries` are code, and only this names them: a bundle cannot. `cache_dir` None means
    `<bundle>.cache` beside the bundle, "" nowhere.
    """

    threads: int | None = described(
        None, "How many threads each submodel may use. Default: its library's.", section=_MACHINE, least=1
    )
    device: str = described(
        "auto", "Where to run: auto (a GPU where a chain is for it), cpu, or cuda:N (that GPU or an error).",
        section=_MACHINE,
    )  # fmt: skip
    places: tuple[PlaceLimit, ...] = described(
        (),
        "The places that a bundle compiled with --place spans, with limits: cuda:0=4GiB,cuda:1,cpu. cpu:0, cpu:1 are "
        "pools of cores. Default: as it was compiled.",
        section=_MACHINE, flags=("--place",), metavar="PLACE=SIZE,..", from_text=places_in,
    )  # fmt: skip
    strict: bool = described(False, "Fail where this machine cannot take the best chain or variant.", section=_MACHINE)
    cache_dir: str | None = described(
        None, "The folder for what is compiled for this GPU; '' for none. Default: BUNDLE.cache.",
        section=_MACHINE, flags=("--cache",), metavar="FOLDER",
    )  # fmt: skip
    custom_op_libraries: tuple[str, ...] = described(
        (),
        "Shared library with operators that the bundle needs (repeatable). It is code: name only what you trust.",
        section=_MACHINE, flags=("--custom-ops",), is_path=True, from_texts=library_paths,
    )  # fmt: skip
    allow_native_code: bool = described(
        True, "Take no variant that holds executable code.", section=_MACHINE, flags=("--no-native-code",)
    )
    allow_unsigned_code: bool = described(
        False, "Run executable code of the bundle although no trusted key has signed it.", section=_MACHINE
    )
    isolate: Isolated = described("none", _ISOLATE, section=_MACHINE, choices=ISOLATED)
    item_timeout: float | None = described(
        None,
        "How many seconds an isolated submodel may take for an item; then its process is ended, and the item is an "
        "error. With --isolate auto it isolates all. Default: 60 where auto isolates, else any time.",
        section=_MACHINE, least=0, is_above=True, metavar="SECONDS",
    )  # fmt: skip
    memory_limit: int | None = described(
        None,
        "How much memory an isolated submodel may take. Default: a quarter of this machine's, and four times the size "
        "of its files.",
        section=_MACHINE, flags=("--isolated-memory",), metavar="SIZE", from_text=bytes_in("--isolated-memory"),
    )  # fmt: skip

    @property
    def isolates_always(self) -> bool:
        """Whether submodels are isolated, whoever made the bundle."""
        return self.isolate in ("code", "all") or self.item_timeout is not None

    def __post_init__(self) -> None:
        if self.isolate not in ISOLATED:
            raise UsageError(f"isolate is {' or '.join(ISOLATED)}, not {self.isolate!r}")
        if (self.item_timeout, self.memory_limit) != (None, None) and self.isolate == "none":
            raise UsageError("only a submodel in a process of its own has limits", hint="--isolate all, auto or code")
        if self.item_timeout is not None and not self.item_timeout > 0:
            raise UsageError(f"item_timeout must be more than 0 seconds, not {self.item_timeout}")
        if self.device not in ("auto", "cpu") and gpu_number(self.device) is None:
            raise UsageError(f"unknown device {self.device!r}", hint="auto, cpu or cuda:N")
        if self.places and (reason := why_no_places(self.places)):
            raise UsageError(f"places: {reason}")
        if self.places and self.device != "auto":
            raise UsageError(f"--place says where to run, and so does --device {self.device}", hint="one of them")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"threads must be at least 1, not {self.threads}")


@dataclass(frozen=True, slots=True)
class CautiousLoadOptions(LoadOptions):
    """Those of what opens bundles of strangers to look at them, or for the requests of strangers."""

    isolate: Isolated = described("auto", _ISOLATE, section=_MACHINE, choices=ISOLATED)
