# SPDX-License-Identifier: Apache-2.0
"""What several sources and routes cost: records a second that do next to nothing, and the memory of a silent join.

python tests/bench/bench_stream_routes.py [--records N]
"""

import argparse
import resource
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nndeploy.stream.conditions.parsing import condition_from_text
from nndeploy.stream.description import LevelPlan, PipelinePlan, QueueKind, RoutePlan, StagePlan, StreamPlan
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.sources.merging import joined_items, merged_items
from nndeploy.stream.sources.readers import Feed, Readers, SourceFigures
from nndeploy.stream.sources.source_rules import JoinRules
from nndeploy.stream.stopping import Stop

ROUNDS = 3


@dataclass(frozen=True)
class Same:
    """A step that gives what it takes."""

    takes: tuple[str, ...] = ("n",)
    gives: tuple[str, ...] = ("same",)

    def __call__(self, fields: object) -> dict[str, object]:
        return {"same": fields["n"]}


class Count:
    """Counts outcomes."""

    def __init__(self) -> None:
        self.num = self.num_failed = 0

    def write(self, outcome: Outcome) -> None:
        self.num += 1
        self.num_failed += outcome.is_failed

    def finish(self) -> None:
        """Does nothing."""

    discard = finish


def plan_of(queue: QueueKind, *routes: RoutePlan) -> StreamPlan:
    stage = StagePlan((Same(),))
    level = tuple(PipelinePlan(f"p{i}", (stage,), route=route, keep=("same",)) for i, route in enumerate(routes))
    return StreamPlan((level,), ("same",), hows=(LevelPlan(queue),), may_lack=frozenset({"same"}))


def items_of(name: str, count: int) -> Iterator[Item]:
    for number in range(count):
        yield Item(number, f"{name} {number}", name, lambda number=number: {"n": number})


def feeds(num_sources: int, count: int) -> list[Feed]:
    def feed(name: str) -> Feed:
        return Feed(name, lambda stop, figures: items_of(name, count))

    return [feed(f"s{number}") for number in range(num_sources)]


def rate_of(plan: StreamPlan, make: Callable[[Stop], tuple[Iterator[Item], Readers | None]], want: int) -> float:
    """Returns records a second, the best of some rounds; checks that none is lost or failed."""
    best = 0.0
    for _ in range(ROUNDS):
        stop, sink = Stop(), Count()
        items, readers = make(stop)
        began = time.perf_counter()
        Stream(plan, {}, stop=stop).run(items, sink)
        best = max(best, want / (time.perf_counter() - began))
        if readers is not None:
            readers.close()
        stop.close()
        assert (sink.num, sink.num_failed) == (want, 0)
    return best


def silent_megabytes(count: int) -> float:
    """Returns by how much the process grows while a join drops so many records of 64 KiB, its other side silent."""
    ends, stop, sink = threading.Event(), Stop(), Count()

    def many(own: Stop, figures: SourceFigures) -> Iterator[Item]:
        del own, figures
        for number in range(count):
            yield Item(number, "many", "many", lambda number=number: {"n": number, "data": bytes(1 << 16)})
        ends.set()

    def silent(own: Stop, figures: SourceFigures) -> Iterator[Item]:
        del own, figures
        ends.wait()
        return iter(())

    rules = JoinRules("key", {"many": "n", "silent": "n"}, missing="drop")
    readers = Readers([Feed("many", many), Feed("silent", silent)], stop)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    Stream(plan_of("copy", RoutePlan()), {}, stop=stop).run(joined_items(readers, ["many", "silent"], rules), sink)
    readers.close()
    stop.close()
    assert sink.num == 0
    assert readers.figures()[0].num_unmatched == count
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000)
    count = parser.parse_args().records
    half = condition_from_text(f"n < {count // 2} and n >= 0")
    one = plan_of("copy", RoutePlan())
    plans = {
        "one pipeline": one,
        "two that share a queue": plan_of("basic", RoutePlan(), RoutePlan()),
        "two with shares": plan_of("basic", RoutePlan(share=1), RoutePlan(share=1)),
        "two by a condition": plan_of("switch", RoutePlan(when=half), RoutePlan()),
    }
    print("| stream | records/s |\n| --- | ---: |")
    for name, plan in plans.items():
        print(f"| one source, {name} | {rate_of(plan, lambda stop: (items_of('a', count), None), count):,.0f} |")
    for num_sources in (1, 2, 4):

        def merged(stop: Stop, num_sources: int = num_sources) -> tuple[Iterator[Item], Readers]:
            readers = Readers(feeds(num_sources, count // num_sources), stop)
            return merged_items(readers, [f"s{number}" for number in range(num_sources)]), readers

        want = count // num_sources * num_sources
        print(f"| {num_sources} sources with threads of their own, merged | {rate_of(one, merged, want):,.0f} |")
    for rules in (JoinRules("index", missing="wait"), JoinRules("key", {"s0": "n", "s1": "n"}, missing="wait")):

        def joined(stop: Stop, rules: JoinRules = rules) -> tuple[Iterator[Item], Readers]:
            readers = Readers(feeds(2, count // 2), stop)
            return joined_items(readers, ["s0", "s1"], replace(rules)), readers

        print(f"| 2 sources joined by {rules.by} | {rate_of(one, joined, count // 2):,.0f} |")
    print(f"\n{count:,} records of 64 KiB whose partner is silent: {silent_megabytes(count):.0f} MB more memory")


if __name__ == "__main__":
    main()
