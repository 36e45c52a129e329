# SPDX-License-Identifier: Apache-2.0
"""Whether the end of a video file is missing: by the sizes that its own parts state, never by times.

MP4 and MOV are boxes, AVI is chunks, Matroska and WebM are elements, a transport stream is packets of one size. A file
was cut where its last part with pictures is longer than what is left. Nothing is said where a part states no size
(recordings of browsers, files that were never finished), or where only an index behind the pictures is cut.

Source: ISO/IEC 14496-12, 4.2; OpenDML AVI 1.02; RFC 8794, 4 and 5; RFC 9559, 5.1; ISO/IEC 13818-1, 2.4.3.2.
"""

import os
import struct
from collections.abc import Callable, Mapping
from typing import BinaryIO, TypeAlias

PACKET_BYTES, SYNC = 188, b"\x47"
SEGMENT, CLUSTER = bytes.fromhex("18538067"), bytes.fromhex("1f43b675")
WITH_PICTURES = (b"moof", b"mdat", b"movi", CLUSTER)
HEAD_BYTES = 16
MAX_PARTS = 1 << 20
"""No more parts of a file are looked at."""

Part: TypeAlias = tuple[bytes, int, int]
"""The name of a part, the bytes before its content, and its size with these, 0 where it does not say."""


def missing_bytes(file: BinaryIO, demuxer: str) -> int:
    """Returns how many bytes with pictures a file lacks, as far as it says; `demuxer` is FFmpeg's name of its kind."""
    size = file.seek(0, os.SEEK_END)
    if demuxer == "mpegts":
        file.seek(0)
        return -size % PACKET_BYTES if file.read(1) == SYNC else 0
    if demuxer not in READERS:
        return 0
    place, end, has_pictures = 0, 0, False
    for _ in range(MAX_PARTS):
        if place >= size:
            return max(place, end) - size if has_pictures else 0
        file.seek(place)
        name, head_bytes, num_bytes = READERS[demuxer](file.read(HEAD_BYTES).ljust(HEAD_BYTES, b"\0"))
        if name in (b"RIFF", SEGMENT):
            place, end = place + head_bytes, place + num_bytes
            continue
        if not num_bytes:
            break
        place, has_pictures = place + num_bytes, name in WITH_PICTURES
    return 0


def _box(head: bytes) -> Part:
    size, name = struct.unpack_from(">I4s", head)
    if size == 1:
        return name, 16, int.from_bytes(head[8:16])
    return name, 8, size if size >= 8 else 0


def _chunk(head: bytes) -> Part:
    name, size, kind = struct.unpack_from("<4sI4s", head)
    if name == b"RIFF":
        return name, 12, 0
    is_list = name == b"LIST"
    return kind if is_list else name, 8, 0 if is_list and size in (0, 0xFFFFFFFF) else 8 + size + size % 2


def _element(head: bytes) -> Part:
    name_bytes = 9 - head[0].bit_length()
    first = head[name_bytes] if name_bytes <= 4 else 0
    size_bytes = 9 - first.bit_length()
    if size_bytes > 8:
        return b"", 0, 0
    size = int.from_bytes(head[name_bytes : name_bytes + size_bytes]) ^ 1 << 7 * size_bytes
    is_known = size != (1 << 7 * size_bytes) - 1
    return head[:name_bytes], name_bytes + size_bytes, name_bytes + size_bytes + size if is_known else 0


READERS: Mapping[str, Callable[[bytes], Part]] = {"mov": _box, "avi": _chunk, "matroska": _element}
"""What reads the beginning of a part, by the name of the demuxer."""
