# SPDX-License-Identifier: Apache-2.0
"""The differences between two bundles as a reviewer reads them: a line for each submodel, and for each other part."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from nndeploy.ci_reports.markdown import table_row
from nndeploy.cli.views.bundle_differences import Difference
from nndeploy.cli.views.difference_classes import BYTES, CLASSES, NUMBERS, changed_fields
from nndeploy.files.markdown_code import markdown_code
from nndeploy.values.amounts import counted

COLUMNS = ("part", "class", "change")
MAX_LINES = 40
"""How many lines are shown; --json has every difference."""
MAX_NAMED = 3
"""How many names of a kind a line gives."""
MAX_VALUE = 60
DIGEST_DIGITS = 12
_DIGEST = re.compile("[0-9a-f]{64}")
_FILES = ("member", "stored")
_LABELS = {
    **dict.fromkeys(_FILES, "files"),
    **dict.fromkeys(("max error", "check"), "comparisons"),
    "golden": "samples",
}
"""Parts that share a line, or whose name a reader would not know."""
_TOLD_ELSEWHERE = ("id", "backend", "target", "files")
"""Fields of a variant that the line of its submodel shows anyway."""
_FIELDS = {"requires": "what it requires", "native_code": "whether it is code", "deterministic": "reproducibility"}


@dataclass(frozen=True, slots=True)
class Line:
    """What differs of one submodel, or of another part; `kinds` are its classes in their order."""

    what: str
    kinds: tuple[str, ...]
    change: str

    @property
    def cells(self) -> tuple[str, str, str]:
        """The line as a row of a table."""
        return self.what, ", ".join(self.kinds), self.change


def difference_lines(found: Iterable[Difference]) -> list[Line]:
    """Returns a line for each submodel that differs, then one for each other part, those of the first class first."""
    groups: dict[tuple[bool, str], list[Difference]] = {}
    for one in found:
        groups.setdefault((bool(one.submodel), one.submodel or _label(one)), []).append(one)
    lines = [
        (not is_submodel, Line(name, _in_order(one.kind for one in group), "; ".join(told(group))))
        for (is_submodel, name), group in groups.items()
        for told in [_submodel if is_submodel else _part]
    ]
    lines.sort(key=lambda item: (item[0], CLASSES.index(item[1].kinds[0]) if item[0] else 0))
    return [line for _, line in lines]


def shown_rows(lines: Sequence[Line]) -> list[tuple[str, str, str]]:
    """Returns the rows of a table of at most `MAX_LINES` lines, and one that says how many there are besides."""
    rest = lines[MAX_LINES:]
    more = [(f"{len(rest)} more", ", ".join(_in_order(kind for line in rest for kind in line.kinds)), "")]
    return [line.cells for line in lines[:MAX_LINES]] + more * bool(rest)


def markdown_rows(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Returns the lines of a table in Markdown, an empty one before it; every name of a bundle is escaped."""
    if not rows:
        return []
    cells = [(markdown_code(what), kinds, markdown_code(change) if change else "") for what, kinds, change in rows]
    return ["", *map(table_row, (COLUMNS, ("---",) * len(COLUMNS), *cells))]


def _in_order(kinds: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(kinds), key=CLASSES.index))


def _label(one: Difference) -> str:
    if one.part == "member" and one.name == "report.json":
        return "report"
    if one.part == "member" and one.name.startswith("goldens/"):
        return "samples"
    return _LABELS.get(one.part, one.part.removeprefix("provenance."))


def _part(group: Sequence[Difference]) -> Iterator[str]:
    """Yields what differs in a part that is no submodel's."""
    files = [one for one in group if one.part in _FILES]
    if files:
        yield _some([one.name for one in files])
    if checks := [one for one in group if one.part == "check"]:
        yield f"{counted(len(checks), 'comparison')} with the original"
    if any(one.part == "signature" for one in group):
        yield " -> ".join("signed" if one else "not signed" for one in (group[0].a, group[0].b))
        return
    # A pass that changed nothing is as good as one that was not there.
    rest = [one for one in group if one.part not in (*_FILES, "check") and (one.a or one.b)]
    if rest:
        yield _some([f"{one.name}: {_text(one.a)} -> {_text(one.b)}" for one in rest])


def _submodel(group: Sequence[Difference]) -> Iterator[str]:
    """Yields what differs in a submodel, what matters most first."""
    by_part: dict[str, list[Difference]] = {}
    for one in group:
        by_part.setdefault(one.part, []).append(one)
    for one in by_part.get("submodel", ()):
        yield f"{_variants(one.a)} -> {_variants(one.b)}"
    yield from _nodes(by_part.get("node", ()))
    yield from _files(one for one in by_part.get("member", ()) if one.kind == NUMBERS)
    for one in by_part.get("variant", ()):
        yield from _variant(one)
    for one in by_part.get("place", ()):
        yield f"place {_text(one.a)} -> {_text(one.b)}"
    if any(one.a and one.b for one in by_part.get("boundary", ())):
        yield "other inputs or outputs"
    yield from _errors(by_part)
    if stored := [one for one in group if one.kind == BYTES and one.part in _FILES and one.b is not None]:
        yield f"{counted(len(stored), 'file')} stored in another way"


def _variants(text: str | None) -> str:
    return text.replace(" for host", "") if text else "none"


def _nodes(group: Iterable[Difference]) -> Iterator[str]:
    moved: Counter[tuple[str, str]] = Counter()
    names: dict[str, list[str]] = {"gone": [], "new": []}
    for one in group:
        if one.a is None or one.b is None:
            names["gone" if one.b is None else "new"].append(one.name)
        else:
            (backend_a, _, in_a), (backend_b, _, in_b) = one.a.partition(" in "), one.b.partition(" in ")
            moved[(backend_a, backend_b) if backend_a != backend_b else (in_a, in_b)] += 1
    for (before, now), count in moved.items():
        yield f"{counted(count, 'node')} from {before} to {now}"
    for how, found in names.items():
        if found:
            yield f"{counted(len(found), 'node')} {how}: {_some(found)}"


def _files(group: Iterable[Difference]) -> Iterator[str]:
    """Yields which files of which backends differ; a variant may have another number in each bundle."""
    found: dict[str, list[str]] = {}
    for one in group:
        path = PurePosixPath(one.name)
        names = found.setdefault(path.parent.name.partition("-")[2], [])
        names += [path.name] if path.name not in names else []
    for backend, names in found.items():
        yield f"{backend}: other {_some(names)}"


def _variant(one: Difference) -> Iterator[str]:
    if one.a is None or one.b is None:
        return  # the line of all variants says so
    fields = [_FIELDS.get(field, field) for field in changed_fields(one.a, one.b) if field not in _TOLD_ELSEWHERE]
    if fields:
        yield f"{one.b['id']}: {_some(fields)}"


def _errors(by_part: Mapping[str, Sequence[Difference]]) -> Iterator[str]:
    both = [one for one in by_part.get("max error", ()) if one.a is not None and one.b is not None]
    if both:
        yield f"max error {max(one.a for one in both):.2g} -> {max(one.b for one in both):.2g}"
    elif by_part.keys() == {"check"}:
        yield "other measured errors"


def _some(texts: Sequence[str]) -> str:
    more = len(texts) - MAX_NAMED
    return ", ".join(texts[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def _text(value: Any) -> str:
    """Returns plain data as people write them."""
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value[:DIGEST_DIGITS]
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    elif isinstance(value, list | tuple):
        text = ", ".join(map(_text, value))
    else:
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 3] + "..."
