# SPDX-License-Identifier: Apache-2.0
"""The file in which the packed weights of a plan are kept: later processes map it, and so share their memory.

    header   4096 bytes: MAGIC, the key, the sizes of the two parts
    plain    the weights of the bundle but those that are packed, which are holes
    image    the packed ones (`struct nnd_options`, image)

Law: a file is taken only where its key says that it was made of these very bytes, for this library and this processor,
and where nobody but this account could have written it. What it holds are numbers alone: whatever they are, nothing is
read or written outside of a call's memory.
"""

import contextlib
import hashlib
import mmap
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nndeploy.errors import InputOutputError
from nndeploy.plugin.cache_file import keep_cache, not_kept, opened_cache
from nndeploy.target.cpu_name import cpu_name
from nndeploy.target.target import host_target

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

MAGIC = b"nndeploy weights"
_HEAD = struct.Struct("<16s32sQQ")
_PAGE = 4096
_PIECE_BYTES = 1 << 16
_MAP_NORESERVE = 0x4000
_LEFT_ASIDE = "NNDEPLOY_KERNELS_WITHOUT"


class Kept(NamedTuple):
    """The two parts of a file, as private pages of its map: who writes there changes neither file nor other process."""

    plain: Bytes
    image: Bytes


class PackedWeights:
    """The file of one plan in a folder of a cache."""

    def __init__(self, folder: str, library: str, plan: bytes, *content: bytes | str) -> None:
        """`library` is the path of the kernel library; `content` is what else its packed weights depend on."""
        plan_sha256 = hashlib.sha256(plan).digest()
        self.path = Path(folder, f"native-{plan_sha256.hex()[:32]}.weights")
        self._key = _digest(plan_sha256, _library_sha256(library), _processor(), *content)

    def read(self) -> Kept | None:
        """Returns what the file holds; None where there is none, or one of other weights or another machine."""
        descriptor = opened_cache(self.path)
        if descriptor is None:
            return None
        try:
            size = os.fstat(descriptor).st_size
            head = os.pread(descriptor, _HEAD.size, 0)
            if len(head) < _HEAD.size:
                return None
            magic, key, plain, image = _HEAD.unpack(head)
            begin = _PAGE + _whole(plain)
            if magic != MAGIC or key != self._key or not image or size != begin + image:
                return None
            mapped = np.frombuffer(mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY), np.uint8)
        except (OSError, ValueError, OverflowError):
            return None
        finally:
            os.close(descriptor)
        return Kept(mapped[_PAGE : _PAGE + plain], mapped[begin:])

    def keep(self, plain: Bytes, image: Bytes) -> None:
        """Writes what was packed beside the rest of the weights, whose pages of zeros are left out.

        Raises:
            InputOutputError: the file cannot be written.
        """

        def write(descriptor: int) -> None:
            begin = _PAGE + _whole(plain.size)
            _write_sparse(descriptor, plain, _PAGE)
            _write_sparse(descriptor, image, begin)
            os.pwrite(descriptor, _HEAD.pack(MAGIC, self._key, plain.size, image.size), 0)
            os.truncate(descriptor, begin + image.size)
            os.fsync(descriptor)

        if not keep_cache(self.path, write, ".native-"):
            raise not_kept(self.path)


def image_memory(plain_bytes: int) -> Bytes:
    """Returns zeros for the packed ones of so many bytes of weights; what is not written takes no memory.

    No weight becomes larger than five times: a convolution that is packed both ways, one of which takes four times.

    Raises:
        InputOutputError: the system gives none.
    """
    size = 5 * plain_bytes + (16 << 20)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    except (OSError, ValueError, OverflowError) as err:
        raise InputOutputError(f"no memory for packed weights: {err}") from err
    with contextlib.suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, np.uint8)


def _write_sparse(descriptor: int, data: Bytes, at: int) -> None:
    for begin in range(0, data.size, _PIECE_BYTES):
        piece = data[begin : begin + _PIECE_BYTES]
        if not piece.any():
            continue
        left = piece.data
        while left:
            written = os.pwrite(descriptor, left, at + begin + piece.size - len(left))
            left = left[written:]


def _whole(num_bytes: int) -> int:
    return -(-num_bytes // _PAGE) * _PAGE


def _digest(*parts: bytes | str) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        found.update(struct.pack("<Q", len(data)) + data)
    return found.digest()


@cache
def _library_sha256(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


@cache
def _processor() -> str:
    """What the library finds out by itself: products of bytes are packed for the instructions that are there."""
    return " ".join((cpu_name(), *host_target().cpu_features, os.environ.get(_LEFT_ASIDE, "")))
