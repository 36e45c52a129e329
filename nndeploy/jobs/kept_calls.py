# SPDX-License-Identifier: Apache-2.0
"""Answers of backends' libraries that an earlier compile of the model got: asked again, they are read, not computed.

    <made>/<key>/response.json  files/<i>  output-<i>.values        as the child wrote them; whole, or not by that name

Comes in: where known answers lie, and a folder for new ones. Goes out: a response, or none. Laws: an answer is used
only for the same question, to the last byte of model and samples, asked of the same packages, and only if its own bytes
are what they were; what was measured, refused, crashed or took too long is asked again.
"""

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nndeploy.bundle.values import encode_values
from nndeploy.errors import NndeployError
from nndeploy.files.file_content import content_of
from nndeploy.files.onnx_external_data import named_files
from nndeploy.files.strict_json import canonical_json
from nndeploy.jobs.messages import Request, Response, response_from_folder
from nndeploy.jobs.temporary import temporary_folder

TASKS = frozenset({"supports", "build", "evaluate", "calibrate", "quantise"})
"""Those whose answer follows from the question alone."""
FILES = re.compile(r"response\.json|files/[0-9]{1,6}|output-[0-9]{1,6}\.values")
"""Names of the files of an answer."""
PARTIAL = ".partial"
MAX_BYTES = 256 << 20
"""Larger answers are not kept: they are read as slowly as they are made."""


class KeptCalls:
    """Known answers by key, each file by name with its path and SHA-256, and a folder that takes new ones."""

    def __init__(self, known: Mapping[str, Mapping[str, tuple[str, str]]], made: Path, packages: str) -> None:
        """Answers depend on the `packages`, a text of all of them."""
        self._known = known
        self._made = made
        self._packages = packages
        self._hash_of: dict[tuple[str, str, str], str] = {}
        """The SHA-256 of stored weights by file, offset and length; what is stored never changes."""

    def key(self, request: Request) -> str:
        """Returns what a question is known by, "" where its answer is not kept."""
        if request.task not in TASKS or request.libraries():
            return ""
        data: dict[str, Any] = {
            "task": request.task,
            "arguments": dict(request.arguments),
            "target": None if request.target is None else dataclasses.asdict(request.target),
            "options": dataclasses.asdict(request.options),
            "packages": self._packages,
        }
        digest = hashlib.sha256(canonical_json(data))
        for part in (self._self_contained(request.model or b""), *map(encode_values, request.samples)):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()

    def _self_contained(self, model: bytes) -> bytes:
        """Returns the bytes of a model, which have the hashes of stored weights in place of where they lie."""
        if not named_files(model):
            return model
        import onnx

        proto = onnx.load_from_string(model)
        for tensor in proto.graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                place = {entry.key: entry.value for entry in tensor.external_data}
                digest = self._hash_of_stored(place["location"], place["offset"], place["length"])
                del tensor.external_data[:]
                tensor.external_data.add(key="sha256", value=digest)
        return bytes(proto.SerializeToString(deterministic=True))

    def _hash_of_stored(self, path: str, offset: str, length: str) -> str:
        if (path, offset, length) not in self._hash_of:
            part = memoryview(content_of(Path(path)))[int(offset) : int(offset) + int(length)]
            self._hash_of[path, offset, length] = hashlib.sha256(part).hexdigest()
        return self._hash_of[path, offset, length]

    def response(self, key: str) -> Response | None:
        """Returns the known answer, None where there is none."""
        if key not in self._known:
            return None
        with temporary_folder("known") as folder:
            for name, (path, sha256) in self._known[key].items():
                try:
                    data = Path(path).read_bytes()
                except OSError:
                    return None
                if hashlib.sha256(data).hexdigest() != sha256:
                    return None
                place = folder / name
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(data)
            return response_from_folder(folder)

    def keep(self, key: str, folder: Path) -> None:
        """Takes in the answer that a child left in `folder`, if it is one that will be the same again."""
        answer = folder / "response.json"
        if not answer.read_bytes().startswith(b'{"result"'):
            return  # a refusal may be for want of memory
        files = [answer, *(folder / "files").glob("*"), *folder.glob("output-*.values")]
        if sum(file.stat().st_size for file in files) > MAX_BYTES:
            return
        partial = self._made / f"{key}{PARTIAL}"
        with contextlib.suppress(OSError, NndeployError):  # no space, or kept already
            partial.mkdir()
            for file in files:
                target = partial / file.relative_to(folder)
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(file, target)
            partial.rename(self._made / key)  # who is killed before leaves nothing that is called an answer


def answers_in(made: Path) -> Iterator[tuple[str, dict[str, Path]]]:
    """Yields the answers in a folder that another process, which has ended, wrote: the name, and the files by name.

    What is no plain file, or is called as none of an answer, is a reason to take nothing of it: a link may lead to what
    that process could not read.
    """
    for answer in _entries(made):
        files, others = {}, False
        for entry in _entries(Path(answer)) if answer.is_dir(follow_symlinks=False) else ():
            inner = _entries(Path(entry)) if entry.name == "files" and entry.is_dir(follow_symlinks=False) else [entry]
            for file in inner:
                name = str(Path(file).relative_to(answer.path))
                others |= not _is_plain(file) or FILES.fullmatch(name) is None
                files[name] = Path(file)
        if files and not others:
            yield answer.name, files


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []


def _is_plain(entry: "os.DirEntry[str]") -> bool:
    found = entry.stat(follow_symlinks=False)
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def kept_calls(data: Mapping[str, Any], made: Path) -> KeptCalls:
    """Returns what the process that started this one knows; new answers go into the folder `made`."""
    made.mkdir(exist_ok=True)
    return KeptCalls(data["calls"], made, data["packages"])
