# SPDX-License-Identifier: Apache-2.0
"""The memory that kernels and the library of delays share: plans, and the items that are under way.

The structures are those of `backends/nndeploy_kernels/c/base/pace.h`; all times are nanoseconds of CLOCK_MONOTONIC.
"""

import ctypes

import numpy as np

from nndeploy.pacing.plan.load_curve import Timeline
from nndeploy.pacing.plan.pace_plan import PacePlan
from nndeploy.values.types import Array

LIBRARY_VERSION = 3
"""NND_PACE_LIBRARY_VERSION: of the terms on which the library of delays sleeps."""
_WORKER_ALIGNMENT = 64
_LOG = 256  # NND_PACE_LOG

_POINT = np.dtype([
    ("before", "f8"), ("duration", "f8"), ("weight_before", "f8"), ("weight", "f8"), ("next", "f8"), ("parts", "i8"),
])  # fmt: skip
"""struct nnd_pace_point."""


class _Plan(ctypes.Structure):
    """struct nnd_pace_plan."""

    _fields_ = (
        ("points", ctypes.c_void_p), ("num_points", ctypes.c_int64), ("total", ctypes.c_double),
        ("stretch", ctypes.c_double), ("reserve", ctypes.c_double), ("burst", ctypes.c_double),
        ("least", ctypes.c_double),
    )  # fmt: skip


class _Worker(ctypes.Structure):
    """struct nnd_pace_worker."""

    _fields_ = (
        ("last", ctypes.c_int64), ("wake", ctypes.c_int64), ("wake_used", ctypes.c_int64), ("spent", ctypes.c_double),
        ("slept", ctypes.c_int64), ("sleeps", ctypes.c_int64), ("waiting_used", ctypes.c_int64),
        ("longest_run", ctypes.c_int64),
    )  # fmt: skip


class _Item(ctypes.Structure):
    """struct nnd_pace_item."""

    _fields_ = (
        ("pass_", ctypes.c_void_p), ("plan", ctypes.POINTER(_Plan)), ("begin", ctypes.c_int64),
        ("deadline", ctypes.c_int64), ("times", ctypes.c_void_p), ("order", ctypes.c_void_p),
        ("num_points", ctypes.c_int64), ("num_passed", ctypes.c_int64), ("num_workers", ctypes.c_int64),
        ("first", ctypes.c_int64), ("workers", ctypes.c_void_p), ("end", ctypes.c_int64), ("busiest", ctypes.c_int64),
        ("used", ctypes.c_int64), ("log", ctypes.c_int64 * (2 * _LOG)), ("late", ctypes.c_int64 * _LOG),
    )  # fmt: skip


class _PacedItem(ctypes.Structure):
    """struct nnd_paced_item of `backends/nndeploy_kernels/c/pacing/paced_item.h`."""

    _fields_ = (
        ("item", _Item), ("presets", ctypes.c_void_p), ("presets_after", ctypes.c_void_p), ("group", ctypes.c_void_p),
        ("member", ctypes.c_int64),
    )  # fmt: skip


class PlanMemory:
    """A plan as kernels read it; whoever has an item of it keeps it."""

    def __init__(self, plan: PacePlan, order: Array, stretch: float = 1.0) -> None:
        """Copies a plan; `order` tells of each point as which one it is passed.

        `stretch` is how many times as long as planned the work took in earlier runs.
        """
        columns = (plan.before, plan.durations, plan.weight_before, plan.weights, plan.next_durations, plan.parts)
        self._points = np.zeros(len(order), _POINT)
        for name, column in zip(_POINT.names or (), columns, strict=True):
            self._points[name] = column[order]
        self._presets = np.stack((plan.presets[order], plan.presets_after[order]))
        self._has_presets = plan.is_chosen
        self.struct = _Plan(
            self._points.ctypes.data, len(order), plan.total, stretch, plan.reserve, plan.burst, plan.least_delay
        )

    @property
    def presets_at(self) -> tuple[int | None, int | None]:
        """The addresses of the presets of all points, and of the sums behind them; None where no pairs were chosen."""
        if not self._has_presets:
            return None, None
        return self._presets[0].ctypes.data, self._presets[1].ctypes.data


class ItemMemory:
    """One item at a time that is under way: what it may take, and what its threads did."""

    def __init__(self, num_points: int, num_workers: int, group: int = 0, member: int = 0) -> None:
        """Makes room for points and workers; `group` is the address of the page of a group, in which it is a member."""
        self.times: Array = np.zeros(max(1, num_points), np.int64)
        self.order: Array = np.zeros(max(1, num_points), np.int64)
        self._memory = (ctypes.c_char * ((num_workers + 1) * _WORKER_ALIGNMENT))()
        start = ctypes.addressof(self._memory)
        start += -start % _WORKER_ALIGNMENT
        self.workers = (_Worker * num_workers).from_address(start)
        self._plan: PlanMemory | None = None
        self.waited: int | None = None
        """Nanoseconds for which the thread that began the item waited for a core; None where nobody counts them."""
        item = _Item(
            times=self.times.ctypes.data, order=self.order.ctypes.data, num_points=num_points,
            num_workers=num_workers, workers=start,
        )  # fmt: skip
        self._terms = _PacedItem(item=item, group=group or None, member=member)
        self._struct = self._terms.item
        self.address = ctypes.addressof(self._terms)

    @property
    def latency(self) -> int:
        """Nanoseconds from begin to end."""
        return int(self._struct.end - self._struct.begin)

    @property
    def used(self) -> int:
        """Nanoseconds of processor time of the thread that began the item."""
        return int(self._struct.used)

    @property
    def slept(self) -> int:
        """Nanoseconds of sleep."""
        return int(self.workers[0].slept)

    @property
    def worked(self) -> int:
        """Nanoseconds from begin to end without the sleeps."""
        return self.latency - self.slept

    @property
    def waiting_used(self) -> int:
        """Nanoseconds of processor time that sleeping took."""
        return int(self.workers[0].waiting_used)

    @property
    def longest_run(self) -> int:
        """The most nanoseconds of processor time between two sleeps."""
        return int(self.workers[0].longest_run)

    @property
    def late(self) -> list[int]:
        """By how many nanoseconds its sleeps ended later than planned; negative: earlier."""
        late: list[int] = self._struct.late[: min(self.workers[0].sleeps, _LOG)]
        return late

    @property
    def busiest(self) -> int:
        """The most nanoseconds of work in any `WINDOW_NS`."""
        return int(self._struct.busiest)

    def timeline(self) -> Timeline:
        """Returns when worker 0 slept; it ends with the last sleep that is remembered where there were more."""
        num_sleeps = int(self.workers[0].sleeps)
        sleeps = np.array(self._struct.log[: 2 * min(num_sleeps, _LOG)], float).reshape(-1, 2) - self._struct.begin
        return Timeline(float(self.latency if num_sleeps <= _LOG else sleeps[-1, 1]), sleeps)

    def take(self, plan: PlanMemory | None) -> None:
        """Sets the plan; without one the item is only measured."""
        if plan is not self._plan:
            self._plan = plan
            self._struct.plan = None if plan is None else ctypes.pointer(plan.struct)
            self._terms.presets, self._terms.presets_after = (None, None) if plan is None else plan.presets_at
