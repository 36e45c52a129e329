# SPDX-License-Identifier: Apache-2.0
"""The table: one line for what is equal, a line of its own for what is not, nothing cut that names a model."""

from gpucheck.rows import NOT_RUN, OK, REFUSED, WRONG, Row
from gpucheck.table import MAX_REASON, lines_of, merged


def test_equal_refusals_of_a_backend_are_one_line_wherever_they_stand() -> None:
    rows = [
        Row("operators", "a", "cudnn", REFUSED, "no such engine"),
        Row("operators", "a", "triton", WRONG, "off by 1"),
        Row("operators", "b", "cudnn", REFUSED, "no such engine"),
        Row("operators", "b", "cudnn", REFUSED, "another reason"),
    ]
    found = merged(rows)
    assert [(row.backend, row.item) for row in found] == [("triton", "a"), ("cudnn", "b"), ("cudnn", "2 of them")]
    assert found[2].facts == {"": "a, b"}


def test_models_that_are_right_are_counted_with_the_worst_error() -> None:
    rows = [Row("operators", str(n), "triton", OK, max_abs=float(n)) for n in range(9)]
    (row,) = merged(rows)
    assert (row.item, row.max_abs) == ("9 of them", 8.0)
    assert row.facts[""] == "0, 1, 2, 3, 4, 5 and 3 more"


def test_what_is_timed_or_bad_has_its_own_line() -> None:
    rows = [Row("kernels", "a", "triton", ms=1.0), Row("kernels", "b", "triton", ms=1.0)]
    rows += [Row("operators", "a", "triton", WRONG, "x"), Row("operators", "b", "triton", WRONG, "x")]
    assert merged(rows) == rows


def test_stages_stay_in_order_and_apart() -> None:
    rows = [Row("cuda", "a", "x", NOT_RUN, "why"), Row("speed", "b", "x", NOT_RUN, "why")]
    assert [row.stage for row in merged(rows)] == ["cuda", "speed"]


def test_columns_line_up_and_figures_are_short() -> None:
    head, rule, first, second = lines_of(
        [
            Row("kernels", "softmax 8192x1024", "triton", max_abs=1.23456e-7, ms=0.0123456, ratio=1.256, peer="torch"),
            Row("speed", "x", "onnxruntime CPU", ms=12.3456, facts={"GB/s": 1234.5678, "in": "L2"}),
        ]
    )
    assert set(rule) == {"-"}
    assert head.index("backend") == first.index("triton") == second.index("onnxruntime CPU")
    assert "1.2e-07" in first
    assert "0.0123  1.26 torch" in first
    assert "12.35" in second
    assert second.endswith("GB/s 1235; in L2")


def test_a_long_reason_is_cut_in_the_table_alone() -> None:
    row = Row("cuda", "a", "cuda", WRONG, "x" * 1000)
    assert lines_of([row])[2].endswith("x" * (MAX_REASON - 3) + "...")
