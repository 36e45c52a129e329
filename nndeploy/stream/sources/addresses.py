# SPDX-License-Identifier: Apache-2.0
"""What the text of `run --input` names where it is no file: a socket, a file that grows, a FIFO, a camera.

    unix:PATH  unix-listen:PATH  tcp:HOST:PORT  tcp-listen:HOST:PORT  tail:PATH  rtsp://...  http://...
    a path that is a FIFO

Law: nothing but what the user wrote is connected to, and nobody but this machine can connect to what listens.
"""

import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from nndeploy.errors import PolicyError, UsageError
from nndeploy.registry.web_address import is_loopback_host

Scheme: TypeAlias = Literal["unix", "unix-listen", "tcp", "tcp-listen", "tail", "fifo", "rtsp", "http"]

URLS = {"rtsp": "rtsp", "http": "http", "https": "http"}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a live source is; `text` is how the user wrote it, `path` or `host` and `port` what it means."""

    scheme: Scheme
    text: str
    path: Path = Path()
    host: str = ""
    port: int = 0

    @property
    def shown(self) -> str:
        """The text without a password, for messages and results."""
        parts = urlsplit(self.text) if self.scheme in ("rtsp", "http") else None
        if parts is None or "@" not in parts.netloc:
            return self.text
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def address_from_text(text: str) -> Address | None:
    """Returns the address that a text writes, None where it is an ordinary file, folder or glob.

    Raises:
        UsageError: it begins as an address and is none.
        PolicyError: it listens to more than this machine.
    """
    scheme, colon, rest = text.partition(":")
    if colon and scheme in URLS and rest.startswith("//"):
        if not _host_of(text):
            raise UsageError(f"{text!r} names no host", hint=f"for example {scheme}://camera/stream")
        return Address("rtsp" if URLS[scheme] == "rtsp" else "http", text)
    if colon and scheme in ("tcp", "tcp-listen"):
        host, port = _host_and_port(text, rest)
        if scheme == "tcp":
            return Address("tcp", text, host=host, port=port)
        if not is_loopback_host(host):
            raise PolicyError(
                f"listens on {host!r}, which other machines can reach", where=text, hint=f"{scheme}:127.0.0.1:{port}"
            )
        return Address("tcp-listen", text, host=host, port=port)
    if colon and scheme in ("unix", "unix-listen", "tail"):
        if not rest or "\0" in rest:
            raise UsageError(f"{text!r} names no path", hint=f"for example {scheme}:/run/lines")
        if scheme == "unix":
            return Address("unix", text, Path(rest))
        return Address("unix-listen" if scheme == "unix-listen" else "tail", text, Path(rest))
    return Address("fifo", text, Path(text)) if _is_fifo(text) else None


def _host_of(text: str) -> str | None:
    try:
        return urlsplit(text).hostname
    except ValueError:
        return None


def _host_and_port(text: str, rest: str) -> tuple[str, int]:
    host, _, port = rest.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise UsageError(f"{text!r} names no host and port", hint="for example tcp:127.0.0.1:9000")
    return host, int(port)


def _is_fifo(text: str) -> bool:
    try:
        return stat.S_ISFIFO(Path(text).stat().st_mode)
    except (OSError, ValueError):
        return False
