# SPDX-License-Identifier: Apache-2.0
"""tests/gpu on a pretended GPU, its models, and the environment for a machine without internet."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
GPU = ROOT / "tests" / "gpu"
sys.path.insert(0, str(GPU))

CHOSEN = (
    "test_gpu_cuda.py or test_gpu_kernels.py or test_gpu_networks.py or test_gpu_bundles.py or softmax/float16 or "
    "pointwise/float32 or largest/float32 or TestTriton and two_inputs"
)
NOT_HERE = "no_code or torch or cupy"
"""The pretended driver takes any bytes for code."""


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    paths = os.pathsep.join(map(str, (HERE, ROOT, ROOT / "backends")))
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-ojunit_family=xunit1", "--require-gpu", *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
def test_all_of_it_passes_on_a_pretended_gpu_and_its_figures_stand_on_the_page(tmp_path: Path) -> None:
    from gpu_page import section

    junit, box = tmp_path / "gpu.xml", tmp_path / "box.toml"
    chosen = f"({CHOSEN}) and not ({NOT_HERE})"
    places = ("tests/gpu", "tests/conformance/test_backends_gpu.py")
    done = run(*places, "-p", "pretended_gpu", "-k", chosen, f"--junitxml={junit}", f"--target-out={box}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert 'compute_capability = "9.0"' in box.read_text()
    results = {case.get("name", ""): case for case in ET.parse(junit).iter("testcase")}  # noqa: S314 - ours
    skipped = results["test_a_model_is_right_or_refused[largest/float32-triton]"].find("skipped")
    assert skipped is not None
    assert "TopK" in skipped.get("message", "")
    passed = [name for name, case in results.items() if case.find("skipped") is None]
    assert len([name for name in passed if name.startswith("test_a_problem")]) == 2
    page = section(junit)
    assert "| test_gpu_kernels | 3 |" in page
    assert "| test_gpu_networks | 1 |" in page
    assert "triton graph" in page
    assert "Pretended H200" in page


def test_without_a_gpu_it_ends_with_the_driver_s_reason() -> None:
    from nndeploy.cuda import cuda_unavailable

    if not cuda_unavailable():
        pytest.skip("there is a GPU")
    done = run("tests/gpu")
    assert done.returncode == 69
    assert cuda_unavailable() in done.stdout + done.stderr


def test_models_run_and_outputs_vary_so_that_no_error_is_hidden() -> None:
    import gpu_operator_models
    from gpu_backends import ort_outputs, ort_session, random_inputs

    for name in gpu_operator_models.names():
        session = ort_session(gpu_operator_models.model(name), threads=1)
        first, second = (ort_outputs(session, random_inputs(session, seed)) for seed in (0, 1))
        assert all(np.isfinite(value.astype(np.float64)).all() for value in first.values()), name
        assert any(not np.array_equal(first[key], second[key]) for key in first), name


def test_a_light_network_has_weights_that_show_errors() -> None:
    from gpu_backends import ort_outputs, ort_session
    from gpu_networks import network

    found = network("light/squeezenet")
    logits = list(ort_outputs(ort_session(found.source), found.sample).values())[-1]
    assert np.isfinite(logits).all()
    assert np.unique(logits).size > 500


def test_the_environment_sees_the_checkout_and_its_backends_without_any_variable(tmp_path: Path) -> None:
    subprocess.run([sys.executable, GPU / "environment.py", "--folder", tmp_path / "env"], check=True, timeout=120)
    code = "import nndeploy, nndeploy.plugin.registry as r; print(nndeploy.__file__, *r.backend_names())"
    command = [tmp_path / "env" / "bin" / "python", "-I", "-c", code]
    own, *names = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert Path(own).parents[1] == ROOT
    assert {"tensorrt", "cudnn", "triton", "onnxruntime", "reference"} <= set(names)


def test_wheels_are_put_together_out_of_parts_and_the_machine_s_libraries_linked(tmp_path: Path) -> None:
    from environment import joined_wheels, link_libraries, packages_of

    for number, data in enumerate((b"abc", b"def", b"g")):
        folder = tmp_path / "carried" / f"part-{3 - number}"
        folder.mkdir(parents=True)
        (folder / f"big-1-py3-none-any.whl.part-{number:02}").write_bytes(data)
    (found,) = joined_wheels(tmp_path / "carried", tmp_path / "joined")
    assert (found.name, found.read_bytes()) == ("big-1-py3-none-any.whl", b"abcdefg")
    machine, own = tmp_path / "machine", packages_of(tmp_path / "env")
    for path in (machine / "cu13/lib/libnvrtc.so", machine / "cudnn/lib/libcudnn.so", own / "nvidia/cu13/lib/own.so"):
        place = machine / "nvidia" / path.relative_to(machine) if machine in path.parents else path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("library")
    link_libraries(own, [machine])
    assert (own / "nvidia/cu13/lib/libnvrtc.so").is_symlink()
    assert not (own / "nvidia/cudnn").exists()  # two versions of cuDNN's parts do not mix
