# SPDX-License-Identifier: Apache-2.0
"""What wheels say of themselves, and which of them a box needs.

pip answers the conditions of requirements (`numpy; python_version < "3.12"`) for the Python that it runs in, also where
it is asked for another one. So they are answered again here, for the box.
"""

import email
import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from nndeploy.errors import DataError
from nndeploy.wheelhouse.box import Box


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel; `needs` are its requirements, those of its extras too."""

    path: Path
    name: str
    version: str
    needs: tuple[Requirement, ...]


def wheels_in(folder: Path) -> dict[str, Wheel]:
    """Returns name -> wheel of a folder that pip filled.

    Raises:
        DataError: one is malformed.
    """
    return {wheel.name: wheel for wheel in map(_read, sorted(folder.glob("*.whl")))}


def wheel_of(name: str, version: str, folders: Iterable[Path], box: Box) -> Path | None:
    """Returns the wheel of a distribution that a box runs, from the first folder that has it."""
    runs = {"any", *box.platforms}
    for path in (path for folder in folders for path in sorted(folder.glob("*.whl"))):
        try:
            found, of_version, _, tags = parse_wheel_filename(path.name)
        except InvalidWheelFilename:
            continue
        if (found, str(of_version)) == (name, version) and any(tag.platform in runs for tag in tags):
            return path
    return None


def _read(path: Path) -> Wheel:
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
        with zipfile.ZipFile(path) as archive:
            (member,) = (one for one in archive.namelist() if _is_metadata(one))
            metadata = email.message_from_bytes(archive.read(member))
        needs = tuple(Requirement(text) for text in metadata.get_all("Requires-Dist") or ())
    except (ValueError, zipfile.BadZipFile, InvalidWheelFilename, InvalidRequirement) as err:
        raise DataError(f"is not a readable wheel: {err}", where=path.name) from err
    return Wheel(path, name, str(version), needs)


def _is_metadata(member: str) -> bool:
    folder, _, name = member.partition("/")
    return folder.endswith(".dist-info") and name == "METADATA"


def sha256_of(wheel: Wheel) -> str:
    """Returns the digest of a wheel's bytes, as pip writes it."""
    with wheel.path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def needed(
    wheels: Mapping[str, Wheel], roots: Iterable[tuple[str, frozenset[str]]], box: Box
) -> tuple[list[Wheel], list[Requirement]]:
    """Returns those of `wheels` that a box needs for some distributions with extras, and what is not among them."""
    waiting, seen = list(roots), set[tuple[str, frozenset[str]]]()
    found, missing = dict[str, Wheel](), dict[str, Requirement]()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[name] = wheels[name]
        for need in _needs_on(wheels[name], extras, box):
            other = wheels.get(canonicalize_name(need.name))
            if other is None or not need.specifier.contains(other.version, prereleases=True):
                missing[str(need)] = need
            else:
                waiting.append((other.name, frozenset(need.extras)))
    return sorted(found.values(), key=lambda wheel: wheel.name), list(missing.values())


def _needs_on(wheel: Wheel, extras: frozenset[str], box: Box) -> Iterable[Requirement]:
    for need in wheel.needs:
        answers = [box.conditions | {"extra": extra} for extra in extras | {""}]
        if need.marker is None or any(need.marker.evaluate(answer) for answer in answers):
            yield need
