# SPDX-License-Identifier: Apache-2.0
"""Where a service listens: a numeric address with a port, or a socket in the file system.

Comes in: a text of the command line. Goes out: an `Address`, and sockets that are bound to it. Laws: names are never
looked up, so an address means the same everywhere; a socket in the file system is for its owner alone.
"""

import errno
import ipaddress
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import CannotCreateError, UsageError
from nndeploy.registry.web_address import is_loopback_host

UNIX = "unix:"
BACKLOG = 128
_OTHERS = 0o177


@dataclass(frozen=True, slots=True)
class Address:
    """A numeric `host` with a `port`, 0 for any that is free; or, where there is a `path`, a socket there."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        if self.path:
            return f"{UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether nobody but this machine can reach it."""
        return bool(self.path) or is_loopback_host(self.host)


def address_in(option: str) -> Callable[[str], Address | None]:
    """Returns the function that reads an address, "127.0.0.1:8000", of this option; it raises a UsageError."""

    def address(text: str) -> Address | None:
        if text == "none":
            return None
        if text.startswith(UNIX) and text != UNIX:
            return Address(path=str(Path(text.removeprefix(UNIX)).absolute()))
        host, colon, port = text.rpartition(":")
        host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
        try:
            ipaddress.ip_address(host)
            number = int(port) if colon and port.isascii() and port.isdecimal() else -1
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 16:
            hint = "for example 127.0.0.1:8000, [::1]:8000, unix:/run/model.sock, none"
            raise UsageError(f"{option}: {text!r:.80} is no address", hint=hint)
        return Address(host, number)

    return address


def bound(address: Address) -> socket.socket:
    """Returns a socket that listens at an address.

    Raises:
        CannotCreateError: another one does, or nothing can be made there.
    """
    family = socket.AF_UNIX if address.path else socket.AF_INET6 if ":" in address.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if address.path:
            with own_path(address):
                listening.bind(address.path)
        else:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((address.host, address.port))
        listening.listen(BACKLOG)
    except BaseException as err:
        listening.close()
        if isinstance(err, OSError):
            raise not_bound(address, err.strerror or str(err)) from err
        raise
    listening.setblocking(False)
    return listening


def not_bound(address: Address, why: str) -> CannotCreateError:
    """Returns the error of an address that cannot be listened to."""
    return CannotCreateError(f"cannot listen: {why}", where=str(address), hint="is another service using it?")


@contextmanager
def own_path(address: Address) -> Iterator[None]:
    """Lets a socket be made at the address's path, for this account alone; one that nobody listens to is replaced.

    Raises:
        CannotCreateError: somebody listens there, or another thing is there.
    """
    path = Path(address.path)
    try:
        if path.is_symlink() or (path.exists() and not stat.S_ISSOCK(path.stat().st_mode)):
            raise not_bound(address, "it exists and is not a socket")
        if path.exists():
            if _is_answered(path):
                raise not_bound(address, os.strerror(errno.EADDRINUSE))
            path.unlink()
    except OSError as err:
        raise not_bound(address, err.strerror or str(err)) from err
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True
