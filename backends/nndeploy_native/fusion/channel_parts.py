# SPDX-License-Identifier: Apache-2.0
"""Moved channels of moved channels  =>  moved channels: a concatenation that is only shuffled and split is not written.

    channel_parts(channel_parts(a, b), c)   =>   channel_parts(a, b, c)

Only where every reader of the inner step can read its inputs instead: then the inner step is dead.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.usage import readers_of
from nndeploy_native.steps.movement import MAX_PARTS, ChannelParts
from nndeploy_native.steps.step import NativeStep


def fuse_channel_parts(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with every possible join made; the inner steps are gone."""
    steps, gone = list(steps), set[int]()
    readers = readers_of(steps)
    for number, maker in enumerate(steps):
        if not isinstance(maker, ChannelParts) or maker.output.name in kept:
            continue
        of_maker = readers.get(maker.output.name, [])
        joined = {reader: one for reader in of_maker if (one := _joined(maker, steps[reader])) is not None}
        if len(joined) == len(of_maker):
            gone.add(number)
            for reader, step in joined.items():
                steps[reader] = step
    return [step for number, step in enumerate(steps) if number not in gone]


def _joined(maker: ChannelParts, step: NativeStep) -> ChannelParts | None:
    """Returns a step that reads what `maker` reads instead of what it makes; None where that is too much."""
    if not isinstance(step, ChannelParts):
        return None
    sources = [
        (maker.xs[maker.channels[channel][0]], maker.channels[channel][1])
        if step.xs[k] == maker.output
        else (step.xs[k], channel)
        for k, channel in step.channels
    ]
    xs = list(dict.fromkeys(x for x, _ in sources))
    if len(xs) > MAX_PARTS:
        return None
    return ChannelParts(step.output, tuple(xs), tuple((xs.index(x), channel) for x, channel in sources))
