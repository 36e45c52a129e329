# SPDX-License-Identifier: Apache-2.0
"""A batch as a page: models by targets with their bundles, what failed and why, what gates found, every job.

One file of HTML that loads nothing and needs no server; the bundles are links relative to it. Every name is anybody's:
all of them are escaped, and the page's own policy forbids to load anything.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from nndeploy.farm.outcome import Outcome
from nndeploy.farm.reports.batch import Batch, Finding, grid_of
from nndeploy.files.page import escaped, filled
from nndeploy.values.amounts import counted, ms_text, size_text


class _Links:
    """Paths of bundles as addresses that are relative to a page's folder."""

    def __init__(self, page: Path, fleet_folder: Path) -> None:
        self._page_folder = str(page.absolute().parent)
        self._fleet_folder = fleet_folder.absolute()
        self._addresses: dict[str, str] = {}

    def link(self, one: Outcome, text: str) -> str:
        """Returns a text as a link to a job's bundle, or alone where it has none; the text is HTML already."""
        if not ((one.is_good or one.has_other_bundle) and one.output):
            return text
        address = self._addresses.get(one.output) or self._address(one.output)
        return f'<a href="{address}">{text}</a>'

    def _address(self, output: str) -> str:
        path = os.path.relpath(self._fleet_folder / output, self._page_folder)
        address = self._addresses[output] = "./" + quote(_bytes_of(path))
        return address


def _bytes_of(path: str) -> bytes:
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:  # no file can be called so
        return path.encode("utf-8", "backslashreplace")


def batch_page(batch: Batch, page: Path, fleet_folder: Path) -> str:
    """Returns the page, which is to stand at `page`; relative outputs are those of `fleet_folder`."""
    links = _Links(page, fleet_folder)
    targets = batch.targets
    parts = {
        "title": f"{counted(len(batch.outcomes), 'job')}, {len(batch.failures):,} failed",
        "facts": _facts(batch),
        "tiles": "".join(_tile(name, count) for name, count in batch.counts.items() if count),
        "gates": _gates(batch.told),
        "failures": _failures(batch.failures),
        "targets": "".join(f"<th>{escaped(target)}</th>" for target in targets),
        "grid": "\n".join(
            f"<tr>{_name(model, variant)}{''.join(_cell(found.get(target), links) for target in targets)}</tr>"
            for (model, variant), found in grid_of(batch.outcomes).items()
        ),
        "jobs": "\n".join(_job(one, links) for one in batch.outcomes),
    }
    return filled("nndeploy.farm.reports", "batch_page.html", parts)


def _facts(batch: Batch) -> str:
    facts = (("started", batch.started), ("took", f"{batch.seconds:,.0f} s"), ("plan", batch.plan[:12]))
    return "".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in facts)


def _tile(name: str, count: int) -> str:
    return f'<div class="card tile"><b>{count:,}</b><small>{escaped(name)}</small></div>'


def _card(title: str, columns: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f"<th>{column}</th>" for column in columns)
    return (
        f'<div class="card"><h2>{title}</h2><div class="rows"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{chr(10).join(rows)}</tbody></table></div></div>"
    )


def _gates(findings: Iterable[Finding]) -> str:
    rows = [
        f'<tr><td><span class="dot {"bad" if one.is_failure else "idle"}"></span>{escaped(one.gate)}</td>'
        f"{_names(one)}<td>{escaped(one.text)}</td></tr>"
        for one in findings
    ]
    return _card("Gates and warnings", ("gate", "model", "target", "what was found"), rows) if rows else ""


def _failures(failures: Iterable[Outcome]) -> str:
    rows = [
        f"<tr>{_names(one)}<td>{_status(one)}</td>"
        f"<td>{escaped(one.reason)}{_hint(one.error)}{_command(one.repeat)}</td></tr>"
        for one in failures
    ]
    return _card("What failed", ("model", "target", "status", "why, and how to repeat it"), rows) if rows else ""


def _hint(error: Mapping[str, object] | None) -> str:
    return f"<small>{escaped(str(error['hint']))}</small>" if error is not None and error["hint"] else ""


def _command(command: str) -> str:
    return f"<small><code>{escaped(command)}</code></small>" if command else ""


def _name(model: str, variant: str) -> str:
    small = f"<small>{escaped(variant)}</small>" if variant else ""
    return f'<td class="name">{escaped(model)}{small}</td>'


def _names(one: Outcome | Finding) -> str:
    return f'{_name(one.model, one.variant)}<td class="name">{escaped(one.target)}</td>'


def _status(one: Outcome) -> str:
    kind = one.status if one.is_good else "bad" if one.is_failure else "idle"
    return f'<span class="dot {kind}"></span>{one.status}'


def _cell(one: Outcome | None, links: _Links) -> str:
    if one is None:
        return "<td></td>"
    if not one.is_good:
        told = f"<small>{size_text(one.size)}</small>" if one.has_other_bundle else ""
        return f'<td title="{escaped(one.reason)}">{links.link(one, _status(one))}{told}</td>'
    figures = ([ms_text(one.latency_ms)] if one.latency_ms is not None else []) + [size_text(one.size)]
    return f'<td title="{_shares(one)}">{links.link(one, _status(one))}<small>{", ".join(figures)}</small></td>'


def _job(one: Outcome, links: _Links) -> str:
    figures = (
        ms_text(one.latency_ms) if one.latency_ms is not None else "",
        size_text(one.size) if one.size else "",
        f"{one.max_error:.3g}" if one.max_error is not None else "",
    )
    numbers = "".join(f'<td class="num">{figure}</td>' for figure in figures)
    bundle = links.link(one, escaped(one.output)) if one.is_good or one.has_other_bundle else ""
    seconds = f"{one.seconds:,.1f} s" if one.seconds else ""
    return (
        f"<tr>{_names(one)}<td>{_status(one)}</td>{numbers}"
        f'<td>{_shares(one)}</td><td class="num">{seconds}</td><td>{bundle}</td></tr>'
    )


def _shares(one: Outcome) -> str:
    shares = sorted(one.backends.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{escaped(name)} {share:.0%}" for name, share in shares)
