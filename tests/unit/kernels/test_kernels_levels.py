# SPDX-License-Identifier: Apache-2.0
"""The levels of the kernel library, which needs nothing of nndeploy, are those of nndeploy's targets."""

from itertools import accumulate
from pathlib import Path

import pytest
from nndeploy_kernels import loading
from nndeploy_kernels.build import SOURCES, level_here, zig
from nndeploy_kernels.build_web import TARGET
from nndeploy_kernels.levels import LEVELS, least_machines
from nndeploy_kernels.loading import API_VERSION, installed, missing

from nndeploy.target.target import BF16_FEATURE, X86_64_LEVELS, host_target

BY_NAME = {level.name: level for level in LEVELS}
X86_64 = dict(zip(X86_64_LEVELS, accumulate(X86_64_LEVELS.values()), strict=True))
V2, V3, V4 = (X86_64[name] for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4"))


def test_levels_ask_for_the_features_of_the_targets_of_their_names() -> None:
    asked = {level.name: set(level.cpu_features) for level in LEVELS if level.arch == "x86_64"}
    assert asked == {name: set(features) for name, features in X86_64.items()} | {"x86-64-v4-bf16": {*V4, BF16_FEATURE}}


def test_machines_of_a_plan_are_the_least_of_each_architecture() -> None:
    assert least_machines("fp32") == [
        {"arch": "aarch64", "cpu_features": ["asimd"]},
        {"arch": "x86_64", "cpu_features": sorted(V2)},
    ]
    assert least_machines("bf16") == [{"arch": "x86_64", "cpu_features": sorted([*V4, BF16_FEATURE])}]


@pytest.mark.parametrize(("arch", "features", "precision", "reason"), [
    ("x86_64", V2, "fp32", ""), ("aarch64", ("asimd", "fp"), "fp32", ""),
    ("x86_64", V2[:-1], "fp32", "the target lacks ssse3, which x86-64-v2 has"),
    ("x86_64", V4, "bf16", "the target lacks avx512_bf16, which x86-64-v4-bf16 has"),
    ("riscv64", (), "fp32", "no fp32 kernels for riscv64"),
    ("aarch64", ("asimd",), "bf16", "no bf16 kernels for aarch64"),
])  # fmt: skip
def test_what_a_machine_lacks_is_said(arch: str, features: tuple[str, ...], precision: str, reason: str) -> None:
    assert missing(arch, features, precision) == reason


@pytest.mark.parametrize(("features", "precision", "files", "level"), [
    (V4, "fp32", LEVELS, "x86-64-v4"), ((*V4, BF16_FEATURE), "fp32", LEVELS, "x86-64-v4"),
    ((*V4, BF16_FEATURE), "bf16", LEVELS, "x86-64-v4-bf16"), (V3, "bf16", LEVELS, "x86-64-v3"),
    (V4, "fp32", (BY_NAME["x86-64-v2"], BY_NAME["aarch64"]), "x86-64-v2"), (V4, "fp32", (BY_NAME["aarch64"],), None),
    (V2[1:], "fp32", LEVELS, None),
])  # fmt: skip
def test_widest_level_that_is_here_is_taken(features, precision, files, level, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    for one in files:
        (tmp_path / one.file_name).touch()
    monkeypatch.setattr(loading, "LIBRARIES", tmp_path)
    found = installed("x86_64", features, precision)
    assert (found and found.name) == level


def test_version_of_the_interface_is_that_of_the_header() -> None:
    assert f"#define NND_API_VERSION {API_VERSION}\n" in (SOURCES / "nndeploy_kernels.h").read_text()


def test_the_level_that_is_built_here_is_the_widest_that_this_machine_runs() -> None:
    host = host_target()
    here = level_here()
    assert set(host.cpu_features).issuperset(here.cpu_features)
    wider = LEVELS[LEVELS.index(here) + 1 :]
    same = [one for one in wider if (one.arch, one.precision) == (here.arch, here.precision)]
    assert not any(set(host.cpu_features).issuperset(one.cpu_features) for one in same)


def test_two_functions_of_one_name_are_refused(tmp_path: Path) -> None:
    """Where their types differ a linker takes one of them, and only warns."""
    (tmp_path / "a.c").write_text("int f(int a) { return a; }")
    (tmp_path / "b.c").write_text("int f(int a, int b) { return a + b; } int g(void) { return f(1, 2); }")
    target = ["-target", TARGET]
    for name in "ab":
        zig("cc", [*target, "-c", str(tmp_path / f"{name}.c"), "-o", str(tmp_path / f"{name}.o")])
    with pytest.raises(RuntimeError):  # of a build with other flags the compiler would make another C library
        zig("cc", [*target, "-mexec-model=reactor", "-s", "-Wl,--export=g", *map(str, sorted(tmp_path.glob("*.o"))),
                   "-o", str(tmp_path / "g.wasm")])  # fmt: skip
