# SPDX-License-Identifier: Apache-2.0
"""What was measured of a bundle, as the page of `inspect --html` draws it: operators below the roof, stages of streams.

In: answers of `bench --operators --json` and `run --json`, which anybody may have written. Out: sections of HTML, whose
text is escaped.
"""

from collections.abc import Mapping, Sequence, Set
from typing import Any

from nndeploy.errors import DataError
from nndeploy.files.page import escaped
from nndeploy.values.amounts import ms_text

HINT = "nndeploy bench --operators --json or nndeploy run --json write one"
Row = tuple[str, Sequence[tuple[float, str]], Sequence[str]]
"""A name, bars as shares of the width with their class, and texts beside them."""


def measured_part(answer: Any, where: str, submodels: Set[str]) -> str:
    """Returns the section of one answer; `submodels` are those of the bundle.

    Raises:
        DataError: it is no such answer, or one of another bundle.
    """
    try:
        draw = _operators if "operators" in answer else _stages
        names = {row["submodel"] for row in answer["operators"]} if draw is _operators else set()
        drawn = draw(answer)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as err:
        raise DataError("contains nothing that was measured of a bundle", where=where, hint=HINT) from err
    if not names <= submodels:
        raise DataError("was measured of another bundle", where=where, hint=HINT)
    return drawn


def _operators(answer: Mapping[str, Any]) -> str:
    rows = answer["operators"]
    most = max(row["us"] for row in rows)
    drawn: list[Row] = [
        (
            f"{row['submodel']} {row['operator']}",
            [(row["us"] / most, "time"), ((row["roof_us"] or 0.0) / most, "least")],
            [
                f"{row['us']:.1f} us",
                f"{row['share']:.1%}",
                f"{row['roof_share']:.0%}" if row["roof_share"] else "",
                row["bound"] or "",
            ],
        )
        for row in rows
    ]
    reached = answer["roof_share"]
    told = f"a run takes {answer['run_us'] / 1e3:.3f} ms"
    told += "" if reached is None else f"; operators reach {reached:.0%} of the roof"
    key = "The dark part of a bar is the least time that the processor could take for it, its roof."
    return _section("Operators", told, key, ("operator", "time", "share", "roof", "bound by"), drawn)


def _stages(answer: Mapping[str, Any]) -> str:
    rows, ideal = answer["stages"], answer.get("ideal")
    drawn: list[Row] = [
        (
            row["stage"] + (" (slowest)" if ideal is not None and row["stage"] == ideal["stage"] else ""),
            [(row["busy_share"], "time"), (_waited(row, answer["seconds"]), "wait")],
            [
                str(int(row["workers"])),
                f"{row['busy_share']:.0%}",
                f"{int(row['records']):,}",
                ms_text(row["worked_ms"]["p50"]) if "p50" in row["worked_ms"] else "",
            ],
        )
        for row in rows
    ]
    told = f"{int(answer['items']):,} items, {answer['items_per_second']:,.1f} a second"
    if ideal is not None:
        told += f"; {ideal['share']:.0%} of the ideal, {ms_text(ideal['ms'])} an item for {ideal['stage']} alone"
    key = "A bar is the time in which the workers of a stage were busy; its light part waited for a core."
    return _section("Stream", told, key, ("stage", "workers", "busy", "records", "p50"), drawn)


def _waited(row: Mapping[str, Any], seconds: float) -> float:
    """Returns the share of the time of a stage's workers in which they waited for a core."""
    waited: float = row.get("core_wait_seconds", 0.0) / (seconds * row["workers"])
    busy: float = row["busy_share"]
    return min(busy, waited)


def _section(title: str, told: str, key: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    first, *others = columns
    head = f"<th>{first}</th><th></th>" + "".join(f"<th>{name}</th>" for name in others)
    body = "\n".join(map(_row, rows))
    return (
        f'<section class="measured"><div class="bar"><h2>{title}</h2><span>{escaped(told)}</span></div>'
        f'<div class="key">{key}</div><div class="card rows"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _row(row: Row) -> str:
    name, bars, texts = row
    drawn = "".join(
        f'<i class="{kind}" style="width:{100 * min(1.0, max(0.0, share)):.1f}%"></i>' for share, kind in bars
    )
    cells = "".join(f'<td class="num">{escaped(text)}</td>' for text in texts)
    return f'<tr><td>{escaped(name)}</td><td class="bars">{drawn}</td>{cells}</tr>'
