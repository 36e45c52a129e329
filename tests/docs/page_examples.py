# SPDX-License-Identifier: Apache-2.0
"""The examples in the pages of docs/guide and docs/reference, and how each is run.

A page is one session: its examples run from top to bottom in one folder, which begins with the files of
examples/digits, examples/rhymes and examples/text, and in a fresh account. Two HTML comments, which no reader sees,
steer it:

    <!-- given: digits.nnd -->     anywhere: the page goes on with a bundle that another page makes
    <!-- not run: REASON -->       on the line before an example: it cannot run on every machine, and why

```sh           each command must end with 0
```console      `$ ` begins a command; what follows is what it writes, `...` standing for anything. A command may fail
                where `$ echo $?` comes next and shows its exit code
```python       a program that must end well
```js           an ES module that must end well in Node, where that is here
```toml         must be TOML; where its first line is `# NAME.toml`, the page's folder then has that file
```yaml         jobs of a CI: each must end well whose lines stand below `script:` (GitLab) or behind `run:` (GitHub)
```json         must be JSON, line by line or as a whole

Blocks that are not run are read all the same, by `block_readers`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from ci_jobs import jobs_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs" / "guide").glob("*.md"), *(ROOT / "docs" / "reference").glob("*.md")])
README = ROOT / "README.md"
RUN = ("sh", "console", "python", "js", "toml", "yaml", "json")
SHOWN = ("text", "c")
SECONDS_EACH = 120
NOTHING_DONE: Mapping[str, str] = MappingProxyType({})

_BLOCK = re.compile(
    r"(?:^<!-- not run:(?P<reason>[^\n]*)-->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)
_GIVEN = re.compile(r"^<!-- given: (.*?) -->$", re.M)
_MARK = "@@ended@@"
_PROGRESS = re.compile(r"^nndeploy: [^\n]* \(\d+ s\)\n", re.M)
"""What a command says where it takes long, which depends on the machine."""


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block: where it begins, what it is, and, if it is not run, why."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None

    @property
    def place(self) -> str:
        """Where it is, as editors understand it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


class ExampleError(AssertionError):
    """An example does not do what its page says."""


def examples(page: Path) -> list[Example]:
    """Returns the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Example(
            page, text.count("\n", 0, found.start("language")) + 1, found["language"], found["text"], found["reason"]
        )
        for found in _BLOCK.finditer(text)
    ]


def given(page: Path) -> list[str]:
    """Returns the names of the bundles that a page goes on with."""
    return [name for names in _GIVEN.findall(page.read_text(encoding="utf-8")) for name in names.split()]


def environment(home: Path) -> dict[str, str]:
    """Returns what examples see of this machine: the commands of this environment, on this tree."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.prefix) / "bin"), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "backends")]),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "NNDEPLOY_STORE": str(home / "installed"),
        "NNDEPLOY_CACHE_DIR": str(home / "builds"),
        "LANG": "C.UTF-8",
        "ORT_DISABLE_TELEMETRY": "1",
    }


def run_example(example: Example, folder: Path, home: Path, done: Mapping[str, str] = NOTHING_DONE) -> None:
    """Runs an example in `folder`; of `done` are command lines that were run before -> what says again what they said.

    Raises:
        ExampleError: it does not do what the page says.
    """
    if example.language == "toml":
        _write_toml(example, folder)
    elif example.language == "sh":
        lines = [done.get(line, line) for line in example.text.splitlines()]
        _run_script(example, lines, folder, home)
    elif example.language == "yaml":
        for lines in _jobs_of(example):
            _run_script(example, lines, folder, home)
    elif example.language == "json":
        _read_json(example)
    elif example.language == "python":
        _succeed(example, _ran([sys.executable, "-W", "error", "-c", example.text], folder, home))
    elif example.language == "js" and (node := shutil.which("node")):
        (folder / "example.mjs").write_text(example.text)
        _succeed(example, _ran([node, "example.mjs"], folder, home))
    elif example.language == "console":
        _run_console(example, folder, home, done)


def _write_toml(example: Example, folder: Path) -> None:
    try:
        tomllib.loads(example.text)
    except tomllib.TOMLDecodeError as err:
        raise ExampleError(f"{example.place}: {err}") from None
    named = re.match(r"# ([\w.-]+\.toml)$", example.text.splitlines()[0])
    if named:
        (folder / named[1]).write_text(example.text)


def _run_script(example: Example, lines: list[str], folder: Path, home: Path) -> None:
    _succeed(example, _ran(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], folder, home))


def _jobs_of(example: Example) -> list[list[str]]:
    try:
        return jobs_of(example.text)
    except ValueError as err:
        raise ExampleError(f"{example.place}: {err}") from None


def _read_json(example: Example) -> None:
    try:
        json.loads(example.text)
    except ValueError:
        try:
            for line in example.text.splitlines():
                json.loads(line)
        except ValueError as err:
            raise ExampleError(f"{example.place}: {err}") from None


def _ran(command: list[str], folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_EACH,
    )


def _succeed(example: Example, done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise ExampleError(f"{example.place}: ended with {done.returncode}:\n{example.text}\n{done.stdout}")


def _run_console(example: Example, folder: Path, home: Path, done: Mapping[str, str]) -> None:
    commands = list(console_commands(example.text))
    if not commands:
        raise ExampleError(f"{example.place}: no line begins with `$ `")
    lines = [done.get(command, command) for command, _ in commands]
    script = "\n".join(f"{line}\n_s=$?; printf '{_MARK}%d\\n' $_s; (exit $_s)" for line in lines)
    ended = re.findall(rf"(.*?){_MARK}(\d+)\n", _ran(["bash", "-c", script], folder, home).stdout, re.S)
    if len(ended) != len(commands):
        raise ExampleError(f"{example.place}: bash does not understand it")
    following = [command for command, _ in commands[1:]] + [""]
    for (command, shown), (wrote, code), after in zip(commands, ended, following, strict=True):
        if code != "0" and after != "echo $?":
            raise ExampleError(f"{example.place}: `{command}` ended with {code}:\n{wrote}")
        if not is_as_shown(wrote, shown):
            raise ExampleError(f"{example.place}: `{command}` wrote\n{wrote}\nand the page shows\n{shown}")


def console_commands(text: str) -> Iterator[tuple[str, str]]:
    """Yields each command of a console block with what the page shows of its output."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command[:-1]} {more.strip()}"
        yield command, shown


def is_as_shown(wrote: str, shown: str) -> bool:
    """Returns whether a command's output is what a page shows, where `...` stands for anything, lines included."""
    pattern = re.escape(_trimmed(shown)).replace(re.escape("..."), ".*")
    return re.fullmatch(pattern, _trimmed(_PROGRESS.sub("", wrote)), re.S) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())
