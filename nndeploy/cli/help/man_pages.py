# SPDX-License-Identifier: Apache-2.0
"""Man pages of all commands, from what their --help is made of: the tree of click's commands.

The build of a wheel asks for them (hatch_build.py), so whoever installs it has `man nndeploy-compile`. The same tree
gives the same bytes: there is no date in them.

Source: man-pages(7) for the sections and their order, groff_char(7) for what is escaped.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from nndeploy.cli.help.exit_codes import EXIT_CODES
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.version import __version__

SECTION = 1
_ESCAPES = str.maketrans({"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"})


def write_man_pages(root: click.Context, folder: Path) -> None:
    """Writes the pages of a command and all below it into a folder, which is made where it is not there.

    Raises:
        CannotCreateError: there is no place for it.
        InputOutputError: the disk is full or failed.
    """
    from nndeploy.files.whole_files import OutputFolder

    output = OutputFolder(folder)
    try:
        for name, text in man_pages(root).items():
            output.write(name, partial(_write_ascii, text))
    finally:
        output.close()


def _write_ascii(text: str, file: BinaryIO) -> None:
    file.write(text.encode("ascii"))


def man_pages(root: click.Context) -> dict[str, str]:
    """Returns name of the file -> page for a command and all below it."""
    contexts = list(_contexts(root))
    names = [_name(context) for context in contexts]
    return {f"{_name(context)}.{SECTION}": _page(context, names) for context in contexts}


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(group := context.command, click.Group):
        for name in group.list_commands(context):
            if (command := group.get_command(context, name)) is not None:
                yield from _contexts(click.Context(command, info_name=name, parent=context))


def _name(context: click.Context) -> str:
    return context.command_path.split(" [")[0].replace(" ", "-")


def _page(context: click.Context, names: list[str]) -> str:
    command, name = context.command, _name(context)
    summary, *paragraphs = _paragraphs(command.help or "")
    lines = [
        f'.TH {_escaped(name.upper())} {SECTION} "" "nndeploy {__version__}" "nndeploy"',
        ".SH NAME",
        f"{_escaped(name)} \\- {_escaped(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_escaped(context.command_path)}",
        _escaped(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
        _escaped(summary),
        *(line for text in paragraphs for line in (".PP", _escaped(text))),
        *_commands(context),
        ".SH OPTIONS",
        *_options(context),
        *_examples(command.epilog or ""),
        ".SH EXIT STATUS",
        *(line for code, text in EXIT_CODES.items() for line in _entry(str(code), text)),
        ".SH SEE ALSO",
        ", ".join(f"\\fB{_escaped(other)}\\fR({SECTION})" for other in _near(name, names)),
        ".PP",
        r"\fBnndeploy help\fR lists the pages of the guide and the reference.",
    ]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text.strip())]


def _commands(context: click.Context) -> list[str]:
    if not isinstance(group := context.command, click.Group):
        return []
    commands = ((name, group.get_command(context, name)) for name in group.list_commands(context))
    found = [(name, _paragraphs(command.help or "")[0]) for name, command in commands if command is not None]
    return [".SH COMMANDS", *(line for name, text in found for line in _entry(name, text))]


def _options(context: click.Context) -> list[str]:
    command = context.command
    if isinstance(command, SectionedCommand):
        headed = command.headed_records(context)
    else:
        options = (one for one in command.get_params(context) if isinstance(one, click.Option))
        records = (option.get_help_record(context) for option in options)
        headed = {"": [record for record in records if record is not None]}
    return [
        line
        for heading, records in headed.items()
        for line in (*([f".SS {_escaped(heading)}"] if heading else []), *_entries(records))
    ]


def _entries(records: list[tuple[str, str]]) -> Iterator[str]:
    for names, text in records:
        yield from _entry(names, text)


def _entry(term: str, text: str) -> list[str]:
    return [".TP", f"\\fB{_escaped(term)}\\fR", _escaped(" ".join(text.split()))]


def _examples(epilog: str) -> list[str]:
    _, found, lines = epilog.partition("Examples:\n")
    if not found:
        return []
    return [".SH EXAMPLES", ".nf", *map(_escaped, lines.rstrip().removeprefix("  ").split("\n  ")), ".fi"]


def _near(name: str, names: list[str]) -> list[str]:
    """Returns the pages that one of `name` leads to: those above it and below it."""
    above = [other for other in names if name.startswith(f"{other}-")]
    below = [other for other in names if other.startswith(f"{name}-")]
    return [*above, *below]


def _escaped(text: str) -> str:
    """Returns a line as text: nothing in it is a request of roff."""
    found = text.translate(_ESCAPES)
    found = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in found)
    return f"\\&{found}" if found.startswith(".") else found
