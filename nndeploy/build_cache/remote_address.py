# SPDX-License-Identifier: Apache-2.0
"""What a user says of a cache that machines share: where it is, and who brings builds to it."""

from nndeploy.errors import UsageError
from nndeploy.registry.web_address import web_address

NEVER, TRUSTED, ALWAYS = "never", "trusted", "always"
PUSH = (NEVER, TRUSTED, ALWAYS)
"""Who brings builds: nobody, an account that has credentials for the cache, everybody. The first is the default."""
_EXAMPLE = "for example https://cache.example/nndeploy"


def remote_address(text: str) -> str:
    """Returns the address of a cache, without a slash at its end.

    Raises:
        UsageError: it is none. One with a password in it is not repeated.
    """
    if "@" in text:
        raise UsageError("an address holds a name or a password", hint=_EXAMPLE)
    found = web_address(text)
    if found is None or found.query or found.fragment or not text.isprintable() or " " in text:
        raise UsageError(f"{text!r:.100} is no address of http or https", hint=_EXAMPLE)
    return text.rstrip("/")
