# SPDX-License-Identifier: Apache-2.0
"""Boxes by name: every shipped file is found, read, and named as its file is; what a file may say of rates."""

from pathlib import Path

import pytest
from nndeploy_kernels.loading import missing

from nndeploy.errors import DataError, UsageError
from nndeploy.target.gpu_models import compute_capability_called
from nndeploy.target.known_targets import known_targets, target_file
from nndeploy.target.target import Target, target_from_toml, target_to_toml

PROMISED = {
    "h200", "jetson-orin", "raspberry-pi-5", "rtx3090", "rtx4090", "rtx5090", "t4", "x86-64-v3", "x86-64-v4",
}  # fmt: skip


def test_every_promised_box_is_known() -> None:
    assert set(known_targets()) == PROMISED


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_a_name_leads_to_a_target_that_can_be_read(name: str) -> None:
    assert target_from_toml(target_file(name)).arch in ("x86_64", "aarch64")


@pytest.mark.parametrize("text", ["box.toml", "boxes/box", "./rtx4090"])
def test_what_looks_like_a_path_is_one(text: str) -> None:
    assert target_file(text) == Path(text)


def test_a_file_that_is_there_is_meant_though_a_box_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t4").write_text('arch = "riscv64"')
    assert target_from_toml(target_file("t4")).arch == "riscv64"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no target is called 'mainframe'") as caught:
        target_file("mainframe")
    assert "rtx4090" in caught.value.hint
    assert "nndeploy probe -o box.toml" in caught.value.hint


def test_rates_of_a_target_come_back(tmp_path: Path) -> None:
    box = Target("box", "aarch64", flops_per_s=5 * 10**10, bytes_per_s=10**9)
    path = tmp_path / "box.toml"
    path.write_text(target_to_toml(box))
    assert target_from_toml(path) == box


@pytest.mark.parametrize(
    ("arch", "meant", "has"),
    [("aarch64", "aarch64", "asimd"), ("arm64", "aarch64", "asimd"), ("amd64", "x86_64", "sse4_2")],
)
def test_an_architecture_is_enough_for_a_target_and_means_what_every_such_processor_has(
    tmp_path: Path, arch: str, meant: str, has: str
) -> None:
    path = tmp_path / "box.toml"
    path.write_text(f'name = "board"\narch = "{arch}"\n')
    found = target_from_toml(path)
    assert (found.name, found.arch) == ("board", meant)
    assert has in found.cpu_features
    assert missing(found.arch, found.cpu_features) == ""
    path.write_text(f'arch = "{arch}"\ncpu_features = []\n')
    assert target_from_toml(path).cpu_features == ()


def test_a_gpu_without_a_target_file_is_served_by_one_of_its_compute_capability() -> None:
    for text, box in (("rtx4080", "rtx4090"), ("RTX 3060 Ti", "rtx3090"), ("jetson-agx-orin", "jetson-orin")):
        with pytest.raises(UsageError) as caught:
            target_file(text)
        assert caught.value.hint.startswith(f"{box} serves it")
    for name, path in known_targets().items():
        for gpu in target_from_toml(path).gpus if name.startswith("rtx") or name in ("t4", "h200") else ():
            assert compute_capability_called(name) == gpu.compute_capability


@pytest.mark.parametrize("rate", ["0", "-1", "1.5", "true", str(10**19)])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, rate: str) -> None:
    path = tmp_path / "box.toml"
    path.write_text(f'arch = "aarch64"\nflops_per_s = {rate}\n')
    with pytest.raises(DataError, match=r"flops_per_s must be|more than 64 bits"):
        target_from_toml(path)
