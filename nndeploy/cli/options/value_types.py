# SPDX-License-Identifier: Apache-2.0
"""What values of options look like, so that a shell can complete them.

Each type takes any text, as before, and lets the command judge it; it adds what a person may have meant. Law: nothing
here imports a library, opens a file or fails, because a shell waits for it.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from nndeploy.errors import MissingInputError, UsageError, nearest
from nndeploy.files.shipped_configs import config_files

DEVICES = ("auto", "cpu")
GPUS = Path("/proc/driver/nvidia/gpus")
"""Has a folder for each GPU that NVIDIA's driver knows."""

_SIZES = re.compile(r"(\d{1,10}(,\d{1,10}){0,31})?")
_SERVED_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Items: TypeAlias = "list[CompletionItem[str]]"  # generic in click 8.3 and later alone


def starting_with(incomplete: str, names: Iterable[str], *, before: str = "") -> Items:
    """Returns those names that go on from `incomplete`, with `before` in front of each."""
    return [CompletionItem(before + name) for name in names if name.startswith(incomplete)]


def paths(incomplete: str, suffixes: Sequence[str], *, before: str = "") -> Items:
    """Returns the folders, with a slash behind each, and the files of these suffixes that go on from `incomplete`.

    A hidden one is told where its dot was typed.
    """
    folder, slash, start = incomplete.rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").expanduser().iterdir())
        return [
            CompletionItem(before + folder + slash + path.name + "/" * path.is_dir(), is_path=True)
            for path in found
            if path.name.startswith(start)
            and (start or not path.name.startswith("."))
            and (path.suffix in suffixes or path.is_dir())
        ]
    except (OSError, RuntimeError):  # no such folder, no right to read it, no home
        return []


class PathEndingIn(click.Path):
    """The path of a file that ends in one of some suffixes, as far as completion is concerned."""

    def __init__(self, *suffixes: str) -> None:
        super().__init__(path_type=Path)
        self.suffixes = suffixes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the path.

        Raises:
            UsageError: it is an address.
            MissingInputError: nothing is there, but a file of almost that name.
        """
        text = os.fspath(value)
        if "://" in text and not Path(text).exists():
            raise UsageError(f"{text!r:.200} is an address, and a file is meant", hint=_fetching(text))
        if near := _near_file(Path(text), self.suffixes):
            raise MissingInputError("no such file", where=text, hint=f"did you mean {near!r}?")
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns folders and files."""
        return paths(incomplete, self.suffixes)


def _fetching(address: str) -> str:
    from nndeploy.registry.reference import SCHEME

    if address.startswith(SCHEME):
        return f"nndeploy pull {address} -o BUNDLE, or nndeploy install NAME {address}"
    return f"download it first: curl -LO {address}"


def _near_file(path: Path, suffixes: Sequence[str]) -> str:
    """Returns the path of the file of these suffixes whose name is nearest to one that is not there, or ""."""
    try:
        if path.exists() or not path.parent.is_dir():
            return ""
        there = [one.name for one in path.parent.iterdir() if one.suffix in suffixes]
    except OSError:
        return ""
    end = path.suffix if path.suffix in suffixes else ""  # which all have alike
    near = nearest(path.name.removesuffix(end), [name.removesuffix(end) for name in there if name.endswith(end)])
    return str(path.with_name(near + end)) if near else ""


class BundlePath(PathEndingIn):
    """The path of a bundle, or NAME@ for the installed one of that name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the path, that of the current bundle for a name.

        Raises:
            MissingInputError: nothing is installed under the name.
        """
        if isinstance(value, str) and value.endswith("@") and "/" not in value and not Path(value).exists():
            from nndeploy.installed.floors import installed_bundle

            return installed_bundle(value[:-1])
        return super().convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Returns folders, files and names."""
        return [*super().shell_complete(ctx, param, incomplete), *starting_with(incomplete, installed_names())]


class ServedBundle(BundlePath):
    """A bundle as `BundlePath` takes it, with the name that clients call it by: what stands before "=", or its own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns (name, path)."""
        if isinstance(value, tuple):  # click may hand a value in twice
            return value
        name, equals, bundle = str(value).partition("=")
        if not equals or not _SERVED_NAME.fullmatch(name) or Path(value).exists():
            name, bundle = "", str(value)
        path = super().convert(bundle, param, ctx)
        return name or (bundle[:-1] if bundle.endswith("@") and "/" not in bundle else Path(bundle).stem), path

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        """Returns folders, files and names, behind the name that was typed."""
        name, equals, _ = incomplete.partition("=")
        if equals:
            return paths(incomplete.removeprefix(name + equals), self.suffixes, before=name + equals)
        return super().shell_complete(ctx, param, incomplete)


def installed_names() -> list[str]:
    """Returns NAME@ for what is installed."""
    from nndeploy.errors import NndeployError
    from nndeploy.installed.bundle_store import MACHINE_STORE, BundleStore, store_at

    try:
        return sorted({f"{name}@" for store in (store_at(None), BundleStore(MACHINE_STORE)) for name in store.names()})
    except NndeployError:
        return []


class Text(click.ParamType):  # type: ignore[type-arg] # generic in click 8.3 and later alone
    """A text that the command itself judges."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        """Returns the text as it is."""
        return str(value)


class InstalledName(Text):
    """A name of an installed bundle, in the store that the line names with --store."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns the names of the store."""
        from nndeploy.errors import NndeployError
        from nndeploy.installed.bundle_store import store_at

        try:
            return starting_with(incomplete, store_at(ctx.params.get("store")).names())
        except NndeployError:
            return []


class AnyNumber(click.types.FloatParamType):
    """A float that is a number: neither NaN, which no range refuses, nor an infinity."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Returns the number."""
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r:.40} is not a number.", param, ctx)
        return found


class Number(click.FloatRange, AnyNumber):
    """Such a number within bounds."""


class Box(Text):
    """A target: the name of a known one or a target file; a name may have libraries behind it, TARGET+LIBRARY."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns names and files, or the backends whose library may stand behind a plus."""
        known = [path.stem for path in config_files("targets")]
        box, plus, library = incomplete.rpartition("+")
        if plus and box.partition("+")[0] in known:
            return starting_with(library, _backends(), before=box + plus)
        return [*starting_with(incomplete, known), *paths(incomplete, (".toml",))]


class BackendNames(Text):
    """Names of backends, separated by commas."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns the backends that were not named yet, for the last name."""
        before, comma, last = incomplete.rpartition(",")
        named = before.split(",")
        names = [name for name in _backends() if name not in named]
        return starting_with(last, names, before=before + comma)


def _backends() -> list[str]:
    """Returns the names of the installed backends; to ask the packages takes longer than all else here."""
    from nndeploy.plugin.backend_names import PLUGINS

    return PLUGINS.names()


class NodesToBackend(Text):
    """GLOB=BACKEND."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns the backends, where an equals sign was typed."""
        glob, equals, last = incomplete.rpartition("=")
        return starting_with(last, _backends(), before=glob + equals) if equals else []


class BackendShare(Text):
    """BACKEND=SHARE."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns the backends, with an equals sign behind each."""
        return starting_with(incomplete, [f"{name}=" for name in _backends()])


class NamedBundle(Text):
    """NAME=BUNDLE."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns bundles, where an equals sign was typed."""
        name, equals, path = incomplete.partition("=")
        return paths(path, (".nnd",), before=name + equals) if equals else []


class ShapeOfInput(click.ParamType):  # type: ignore[type-arg] # as above
    """INPUT=SIZES, with a whole number for each axis: x=1,3,640,640."""

    name = "INPUT=SIZES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ARG002
        """Returns the name of the input and its sizes.

        Raises:
            UsageError: the text is none of that form.
        """
        if isinstance(value, tuple):
            return value
        name, equals, sizes = str(value).rpartition("=")
        if not equals or not name or not _SIZES.fullmatch(sizes):
            raise UsageError(f"{value!r:.80} is no shape of an input", hint="for example --shape x=1,3,640,640")
        return name, tuple(int(size) for size in sizes.split(",") if size)


class Device(Text):
    """auto, cpu or cuda:N."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns the devices of this machine."""
        return starting_with(incomplete, [*DEVICES, *(f"cuda:{number}" for number in range(num_gpus()))])


class AnyFile(Text):
    """A text that mostly is the path of a file or folder."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Lets the shell complete a path."""
        return [CompletionItem(incomplete, type="file")]


class Folder(Text):
    """A text that is the path of a folder."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Lets the shell complete a path of a folder."""
        return [CompletionItem(incomplete, type="dir")]


def num_gpus() -> int:
    """Returns how many GPUs NVIDIA's driver knows here; no library is asked."""
    try:
        return sum(1 for _ in GPUS.iterdir())
    except OSError:
        return 0


INSTALLED_NAME = InstalledName()
BUNDLE_FILE = BundlePath(".nnd")
BUNDLE_OR_MODEL = BundlePath(".nnd", ".onnx")
SERVED = ServedBundle(".nnd", ".toml")
TOML_FILE = PathEndingIn(".toml")
MODEL_FILE = PathEndingIn(".onnx")
SHARED_LIBRARY = PathEndingIn(".so")
JSON_FILE = PathEndingIn(".json")
BOX = Box()
BACKENDS = BackendNames()
NODES_TO_BACKEND = NodesToBackend()
BACKEND_SHARE = BackendShare()
NAMED_BUNDLE = NamedBundle()
DEVICE = Device()
SHAPE_OF_INPUT = ShapeOfInput()
ANY_FILE = AnyFile()
FOLDER = Folder()

COMPLETED_BY: Mapping[str, Callable[[click.Context, click.Parameter, str], Items]] = {
    "backends": BACKENDS.shell_complete,
    "cache": FOLDER.shell_complete,
    "custom_ops": SHARED_LIBRARY.shell_complete,
    "device": DEVICE.shell_complete,
    "image": TOML_FILE.shell_complete,
    "model": NAMED_BUNDLE.shell_complete,
    "pin": NODES_TO_BACKEND.shell_complete,
    "pipeline": TOML_FILE.shell_complete,
    "require": BACKEND_SHARE.shell_complete,
    "samples": FOLDER.shell_complete,
    "target": BOX.shell_complete,
    "without": BACKENDS.shell_complete,
}
"""Name of a parameter -> what completes its value, for options that are made of fields of dataclasses."""
