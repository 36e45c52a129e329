# SPDX-License-Identifier: Apache-2.0
"""The container of a bundle: a ZIP archive of which exactly one valid encoding exists for a list of members.

Below the writer and the reader: members come in, bytes go out, and the other way round. Every member is STORED,
zip64 is always on (so no size changes the form), members lie in the order of their names from offset 0 without a
gap, and each one's data start on a boundary that its size alone decides. Law: `parse_container` rebuilds every
header from the values that it read and refuses the file unless the bytes are equal, so
`b"".join(encode_container(members))` is the only file that it takes for these members. The CRC-32 of a member's data
is read, not checked: `nndeploy.bundle.reader` does that.

Source: APPNOTE.TXT 6.3.10 (PKWARE); the padding field 0xD935 is the one of Android's zipalign and apksigner.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from nndeploy.errors import BundleError

Buffer: TypeAlias = bytes | memoryview
"""Bytes; a memoryview is contiguous and of format "B"."""
Fetch: TypeAlias = Callable[[int, int], None]
"""Makes sure that the bytes from `begin` to `end` are there."""

MAX_MEMBERS = 4096
MAX_FOLDERS = 4
MAX_NAME_BYTES = 255
LARGE_MEMBER_BYTES = 4096
LARGE_ALIGNMENT = 4096
SMALL_ALIGNMENT = 64

_LOCAL = struct.Struct("<4s5HIIIHH")
_CENTRAL = struct.Struct("<4s6HIIIHHHHHII")
_LOCAL_ZIP64 = struct.Struct("<HHQQ")
_CENTRAL_ZIP64 = struct.Struct("<HHQQQ")
_PADDING = struct.Struct("<HHH")
_END_ZIP64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4sHHHHIIH")
_TRAILER_BYTES = _END_ZIP64.size + _LOCATOR.size + _END.size
_TAIL_BYTES = 0xFFFF + _END.size  # with the longest comment that other archives have
_MAX_RECORD_BYTES = _CENTRAL.size + MAX_NAME_BYTES + _CENTRAL_ZIP64.size

_IN_ZIP64 = 0xFFFFFFFF
_VERSION = 45  # zip64
_MADE_BY = 3 << 8 | _VERSION  # Unix, so that the file type below means something
_FLAGS = 0
_STORED = 0
_TIME, _DATE = 0, 1 << 5 | 1  # 1980-01-01 00:00, the first one that the format can say
_ATTRIBUTES = 0o100644 << 16  # a regular file
_ZIP64_ID, _PADDING_ID = 0x0001, 0xD935
_fixed_fields = itemgetter(0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 15, 16)
_FIXED_FIELDS = (
    b"PK\1\2", _MADE_BY, _VERSION, _FLAGS, _STORED, _TIME, _DATE,
    _IN_ZIP64, _IN_ZIP64, _CENTRAL_ZIP64.size, 0, 0, 0, _ATTRIBUTES, _IN_ZIP64,
)  # fmt: skip
_END_RECORD = _END.pack(b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, _IN_ZIP64, _IN_ZIP64, 0)
_NAME = re.compile(rb"[a-z0-9_.-]+(?:/[a-z0-9_.-]+)*")


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a member lies: its local header at `header`, its `size` bytes of data at `offset`, both from the start."""

    name: str
    header: int
    offset: int
    size: int
    crc32: int

    @property
    def end(self) -> int:
        return self.offset + self.size


def encode_container(members: Mapping[str, Buffer]) -> Iterator[Buffer]:
    """Yields the container of `members` in pieces; the data of a member is a piece of its own and is not copied.

    Raises:
        BundleError: there is no member, there are too many, or a name is not allowed.
    """
    check_names(members)
    entries: list[Entry] = []
    for name in sorted(members):
        data = members[name]
        entries.append(entry_at(entries[-1].end if entries else 0, name, len(data), zlib.crc32(data)))
        yield local_header(entries[-1])
        yield data
    yield directory(entries)


def entry_at(header: int, name: str, size: int, crc32: int) -> Entry:
    """Returns the entry of a member whose local header begins at `header`; data are aligned by their size alone."""
    unpadded = header + _LOCAL.size + len(name) + _LOCAL_ZIP64.size + _PADDING.size
    return Entry(name, header, unpadded + -unpadded % _alignment(size), size, crc32)


def local_header(entry: Entry) -> bytes:
    """Returns the local header of a member, with the padding that puts its data at `entry.offset`."""
    name = entry.name.encode("ascii")
    extra_bytes = entry.offset - entry.header - _LOCAL.size - len(name)
    padding_bytes = extra_bytes - _LOCAL_ZIP64.size - _PADDING.size
    return b"".join(
        (
            _LOCAL.pack(
                b"PK\3\4", _VERSION, _FLAGS, _STORED, _TIME, _DATE,
                entry.crc32, _IN_ZIP64, _IN_ZIP64, len(name), extra_bytes,
            ),
            name,
            _LOCAL_ZIP64.pack(_ZIP64_ID, _LOCAL_ZIP64.size - 4, entry.size, entry.size),
            _PADDING.pack(_PADDING_ID, _PADDING.size - 4 + padding_bytes, _alignment(entry.size)),
            bytes(padding_bytes),
        )
    )  # fmt: skip


def directory(entries: list[Entry]) -> bytes:
    """Returns what follows the last member: the central directory and the three end records."""
    records = b"".join(map(_central_record, entries))
    return records + _end_records(len(entries), len(records), entries[-1].end)


def parse_container(view: memoryview, fetch: Fetch | None = None) -> dict[str, Entry]:
    """Returns the members of a container by name, in order; `view` is the whole file, of format "B".

    `fetch`, where it is given, is called for each part of the view before that is looked at; data of members are not.

    Raises:
        BundleError: the bytes are not the one encoding of a list of members; each deviation has its own message.
    """
    fetch = fetch or _all_is_there
    count, start, end = _parse_end(view, fetch)
    fetch(start, end)
    entries: dict[str, Entry] = {}
    position, header, previous = start, 0, ""
    for _ in range(count):
        entry = _parse_central(view, position, end, header, start)
        if entry.name <= previous:
            raise _name_out_of_order(entry.name, previous)
        fetch(entry.header, entry.offset)
        _check_local(view, entry)
        entries[entry.name] = entry
        position += _CENTRAL.size + len(entry.name) + _CENTRAL_ZIP64.size
        header, previous = entry.end, entry.name
    if position != end:
        raise BundleError(f"the directory has {end - position} bytes more than its {count} records")
    if header != start:
        raise BundleError(f"{start - header} bytes between the last member and the directory belong to no member")
    _check_no_file_is_a_folder(entries)
    return entries


def check_names(names: Iterable[str]) -> None:
    """Checks the names of all members of one container.

    Raises:
        BundleError: there is none, there are too many, one is not allowed, or one is both a file and a folder.
    """
    listed = list(names)
    if not listed:
        raise BundleError("a bundle without members")
    if len(listed) > MAX_MEMBERS:
        raise BundleError(f"{len(listed)} members; at most {MAX_MEMBERS} are allowed")
    for name in listed:
        check_name(name)
    _check_no_file_is_a_folder(listed)


def check_name(name: str) -> None:
    """Checks the name of one member: one to five segments of `[a-z0-9_.-]`, divided by `/`, none of them `.` or `..`.

    Raises:
        BundleError: the name is not allowed.
    """
    if why := _name_fault(name.encode("utf-8", "surrogatepass")):
        raise BundleError(f"the member name {name!r:.80} {why}")


def _alignment(size: int) -> int:
    return LARGE_ALIGNMENT if size >= LARGE_MEMBER_BYTES else SMALL_ALIGNMENT


def _central_record(entry: Entry) -> bytes:
    name = entry.name.encode("ascii")
    return b"".join(
        (
            _CENTRAL.pack(
                b"PK\1\2", _MADE_BY, _VERSION, _FLAGS, _STORED, _TIME, _DATE,
                entry.crc32, _IN_ZIP64, _IN_ZIP64, len(name), _CENTRAL_ZIP64.size, 0, 0, 0, _ATTRIBUTES, _IN_ZIP64,
            ),
            name,
            _CENTRAL_ZIP64.pack(_ZIP64_ID, _CENTRAL_ZIP64.size - 4, entry.size, entry.size, entry.header),
        )
    )  # fmt: skip


def _end_records(count: int, directory_bytes: int, start: int) -> bytes:
    return b"".join(
        (
            _END_ZIP64.pack(
                b"PK\6\6", _END_ZIP64.size - 12, _MADE_BY, _VERSION, 0, 0, count, count, directory_bytes, start
            ),
            _LOCATOR.pack(b"PK\6\7", 0, start + directory_bytes, 1),
            _END_RECORD,
        )
    )


def _all_is_there(begin: int, end: int) -> None:
    """Fetches nothing."""


def _parse_end(view: memoryview, fetch: Fetch) -> tuple[int, int, int]:
    """Returns the number of members, and where the central directory begins and ends."""
    end = len(view) - _TRAILER_BYTES
    fetch(0, min(2, len(view)))
    fetch(max(0, len(view) - _TAIL_BYTES), len(view))
    if len(view) < 2 or bytes(view[:2]) != b"PK":
        raise BundleError("not a bundle: it does not begin like one", hint="nndeploy compile makes bundles")
    if end < 0 or view[-_END.size :] != _END_RECORD:
        raise _no_end_record(view)
    *_, count, _, start = _END_ZIP64.unpack_from(view, end)
    if view[end:] != _end_records(count, end - start if start <= end else 0, start):
        raise _bad_end_records(view, end)
    if not 0 < count <= MAX_MEMBERS:
        raise BundleError(f"{count} members; 1 to {MAX_MEMBERS} are allowed")
    if end - start > MAX_MEMBERS * _MAX_RECORD_BYTES:
        raise BundleError(f"a directory of {end - start} bytes; at most {MAX_MEMBERS * _MAX_RECORD_BYTES} are allowed")
    return count, start, end


def _no_end_record(view: memoryview) -> BundleError:
    tail = bytes(view[-_TAIL_BYTES:])
    found = tail.rfind(b"PK\5\6")
    if found < 0 or len(tail) - found < _END.size:
        return BundleError("the end record is missing: the file was cut short", hint="copy it again")
    fields = _END.unpack_from(tail, found)
    follows = len(tail) - found - _END.size
    if fields[-1]:
        return BundleError(f"the archive has a comment of {fields[-1]} bytes; a bundle has none")
    if follows:
        return BundleError(f"{follows} bytes follow the end record")
    return BundleError("a ZIP archive, but not a bundle: its end record is not that of a bundle")


def _bad_end_records(view: memoryview, end: int) -> BundleError:
    _, _, _, _, disk, start_disk, here, count, directory_bytes, start = _END_ZIP64.unpack_from(view, end)
    locator = _LOCATOR.unpack_from(view, end + _END_ZIP64.size)
    if bytes(view[end : end + 4]) != b"PK\6\6" or locator[0] != b"PK\6\7":
        return BundleError("a ZIP archive, but not a bundle: it has no zip64 end record")
    if disk or start_disk or locator[1] or locator[3] != 1:
        return BundleError("the archive claims to span several disks")
    if here != count:
        return BundleError(f"the end record counts {here} and {count} members")
    if start + directory_bytes != end or locator[2] != end:
        return BundleError(f"the directory should end at {end}, the end record says {start} + {directory_bytes}")
    return BundleError("the zip64 end record is not written as a bundle's is")


def _parse_central(view: memoryview, position: int, end: int, header: int, start: int) -> Entry:
    """Returns the entry of the central record at `position`; its member must begin at `header`, end by `start`."""
    if position + _CENTRAL.size > end:
        raise BundleError("the directory is shorter than its records")
    fields = _CENTRAL.unpack_from(view, position)
    name_end = position + _CENTRAL.size + fields[10]
    record_end = name_end + _CENTRAL_ZIP64.size
    raw_name = bytes(view[position + _CENTRAL.size : name_end])
    if _fixed_fields(fields) != _FIXED_FIELDS:
        raise BundleError(_broken_rule(fields), where=_shown(raw_name))
    if record_end > end:
        raise BundleError("its record reaches past the directory", where=_shown(raw_name))
    if why := _name_fault(raw_name):
        raise BundleError(f"the member name {_shown(raw_name)!r} {why}")
    _, _, size, stored, found_header = _CENTRAL_ZIP64.unpack_from(view, name_end)
    _check_place(_shown(raw_name), size, stored, found_header, header, start)
    entry = entry_at(header, raw_name.decode("ascii"), size, fields[7])
    if view[position:record_end] != _central_record(entry):
        raise BundleError("its zip64 field is not written as a bundle's is", where=entry.name)
    if entry.end > start:
        raise BundleError(f"its data reach past the directory at {start}", where=entry.name)
    return entry


def _broken_rule(fields: tuple[Any, ...]) -> str:
    """Returns what the fixed fields of a central record say that those of a bundle never do."""
    (signature, made_by, version, flags, method, time, date, _, stored, size, _, extra, comment, disk, internal,
     attributes, header) = fields  # fmt: skip
    rules = (
        (signature == b"PK\1\2", "the directory holds something that is no record"),
        (not flags & 1, "it is encrypted"),
        (not flags & 8, "it has a data descriptor"),
        (flags == _FLAGS, f"it has flags {flags:#06x}, expected {_FLAGS:#06x}"),
        (method == _STORED, f"it is compressed (method {method}); members of a bundle are stored"),
        (attributes >> 28 != 0o12, "it is a symbolic link"),
        (attributes == _ATTRIBUTES and internal == 0, f"it has file attributes {attributes:#x}, {internal:#x}"),
        ((time, date) == (_TIME, _DATE), "it has a time stamp of its own"),
        (comment == 0, f"it has a comment of {comment} bytes"),
        (disk == 0, f"it is said to lie on disk {disk}"),
        ((stored, size, header) == (_IN_ZIP64,) * 3, "it states sizes outside its zip64 field"),
        (extra == _CENTRAL_ZIP64.size, f"its record has {extra} bytes of extra fields, not {_CENTRAL_ZIP64.size}"),
        (False, f"it was made by {made_by:#06x} and needs version {version}, not {_MADE_BY:#06x} and {_VERSION}"),
    )
    return next(message for holds, message in rules if not holds)


def _name_fault(name: bytes) -> str:
    """Returns why a member cannot be called `name`, or ""."""
    if name.startswith(b"/") or name[1:2] == b":":
        return "is an absolute path"
    segments = name.split(b"/")
    if b".." in segments or b"." in segments:
        return "leaves its folder: '.' and '..' are not allowed"
    if len(name) > MAX_NAME_BYTES:
        return f"is longer than {MAX_NAME_BYTES} bytes"
    if len(segments) > MAX_FOLDERS + 1:
        return f"is deeper than {MAX_FOLDERS} folders"
    if not _NAME.fullmatch(name):
        return "is empty, has an empty segment, or holds other characters than a-z, 0-9, '_', '.', '-'"
    return ""


def _check_place(name: str, size: int, stored: int, header: int, expected: int, start: int) -> None:
    if size != stored:
        raise BundleError(f"it has two sizes, {size} and {stored} bytes", where=name)
    if size > start:
        raise BundleError(f"it claims {size} bytes, but only {start} lie before the directory", where=name)
    if header < expected:
        raise BundleError(f"it overlaps the member before it: begins at {header}, not at {expected}", where=name)
    if header > expected:
        raise BundleError(f"{header - expected} bytes before it belong to no member", where=name)


def _name_out_of_order(name: str, previous: str) -> BundleError:
    if name == previous:
        return BundleError(f"the member name {name!r} stands twice")
    return BundleError(f"the member {name!r} stands after {previous!r}; names must be sorted")


def _check_local(view: memoryview, entry: Entry) -> None:
    expected = local_header(entry)
    found = bytes(view[entry.header : entry.offset])
    if found == expected:
        return
    name_end = _LOCAL.size + len(entry.name)
    if found[:4] != b"PK\3\4":
        raise BundleError(f"there is no local header at {entry.header}", where=entry.name)
    if found[_LOCAL.size : name_end] != expected[_LOCAL.size : name_end]:
        raise BundleError("its local header has another name", where=entry.name)
    if found[name_end + _LOCAL_ZIP64.size :] != expected[name_end + _LOCAL_ZIP64.size :]:
        raise BundleError("the padding before its data is not a bundle's", where=entry.name)
    raise BundleError("its local header does not say what the directory says", where=entry.name)


def _check_no_file_is_a_folder(names: Iterable[str]) -> None:
    files = set(names)
    for name in files:
        folder = name.rpartition("/")[0]
        while folder:
            if folder in files:
                raise BundleError(f"the member {folder!r} is also the folder of {name!r}")
            folder = folder.rpartition("/")[0]


def _shown(name: bytes) -> str:
    return name[:80].decode("ascii", "backslashreplace")
