# SPDX-License-Identifier: Apache-2.0
"""`nndeploy inspect --tables`: what each step of a bundle writes on this machine, and how that is cut into windows.

Steps come from `inspect(..., here=True)`, as their backend tells them, for the shapes of inputs that stand above. Law:
the picture shows what the data say and nothing else. Texts are those of the bundle: what has not the form of sizes is
no size.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nndeploy.cli.console import print_json, print_line
from nndeploy.errors import UnavailableError
from nndeploy.runtime.inspect_bundle import Inspection
from nndeploy.values.amounts import counted
from nndeploy.values.plan_steps import PlanStep

MOST_CELLS = 4
"""Windows of one axis that are drawn; of more the first two and the last."""
_SIZES = re.compile(r"[1-9]\d{0,15}(x[1-9]\d{0,15}){0,7}")


class _Cut(NamedTuple):
    """An axis in `parts` of `size`, the last of which is `last`."""

    size: int
    parts: int
    last: int


def show_tables(found: Inspection, *, as_json: bool) -> None:
    """Prints the sizes and windows of all steps that are told for this machine.

    Raises:
        UnavailableError: none is.
    """
    told = [(one.submodel, one.variant, [_table(step) for step in one.steps]) for one in found.steps]
    tables = [one for one in told if any(step["shape"] for step in one[2])]
    if not tables:
        where, hint = str(found.path), "see nndeploy backends"
        raise UnavailableError("no backend reports its steps on this machine", where=where, hint=hint)
    if as_json:
        named = [{"submodel": submodel, "variant": variant, "steps": steps} for submodel, variant, steps in tables]
        shapes = {name: list(shape) for name, shape in found.shapes.items()}
        print_json({"bundle": str(found.path), "shapes": shapes, "tables": named})
        return
    if found.shapes:
        print_line("for " + " ".join(f"{name}[{','.join(map(str, shape))}]" for name, shape in found.shapes.items()))
    for submodel, variant, steps in tables:
        print_line(f"{submodel}/{variant}: {counted(len(steps), 'step')} on this machine")
        for number, step in enumerate(steps):
            for line in _lines(number, step):
                print_line(line)


def _table(step: PlanStep) -> dict[str, Any]:
    """Returns a step with its `shape` as numbers, and how `windows` cut its rows and columns; None where none do."""
    shape, window, pixels = _sizes(step.get("shape")), _sizes(step.get("window")), step.get("window_pixels")
    cuts = None
    if len(shape) == 4 and len(window) == 3:
        cuts = _cut(shape[2], window[0]), _cut(shape[3], window[1])
    elif len(shape) == 4 and isinstance(pixels, int) and pixels > 0:
        cuts = _cut(1, 1), _cut(shape[2] * shape[3], pixels)
    windows = {"rows": cuts[0]._asdict(), "columns": cuts[1]._asdict()} if cuts else None
    return {**step, "shape": shape, "windows": windows}


def _sizes(text: int | str | None) -> list[int]:
    return [int(size) for size in text.split("x")] if isinstance(text, str) and _SIZES.fullmatch(text) else []


def _cut(size: int, part: int) -> _Cut:
    part = min(size, part)
    parts = -(-size // part)
    return _Cut(part, parts, size - (parts - 1) * part)


def _lines(number: int, step: Mapping[str, Any]) -> Iterator[str]:
    yield f"{number:4} {step.get('kernel', '')}: {step.get('what', '')}"
    words, buffer, picture = ["x".join(map(str, step["shape"]))], step.get("buffer_bytes"), []
    if step["windows"]:
        rows, columns = (_Cut(**cut) for cut in step["windows"].values())
        of = step["window"] if "window" in step else f"{step['window_pixels']} pixels"
        words[0] += f" in {rows.parts} x {columns.parts} windows of {of}"
        picture = list(_picture(rows, columns)) if rows.parts * columns.parts > 1 else []
    if isinstance(buffer, int):
        words.append(f"buffer {buffer / 1024:g} KiB")
    for key, what in (("scratch_bytes", "scratch"), ("kept_bytes", "never leave the cache:")):
        if isinstance(num_bytes := step.get(key), int):
            words.append(f"{what} {num_bytes / 1024:g} KiB")
    words.append(str(step.get("how", "")))
    yield from (f"     {line}" for line in (", ".join(filter(None, words)), *picture))


def _picture(rows: _Cut, columns: _Cut) -> Iterator[str]:
    """Yields a grid whose cells are windows, with their sizes above and at the left; of many the middle is left out."""
    heights, widths = _marks(rows), _marks(columns)
    left, cell = max(map(len, heights)), max(map(len, widths)) + 2
    line = " " * left + " +" + "+".join("-" * cell for _ in widths) + "+"
    yield " " * (left + 2) + " ".join(mark.center(cell) for mark in widths).rstrip()
    for mark in heights:
        yield line
        yield f"{mark:>{left}} |" + "|".join(" " * cell for _ in widths) + "|"
    yield line


def _marks(cut: _Cut) -> Sequence[str]:
    sizes = [str(cut.size)] * min(cut.parts - 1, MOST_CELLS)
    return [*sizes, str(cut.last)] if cut.parts <= MOST_CELLS else [*sizes[:2], "...", str(cut.last)]
