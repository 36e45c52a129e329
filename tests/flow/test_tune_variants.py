# SPDX-License-Identifier: Apache-2.0
"""`nndeploy tune --fast`: the fastest variant of a submodel is kept for this machine, and later loads take it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from compile_with import compile_with
from faulty_backends import Install, changed_backend, late

from nndeploy import load_bundle
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.runtime.kept_variants import bundle_sha256, kept_variants
from nndeploy.runtime.load_options import LoadOptions

TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[N,8] x) => (float[N,8] y) { h = Exp(x) y = Neg(h) }"""
X = np.random.default_rng(0).random((2, 8)).astype(np.float32)


@pytest.fixture
def bundle(tmp_path: Path, install: Install) -> Path:
    """A bundle whose first variant takes 10 ms longer than its second."""
    install(changed_backend("tardy", 0, late))
    out = tmp_path / "m.nnd"
    how: Any = {"backends": ("tardy", "onnxruntime"), "objective": "priority", "samples": [{"x": X}]}
    compile_with(onnx.parser.parse_model(TEXT), out, **how)
    return out


def tuned(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["tune", *map(str, arguments), "--fast", "--seconds", "0.2", "--json"]) == code
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def backend_of(bundle: Path, folder: Path, **options: Any) -> str:
    with load_bundle(bundle, cache_dir=str(folder), **options) as program:
        np.testing.assert_allclose(program.run({"x": X})["y"], -np.exp(X), rtol=1e-6)
        return program.choices[0].backend


def test_the_fastest_variant_is_taken_later(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache, decisions = tmp_path / "cache", tmp_path / "tuned.json"
    assert backend_of(bundle, cache) == "tardy"
    (table,) = tuned(capsys, bundle, "--cache", cache, "--decisions", decisions)["variants"]
    assert table["variants"] == {"s0": "v1-onnxruntime"}
    assert table["tuned_us"] < table["rule_us"] - 5_000
    assert backend_of(bundle, cache) == "onnxruntime"
    again = tuned(capsys, bundle, "--cache", cache)["variants"]  # now against the one that was chosen
    assert again[0]["variants"] == {"s0": "v1-onnxruntime"}
    assert backend_of(bundle, cache) == "onnxruntime"
    assert tuned(capsys, bundle, "--cache", tmp_path / "two", "--decisions", decisions)["replayed"]
    assert backend_of(bundle, tmp_path / "two") == "onnxruntime"


def test_of_another_machine_or_bundle_it_is_as_if_nothing_were_there(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache, decisions = tmp_path / "cache", tmp_path / "tuned.json"
    tuned(capsys, bundle, "--cache", cache, "--decisions", decisions)
    assert backend_of(bundle, cache, threads=3) == "tardy"
    with load_bundle(bundle, cache_dir=str(cache), threads=3) as program:
        assert str(cache) in program.variants_note
    tuned(capsys, bundle, "--cache", cache, "--threads", "3", "--decisions", decisions, code=65)
    before = (cache / "variants.json").read_text()
    for text in ("{", "[]", before.replace("variants", "others"), before.replace('"format": 1', '"format": 2')):
        (cache / "variants.json").write_text(text)
        assert backend_of(bundle, cache) == "tardy"
    (cache / "variants.json").write_text(before.replace("v1-onnxruntime", "nobody"))
    assert backend_of(bundle, cache) == "tardy"
    with open_bundle(bundle) as opened:
        digest = bundle_sha256(opened.manifest)
    (cache / "variants.json").write_text(before.replace(digest, "0" * 64))
    assert backend_of(bundle, cache) == "tardy"


def test_code_is_never_chosen_so(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "cache"
    tuned(capsys, bundle, "--cache", cache)
    with open_bundle(bundle) as opened:
        manifest = opened.manifest
    (submodel,) = manifest.submodels
    code = tuple(replace(variant, native_code=True) for variant in submodel.variants)
    assert kept_variants(str(cache), manifest, LoadOptions())[0] == {"s0": "v1-onnxruntime"}
    with_code = replace(manifest, submodels=(replace(submodel, variants=code),))
    assert kept_variants(str(cache), with_code, LoadOptions())[0] == {}


def test_a_folder_that_cannot_be_written_is_told(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    tuned(capsys, bundle, "--cache", tmp_path / "file", code=74)
    tuned(capsys, bundle, "--cache", "", code=74)
    assert backend_of(bundle, tmp_path / "file") == "tardy"
