# SPDX-License-Identifier: Apache-2.0
"""Errors and warnings as GitHub shows them beside a change: lines of a step that begin with `::error` or `::warning`.

Law: a text is one annotation and no other command, whatever it holds.

Source: docs.github.com, "Workflow commands for GitHub Actions", November 2026.
"""

from collections.abc import Mapping

VARIABLE = "GITHUB_ACTIONS"
_ESCAPED = {"%": "%25", "\r": "%0D", "\n": "%0A"}


def annotation(level: str, text: str, environment: Mapping[str, str]) -> str:
    """Returns the line that makes `text` an annotation, "" where no step of GitHub's reads it.

    `level` is "error" or "warning".
    """
    if environment.get(VARIABLE) != "true":
        return ""
    return f"::{level} title=nndeploy::{''.join(_ESCAPED.get(char, char) for char in text)}"
