# SPDX-License-Identifier: Apache-2.0
"""Values that pass between two processes through memory that both have, in the form that they have in a bundle.

One writes, then says how many bytes; the other reads. Law: whoever wrote may write again, or be taken over, and the
reader is neither misled nor ended: it copies before it looks, and the memory never becomes smaller.
"""

import fcntl
import os
from collections.abc import Mapping

from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.errors import BundleError, DataError
from nndeploy.values.types import Value

_PIECE_BYTES = 1 << 30


class SharedValues:
    """Memory of its own (memfd) with the values of one call; it grows to the largest."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Makes memory, or takes that with a descriptor which another process made."""
        if descriptor is None:
            descriptor = os.memfd_create("nndeploy-values", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        self.descriptor = descriptor

    def write(self, values: Mapping[str, Value]) -> int:
        """Puts values there; returns how many bytes they have."""
        data = memoryview(encode_values(values))
        done = 0
        while done < len(data):
            done += os.pwrite(self.descriptor, data[done : done + _PIECE_BYTES], done)
        return len(data)

    def read(self, num_bytes: int) -> dict[str, Value]:
        """Returns the values that are there, in memory of the caller's own.

        Raises:
            DataError: there are none.
        """
        if not 0 <= num_bytes <= os.fstat(self.descriptor).st_size:
            raise DataError(f"there are no {num_bytes} bytes of values")
        data = bytearray(num_bytes)
        target, done = memoryview(data), 0
        while done < num_bytes:
            done += os.preadv(self.descriptor, [target[done : done + _PIECE_BYTES]], done)
        try:
            return decode_values(target)
        except BundleError as err:
            raise DataError(f"what is there are no values: {err.what}") from err

    def close(self) -> None:
        """Lets go of the memory; a second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
