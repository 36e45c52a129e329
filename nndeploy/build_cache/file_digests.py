# SPDX-License-Identifier: Apache-2.0
"""Digests of files, remembered by what the system says of a file: who was not touched is not read again.

Law: a file whose inode, size, time of change or time of its entry differ from what was remembered is read.
"""

import contextlib
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import MissingInputError, NndeployError
from nndeploy.files.onnx_external_data import named_files
from nndeploy.files.pieces import sha256_of
from nndeploy.files.whole_files import read_regular, write_file

_SETTLED_NS = 2_000_000_000
"""A file younger than this may change again without another time of change: it is not remembered."""


@dataclass(frozen=True, slots=True)
class Digested:
    """The SHA-256 of a file, and the files beside it that an ONNX model names; of others none."""

    sha256: str
    names: tuple[str, ...] = ()


class FileDigests:
    """Digests by path, kept in a file of the cache from one process to the next where one is named."""

    def __init__(self, kept_in: Path | None = None) -> None:
        """Begins with what `kept_in` holds; with nothing where it cannot be read."""
        self._path = kept_in
        self._known: dict[str, tuple[list[int], Digested]] = {}
        self._is_new = False
        if kept_in is None:
            return
        with contextlib.suppress(OSError, ValueError, AttributeError, TypeError):
            data = json.loads(kept_in.read_text(encoding="utf-8"))
            self._known = {
                path: (facts, Digested(sha256, tuple(names))) for path, (facts, sha256, names) in data.items()
            }

    def file(self, path: Path) -> str:
        """Returns the SHA-256 of a file; raises as `open_regular` does."""
        return self._found(path, lambda: Digested(sha256_of(path))).sha256

    def model(self, path: Path) -> Digested:
        """Returns the SHA-256 of an ONNX model and the files that it names.

        Raises:
            MissingInputError, InputError, InputOutputError: it cannot be read, or is larger than a model may be.
            BundleError: it is no model.
        """

        def read() -> Digested:
            data = read_regular(path)
            return Digested(hashlib.sha256(data).hexdigest(), tuple(named_files(data)))

        return self._found(path, read)

    def keep(self) -> None:
        """Writes what is known for later processes, where that can be done."""
        if self._path is None or not self._is_new:
            return
        data = {path: (facts, one.sha256, one.names) for path, (facts, one) in self._known.items()}
        with contextlib.suppress(NndeployError):
            write_file(self._path, lambda file: file.write(json.dumps(data).encode()))

    def _found(self, path: Path, read: Callable[[], Digested]) -> Digested:
        name = str(path)
        try:
            found = path.stat()
        except (OSError, ValueError) as err:
            raise MissingInputError("no such file", where=name) from err
        facts = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        kept = self._known.get(name)
        if kept is not None and kept[0] == facts:
            return kept[1]
        digested = read()
        if time.time_ns() - max(facts[3:]) > _SETTLED_NS:
            self._known[name], self._is_new = (facts, digested), True
        return digested
