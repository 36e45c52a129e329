# SPDX-License-Identifier: Apache-2.0
"""Runs of several processes that share a part of the processor: a page of memory, and a place in it for each process.

In: a name and a limit. Out: the address of the page and the number of a place, for the library of delays, which alone
pays and sleeps (`backends/nndeploy_kernels/c/pacing/group.h`). Laws: together members never take more than the limit,
over any time that is long beside what they do between two points; a member that is killed leaves nothing that others
wait for; a page that is not a regular file of this account alone, of the right size and form, is not used.

The page is made whole before it has its name and stays when all have left: 4 KiB, until the machine starts anew.
"""

import ctypes
import mmap
import os
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.pacing.run.library import PaceLibrary

FOLDER = Path("/dev/shm")  # noqa: S108 where pages of memory have names; each is checked before it is used
PAGE_BYTES = 4096
MAGIC = b"nndpace\0"
VERSION = 1
MEMBERS = 62
_MODE = 0o600
_MILLION = 1_000_000
_START_BITS = 40
_TRIES = 100
_GONE = "ZXx"


class _Member(ctypes.Structure):
    """struct nnd_group_member."""

    _fields_ = (
        ("identity", ctypes.c_int64), ("limit", ctypes.c_int64), ("paid", ctypes.c_int64), ("paid_at", ctypes.c_int64),
        ("worked", ctypes.c_int64), ("_rest", ctypes.c_char * 24),
    )  # fmt: skip


class _Group(ctypes.Structure):
    """struct nnd_group."""

    _fields_ = (
        ("magic", ctypes.c_char * 8), ("version", ctypes.c_int64), ("_rest", ctypes.c_char * 48),
        ("free_at", ctypes.c_int64), ("worked", ctypes.c_int64), ("_more", ctypes.c_char * 48),
        ("members", _Member * MEMBERS),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupShares:
    """What a group did while this process was one of its `members`, in shares of one processor: `all` and its `own`."""

    name: str
    members: int
    limit: float
    all: float
    own: float


class PaceGroup:
    """The place of this process in a group; every pacer that joins gets the same one, the last that leaves frees it."""

    _joined: "dict[str, PaceGroup]" = {}  # noqa: RUF012 of the process, under the lock
    _lock = threading.Lock()

    def __init__(self, name: str, limit: float, library: PaceLibrary) -> None:
        """Opens or makes the page of a group and takes a place in it; see `join`."""
        self.name, self._library = name, library
        self._limit = round(limit * _MILLION)
        self._page = _page(FOLDER / f"nndeploy-pace-{os.geteuid()}-{name}")
        self._group = _Group.from_buffer(self._page)
        self.address = ctypes.addressof(self._group)
        self._identity = _identity(os.getpid())
        self.member = self._taken_place()
        self._num_joined = 0
        self._last: GroupShares | None = None
        self._began_ns, self._worked_before = time.monotonic_ns(), int(self._group.worked)
        self._check_limit()

    @classmethod
    def join(cls, name: str, limit: float, library: PaceLibrary) -> "PaceGroup":
        """Returns the place of this process in the group `name`, whose members work at most `limit` (0..1) together.

        Raises:
            UnavailableError: its page cannot be used, or all places are taken.
            UsageError: its members have another limit.
        """
        with cls._lock:
            group = cls._joined.get(name)
            if group is None:
                group = cls._joined[name] = cls(name, limit, library)
            elif group._limit != round(limit * _MILLION):
                raise UsageError(_other_limit(name, group._limit, 1, limit))
            group._num_joined += 1
            return group

    def leave(self) -> None:
        """Says that one pacer less takes part; the last one pays for what is left and gives the place back."""
        with self._lock:
            self._num_joined -= 1
            if self._num_joined == 0:
                del self._joined[self.name]
                self._library.group_pay(self.address, self.member)
                self._last = self.shares()
                self._give_back()

    def shares(self) -> GroupShares:
        """Returns what was worked since this process came, and until it left."""
        if self._last is not None:
            return self._last
        took = max(1, time.monotonic_ns() - self._began_ns)
        return GroupShares(
            self.name, sum(1 for _ in self._living()), self._limit / _MILLION,
            (self._group.worked - self._worked_before) / took, self._group.members[self.member].worked / took,
        )  # fmt: skip

    def _taken_place(self) -> int:
        """Returns the number of a place that is ours from here on: one of nobody, or of a process that is gone.

        Raises:
            UnavailableError: there is none.
        """
        for number, member in enumerate(self._group.members):
            found = int(member.identity)
            is_free = found == 0 or not _is_living(abs(found))
            if is_free and self._library.group_take(self.address, number, found, self._identity, self._limit):
                return number
        raise UnavailableError(f"the group {self.name!r} already has the maximum of {MEMBERS} members")

    def _living(self) -> Iterator[_Member]:
        for member in self._group.members:
            identity = int(member.identity)
            if identity == self._identity or (identity > 0 and _is_living(identity)):
                yield member

    def _check_limit(self) -> None:
        others = [member for member in self._living() if member.identity != self._identity]
        if other := next((int(member.limit) for member in others if member.limit != self._limit), 0):
            self._give_back()
            raise UsageError(_other_limit(self.name, other, len(others), self._limit / _MILLION))

    def _give_back(self) -> None:
        self._library.group_take(self.address, self.member, self._identity, 0, 0)


def _other_limit(name: str, limit: int, num_members: int, wanted: float) -> str:
    return (
        f"the group {name!r} has a CPU limit of {limit / _MILLION:.4g}, by {num_members} of its members: "
        f"{wanted:.4g} is another one"
    )


def _page(path: Path) -> mmap.mmap:
    """Returns the page of a group, made where there is none.

    Raises:
        UnavailableError: it cannot be used.
    """
    try:
        descriptor = _opened(path)
    except OSError as err:
        raise UnavailableError(
            f"the shared memory of the group cannot be opened: {err.strerror}", where=str(path)
        ) from err
    try:
        if wrong := _misfit(os.fstat(descriptor)):
            raise UnavailableError(
                f"the shared memory of the group is not usable: {wrong}",
                where=str(path),
                hint="remove it or use another group name",
            )
        page = mmap.mmap(descriptor, PAGE_BYTES)
    finally:
        os.close(descriptor)
    if page[: len(MAGIC)] != MAGIC or int.from_bytes(page[8:16], "little") != VERSION:
        raise UnavailableError(
            "the shared memory of the group has another version", where=str(path), hint="remove it once nobody uses it"
        )
    return page


def _opened(path: Path) -> int:
    """Returns a descriptor of the page, which has its name only once it is whole."""
    for _ in range(_TRIES):  # who else makes it at the same time is sooner at most a few times
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            pass
        descriptor = os.open(path.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, _MODE)
        try:
            os.fchmod(descriptor, _MODE)
            os.pwrite(descriptor, (MAGIC + VERSION.to_bytes(8, "little")).ljust(PAGE_BYTES, b"\0"), 0)
            _link(descriptor, path)
        except FileExistsError:
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return descriptor
    raise FileExistsError(0, "other processes keep creating and removing it", str(path))


def _link(descriptor: int, path: Path) -> None:
    """Gives a file without a name one; Python follows the link to it only where it is told a folder as well."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _misfit(found: os.stat_result) -> str:
    """Returns why a file is not the page of this account, or ""."""
    if not stat.S_ISREG(found.st_mode):
        return "it is not a regular file"
    if found.st_uid != os.geteuid():
        return f"it belongs to the account {found.st_uid}, not to {os.geteuid()}"
    if stat.S_IMODE(found.st_mode) != _MODE:
        return f"its mode is {stat.S_IMODE(found.st_mode):o}, not {_MODE:o}"
    if found.st_nlink != 1:
        return f"it has {found.st_nlink} names, not one"
    return "" if found.st_size == PAGE_BYTES else f"it has {found.st_size} bytes, not {PAGE_BYTES}"


def _identity(process: int) -> int:
    """Returns what tells a process from every other one: its number and when it began; 0 where there is none."""
    try:
        text = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return 0
    state, *fields = text[text.rindex(b")") + 2 :].split()
    if state.decode() in _GONE:
        return 0
    return process << _START_BITS | int(fields[18]) & ((1 << _START_BITS) - 1)


def _is_living(identity: int) -> bool:
    return _identity(identity >> _START_BITS) == identity
