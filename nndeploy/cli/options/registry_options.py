# SPDX-License-Identifier: Apache-2.0
"""The options that say how a registry is spoken to.

A password comes from standard input, where no list of processes and no history of a shell shows it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import click

from nndeploy.cli.options.option_fields import Command, options_given, options_of
from nndeploy.cli.options.value_types import ANY_FILE
from nndeploy.cli.standard_streams import binary_stdin
from nndeploy.errors import UsageError
from nndeploy.registry.options import RegistryOptions

MAX_PASSWORD_BYTES = 64 << 10
SIGNED_BY = click.option(
    "--signed-by", type=ANY_FILE, metavar="FILE.pub",
    help="Require a cosign signature by this public key.",
)  # fmt: skip
_PASSWORD = click.option("--password-stdin", is_flag=True, help="Read the password of --username from standard input.")


def registry_options(command: Command) -> Command:
    """Adds the options that say how a registry is spoken to."""
    return options_of(RegistryOptions)(_PASSWORD(command))


def registry_options_given(parameters: Mapping[str, Any]) -> RegistryOptions:
    """Returns what the user of a command says of a registry.

    Raises:
        UsageError: the options contradict each other, or standard input holds no password.
    """
    if not parameters["password_stdin"]:
        if parameters["username"]:
            raise UsageError("--username needs a password", hint="--password-stdin reads it from standard input")
        return options_given(RegistryOptions, parameters)
    if not parameters["username"]:
        raise UsageError("--password-stdin is for --username")
    username = parameters["username"]
    made = options_given(RegistryOptions, {**parameters, "username": None})
    return dataclasses.replace(made, username=username, password=_password())


def _password() -> str:
    text = binary_stdin().read(MAX_PASSWORD_BYTES + 1)
    try:
        password = text.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        password = ""
    if not password or len(text) > MAX_PASSWORD_BYTES:
        raise UsageError("standard input contains no valid password")
    return password
