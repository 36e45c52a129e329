# SPDX-License-Identifier: Apache-2.0
"""What rows mean together: the exit status, the summary, the ratio to the best peer."""

import json
import math

import pytest
from gpucheck.rows import (
    BAD,
    CRASHED,
    DIFFERS,
    NOT_RUN,
    OK,
    REFUSED,
    WRONG,
    Row,
    exit_status,
    row_from_json,
    row_of,
    row_to_json,
    summary,
    with_ratios,
)

GOOD = Row("operators", "softmax", "triton", OK, max_abs=1e-7)


def test_a_row_comes_back_from_json() -> None:
    row = Row("kernels", "softmax", "triton", OK, "", 1e-7, 0.5, 1.3, "torch", {"GB/s": 100.0})
    assert row_from_json(json.loads(json.dumps(row_to_json(row)))) == row


def test_figures_that_json_lacks_become_none() -> None:
    row = row_to_json(Row("a", "b", ms=math.inf, max_abs=math.nan, facts={"rate": math.nan}))
    assert (row["ms"], row["max_abs"], row["facts"]) == (None, None, {"rate": None})


def test_refusals_and_what_was_not_run_are_fine() -> None:
    others = [Row("probe", "probe", "tensorrt", REFUSED), Row("speed", "a", "torch", NOT_RUN)]
    assert exit_status([GOOD, *others, Row("kernels", "a", "torch", DIFFERS)]) == 0


@pytest.mark.parametrize("status", BAD)
def test_anything_bad_is_status_1(status: str) -> None:
    assert exit_status([GOOD, Row("operators", "a", "cudnn", status)]) == 1


def test_nothing_checked_on_a_gpu_is_no_success() -> None:
    assert exit_status([]) == 1
    assert exit_status([Row("probe", "onnxruntime", "onnxruntime"), Row("probe", "probe", "triton", REFUSED)]) == 1


def test_the_summary_has_the_bad_ones_first() -> None:
    rows = [GOOD, GOOD, Row("a", "b", status=REFUSED), Row("a", "b", status=CRASHED), Row("a", "b", status=WRONG)]
    assert summary(rows) == "1 WRONG, 1 CRASHED, 2 ok, 1 refused"
    assert summary([]) == "nothing was done"


def test_the_ratio_is_to_the_fastest_peer() -> None:
    rows = [Row("k", "a", "triton", ms=2.0), Row("k", "a", "torch", ms=3.0), Row("k", "a", "cudnn", REFUSED)]
    first, second, third = with_ratios(rows, {"torch": 3.0, "onnxruntime CUDA": 1.0})
    assert (first.ratio, first.peer) == (0.5, "onnxruntime CUDA")
    assert second.ratio is None
    assert third.ratio is None
    assert with_ratios(rows, {}) == rows


@pytest.mark.parametrize(
    ("item", "name", "backend"),
    [
        ("cudnn: softmax/float32", "softmax/float32", "cudnn"),
        ("light/resnet50 | all", "light/resnet50", "all"),
        ("copy: 1 GiB", "copy: 1 GiB", ""),
    ],
)
def test_an_item_s_name_tells_the_backend(item: str, name: str, backend: str) -> None:
    row = row_of("stage", item, CRASHED, "why")
    assert (row.item, row.backend, row.status, row.reason) == (name, backend, CRASHED, "why")
