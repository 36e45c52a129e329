# SPDX-License-Identifier: Apache-2.0
"""Processes that share a part of the processor: never above it together, whoever is killed; a wrong page is one line.

What real processes took is told by the system's clocks of processor time, which no other work on the machine moves: a
machine that is busy with something else makes them take less, never more.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import group_member
import pytest
from c_library import library_from_source
from virtual_clock import VirtualPace

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.run import group
from nndeploy.pacing.run.group import MEMBERS, PAGE_BYTES, PaceGroup
from nndeploy.pacing.run.item import ItemMemory
from nndeploy.pacing.run.library import PaceLibrary

MS = 1_000_000
LIMIT = 0.6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(group, "FOLDER", tmp_path)
    monkeypatch.setattr(PaceGroup, "_joined", {})
    return tmp_path


def page_of(folder: Path, name: str) -> Path:
    return folder / f"nndeploy-pace-{os.geteuid()}-{name}"


def test_structures_are_those_of_the_header(tmp_path: Path) -> None:
    places = {
        "nnd_group": (group._Group, ("version", "free_at", "worked", "members")),
        "nnd_group_member": (group._Member, ("identity", "limit", "paid", "paid_at", "worked")),
    }
    numbers = ",".join(
        ",".join((f"sizeof(struct {name})", *(f"offsetof(struct {name}, {field})" for field in fields)))
        for name, (_, fields) in places.items()
    )
    source = (
        '#include "pacing/group.h"\n#include <stddef.h>\n__attribute__((visibility("default"))) '
        f"long places[] = {{{numbers}, NND_GROUP_MEMBERS, NND_GROUP_VERSION}};"
    )
    library = ctypes.CDLL(str(library_from_source([source], tmp_path)))
    want = [
        number
        for struct, fields in places.values()
        for number in (ctypes.sizeof(struct), *(getattr(struct, field).offset for field in fields))
    ]
    assert ctypes.sizeof(group._Group) == PAGE_BYTES
    want += [MEMBERS, group.VERSION]
    assert list((ctypes.c_long * len(want)).in_dll(library, "places")) == want


def worked(library: VirtualPace, place: PaceGroup, item: ItemMemory, parts: list[int]) -> list[list[float]]:
    """Works for so long before each point; returns from when until when was slept, in milliseconds of the item."""
    library.begin(item.address, 0, 0)
    for part in parts:
        library.work(part)
        library.point(0)
    library.end()
    sleeps: list[list[float]] = (item.timeline().sleeps / MS).tolist()
    return sleeps


def test_what_was_worked_is_slept_for(virtual_pace: VirtualPace, folder: Path) -> None:
    place = PaceGroup.join("box", 0.5, virtual_pace)
    item = ItemMemory(1, 1, place.address, place.member)
    assert worked(virtual_pace, place, item, [2 * MS, 2 * MS]) == [[2, 4], [6, 8]]
    assert worked(virtual_pace, place, item, [MS, MS]) == [[2, 4]]  # after one millisecond it is too early
    virtual_pace.wait(100 * MS)
    assert worked(virtual_pace, place, item, [3 * MS]) == [[3, 6]]  # what nobody worked is lost
    assert place._group.worked == 9 * MS
    place.leave()


def test_several_members_wait_for_each_other(virtual_pace: VirtualPace, folder: Path) -> None:
    place = PaceGroup.join("box", 0.5, virtual_pace)
    first, second = (ItemMemory(1, 1, place.address, place.member + other) for other in range(2))
    virtual_pace.group_take(place.address, place.member + 1, 0, 1 << 41, 500_000)
    assert worked(virtual_pace, place, first, [2 * MS]) == [[2, 4]]
    place._group.members[place.member + 1].paid = virtual_pace.used - 3 * MS  # it worked meanwhile, elsewhere
    assert worked(virtual_pace, place, second, []) == [[0, 6]]
    place.leave()


def test_threads_that_work_at_once_owe_what_all_of_them_took(virtual_pace: VirtualPace, folder: Path) -> None:
    place = PaceGroup.join("box", 0.5, virtual_pace)
    item = ItemMemory(1, 1, place.address, place.member)
    virtual_pace.begin(item.address, 0, 0)
    place._group.members[place.member].paid -= 2 * MS  # of another thread
    virtual_pace.work(2 * MS)
    virtual_pace.point(0)
    virtual_pace.end()
    assert (item.timeline().sleeps / MS).tolist() == [[2, 8]]
    place.leave()


def test_a_page_with_nonsense_in_it_lets_nobody_wait_for_ever(virtual_pace: VirtualPace, folder: Path) -> None:
    place = PaceGroup.join("box", 0.5, virtual_pace)
    item = ItemMemory(1, 1, place.address, place.member)
    for nonsense in (1 << 62, -(1 << 62)):
        place._group.free_at = nonsense
        assert worked(virtual_pace, place, item, [2 * MS]) == [[2, 4]]
    place.leave()


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(pace_library: PaceLibrary, tmp_path: Path) -> Any:
    """Starts a member and waits until it has joined."""
    started = list[subprocess.Popen[str]]()

    def begun(seconds: float, limit: float = LIMIT) -> "subprocess.Popen[str]":
        arguments = [pace_library.path, str(tmp_path), "box", str(limit), str(seconds)]
        process = subprocess.Popen(
            [sys.executable, group_member.__file__, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith("joined"), process.communicate()[1]
        return process

    yield begun
    for process in started:
        process.kill()
        process.communicate()


def test_processes_together_take_no_more_than_the_limit_also_when_one_is_killed(start: Start, tmp_path: Path) -> None:
    begun = time.monotonic_ns()
    members = [start(1.2) for _ in range(3)]
    killed = start(60)
    time.sleep(0.3)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    late = start(0.5)
    ended = [[int(number) for number in process.communicate()[0].split()] for process in [*members, late]]
    took, longest = sum(used for used, _ in ended), max(wall for _, wall in ended)
    whole = time.monotonic_ns() - begun
    in_flight = 4 * 2 * MS  # what each may do beyond, between two of its points
    assert took <= LIMIT * whole + in_flight
    assert all(used > 0 for used, _ in ended)
    assert took > 0.01 * LIMIT * longest  # others may have the cores
    page = page_of(tmp_path, "box").read_bytes()
    identities = [int.from_bytes(page[128 + 64 * i : 136 + 64 * i], "little", signed=True) for i in range(MEMBERS)]
    assert {identity >> 40 for identity in identities if identity} <= {killed.pid}  # all others gave theirs back


def test_a_place_whose_process_is_gone_is_taken_over(pace_library: PaceLibrary, start: Start, folder: Path) -> None:
    gone = start(60)
    gone.kill()
    gone.wait()
    place = PaceGroup.join("box", 0.3, pace_library)  # nor has its limit any meaning
    assert place.member == 0
    assert place.shares().members == 1
    place.leave()


def test_members_have_one_limit(pace_library: PaceLibrary, start: Start, folder: Path) -> None:
    start(60)
    with pytest.raises(
        UsageError, match=r"the group 'box' has a CPU limit of 0.6, by 1 of its members: 0.5 is another"
    ):
        PaceGroup.join("box", 0.5, pace_library)
    place = PaceGroup.join("box", LIMIT, pace_library)
    assert place.member == 1  # who was refused left nothing
    assert place.shares().members == 2
    with pytest.raises(UsageError, match=r"0\.5 is another one"):
        PaceGroup.join("box", 0.5, pace_library)
    place.leave()


def test_all_pacers_of_a_process_are_one_member(pace_library: PaceLibrary, folder: Path) -> None:
    first, second = (PaceGroup.join("box", LIMIT, pace_library) for _ in range(2))
    assert first is second
    first.leave()
    assert first._group.members[first.member].identity != 0
    second.leave()
    assert first._group.members[first.member].identity == 0
    again = PaceGroup.join("box", 0.2, pace_library)
    assert again is not first
    again.leave()


def test_a_full_group_says_so(pace_library: PaceLibrary, folder: Path) -> None:
    place = PaceGroup.join("box", LIMIT, pace_library)
    for member in place._group.members:
        member.identity = place._identity
    monkey = PaceGroup._joined.pop("box")
    with pytest.raises(UnavailableError, match=f"maximum of {MEMBERS} members"):
        PaceGroup.join("box", LIMIT, pace_library)
    PaceGroup._joined["box"] = monkey
    monkey.leave()


def made(folder: Path, pace_library: PaceLibrary) -> Path:
    PaceGroup.join("box", LIMIT, pace_library).leave()
    return page_of(folder, "box")


def other_account(path: Path) -> None:
    os.chown(path, 12345, 12345)


WRONG: list[tuple[Callable[[Path], Any], str]] = [
    (lambda path: path.chmod(0o644), "its mode is 644, not 600"),
    (lambda path: os.truncate(path, 100), "it has 100 bytes, not 4096"),
    (lambda path: os.link(path, path.with_name("other")), "it has 2 names, not one"),
    (lambda path: (path.unlink(), path.mkdir()), "cannot be opened: Is a directory"),
    (lambda path: (path.rename(path.with_name("b")), path.symlink_to("b")), "cannot be opened: Too many levels"),
    (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), "not a regular file"),
    (lambda path: path.write_bytes(b"x" * 4096), "another version"),
    (lambda path: path.write_bytes(b"nndpace\0\2".ljust(4096, b"\0")), "another version"),
]


@pytest.mark.parametrize(("damage", "reason"), WRONG)
def test_a_page_that_is_not_ours_alone_is_one_line(pace_library, folder, damage, reason) -> None:
    path = made(folder, pace_library)
    assert path.stat().st_mode & 0o777 == 0o600
    damage(path)
    with pytest.raises(UnavailableError, match=reason) as caught:
        PaceGroup.join("box", LIMIT, pace_library)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_page_of_another_account_is_not_used(pace_library: PaceLibrary, folder: Path) -> None:
    other_account(made(folder, pace_library))
    with pytest.raises(UnavailableError, match="belongs to the account 12345, not to 0"):
        PaceGroup.join("box", LIMIT, pace_library)


def test_a_folder_without_room_for_pages_is_one_line(pace_library, folder, monkeypatch) -> None:
    monkeypatch.setattr(group, "FOLDER", folder / "none")
    with pytest.raises(UnavailableError, match="cannot be opened: No such file"):
        PaceGroup.join("box", LIMIT, pace_library)


def test_many_who_make_the_page_at_once_have_the_same_one(pace_library: PaceLibrary, folder: Path) -> None:
    pages, barrier = list[Any](), threading.Barrier(8)

    def make() -> None:
        barrier.wait()
        pages.append(group._page(page_of(folder, "box")))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pages[0][4000:4004] = b"same"
    assert [page[4000:4004] for page in pages] == [b"same"] * 8
    assert [path.name for path in folder.iterdir()] == [page_of(folder, "box").name]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\nb", "x" * 65, "-a", "a b", "ä"])
def test_names_stay_in_the_folder(name: str) -> None:
    from nndeploy.pacing.plan.goal import group_name

    with pytest.raises(UsageError, match="is no name"):
        group_name(name)
    assert group_name("box-1.a_B") == "box-1.a_B"


@pytest.mark.parametrize("other", [{"max_latency_ns": 5}, {"total_ns": 5}, {}])
def test_a_group_shares_a_limit_and_nothing_else(other: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="can only share a CPU limit"):
        PaceGoal(group="box", **other)  # type: ignore[arg-type]
