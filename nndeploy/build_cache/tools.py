# SPDX-License-Identifier: Apache-2.0
"""The installed packages that a compile depends on, each by version and by the digest of its files.

A wheel's RECORD lists the digest of every file that it installed, so its own digest stands for all of them. What is
installed to be edited has no such list: there the sizes and times of the packages' files count, so each checkout has
keys of its own.

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

from nndeploy.plugin.entry_points import DISTRIBUTION

GROUPS = ("nndeploy.backends", "nndeploy.processors")
_NOT_OURS = frozenset({"dev"})
"""Extras that the work on the project needs, not a compile."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;]*(?:;.*?extra\s*==\s*['\"]([^'\"]+)['\"])?")
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
        return f"{one.version} {_of_sources()}"
    record = one.distribution.read_text("RECORD") or one.distribution.read_text("installed-files.txt") or ""
    return f"{one.version} {hashlib.sha256(record.encode()).hexdigest()}"


def _is_editable(one: Distribution) -> bool:
    text = one.read_text("direct_url.json")
    return text is not None and '"editable": true' in text


@cache
def _of_sources() -> str:
    """Returns the digest of the packages of this project that are imported from a checkout."""
    digest = hashlib.sha256()
    for name, size, changed in sorted(_sources()):
        digest.update(f"{name}\0{size}\0{changed}\0".encode())
    return digest.hexdigest()


def _sources() -> Iterator[tuple[str, int, int]]:
    """Yields what is imported: of a package that lies in several folders, the first one's files."""
    seen = set[str]()
    for folder in dict.fromkeys(Path(path) for path in sys.path if path):
        entries = [entry for entry in os.scandir(folder) if _is_ours(entry.name)] if folder.is_dir() else []
        for entry in entries:
            if entry.name not in seen:
                yield from _files(entry)
        seen.update(entry.name for entry in entries)


def _is_ours(name: str) -> bool:
    return name == "nndeploy" or (name.startswith("nndeploy_") and not name.endswith("-info"))


def _files(entry: "os.DirEntry[str]") -> Iterator[tuple[str, int, int]]:
    if entry.is_dir():
        for inner in os.scandir(entry):
            yield from _files(inner)
    elif entry.name.endswith(_SOURCES):
        found = entry.stat()
        yield entry.path, found.st_size, found.st_mtime_ns


@cache
def normalised(name: str) -> str:
    """Returns the name of a package as the index of Python packages compares them."""
    return re.sub(r"[-_.]+", "-", name).lower()
