# SPDX-License-Identifier: Apache-2.0
"""A job as it travels to another machine: plain data, with the files that it names by digest and never by place.

    <base>/models/a.onnx, <base>/boxes/b.toml  ->  {"/models/a.onnx": <digest>, "/boxes/b.toml": <digest>}  ->  a tree

Comes in: a job of this machine, or what was packed. Goes out: what is packed, or the job with its files laid out below
a folder. Laws: the parts of the job's key are the same on both sides, but for those of the machine and its packages; no
file is laid out of another place, and none of which the digest differs.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from nndeploy.build_cache.entry import Blob
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.compiler.cache_key import files_of
from nndeploy.compiler.outputs import DECISIONS
from nndeploy.errors import DataError, MissingInputError
from nndeploy.farm.job import Job, job_from_json, job_to_json
from nndeploy.farm.job_options import with_paths

OUTPUT = "output.nnd"
TREE = "tree"


@dataclass(frozen=True, slots=True)
class PackedJob:
    """A job in `data`, with the path "/x" for what is at `base`/x; `files` is path -> content, `folders` are made."""

    data: Mapping[str, Any]
    base: str
    files: Mapping[str, Blob]
    folders: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns what travels; where the files lie here is nobody else's business."""
        files = {name: [blob.sha256, blob.size] for name, blob in self.files.items()}
        return {"job": dict(self.data), "files": files, "folders": list(self.folders)}


def packed(job: Job, digests: FileDigests) -> PackedJob:
    """Returns a job that can travel.

    Raises:
        NndeployError: a file that it names is not there, or is none.
    """
    files = {os.path.normpath(file): file for file in files_of(Path(job.source), job.given, digests)}
    named: list[str] = []
    with_paths(job.given, lambda text: _noted(named, text))
    folders = [path for path in named if Path(path).is_dir()]
    base = os.path.commonpath([os.path.dirname(path) for path in (*files, *named)])  # noqa: PTH120 - texts of any kind

    def in_tree(path: str) -> str:
        return f"/{os.path.relpath(path, base)}"

    data = job_to_json(job)
    data |= {"source": in_tree(job.source), "output": OUTPUT, "given": with_paths(job.given, in_tree)}
    blobs = {in_tree(path): _blob(file, digests) for path, file in files.items()}
    return PackedJob(data, base, blobs, tuple(sorted(map(in_tree, folders))))


def _noted(named: list[str], text: str) -> str:
    named.append(text)
    return text


def _blob(file: Path, digests: FileDigests) -> Blob:
    digest = digests.file(file)
    try:
        return Blob(digest, file.stat().st_size)
    except OSError as err:
        raise MissingInputError("no such file", where=str(file)) from err


def packed_from_json(data: Mapping[str, Any]) -> PackedJob:
    """Returns what travelled; its base is unknown here."""
    files = {name: Blob(sha256, size) for name, (sha256, size) in data["files"].items()}
    return PackedJob(data["job"], "", files, tuple(data["folders"]))


def unpacked(one: PackedJob, copy: Callable[[Blob, Path], None], folder: Path) -> Job:
    """Lays out the files of a job below a folder, where its output goes too, and returns the job of this machine.

    Raises:
        DataError: it is no job, or a path could leave the tree.
        NndeployError: `copy` did.
    """

    def place(path: str) -> str:
        return str(folder / TREE / _checked(path))

    for name in one.folders:
        Path(place(name)).mkdir(parents=True, exist_ok=True)
    for name, blob in one.files.items():
        Path(place(name)).parent.mkdir(parents=True, exist_ok=True)
        copy(blob, Path(place(name)))
    given = with_paths(one.data["given"], place)
    if DECISIONS in given:
        Path(given[DECISIONS]).parent.mkdir(parents=True, exist_ok=True)
    places = {"source": place(one.data["source"]), "output": str(folder / OUTPUT), "given": given}
    return job_from_json({**one.data, **places})


def _checked(path: str) -> str:
    """Returns a path of the tree as one relative to it."""
    if not path.startswith("/") or ".." in PurePosixPath(path).parts or "\0" in path:
        raise DataError(f"{path!r:.120} is no path of a tree", where="packed job")
    return path.lstrip("/")
