# SPDX-License-Identifier: Apache-2.0
"""Reads a bundle: the first step of the run half, and all that it knows of a compile.

A path comes in; a `Bundle` goes out, whose structure and manifest have been checked and whose members are handed out
as views of a private copy, each after the SHA-256 of that copy was compared with the manifest's. Laws: nothing is
handed out before its hash was checked, and nothing that was handed out changes, whatever happens to the file; nothing
is copied twice, unpickled or evaluated; a file that is not exactly a bundle is one `BundleError`. Of a member that is
stored compressed, the hash of what it really is decides.

A member is read when it is first asked for. Where the file was overwritten by then, its hash is wrong; where it was
cut, reading fails. Where another file took its name, the old one is still the one that is read.
"""

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from nndeploy.bundle.compressed_member import expand
from nndeploy.bundle.container import Buffer, Entry, parse_container
from nndeploy.bundle.manifest import Compressed, Manifest, Member
from nndeploy.bundle.manifest_check import REPORT_NAME, SIGNATURE_NAME, UNLISTED, check_manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME, MAX_MANIFEST_BYTES, decode_manifest
from nndeploy.bundle.member_checks import check_crc, check_hash, check_lists_agree, data_of
from nndeploy.bundle.private_copy import ByteSource, GivenBytes, PrivateCopy, memory_of_caller
from nndeploy.bundle.values import decode_values
from nndeploy.errors import BundleError, UsageError, did_you_mean
from nndeploy.files.strict_json import parse_json
from nndeploy.values.types import Value

MAX_REPORT_BYTES = 256 << 20
MAX_SIGNATURE_BYTES = 4 << 20
_HINT = "copy the bundle again, or compile again"


class Bundle:
    """An open bundle; several threads may use it at once.

    `path` is where it came from, `size_bytes` the size of the file, `manifest` has been checked, and `manifest_text` is
    what it was read from; `signature` is the member of that name, unchecked, b"" where there is none. Views and arrays
    that were handed out stay valid after `close`: the memory is there until the last of them is gone.
    """

    def __init__(self, data: Buffer | ByteSource, path: Path) -> None:
        """Checks the structure and the manifest of the bundle whose bytes are `data`.

        Raises:
            BundleError: `data` is not a bundle, or of a newer format.
            InputOutputError: reading failed.
        """
        source: ByteSource = GivenBytes(data) if isinstance(data, bytes | memoryview) else data
        self.path = path
        self.size_bytes = source.size_bytes
        self._source: ByteSource | None = source
        try:
            self._entries = _parsed(source, path)
            self.manifest_text = _manifest_text(source, self._entries)
            self.manifest = _manifest(self.manifest_text)
            check_lists_agree(self.manifest.members, self._entries, UNLISTED)
            self.signature = _signature(source, self._entries)
        except BundleError as err:
            source.close()
            err.within(str(path))
            raise
        self._locks = {name: Lock() for name in self.manifest.members}
        self._checked: set[str] = set()

    @property
    def descriptor(self) -> int:
        """The open file, which stays the same whatever its name stands for by now; -1 where there is none."""
        return self._open_source().descriptor

    def __enter__(self) -> "Bundle":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def member(self, name: str) -> memoryview:
        """Returns a read-only view of a member, which is read, and its hash compared, the first time.

        One that is stored compressed is made anew each time, in memory of its own.

        Raises:
            BundleError: the member's bytes are not those that the manifest lists.
            InputOutputError: the member cannot be read, or is no longer there.
            UsageError: there is no such member, or the bundle is closed.
        """
        is_compressed = name in self.manifest.compressed
        return self.taken(name).toreadonly() if is_compressed else self.stored(name)

    def taken(self, name: str) -> memoryview:
        """Returns a member in pages of the caller's alone, who may write there: it is read, and its hash compared.

        Raises:
            BundleError, InputOutputError, UsageError: as for `member`.
        """
        compressed = self.manifest.compressed.get(name)
        if compressed is not None:
            return self._expanded(name, self.stored(name), compressed)
        source, entry = self._source_of(name), self._entries[name]
        target = memory_of_caller(entry.size, self.path)
        self._check_hash(name, source.read_hashed(target, entry.offset))
        return target

    def stored(self, name: str) -> memoryview:
        """Returns the same of the bytes that are stored, which of a compressed member are others than it has.

        Raises:
            BundleError, InputOutputError, UsageError: as for `member`.
        """
        source, entry = self._source_of(name), self._entries[name]
        with self._locks[name]:
            if name not in self._checked:
                self._check_hash(name, source.fetch_hashed(entry.offset, entry.end))
                self._checked.add(name)
        return data_of(source.view, entry)

    def values(self, name: str) -> dict[str, Value]:
        """Returns the values of a values member; arrays are read-only views of the copy.

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
        """Returns the report of the compile as plain data; `nndeploy.bundle.report.report_from_json` makes a `Report`.

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
        """Checks every byte of the file as it is now, again where it was checked before.

        Raises:
            BundleError: a member is damaged.
            InputOutputError: reading failed.
            UsageError: the bundle is closed.
        """
        source = self._open_source()
        for name, entry in self._entries.items():
            digest, crc = source.checked_again(entry.offset, entry.end)
            if name in self.manifest.members:
                self._check_hash(name, digest)
            check_crc(entry, crc, f"{self.path}: {name}")
        for name in self.manifest.compressed:
            self.member(name)

    def close(self) -> None:
        """Lets go of the file; a second call does nothing."""
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def _open_source(self) -> ByteSource:
        if self._source is None:
            raise UsageError("the bundle is closed", where=str(self.path))
        return self._source

    def _expanded(self, name: str, stored: memoryview, compressed: Compressed) -> memoryview:
        """Returns the real bytes of a compressed member; of its bases nothing is kept but what is part of it."""
        source, target = self._open_source(), memory_of_caller(compressed.size_bytes, self.path)
        bases = [self._entries[base] for base in compressed.bases]

        def read_base(number: int, offset: int, part: memoryview) -> None:
            source.read_into(part, bases[number].offset + offset)

        try:
            expand(stored, target, [base.size for base in bases], read_base)
        except BundleError as err:
            err.within(f"{self.path}: {name}")
            raise
        real = Member(compressed.sha256, compressed.size_bytes)
        check_hash(real, hashlib.sha256(target).hexdigest(), f"{self.path}: {name}", _HINT)
        return target

    def _source_of(self, name: str) -> ByteSource:
        if name not in self._locks:
            hint = did_you_mean(name, self._locks)
            raise UsageError(f"there is no member {name!r:.80}", where=str(self.path), hint=hint)
        return self._open_source()

    def _check_hash(self, name: str, found: str) -> None:
        check_hash(self.manifest.members[name], found, f"{self.path}: {name}", _HINT)


def open_bundle(path: str | Path, descriptor: int | None = None) -> Bundle:
    """Returns the bundle at `path`, its structure and manifest checked; use it in a `with`.

    `descriptor` is taken over where the file is open already, and `path` is what it was opened as.

    Raises:
        MissingInputError: there is no such file, or it may not be read.
        BundleError: the file is not a bundle, is damaged, or of a newer format.
        InputOutputError: reading failed.
    """
    path = Path(path)
    return Bundle(PrivateCopy(path, "bundle", descriptor), path)


def _parsed(source: ByteSource, path: Path) -> dict[str, Entry]:
    try:
        return parse_container(source.view, source.fetch)
    except BundleError as err:
        if path.suffix == ".onnx":
            err.hint = f"compile it first: nndeploy compile {path} -o {path.with_suffix('.nnd')}"
        raise


def _manifest_text(source: ByteSource, entries: Mapping[str, Entry]) -> bytes:
    entry = entries.get(MANIFEST_NAME)
    if entry is None:
        raise BundleError(f"a ZIP archive, but not a bundle: it has no {MANIFEST_NAME}")
    return _unlisted(source, entry, MAX_MANIFEST_BYTES)


def _manifest(text: bytes) -> Manifest:
    try:
        manifest = decode_manifest(text)
        check_manifest(manifest)
    except BundleError as err:
        err.within(MANIFEST_NAME)
        raise
    return manifest


def _signature(source: ByteSource, entries: Mapping[str, Entry]) -> bytes:
    entry = entries.get(SIGNATURE_NAME)
    return b"" if entry is None else _unlisted(source, entry, MAX_SIGNATURE_BYTES)


def _unlisted(source: ByteSource, entry: Entry, max_bytes: int) -> bytes:
    """Returns a copy of a member that the manifest does not list."""
    if entry.size > max_bytes:
        raise BundleError(f"{entry.size} bytes; at most {max_bytes} are allowed", where=entry.name)
    source.fetch(entry.offset, entry.end)
    data = bytes(data_of(source.view, entry))
    check_crc(entry, zlib.crc32(data), entry.name)
    return data
