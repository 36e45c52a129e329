# SPDX-License-Identifier: Apache-2.0
"""What the tab key needs of all commands, in one file, so that a shell does not wait until they are imported.

The build of a wheel writes the file from the tree of click's commands (hatch_build.py); a checkout has none, and
completes from the commands themselves. From the file comes a tree of commands that do nothing, with the same names,
options and values, and click completes from that as from the real one. Laws: nothing is spelled here that a command
spells; what completes a value is the same code (`value_types`), so files, devices and backends are those of now.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from nndeploy.cli.options import value_types
from nndeploy.cli.options.value_types import COMPLETED_BY, Items, starting_with

INDEX = Path(__file__).with_name("completion_index.json")
Data = Mapping[str, Any]


def write_index(root: click.Command, path: Path) -> None:
    """Writes the file for a command and all below it; the same tree gives the same bytes."""
    context = click.Context(root, info_name=root.name)
    path.write_text(json.dumps(index_of(context, ""), separators=(",", ":")), encoding="utf-8")


def index_of(context: click.Context, about: str) -> dict[str, Any]:
    """Returns the command of a context and all below it as plain data; `about` is what stands beside its name."""
    command = context.command
    found: dict[str, Any] = {"about": about, "params": [_param_to_data(one, context) for one in command.params]}
    if isinstance(command, click.Group):
        texts = {item.value: item.help or "" for item in command.shell_complete(context, "")}
        found["commands"] = {
            name: index_of(click.Context(one, info_name=name, parent=context), texts.get(name, ""))
            for name in command.list_commands(context)
            if (one := command.get_command(context, name)) is not None
        }
    return found


def command_from(data: Data, name: str) -> click.Command:
    """Returns the command of such data: it has the names of the real one, and does nothing."""
    params = [_param_from(one) for one in data["params"]]
    settings = {"help_option_names": ["-h", "--help"]}
    if "commands" not in data:
        return click.Command(name, params=params, short_help=data["about"], context_settings=settings)
    return _Group(data["commands"], name, params=params, short_help=data["about"], context_settings=settings)


def indexed_command() -> click.Command | None:
    """Returns the tree of commands that the file describes, None where there is no file, or one that says nothing."""
    try:
        return command_from(json.loads(INDEX.read_text(encoding="utf-8")), "nndeploy")
    except Exception:  # of whatever kind: who types gets the program's answer, later
        return None


class _Group(click.Group):
    """A group whose commands stand in the order of the real one's, each made when it is asked for."""

    def __init__(self, below: Mapping[str, Data], name: str, **settings: Any) -> None:
        super().__init__(name, **settings)
        self._below = below

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's interface
        return list(self._below)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return command_from(self._below[cmd_name], cmd_name) if cmd_name in self._below else None


class _Value(click.ParamType):  # type: ignore[type-arg] # generic in click 8.3 and later alone
    """A value that is completed by one of some words, or as a path of a kind; whatever was typed is taken."""

    name = "value"

    def __init__(self, words: Sequence[str] = (), kind: str = "", by: str = "") -> None:  # noqa: ARG002 - as stored
        self._words = words
        self._kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        if self._kind:
            return [CompletionItem(incomplete, type=self._kind)]
        return starting_with(incomplete, self._words)


def _param_to_data(param: click.Parameter, context: click.Context) -> dict[str, Any]:
    data: dict[str, Any] = {"name": param.name, "value": _value_to_data(param, context)}
    if isinstance(param, click.Option):
        secondary = f"/{param.secondary_opts[0]}" if param.secondary_opts else ""
        data["opts"] = [*param.opts[:-1], param.opts[-1] + secondary]
        data |= {"help": param.help, **{key: True for key in _FLAGS if getattr(param, key)}}
    else:
        data["nargs"] = param.nargs
    return data


_FLAGS = ("is_flag", "count", "multiple", "hidden")


def _value_to_data(param: click.Parameter, context: click.Context) -> dict[str, Any]:
    """Returns what completes a value: a name in `COMPLETED_BY` or `value_types`, words, or a kind of path.

    A type of another module may have words that never change, or paths.
    """
    for name, complete in COMPLETED_BY.items():
        if getattr(param, "_custom_shell_complete", None) == complete:
            return {"by": name}
    for name, one in vars(value_types).items():
        if one is param.type:
            return {"type": name}
    found = param.type.shell_complete(context, param, "")
    if kinds := {item.type for item in found} - {"plain"}:
        return {"kind": kinds.pop()}
    return {"words": [item.value for item in found]} if found else {}


def _param_from(data: Data) -> click.Parameter:
    value: Data = data["value"]
    given: dict[str, Any] = {"shell_complete": COMPLETED_BY[value["by"]]} if "by" in value else {}
    kind = getattr(value_types, value["type"]) if "type" in value else _Value(**value)
    if "opts" not in data:
        return click.Argument([data["name"]], nargs=data["nargs"], type=kind, required=False, **given)
    given |= {key: True for key in _FLAGS if key in data}
    if not {"is_flag", "count"} & data.keys():
        given["type"] = kind
    return click.Option([data["name"], *data["opts"]], help=data["help"], **given)
