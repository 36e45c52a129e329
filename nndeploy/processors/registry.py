# SPDX-License-Identifier: Apache-2.0
"""Finds processors by the entry-point group `nndeploy.processors`; makes steps of a pipeline out of TOML tables.

Ours are found as everybody's are. A processor's module is imported when a pipeline first names it, never before.

Law: nobody can take the name of one of ours, so a pipeline means the same wherever it runs.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any

from nndeploy.errors import DataError, UnavailableError
from nndeploy.plugin.entry_points import Plugins
from nndeploy.processors.parameters import ReadFile, no_files, processor_from_parameters
from nndeploy.processors.processor import Processor, ProcessorStep

GROUP = "nndeploy.processors"
PLUGINS = Plugins(GROUP, "processor", DataError)
STEP_KEYS = ("use", "in", "out")


@cache
def processor_class(name: str) -> type:
    """Returns the class of the processor called `name`.

    Raises:
        DataError: no processor of that name is installed.
        UnavailableError: two packages bring it, it cannot be imported, or is no processor.
    """

    def checked(kind: Any) -> type:
        if not (isinstance(kind, type) and is_dataclass(kind) and "__call__" in dir(kind)):
            raise TypeError("it is no dataclass that can be called")
        return kind

    return PLUGINS.load(name, checked)


def processor_from_table(table: Mapping[str, object], where: str, read_file: ReadFile = no_files) -> ProcessorStep:
    """Returns the step that a table writes: `use` names the processor, `in` and `out` rename its fields.

    `where` says where the table stands, for messages; `read_file` gives the content of files that it names.

    Raises:
        DataError: the processor or a parameter is unknown, missing, of the wrong type or out of its limits.
        MissingInputError: a file that it names does not exist.
        UnavailableError: the processor cannot be loaded here.
    """
    name = table.get("use")
    if not isinstance(name, str):
        raise DataError('needs use = "..." with the name of a processor', where=where)
    try:
        kind = processor_class(name)
    except (DataError, UnavailableError) as err:
        err.within(where)
        raise
    where = f"{where}: {name}"
    parameters = {key: value for key, value in table.items() if key not in STEP_KEYS}
    processor: Processor = processor_from_parameters(kind, parameters, where, read_file)
    takes = _renamed(table.get("in"), processor.takes, "in", where)
    gives = _renamed(table.get("out"), processor.gives, "out", where)
    return ProcessorStep(processor, takes, gives)


def _renamed(names: object, own: tuple[str, ...], key: str, where: str) -> tuple[str, ...]:
    """Returns the names that a table gives to the fields called `own` by the processor."""
    if names is None:
        return own
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise DataError(f"{key} must be a list of names of fields, is {names!r:.60}", where=where)
    if len(names) != len(own):
        verb = "takes" if key == "in" else "gives"
        raise DataError(f"{key} names {len(names)} fields, but it {verb} {len(own)}: {', '.join(own)}", where=where)
    if key == "out" and len(set(names)) != len(names):
        raise DataError(f"{key} names a field twice: {', '.join(names)}", where=where)
    return tuple(names)
