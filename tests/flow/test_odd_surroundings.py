# SPDX-License-Identifier: Apache-2.0
"""The command where a shell, a service manager or an attacker starts it: no home, no folder, other people's modules."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests_flow_bundles import write_double

COMMAND = str(Path(sys.executable).with_name("nndeploy"))
CANARY = "import os\nopen(os.environ.get('CANARY', '/dev/null') or '/dev/null', 'a').write(__name__)\nraise ImportError"
IDENTITY = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    np.savez(tmp_path / "x.npz", image=np.ones((2, 3), np.float32))
    return write_double(tmp_path / "m.nnd")


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_run_needs_no_home_no_environment_and_no_folder_to_be_in(bundle, tmp_path, umask) -> None:
    """Explicit paths are enough, and nothing is written but the output that was asked for."""
    gone = tmp_path / "gone"
    gone.mkdir()
    before = files(tmp_path) - {"gone"}
    run = f"{COMMAND} run {bundle} -i {tmp_path}/x.npz -o {tmp_path}/y.npz"
    script = f"umask {umask:03o}; cd {gone}; rmdir {gone}; exec env -i {run}"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) - before == {"y.npz"}
    with np.load(tmp_path / "y.npz") as found:
        assert found["y"].tolist() == [[2, 2, 2]] * 2
    assert (tmp_path / "y.npz").stat().st_mode & 0o777 == 0o666 & ~umask


def test_modules_that_lie_where_the_command_is_called_are_never_loaded(bundle, tmp_path) -> None:
    """A folder of downloads may hold a `re.py`: neither the command nor compile's children look there."""
    import onnx.parser

    here = tmp_path / "downloads"
    here.mkdir()
    for name in ("re", "numpy", "onnx", "onnxruntime", "json", "sitecustomize", "usercustomize"):
        (here / f"{name}.py").write_text(CANARY)
    (here / "m.onnx").write_bytes(onnx.parser.parse_model(IDENTITY).SerializeToString())
    environment = {**os.environ, "CANARY": str(tmp_path / "sang"), "HOME": str(tmp_path)}
    for words in (
        ["run", str(bundle), "-i", str(tmp_path / "x.npz"), "-o", "y.npz"],
        ["compile", "m.onnx", "-o", "made.nnd", "--backends", "onnxruntime", "--objective", "priority"],
    ):
        done = subprocess.run([COMMAND, *words], cwd=here, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sang").exists()


def test_compiles_children_load_nothing_that_the_environment_names(tmp_path) -> None:
    """What whoever calls it set for Python or the linker does not reach the children, in which models are parsed."""
    from nndeploy.sandbox.child_process import child_environment

    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "sitecustomize.py").write_text(CANARY)
    told = {"PYTHONPATH": str(hostile), "LD_PRELOAD": "x.so", "PYTHONSTARTUP": "x", "LD_LIBRARY_PATH": str(hostile)}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in told.items():
            patch.setenv(name, value)
        assert not told.keys() & child_environment(tmp_path).keys()


MAPS = """
import sys
from nndeploy.cli.main import run_command
assert run_command(["compile", "m.onnx", "-o", "m.nnd", "--backends", "onnxruntime", "--goldens", "1"]) == 0
print(*{line.split()[-1] for line in open("/proc/self/maps")}, sep="\\n", file=sys.stderr)
"""


def test_the_process_that_the_user_started_maps_no_library_that_parses_models(tmp_path) -> None:
    import onnx.parser

    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(IDENTITY).SerializeToString())
    done = subprocess.run([sys.executable, "-c", MAPS], cwd=tmp_path, capture_output=True, text=True, check=True)
    mapped = [Path(line).name for line in done.stderr.splitlines() if line.endswith(".so") or ".so." in line]
    assert mapped
    parsers = ("onnx", "openvino", "nvinfer", "tensorrt", "protobuf", "upb")
    assert [name for name in mapped if any(one in name.lower() for one in parsers)] == []
