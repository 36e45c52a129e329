# SPDX-License-Identifier: Apache-2.0
"""Bytes of a live source: a socket, a FIFO, a file that grows. Waiting for them ends where a stop is asked for.

In comes an `Address`; out comes a raw file, whose end is the end of the connection. Law: a file that listens on a path
removes nothing but a socket of its own, and leaves nothing behind.
"""

import contextlib
import errno
import io
import os
import select
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from nndeploy.errors import InputOutputError, NndeployError
from nndeploy.files.whole_files import let_go
from nndeploy.stream.sources.addresses import Address
from nndeploy.stream.stopping import Stop, StoppableInput

TAIL_SECONDS = 0.1
"""How often a file is looked at for what was added to it."""
CONNECT_SECONDS = 10.0


class Listener:
    """A socket that others connect to, one after the other."""

    def __init__(self, address: Address) -> None:
        """Begins to listen.

        Raises:
            InputOutputError: it cannot, as another program listens there.
        """
        self._path = address.path if address.scheme == "unix-listen" else None
        family = (
            socket.AF_UNIX if self._path is not None else socket.AF_INET6 if ":" in address.host else socket.AF_INET
        )
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            if self._path is None:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((address.host, address.port) if self._path is None else str(self._path))
            self._socket.listen(1)
            self._socket.setblocking(False)
        except OSError as err:
            self._socket.close()
            hint = "remove it if no process is listening on it" if self._path is not None else ""
            raise InputOutputError(f"cannot listen: {err.strerror or err}", where=address.text, hint=hint) from err

    @property
    def port(self) -> int:
        """The port that it listens on, of a TCP address."""
        return int(self._socket.getsockname()[1])

    def accept(self, stop: Stop) -> socket.socket | None:
        """Returns the next connection, None where a stop was asked for."""
        while stop.wait_readable(self._socket.fileno()):
            with contextlib.suppress(BlockingIOError, ConnectionAbortedError):  # who knocked went away again
                return self._socket.accept()[0]
        return None

    def close(self) -> None:
        """Ceases to listen."""
        self._socket.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()


class SocketInput(io.RawIOBase):
    """Reads a connection; `is_cut` says that it has ended, and not behind the end of a line."""

    def __init__(self, connection: socket.socket, stop: Stop) -> None:
        self._socket = connection
        self._stop = stop
        self._last = b"\n"
        self.is_cut = False

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Reads what there is; 0 at the end or after a stop.

        Raises:
            OSError: the connection was lost.
        """
        if not self._stop.wait_readable(self._socket.fileno()):
            return 0
        count = self._socket.recv_into(buffer)
        if count:
            self._last = bytes(buffer[count - 1 : count])
        else:
            self.is_cut = self._last != b"\n"
        return count

    def close(self) -> None:
        """Lets go of the connection."""
        self._socket.close()
        super().close()


class GrowingInput(io.RawIOBase):
    """Reads a file to its end and then what is added to it.

    Where the file has been replaced by another of its name, or has become shorter, it begins again with that.
    """

    def __init__(self, path: Path, stop: Stop) -> None:
        """Opens the file.

        Raises:
            OSError: it cannot be opened.
            InputOutputError: it is not a regular file.
        """
        self._path = path
        self._stop = stop
        self._descriptor = _opened_regular(path)

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Reads what there is, once there is any; 0 after a stop."""
        while not self._stop.is_requested:
            if count := os.readv(self._descriptor, [buffer]):
                return count
            if not self._begins_again():
                self._stop.wait(TAIL_SECONDS)
        return 0

    def _begins_again(self) -> bool:
        own = os.fstat(self._descriptor)
        if own.st_size < os.lseek(self._descriptor, 0, os.SEEK_CUR):
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            return True
        try:
            there = self._path.stat()
            if (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino):
                return False
            new = _opened_regular(self._path)
        except (OSError, NndeployError):  # it is being replaced
            return False
        os.dup2(new, self._descriptor, inheritable=False)
        let_go(new)
        return True

    def close(self) -> None:
        """Lets go of the file."""
        if self._descriptor >= 0:
            let_go(self._descriptor)
            self._descriptor = -1
        super().close()


def _opened_regular(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    let_go(descriptor)
    raise InputOutputError("is not a regular file, of which the growth could be followed", where=str(path))


class FifoInput(StoppableInput):
    """Reads a FIFO until the last of its writers has closed it."""

    def __init__(self, path: Path, stop: Stop) -> None:
        self._own = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        super().__init__(self._own, stop)

    def close(self) -> None:
        """Lets go of the FIFO."""
        if self._own >= 0:
            let_go(self._own)
            self._own = -1
        super().close()


@contextlib.contextmanager
def opened_bytes(address: Address, stop: Stop, listener: Listener | None) -> Iterator[io.RawIOBase | None]:
    """Gives the bytes of one connection, None where a stop was asked for before there was one.

    Raises:
        InputOutputError: there is nobody to connect to, or nothing to open.
    """
    try:
        raw = _opened(address, stop, listener)
    except OSError as err:
        raise InputOutputError(f"cannot be opened: {err.strerror or err}", where=address.shown) from err
    if raw is None:
        yield None
        return
    with raw:
        yield raw


def _opened(address: Address, stop: Stop, listener: Listener | None) -> io.RawIOBase | None:
    if address.scheme == "tail":
        return GrowingInput(address.path, stop)
    if address.scheme == "fifo":
        return FifoInput(address.path, stop)
    connection = listener.accept(stop) if listener is not None else _connected(address, stop)
    return None if connection is None else SocketInput(connection, stop)


def _connected(address: Address, stop: Stop) -> socket.socket | None:
    """Returns a connection, None where a stop was asked for meanwhile."""
    if address.scheme == "unix":
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        target: str | tuple[str, int] = str(address.path)
    else:
        family, kind, _, _, target = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]  # type: ignore[assignment]
        made = socket.socket(family, kind)
    try:
        made.setblocking(False)
        error = made.connect_ex(target)
        if error == errno.EINPROGRESS:
            if not _is_connected(made, stop):
                made.close()
                return None
            error = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, os.strerror(error))
    except BaseException:
        made.close()
        raise
    return made


def _is_connected(made: socket.socket, stop: Stop) -> bool:
    """Waits until a connection is there or refused; returns False where a stop was asked for."""
    for _ in range(round(CONNECT_SECONDS / TAIL_SECONDS)):
        poll = select.poll()
        poll.register(made, select.POLLOUT)
        if poll.poll(1e3 * TAIL_SECONDS):
            return True
        if stop.is_requested:
            return False
    raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))
