# SPDX-License-Identifier: Apache-2.0
"""All that a bundle is made from, part by part: the model, what lies beside it, options, this machine, packages.

    model  name  external:<file>  option:<name>  option:<name>:<file>  limit:<name>  machine:<fact>  tool:<package>

Comes in: what the command was given. Goes out: texts by name, of which `nndeploy.build_cache.key` makes a key. Laws:
options count as what they mean, so a default that is given is none that is left out, and a file counts by what is in
it; no path, time, name of a machine or number of jobs counts.
"""

import dataclasses
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.tools import tools
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.compiler.outputs import is_to_be_written
from nndeploy.errors import DataError
from nndeploy.files.strict_json import canonical_json
from nndeploy.files.whole_files import read_regular
from nndeploy.options.described import default_of, described_fields
from nndeploy.target.known_targets import parted, target_of
from nndeploy.target.target import host_target

_MAX_TOML_BYTES = 64 << 20
_MAX_PATH_BYTES = 4096
_NO_PARTS_OF = frozenset({"dry_run"})
MACHINE = "machine:"
"""What the names of parts begin with that tell of the machine that compiles."""
_LIMITS_THAT_DECIDE = ("time_limit", "memory_limit", "sandbox")
"""What is refused for want of time or memory is built by another backend."""


def parts_of(source: Path, given: Mapping[str, Any], limits: CompileLimits, digests: FileDigests) -> dict[str, str]:
    """Returns the parts of a compile; `given` is as for `nndeploy.compiler.job.compile_in_child`.

    Raises:
        NndeployError: a file that counts is not there, or is none; compiling says it better.
    """
    return {**parts_of_model(source, digests), **parts_of_options(given, limits, digests)}


def parts_of_options(given: Mapping[str, Any], limits: CompileLimits, digests: FileDigests) -> dict[str, str]:
    """Returns the parts of a compile of any model; raises as `parts_of` does."""
    return {
        **dict(_of_options(given, digests)),
        **{f"limit:{name}": _text(getattr(limits, name)) for name in _LIMITS_THAT_DECIDE},
        **parts_of_machine(),
        **tools(),
    }


def parts_of_model(source: Path, digests: FileDigests) -> dict[str, str]:
    """Returns the parts that are the model's; raises as `parts_of` does."""
    found = digests.model(source)
    external = {f"external:{name}": digests.file(_beside(source, name)) for name in found.names}
    return {"model": found.sha256, "name": source.stem, **external}


def is_of_file(name: str) -> bool:
    """Returns whether a part is the digest of a file: the model, one beside it, or one that an option names."""
    return name == "model" or name.startswith("external:") or (name.startswith("option:") and name.count(":") > 1)


def files_of(source: Path, given: Mapping[str, Any], digests: FileDigests) -> Iterator[Path]:
    """Yields every file that a compile reads; boxes that are known by name have theirs in the package.

    Raises:
        NndeployError: the model is not there, or is none.
    """
    yield source
    yield from (_beside(source, name) for name in digests.model(source).names)
    for name, (_, one) in described_fields(CompileOptions).items():
        if name == "targets":
            boxes = (Path(parted(text)[0]) for text in given.get(name, ()))
            yield from (box for box in boxes if box.is_absolute())
        elif one.is_path:
            for path in _paths(given.get(name)):
                yield from (file for _, file in _files_of_path(name, path))


def _beside(source: Path, name: str) -> Path:
    """Returns a file that the model or pipeline names, without opening it."""
    if name.startswith("/") or ".." in name.split("/") or "\\" in name or "\0" in name:
        raise DataError(f"names the file {name!r:.80}", where=str(source))
    return source.parent / name


def _of_options(given: Mapping[str, Any], digests: FileDigests) -> Iterator[tuple[str, str]]:
    for name, (field, one) in described_fields(CompileOptions).items():
        if name in _NO_PARTS_OF:
            continue
        value = given.get(name, default_of(field))
        if value is None or (not one.is_path and value in ("", (), [])) or value in ((), []):
            continue  # not given
        if name == "targets":
            boxes = [dataclasses.asdict(target_of(text)) for text in value]
            yield f"option:{name}", _text(boxes)
        elif one.is_path:
            for number, path in enumerate(_paths(value)):
                for inner, digest in _of_path(name, path, digests):
                    yield f"option:{name}:{number}{inner}", digest
        else:
            yield f"option:{name}", _text(value)


def _paths(value: Any) -> list[Path]:
    return [Path(path) for path in ([value] if isinstance(value, str) else value or ())]


def _of_path(name: str, path: Path, digests: FileDigests) -> Iterator[tuple[str, str]]:
    if is_to_be_written(name, path):
        yield "", "to be written"
    elif path.is_dir():  # which may be empty
        yield "", "a folder"
    for inner, file in _files_of_path(name, path):
        yield inner, digests.file(file)
    if name == "custom_op_libraries":
        yield ":name", path.name


def _files_of_path(name: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files that a path of an option stands for, each with what tells it apart."""
    if path.is_dir():  # of samples
        yield from ((f":{file.name}", file) for file in sorted(path.glob("*.npz")))
        return
    if is_to_be_written(name, path):
        return
    yield "", path
    if name == "pipeline":
        for text in sorted(set(_texts(tomllib.loads(read_regular(path, _MAX_TOML_BYTES).decode("utf-8"))))):
            if 0 < len(text) < _MAX_PATH_BYTES and "\0" not in text and (path.parent / text).is_file():
                yield f":{text}", path.parent / text


def _texts(data: Any) -> Iterator[str]:
    """Yields every text in plain data: any may name a file that travels with the pipeline."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value)


@cache
def parts_of_machine() -> dict[str, str]:
    """Returns what of this machine a compile looks at: kernels are chosen for it, and placements measured on it."""
    facts = dataclasses.asdict(host_target())
    return {
        f"{MACHINE}{name}": _text(value) for name, value in facts.items() if value and name not in ("name", "is_host")
    }


def _text(value: Any) -> str:
    return canonical_json(value).decode("ascii") if not isinstance(value, str) else value or '""'
