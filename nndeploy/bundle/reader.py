# SPDX-License-Identifier: Apache-2.0
"""Reads a bundle: the first step of the run half, and all that it knows of a compile.

A path comes in; a `Bundle` goes out, whose structure and manifest have been checked and whose members are handed out
as views of the mapped file, each after its SHA-256 was compared with the manifest's. Laws: nothing is handed out
before its hash was checked; nothing is copied, unpickled or evaluated; a file that is not exactly a bundle is one
`BundleError`.

A bundle is replaced by renaming another file over it, never by writing into it: the file stays mapped while it is
used, and what changes in it after the check is seen unchecked.
"""

import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from nndeploy.bundle.container import Buffer, Entry, parse_container
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import REPORT_NAME, SIGNATURE_NAME, UNLISTED, check_manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME, decode_manifest
from nndeploy.bundle.member_checks import check_crc, check_hash, check_lists_agree, data_of
from nndeploy.bundle.strict_json import parse_json
from nndeploy.bundle.values import decode_values
from nndeploy.errors import BundleError, InputOutputError, MissingInputError, UsageError, did_you_mean
from nndeploy.value_types import Value

MAX_REPORT_BYTES = 256 << 20
MAX_SIGNATURE_BYTES = 1 << 20


class Bundle:
    """An open bundle; several threads may use it at once.

    `path` is where it came from, `size_bytes` the size of the file, `manifest` has been checked. Views and arrays
    that were handed out stay valid after `close`: the file stays mapped until the last of them is gone.
    """

    def __init__(self, data: Buffer, path: Path) -> None:
        """Checks the structure and the manifest of the bundle whose bytes are `data`.

        Raises:
            BundleError: `data` is not a bundle, or of a newer format.
        """
        self.path = path
        self.size_bytes = len(data)
        self._view: memoryview | None = memoryview(data)
        try:
            self._entries = _parsed(self._view, path)
            self.manifest = _manifest(self._view, self._entries)
            check_lists_agree(self.manifest.members, self._entries, UNLISTED)
            _check_signature(self._entries)
        except BundleError as err:
            err.within(str(path))
            raise
        self._locks = {name: Lock() for name in self.manifest.members}
        self._checked: set[str] = set()

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def member(self, name: str) -> memoryview:
        """Returns a read-only view of a member, whose hash is compared the first time.

        Raises:
            BundleError: the member's bytes are not those that the manifest lists.
            UsageError: there is no such member, or the bundle is closed.
        """
        if name not in self._locks:
            hint = did_you_mean(name, self._locks)
            raise UsageError(f"there is no member {name!r:.80}", where=str(self.path), hint=hint)
        data = data_of(self._open_view(), self._entries[name])
        with self._locks[name]:
            if name not in self._checked:
                self._check_hash(name, data)
                self._checked.add(name)
        return data

    def values(self, name: str) -> dict[str, Value]:
        """Returns the values of a values member; arrays are read-only views of the file.

        Raises:
            BundleError: the member is damaged or holds no values.
            UsageError: there is no such member, or the bundle is closed.
        """
        data = self.member(name)
        try:
            return decode_values(data)
        except BundleError as err:
            err.within(f"{self.path}: {name}")
            raise

    def report(self) -> dict[str, Any]:
        """Returns the report of the compile as plain data; `nndeploy.report.report_from_json` makes a `Report`.

        Raises:
            BundleError: the report is damaged or no JSON object.
            UsageError: the bundle is closed.
        """
        data = self.member(REPORT_NAME)
        try:
            report = parse_json(data, MAX_REPORT_BYTES)
        except BundleError as err:
            err.within(f"{self.path}: {REPORT_NAME}")
            raise
        if not isinstance(report, dict):
            raise BundleError("the report is no object", where=f"{self.path}: {REPORT_NAME}")
        return report

    def verify(self) -> None:
        """Checks every byte of the bundle, again where it was checked before.

        Raises:
            BundleError: a member is damaged.
            UsageError: the bundle is closed.
        """
        view = self._open_view()
        for name, entry in self._entries.items():
            data = data_of(view, entry)
            if name in self.manifest.members:
                self._check_hash(name, data)
            check_crc(entry, data, f"{self.path}: {name}")

    def close(self) -> None:
        """Lets go of the file; a second call does nothing."""
        self._view = None

    def _open_view(self) -> memoryview:
        if self._view is None:
            raise UsageError("the bundle is closed", where=str(self.path))
        return self._view

    def _check_hash(self, name: str, data: memoryview) -> None:
        check_hash(self.manifest.members[name], data, f"{self.path}: {name}", "copy the bundle again, or compile again")


def open_bundle(path: str | Path) -> Bundle:
    """Returns the bundle at `path`, mapped and with its structure and manifest checked; use it in a `with`.

    Raises:
        MissingInputError: there is no such file, or it may not be read.
        BundleError: the file is not a bundle, is damaged, or of a newer format.
        InputOutputError: reading failed.
    """
    path = Path(path)
    return Bundle(map_file(path, "bundle"), path)


def map_file(path: Path, what: str) -> memoryview:
    """Returns the bytes of the file at `path`, mapped; `what` is what it should be.

    Raises:
        MissingInputError: there is no such file, or it may not be read.
        BundleError: it is no regular file, or empty.
        InputOutputError: reading failed.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError, ValueError) as err:
        raise MissingInputError(f"no such {what}", where=str(path)) from err
    except OSError as err:
        raise MissingInputError(f"the {what} cannot be read: {err.strerror}", where=str(path)) from err
    try:
        return _mapped(descriptor, path, what)
    finally:
        os.close(descriptor)


def _mapped(descriptor: int, path: Path, what: str) -> memoryview:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise BundleError(f"is a folder, not a {what}", where=str(path))
    if not stat.S_ISREG(status.st_mode):
        raise BundleError("is no regular file", where=str(path))
    if status.st_size == 0:
        raise BundleError(f"not a {what}: the file is empty", where=str(path))
    try:
        return memoryview(mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as err:
        raise InputOutputError(f"the {what} cannot be mapped: {err}", where=str(path)) from err


def _parsed(view: memoryview, path: Path) -> dict[str, Entry]:
    try:
        return parse_container(view)
    except BundleError as err:
        if path.suffix == ".onnx":
            err.hint = f"compile it first: nndeploy compile {path} -o {path.with_suffix('.nnd')}"
        raise


def _manifest(view: memoryview, entries: Mapping[str, Entry]) -> Manifest:
    if MANIFEST_NAME not in entries:
        raise BundleError(f"a ZIP archive, but not a bundle: it has no {MANIFEST_NAME}")
    data = data_of(view, entries[MANIFEST_NAME])
    check_crc(entries[MANIFEST_NAME], data, MANIFEST_NAME)
    try:
        manifest = decode_manifest(data)
        check_manifest(manifest)
    except BundleError as err:
        err.within(MANIFEST_NAME)
        raise
    return manifest


def _check_signature(entries: Mapping[str, Entry]) -> None:
    if SIGNATURE_NAME in entries and entries[SIGNATURE_NAME].size > MAX_SIGNATURE_BYTES:
        raise BundleError(f"more than {MAX_SIGNATURE_BYTES} bytes", where=SIGNATURE_NAME)
