# SPDX-License-Identifier: Apache-2.0
"""What the command believes of the process that compiled: nothing that decides where it writes or what it signs."""

import dataclasses
import json
from pathlib import Path

import pytest

from nndeploy.bundle.report import Report, report_to_json
from nndeploy.compiler import job
from nndeploy.compiler.job import Onlooker, compile_in_child
from nndeploy.compiler.options import CompileLimits
from nndeploy.errors import CrashedError


@pytest.mark.parametrize("said_bytes", [0, 1])
def test_what_is_signed_is_what_was_written_wherever_the_child_says_that_it_is(
    tmp_path, monkeypatch, said_bytes
) -> None:
    foreign, out = tmp_path / "foreign.nnd", tmp_path / "out.nnd"
    foreign.write_text("of a stranger")
    signed = []

    def lying(folder: Path, *_: object) -> CrashedError:
        Path(json.loads((folder / "request.json").read_text())["out"]).write_text("built")
        report = Report(
            backends=(), nodes=(), submodels=(), model="m", objective="latency", shapes=(), bundle=str(foreign),
            bundle_bytes=said_bytes,
        )  # fmt: skip
        (folder / "response.json").write_text(json.dumps({"report": report_to_json(report)}))
        return CrashedError("it left no response")

    def sign(report: Report, path: Path) -> Report:
        signed.append(path.read_text())
        return dataclasses.replace(report, bundle_bytes=5)

    monkeypatch.setattr(job, "_run", lying)
    monkeypatch.setattr(job, "signed_by_this_machine", sign)
    compile_in_child(str(tmp_path / "m.onnx"), str(out), {}, CompileLimits(), Onlooker())
    assert signed == ["built"]
    assert (out.read_text(), foreign.read_text()) == ("built", "of a stranger")
