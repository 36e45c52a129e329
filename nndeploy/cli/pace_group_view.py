# SPDX-License-Identifier: Apache-2.0
"""What a group that shares the processor did, as a line."""

from nndeploy.pacing.group import GroupShares


def group_text(found: GroupShares) -> str:
    """Returns what a group did while this process was one of its members."""
    members = f"{found.members} member{'s' * (found.members != 1)}"
    return (
        f"nndeploy: paced: group {found.name!r} used {found.all:.1%} of one core while this run was in it, "
        f"limit {100 * found.limit:.4g}%; this run {found.own:.1%}; {members} at the end"
    )
