# SPDX-License-Identifier: Apache-2.0
"""Addresses that a registry names, which are untrusted: whether they are any, and whose."""

import ipaddress
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

PORTS = {"http": 80, "https": 443}
Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port: who answers."""


def web_address(text: str) -> SplitResult | None:
    """Returns the parts of an address of HTTP, with or without TLS; None where the text is none.

    One that holds a username or password is none.
    """
    try:
        found = urlsplit(text)
        is_right = found.scheme in PORTS and bool(found.hostname) and found.port != 0
    except ValueError:
        return None
    return found if is_right and found.username is None else None


def is_loopback_host(host: str) -> bool:
    """Returns whether only this machine can be meant, by a name or an address alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def origin_of(text: str) -> Origin | None:
    """Returns who answers at an address."""
    found = web_address(text)
    return None if found is None else (found.scheme, found.hostname or "", found.port or PORTS[found.scheme])
