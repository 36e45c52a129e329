# SPDX-License-Identifier: Apache-2.0
"""The options of a compile in a fleet file: by the names of the command line, as a job carries them.

`given_by` checks names and values as the file writes them; `with_paths` finds the paths among them; `check_given` reads
what needs no library to be read, as the command does before it starts a child; `given_here` is what the child gets.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nndeploy.compiler.options import READ_BY_CHILD, CompileOptions
from nndeploy.errors import DataError, MissingInputError, did_you_mean
from nndeploy.farm.job import HOST
from nndeploy.farm.rooted_path import rooted_path
from nndeploy.farm.template import check_template
from nndeploy.options.described import described_fields, option_name, options_from
from nndeploy.options.plain_value import plain_values
from nndeploy.target.known_targets import known_targets

_FIELDS = described_fields(CompileOptions)
_NAMES = frozenset(option_name(name, one) for name, (_, one) in _FIELDS.items())
_SAID_ELSEWHERE = {
    "target": "[targets] names the targets",
    "output": "output of [farm] says where bundles go",
    "dry_run": "`nndeploy batch --plan` shows the jobs",
    "total_time_limit": 'timeout = "30m" goes beside options',
    "time_limit": 'time_limit = "10m" goes beside options',
    "memory_limit": 'memory = "8GiB" goes beside options',
    "jobs": "the farm distributes the cores",
}
_PATHS = frozenset(name for name, (_, one) in _FIELDS.items() if one.is_path)
_OF_TARGETS = "targets"


def is_option(key: str) -> bool:
    """Returns whether a key is an option of a compile."""
    return key.replace("-", "_") in _NAMES


def given_by(options: Mapping[str, object]) -> dict[str, Any]:
    """Returns what a table of options gives, by field; paths are as they are written.

    Raises:
        DataError: an option is unknown, there twice, or said elsewhere; or its value is none.
    """
    given = plain_values(CompileOptions, options, _SAID_ELSEWHERE)
    for text in given.get("shapes", ()):
        if "=" not in text:
            raise DataError(f"shape: {text!r:.80} names no input", hint="for example x=1..8,3,224,224")
    for path in (path for field in _PATHS.intersection(given) for path in _texts(given[field])):
        check_template(path)
        rooted_path(Path("/"), path)
    return given


def with_paths(given: Mapping[str, Any], path_of: Callable[[str], str]) -> dict[str, Any]:
    """Returns what is given with `path_of` each path in the path's place; those of target files are absolute."""
    made = dict(given)
    for field in _PATHS.intersection(given):
        paths = [path_of(text) for text in _texts(given[field])]
        made[field] = paths if isinstance(given[field], list) else paths[0]
    if _OF_TARGETS in given:
        made[_OF_TARGETS] = [path_of(text) if text.startswith("/") else text for text in given[_OF_TARGETS]]
    return made


def given_here(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a job is given as `compile_in_child` takes it on this machine: known boxes by their files here.

    Raises:
        DataError: a box is not known here.
    """
    boxes = [text if text.startswith("/") else known_box(text) for text in given.get(_OF_TARGETS, ())]
    return {**given, _OF_TARGETS: boxes} if boxes else dict(given)


def known_box(name: str) -> str:
    """Returns the file of a known box, with the libraries that are named behind it; whatever else has its name.

    Raises:
        DataError: no box has it.
    """
    box, *libraries = name.split("+")
    if box not in known_targets() or not all(libraries):
        raise DataError(f"no target is called {name!r:.80}", hint=did_you_mean(box, (HOST, *known_targets())))
    return "+".join((str(known_targets()[box]), *libraries))


def check_given(given: Mapping[str, Any]) -> None:
    """Checks what is given of options beside the targets; paths are absolute.

    Raises:
        MissingInputError: a file or folder that is named is not there.
        NndeployError: a text has no meaning, or options do not go together.
    """
    for field in sorted(_PATHS.intersection(given)):
        for path in _texts(given[field]):
            if not Path(path).exists():
                raise MissingInputError(f"{_shown(field)}: no such file or folder", where=path)
    read_here = {field: value for field, value in given.items() if field not in READ_BY_CHILD | {_OF_TARGETS}}
    options_from(CompileOptions, read_here)


def _texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _shown(field: str) -> str:
    return option_name(field, _FIELDS[field][1]).replace("_", "-")
