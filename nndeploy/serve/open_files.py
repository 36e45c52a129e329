# SPDX-License-Identifier: Apache-2.0
"""How many connections fit into the files that this process may have open; the limit is raised as far as it may be.

Law: what clients hold open never takes the last descriptors, which bundles, workers and probes need.
"""

import resource
from collections.abc import Sequence

from nndeploy.stream.engine.process_figures import num_open_files

SPARE = 64
"""Descriptors for bundles, workers and libraries."""
RESERVED = 16
"""Places of a listener beyond those for requests, where only health and figures are answered."""


def shares(wanted: Sequence[int]) -> list[int]:
    """Returns how many connections each of several listeners may have of those that it wants, at least 1."""
    num_open = num_open_files()
    needed = num_open + SPARE + sum(wanted)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    left = needed if soft == resource.RLIM_INFINITY else soft
    room = left - num_open - SPARE
    return [max(1, min(one, one * room // sum(wanted))) for one in wanted]
