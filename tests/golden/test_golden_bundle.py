# SPDX-License-Identifier: Apache-2.0
"""Bundles of every released format stay readable, and are still written to the same byte."""

import dataclasses
from pathlib import Path

import make_golden
import numpy as np
import pytest

from nndeploy.bundle.manifest import FORMAT_MAJOR, FORMAT_MINOR
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import report_from_json

FOLDER = Path(__file__).resolve().parent
GOLDENS = sorted(FOLDER.glob("*.nnd"))


def test_there_is_a_bundle_of_each_format() -> None:
    later = [f"format-{FORMAT_MAJOR}.{minor}.nnd" for minor in range(1, FORMAT_MINOR + 1)]
    assert {path.name for path in GOLDENS} == {f"format-{FORMAT_MAJOR}.nnd", *later}


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name)
def test_stays_readable(path: Path) -> None:
    with open_bundle(path) as bundle:
        bundle.verify()
        for golden in bundle.manifest.goldens:
            assert bundle.values(golden.inputs).keys() == {value.name for value in bundle.manifest.inputs}
            assert bundle.values(golden.outputs).keys() == {value.name for value in bundle.manifest.outputs}
        assert report_from_json(bundle.report()).model == bundle.manifest.model_name


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name)
def test_holds_what_was_put_into_it(path: Path) -> None:
    manifest, members = make_golden.WRITTEN[path.name]
    with open_bundle(path) as bundle:
        assert dataclasses.replace(bundle.manifest, members={}) == manifest
        assert {name: bytes(bundle.stored(name)) for name in members} == members
        assert {name: bytes(bundle.member(name)) for name in make_golden.MEMBERS} == make_golden.MEMBERS
        assert bundle.report() == make_golden.REPORT
        constants = bundle.values(bundle.manifest.constants)
        assert np.array_equal(constants["table"], np.arange(1600).reshape(40, 40))
        assert constants["words"].tolist() == ["zero", "\N{GREEK SMALL LETTER ALPHA}"]


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name)
def test_is_written_to_the_same_byte(tmp_path: Path, path: Path) -> None:
    make_golden.make(tmp_path, path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.name)
def test_still_runs(path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from nndeploy.runtime.load_options import LoadOptions
    from nndeploy.runtime.program import load_bundle

    with load_bundle(path, LoadOptions(device="cpu")) as program:
        outputs = program.run({"x": make_golden.X})
    assert outputs.keys() == make_golden.OUTPUTS.keys()
    for name, expected in make_golden.OUTPUTS.items():
        assert np.array_equal(outputs[name], expected), name
