# SPDX-License-Identifier: Apache-2.0
"""What a group that shares the processor did, as a line."""

from nndeploy.pacing.group import GroupShares


def group_text(found: GroupShares) -> str:
    """Returns what a group did while this process was one of its members."""
    members = f"{found.members} member{'s' * (found.members != 1)}"
    return (
        f"nndeploy: paced: the group {found.name!r} worked {found.all:.1%} of a processor's time while this run was in "
        f"it, of {100 * found.limit:.4g}% at most, this run {found.own:.1%}; {members} at the end"
    )
