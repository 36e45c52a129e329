# SPDX-License-Identifier: Apache-2.0
"""Which items of several sources belong together: each item is in one group, whatever source was faster."""

import random
from collections import Counter, defaultdict

import pytest

from nndeploy.stream.items import Item
from nndeploy.stream.sources.joiners import Joiner, Waiting
from nndeploy.stream.sources.source_rules import JoinRules

NAMES = ("a", "b", "c")


def waiting(source, value, *, by="key", since=0):
    item = Item(0, f"{NAMES[source]} {value}", "x", dict)
    return Waiting(source, item, since, **({"time": value} if by == "time" else {"key": value}))


def of_group(group):
    return tuple(one.item.origin for one in group.members)


class Asked:
    """A joiner with all that came out of it, and the most that it held of a source."""

    def __init__(self, rules, num_sources=2):
        self.joiner = Joiner(NAMES[:num_sources], rules)
        self.groups, self.most = [], 0

    def take(self, groups):
        self.groups += groups
        held = [self.joiner._matches.count(source) for source in range(len(self.joiner._names))]
        self.most = max(self.most, *held)

    def joined(self):
        return [of_group(group) for group in self.groups if not group.reason]

    def alone(self):
        return {of_group(group)[0]: group.reason for group in self.groups if group.reason}


def interleaved(streams, dice):
    """Yields (source, value) in an order in which each source keeps its own, and (source, None) at each end."""
    left = {source: [*values, None] for source, values in enumerate(streams)}
    while left:
        source = dice.choice(list(left))
        yield source, left[source].pop(0)
        if not left[source]:
            del left[source]


def run(streams, rules, dice, *, by):
    asked = Asked(rules, len(streams))
    for source, value in interleaved(streams, dice):
        if value is None:
            asked.take(asked.joiner.end(source))
        else:
            asked.take(asked.joiner.put(waiting(source, value, by=by)))
    return asked


@pytest.mark.parametrize("num_sources", [2, 3])
def test_equal_keys_are_joined_however_the_sources_interleave(num_sources) -> None:
    dice = random.Random(num_sources)  # noqa: S311 - no secret
    for _ in range(150):
        streams = [[dice.randrange(8) for _ in range(dice.randrange(12))] for _ in range(num_sources)]
        asked = run(streams, JoinRules("key"), dice, by="key")
        counts = [Counter(values) for values in streams]
        want = {key: min(count[key] for count in counts) for key in range(8)}
        found = Counter(int(group[0].split()[1]) for group in asked.joined())
        assert found == Counter({key: count for key, count in want.items() if count})
        assert all(len({one.split()[1] for one in group}) == 1 for group in asked.joined())
        assert sum(len(group.members) for group in asked.groups) == sum(map(len, streams)), "one is lost or doubled"


def by_merge(first, second, tolerance):
    """Returns the pairs of two sorted lists, found by going through both."""
    pairs, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if abs(first[i] - second[j]) <= tolerance:
            pairs.append((first[i], second[j]))
            i, j = i + 1, j + 1
        elif first[i] < second[j]:
            i += 1
        else:
            j += 1
    return pairs


def test_times_are_joined_within_the_tolerance_however_the_sources_interleave() -> None:
    dice = random.Random(7)  # noqa: S311 - no secret
    for _ in range(300):
        streams = [sorted(dice.randrange(200) for _ in range(dice.randrange(15))) for _ in range(2)]
        asked = run(streams, JoinRules("time", tolerance=6), dice, by="time")
        want = [(f"a {one}", f"b {other}") for one, other in by_merge(*streams, 6)]
        assert asked.joined() == want
        assert sum(len(group.members) for group in asked.groups) == sum(map(len, streams))


def test_three_times_are_joined_where_all_lie_within_the_tolerance() -> None:
    dice = random.Random(8)  # noqa: S311 - no secret
    for _ in range(200):
        streams = [sorted(dice.randrange(100) for _ in range(dice.randrange(12))) for _ in range(3)]
        results = {tuple(run(streams, JoinRules("time", tolerance=5), dice, by="time").joined()) for _ in range(4)}
        assert len(results) == 1, "it depends on which source was faster"
        for group in results.pop():
            times = [int(one.split()[1]) for one in group]
            assert max(times) - min(times) <= 5


def test_a_time_that_falls_is_refused_by_itself() -> None:
    asked = Asked(JoinRules("time", tolerance=1))
    for source, value in ((0, 5), (0, 4), (1, 5)):
        asked.take(asked.joiner.put(waiting(source, value, by="time")))
    assert asked.joined() == [("a 5", "b 5")]
    assert asked.alone() == {"a 4": "its time 4 s lies before that of the one before it"}


@pytest.mark.parametrize("missing", ["error", "drop"])
@pytest.mark.parametrize("by", ["key", "time"])
def test_a_silent_source_costs_no_more_memory_than_the_buffer(missing, by) -> None:
    asked = Asked(JoinRules(by, missing=missing, buffer=4))
    for value in range(1000):
        assert asked.joiner.wanted() == [0, 1]
        asked.take(asked.joiner.put(waiting(0, value, by=by)))
    assert asked.most <= 4
    assert list(asked.alone()) == [f"a {value}" for value in range(996)], "the oldest go first"
    assert set(asked.alone().values()) == {"4 items after it nothing had joined it"}


@pytest.mark.parametrize("by", ["key", "time"])
def test_with_wait_the_faster_source_is_held_back(by) -> None:
    asked = Asked(JoinRules(by, missing="wait", buffer=4))
    taken = 0
    while 0 in asked.joiner.wanted():
        asked.take(asked.joiner.put(waiting(0, taken, by=by)))
        taken += 1
    assert (taken, asked.groups, asked.joiner.wanted()) == (4, [], [1])
    asked.take(asked.joiner.put(waiting(1, 0, by=by)))
    assert asked.joined() == [("a 0", "b 0")]
    assert asked.joiner.wanted() == [0, 1]


@pytest.mark.parametrize("missing", ["error", "drop", "wait"])
def test_what_waits_for_a_source_that_has_ended_is_told_at_once(missing) -> None:
    for by in ("key", "time"):
        asked = Asked(JoinRules(by, missing=missing, buffer=4))
        asked.take(asked.joiner.put(waiting(0, 1, by=by)))
        asked.take(asked.joiner.end(1))
        assert list(asked.alone()) == ["a 1"]
        asked.take(asked.joiner.put(waiting(0, 2, by=by)))
        assert list(asked.alone()) == ["a 1", "a 2"]


def test_an_item_waits_no_longer_than_it_may() -> None:
    asked = Asked(JoinRules("key", wait_ns=50))
    assert asked.joiner.deadline_ns() is None
    for value in (10, 20, 30):
        asked.take(asked.joiner.put(waiting(0, value, since=value)))
    assert asked.joiner.deadline_ns() == 60
    asked.take(asked.joiner.expired(59))
    assert asked.alone() == {}
    asked.take(asked.joiner.expired(75))
    assert list(asked.alone()) == ["a 10", "a 20"]
    assert asked.joiner.deadline_ns() == 80


def test_every_rule_keeps_every_item_once_whatever_comes() -> None:
    dice = random.Random(9)  # noqa: S311 - no secret
    for _ in range(400):
        num_sources, by = dice.choice((2, 3)), dice.choice(("key", "time"))
        rules = JoinRules(
            by, {}, dice.choice((0, 3)), dice.choice(("error", "drop", "wait")), dice.randint(1, 4),
            dice.choice((0, 30)),
        )  # fmt: skip
        streams = [[dice.randrange(30) for _ in range(dice.randrange(20))] for _ in range(num_sources)]
        if by == "time":
            streams = [sorted(values) for values in streams]
        left = {source: [*values, None] for source, values in enumerate(streams)}
        asked, now = Asked(rules, num_sources), 0
        while left:
            ready = [source for source in left if left[source][0] is None or source in asked.joiner.wanted()]
            assert ready, "nobody can go on"
            now += dice.randrange(10)
            value = left[source := dice.choice(ready)].pop(0)
            if value is None:
                del left[source]
                asked.take(asked.joiner.end(source))
            else:
                asked.take(asked.joiner.put(waiting(source, value, by=by, since=now)))
            asked.take(asked.joiner.expired(now))
        seen = defaultdict(list)
        for group in asked.groups:
            for one in group.members:
                seen[one.source].append(one.key if by == "key" else one.time)
        assert {source: sorted(values) for source, values in seen.items()} == {
            source: sorted(values) for source, values in enumerate(streams) if values
        }
        assert asked.most <= rules.buffer
