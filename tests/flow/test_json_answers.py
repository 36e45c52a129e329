# SPDX-License-Identifier: Apache-2.0
"""Every command answers `--json` with one document of the shipped schema, whether it worked or not."""

import json
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import onnx
import pytest
from tests_flow_bundles import write_branches, write_double

from nndeploy.cli.main import COMMANDS, run_command
from nndeploy.trust.signers import new_key

SCHEMA = json.loads(resources.files("nndeploy.cli").joinpath("answers.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
BATCH = jsonschema.Draft202012Validator(
    json.loads(resources.files("nndeploy.farm.reports").joinpath("batch.schema.json").read_text(encoding="utf-8"))
)
EMBEDDER = Path(__file__).resolve().parents[2] / "examples" / "text" / "embedder"
RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Relu(x) }'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, Any]]:
    """Returns (exit code, the document on standard output), checked against the schema."""
    code = run_command([str(argument) for argument in arguments])
    document = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(document)
    assert document["ok"] == (code == 0)
    return code, document


def test_the_schema_is_one_and_knows_every_command() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(COMMANDS) <= set(SCHEMA["$defs"])


@pytest.mark.parametrize(("arguments", "code"), [
    (("inspect", "m.nnd"), 0), (("inspect", "m.onnx"), 0), (("verify", "m.nnd"), 0),
    (("verify", "m.nnd", "--no-run"), 0), (("bench", "m.nnd", "--iterations", "2", "--warmup", "0"), 0),
    (("diff", "m.nnd", "m.nnd"), 0), (("diff", "m.nnd", "other.nnd"), 1),
    (("run", "m.nnd", "--input", "x.npz", "--output", "y.npz"), 0), (("backends",), 0),
    (("sign", "m.nnd", "--key", "farm.key", "--release", "1.0"), 0), (("key", "list"), 0),
    (("install", "faces", "m.nnd"), 0), (("installed",), 0), (("doctor",), 0), (("targets",), 0), (("probe",), 0),
    (("new", "embed", "--model", "embedder/model.onnx", "-o", "p.toml"), 0),
])  # fmt: skip
def test_a_command_that_works_answers(here, capsys, arguments, code) -> None:
    write_double(here / "m.nnd")
    write_branches(here / "other.nnd")
    onnx.save(onnx.parser.parse_model(RELU), "m.onnx")
    np.savez("x.npz", image=np.ones((1, 3), np.float32))
    shutil.copytree(EMBEDDER, "embedder")
    new_key(here / "farm.key")
    found, document = answer(capsys, *arguments, "--json")
    assert found == code
    assert document["schema"] == f"nndeploy.{arguments[0]}.1"
    assert "error" not in document


@pytest.mark.parametrize("arguments", [
    ("new", "embed", "--model", "no.onnx", "-o", "p.toml"),
    ("compile", "no.onnx", "-o", "m.nnd"), ("batch", "no.toml"), ("batch", "no.toml", "--plan"),
    ("cache", "stats", "--no-such-option"), ("run", "no.nnd", "--input", "x.npz"), ("inspect", "no.nnd"),
    ("verify", "no.nnd"), ("bench", "no.nnd"), ("tune", "no.nnd"), ("pace", "no.nnd", "--max-latency", "1ms"),
    ("diff", "no.nnd", "no.nnd"),
    ("sign", "no.nnd", "--key", "no.key"), ("key", "list", "--no-such-option"), ("install", "faces", "no.nnd"),
    ("installed", "no"), ("rollback", "no"), ("uninstall", "no"), ("export", "no.nnd", "-o", "program"),
    ("doctor", "--no-such-option"),
    ("push", "no.nnd", "oci://registry.example/faces:1"), ("pull", "https://registry.example/faces:1", "-o", "m.nnd"),
    ("backends", "--no-such-option"), ("targets", "--no-such-option"), ("probe", "--no-such-option"),
])  # fmt: skip
def test_a_command_that_fails_answers_why(here, capsys, arguments) -> None:
    code, document = answer(capsys, *arguments, "--json")
    assert code in (2, 66)
    assert document["schema"] == f"nndeploy.{arguments[0]}.1"
    assert document["error"]["exit_code"] == code
    assert document["error"]["message"]


def test_an_unknown_command_answers_too(here, capsys) -> None:
    code, document = answer(capsys, "complie", "--json")
    assert (code, document["schema"]) == (2, "nndeploy.nndeploy.1")
    assert "compile" in document["error"]["hint"]


def test_without_json_nothing_is_answered(here, capsys) -> None:
    assert run_command(["verify", "no.nnd"]) == 66
    assert capsys.readouterr().out == ""


def test_a_compile_answers_and_a_failed_gate_shows_its_table_first(here, capsys) -> None:
    onnx.save(onnx.parser.parse_model(RELU), "m.onnx")
    line = ("compile", "m.onnx", "-o", "m.nnd", "--backends", "onnxruntime,reference", "--no-fallback")
    code, document = answer(capsys, *line, "--json")
    assert (code, document["submodels"][0]["backend"]) == (0, "onnxruntime")
    (here / "m.nnd").unlink()
    code, document = answer(capsys, *line, "--max-fallback", "0", "--json")
    assert (code, document["error"]["code"]) == (1, "check-failed")
    assert document["submodels"][0]["backend"] == "onnxruntime"
    assert run_command([*line, "--max-fallback", "0"]) == 1
    assert "s0" in capsys.readouterr().out
    assert not (here / "m.nnd").exists()


def test_a_batch_answers_what_it_would_do_what_it_did_and_what_it_holds(here, capsys, monkeypatch) -> None:
    monkeypatch.setenv("NNDEPLOY_CACHE_DIR", str(here / "cache"))
    (here / "m.onnx").write_bytes(b"no model")
    (here / "fleet.toml").write_text('[[models]]\nfiles = ["*.onnx"]\n')
    code, document = answer(capsys, "batch", "fleet.toml", "--plan", "--json")
    assert (code, document["jobs"][0]["id"], document["jobs"][0]["state"]) == (0, "m/host", "build")
    code, document = answer(capsys, "batch", "fleet.toml", "--explain", "m/host", "--json")
    assert (code, document["job"]["id"]) == (0, "m/host")
    code, document = answer(capsys, "batch", "fleet.toml", "--collect", "--json")
    assert (code, document["error"]["code"], document["summary"]["skipped"]) == (75, "busy", 1)
    code, document = answer(capsys, "batch", "fleet.toml", "--json")
    assert (code, document["error"]["code"]) == (1, "check-failed")
    assert (document["jobs"][0]["status"], document["summary"]["failed"]) == ("failed", 1)
    BATCH.validate({name: document[name] for name in BATCH.schema["required"]})
    for subcommand in ("stats", "gc", "verify"):
        code, document = answer(capsys, "cache", subcommand, "--json")
        assert (code, document["folder"]) == (0, str(here / "cache"))
