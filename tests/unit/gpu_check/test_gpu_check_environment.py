# SPDX-License-Identifier: Apache-2.0
"""The environment for a machine without internet: the checkout in front, its entry points, wheels out of parts."""

import subprocess
import sys
from pathlib import Path

import pytest
from environment import joined_wheels, link_libraries, packages_of

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tests" / "gpu" / "environment.py"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "env"
    subprocess.run([sys.executable, SCRIPT, "--folder", folder], check=True, capture_output=True, timeout=120)
    return folder


def output_of(environment: Path, *arguments: str) -> str:
    command = [environment / "bin" / "python", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_it_sees_the_checkout_and_its_backends_without_any_variable(environment: Path) -> None:
    code = (
        "import nndeploy, nndeploy_cudnn\n"
        "from nndeploy.plugin.registry import backend_names\n"
        "print(nndeploy.__file__, nndeploy_cudnn.__file__, *backend_names(), sep='\\n')"
    )
    done = subprocess.run(
        [environment / "bin" / "python", "-I", "-c", code], capture_output=True, text=True, check=True
    )
    own, backend, *names = done.stdout.splitlines()
    assert Path(own).parents[1] == ROOT
    assert Path(backend).parents[2] == ROOT
    assert {"tensorrt", "cudnn", "triton", "onnxruntime", "reference"} <= set(names)


def test_it_starts_the_check(environment: Path) -> None:
    script = ROOT / "tests" / "gpu" / "gpu_check.py"
    done = subprocess.run(
        [environment / "bin" / "python", script, "--help"], capture_output=True, text=True, check=True
    )
    assert "--target-out" in done.stdout


def test_wheels_are_put_together_out_of_parts_of_several_folders(tmp_path: Path) -> None:
    for number, data in enumerate((b"abc", b"def", b"g")):
        folder = tmp_path / "carried" / f"part-{3 - number}"
        folder.mkdir(parents=True)
        (folder / f"big-1-py3-none-any.whl.part-{number:02}").write_bytes(data)
    (tmp_path / "carried" / "part-1" / "small-1-py3-none-any.whl").write_bytes(b"whole")
    found = joined_wheels(tmp_path / "carried", tmp_path / "joined")
    assert {path.name: path.read_bytes() for path in found} == {
        "small-1-py3-none-any.whl": b"whole",
        "big-1-py3-none-any.whl": b"abcdefg",
    }


def test_the_machine_s_libraries_are_linked_beside_carried_ones_but_not_cudnn_s(tmp_path: Path) -> None:
    machine, own = tmp_path / "machine", packages_of(tmp_path / "env")
    for name in ("cu13/lib/libcublasLt.so.13", "cu13/lib/libnvrtc.so.13", "cudnn/lib/libcudnn.so.9"):
        (machine / "nvidia" / name).parent.mkdir(parents=True, exist_ok=True)
        (machine / "nvidia" / name).write_text("the machine's")
    link_libraries(own, [machine])
    assert not own.exists()
    (own / "nvidia" / "cu13" / "lib").mkdir(parents=True)
    (own / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13").write_text("carried")
    link_libraries(own, [machine])
    assert (own / "nvidia" / "cu13" / "lib" / "libcublasLt.so.13").read_text() == "the machine's"
    assert (own / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13").read_text() == "carried"
    assert not (own / "nvidia" / "cudnn").exists()
