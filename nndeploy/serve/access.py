# SPDX-License-Identifier: Apache-2.0
"""Who may call a service: TLS for the connection, a token for the caller; and what browsers may not do.

Comes in: files of the operator's. Goes out: contexts of TLS, and the judgement of a request. Laws: a secret that others
may read is refused; how long a comparison takes says nothing of the token; where no token is asked for, a page in a
browser cannot reach the service, whatever name it makes this machine have.
"""

import hmac
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from nndeploy.errors import DataError, PolicyError
from nndeploy.files.whole_files import open_regular, reading
from nndeploy.serve.options import ServeOptions

LEAST_TOKEN_CHARACTERS = 16
MAX_SECRET_BYTES = 1 << 16
SCHEME = "Bearer "
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Access:
    """What callers must show; the token is empty where none is asked for, the PEM texts where TLS is not spoken."""

    token: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    context: ssl.SSLContext | None = None

    def is_granted(self, authorization: str) -> bool:
        """Returns whether a caller who sends this header may call."""
        if not self.token:
            return True
        shown = authorization.removeprefix(SCHEME) if authorization.startswith(SCHEME) else ""
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.token.encode("ascii"))

    def refuses_page(self, headers: Mapping[str, str]) -> bool:
        """Returns whether a request looks like one that a page in a browser makes, where no token is asked for."""
        return not self.token and ("Origin" in headers or not _is_own_name(headers.get("Host", "")))


@lru_cache(maxsize=64)  # clients send the same one each time
def _is_own_name(host: str) -> bool:
    """Returns whether a Host header names no domain, which somebody else could let point here."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if name.lower() in ("", "localhost"):
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def access_of(options: ServeOptions) -> Access:
    """Returns what callers must show.

    Raises:
        MissingInputError: a file is not there.
        PolicyError: others may read a secret.
        DataError: the token is too short, or certificate and key do not go together.
    """
    token = "" if options.token_file is None else _token(Path(options.token_file))
    if options.tls_cert is None or options.tls_key is None:
        return Access(token)
    certificate, key = Path(options.tls_cert), Path(options.tls_key)
    pem, key_pem = _read(certificate), _read(key, is_secret=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as err:
        raise DataError(f"no certificate with its key: {err}", where=f"{certificate}, {key}") from err
    return Access(token, pem, key_pem, context)


def _no_password() -> str:
    raise ValueError("the key is protected by a password")


def _token(path: Path) -> str:
    text = _read(path, is_secret=True).strip()
    if len(text) < LEAST_TOKEN_CHARACTERS or not all(33 <= byte <= 126 for byte in text):
        what = f"a token is {LEAST_TOKEN_CHARACTERS} or more visible characters of ASCII on one line"
        raise DataError(what, where=str(path), hint="openssl rand -hex 32")
    return text.decode("ascii")


def _read(path: Path, *, is_secret: bool = False) -> bytes:
    with reading(path), open_regular(path, MAX_SECRET_BYTES) as file:
        if is_secret and path.stat().st_mode & _OTHERS:
            raise PolicyError("other users can read this file", where=str(path), hint=f"chmod 600 {path}")
        return file.read()
