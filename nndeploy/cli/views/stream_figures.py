# SPDX-License-Identifier: Apache-2.0
"""What `run` and `top` both tell of a stream: what limits it, and what became of what its sources read."""

from collections.abc import Mapping

SOURCE_COUNTS = {
    "num_read": "read",
    "num_dropped": "dropped",
    "num_unmatched": "without partner",
    "num_reconnects": "reconnects",
    "num_skipped": "skipped",
}
"""The counts of a source, and what people read of each."""


def limit_text(shares: Mapping[str, float]) -> str:
    """Returns what limits a stream: the busiest of its stages or the cores, by the share of the time that each was."""
    name, share = max(shares.items(), key=lambda item: item[1])
    return f"{name} limit{'s' * (name != 'cores')} ({min(share, 1.0):.0%} busy)"
