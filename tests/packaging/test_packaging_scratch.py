# SPDX-License-Identifier: Apache-2.0
"""A program that `nndeploy export` writes is all that a container needs: an image from scratch, of 5 MB."""

import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from container_build import bare_builder
from nndeploy_kernels import build_runtime
from nndeploy_kernels.build import level_here
from wheel_builds import ROOT

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.runtime.exported_program import export_program

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
CONTAINER_FILE = ROOT / "examples" / "container" / "Containerfile"
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program alone, and beside it what Python made of an image."""
    folder = tmp_path_factory.mktemp("scratch")
    bundle, context = folder / "digits.nnd", folder / "context"
    context.mkdir()
    folder.chmod(0o755)  # the program in a container is another user
    arch = level_here().arch
    build_runtime.build_runner(arch)
    nndeploy.compile_model(DIGITS, bundle, backends=("native",), objective="priority", threads=1)
    with open_bundle(bundle) as opened:
        export_program(opened, context / "digits", arch)
    image = np.random.default_rng(1).uniform(0, 16, (1, 1, 8, 8)).astype(np.float32)
    with nndeploy.load_bundle(bundle, threads=1) as program:
        np.save(folder / "wanted.npy", program.run({"image": image})["probabilities"])
    np.save(folder / "image.npy", image)
    return context


def assert_reads_the_image(command: list[object], context: Path) -> None:
    given = (context.parent / "image.npy").read_bytes()
    done = subprocess.run([*map(str, command), "--input", "-"], input=given, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert_is_wanted(done.stdout.decode(), context)


def assert_is_wanted(summary: str, context: Path) -> None:
    name, _, *values = summary.split()
    assert name == "probabilities:"
    np.testing.assert_allclose(np.array(values, np.float32), np.load(context.parent / "wanted.npy")[0], rtol=1e-4)


def test_a_program_runs_in_a_root_that_holds_nothing_else(context: Path) -> None:
    unshare = shutil.which("unshare") or pytest.skip("there is no unshare")
    own = [unshare, "--user", "--map-root-user", "--net"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no user may have a root of its own here")
    assert [path.name for path in context.iterdir()] == ["digits"]
    assert_reads_the_image([*own, "--root", context, "/digits"], context)


def test_an_image_from_scratch_is_the_program_alone(context: Path, tmp_path: Path) -> None:
    with bare_builder(tmp_path / "buildah") as buildah:
        build = ["--isolation", "chroot", "--pull-never", "--quiet", "--tag", "digits"]
        buildah("build", *build, "--file", str(CONTAINER_FILE), str(context))
        container = buildah("from", "--pull-never", "digits")
        inside = [path for path in Path(buildah("mount", container)).rglob("*") if not path.is_dir()]
        assert [path.name for path in inside] == ["digits"]
        run = ["run", "--isolation", "chroot", "--volume", f"{context.parent}:/given:ro", container, "--"]
        assert_is_wanted(buildah(*run, "/digits", "--input", "/given/image.npy", "--threads", "1"), context)


def test_the_layer_of_that_image_has_5_mb(context: Path) -> None:
    assert len(zlib.compress((context / "digits").read_bytes())) < MOST_BYTES
