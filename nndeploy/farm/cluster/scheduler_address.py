# SPDX-License-Identifier: Apache-2.0
"""The address of a scheduler: scheme, host and port, and no more."""

from urllib.parse import urlsplit

from nndeploy.errors import UsageError

TLS, TCP = "tls", "tcp"
DEFAULT_PORT = 8786


def parted(text: str, examples: str = f"{TLS}://farm.example:{DEFAULT_PORT}") -> tuple[str, str, int]:
    """Returns scheme, host and port of an address; `examples` are for who wrote none.

    Raises:
        UsageError: it is none. One with a password in it is not repeated.
    """
    hint = f"for example {examples}"
    try:
        parts = urlsplit(text)
        port, is_one = parts.port, parts.scheme in (TLS, TCP) and bool(parts.hostname)
    except ValueError:
        parts, port, is_one = urlsplit(""), None, False
    is_one = is_one and port is not None
    if "@" in text or (is_one and (parts.path or parts.query or parts.fragment)):
        raise UsageError("an address holds a name, a password or more than host and port", hint=hint)
    if not is_one or not text.isprintable() or " " in text:
        raise UsageError(f"{text!r:.100} is no address of {TLS} or {TCP}", hint=hint)
    assert port is not None
    return parts.scheme, parts.hostname or "", port
