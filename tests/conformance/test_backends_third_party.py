# SPDX-License-Identifier: Apache-2.0
"""A plugin from outside the tree is installed by pip, found by its entry point, and passes the suite."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parent / "example_plugin"

USES_PLUGIN = """
import json, sys
from nndeploy.plugin.registry import backend, backend_names, backends_in_order
found = backend("numpy-example")
print(json.dumps({
    "names": backend_names(),
    "name": found.name,
    "file": sys.modules[type(found).__module__].__file__,
    "order": [b.name for b in backends_in_order(["numpy-example", "reference"])],
}))
"""

COMPILES_FOR_PLUGIN = """
import sys, onnx.parser, numpy as np, nndeploy
model = onnx.parser.parse_model(
    '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] z) { y = Add(x, x) z = Relu(y) }'
)
report = nndeploy.compile_model(model, sys.argv[1], nndeploy.CompileOptions(backends=("numpy-example",)))
assert {node.backend for node in report.nodes} == {"numpy-example"}, report.nodes
with nndeploy.load_bundle(sys.argv[1]) as program:
    print(program.run({"x": np.array([1, -1], np.float32)})["z"].tolist())
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has the plugin installed; nothing is downloaded."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source, ignore=shutil.ignore_patterns("__pycache__"))
    site = tmp_path_factory.mktemp("site")
    subprocess.run(
        [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
            "--disable-pip-version-check", "--target", str(site), str(source),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return {**os.environ, "PYTHONPATH": str(site)}


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_installed_plugin_is_found_and_names_itself(environment: dict[str, str]) -> None:
    said = json.loads(run(environment, "-c", USES_PLUGIN))
    assert "numpy-example" in said["names"]
    assert said["name"] == "numpy-example"
    assert Path(said["file"]).is_relative_to(environment["PYTHONPATH"])
    assert said["order"] == ["numpy-example", "reference"]


def test_installed_plugin_passes_the_suite(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    suite = shutil.copy(PLUGIN / "suite.py", tmp_path)
    said = run(environment, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini"), suite)
    assert " passed" in said
    assert "failed" not in said


def test_compile_uses_the_installed_plugin(environment: dict[str, str], tmp_path: Path) -> None:
    assert json.loads(run(environment, "-c", COMPILES_FOR_PLUGIN, str(tmp_path / "m.nnd"))) == [2.0, 0.0]
