# SPDX-License-Identifier: Apache-2.0
"""A process that works in a group as fast as it is let: `python group_member.py LIBRARY FOLDER NAME LIMIT SECONDS`.

It passes a point every quarter of a millisecond of its work, and prints the nanoseconds of processor time that it took
between its first point and its last, and how many its clock moved meanwhile.
"""

import sys
import time
from pathlib import Path

from nndeploy.pacing.run import group
from nndeploy.pacing.run.group import PaceGroup
from nndeploy.pacing.run.item import ItemMemory
from nndeploy.pacing.run.library import PaceLibrary

PART_NS = 250_000
PARTS = 20


def main(library_path: str, folder: str, name: str, limit: str, seconds: str) -> None:
    """Joins, says so, works, leaves."""
    group.FOLDER = Path(folder)
    library = PaceLibrary(Path(library_path))
    place = PaceGroup.join(name, float(limit), library)
    item = ItemMemory(1, 1, place.address, place.member)
    print("joined", place.member, flush=True)
    began, used = time.monotonic_ns(), time.process_time_ns()
    while time.monotonic_ns() < began + float(seconds) * 1e9:
        library.begin(item.address, 0, 0)
        for _ in range(PARTS):
            until = time.thread_time_ns() + PART_NS
            while time.thread_time_ns() < until:
                pass
            library.point(0)
        library.end()
    print(time.process_time_ns() - used, time.monotonic_ns() - began, flush=True)
    place.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
