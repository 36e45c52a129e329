# SPDX-License-Identifier: Apache-2.0
"""The flow: our own wheel -> pip's answer, again until nothing is missing -> hashes and script -> the folder."""

import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from nndeploy.errors import CannotCreateError, UnavailableError, UsageError, did_you_mean
from nndeploy.files.whole_files import TEMPORARY, no_folder, sync, wrapped_io
from nndeploy.runtime.select import EXTRAS
from nndeploy.version import DISTRIBUTION, __version__
from nndeploy.wheelhouse.box import Box
from nndeploy.wheelhouse.install_files import write_install_files
from nndeploy.wheelhouse.pip_download import download
from nndeploy.wheelhouse.wheels import Wheel, needed, wheel_of, wheels_in

ALWAYS_THERE = ("native",)
"""Backends that need no extra."""
MAX_ROUNDS = 8
"""How often pip is asked again; each round brings what the answers before it turned out to need."""


def extras_of(names: Iterable[str]) -> frozenset[str]:
    """Returns the extras that are meant by names of extras, and of backends.

    Raises:
        UsageError: a name is neither.
        UnavailableError: this nndeploy is not installed, so its extras are not known.
    """
    try:
        known = set(metadata(DISTRIBUTION).get_all("Provides-Extra") or ())
    except PackageNotFoundError as err:
        raise UnavailableError(f"{DISTRIBUTION} is not installed into this Python") from err
    found = set[str]()
    for name in names:
        extra = EXTRAS.get(name, name)
        if extra not in known and extra not in ALWAYS_THERE:
            hint = did_you_mean(name, sorted(known | set(EXTRAS)))
            raise UsageError(f"there is no extra and no backend {name!r:.80}", hint=hint)
        found |= {extra} & known
    return frozenset(found)


def gather(box: Box, extras: frozenset[str], find_links: Sequence[Path], out: Path) -> list[Wheel]:
    """Writes a new folder with all that a box needs, from folders with wheels and from pip's index; returns the wheels.

    Raises:
        CannotCreateError: the folder is there and holds something, or cannot be made.
        UnavailableError: something is nowhere to be had.
    """
    _check_is_free(out)
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=out.parent) as name, wrapped_io(out):
            wheels = _complete(Path(name), _own_wheel(box, find_links), extras, box, find_links)
            new = Path(name, "new")
            new.mkdir()
            for wheel in wheels:
                shutil.move(wheel.path, new)
            write_install_files(new, list(wheels_in(new).values()), box)
            for path in (*new.iterdir(), new):  # before they have their name: a loss of power must not leave a part
                sync(path)
            new.rename(out)
            sync(out.parent)
    except OSError as err:
        raise CannotCreateError(f"cannot be created: {err.strerror}", where=str(out)) from err
    return [replace(wheel, path=out / wheel.path.name) for wheel in wheels]


def _check_is_free(out: Path) -> None:
    if not out.absolute().parent.is_dir():
        raise no_folder(out)
    if out.is_symlink() or (out.exists() and not out.is_dir()) or (out.is_dir() and any(out.iterdir())):
        raise CannotCreateError("exists and is not empty", where=str(out), hint="name a new folder")


def _own_wheel(box: Box, folders: Sequence[Path]) -> str:
    """Returns what pip is asked for: our distribution of this version, as a file where the folders have it.

    An index may have a distribution of the same name and version; what the user named goes first.
    """
    path = wheel_of(DISTRIBUTION, __version__, folders, box)
    return f"{DISTRIBUTION}=={__version__}" if path is None else str(path.absolute())


def _complete(folder: Path, own: str, extras: frozenset[str], box: Box, find_links: Sequence[Path]) -> list[Wheel]:
    path_or_name, equals, version = own.partition("==")
    asked = [f"{path_or_name}[{','.join(sorted(extras))}]{equals}{version}" if extras else own]
    for number in range(MAX_ROUNDS):
        round_folder = folder / f"round{number}"
        download(asked, round_folder, box, find_links)
        wheels, missing = needed(wheels_in(round_folder), [(DISTRIBUTION, extras)], box)
        if not missing:
            return wheels
        asked += [_without_condition(str(need)) for need in missing]
    raise UnavailableError(f"pip finds no set of wheels that fits {box}: {asked[-1]} is missing again")


def _without_condition(requirement: str) -> str:
    return requirement.partition(";")[0].strip()
