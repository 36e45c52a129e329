# SPDX-License-Identifier: Apache-2.0
"""The promises that hold the whole together: layers, what the run half loads, what is never used or sent."""

import ast
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from count_rooms import circles_of, imports_of, modules_of

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = sorted((REPOSITORY / "nndeploy").rglob("*.py")) + sorted((REPOSITORY / "backends").rglob("*.py"))
BANNED_CALLS = {"eval", "exec"}
BANNED_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml"}
IMPORTED_AS_PACKAGES = {REPOSITORY / "tests" / name for name in ("oracle", "zoo")}
RUN_HALF_MAY_LOAD = {"numpy", "nndeploy"}


@cache
def looked_at() -> dict[Path, list[ast.AST]]:
    """Returns the nodes of each file that any test looks at; the garbage collector, for which they are many, does not.

    The first of them is the module.
    """
    kinds = (ast.Module, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Call, ast.keyword, ast.Constant)
    gc.disable()
    try:
        trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
        return {path: [node for node in ast.walk(tree) if isinstance(node, kinds)] for path, tree in trees.items()}
    finally:
        gc.freeze()
        gc.enable()


def nodes_of(path: Path) -> list[ast.AST]:
    return looked_at()[path]


def test_the_layers_hold() -> None:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_modules_that_tests_import_by_their_name_are_named_once() -> None:
    """Folders of tests are on the path together, where the second of one name is hidden."""
    tests = REPOSITORY / "tests"
    found = [path for folder in (tests, *tests.glob("*"), *tests.glob("unit/*")) for path in folder.glob("*.py")]
    names = [path.name for path in found if path.parent not in IMPORTED_AS_PACKAGES and path.name != "conftest.py"]
    assert [name for name in sorted(set(names)) if names.count(name) > 1] == []


def test_the_layers_know_every_backend() -> None:
    """A package that is not listed is in no contract: neither what it imports nor who imports it is checked."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    backends = {path.name for path in (REPOSITORY / "backends").iterdir() if (path / "__init__.py").exists()}
    assert set(settings["root_packages"]) == backends | {"nndeploy"}
    (apart,) = (one for one in settings["contracts"] if one["type"] == "independence")
    assert set(apart["modules"]) == backends - {"nndeploy_kernels"}  # which those with kernels load


@pytest.mark.parametrize(
    "module",
    ["nndeploy.runtime", "nndeploy.runtime.program", "nndeploy.stream.sources.sources", "nndeploy.loadgen.driver"],
)
def test_the_run_half_loads_numpy_and_nothing_else(module: str) -> None:
    script = (
        f"import sys; before = set(sys.modules); import {module}, json;"
        "print(json.dumps(sorted({m.partition('.')[0] for m in set(sys.modules) - before})))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout))
    foreign = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert foreign <= RUN_HALF_MAY_LOAD


def test_nothing_is_unpickled_or_evaluated() -> None:
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                assert not BANNED_MODULES & {name.partition(".")[0] for name in names}, f"{path}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in BANNED_CALLS, f"{path}:{node.lineno}"
            if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell"):
                assert ast.unparse(node.value) == "False", f"{path}:{node.value.lineno}"


def test_errors_become_lines_in_one_place_only() -> None:
    printers = {
        path.relative_to(REPOSITORY).as_posix()
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "nndeploy: error" in node.value
    }
    assert printers == {"nndeploy/cli/main.py"}


def test_every_module_says_what_it_is_for() -> None:
    for path in SOURCES:
        text, module = path.read_text(encoding="utf-8"), nodes_of(path)[0]
        assert text.startswith("# SPDX-License-Identifier: Apache-2.0\n"), path
        assert isinstance(module, ast.Module), path
        assert ast.get_docstring(module) or len(text.splitlines()) <= 1, path


def is_a_write(line: str) -> bool:
    """Returns whether a line of strace opened a file for writing, made one or entered a folder, with success.

    A relative path of an old call, which does not say its folder, is one in the folder that was entered.
    """
    if any(f'{call}("' in line and f'{call}("/' not in line for call in ("open", "creat", "mkdir")):
        return False
    flags = ("O_WRONLY", "O_RDWR", "O_CREAT", "mkdir(", "chdir(")
    return any(flag in line for flag in flags) and "= -1" not in line


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_nothing_is_sent_and_nothing_is_written_outside(tmp_path: Path) -> None:
    """Compiles and runs under strace without `CI` set, with a cache of builds: no internet socket, no file outside."""
    home, temporary, cache, config, out = (tmp_path / name for name in ("home", "tmp", "cache", "config", "out"))
    for folder in (home, temporary, cache, config, out):
        folder.mkdir()
    left_out = ("CI", "ORT_DISABLE_TELEMETRY", "NNDEPLOY_CACHE_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in left_out}
    environment |= {"HOME": str(home), "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(cache)}
    environment["XDG_CONFIG_HOME"] = str(config)
    digits = REPOSITORY / "examples" / "digits"
    commands = [
        ["compile", digits / "digits.onnx", "--image", digits / "image.toml", "-o", out / "d.nnd"],
        ["run", out / "d.nnd", "--input", digits / "batch.npz", "--output", out / "y.npz"],
    ]
    for command in commands:
        trace = tmp_path / "trace"
        calls = "trace=socket,connect,openat,open,creat,mkdir,chdir"
        strace = ["strace", "-f", "-y", "-qq", "-e", calls, "-o", trace]
        python = [sys.executable, "-B", "-m", "nndeploy", *command]
        subprocess.run([*strace, *python], env=environment, cwd=out, check=True, capture_output=True)
        lines = trace.read_text(errors="replace").splitlines()
        assert [line for line in lines if "AF_INET" in line] == []
        places = (str(out), str(temporary), str(cache), str(config), "/dev/", "/proc/self", "/sys/")
        assert [line for line in lines if is_a_write(line) and not any(place in line for place in places)] == []
    assert (cache / "nndeploy-builds" / "ac").is_dir(), "the cache took part"
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []


def test_no_module_is_there_for_tests_alone() -> None:
    """Every module outside nndeploy/testing is imported, started by its name, or an entry point."""
    used = set[str]()
    for node in (node for path in SOURCES for node in nodes_of(path)):
        if isinstance(node, ast.ImportFrom):
            used |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used |= {node.value.partition(":")[0], f"nndeploy_triton.kernels.{node.value}"}
    entry_points = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    names = [".".join(path.relative_to(package_root(path)).with_suffix("").parts) for path in SOURCES]
    elsewhere = (
        "nndeploy.testing.",
        "nndeploy_kernels.build",  # a command of the Makefile
        "nndeploy.backend_kit.transforms.",  # which plugins choose from, as the guide says
    )
    ours = [name for name in names if "__" not in name and not name.startswith(elsewhere)]
    assert [name for name in ours if name not in used and f'"{name}:' not in entry_points] == []


def package_root(path: Path) -> Path:
    backends = REPOSITORY / "backends"
    return backends if path.is_relative_to(backends) else REPOSITORY


def test_unit_tests_stand_where_what_they_test_stands() -> None:
    """tests/unit has a folder for each room, and for each backend; a file's name begins with its folder's."""
    rooms = {path.name for path in (REPOSITORY / "nndeploy").iterdir() if path.is_dir()}
    kernels = {path.name.removeprefix("nndeploy_") for path in (REPOSITORY / "backends").iterdir()}
    others = {"native_backend", "backends", "gpu_check", "errors"}  # the first is native, the second small ones
    unit = REPOSITORY / "tests" / "unit"
    assert list(unit.glob("test_*.py")) == []  # one would put the folder on sys.path: "import tensorrt" would find it
    assert {path.name for path in unit.iterdir() if any(path.glob("test_*.py"))} <= rooms | kernels | others
    beginnings = {"native_backend": "test_native_", "errors": "test_errors"}
    strangers = [
        path.relative_to(unit).as_posix()
        for path in unit.glob("*/test_*.py")
        if not path.name.startswith(beginnings.get(path.parent.name, f"test_{path.parent.name}_"))
    ]
    assert strangers == []


def test_modules_and_rooms_form_no_circles_and_no_file_lies_loose() -> None:
    modules = modules_of(REPOSITORY)
    assert circles_of(imports_of(modules, nodes_of)) == []
    loose = {name for name, path in modules.items() if name.count(".") == 1 and path.name != "__init__.py"}
    assert loose == {"nndeploy.__main__", "nndeploy.errors", "nndeploy.version"}


def test_what_a_constant_or_field_is_stands_in_a_sentence_that_names_it() -> None:
    """A text behind an assignment is read alone, in an editor: "Of a graph." says nothing there."""
    begins = re.compile(r"(Of|By|From|Above|Below|Beyond|Behind|Between|Within) ")
    telegrams = [
        f"{path.relative_to(REPOSITORY)}:{said.lineno}"
        for path in SOURCES
        for node in nodes_of(path)
        if isinstance(node, ast.Module | ast.ClassDef)
        for before, said in pairwise(node.body)
        if isinstance(before, ast.Assign | ast.AnnAssign)
        and isinstance(said, ast.Expr)
        and isinstance(said.value, ast.Constant)
        and begins.match(str(said.value.value))
    ]
    assert telegrams == []


def test_the_build_of_the_kernel_library_alone_runs_a_compiler() -> None:
    """A compile or a run would take what it makes from a cache that others may have written."""
    build = REPOSITORY / "backends" / "nndeploy_kernels" / "build.py"
    assert [path for path in SOURCES if "ziglang" in path.read_text(encoding="utf-8")] == [build]
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "ziglang" not in str((extras["dependencies"], extras["optional-dependencies"]))
