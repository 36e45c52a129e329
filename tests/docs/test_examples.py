# SPDX-License-Identifier: Apache-2.0
"""Every example in docs/guide and docs/reference runs, or says why it cannot."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import page_examples
import pytest
from block_readers import calls, parse_call, read_toml
from page_examples import PAGES, README, ROOT, RUN, SHOWN, Example, ExampleError, examples, given, run_example

DIGITS = ROOT / "examples" / "digits"
RHYMES = ROOT / "examples" / "rhymes"
TEXT = ROOT / "examples" / "text"
GIVEN = {
    "digits.nnd": "nndeploy compile digits.onnx --image image.toml -o digits.nnd",
    "paced.nnd": "nndeploy compile digits.onnx -o paced.nnd --pace --backends onnxruntime,reference",
}
"""Bundle that several pages need -> the command that makes it, which stands in a page and is run once for all."""
MIN_REASON_WORDS = 4
MIN_SHARE_RUN = 0.75

Take = Callable[[str, Path], None]


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the account that makes the bundles which several pages need; it has a key, and trusts no other."""
    home = tmp_path_factory.mktemp("maker")
    program = "from nndeploy.trust.signing import machine_key; machine_key()"
    subprocess.run([sys.executable, "-c", program], env=page_examples.environment(home), check=True)
    (home / ".cache").mkdir(exist_ok=True)
    return home


@pytest.fixture
def home(maker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a reader who has made those bundles and read no other page: nothing is installed, no floor is set."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(maker / ".config", home / ".config")
    (home / ".cache").symlink_to(maker / ".cache")  # which says what was made here
    return home


def give_files(folder: Path) -> None:
    for name in ("digits.onnx", "image.toml", "batch.npz", "lines.jsonl"):
        shutil.copy(DIGITS / name, folder)
    shutil.copytree(DIGITS / "png", folder / "png")
    for name in ("rhymes.onnx", "rhymes.toml", "talks.jsonl", "print_talks.py"):
        shutil.copy(RHYMES / name, folder)
    for name in ("writer", "embedder"):
        shutil.copytree(TEXT / name, folder / name)


@pytest.fixture(scope="module")
def take(maker: Path, tmp_path_factory: pytest.TempPathFactory) -> Take:
    """Puts a bundle that several pages need into a folder, and beside it what the compile wrote."""
    shelf = tmp_path_factory.mktemp("shelf")
    give_files(shelf)

    def taken(name: str, folder: Path) -> None:
        if not (shelf / name).exists():
            with (shelf / f"{name}.said").open("w") as said:
                command = ["sh", "-c", GIVEN[name]]
                subprocess.run(
                    command, cwd=shelf, env=page_examples.environment(maker), stdout=said, stderr=said, check=True
                )
        for file in (name, f"{name}.said"):
            shutil.copy(shelf / file, folder)

    return taken


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_examples_of_a_page_run_from_top_to_bottom(page: Path, take: Take, home: Path, tmp_path: Path) -> None:
    give_files(tmp_path)
    for name in given(page):
        take(name, tmp_path)
    for example in examples(page):
        if example.reason is None:
            for name, command in GIVEN.items():
                if command in example.text.splitlines() or f"$ {command}" in example.text.splitlines():
                    take(name, tmp_path)
            run_example(example, tmp_path, home, {command: f"cat {name}.said" for name, command in GIVEN.items()})


@pytest.mark.parametrize("command", GIVEN.values(), ids=GIVEN)
def test_readers_are_told_how_to_make_what_pages_go_on_with(command: str) -> None:
    lines = [line.removeprefix("$ ") for one in ALL if one.reason is None for line in one.text.splitlines()]
    assert command in lines


ALL = [example for page in (README, *PAGES) for example in examples(page)]


@pytest.mark.parametrize("example", [one for one in ALL if one.reason is not None], ids=lambda one: one.place)
def test_an_example_that_is_not_run_says_why(example: Example) -> None:
    assert example.language in RUN, "what is never run needs no mark"
    assert len((example.reason or "").split()) >= MIN_REASON_WORDS


@pytest.mark.parametrize(
    "example", [one for one in ALL if one.reason is not None and one.language != "python"], ids=lambda one: one.place
)
def test_calls_in_an_example_that_is_not_run_are_calls(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [command for command, _ in page_examples.console_commands(example.text)]
    for words in calls("\n".join(lines) if example.language == "console" else example.text):
        parse_call(words)


@pytest.mark.parametrize("example", [one for one in ALL if one.language == "toml"], ids=lambda one: one.place)
def test_a_file_that_is_shown_is_read_by_what_takes_it(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    read_toml(example.text, tmp_path / "block.toml")


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_no_mark_stands_where_it_says_nothing(page: Path) -> None:
    assert page.read_text().count("<!-- not run:") == sum(one.reason is not None for one in examples(page))


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_no_fence_escapes(page: Path) -> None:
    """Every fence begins a line, and is one of an example whose language is known."""
    fences = [line for line in page.read_text().splitlines() if "```" in line]
    assert len(fences) == 2 * len(examples(page))
    assert {one.language for one in examples(page)} <= {*RUN, *SHOWN}


def test_most_examples_are_run() -> None:
    """With those that a test of their own runs, where there is what they need."""
    runnable = [one for one in ALL if one.language in RUN]
    named = {one.place: re.findall(r"test_\w+\.py", one.reason or "") for one in runnable}
    assert all((Path(__file__).parent / test).is_file() for tests in named.values() for test in tests)
    assert sum(one.reason is None or bool(named[one.place]) for one in runnable) >= MIN_SHARE_RUN * len(runnable)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "true\nfalse\n"),
        ("sh", "false | true\n"),
        ("console", "$ false\n"),
        ("console", "$ echo one\ntwo\n"),
        ("console", "$ false\n$ echo $?\n2\n"),
        ("console", "nothing is run\n"),
        ("python", "assert False\n"),
        *([("js", "throw new Error();\n")] if shutil.which("node") else []),
        ("toml", "key = \n"),
        ("yaml", "bundle: [\n"),
        ("yaml", "bundle:\n  image: box\n"),
        ("yaml", "bundle:\n  script:\n    - echo one\n    - 'false'\n"),
        ("yaml", "jobs:\n  bundle:\n    steps:\n      - run: |\n          true\n          false\n"),
        ("json", '{"a": 1}\n{"b"}\n'),
    ],
)
def test_an_example_that_breaks_is_found(language: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ExampleError, match=r"docs/guide/x\.md:7: "):
        run_example(Example(ROOT / "docs" / "guide" / "x.md", 7, language, text, None), tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "test -n hello  # as it is\n"),
        ("console", "$ echo one; echo two; echo three\none\n...\nthree\n$ false\n$ echo $?\n1\n"),
        ("console", "$ echo one \\\n  two\none two\n"),
        ("toml", "# box.toml\nname = 'box'\n"),
        ("yaml", "bundle:\n  script:\n    - test -n 'as it is'\n  artifacts:\n    paths: [box]\n"),
        ("json", '{"a": 1}\n{"b": 2}\n'),
    ],
)
def test_an_example_that_does_what_it_says_passes(language: str, text: str, tmp_path: Path) -> None:
    run_example(Example(ROOT / "docs" / "guide" / "x.md", 7, language, text, None), tmp_path, tmp_path)
    assert (tmp_path / "box.toml").exists() == (language == "toml")
