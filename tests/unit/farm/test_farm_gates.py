# SPDX-License-Identifier: Apache-2.0
"""Gates find what got worse since the batch before, with both values, and say what they could not judge."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from batch_examples import batch, outcome

from nndeploy.errors import UsageError
from nndeploy.farm.outcome import STATUSES
from nndeploy.farm.reports.batch import GATES, NOT_JUDGED, WARNING, Finding
from nndeploy.farm.reports.gates import Gates, judged
from nndeploy.options.described import options_from

ALL = Gates(max_slowdown=0.05, max_error_growth=2.0, max_size_growth=0.1, max_share_drop={"native": 0.05})


def found(now: Mapping[str, Any], before: Mapping[str, Any], gates: Gates = ALL) -> list[Finding]:
    return list(judged(batch(outcome(**now)), batch(outcome(**before)), gates).findings)


@pytest.mark.parametrize(("gate", "before", "now", "limit"), [
    ("slowdown", {"latency_ms": 2.0}, {"latency_ms": 2.2}, 0.05),
    ("error-growth", {"max_error": 1e-6}, {"max_error": 2.1e-6}, 2.0),
    ("error-growth", {"max_error": 0.0}, {"max_error": 1e-9}, 2.0),
    ("size-growth", {"size": 1000}, {"size": 1101}, 0.1),
    ("share-drop", {"backends": {"native": 0.9}}, {"backends": {"native": 0.8, "onnxruntime": 0.1}}, 0.05),
    ("share-drop", {"backends": {"native": 0.9}}, {"backends": {"onnxruntime": 0.9}}, 0.05),
    ("fails-now", {"status": "ok"}, {"status": "crash"}, None),
    ("fails-now", {"status": "hit"}, {"status": "infra"}, None),
])  # fmt: skip
def test_what_got_worse_is_found_with_both_values(gate, before, now, limit) -> None:
    (one,) = found(now, before)
    assert (one.gate, one.job, one.limit, one.is_failure) == (gate, "a/host/", limit, True)
    key = next(iter(before))
    values = [data[key] if key != "backends" else data[key].get("native", 0.0) for data in (before, now)]
    assert [one.before, one.now] == values


def test_an_idle_gpu_fails_a_batch_unless_it_may_be() -> None:
    now = batch(outcome("a", "t4", idle_gpu="why", warnings=("why", "more")), outcome("b", warnings=("more",)))
    strict, lax = judged(now, None, Gates()), judged(now, None, Gates(strict_targets=False))
    assert [(one.gate, one.job) for one in strict.failed_gates] == [("idle-gpu", "a/t4/")]
    assert [(one.gate, one.text) for one in strict.notes] == [(WARNING, "more (and 1 other job)")]
    assert not lax.failed_gates
    assert [(one.job, one.text) for one in lax.notes] == [("a/t4/", "why"), ("a/t4/", "more (and 1 other job)")]


def test_gates_that_need_no_earlier_batch_stay_with_one_job() -> None:
    gates = Gates(max_slowdown=0.1, min_share={"native": 0.5}, strict_targets=False, strict_gates=True)
    assert gates.of_one_batch == Gates(min_share={"native": 0.5}, strict_targets=False)


def test_a_finding_says_what_happened_in_words() -> None:
    texts = [one.text for one in found(
        {"latency_ms": 2.2, "max_error": 3e-6, "size": 5_000_000, "backends": {"native": 0.5}},
        {"latency_ms": 2.0, "max_error": 1e-6, "size": 4_000_000, "backends": {"native": 0.75}},
    )]  # fmt: skip
    assert texts == [
        "latency grew from 2 ms to 2.2 ms, by more than 5%",
        "the largest error grew from 1e-06 to 3e-06, by more than a factor of 2",
        "the bundle grew from 4.0 MB to 5.0 MB, by more than 10%",
        "native's share of the compute fell from 75.0% to 50.0%, by more than 5.0%",
    ]
    (one,) = found({"status": "failed"}, {})
    assert one.text == "was ok, now failed: models/a.onnx: node 'Conv_3' has no weights"


@pytest.mark.parametrize(("before", "now"), [
    ({}, {}), ({"latency_ms": 2.0}, {"latency_ms": 2.1}), ({"latency_ms": 2.0}, {"latency_ms": 0.1}),
    ({"max_error": 1e-6}, {"max_error": 2e-6}), ({"max_error": 0.0}, {"max_error": 0.0}),
    ({"size": 1000}, {"size": 1100}), ({"backends": {"native": 0.9}}, {"backends": {"native": 0.85}}),
    ({"backends": {"onnxruntime": 0.9}}, {"backends": {"native": 0.9}}), ({"status": "crash"}, {"status": "crash"}),
    ({"status": "crash"}, {"status": "ok"}), ({"status": "skipped"}, {"status": "failed"}),
])  # fmt: skip
def test_what_is_within_limits_or_was_no_better_is_not_found(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert found(now, before) == []


def test_a_limit_that_is_not_given_is_not_judged() -> None:
    before = {"latency_ms": 1.0, "max_error": 1e-9, "size": 1, "backends": {"native": 1.0}}
    now = {"latency_ms": 9.0, "max_error": 1.0, "size": 999, "backends": {"onnxruntime": 1.0}}
    assert found(now, before, Gates()) == []
    assert [one.gate for one in found(now, before)] == ["slowdown", "error-growth", "size-growth", "share-drop"]


@pytest.mark.parametrize(("before", "now", "is_judged"), [
    ({"worker": "w1"}, {"worker": "w1"}, True),
    ({"worker": "w1"}, {"worker": "w2"}, False),
    ({"worker": ""}, {"worker": ""}, False),
    ({"worker": "w1", "cpu": "x"}, {"worker": "w2", "cpu": "x"}, True),
    ({"worker": "w1", "cpu": "x"}, {"worker": "w1", "cpu": "y"}, False),
    ({"worker": "w1", "cpu": "x"}, {"worker": "w1", "cpu": ""}, True),
])  # fmt: skip
def test_speed_is_judged_only_on_the_same_kind_of_processor(before, now, is_judged) -> None:
    (one,) = found({**now, "latency_ms": 9.0}, {**before, "latency_ms": 1.0})
    assert one.gate == ("slowdown" if is_judged else NOT_JUDGED)
    assert one.is_failure == is_judged


@pytest.mark.parametrize(("before", "now", "words"), [
    ({}, {"latency_ms": None}, "latency was measured before, and not now"),
    ({}, {"max_error": None}, "outputs were compared with the original before, and not now"),
    ({}, {"backends": {}}, "the shares of backends are known before, and not now"),
    ({"latency_ms": None}, {"latency_ms": 9.0}, "latency was measured now, and not before"),
    ({"latency_ms": None}, {"latency_ms": None}, "latency was measured neither before nor now"),
    ({"max_error": None}, {"max_error": 1.0}, "outputs were compared with the original now, and not before"),
    ({"backends": {}}, {"backends": {"native": 0.1}}, "the shares of backends are known now, and not before"),
    ({"size": 0}, {}, "the size of a bundle is not known"),
    ({}, {"status": "skipped"}, "now skipped"),
    ({}, {"worker": "w2"}, "latency was measured on w1 before, on w2 now"),
])  # fmt: skip
def test_what_only_one_of_them_has_is_said(before: dict[str, Any], now: dict[str, Any], words: str) -> None:
    (one,) = found(now, before)
    assert (one.gate, one.is_failure) == (NOT_JUDGED, False)
    assert one.text.startswith("1 job not judged: ")
    assert words in one.text
    (strict,) = found(now, before, dataclasses.replace(ALL, strict_gates=True))
    assert (strict.gate, strict.is_failure, strict.text) == ("strict-gates", True, one.text)


def test_many_jobs_that_cannot_be_judged_for_one_reason_are_one_finding_behind_the_failures() -> None:
    before = batch(*(outcome(f"m{i}") for i in range(2000)))
    now = batch(*(outcome(f"m{i}", worker="w2", size=9_000_000 if i == 1999 else 3_400_000) for i in range(2000)))
    size, latency = judged(now, before, ALL).findings
    assert (size.gate, size.model) == ("size-growth", "m1999")
    assert latency.text == "2,000 jobs not judged: latency was measured on w1 before, on w2 now"


def test_a_bundle_that_is_no_longer_planned_is_missed_unless_this_is_a_part() -> None:
    before = batch(outcome("a"), outcome("b"), outcome("c", status="crash"))
    now = batch(outcome("a"), outcome("new"))
    (gone,) = judged(now, before, ALL).findings
    assert (gone.gate, gone.job, gone.before, gone.now) == ("vanished", "b/host/", "ok", None)
    for gates in (ALL, dataclasses.replace(ALL, strict_gates=True)):
        (said,) = judged(now, before, gates, is_part=True).findings
        assert (said.gate, said.text) == (NOT_JUDGED, "1 job not judged: this batch is a part of its plan")


def test_a_least_share_needs_no_batch_before() -> None:
    gates = Gates(min_share={"native": 0.8, "openvino": 0.0})
    made = batch(outcome("a"), outcome("b", backends={"native": 0.8}), outcome("c", status="crash"))
    (one,) = judged(made, None, gates).findings
    assert (one.gate, one.model, one.before, one.now, one.limit) == ("min-share", "a", None, 0.75, 0.8)


@pytest.mark.parametrize(("gates", "before", "num_findings"), [
    (ALL, None, 1), (ALL, batch(), 1), (ALL, batch(outcome("other", status="crash")), 1), (Gates(), None, 0),
    (Gates(), batch(), 0), (Gates(min_share={"native": 0.1}), None, 0),
])  # fmt: skip
def test_limits_that_have_nothing_to_compare_with_are_not_judged(gates: Gates, before: Any, num_findings: int) -> None:
    made = batch(outcome("a"), outcome("b"))
    assert [one.gate for one in judged(made, before, gates).findings] == [NOT_JUDGED] * num_findings
    strict = dataclasses.replace(gates, strict_gates=True)
    assert len(judged(made, before, strict).failed_gates) == num_findings


def test_a_least_share_of_what_nobody_knows_is_not_judged() -> None:
    made = batch(outcome("a", backends={}), outcome("b", status="crash"))
    (one,) = judged(made, None, Gates(min_share={"native": 0.8})).findings
    assert (one.gate, one.model) == (NOT_JUDGED, "a")


def test_every_gate_is_one_that_batch_json_knows() -> None:
    before = batch(*(outcome(f"m{i}", status=status) for i, status in enumerate(STATUSES)))
    for status in STATUSES:
        now = batch(*(outcome(f"m{i}", status=status) for i in range(5)))
        assert {one.gate for one in judged(now, before, ALL).findings} <= {*GATES, NOT_JUDGED}


def test_limits_are_read_as_people_write_them() -> None:
    texts = {"max_slowdown": "5%", "max_error_growth": "2x", "max_size_growth": "10%"}
    gates = options_from(Gates, {**texts, "min_share": ["native=90%", "openvino=0.1"], "max_share_drop": ["native=5%"]})
    assert gates.max_slowdown == 0.05
    assert (gates.max_error_growth, gates.max_share_drop) == (2.0, {"native": 0.05})
    assert gates.min_share == {"native": 0.9, "openvino": 0.1}
    with pytest.raises(UsageError, match="--max-slowdown"):
        options_from(Gates, {"max_slowdown": "fast"})
