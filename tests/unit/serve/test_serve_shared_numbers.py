# SPDX-License-Identifier: Apache-2.0
"""Numbers of several processes: each counts for itself, and any of them tells those of all."""

import os

import pytest
from exposition_page import Samples, samples_of

from nndeploy.serve.figures import SERVICE, Figures, forget_process, service_numbers
from nndeploy.serve.shared_numbers import SharedNumbers

MODELS = ["m", "n"]


@pytest.fixture
def numbers() -> SharedNumbers:
    return service_numbers(MODELS, 2)


@pytest.fixture
def both(numbers) -> list[Figures]:
    return [Figures(numbers, MODELS, number) for number in range(2)]


def page(figures: Figures) -> Samples:
    return samples_of(figures.page({}, "")[0])


def requests(figures: Figures, **labels: str) -> float:
    samples = page(figures).items()
    return sum(
        value for (name, pairs), value in samples
        if name == "nndeploy_serve_requests_total" and labels.items() <= set(pairs)
    )  # fmt: skip


def test_a_forked_process_writes_where_its_parent_reads(numbers) -> None:
    pid = os.fork()
    if pid == 0:
        numbers.part(1, "m")["calls"] += 3
        os._exit(0)
    os.waitpid(pid, 0)
    assert (numbers.each("m", "calls"), numbers.total("m", "calls"), numbers.total("n", "calls")) == ([0, 3], 3, 0)


def test_counters_are_sums_whoever_tells_them(both) -> None:
    both[0].add("m", "http", "OK", 0.002)
    both[1].add("m", "http", "OK", 0.3)
    both[1].add("", "grpc", "NOT_FOUND")
    for one in both:
        assert (requests(one, model="m", code="OK"), requests(one, model="", code="NOT_FOUND")) == (2, 1)
        numbers = one._numbers
        assert numbers.total("m", "seconds") == pytest.approx(0.302)


def test_what_a_process_counted_stays_when_it_has_ended(both, numbers) -> None:
    for one in both:
        one.loaded()
    both[0].add("m", "http", "OK", 0.1)
    both[0].of("m")["running"] = 1
    both[0].of(SERVICE)["connections"] = 5
    assert page(both[1])["nndeploy_serve_processes", frozenset()] == 2
    forget_process(numbers, MODELS, 0)
    found = page(both[1])
    assert requests(both[1], code="OK") == 1
    assert numbers.total("m", "running") == 0
    names = ("http_connections", "processes", "process_restarts_total")
    assert [found[f"nndeploy_serve_{name}", frozenset()] for name in names] == [0, 1, 1]


def test_others_count_as_loaded_once_they_were(both, numbers) -> None:
    assert not both[0].others_loaded
    both[1].loaded()
    assert both[0].others_loaded
    assert not both[1].others_loaded
    forget_process(numbers, MODELS, 1)
    assert both[0].others_loaded  # while another takes its place


def test_who_has_more_connections_lets_others_accept(both) -> None:
    both[0].of(SERVICE)["connections"] = 2
    assert not both[0].has_more_connections  # the other does not answer yet
    both[1].loaded()
    assert both[0].has_more_connections
    assert not both[1].has_more_connections
