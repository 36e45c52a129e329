# SPDX-License-Identifier: Apache-2.0
"""Several sources as one stream: none of their items is lost or doubled, whatever the rules, the routes and the timing.

Sources, rules and routes are drawn with a seed, the delays differ from run to run. Each item of each source must be in
exactly one outcome, or be counted as dropped.
"""

import itertools
import random
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from streaming import Make, Sink, plan_of, wait_until, within_limit

from nndeploy.errors import InputError, InputOutputError
from nndeploy.stream.conditions.parsing import condition_from_text
from nndeploy.stream.description import LevelPlan, PipelinePlan, RoutePlan, StagePlan
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.items import Item
from nndeploy.stream.sources import readers as readers_module
from nndeploy.stream.sources.merging import joined_items, merged_items
from nndeploy.stream.sources.readers import Feed, Readers, at_rate
from nndeploy.stream.sources.source_rules import JoinRules, ReadRules
from nndeploy.stream.stopping import Stop

timing = random.Random()  # noqa: S311 - no secret
NAMES = ("a", "b", "c")
DEFAULT = ReadRules()


def item_of(name, number, fields):
    return Item(number, f"{name}{number}", name, lambda: {"n": number, **fields})


def feed_of(name, values, rules=DEFAULT, slow=0.0):
    """Returns a source of values, each a dictionary of fields or an error."""

    def items(stop, figures):
        del figures
        for number, value in enumerate(values):
            if stop.is_requested:
                return
            if slow:
                time.sleep(slow * timing.random())
            if isinstance(value, BaseException):
                raise value
            yield item_of(name, number, value)

    return Feed(name, items, rules)


def run(plan, feeds, rules=None, stop=None, **options):
    """Returns outcomes, summary and the figures of the sources."""
    stop, sink = stop or Stop(), Sink()
    readers = Readers(feeds, stop)
    names = [feed.name for feed in feeds]
    items = joined_items(readers, names, rules) if rules is not None else merged_items(readers, names)
    try:
        summary = within_limit(lambda: Stream(plan, {}, StreamOptions(**options), stop).run(items, sink))
    finally:
        readers.close()
        stop.close()
    return sink.outcomes, summary, readers.figures()


def step(name, slow=0.0):
    def work(number):
        if slow:
            time.sleep(slow * timing.random())
        return (name, number)

    return StagePlan((Make(("n",), ("by",), work),))


def plan_named(queue, names, slow=0.0, not_taken="end", **routes):
    """Returns a level of pipelines that all give `by`, so that only one takes a record; `routes` by name."""
    level = tuple(PipelinePlan(name, (step(name, slow),), route=routes.get(name, RoutePlan())) for name in names)
    plan = plan_of(level, fields=("by",))
    return replace(plan, hows=(LevelPlan(queue, not_taken),), may_lack=frozenset({"by"}))


EVEN = condition_from_text("n in [0, 2, 4, 6, 8, 10, 12]")

ROUTES = {
    "shared": lambda slow: plan_named("basic", ["p", "q"], slow),
    "switch": lambda slow: plan_named("switch", ["p", "q"], slow, p=RoutePlan(when=EVEN)),
    "condition": lambda slow: plan_named("copy", ["p"], slow, p=RoutePlan(when=EVEN)),
}
"""More ways are drawn in test_stream_drawn_routes.py."""
RULES = {
    "as they arrive": None,
    "by time of arrival": JoinRules("time", tolerance=1e-3, missing="drop", buffer=3),
    **{
        f"by {by}, {missing}": JoinRules(by, dict.fromkeys(NAMES, "k"), 0.5, missing, 3)
        for by, missing in itertools.product(("index", "key", "time"), ("error", "drop", "wait"))
    },
}  # fmt: skip


def inputs_of(outcomes):
    """Returns how often each item of each source is in an outcome."""
    return Counter(one for outcome in outcomes for one in outcome.origin.split(" + "))


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_item_is_lost_or_doubled(rules, route) -> None:
    for seed in range(3):
        dice = random.Random(seed)  # noqa: S311 - no secret
        feeds, want = [], set()
        for name in NAMES[: dice.choice((2, 3))]:
            keys = [dice.randrange(6) for _ in range(dice.choice((0, 1, 9)))]
            values = [{"k": float(key)} for key in (sorted(keys) if rules and rules.by == "time" else keys)]
            feeds.append(feed_of(name, values, ReadRules(buffer=dice.choice((1, 4))), dice.choice((0, 2e-4, 1e-3))))
            want |= {f"{name}{number}" for number in range(len(values))}
        is_ordered = bool(seed % 2)
        outcomes, summary, figures = run(ROUTES[route](dice.choice((0, 3e-4))), feeds, rules, is_ordered=is_ordered)
        found = inputs_of(outcomes)
        assert set(found) <= want
        assert max(found.values(), default=1) == 1, "one is doubled"
        num_unmatched = sum(one.num_unmatched for one in figures)
        lost = num_unmatched if rules is not None and rules.missing == "drop" else 0
        assert len(found) + lost == len(want), "one is lost"
        indices = [outcome.index for outcome in outcomes]
        assert (indices if is_ordered else sorted(indices)) == list(range(len(outcomes)))
        assert summary.num_items == len(outcomes)
        assert all(one.num_read == sum(item[0] == one.name for item in want) for one in figures)
        for outcome in outcomes:
            assert outcome.source == ("" if " + " in outcome.origin else outcome.origin[0])
            number = int(outcome.origin.split(" + ")[0][1:])
            if outcome.outputs and route in ("switch", "condition"):
                assert outcome.outputs["by"] == ("p" if number % 2 == 0 else "q", number)


ANY = plan_named("copy", ["p"])


def test_a_source_that_is_silent_holds_up_nobody() -> None:
    ends = threading.Event()

    def silent(stop, figures):
        del figures, stop
        assert ends.wait(20)
        return iter(())

    def last(stop, figures):
        del figures, stop
        for number in range(50):
            yield item_of("a", number, {})
            if number == 49:
                ends.set()

    outcomes, _, _ = run(ANY, [Feed("b", silent), Feed("a", last)])
    assert [outcome.origin for outcome in outcomes] == [f"a{number}" for number in range(50)]


def test_an_item_that_has_no_key_is_an_error_of_its_own() -> None:
    rules = JoinRules("key", {"a": "k", "b": "k"})
    feeds = [feed_of("a", [{"k": 1}, {}, {"k": [1, 2]}]), feed_of("b", [{"k": 1}])]
    outcomes, _, _ = run(ANY, feeds, rules)
    told = {outcome.origin: str(outcome.error) for outcome in outcomes}
    assert told["a0 + b0"] == "None"
    assert told["a1"].startswith("a1: the record has no field 'k', by which it would be joined")
    assert told["a2"].startswith("a2: the field 'k', by which it would be joined, is no text or number")


def test_a_source_that_fails_gives_its_error_and_the_others_go_on() -> None:
    feeds = [feed_of("a", [{}, InputOutputError("reading failed")]), feed_of("b", [{}] * 9, slow=1e-4)]
    outcomes, summary, _ = run(ANY, feeds)
    (failed,) = [outcome for outcome in outcomes if outcome.error is not None]
    assert (failed.source, str(failed.error)) == ("a", "a: reading failed")
    assert (summary.num_items, summary.num_failed) == (11, 1)


def test_an_item_without_partner_is_told_while_the_other_source_is_silent() -> None:
    told, sink = threading.Event(), Sink()

    def silent(own, figures):
        del own, figures
        assert told.wait(20)
        yield from ()

    stop = Stop()
    readers = Readers([feed_of("a", [{}]), Feed("b", silent)], stop)
    items = joined_items(readers, ["a", "b"], JoinRules("index", wait_ns=5_000_000))
    try:
        within_limit(lambda: Stream(ANY, {}, stop=stop).run(items, sink, lambda _: told.set()))
    finally:
        readers.close()
        stop.close()
    (outcome,) = sink.outcomes
    assert str(outcome.error) == "a0: nothing joined it within 5 ms (hint: see missing in [join])"


def one_by_one(work):
    """Returns a plan that lets one record in at a time, and does `work` on its number."""
    return plan_of(PipelinePlan("p", (StagePlan((Make(("n",), ("by",), work),)),)), fields=("by",), in_flight=1)


def test_what_nobody_takes_in_time_is_dropped_and_counted() -> None:
    is_read, taken = threading.Event(), []

    def camera(stop, figures):
        del figures, stop
        for number in range(100):
            yield item_of("a", number, {})
        is_read.set()

    def slow(number):
        assert is_read.wait(20)
        taken.append(number)
        return number

    plan = one_by_one(slow)
    outcomes, _, figures = run(plan, [Feed("a", camera, ReadRules(buffer=4, drop="oldest"))])
    assert taken[-4:] == [96, 97, 98, 99], "the newest stay"
    assert len(outcomes) == len(taken)
    assert figures[0].num_dropped == 100 - len(taken) > 80


def test_items_go_on_in_the_order_in_which_they_were_read() -> None:
    turns, all_read = [threading.Semaphore(1), threading.Semaphore(0)], threading.Event()

    def feed(place):
        def items(stop, figures):
            del figures, stop
            for number in range(6):
                assert turns[place].acquire(timeout=20)
                yield item_of(NAMES[place], number, {})
                turns[1 - place].release()
            all_read.set()

        return Feed(NAMES[place], items)

    def work(number):
        assert all_read.wait(20)
        return number

    outcomes, _, _ = run(one_by_one(work), [feed(1), feed(0)][::-1])
    assert [outcome.origin for outcome in outcomes] == [f"{name}{number}" for number in range(6) for name in "ab"]


def test_what_is_too_old_is_dropped_and_counted() -> None:
    is_old = threading.Event()

    def camera(stop, figures):
        del figures
        yield from (item_of("a", number, {}) for number in range(5))
        stop.wait(0.05)
        is_old.set()
        yield item_of("a", 5, {})

    def slow(number):
        assert is_old.wait(20)
        return number

    plan = one_by_one(slow)
    rules = ReadRules(buffer=10, drop="oldest", max_age_ns=40_000_000)
    outcomes, _, figures = run(plan, [Feed("a", camera, rules)])
    numbers = [outcome.outputs["by"] for outcome in outcomes]
    assert numbers[0] == 0
    assert not {2, 3, 4} & set(numbers), "they had waited for longer than they may"
    assert len(numbers) + figures[0].num_dropped == 6


def test_a_stream_that_is_aborted_leaves_no_thread_behind() -> None:
    class Full(Sink):
        def write(self, outcome):
            raise InputOutputError("the disk is full")

    def silent(own, figures):
        del figures
        yield item_of("a", 0, {})
        own.wait(60)

    stop = Stop()
    before = set(threading.enumerate())
    readers = Readers([Feed("a", silent), Feed("b", silent)], stop)
    with pytest.raises(InputOutputError, match="the disk is full"):
        Stream(ANY, {}, stop=stop).run(merged_items(readers, ["a", "b"]), Full())
    readers.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()
    stop.close()


class Watch:
    """A clock that a wait moves on, in place of `time` and of a stop."""

    def __init__(self):
        self.now, self.waits = 100.0, []

    def monotonic(self):
        return self.now

    def wait(self, seconds):
        self.waits.append(round(seconds, 6))
        self.now += max(0.0, seconds)
        return len(self.waits) < 8


def test_a_source_is_read_at_its_rate_and_makes_up_for_nothing(monkeypatch) -> None:
    watch = Watch()
    monkeypatch.setattr(readers_module, "time", watch)
    times = []
    for item in at_rate((item_of("a", number, {}) for number in range(20)), 10.0, watch):
        times.append(round(watch.now - 100, 6))
        if item.index == 3:
            watch.now += 0.35  # a source that is late
    assert times == [0, 0.1, 0.2, 0.3, 0.65, 0.75, 0.85], "and it ends where a stop is asked for"
    assert len(list(at_rate(iter([1, 2, 3]), 0, watch))) == 3


def test_what_was_read_before_a_stop_and_nobody_took_is_counted() -> None:
    stop = Stop()
    readers = Readers([feed_of("a", [{}] * 9, ReadRules(buffer=4)), feed_of("b", [{}, InputError("lost")])], stop)
    readers.start()
    taken = [readers.next_of([0]) for _ in range(2)]
    within_limit(lambda: readers.next_of([1]))
    first, second = readers.figures()
    within_limit(lambda: wait_until(lambda: first.num_read == 7))  # four fill the buffer, one waits for room
    stop.request()
    readers.close()
    stop.close()
    assert [one.item.origin for one in taken] == ["a0", "a1"]
    assert (first.num_read, first.num_dropped) == (7, 5)
    assert (second.num_read, second.num_dropped) == (1, 0), "the error of a source is no item"


def test_a_stop_ends_sources_that_wait() -> None:
    stop, entered = Stop(), threading.Event()

    def silent(own, figures):
        del figures
        yield item_of("a", 0, {})
        entered.set()
        own.wait(60)

    threading.Thread(target=lambda: (entered.wait(20), stop.request()), daemon=True).start()
    began = time.monotonic()
    _, summary, _ = run(ANY, [Feed("a", silent), Feed("b", silent)], stop=stop)
    assert summary.is_stopped
    assert time.monotonic() - began < 10
