# SPDX-License-Identifier: Apache-2.0
"""The one rule for files that a command writes: a file by its name, in a folder that is there.

Nothing goes to a file called "-", and no folder is made on the way; only a folder of results, which a command is asked
to fill, is made itself.
"""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from nndeploy.cli.value_types import Items
from nndeploy.errors import CannotCreateError, UsageError


class OutputFile(click.ParamType):  # type: ignore[type-arg] # generic in click 8.3 and later alone
    """The path of a file to write, for options of click."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Returns the path.

        Raises:
            UsageError: it is "-": standard output holds what a command tells, not its files.
            CannotCreateError: it names a folder.
        """
        if isinstance(value, Path):
            return value
        text, option = str(value), param.opts[-1] if param is not None else "the output"
        if text == "-":
            raise UsageError(f"{option} names a file, and standard output is none", hint="./- is a file of that name")
        if text.endswith("/") or Path(text).is_dir():
            name = Path(text) / f"result{self._suffix(ctx)}"
            raise CannotCreateError("is a folder", where=text, hint=f"name a file, such as {name}")
        return Path(text)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Lets the shell complete a path."""
        return [CompletionItem(incomplete, type="file")]

    @staticmethod
    def _suffix(ctx: click.Context | None) -> str:
        return {"compile": ".nnd", "pull": ".nnd", "probe": ".toml"}.get(ctx.info_name or "" if ctx else "", "")


OUTPUT_FILE = OutputFile()
