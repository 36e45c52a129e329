# SPDX-License-Identifier: Apache-2.0
"""The installed packages that a compile depends on, each by version and by the digest of its files.

A wheel's RECORD lists the digest of every file that it installed, so the digest of these lines stands for all of them;
what the installer wrote itself, such as scripts that name the folder of this Python, does not count, so the same wheel
has the same text on every machine. What is installed to be edited has no such list: there the sizes and times of the
packages' files count, so each checkout has keys of its own.

Comes in: nothing. Goes out: name -> version and digest. Law: another version, or another build of the same version,
gives another text; packages that nothing of ours asks for give none.
"""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

from nndeploy.version import DISTRIBUTION

GROUPS = ("nndeploy.backends", "nndeploy.processors")
_NOT_OURS = frozenset({"dev", "farm"})
"""Extras that the work on the project and a cluster need, not a compile."""
_BY_INSTALLER = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;]*(?:;.*?extra\s*==\s*['\"]([^'\"]+)['\"])?")
KERNELS = "nndeploy_kernels"
"""A distribution of its own where it is installed, part of the checkout where it is not."""
_NOT_COMPILING = ("runtime-", "objects")
"""Folders begin so of what runs bundles without Python, and of parts of libraries: no compile needs either."""
_SOURCES = (".py", ".so", ".json", ".toml", ".c", ".h")


class _Package(NamedTuple):
    """What the head of a package's METADATA says; the library's parser of mail takes ten times as long."""

    name: str
    version: str
    required: tuple[tuple[str, str], ...]
    distribution: Distribution


@cache
def tools() -> dict[str, str]:
    """Returns "tool:NAME" -> version and digest of each package, with those of Python and the C library."""
    found = {one.name: one for one in map(_package, distributions())}
    roots = {normalised(DISTRIBUTION), *(name for name, one in found.items() if _has_plugins(one))}
    waiting, seen = [*roots], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in found:
            continue
        seen.add(name)
        waiting += _required(found[name], with_extras=name in roots)
    texts = {f"tool:{name}": _text(found[name]) for name in seen}
    texts["tool:python"] = f"{platform.python_implementation()} {platform.python_version()}"
    texts["tool:libc"] = " ".join(platform.libc_ver())
    return texts


def _package(one: Distribution) -> _Package:
    head = (one.read_text("METADATA") or one.read_text("PKG-INFO") or "").partition("\n\n")[0]
    fields: dict[str, list[str]] = {}
    for line in head.splitlines():
        key, _, value = line.partition(": ")
        fields.setdefault(key, []).append(value)
    name, version = (fields.get(key, [""])[0] for key in ("Name", "Version"))
    matches = filter(None, map(_REQUIREMENT.match, fields.get("Requires-Dist", ())))
    required = tuple((match[1], match[2] or "") for match in matches)
    return _Package(normalised(name), version, required, one)


def _has_plugins(one: _Package) -> bool:
    text = one.distribution.read_text("entry_points.txt") or ""
    return any(f"[{group}]" in text for group in GROUPS)


def _required(one: _Package, *, with_extras: bool) -> Iterator[str]:
    for name, extra in one.required:
        if not extra or (with_extras and extra not in _NOT_OURS):
            yield normalised(name)


def _text(one: _Package) -> str:
    if _is_editable(one.distribution):
        return f"{one.version} {_of_sources(_packages_of(one.distribution))}"
    record = one.distribution.read_text("RECORD") or one.distribution.read_text("installed-files.txt") or ""
    lines = "\n".join(sorted(filter(_is_of_wheel, record.splitlines())))
    return f"{one.version} {hashlib.sha256(lines.encode()).hexdigest()}"


def _is_of_wheel(line: str) -> bool:
    """Returns whether a line of RECORD is of a file that came in the wheel, unchanged."""
    name = line.rpartition(",")[0].rpartition(",")[0]
    return not name.startswith("../") and not name.endswith(".pyc") and name.rpartition("/")[2] not in _BY_INSTALLER


def _is_editable(one: Distribution) -> bool:
    text = one.read_text("direct_url.json")
    return text is not None and '"editable": true' in text


def _packages_of(one: Distribution) -> frozenset[str]:
    """Returns the packages that a distribution's entry points lead to, and what those of ours import."""
    return frozenset({point.value.partition(":")[0].partition(".")[0] for point in one.entry_points} | {KERNELS})


@cache
def _of_sources(packages: frozenset[str]) -> str:
    """Returns the digest of packages that are imported from a checkout."""
    digest = hashlib.sha256()
    for name, size, changed in sorted(_sources(packages)):
        digest.update(f"{name}\0{size}\0{changed}\0".encode())
    return digest.hexdigest()


def _sources(packages: frozenset[str]) -> Iterator[tuple[str, int, int]]:
    """Yields what is imported: of a package that lies in several folders, the first one's files."""
    seen = set[str]()
    for folder in dict.fromkeys(Path(path) for path in sys.path if path):
        entries = [entry for entry in os.scandir(folder) if _is_one(entry, packages)] if folder.is_dir() else []
        for entry in entries:
            if entry.name not in seen:
                yield from _files(entry)
        seen.update(entry.name for entry in entries)


def _is_one(entry: "os.DirEntry[str]", packages: frozenset[str]) -> bool:
    """Returns whether a folder is one of the packages; data files of an installed one lie in a folder of its name."""
    return entry.name in packages and Path(entry, "__init__.py").is_file()


def _files(entry: "os.DirEntry[str]") -> Iterator[tuple[str, int, int]]:
    if entry.is_dir():
        if entry.name.startswith(_NOT_COMPILING):
            return
        for inner in os.scandir(entry):
            yield from _files(inner)
    elif entry.name.endswith(_SOURCES):
        found = entry.stat()
        yield entry.path, found.st_size, found.st_mtime_ns


@cache
def normalised(name: str) -> str:
    """Returns the name of a package as the index of Python packages compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()
