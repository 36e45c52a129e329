# SPDX-License-Identifier: Apache-2.0
"""No committed file names a machine or a registry, is of an unexpected kind or size, or unpickles anything."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLASH = "/"  # so that this file does not hold what it looks for
MACHINE_WORDS = (
    *(SLASH + folder + SLASH for folder in ("work", "root", "tmp/nn", "opt/wheels", "opt/pypi")),
    *("pypi" + ".org", "pythonhosted" + ".org", "file:" + SLASH * 3),
)
OTHER_PROJECT = re.compile("pip install " + r"nndeploy(?!-toolchain)")
FROM_AN_INDEX = re.compile(r"pip (?:install|wheel|download)\b(?!.*--(?:no-index|require-hashes)).*\bnndeploy-toolchain")
SUFFIXES = {
    *(".py", ".typed", ".c", ".h", ".cc", ".hpp", ".sh", ".md", ".html", ".css", ".mjs", ".rs", ".go", ".ts"),
    *(".txt", ".mod", ".toml", ".json", ".jsonl", ".yml", ".yaml", ".ini", ".conf", ".service", ".timer", ".lock"),
    *(".onnx", ".npz", ".png", ".svg", ".nnd"),
}
WITHOUT_SUFFIX = {"Containerfile", "LICENSE", "Makefile", "run", ".clang-format", ".gitignore"}
MAX_BYTES = 200 << 10
UNPICKLERS = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
SUSPICIOUS = re.compile("|".join([*UNPICKLERS, "eval", "exec", "__import__", "shell"]).encode())
"""What a file holds that is looked at closely."""
PRODUCT = ("nndeploy/", "backends/", "examples/")


@cache
def committed() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def product_code() -> list[str]:
    return [name for name in committed() if name.startswith(PRODUCT) and name.endswith(".py")]


@cache
def content(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def lines_with(pattern: re.Pattern[bytes]) -> Iterator[str]:
    for name in committed():
        for number, line in enumerate(content(name).splitlines() if pattern.search(content(name)) else [], start=1):
            if pattern.search(line):
                yield f"{name}:{number}: {line[:100]!r}"


@pytest.mark.parametrize("word", MACHINE_WORDS)
def test_no_committed_file_names_a_machine_s_folder_or_a_registry(word: str) -> None:
    beginning = rb"(?<![\w.])" if word.startswith(SLASH) else rb""
    assert list(lines_with(re.compile(beginning + re.escape(word.encode())))) == []


def test_no_hint_installs_the_other_project_of_our_name() -> None:
    assert list(lines_with(re.compile(OTHER_PROJECT.pattern.encode()))) == []


def test_no_line_takes_our_wheels_from_an_index() -> None:
    """Nobody holds our names there: they come from a folder, or with a hash."""
    assert list(lines_with(re.compile(FROM_AN_INDEX.pattern.encode()))) == []


def test_only_known_kinds_of_files_are_committed() -> None:
    paths = map(Path, committed())
    assert [path for path in paths if path.suffix not in SUFFIXES and path.name not in WITHOUT_SUFFIX] == []


def test_no_large_file_is_committed() -> None:
    """Lock files grow with the number of packages, whose hashes they hold."""
    names = (name for name in committed() if not name.endswith(".lock"))
    assert [name for name in names if (ROOT / name).stat().st_size > MAX_BYTES] == []


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def dangerous_calls(tree: ast.AST) -> Iterator[str]:
    """Yields calls of eval and exec, and keywords that allow pickles or a shell."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec", "__import__"}:
            yield f"{node.func.id} at line {node.lineno}"
        for keyword in node.keywords:
            is_off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
            if keyword.arg in {"allow_pickle", "shell"} and not is_off:
                yield f"{keyword.arg} at line {node.lineno}"


def test_product_code_never_unpickles_evaluates_or_starts_a_shell() -> None:
    assert product_code()
    for name in filter(lambda name: SUSPICIOUS.search(content(name)), product_code()):
        tree = ast.parse(content(name))
        assert UNPICKLERS.isdisjoint(imported_modules(tree)), name
        assert list(dangerous_calls(tree)) == [], name


@pytest.mark.parametrize("source", ["eval('1')", "np.load(f, allow_pickle=True)", "run('x', shell=yes)", "exec(code)"])
def test_a_dangerous_call_is_found(source: str) -> None:
    assert list(dangerous_calls(ast.parse(source)))


@pytest.mark.parametrize("source", ["np.load(f, allow_pickle=False)", "run(['x'], shell=False)", "model.eval()"])
def test_a_harmless_call_is_not_found(source: str) -> None:
    assert not list(dangerous_calls(ast.parse(source)))


@pytest.mark.parametrize("source", ["import pickle", "from joblib import load", "import os, marshal"])
def test_an_unpickler_is_found(source: str) -> None:
    assert not UNPICKLERS.isdisjoint(imported_modules(ast.parse(source)))


def test_every_source_file_names_its_licence_first() -> None:
    texts = {name: (ROOT / name).read_text().splitlines()[:2] for name in product_code()}
    assert [name for name, lines in texts.items() if "SPDX-License-Identifier: Apache-2.0" not in "".join(lines)] == []
