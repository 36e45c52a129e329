# SPDX-License-Identifier: Apache-2.0
"""LoadGen's logs are read as it writes them; a log that ends too early is an error and no verdict."""

import json

import numpy as np
import pytest
from loadgen_programs import FakeProgram, samples

from nndeploy.bundle.values import encode_values
from nndeploy.errors import InputOutputError
from nndeploy.loadgen.accuracy import accuracy_from_log
from nndeploy.loadgen.settings import Scenario
from nndeploy.loadgen.verdict import verdict_from_log
from nndeploy.runtime.batching import JoinedCalls

VALID = {"loadgen_version": "6.0.17 @ abc", "result_validity": "VALID", "early_stopping_met": True}


def write_detail(folder, values, extra="", errors=()) -> None:
    lines = [f":::MLLOG {json.dumps({'key': key, 'value': value, 'metadata': {}})}" for key, value in values.items()]
    lines += [
        f":::MLLOG {json.dumps({'key': 'error_runtime', 'value': text, 'metadata': {'is_error': True}})}"
        for text in errors
    ]
    (folder / "mlperf_log_detail.txt").write_text("\n".join(lines) + "\n" + extra)


def test_figures_have_their_unit_in_the_name(tmp_path) -> None:
    write_detail(
        tmp_path,
        VALID
        | {"early_stopping_latency_ss": 2_000_000, "early_stopping_latency_ms": 9, "result_query_count": 70}
        | {"result_99.90_percentile_latency_ns": 3_500_000, "result_50.00_percentile_latency_ns": 1_000_000},
    )
    verdict = verdict_from_log(tmp_path, Scenario.SINGLE_STREAM)
    assert (verdict.is_valid, verdict.reason, verdict.version) == (True, "", "6.0.17")
    assert verdict.figures == {"queries": 70, "early_stopping_latency_ms": 2.0, "p50_ms": 1.0, "p99.9_ms": 3.5}


def test_the_reason_is_loadgen_s_own(tmp_path) -> None:
    write_detail(tmp_path, {"result_validity": "INVALID", "result_invalid_reason": "Reduce target QPS. "})
    assert verdict_from_log(tmp_path, Scenario.SERVER).reason == "Reduce target QPS."


def test_early_stopping_alone_is_a_reason_too(tmp_path) -> None:
    values = {"result_validity": "INVALID", "result_invalid_reason": "", "early_stopping_met": False}
    write_detail(tmp_path, values | {"early_stopping_result": " * Only processed 9 queries.  * Need at least 64."})
    verdict = verdict_from_log(tmp_path, Scenario.SINGLE_STREAM)
    assert verdict.reason == "Only processed 9 queries. Need at least 64."
    write_detail(tmp_path, {"result_validity": "INVALID"}, errors=["the clocks differ"])
    assert verdict_from_log(tmp_path, Scenario.OFFLINE).reason == "the clocks differ"


def test_what_is_no_json_is_left_out(tmp_path) -> None:
    write_detail(tmp_path, VALID, extra=':::MLLOG {"key": "result_samples_per_second", "value": -nan}\nnoise\n')
    assert "samples_per_second" not in verdict_from_log(tmp_path, Scenario.OFFLINE).figures


@pytest.mark.parametrize("text", ["", ":::MLLOG {", ':::MLLOG {"key": "result_validity", "value": "PERHAPS"}'])
def test_a_log_without_a_verdict_is_an_error(tmp_path, text) -> None:
    (tmp_path / "mlperf_log_detail.txt").write_text(text)
    with pytest.raises(InputOutputError, match="ends before its verdict"):
        verdict_from_log(tmp_path, Scenario.OFFLINE)


def test_a_missing_log_is_an_error(tmp_path) -> None:
    with pytest.raises(InputOutputError, match="No such file"):
        verdict_from_log(tmp_path, Scenario.OFFLINE)


def write_answers(folder, answers) -> None:
    entries = [{"seq_id": i, "qsl_idx": index, "data": data.hex().upper()} for i, (index, data) in enumerate(answers)]
    (folder / "mlperf_log_accuracy.json").write_text("[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n")


def answer(sample) -> bytes:
    return encode_values({"y": 2 * sample.values["x"]})


def test_answers_agree_with_direct_calls(tmp_path) -> None:
    given = samples(3)
    write_answers(tmp_path, [(i, answer(given[i])) for i in (2, 0, 1, 1)])
    accuracy = accuracy_from_log(tmp_path, JoinedCalls(FakeProgram()), given)
    assert (accuracy.ok, accuracy.num_answers) == (True, 4)
    assert accuracy.outputs[0].worst.max_abs == 0


def test_answers_that_belong_to_another_sample_are_found(tmp_path) -> None:
    given = samples(3)
    write_answers(tmp_path, [(0, answer(given[1])), (1, answer(given[0])), (2, answer(given[2]))])
    accuracy = accuracy_from_log(tmp_path, JoinedCalls(FakeProgram()), given)
    assert not accuracy.ok
    assert accuracy.outputs[0].num_failed == 2
    assert accuracy.outputs[0].worst.max_abs == np.max(np.abs(2 * given[1].values["x"] - 2 * given[0].values["x"]))


@pytest.mark.parametrize("data", [b"", b"\x00" * 40])
def test_answers_that_are_no_values_are_an_error(tmp_path, data) -> None:
    write_answers(tmp_path, [(0, data)])
    with pytest.raises(InputOutputError, match="cannot be read"):
        accuracy_from_log(tmp_path, JoinedCalls(FakeProgram()), samples(1))


def test_a_sample_without_an_answer_is_an_error(tmp_path) -> None:
    given = samples(2)
    write_answers(tmp_path, [(0, answer(given[0]))])
    with pytest.raises(InputOutputError, match=r"no answer for x\.jsonl, line 1"):
        accuracy_from_log(tmp_path, JoinedCalls(FakeProgram()), given)
