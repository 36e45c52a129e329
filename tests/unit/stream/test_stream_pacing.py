# SPDX-License-Identifier: Apache-2.0
"""A paced stream: who is let in when, until when runs may take, what is refused. The clock is the test's own."""

from contextlib import contextmanager, nullcontext

import pytest
from streaming import Make, Program, Sink, items_of, pipeline, plan_of, within_limit, x_to_y

from nndeploy.errors import DataError, UsageError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.run import own_time
from nndeploy.pacing.show.achieved_text import pace_lines, pacing_to_json
from nndeploy.pacing.show.missed_goal import missed_goal
from nndeploy.pacing.stream import item_plan
from nndeploy.pacing.stream import paced_stream as paced
from nndeploy.pacing.stream.paced_stream import AT_ONCE, BASELINE_ITEMS, ITEMS_OF_A_PLAN, PacedStream
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.records import Record
from nndeploy.stream.stopping import Stop

MS = 1_000_000
STEP = Make(("x",), ("x",), lambda x: x)
PLAN = plan_of(pipeline("p", [([STEP], 1)], x_to_y(), [([STEP], 1)]))


class Pacer:
    """Remembers until when runs and what follows them might take, how long that follows, and stretched work."""

    def __init__(self) -> None:
        self.deadlines: list[int] = []
        self.following: list[float] = []
        self.stretched_work: list[tuple[int, int]] = []
        self.is_followed: list[bool] = []
        self.slept = 0
        self.has_slice = True
        self.records, self.group = (), None

    @contextmanager
    def until(self, deadline_ns: int, following_ns: float = 0.0):
        self.deadlines.append(deadline_ns)
        self.following.append(following_ns)
        yield

    @contextmanager
    def stretched(self, due_ns: int, work_ns: int, *, is_followed: bool = True):
        self.stretched_work.append((due_ns, work_ns))
        self.is_followed.append(is_followed)
        yield lambda: self.slept

    def forget(self) -> None:
        pass

    def slept_ns(self) -> int:
        return 0


@pytest.fixture
def clock(monkeypatch):
    """Returns a clock that stands still; `clock.now` sets it, `clock.waited` what threads waited for cores so far."""

    class Clock:
        now, waited = 10**12, 0

        def monotonic_ns(self) -> int:
            return self.now

        def process_time_ns(self) -> int:
            return 0

    clock = Clock()
    for module in (paced, own_time, item_plan):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(own_time, "process_run_delay_ns", lambda: clock.waited)
    return clock


def pacing_of(plan=PLAN, budget_ms=100, num=1, **goal) -> PacedStream:
    names = [one.name for one in plan.pipelines if one.runner is not None]
    goal = PaceGoal(**goal) if goal else PaceGoal(budget_ms * MS, is_of_item=True)
    return PacedStream(plan, {name: [Pacer() for _ in range(num)] for name in names}, goal)


def gone_through(pacing, clock, index=0, loader=5, run=20, post=5, error=None, waits=0) -> Record:
    """Lets an item go through the pipeline p, each stage taking so many milliseconds, the run after so many waits."""
    record = Record(index, "item", "item")
    pacing.begin(record)
    with record.paced.working("p: loader"):
        clock.now += loader * MS
    (due,) = pacing.due(PLAN.pipelines[0])
    with due(record):
        clock.now += (waits + run) * MS
        clock.waited = None if clock.waited is None else clock.waited + waits * MS
    with record.paced.working("p: post"):
        clock.now += post * MS
    record.error = error
    pacing.end(record)
    return record


def learnt(clock, **settings) -> PacedStream:
    """Returns what has seen as many items as it measures before it paces."""
    pacing = pacing_of(**settings)
    for _ in range(BASELINE_ITEMS):
        gone_through(pacing, clock)
    return pacing


def test_first_items_are_alone_and_without_delays(clock) -> None:
    pacing = pacing_of()
    for _ in range(BASELINE_ITEMS):
        assert pacing.next_begin_ns() == 0
        record = Record(0, "item", "item")
        pacing.begin(record)
        assert pacing.next_begin_ns() is None
        pacing.end(record)
    assert pacing_of().achieved() is None
    pacing = learnt(clock)
    assert pacing.pacers["p"][0].deadlines == [AT_ONCE] * BASELINE_ITEMS
    assert pacing.achieved() is None


def test_runs_end_so_that_what_follows_is_done_within_the_budget(clock) -> None:
    pacing = learnt(clock)
    (pacer,) = pacing.pacers["p"]
    begin = clock.now
    gone_through(pacing, clock, loader=1)  # what a stage saves or loses moves nothing: ends are the item's
    gone_through(pacing, clock, loader=40)
    first, second = pacer.deadlines[-2] - begin, pacer.deadlines[-1] - (begin + 26 * MS)
    assert first == second
    assert 90 * MS < first < 100 * MS  # the reserve is kept back
    assert pacer.following[-2:] == [5 * MS, 5 * MS]  # the post-processor
    found = pacing.achieved()
    assert (found.items, found.cap_ms, found.calm_ms) == (2, 100, 30)
    assert found.over_cap == 0


def test_processors_work_until_their_part_of_the_item_is_over(clock) -> None:
    pacing = learnt(clock)
    (pacer,) = pacing.pacers["p"]
    assert pacer.stretched_work == []  # the first items are measured
    begin, pacer.slept = clock.now, 3 * MS
    record = gone_through(pacing, clock)
    total = record.paced.plan.total
    (loader, loads), (post, posts) = pacer.stretched_work
    assert (loads, posts) == (5 * MS, 5 * MS)
    assert pacer.is_followed == [True, False]  # who waits for the item need not wait for a last sleep
    assert [loader - begin, post - begin] == pytest.approx([total * 5 / 30, total], abs=1)
    assert dict(record.paced.work) == {"p: loader": 2 * MS, "p: runner": 20 * MS, "p: post": 2 * MS}
    assert sorted(record.paced.done) == ["p: loader", "p: post", "p: runner"]


def test_each_part_has_as_long_as_the_window_of_one(clock) -> None:
    plan = plan_of(pipeline("p", [([STEP], 1)], x_to_y(), [], each="list", part="x"))
    pacing = pacing_of(plan)

    def gone(num_parts: int) -> Record:
        whole = Record(0, "item", "item")
        pacing.begin(whole)
        for _ in range(num_parts):
            with whole.paced.working("p: loader"):
                clock.now += 5 * MS
        whole.paced.did("p: runner", 40 * MS)
        pacing.end(whole)
        return whole

    for _ in range(BASELINE_ITEMS):
        gone(2)
    begin = clock.now
    whole = gone(3)
    window = whole.paced.plan.windows["p: loader"]
    dues = [due - begin for due, _ in pacing.pacers["p"][0].stretched_work]
    assert dues == pytest.approx([window.end + before * 5 * MS for before in range(3)], abs=1)
    assert "p: loader" not in whole.paced.done


def test_an_item_is_let_in_once_the_time_of_the_one_before_it_is_over(clock) -> None:
    pacing = learnt(clock)
    begin = clock.now
    gone_through(pacing, clock)
    assert pacing.next_begin_ns() == begin + 100 * MS


def test_an_item_of_a_live_source_is_let_in_when_stages_are_free_and_none_is_late(clock) -> None:
    pacing = pacing_of()
    pacing.feed(is_live=True)
    for _ in range(BASELINE_ITEMS):
        gone_through(pacing, clock)
    record = Record(0, "item", "item")
    begin = clock.now
    pacing.begin(record)
    window = record.paced.plan.windows["p: runner"]
    assert pacing.next_begin_ns() >= begin + window.end - window.begin  # until then the runner has this one
    record.paced.done.append("p: loader")
    clock.now = begin + int(window.end)
    assert pacing.next_begin_ns() <= clock.now
    clock.now += 1
    assert pacing.next_begin_ns() is None
    record.paced.done.append("p: runner")
    assert pacing.next_begin_ns() <= clock.now
    pacing.end(record)
    assert pacing.next_begin_ns() <= clock.now


def test_parts_are_due_one_after_the_other(clock) -> None:
    plan = plan_of(pipeline("p", [], x_to_y(), [], each="list", part="x"))
    pacing = pacing_of(plan)
    (due,) = pacing.due(plan.pipelines[0])

    def run() -> tuple[Record, list[int]]:
        whole = Record(0, "item", "item")
        pacing.begin(whole)
        begin = clock.now
        for place in range(4):
            with due(Record(0, "item", "item", parent=whole, place=place, num_places=4, paced=whole.paced)):
                clock.now += 10 * MS
            assert ("p: runner" in whole.paced.done) == (place == 3)
        pacing.end(whole)
        return whole, [deadline - begin for deadline in due.pacer.deadlines[-4:]]

    for _ in range(BASELINE_ITEMS):
        run()
    whole, ends = run()
    assert ends == pytest.approx([whole.paced.plan.windows["p: runner"].end * k / 4 for k in (1, 2, 3, 4)], abs=2)
    assert ends[-1] > 90 * MS


def test_of_several_runners_each_may_take_the_longer_for_a_part(clock) -> None:
    plan = plan_of(pipeline("p", [], x_to_y(devices=("", "")), [], each="list", part="x"))
    pacing = pacing_of(plan, num=2)
    for _ in range(BASELINE_ITEMS):
        whole = Record(0, "item", "item")
        pacing.begin(whole)
        clock.now += 10 * MS
        whole.paced.work += [("p: runner", 5 * MS)] * 4
        pacing.end(whole)
    whole = Record(0, "item", "item")
    pacing.begin(whole)
    ends = []
    for place, due in enumerate(pacing.due(plan.pipelines[0]) * 2):
        with due(Record(0, "item", "item", parent=whole, place=place, num_places=4, paced=whole.paced)):
            ends.append(due.pacer.deadlines[-1] - clock.now)
    assert ends == pytest.approx([ends[-1] * k for k in (0.5, 0.75, 1, 1)], abs=2)


def test_a_budget_below_the_baseline_names_the_least_that_works(clock) -> None:
    pacing = pacing_of(budget_ms=20)
    for _ in range(BASELINE_ITEMS - 1):
        gone_through(pacing, clock)
    with pytest.raises(UsageError, match=r"an item takes 30 ms without delays: 20 ms leave no time") as caught:
        gone_through(pacing, clock)
    assert "--max-latency 30.6ms is the minimum" in caught.value.hint
    learnt(clock, budget_ms=30.6)


def test_what_the_first_items_waited_for_cores_is_no_part_of_their_time(clock) -> None:
    pacing, waits = pacing_of(budget_ms=60), (300, 40, 0, 900, 70)
    for wait in waits:
        gone_through(pacing, clock, waits=wait)
    assert pacing.baseline_ns == pytest.approx(30 * MS)
    begin = clock.now
    gone_through(pacing, clock)
    assert 55 * MS < pacing.pacers["p"][0].deadlines[-1] - begin < 60 * MS
    assert "busy machine" in pacing.busy_note
    (note,) = (line for line in pace_lines(pacing, []) if "busy machine" in line)
    assert pacing_to_json(pacing, [])["pacing"]["notes"] == [pacing.busy_note]
    assert pacing.busy_note in note


@pytest.mark.parametrize(("budget_ms", "is_refused"), [(20, False), (14, True)])
def test_where_others_have_the_cores_only_a_budget_that_is_surely_too_short_is_refused(
    clock, budget_ms, is_refused
) -> None:
    pacing = pacing_of(budget_ms=budget_ms)
    for _ in range(BASELINE_ITEMS - 1):
        gone_through(pacing, clock, waits=100)
    with pytest.raises(UsageError, match="an item takes 30 ms") if is_refused else nullcontext():
        gone_through(pacing, clock, waits=100)


def test_where_nobody_counts_waits_the_time_on_the_clock_counts(clock) -> None:
    pacing, clock.waited = pacing_of(), None
    for _ in range(BASELINE_ITEMS):
        gone_through(pacing, clock)
    assert pacing.baseline_ns == 30 * MS
    assert not pacing.busy_note


def test_items_that_failed_teach_nothing(clock) -> None:
    pacing = pacing_of()
    for _ in range(2 * BASELINE_ITEMS):
        gone_through(pacing, clock, run=0, error=DataError("no image"))
    assert pacing.next_begin_ns() == 0
    for _ in range(BASELINE_ITEMS):
        gone_through(pacing, clock)
    assert pacing.baseline_ns == 30 * MS
    gone_through(pacing, clock, run=1000, error=DataError("no image"))
    assert pacing.achieved() is None


def test_what_items_needed_behind_the_planned_end_is_kept_back(clock) -> None:
    pacing = learnt(clock)
    ends = []
    for _ in range(2 * ITEMS_OF_A_PLAN):
        record = Record(0, "item", "item")
        pacing.begin(record)
        ends.append(record.paced.plan.total)
        clock.now += int(record.paced.plan.total) + 5 * MS  # always 5 ms later than planned
        record.paced.work += [("p: loader", 5 * MS), ("p: runner", 20 * MS), ("p: post", 5 * MS)]
        pacing.end(record)
    assert ends[-1] == pytest.approx(100 * MS - 5 * MS, abs=10)


def test_items_that_could_not_be_in_time_take_nothing_from_others(clock) -> None:
    pacing = learnt(clock)
    for _ in range(ITEMS_OF_A_PLAN):
        gone_through(pacing, clock, run=20 if _ else 500)
    record = Record(0, "item", "item")
    pacing.begin(record)
    assert record.paced.plan.total >= 99 * MS  # the least that is kept back


def test_items_that_took_longer_than_was_granted_miss_the_goal(clock) -> None:
    pacing = pacing_of(budget_ms=100)
    assert "too few" in missed_goal(pacing, ())
    for index in range(BASELINE_ITEMS + 3):
        gone_through(pacing, clock, index)
    assert missed_goal(pacing, ()) == ""
    gone_through(pacing, clock, index + 1, run=190)
    assert "100 ms granted; 25.0% of 4" in missed_goal(pacing, ())


def test_a_share_of_the_processor_leaves_items_alone(clock) -> None:
    pacing = pacing_of(cpu_limit=0.5)
    for _ in range(BASELINE_ITEMS):
        record = Record(0, "item", "item")
        pacing.begin(record)
        assert pacing.next_begin_ns() == 0
    gone_through(pacing, clock)
    assert pacing.pacers["p"][0].deadlines == [0]
    assert pacing.achieved().cap_ms == pacing.achieved().over_cap == 0


@pytest.mark.parametrize("in_flight", [0, 1])
def test_order_and_one_outcome_a_record_are_kept(in_flight) -> None:
    level = (
        pipeline("a", [([STEP], 2)], x_to_y()),
        pipeline("b", [], x_to_y(devices=("", "")), [([Make(("y",), ("z",), lambda y: y)], 1)], keep=("z",)),
    )
    last = pipeline("c", [], x_to_y(), [], each="list", part="x")
    plan = plan_of(level, last, fields=("y",), in_flight=in_flight)

    def twice(x):
        return {"y": 2 * x}

    programs = {"a": [Program(twice)], "b": [Program(twice), Program(twice)], "c": [Program(twice)]}
    pacers = {name: [Pacer() for _ in made] for name, made in programs.items()}
    pacing = PacedStream(plan, pacers, PaceGoal(60_000 * MS, is_of_item=True))
    values = [{"x": 1, "list": list(range(i % 4))} for i in range(BASELINE_ITEMS)]
    values[2:2] = [DataError("broken")]
    values += [{"x": 1, "list": [5, 6]}]
    sink = Sink()
    stream = Stream(plan, programs, StreamOptions(), pacing=pacing)
    summary = within_limit(lambda: stream.run(items_of(values), sink))
    assert [outcome.index for outcome in sink.outcomes] == list(range(BASELINE_ITEMS + 2))
    assert sink.outcomes[2].error is not None
    assert sink.outcomes[-1].outputs == {"y": [10, 12]}
    assert (summary.num_items, summary.num_failed, sink.ending) == (BASELINE_ITEMS + 2, 1, "finished")
    assert pacing.achieved().items == 1


def test_the_end_of_the_source_and_a_stop_are_not_waited_for() -> None:
    def values():
        yield from range(BASELINE_ITEMS + 1)
        stop.request()
        yield 0

    for items in (iter(range(BASELINE_ITEMS + 1)), values()):
        stop, sink = Stop(), Sink()
        stream = Stream(PLAN, {"p": [Program(lambda x: {"y": x})]}, stop=stop, pacing=pacing_of(budget_ms=3_600_000))
        within_limit(lambda items=items, sink=sink, stream=stream: stream.run(items_of(items), sink))
        assert len(sink.outcomes) == BASELINE_ITEMS + 1
