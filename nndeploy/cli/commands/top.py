# SPDX-License-Identifier: Apache-2.0
"""`nndeploy top`: what a running stream does, by the figures that it keeps in a file or serves on this machine."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import console_for, drawn_table, may_escape, print_table, that_fit
from nndeploy.cli.options.value_types import Number
from nndeploy.cli.views.stream_figures import SOURCE_COUNTS, limit_text, share_of, tuning_text
from nndeploy.errors import DataError, UnavailableError
from nndeploy.files.whole_files import read_regular
from nndeploy.stream.engine.metrics import HOST, JSON_PATH
from nndeploy.stream.engine.workers import StageFigures
from nndeploy.values.amounts import ms_text

EXAMPLES = """\b
Examples:
  nndeploy top metrics.json        of a run with --metrics metrics.json
  nndeploy top 9100 --once         of a run with --metrics-port 9100
"""
PERCENTILES = ("p50", "p90", "p99")
OUTCOMES = {"failed": "failed", "not_taken": "not taken", "forgotten_sessions": "sessions forgotten"}
"""What else there is to tell of records, where it is not 0."""
CORE_WAIT = "waits for a core"
MAX_BYTES = 16 << 20
SILENT_SECONDS = 5.0
"""A file that says nothing new for so long is of a stream that has ended."""
TIMEOUT_SECONDS = 5.0


@click.command("top", epilog=EXAMPLES)
@click.argument("where", metavar="FILE.json|PORT")
@click.option("--once", is_flag=True, help="Print the metrics once and exit.")
@click.option("--interval", type=Number(0.2, 60.0), default=1.0, show_default=True, help="Seconds between updates.")
def top(where: str, once: bool, interval: float) -> None:
    """Show live metrics of a running stream: rate, latency, load.

    FILE.json is that of `run --metrics`, PORT that of `run --metrics-port`. Runs until the stream ends or until Ctrl-C.
    """
    import sys

    found = figures_at(where)
    if once or not may_escape(sys.stdout):
        for title, columns, rows in _tables(where, found, None):
            print_table(title, columns, rows, right=columns[1:])
        return
    _watch(where, found, interval)


def figures_at(where: str) -> dict[str, Any]:
    """Returns the figures of a stream from a file, or a port of this machine.

    Raises:
        MissingInputError: there is no such file.
        UnavailableError: nobody serves figures at that port.
        DataError: what is there is something else.
    """
    text = _served(int(where)) if where.isdecimal() else read_regular(Path(where), MAX_BYTES)
    try:
        found = json.loads(text)
        if not {"records", "stages", "cores", "queues", "time"} <= found.keys():
            raise ValueError
    except (ValueError, AttributeError) as err:
        raise DataError("contains no stream metrics", where=where, hint="write them with run --metrics") from err
    return dict(found)


def _served(port: int) -> bytes:
    try:
        connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECONDS)
        connection.connect()
        slow = threading.Timer(TIMEOUT_SECONDS, connection.sock.shutdown, (socket.SHUT_RDWR,))
        slow.start()  # the other limit is for each byte
        try:
            connection.request("GET", JSON_PATH)
            answer = connection.getresponse()
            body = answer.read(MAX_BYTES)
        finally:
            slow.cancel()
            slow.join()
            connection.close()
    except (OSError, http.client.HTTPException, OverflowError) as err:
        hint = "run --metrics-port serves metrics while the stream runs"
        raise UnavailableError("nothing is listening there", where=f"{HOST}:{port}", hint=hint) from err
    return body if answer.status == http.client.OK else b""


def _tables(
    where: str, now: Mapping[str, Any], before: Mapping[str, Any] | None
) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns what `tables` does of figures that anybody may have written; raises a DataError where they are none."""
    try:
        return tables(now, before)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as err:
        raise DataError("contains no stream metrics", where=where) from err


def tables(now: Mapping[str, Any], before: Mapping[str, Any] | None) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns (title, columns, rows) of the tables that tell of figures, since those `before` where there are some."""
    seconds = max(now["time"] - before["time"] if before else now["seconds"], 1e-9)
    stages, were = _stages(now), _stages(before)
    rows = [_stage_row(stages[one["name"]], were.get(one["name"]), seconds, one["worked_ms"]) for one in now["stages"]]
    waits = [CORE_WAIT] if all("core_wait_ns" in stage for stage in now["stages"]) else []
    found = [
        (_title(now, before, seconds), ["stage", "workers", "busy", *waits, "records/s", *PERCENTILES], rows),
        ("waiting records", ["queue", "now", "most", *PERCENTILES], [_queue_row(one) for one in now["queues"]]),
    ]
    if sources := now.get("sources"):
        rows = [[one["name"], *(f"{one[key]:,}" for key in SOURCE_COUNTS)] for one in sources]
        found.append(("sources", ["source", *SOURCE_COUNTS.values()], rows))
    return found


def _title(now: Mapping[str, Any], before: Mapping[str, Any] | None, seconds: float) -> str:
    rate = (now["records"] - before["records"]) / seconds if before else now["records_per_second"]
    told = [f"{now['records']:,} records"]
    told += [f"{now[key]:,} {what}" for key, what in OUTCOMES.items() if now[key]]
    told.append(f"{rate:,.1f} a second")
    told += [f"{name} {ms_text(ms)}" for name, ms in now["latency_ms"].items()]
    if tuning := now.get("tuning"):
        told.append(tuning_text(tuning))
    were = _stages(before)
    shares = {name: share_of(stage, seconds, were.get(name)) for name, stage in _stages(now).items()}
    return ", ".join(told) + (f"; {limit_text(shares)}" if now["records"] else "")


def _stages(found: Mapping[str, Any] | None) -> dict[str, StageFigures]:
    """Returns what the stages and the cores did, by name."""
    every = (*found["stages"], found["cores"]) if found else ()
    return {one["name"]: _stage(one) for one in every}


def _stage(found: Mapping[str, Any]) -> StageFigures:
    num_workers, num_done, busy_ns = (found[count] for count in ("num_workers", "num_done", "busy_ns"))
    return StageFigures(found["name"], num_workers, num_done, busy_ns, core_wait_ns=found.get("core_wait_ns"))


def _stage_row(
    now: StageFigures, before: StageFigures | None, seconds: float, worked_ms: Mapping[str, float]
) -> list[str]:
    done = now.num_done - (before.num_done if before else 0)
    share = share_of(now, seconds, before)
    waited = [] if share.core_wait is None else [f"{share.core_wait:.0%}"]
    return [
        now.name,
        str(now.num_workers),
        f"{share.busy:.0%}",
        *waited,
        f"{done / seconds:,.1f}",
        *_percentiles(worked_ms),
    ]


def _queue_row(queue: Mapping[str, Any]) -> list[str]:
    return [queue["name"], str(queue["depth"]), str(queue["max_depth"]), *_percentiles(queue["waited_ms"])]


def _percentiles(found: Mapping[str, float]) -> Sequence[str]:
    return [ms_text(found[name]) if name in found else "" for name in PERCENTILES]


def _watch(where: str, found: Mapping[str, Any], interval: float) -> None:
    """Draws the figures again and again, until there are no new ones."""
    import sys

    from rich.console import Group
    from rich.live import Live

    before, heard = None, time.monotonic()
    console = console_for(sys.stdout)
    with Live(console=console, auto_refresh=False) as live:
        while time.monotonic() - heard < max(SILENT_SECONDS, 2 * interval):
            width = console.width
            shown = [(title, *that_fit(columns, rows, width)) for title, columns, rows in _tables(where, found, before)]
            live.update(Group(*(drawn_table(*one, width, right=one[1][1:]) for one in shown)), refresh=True)
            time.sleep(interval)
            try:
                now = figures_at(where)
            except UnavailableError:
                return  # it served them as long as it ran
            if now["time"] != found["time"]:
                before, found, heard = found, now, time.monotonic()
