# SPDX-License-Identifier: Apache-2.0
"""Batches for tests of reports: one job of each status, and names that try to be more than text."""

from typing import Any

from nndeploy.errors import ModelError, told_error
from nndeploy.farm.outcome import GOOD, NOT_RUN, STATUSES, Outcome
from nndeploy.farm.reports.batch import Batch, Finding

HOSTILE = (
    "</code></script><script>alert(1)</script>\"'><img src=x onerror=alert(2)> | `` ` ~~~ *a* _b_ [x](http://e.example)"
    " www.e.example @all $x$ &amp; \\| \\` ]]> @jobs@@title@ \x1b[31m\x00\n# head\n\n- item \u2028\ud800\ufffe"
)
ERROR = told_error(ModelError("node 'Conv_3' has no weights", where="models/a.onnx", hint="export it again"))


def outcome(model: str = "a", target: str = "host", status: str = "ok", **fields: Any) -> Outcome:
    variant = fields.pop("variant", "")
    given: dict[str, Any] = {"job": f"{model}/{target}/{variant}", "seconds": 1.5, "worker": "w1"}
    if status in GOOD:
        given |= {
            "output": f"dist/{model}/{target}.nnd", "sha256": "cd" * 32, "size": 3_400_000, "latency_ms": 2.0,
            "max_error": 1e-6, "backends": {"native": 0.75, "onnxruntime": 0.25},
        }  # fmt: skip
    elif status not in NOT_RUN:
        given |= {
            "exit_code": 65, "error": ERROR, "log": "logs/a.txt", "log_tail": ("first", "last"),
            "repeat": f"nndeploy compile {model}.onnx -o out.nnd",
        }  # fmt: skip
    return Outcome(model=model, target=target, variant=variant, status=status, **{**given, **fields})


def batch(*outcomes: Outcome, findings: tuple[Finding, ...] = ()) -> Batch:
    return Batch(
        plan="ef" * 32, started="2026-11-26T02:00:00+00:00", seconds=12.25, outcomes=outcomes, findings=findings
    )


def finding(gate: str = "slowdown", model: str = "a", **fields: Any) -> Finding:
    given = {
        "job": f"{model}/host/", "text": "latency grew from 2 ms to 3 ms", "before": 2.0, "now": 3.0, "limit": 1.05,
    }  # fmt: skip
    return Finding(gate=gate, model=model, target="host", variant="", **{**given, **fields})


def every_status(names: str = "{}") -> Batch:
    """Returns a batch with a job of each status on two boxes, whose names and texts are formatted by `names`."""
    jobs = [
        outcome(
            names.format(f"m{number}"), names.format(target), status, variant=names.format("v"),
            job=f"{status}/{target}", repeat=names.format("nndeploy compile"), log_tail=(names.format("line"),),
            error={**ERROR, "message": names.format("m"), "hint": names.format("h")} if status not in GOOD else None,
            output=names.format("dist/out.nnd"), backends={names.format("native"): 1.0} if status in GOOD else {},
        )
        for number, status in enumerate(STATUSES)
        for target in ("box", "host")
    ]  # fmt: skip
    found = finding(model=names.format("m0"), text=names.format("grew")), finding("not-judged", names.format("m1"))
    return batch(*jobs, findings=found)


HOSTILE_NAMES = HOSTILE.replace("{", "{{").replace("}", "}}") + "{}" + HOSTILE.replace("{", "{{").replace("}", "}}")
