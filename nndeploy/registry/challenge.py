# SPDX-License-Identifier: Apache-2.0
"""What a registry asks for before it answers, and the request for a token that satisfies it.

Comes in: the header of an answer 401, untrusted. Goes out: the scheme with its parameters, and for `Bearer` what is
asked of the token server that the registry names. Law: nothing is sent here; a password goes over TLS where the
registry itself is spoken to so.

Source: RFC 7235, 4.1; distribution/distribution, docs/spec/auth/token.md and oauth.md.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nndeploy.errors import DataError, PolicyError
from nndeploy.registry.credentials import Credentials
from nndeploy.registry.web_address import web_address

MAX_CHALLENGE_BYTES = 4096
CLIENT = "nndeploy"
_PARAMETERS = r'((?:[A-Za-z_]+="[^"]*"[\s,]*)*)'
_PARAMETER = re.compile(r'([A-Za-z_]+)="([^"]*)"')
_TOKEN = re.compile(r"[\x21-\x7e]{1,16384}")


@dataclass(frozen=True, slots=True)
class Challenge:
    """What is asked for: `scheme` is "bearer" or "basic"; the parameters are those of the header."""

    scheme: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request to a token server; `form` is what is posted, None where it is asked with GET."""

    url: str
    headers: Mapping[str, str]
    form: str | None


def challenge_from_header(text: str) -> Challenge | None:
    """Returns what a header asks for, a token before a password; None where it is something that nobody here knows."""
    for scheme in ("bearer", "basic"):
        found = re.search(rf"(?:^|,)\s*{scheme}\s+{_PARAMETERS}", text[:MAX_CHALLENGE_BYTES], re.IGNORECASE)
        if found:
            return Challenge(scheme, {name.lower(): value for name, value in _PARAMETER.findall(found[1])})
    return None


def token_request(
    challenge: Challenge, credentials: Credentials | None, scope: str, *, may_be_plain: bool
) -> TokenRequest:
    """Returns the request for a token; `scope` is what is needed where the registry does not say it.

    Raises:
        DataError: the registry names no server.
        PolicyError: it names one that is spoken to without TLS.
    """
    realm = challenge.parameters.get("realm", "")
    address = web_address(realm)
    if address is None:
        raise DataError(f"the registry names no token server: {realm!r:.100}")
    if address.scheme == "http" and not may_be_plain:
        raise PolicyError(f"the registry names a token server without TLS, {address.hostname!r:.100}")
    asked = {name: challenge.parameters[name] for name in ("service",) if name in challenge.parameters}
    asked["scope"] = challenge.parameters.get("scope", "") or scope
    if credentials is not None and credentials.identity_token:
        form = {
            **asked,
            "grant_type": "refresh_token",
            "client_id": CLIENT,
            "refresh_token": credentials.identity_token,
        }
        return TokenRequest(realm, {"Content-Type": "application/x-www-form-urlencoded"}, urlencode(form))
    headers = {} if credentials is None else {"Authorization": credentials.basic}
    return TokenRequest(f"{realm}{'&' if address.query else '?'}{urlencode(asked)}", headers, None)


def authorization_from_answer(body: bytes) -> str:
    """Returns the header that the answer of a token server allows.

    Raises:
        DataError: there is no token in it.
    """
    try:
        found: Any = json.loads(body)
        token = found.get("token") or found.get("access_token")
    except (ValueError, AttributeError, RecursionError) as err:
        raise DataError("the token server did not send JSON") from err
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise DataError("the token server sent no token")
    return f"Bearer {token}"
