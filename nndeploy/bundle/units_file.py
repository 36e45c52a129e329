# SPDX-License-Identifier: Apache-2.0
"""A library of static units as one file (.nnu) that several bundles share: written and read as bundles are.

The container is a bundle's, so there is exactly one encoding; the manifest is `units.json`. Laws: the same arguments
give the same bytes; nothing is handed out before its hash was checked; what the reader would refuse is not written.
"""

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from nndeploy.bundle.container import Buffer, Entry, encode_container, parse_container
from nndeploy.bundle.member_checks import check_crc, check_hash, check_lists_agree, data_of
from nndeploy.bundle.private_copy import ByteSource, GivenBytes, PrivateCopy
from nndeploy.bundle.units_manifest import (
    CURRENT_FORMAT,
    LIBRARY_NAME,
    TABLES_NAME,
    UnitsManifest,
    units_manifest_from_json,
)
from nndeploy.bundle.writer import replace_file
from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json, parse_json

SUFFIX = ".nnu"
MANIFEST_NAME = "units.json"
MAX_MANIFEST_BYTES = 1 << 20
_HINT = "make it again: nndeploy units build"


class UnitsFile:
    """An open library of units, its structure and manifest checked; `size_bytes` is the size of the file."""

    def __init__(self, data: Buffer | ByteSource, path: Path) -> None:
        """Checks the file whose bytes are `data`.

        Raises:
            BundleError: they are no library of units, or of a newer format.
            InputOutputError: reading failed.
        """
        source: ByteSource = GivenBytes(data) if isinstance(data, bytes | memoryview) else data
        self.path, self.size_bytes, self._source = path, source.size_bytes, source
        try:
            entries = parse_container(source.view, source.fetch)
            if MANIFEST_NAME not in entries:
                raise BundleError(f"not a library of units: it has no {MANIFEST_NAME}")
            if entries[MANIFEST_NAME].size > MAX_MANIFEST_BYTES:
                raise BundleError(f"more than {MAX_MANIFEST_BYTES} bytes", where=MANIFEST_NAME)
            text = self._bytes_of(entries[MANIFEST_NAME])
            check_crc(entries[MANIFEST_NAME], zlib.crc32(text), MANIFEST_NAME)
            self.manifest = _manifest(text)
            check_lists_agree(self.manifest.members, entries, (MANIFEST_NAME,))
        except BundleError as err:
            err.within(str(path)).hint = err.hint if "upgrade" in err.hint else _HINT
            raise
        self._entries = entries
        self._lock = Lock()
        self._checked: dict[str, memoryview] = {}

    @property
    def library(self) -> memoryview:
        """The shared library, once its hash was compared.

        Raises:
            BundleError: it is damaged.
        """
        return self._member(LIBRARY_NAME)

    @property
    def tables(self) -> memoryview | None:
        """The tables that came along, unchecked but for their hash; None where there are none.

        Raises:
            BundleError: they are damaged.
        """
        return self._member(TABLES_NAME) if TABLES_NAME in self._entries else None

    def verify(self) -> None:
        """Checks every byte of the file.

        Raises:
            BundleError: a member is damaged.
        """
        for name in self.manifest.members:
            self._member(name)

    def _member(self, name: str) -> memoryview:
        with self._lock:
            if name not in self._checked:
                self._checked[name] = self._checked_member(name)
            return self._checked[name]

    def _checked_member(self, name: str) -> memoryview:
        data, where = self._bytes_of(self._entries[name]), f"{self.path}: {name}"
        check_hash(self.manifest.members[name], hashlib.sha256(data).hexdigest(), where, _HINT)
        check_crc(self._entries[name], zlib.crc32(data), where)
        return data

    def _bytes_of(self, entry: Entry) -> memoryview:
        self._source.fetch(entry.offset, entry.end)
        return data_of(self._source.view, entry)


def open_units(path: str | Path) -> UnitsFile:
    """Returns the library of units at `path`, its structure and manifest checked.

    Raises:
        MissingInputError: there is no such file, or it may not be read.
        BundleError: the file is no library of units, is damaged, or of a newer format.
        InputOutputError: reading failed.
    """
    path = Path(path)
    return UnitsFile(PrivateCopy(path, "library of units"), path)


def write_units(path: str | Path, facts: Mapping[str, object], members: Mapping[str, Buffer]) -> UnitsManifest:
    """Writes a library of units to `path`, in place of the file that is there; returns its manifest.

    `facts` are the fields of `units.json` but for `format` and `members`, which are made here.

    Raises:
        BundleError: a field does not have its form.
        CannotCreateError: the folder is missing or not writable, or `path` is something else than a regular file.
        InputOutputError: the disk is full or failed.
    """
    listed = {n: {"sha256": hashlib.sha256(data).hexdigest(), "size_bytes": len(data)} for n, data in members.items()}
    try:
        text = canonical_json({**facts, "format": CURRENT_FORMAT, "members": listed})
        manifest = _manifest(memoryview(text))
    except BundleError as err:
        err.within(str(path))
        raise
    replace_file(Path(path), encode_container({MANIFEST_NAME: text, **members}))
    return manifest


def _manifest(text: memoryview) -> UnitsManifest:
    try:
        return units_manifest_from_json(parse_json(text, MAX_MANIFEST_BYTES))
    except BundleError as err:
        err.within(MANIFEST_NAME)
        raise
