# SPDX-License-Identifier: Apache-2.0
"""A report comes back from JSON as it went; anything else is refused."""

import copy
import json

import pytest

from nndeploy.bundle.report import (
    Candidate,
    CheckReport,
    NodeReport,
    PassReport,
    QuantisationReport,
    QuantisationTrial,
    QuantisedLayer,
    Report,
    SubmodelReport,
    report_for_bundle,
    report_from_json,
    report_to_json,
)
from nndeploy.errors import BundleError

REPORT = Report(
    model="m",
    objective="priority",
    backends=("one", "two"),
    nodes=(NodeReport("n", "Add", "two", "s0", 1.0, ("x",), ("y",), {"one": "no"}),),
    submodels=(SubmodelReport("s0", "two", 1, 1.0, {"one": "no"}),),
    passes=(PassReport("p", 2),),
    checks=(
        CheckReport("whole", "two", 0, "y", True, 0.5, None, 1.0),
        CheckReport("s0", "two", 0, "y", False, note="n"),
    ),
    shapes=("x[1,2]", "x[3,2]"),
    candidates=(Candidate("c", 1.5, True, (1.5, 1)),),
    measured_shapes=("x[1,2]", "x[3,2]"),
    quantisation=QuantisationReport(
        "int8",
        "static",
        "min-max",
        20.0,
        3,
        1,
        400,
        100,
        (QuantisationTrial("static min-max", 1, 30.5, 0.1, 0.01, "y", True),),
        (QuantisedLayer("n", "Conv", False, "it costs too much", 12.5),),
    ),
    dropped=("d",),
    bundle="m.nnd",
    bundle_bytes=3,
    seconds={"load": 0.5},
)


def test_a_report_comes_back_from_json() -> None:
    assert report_from_json(json.loads(json.dumps(report_to_json(REPORT)))) == REPORT


def test_what_differs_from_run_to_run_stays_out_of_the_bundle() -> None:
    data = report_for_bundle(REPORT)
    assert not {"bundle", "bundle_bytes", "seconds"} & set(data)
    assert report_from_json(json.loads(json.dumps(data))).nodes == REPORT.nodes


def test_the_share_of_a_backend_is_that_of_its_submodels() -> None:
    assert REPORT.share_of("two") == 1.0
    assert REPORT.share_of("one") == 0.0


@pytest.mark.parametrize(("path", "value"), [
    (("model",), 3), (("backends",), ["one", 2]), (("backends",), "one"), (("nodes",), 3), (("nodes", 0), 3),
    (("nodes", 0), {"name": "n"}), (("nodes", 0, "name"), None), (("nodes", 0, "share"), "1"),
    (("nodes", 0, "share"), None), (("nodes", 0, "share"), True), (("nodes", 0, "inputs"), "xy"),
    (("nodes", 0, "inputs"), [1]), (("nodes", 0, "refusals"), {"one": 1}), (("nodes", 0, "refusals"), []),
    (("nodes", 0, "extra"), 1), (("submodels", 0, "num_nodes"), 1.5), (("candidates", 0, "shape_ms"), ["1"]),
    (("candidates", 0, "shape_ms"), 1.5), (("checks", 0, "ok"), 1), (("checks", 0, "max_abs"), "0"),
    (("quantisation",), 3), (("quantisation",), {"to": "int8"}), (("quantisation", "float_bytes"), 1.5),
    (("quantisation", "trials", 0, "chosen"), 1), (("quantisation", "layers", 0, "alone_db"), "12"), (("extra",), 1),
])  # fmt: skip
def test_what_is_no_report_is_refused(path, value) -> None:
    data = copy.deepcopy(json.loads(json.dumps(report_for_bundle(REPORT))))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(BundleError, match=r"report.json: not a report"):
        report_from_json(data)


@pytest.mark.parametrize("data", [{}, {"model": "m"}])
def test_a_report_that_lacks_a_part_is_refused(data) -> None:
    with pytest.raises(BundleError, match="not a report"):
        report_from_json(data)
