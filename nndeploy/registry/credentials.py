# SPDX-License-Identifier: Apache-2.0
"""The credentials that docker keeps for a registry: in `config.json`, or in the program that this names.

The file is where docker looks for it: in the folder that DOCKER_CONFIG names, else in ~/.docker. A registry that it
does not know is asked without credentials. Law: no password is part of a message.

Source: docker/cli, `cli/config/configfile`; docker/docker-credential-helpers, "Development" (the protocol of `get`).
"""

import base64
import binascii
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nndeploy.errors import BundleError, DataError, UnavailableError
from nndeploy.files.whole_files import read_regular
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import DOCKER_HUB

MAX_CONFIG_BYTES = 1 << 20
HELPER_SECONDS = 60
_HUB_KEY = "https://index.docker.io/v1/"
_IDENTITY_USER = "<token>"
"""What a helper gives in place of a username where the secret is an identity token."""
_HELPER = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A username with a password, or an identity token that a registry's token server takes in place of both."""

    username: str
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of a header that says username and password."""
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")


def credentials_for(registry: str, options: RegistryOptions) -> Credentials | None:
    """Returns the credentials for a registry: those given, else those that docker keeps, else None.

    Raises:
        DataError: docker's file has no meaning.
        UnavailableError: the program that keeps them cannot be run.
    """
    if options.username:
        return Credentials(options.username, options.password)
    path = _config_path()
    if not path.is_file():
        return None
    try:
        return _kept(_object(json.loads(read_regular(path, MAX_CONFIG_BYTES))), registry)
    except (ValueError, RecursionError, BundleError) as err:  # messages of both may show the text
        raise DataError("is not a valid Docker configuration", where=str(path)) from err


def _config_path() -> Path:
    folder = os.environ.get("DOCKER_CONFIG", "")
    return (Path(folder) if folder else Path.home() / ".docker") / "config.json"


def _kept(config: Mapping[str, Any], registry: str) -> Credentials | None:
    helpers, auths = _object(config.get("credHelpers", {})), _object(config.get("auths", {}))
    for key in _keys(registry):
        if helper := helpers.get(key) or config.get("credsStore"):
            if (found := _from_helper(helper, key)) is not None:
                return found
        elif key in auths:
            return _from_entry(_object(auths[key]))
    return None


def _keys(registry: str) -> Iterator[str]:
    """Yields what docker may have kept the credentials of a registry under."""
    if registry == DOCKER_HUB:
        yield _HUB_KEY
    yield from (registry, f"https://{registry}", f"https://{registry}/v1/", f"https://{registry}/v2/")


def _from_entry(entry: Mapping[str, Any]) -> Credentials | None:
    username, password = entry.get("username"), entry.get("password")
    if auth := entry.get("auth"):
        try:
            username, _, password = base64.b64decode(str(auth), validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError) as err:
            raise ValueError("its auth is no base64") from err
    if token := entry.get("identitytoken"):
        return Credentials(_IDENTITY_USER, identity_token=str(token))
    return Credentials(str(username), str(password).rstrip("\0")) if username and password else None


def _from_helper(helper: object, key: str) -> Credentials | None:
    """Returns what a program of docker's keeps under a key; None where it keeps nothing."""
    if not isinstance(helper, str) or not _HELPER.fullmatch(helper):
        raise ValueError("it names no program")
    program = f"docker-credential-{helper}"
    try:
        done = subprocess.run([program, "get"], input=key.encode(), capture_output=True, timeout=HELPER_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as err:
        why = (
            f"does not answer within {HELPER_SECONDS} s" if isinstance(err, subprocess.TimeoutExpired) else err.strerror
        )
        raise UnavailableError(f"{program}, which keeps docker's credentials: {why}") from None
    if done.returncode:
        return None
    found = _object(json.loads(done.stdout))
    username, secret = str(found.get("Username", "")), str(found.get("Secret", ""))
    if username == _IDENTITY_USER:
        return Credentials(username, identity_token=secret)
    return Credentials(username, secret) if username and secret else None


def _object(found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found
