# SPDX-License-Identifier: Apache-2.0
"""The file in which a machine keeps what it measured of a plan: choices for the steps, by machine and shapes.

    {"format": 1, "plan_sha256": "...", "tables": [
      {"box": {...}, "shapes": [[1, 3, 224, 224]], "steps": {"4": {"buffer_bytes": 65536}}, "rule_us": 9.1,
       "tuned_us": 8.7}]}

`box` is all that the choices depend on beside plan and shapes: processor, level of the kernels, caches, threads, the
buffer that the user set, version. `steps` are those that are not done by the rule, by number. Law: what the file says
changes no bit of a result but where it says the way of a convolution; what is malformed, or of another plan or machine,
is as if it were not there.
"""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from nndeploy.errors import DataError
from nndeploy.plugin.cache_file import check_writable, not_kept, read_cache, write_cache
from nndeploy_native.step_choices import BY_RULE, StepChoice, choice_from_data, choice_to_data

FORMAT = 1
MAX_BYTES = 4 << 20
MAX_TABLES = 256
"""Tables of one file; the oldest go first."""

Shapes: TypeAlias = tuple[tuple[int, ...], ...]
Box: TypeAlias = Mapping[str, Any]


class TunedTable(NamedTuple):
    """What was found for shapes of a plan's inputs on a box, and the microseconds of a run before and after."""

    box: Box
    shapes: Shapes
    choices: tuple[StepChoice, ...]
    rule_us: float
    tuned_us: float


class TunedFile:
    """The file of one plan in a folder of a cache."""

    def __init__(self, folder: str, plan: bytes, num_steps: int, box: Callable[[], Box]) -> None:
        """`box` tells what this machine is, and is asked where that matters; `folder` "" keeps nothing."""
        self._box = box
        self.plan_sha256 = hashlib.sha256(plan).hexdigest()
        self._num_steps = num_steps
        self.path = Path(folder, f"native-{self.plan_sha256[:32]}.json") if folder else None
        self.choices, self.note = self.read()
        """What it said for this machine when it was opened, by shapes; and why it is not taken, "" if it is."""

    @property
    def box(self) -> Box:
        """This machine."""
        return self._box()

    def read(self) -> tuple[dict[Shapes, tuple[StepChoice, ...]], str]:
        """Returns the choices for this machine by shapes; and why those of the file are not taken, "" if they are."""
        data = read_cache(self.path, MAX_BYTES) if self.path is not None else b""
        if not data:
            return {}, ""
        try:
            tables = tables_from_data(json.loads(data), self.plan_sha256, self._num_steps)
        except (ValueError, RecursionError) as err:
            return {}, f"{self.path}: {err}"
        found = {one.shapes: one.choices for one in tables if one.box == self.box}
        return found, "" if found or not tables else f"{self.path}: tuned on another machine, or with other threads"

    def check_writable(self) -> None:
        """Passes a folder in which the file can be written; it is made where it is not there.

        Raises:
            InputOutputError: it cannot.
        """
        check_writable(self.path)

    def add(self, tables: Sequence[TunedTable]) -> None:
        """Writes tables beside those that are there, in the place of those of the same machine and shapes.

        Raises:
            InputOutputError: the file cannot be written.
        """
        self.check_writable()
        assert self.path is not None, "it was checked"
        known = {(key_of_box(one.box), one.shapes) for one in tables}
        try:
            data = json.loads(read_cache(self.path, MAX_BYTES) or b"{}")
            before = tables_from_data(data, self.plan_sha256, self._num_steps) if data else ()
        except (ValueError, RecursionError):
            before = ()
        kept = [one for one in before if (key_of_box(one.box), one.shapes) not in known]
        text = json.dumps(tables_to_data(self.plan_sha256, [*kept, *tables][-MAX_TABLES:]), indent=1)
        if not write_cache(self.path, (text + "\n").encode("ascii"), ".native-"):
            raise not_kept(self.path)

    def replayed(self, data: Any) -> list[TunedTable]:
        """Returns the tables of plain data that are of this machine.

        Raises:
            DataError: it is malformed, or of another plan or machine.
        """
        try:
            tables = tables_from_data(data, self.plan_sha256, self._num_steps)
        except ValueError as err:
            raise DataError(str(err)) from err
        if found := [one for one in tables if one.box == self.box]:
            return found
        raise DataError("the decisions were made on another machine, or with other threads")


def key_of_box(box: Box) -> str:
    """Returns a text that two equal boxes have alike."""
    return json.dumps(box, sort_keys=True)


def tables_to_data(plan_sha256: str, tables: Sequence[TunedTable]) -> dict[str, Any]:
    """Returns what stands in the file."""
    return {
        "format": FORMAT,
        "plan_sha256": plan_sha256,
        "tables": [
            {
                "box": one.box,
                "shapes": [list(shape) for shape in one.shapes],
                "steps": _steps_to_data(one.choices),
                "rule_us": one.rule_us,
                "tuned_us": one.tuned_us,
            }
            for one in tables
        ],
    }


def _steps_to_data(choices: Sequence[StepChoice]) -> dict[str, Any]:
    """Returns the choices that are not the rule's; names are sorted, of which the C runtime reads any number."""
    steps = {str(number): choice_to_data(how) for number, how in enumerate(choices) if how != BY_RULE}
    return dict(sorted(steps.items()))


def tables_from_data(data: Any, plan_sha256: str, num_steps: int) -> list[TunedTable]:
    """Returns the tables of a plan with so many steps.

    Raises:
        ValueError: it is malformed, or of another plan.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"not tuned choices of format {FORMAT}")
    if data.get("plan_sha256") != plan_sha256:
        raise ValueError("the choices are of another plan")
    tables = data.get("tables")
    if not isinstance(tables, list) or len(tables) > MAX_TABLES:
        raise ValueError("malformed choices: no list of tables")
    return [_table(one, num_steps) for one in tables]


def _table(data: Any, num_steps: int) -> TunedTable:
    if not isinstance(data, dict) or not isinstance(data.get("box"), dict):
        raise ValueError("malformed choices: a table without a box")
    steps, shapes = data.get("steps"), data.get("shapes")
    if not isinstance(steps, dict) or not isinstance(shapes, list):
        raise ValueError("malformed choices: a table without steps or shapes")
    choices = [BY_RULE] * num_steps
    for text, choice in steps.items():
        if not (text.isdecimal() and text.isascii() and len(text) < 8 and int(text) < num_steps):
            raise ValueError(f"malformed choices: no step {text!r:.20}")
        choices[int(text)] = choice_from_data(choice)
    rule_us, tuned_us = (_time(data.get(name)) for name in ("rule_us", "tuned_us"))
    return TunedTable(data["box"], tuple(map(_shape, shapes)), tuple(choices), rule_us, tuned_us)


def _time(data: Any) -> float:
    if type(data) not in (int, float) or not 0 <= data < math.inf:
        raise ValueError(f"malformed choices: not a time: {data!r:.60}")
    return float(data)


def _shape(data: Any) -> tuple[int, ...]:
    if not isinstance(data, list) or not all(type(size) is int for size in data):
        raise ValueError(f"malformed choices: not a shape: {data!r:.60}")
    return tuple(data)
