# SPDX-License-Identifier: Apache-2.0
"""What a command answers with `--json`: one document on standard output, whether it failed or not.

    {"schema": "nndeploy.verify.1", "ok": false, "error": {"code", "message", "where", "hint"}, ...what it found}

A command gives its data (`give`); the end of the command makes the document of them and of how it ended
(`document`). `answers.schema.json` beside this file describes the answer of every command.
"""

from typing import Any

from nndeploy.errors import NndeployError, told_error

VERSION = 1
NO_COMMAND = "nndeploy"

_given: dict[str, Any] = {}


def give(data: dict[str, Any]) -> None:
    """Makes `data` the fields of this command's answer."""
    _given.clear()
    _given.update(data)


def forget() -> None:
    """Drops what a command before this one gave."""
    _given.clear()


def is_wanted(arguments: list[str]) -> bool:
    """Returns whether a command line asks for JSON on standard output."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def document(command: str, code: int, error: NndeployError | None) -> dict[str, Any] | None:
    """Returns the answer of a command that ended with `code`; None where it gave none and did not fail."""
    if not _given and code == 0:
        return None
    told = {} if error is None else {"error": told_error(error)}
    head = {"schema": f"nndeploy.{command or NO_COMMAND}.{VERSION}", "ok": code == 0}
    return {**head, **{key: value for key, value in _given.items() if key not in head}, **told}
