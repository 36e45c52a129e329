# SPDX-License-Identifier: Apache-2.0
"""A compile takes what the same compile made before, and nothing else."""

import dataclasses
import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from bazel_remote_server import BazelRemoteServer
from onnx import TensorProto, helper

from nndeploy.build_cache import local_cache
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.key import key_of
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.bundle.report import Report, report_to_json
from nndeploy.cli.commands.compile import compile_
from nndeploy.compiler import cache_key, cached_compile
from nndeploy.compiler.cache_key import parts_of
from nndeploy.compiler.cached_compile import CacheOptions, Compiled, compile_cached
from nndeploy.compiler.job import Keeper, Onlooker
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.errors import BusyError, CannotCreateError, DataError, InputOutputError, ModelError
from nndeploy.options.described import described_fields, option_name
from nndeploy.trust.trust_store import TrustStore

REPORT = Report(backends=("native",), nodes=(), submodels=(), model="m", objective="latency", shapes=())


def write_model(path: Path, name: str = "w") -> Path:
    weight = helper.make_tensor(name, TensorProto.FLOAT, (2,), bytes(8), raw=True)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", name], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (2,))], [weight],
    )  # fmt: skip
    model = helper.make_model(graph)
    onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.bin", size_threshold=0)
    return path


class Compiler:
    """Stands in for the compile in a child: counts, and writes a bundle that nothing else would."""

    def __init__(self) -> None:
        self.count = 0
        self.meanwhile: Callable[[], object] = lambda: None
        self.kept: Callable[[Keeper], object] = lambda _keeper: None

    def __call__(
        self,
        source: str,
        out: str,
        given: Mapping[str, Any],
        limits: Any,
        onlooker: Any,
        keeper: Keeper | None = None,
        start: Any = None,
    ) -> Report:
        self.count += 1
        built = Path(out).with_suffix(".built")
        built.write_text(f"bundle {self.count} of {source}")
        self.meanwhile()
        report = dataclasses.replace(REPORT, bundle=out, bundle_bytes=1, seconds={"build": 1.5})
        if keeper is None:
            shutil.copyfile(built, out)
        else:
            self.kept(keeper)
            files = {"bundle": built}
            if decisions := given.get("decisions"):
                files["decisions"] = Path(decisions).with_suffix(".made")
                files["decisions"].write_text("decided")
            keeper.keep_bundle(report, files)
            for name, file in files.items():
                shutil.copyfile(file, out if name == "bundle" else given["decisions"])
        return report


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    found = Compiler()
    monkeypatch.setattr(cached_compile, "compile_in_child", found)
    return found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "m.onnx")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def compiled(model: Path, tmp_path: Path, said: list[str], compiler: Compiler) -> Callable[..., Compiled]:
    """Returns a function that compiles the model with options, and a cache of its own; the compile is a stand-in."""

    def run(out: str = "o.nnd", cache: CacheOptions | None = None, **given: Any) -> Compiled:
        caching = cache or CacheOptions(cache_dir=str(tmp_path / "cache"))
        return compile_cached(str(model), str(tmp_path / out), given, CompileLimits(), caching, Onlooker(), said.append)

    return run


def test_the_second_compile_gives_the_bytes_of_the_first(compiler: Compiler, compiled: Any, tmp_path: Path) -> None:
    first, second = compiled("1.nnd"), compiled("2.nnd")
    assert (first.cache.status, second.cache.status) == ("miss", "hit")
    assert first.cache.key == second.cache.key
    assert compiler.count == 1
    assert (tmp_path / "1.nnd").read_bytes() == (tmp_path / "2.nnd").read_bytes()
    assert second.report == dataclasses.replace(first.report, bundle=str(tmp_path / "2.nnd"))


def test_a_miss_names_what_differs_from_the_nearest_build(compiled: Any, compiler: Compiler, model: Path) -> None:
    assert compiled().cache.differs is None
    compiled(threads=2, objective="throughput")
    assert compiled(threads=2).cache.differs == ("option:threads",)
    assert compiled(threads=3).cache.differs == ("option:threads",)
    model.with_suffix(".bin").write_bytes(b"\1" * 8)
    assert compiled(threads=3).cache.differs == ("external:m.bin",)
    assert compiler.count == 5


def test_what_changes_meanwhile_is_not_kept_and_is_busy(compiled, compiler, model, tmp_path) -> None:
    compiler.meanwhile = lambda: model.with_suffix(".bin").write_bytes(b"\2" * 8)
    with pytest.raises(BusyError, match=r"external:m\.bin changed"):
        compiled()
    assert not (tmp_path / "o.nnd").exists()
    compiler.meanwhile = lambda: None
    assert compiled().cache.status == "miss"


def test_decisions_are_kept_with_the_bundle(compiled: Any, compiler: Compiler, tmp_path: Path) -> None:
    place = tmp_path / "decisions.json"
    compiled(decisions=str(place))
    place.unlink()
    assert compiled(decisions=str(place)).cache.status == "hit"
    assert place.read_text() == "decided"


@pytest.mark.parametrize("damage", ["report", "bundle", "entry"])
def test_a_damaged_cache_is_built_again_and_then_whole(compiled, compiler, tmp_path, said, damage) -> None:
    compiled()
    folder = tmp_path / "cache" / ("ac" if damage == "entry" else "cas")
    for path in folder.rglob("*"):
        if path.is_file() and (damage == "entry" or (path.read_bytes()[:1] == b"{") == (damage == "report")):
            path.chmod(0o644)
            path.write_bytes(path.read_bytes()[:-1])
    assert compiled().cache.status == "miss"
    assert said
    assert compiled().cache.status == "hit"


def test_a_cache_that_cannot_be_written_costs_a_warning(compiled: Any, tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "file").write_bytes(b"")
    found = compiled(cache=CacheOptions(cache_dir=str(tmp_path / "file" / "cache")))
    assert found.cache.status == "off"
    assert "compiled without a cache" in said[0]
    assert (tmp_path / "o.nnd").exists()


def test_a_cache_that_cannot_be_written_is_read(compiled, compiler, said, monkeypatch) -> None:
    compiled("1.nnd")
    monkeypatch.setattr(local_cache, "_made", lambda _folder: "Read-only file system")
    assert compiled("2.nnd").cache.status == "hit"
    assert said == []
    assert [compiled("3.nnd", threads=2).cache.status for _ in range(2)] == ["miss", "miss"]
    assert compiler.count == 3
    assert len(said) == 2  # one for each


def test_an_account_without_a_place_for_a_key_reads(compiled, compiler, monkeypatch) -> None:
    compiled("1.nnd")

    def no_key() -> None:
        raise CannotCreateError("no place")

    monkeypatch.setattr(cached_compile, "machine_key", no_key)
    assert compiled("2.nnd").cache.status == "hit"
    assert compiler.count == 1


def test_builds_of_others_are_told_once(compiled, compiler, said, monkeypatch) -> None:
    for threads in range(1, 6):
        compiled(threads=threads)
    monkeypatch.setattr(cached_compile, "trust_store", TrustStore)
    assert compiled().cache.status == "miss"
    assert len([line for line in said if "not used from the cache" in line]) == 1
    assert "and 4 more" in said[-1]


@pytest.mark.parametrize(("said_so", "options"), [
    ('cache = "builds"', {"cache_dir": "builds"}),
    ('cache = "https://c.example/b"', {"cache_remote": "https://c.example/b"}),
    ('cache = ["builds", "https://c.example/b"]', {"cache_dir": "builds", "cache_remote": "https://c.example/b"}),
    ("cache = false", {"cache": False}), ('cache = ["a", "b"]', None), ("cache = [1]", None), ("cache = [[]]", None),
    ('cache = ""', None),
])  # fmt: skip
def test_a_configuration_names_the_cache_as_a_fleet_file_does(tmp_path, said_so, options) -> None:
    (tmp_path / "c.toml").write_text(said_so)
    arguments = ["m.onnx", "--config", str(tmp_path / "c.toml")]
    if options is None:
        with pytest.raises(DataError):
            compile_.make_context("compile", arguments)
        return
    given = compile_.make_context("compile", arguments).params
    found = {name: given[name] for name in ("cache", "cache_dir", "cache_remote") if given[name] is not None}
    assert {name: value if name == "cache" else str(value) for name, value in found.items()} == {
        "cache": True, **options
    }  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BazelRemoteServer]:
    pytest.importorskip("requests", reason="the extra `registry` is not installed")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    with BazelRemoteServer() as made:
        yield made


def test_another_machine_takes_what_this_one_brought_to_the_shared_cache(
    compiled, compiler, server, tmp_path, said
) -> None:
    here, there = (
        CacheOptions(cache_dir=str(tmp_path / name), cache_remote=server.address, cache_push="always")
        for name in ("here", "there")
    )
    first = compiled("1.nnd", here)
    second, third = compiled("2.nnd", there), compiled("3.nnd", there)
    assert [one.cache.status for one in (first, second, third)] == ["miss", "hit", "hit"]
    assert [one.cache.origin for one in (first, second, third)] == ["", server.address, ""]
    assert compiler.count == 1
    assert len({(tmp_path / f"{number}.nnd").read_bytes() for number in (1, 2, 3)}) == 1
    assert second.report == dataclasses.replace(first.report, bundle=str(tmp_path / "2.nnd"))
    assert said == []
    assert compiled("4.nnd", there, threads=2).cache.differs == ("option:threads",), "what was brought is near"


def test_nothing_is_brought_to_a_shared_cache_unless_that_is_said(compiled, server, tmp_path) -> None:
    compiled(cache=CacheOptions(cache_dir=str(tmp_path / "here"), cache_remote=server.address))
    assert server.methods == "GET ac"


def test_a_shared_cache_that_fails_costs_a_warning(compiled, compiler, server, tmp_path, said) -> None:
    server.fault = lambda handler: handler.answer(500) is None
    caching = CacheOptions(cache_dir=str(tmp_path / "here"), cache_remote=server.address, cache_push="always")
    assert compiled(cache=caching).cache.status == "miss"
    assert compiler.count == 1
    assert len(said) == 1
    assert "500" in said[0]


def test_what_libraries_answered_is_not_shared(compiled, compiler, server, tmp_path) -> None:
    """Those answers are as trustworthy as the process that parsed the model."""
    made = tmp_path / "made" / ("0" * 64)
    made.mkdir(parents=True)
    (made / "response.json").write_bytes(b"an answer")
    compiler.kept = lambda keeper: keeper.keep_calls(made.parent)
    compiled(cache=CacheOptions(cache_dir=str(tmp_path / "here"), cache_remote=server.address, cache_push="always"))
    assert len([path for path in (tmp_path / "here" / "ac").rglob("*") if path.is_file()]) == 2
    assert len(server.results) == 1, "the bundle"
    assert b"an answer" not in server.files.values()


def test_a_shared_cache_without_a_folder_is_said(compiled, server, monkeypatch, said) -> None:
    monkeypatch.setenv("NNDEPLOY_CACHE_DIR", "")
    assert compiled(cache=CacheOptions(cache_remote=server.address)).cache.status == "off"
    assert server.asked == []
    assert len(said) == 1


def test_a_full_disk_below_the_output_of_a_hit_is_told_and_leaves_nothing(compiled, tmp_path, monkeypatch) -> None:
    compiled()

    def full(_cache: LocalCache, _blob: Any, write: Callable[[bytes], object]) -> bool:
        write(b"a part")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(LocalCache, "content", lambda *_: json.dumps(report_to_json(REPORT)).encode())
        patched.setattr(LocalCache, "copy", full)
        with pytest.raises(InputOutputError, match="No space left"):
            compiled("2.nnd")
    assert [path.name for path in tmp_path.iterdir() if "2" in path.name or path.suffix == ".tmp"] == []
    assert compiled("2.nnd").cache.status == "hit"


def test_a_cache_that_cannot_keep_accounts_costs_a_warning(compiled, tmp_path, said, monkeypatch) -> None:
    def account(*_: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(cached_compile.upkeep, "account", account)
    assert compiled().cache.status == "miss"
    assert (tmp_path / "o.nnd").exists()
    assert "Read-only" in said[0]


def test_without_a_cache_nothing_is_kept(compiled: Any, tmp_path: Path, compiler: Compiler) -> None:
    off = CacheOptions(cache=False, cache_dir=str(tmp_path / "cache"))
    assert [compiled(cache=off).cache.status for _ in range(2)] == ["off", "off"]
    assert not (tmp_path / "cache").exists()
    assert compiler.count == 2


def test_the_variable_names_the_folder_or_none(compiled, tmp_path, monkeypatch, said) -> None:
    monkeypatch.setenv("NNDEPLOY_CACHE_DIR", "")
    assert compiled(cache=CacheOptions()).cache.status == "off"
    monkeypatch.setenv("NNDEPLOY_CACHE_DIR", str(tmp_path / "named"))
    assert compiled(cache=CacheOptions()).cache.status == "miss"
    assert (tmp_path / "named" / "ac").is_dir()
    assert said == []


def test_a_failure_is_not_kept(compiled: Any, compiler: Compiler) -> None:
    def fail() -> None:
        raise ModelError("no")

    compiler.meanwhile = fail
    with pytest.raises(ModelError):
        compiled()
    compiler.meanwhile = lambda: None
    assert compiled().cache.status == "miss"


# --- the key


def parts(model: Path, limits: CompileLimits | None = None, **given: Any) -> dict[str, str]:
    return parts_of(model, given, limits or CompileLimits(), FileDigests())


def values_of_options(folder: Path) -> dict[str, list[Any]]:
    """Returns values of each option that may make bundles differ from each other, and from one without it."""
    for name, text in (("a.toml", "labels = 1"), ("b.toml", "labels = 2"), ("lib.so", "so"), ("other.so", "so")):
        (folder / name).write_text(text)
    for name, files in (("empty", {}), ("one", {"a.npz": b"1"}), ("two", {"a.npz": b"1", "b.npz": b"1"})):
        (folder / name).mkdir()
        for file, data in files.items():
            (folder / name / file).write_bytes(data)
    toml = [str(folder / name) for name in ("a.toml", "b.toml", "empty")]
    return {
        "shapes": [["x=2"], ["x=3"], ["x=2", "y=2"]], "min_shapes": ["x:1", "x:2"], "opt_shapes": ["x:1", "x:2"],
        "max_shapes": ["x:2", "x:3"],
        "samples": [str(folder / name) for name in ("empty", "one", "two", "one/a.npz")],
        "image_input": toml, "pipeline": toml,
        "custom_op_libraries": [
            [str(folder / "lib.so")], [str(folder / "other.so")], [str(folder / "lib.so"), str(folder / "other.so")]
        ],
        "optimise": [False], "quantise": ["int8", "int4"], "calibration": ["entropy", "minmax"],
        "quantise_tolerance": [30.0, 40.0], "backends": ["native", "native,openvino"],
        "without": [["openvino"], ["native"]], "pins": [["a=b"], ["a=c"]], "objective": ["throughput", "priority"],
        "precision": ["bf16", "fp16"], "threads": [1, 2], "cache_buffer": ["1MiB", "2MiB"], "pace": [True],
        "decisions": [str(folder / "none.json"), *toml],
        "targets": [["x86-64-v3"], ["x86-64-v3+openvino"], ["x86-64-v4"]],
        "places": ["cpu=1GiB", "cpu=2GiB"], "keep_fallback": [False], "rtol": [0.0, 0.1], "atol": [0.0, 0.1],
        "require": [["native=1%"], ["native=2%"]], "max_fallback": ["0%", "5%"], "max_size": ["1MiB", "2MiB"],
        "strict_targets": [True],
        "num_goldens": [0, 2], "allow_uncompared": [True], "initializer_inputs": ["constants"],
        "out_of_range": ["clamp"],
    }  # fmt: skip


NO_PARTS = {
    "model": "its content and name are parts", "output": "where the bundle is written",
    "dry_run": "no bundle is written, and no cache is asked", "as_json": "how the report is printed",
    "quiet": "what is said meanwhile", "junit": "where the result is told", "markdown": "where the result is told",
    "tune": "the bundle is tuned when it is there",
    "verbose": "how the report is printed", "config": "its keys are the options", "dump_config": "nothing is compiled",
    "jobs": "how many builds run at once; each has its own limits",
    "total_time_limit": "a compile that passes it writes no bundle",
    "cache": "whether a cache is asked", "cache_dir": "which one", "cache_size": "what it may hold",
    "cache_remote": "which one", "cache_push": "what is brought there", "cache_ca": "who may be it",
}  # fmt: skip
"""Parameters of the command that cannot change a bundle, and why."""


def test_two_compiles_that_an_option_tells_apart_share_no_key(model: Path, tmp_path: Path) -> None:
    values = values_of_options(tmp_path)
    keys = {"": key_of(parts(model))}
    for name, several in values.items():
        keys |= {f"{name}: {value}": key_of(parts(model, **{name: value})) for value in several}
    assert len(set(keys.values())) == len(keys)


def test_every_parameter_of_the_command_is_a_part_or_changes_no_bundle(tmp_path: Path) -> None:
    options = {option_name(name, one): name for name, (_, one) in described_fields(CompileOptions).items()}
    limits = {option_name(name, one): name for name, (_, one) in described_fields(CompileLimits).items()}
    known, values = {parameter.name for parameter in compile_.params}, values_of_options(tmp_path)
    are_parts = {name for name in known if options.get(name or "") in values}
    are_parts |= {name for name in known if limits.get(name or "") in ("time_limit", "memory_limit", "sandbox")}
    assert known - are_parts == set(NO_PARTS), "a parameter that is new: give values above, or a reason here"


@pytest.mark.parametrize(
    "limits", [CompileLimits(time_limit=1.0), CompileLimits(memory_limit=1 << 30), CompileLimits(sandbox=False)]
)
def test_limits_that_decide_are_parts(model: Path, limits: CompileLimits) -> None:
    assert key_of(parts(model, limits)) != key_of(parts(model))


def test_a_default_that_is_given_is_no_other_key(model: Path) -> None:
    defaults = {"objective": "latency", "precision": "fp32", "optimise": True, "pace": False, "num_goldens": 1}
    assert parts(model, CompileLimits(jobs=7, total_time_limit=1.0), **defaults) == parts(model)


@pytest.mark.parametrize("what", ["model", "weights", "samples", "labels", "box", "package"])
def test_what_is_in_a_file_counts(model: Path, tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.npz").write_bytes(b"1")
    (tmp_path / "labels.txt").write_text("cat")
    (tmp_path / "p.toml").write_text('[[pipeline]]\nsteps = [{ labels = "labels.txt" }]')
    (tmp_path / "box.toml").write_text('name = "box"\narch = "x86_64"\n')
    given = {
        "samples": str(tmp_path / "samples"), "pipeline": str(tmp_path / "p.toml"),
        "targets": [str(tmp_path / "box.toml")],
    }  # fmt: skip
    before = parts(model, **given)
    match what:
        case "model":
            write_model(model, "v")
        case "weights":
            model.with_suffix(".bin").write_bytes(b"\3" * 8)
        case "samples":
            (tmp_path / "samples" / "a.npz").write_bytes(b"2")
        case "labels":
            (tmp_path / "labels.txt").write_text("dog")
        case "box":
            (tmp_path / "box.toml").write_text('name = "box"\narch = "aarch64"\n')
        case _:
            monkeypatch.setattr(cache_key, "tools", lambda: {"tool:openvino": "another"})
    after = parts(model, **given)
    assert key_of(after) != key_of(before)


def test_what_is_not_of_the_compile_counts_for_nothing(model: Path, tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "a.npz").write_bytes(b"1")
    before = parts(model, samples=str(tmp_path / "samples"))
    (tmp_path / "samples" / "notes.txt").write_text("x")
    (tmp_path / "other.onnx").write_bytes(b"x")
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in (model, model.with_suffix(".bin")):
        shutil.copyfile(path, moved / path.name)
    shutil.copytree(tmp_path / "samples", moved / "samples")
    assert parts(moved / "m.onnx", samples=str(moved / "samples")) == before
    json.dumps(before)
