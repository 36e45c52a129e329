# SPDX-License-Identifier: Apache-2.0
"""The one rule for files that a command writes: a file by its name, in a folder that is there, and no input.

Nothing goes to a file called "-", and no folder is made on the way; only a folder of results, which a command is asked
to fill, is made itself. A link of one's own is written through.
"""

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from nndeploy.cli.options.value_types import AnyFile, Items
from nndeploy.errors import CannotCreateError, UsageError
from nndeploy.files.named_outputs import STANDARD_OUTPUT, check_no_input, through_links


class OutputFile(click.ParamType):  # type: ignore[type-arg] # generic in click 8.3 and later alone
    """The path of a file to write, for options of click."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Returns the path, that of the file which it leads to if it is a link.

        Raises:
            UsageError: it is "-": standard output holds what a command tells, not its files.
            CannotCreateError: it names a folder, or is a symbolic link of another user.
        """
        if isinstance(value, Path):
            return value
        text, option = str(value), param.opts[-1] if param is not None else "the output"
        if text in STANDARD_OUTPUT:
            raise UsageError(f"{option} names a file, and standard output is none", hint="./- is a file of that name")
        if text.endswith("/") or Path(text).is_dir():
            name = Path(text) / f"result{self._suffix(ctx)}"
            raise CannotCreateError("is a folder", where=text, hint=f"name a file, such as {name}")
        return through_links(Path(text))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Lets the shell complete a path."""
        return [CompletionItem(incomplete, type="file")]

    @staticmethod
    def _suffix(ctx: click.Context | None) -> str:
        return {"compile": ".nnd", "pull": ".nnd", "probe": ".toml"}.get(ctx.info_name or "" if ctx else "", "")


OUTPUT_FILE = OutputFile()


class CheckedContext(click.Context):
    """Of a command that writes files: none of them is one that it reads."""

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        """Calls the command.

        Raises:
            UsageError: an output is an input, or another output.
        """
        outputs, inputs = list[Path](), list[Path]()
        for one in self.command.params:
            value = self.params.get(one.name or "")
            if isinstance(one.type, OutputFile) or one.name == "output":
                outputs += [Path(value)] if value is not None and value not in STANDARD_OUTPUT else []
            elif isinstance(one.type, click.Path | AnyFile):
                inputs += _paths_in(value)
        check_no_input(outputs, inputs)
        return super().invoke(*arguments, **options)


def _paths_in(value: Any) -> list[Path]:
    """Returns what the value of a parameter may name: PATH, NAME=PATH, NAME=@PATH, or several of them."""
    if isinstance(value, tuple | list):
        return [path for one in value for path in _paths_in(one)]
    if isinstance(value, Path):
        return [value]
    if not isinstance(value, str):
        return []
    return [Path(value), Path(value.partition("=")[2].removeprefix("@") or value)]
