# SPDX-License-Identifier: Apache-2.0
"""Every call that touches a file, killed or failed, in a compile, an update, a stream and all that looks after bundles.

With --power, power is lost alone, which takes minutes. With --write, what is done stands in build/crash-points.jsonl,
and a call that was ended goes on after it: on the same commit of the code, so that nothing is taken for checked that
has changed.
"""

import contextlib
import functools
import gc
import itertools
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import crash_bundles
import crash_case
import crash_streams
import crash_updates
import figures
import file_faults
import power_loss
from commands import ran
from crash_case import Case, Content, content, imported_by, shared_memory_folder
from file_faults import FAULTS, Fault, in_child, recorded
from kept_results import append, newest
from report import Report, bench_parser

CASES = (*crash_bundles.ALL, *crash_updates.ALL, *crash_streams.ALL)
POWER = "power"
KINDS = ("kill", "kill in a write", "failed", POWER)
MOST_CALLS = 1 << 20
PROGRESS = figures.ROOT / "build" / "crash-points.jsonl"
MOST_CALLED_AGAIN = 250
"""Of more states of a disk than that some are only looked at, and the command is not called again."""

PAGE = """\
A library between the process and the C library ([file_faults.c](../../tests/bench/file_faults.c)) counts the calls
that open, write, sync, rename, link, remove, cut or close a file or a folder of the place that is worked on. The work
is done once for {calls} and each fault, in a process of its own: at that call the process is killed; killed half way
through a write; the write is a short one; or the call fails, with EIO, ENOSPC or EINTR, once or from then on. For a
loss of power the calls are recorded, and every state of the disk is built that they allow where bytes last only once
their file was synced, names only once their folder was, and all else is there, is not, or by half, in any order; of
more than seven such operations a sample.

After each, this holds: the name, the store or the bundle is byte for byte what it was or what a whole run makes it,
every bundle that a name stands for is whole to its last byte, nothing but temporary files is left, no error is an
internal one, and who ended with 0 has done the work, so that a loss of power does not take it back. A compile whose
backend met the fault may give another bundle, whole and with the model's answers. In a folder that a stream fills,
a loss of power may take files that the stream's journal does not count yet. Then the same command is called again (of a
compile and of many states of a disk after one in several), and must leave what a run that nothing happened to leaves; a
stream that is resumed loses no record and doubles none. After a compile with a cache `nndeploy cache verify` removes
what is damaged and then finds nothing, and compiles with the cache that is left, twice, and without give the same
bundle. Pictures of a stream are read from a place that no fault comes to: one that cannot be read is a failed record.

**{points} crash points and {states} states of a disk, {wrong} wrong.** Of the states {cuts} are of a box
whose bundle is updated (pulled, installed, followed, rolled back): {lost} boxes without a whole bundle.
"""
BELOW = """\
A fault that costs nothing (closing a file that was only read, removing a temporary one) may end with 0, which of a
stream with a bad record is 1."""


@dataclass
class Row:
    """What came of a case under a fault: points, by exit code (None: killed), and what was wrong."""

    case: str
    fault: str
    num_points: int = 0
    codes: dict[int | None, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


@contextlib.contextmanager
def workshop(case: Case) -> Iterator[tuple[Path, Path, Content, Content]]:
    """Yields the folder as it is before, one to work in, and the files of before and of after a whole run."""
    with shared_memory_folder() as top, contextlib.chdir(top):
        before, work = top / "before", top / "work"
        os.environ["NNDEPLOY_STORE"] = str(crash_case.STORE)
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = os.environ["HOME"] = str(work / "config")
        (work / "config").mkdir(parents=True)  # nothing is made below a home that is not there
        os.chdir(work)
        with case.beside():
            imported_by(lambda: case.before() or 0)
            shutil.copytree(work, before)
            imported_by(case.act)
            anew(before, work)
            ended = in_child(case.act, work)
            assert ended.code == case.code, f"{case.name}: {ended}"
            yield before, work, content(before), content(work)


def anew(before: Path, work: Path) -> None:
    for path in work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(before, work, dirs_exist_ok=True)


def points(case: Case, first: int, step: int) -> list[Row]:
    """Returns what came of a case where each fault meets its calls one by one, or some of them."""
    with workshop(case) as (before, work, old, new):
        return [_points(case, fault, range(first, MOST_CALLS, step), before, work, old, new) for fault in FAULTS]


def _points(case: Case, fault: Fault, calls: range, before: Path, work: Path, old: Content, new: Content) -> Row:
    row = Row(case.name, fault.name)
    for at in calls:
        anew(before, work)
        ended = in_child(case.act, work, fault, at)
        if not ended.was_reached:
            break
        if not ended.was_met:
            continue
        row.num_points += 1
        row.codes[ended.code] = row.codes.get(ended.code, 0) + 1
        try:
            hold(case, ended.code, work, old, new, again=row.num_points % case.then_every == 0)
        except Exception as err:
            row.wrong.append(f"call {at}, exit {ended.code}: {type(err).__name__}: {err}")
    return row


def losses(case: Case, step: int) -> Row:
    """Returns what came of a case where power was lost anywhere, and the disk has what it had to have."""
    row = Row(case.name, POWER)
    case = replace(case, holds=case.holds_without_power or case.holds)
    with workshop(case) as (before, work, old, new):
        anew(before, work)
        ended, operations = recorded(case.act, work)
        assert ended.code == case.code
        found = list(itertools.islice(power_loss.states(old, operations, work), 0, None, step))
        often = case.then_every * -(-len(found) // MOST_CALLED_AGAIN)
        for number, (is_done, disk) in enumerate(found):
            row.num_points += 1
            put(disk, work, before)
            try:
                hold(case, case.code if is_done else None, work, old, new, again=number % often == 0)
            except Exception as err:
                row.wrong.append(f"{'after the end' if is_done else 'before the end'}: {type(err).__name__}: {err}")
    return row


def put(disk: Content, work: Path, before: Path) -> None:
    """Makes the folder as it was found on a disk; what was there before keeps its time, by which a run knows it."""
    for path in work.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, data in sorted(disk.items()):
        if name.endswith("/"):
            (work / name).mkdir(exist_ok=True)
        else:
            (work / name).write_bytes(data)
            (work / name).chmod(0o600 if name.endswith(".key") else 0o644)
            if (before / name).is_file():
                os.utime(work / name, ns=((before / name).stat().st_mtime_ns,) * 2)


def hold(case: Case, code: int | None, work: Path, old: Content, new: Content, *, again: bool = True) -> None:
    """Checks what holds after a fault, and, with `again`, that the same command then does its work."""
    now = content(work)
    check(case, old, new, now)
    assert code not in (70, 99), "no typed error"
    if code == case.code:
        if case.leaves:
            assert all(now[name] != old.get(name) for name in case.leaves), "it ended well, and the work is not done"
        else:
            assert new.keys() <= now.keys(), "it ended well, and not all is there"
        if case.switch:
            assert now.get(case.switch) == new.get(case.switch), "it ended well, and the work is not done"
    if not again:
        return
    ended = in_child(case.then or case.act, work)
    now = content(work)
    assert ended.code in case.then_codes, f"again: exit {ended.code}"
    if case.repeats:
        same(new, now)
    else:
        case.holds(old, new, now)
        assert case.then or new.keys() <= now.keys(), "again: not all is there"


def check(case: Case, old: Content, new: Content, now: Content) -> None:
    if case.switch:
        allowed = (old.get(case.switch), new.get(case.switch))
        assert now.get(case.switch) in allowed, f"{case.switch} is neither the old nor the new file"
    case.holds(old, new, now)


def same(new: Content, now: Content) -> None:
    """Checks that the files are those of a whole run; young temporary files of a killed one may stay."""
    kept = {name: data for name, data in now.items() if not crash_case.is_temporary(name)}
    for files in (kept, new := dict(new)):
        files.pop("config/nndeploy/made-here", None)  # a list that may lose lines
    assert kept == new, f"after the second call these differ: {sorted(dict(kept.items() ^ new.items()))}"


@dataclass(frozen=True, slots=True)
class Task:
    """A part of the work: every fault at each `step`-th call of a case from `first` on; 0 is a loss of power."""

    case: int
    first: int = 1
    step: int = 1


def tasks(only: str, every: int) -> list[Task]:
    """Returns the work for the cases with `only` in their names, the longest first."""
    found = []
    for number, case in enumerate(CASES):
        if only in case.name:
            found.append(Task(number, 0, every))
            parts = max(1, case.parts // every) if case.is_failed else 0  # each has to be set up
            found += [Task(number, 1 + at * every, parts * every) for at in range(parts)]
    return sorted(found, key=lambda one: -CASES[one.case].parts)


def done(task: Task, until: float) -> tuple[Task, list[Row] | None]:
    """Returns what came of a task; None where there is no time left to begin it."""
    if time.monotonic() > until:
        return task, None
    case = CASES[task.case]
    return task, points(case, task.first, task.step) if task.first else [losses(case, task.step)]


def tree() -> str:
    """Returns what stands for the code that is committed: of another one nothing is taken for done."""
    parts = ["HEAD:nndeploy", "HEAD:backends", "HEAD:tests/bench"]
    return ran(["git", "-C", figures.ROOT, "rev-parse", *parts]).answer


def _row(data: dict[str, Any]) -> Row:
    codes = {None if code == "null" else int(code): count for code, count in data.pop("codes").items()}
    return Row(codes=codes, **data)


def joined(rows: list[tuple[Task, Row]]) -> list[Row]:
    found: dict[tuple[int, int], Row] = {}
    order = [POWER, *(fault.name for fault in FAULTS)]
    for task, row in rows:
        key = (task.case, order.index(row.fault))
        into = found.setdefault(key, Row(row.case, row.fault))
        into.num_points += row.num_points
        into.wrong += row.wrong
        for code, count in row.codes.items():
            into.codes[code] = into.codes.get(code, 0) + count
    return [found[key] for key in sorted(found)]


def put_table(rows: list[Row], report: Report) -> None:
    """Writes the rows as a table of cases, with the numbers of points of each kind."""
    kinds = ("killed:", "killed in a write:", "failed:", "power lost, states:")
    table = report.table("what is done", *kinds, "ends, exit codes", "wrong:")
    cases = list(dict.fromkeys(row.case for row in rows))
    for name in [*cases, ""]:
        of_case = [row for row in rows if name in ("", row.case)]
        counts = {kind: sum(row.num_points for row in of_case if kind == kind_of(row.fault)) for kind in KINDS}
        codes: dict[int, int] = {}
        for row in of_case:
            for code, count in row.codes.items():
                if code is not None:
                    codes[code] = codes.get(code, 0) + count
        ends = ", ".join(f"{code}: {codes[code]:,}" for code in sorted(codes))
        wrong = sum(len(row.wrong) for row in of_case)
        table.row(name or "**all**", *(f"{counts[kind]:,}" for kind in KINDS), ends, wrong)


def kind_of(fault: str) -> str:
    return fault if fault in KINDS else "failed"


def page(rows: list[Row], every: int, share: str) -> str:
    """Returns the text of the figure; `share` says what of the work is not in it."""
    num = sum(row.num_points for row in rows if row.fault != POWER)
    num_states = sum(row.num_points for row in rows if row.fault == POWER)
    wrong = sum(len(row.wrong) for row in rows)
    updates = {case.name for case in crash_updates.ALL}
    cuts = [row for row in rows if row.fault == POWER and row.case in updates]
    return PAGE.format(
        points=f"{num:,}", states=f"{num_states:,}", wrong=wrong,
        cuts=f"{sum(row.num_points for row in cuts):,}", lost=sum(len(row.wrong) for row in cuts),
        calls=("each call" if every == 1 else f"one call in {every}") + share,
    )  # fmt: skip


def main() -> int:
    parser = bench_parser(__doc__)
    only = "the cases with NAME in their names; EVERY takes the place of --every for them"
    parser.add_argument("--only", action="append", metavar="NAME[=EVERY]", help=only)
    parser.add_argument("--every", type=int, default=1, help="of calls and of states of a disk, take every so many")
    parser.add_argument("--power", action="store_true", help="losses of power alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="so many processes at once")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then no other part of the work is begun")
    options = parser.parse_args()
    if options.power and options.write:
        parser.error("the page is about all faults")
    file_faults.preloaded()
    now, num_left = tree(), 0
    kept = {name: one["rows"] for name, one in newest(PROGRESS).items() if options.write and one["tree"] == now}
    names = [name.partition("=")[::2] for name in options.only or [""]]
    asked = [task for name, every in names for task in tasks(name, int(every or options.every))]
    asked = [task for task in asked if not (options.power and task.first)]
    found = [(task, _row(row)) for task in asked for row in kept.get(repr(task), ())]
    left = [task for task in asked if repr(task) not in kept]
    for number in {task.case for task in left}:
        with workshop(CASES[number]):  # imports here what the children of all tasks will need
            pass
    gc.freeze()  # a collection in a child would copy every page of this process
    gc.disable()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # who ends this ends its workers too
    as_ever: dict[str, Any] = {"initializer": signal.signal, "initargs": (signal.SIGTERM, signal.SIG_DFL)}
    with multiprocessing.get_context("fork").Pool(options.jobs, maxtasksperchild=1, **as_ever) as pool:
        until = time.monotonic() + 60 * options.minutes
        for task, rows in pool.imap_unordered(functools.partial(done, until=until), left, chunksize=1):
            if rows is None:
                num_left += 1
                continue
            if options.write:
                append(PROGRESS, {"tree": now, "name": repr(task), "rows": [asdict(row) for row in rows]})
            found += [(task, row) for row in rows]
        pool.close()  # a signal that ends a worker just forked may be lost, and that one waited for for ever
        pool.join()
    rows = joined(found)
    with Report(options, "robustness.md", "Crash points") as report:
        report.text(page(rows, options.every, f" ({num_left} parts of this were left out)" if num_left else ""))
        put_table(rows, report)
        report.text(BELOW)
    for row in rows:
        for line in row.wrong:
            print(f"{row.case}, {row.fault}: {line}")
    return any(row.wrong for row in rows)


if __name__ == "__main__":
    sys.exit(main())
