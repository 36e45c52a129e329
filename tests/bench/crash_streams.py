# SPDX-License-Identifier: Apache-2.0
"""Cases of crashes: streams with a checkpoint after every record, into each kind of output; none is lost or doubled."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

from crash_case import Case, Content, command, write_bundle

FOLDER = "y"
HEAD = """
[source]
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "double"
"""
IMAGES = """
[source]
kind = "images"
[[level]]
[[level.pipeline]]
name = "decode"
runners = 0
[[level.pipeline.loader]]
steps = [{ use = "decode" }]
[[sink]]
kind = "images"
fields = ["image"]
"""


def _sinks(*kinds: str) -> str:
    return HEAD + "".join(f'[[sink]]\nkind = "{kind}"\n' for kind in kinds)


def _lines(num_records: int) -> None:
    from resumed_runs import lines

    write_bundle("m.nnd", b"x")
    Path("x.jsonl").write_text(lines(num_records, bad={1}))


def _images(num_records: int) -> None:
    from PIL import Image

    folder = _pictures()
    folder.mkdir()
    for number in range(num_records):
        Image.new("RGB", (5, 4), (4 * number, 0, 0)).save(folder / f"{number:03}.png")
    (folder / "001.png").write_bytes(b"no image")


def _pictures() -> Path:
    """Returns a place to which no fault comes: a picture that cannot be read is a failed record, and all goes on."""
    return Path.cwd().parent / "x"


def _stream(what: str, num_records: int, output: str, pipeline: str = "", make: Callable[[int], None] = _lines) -> Case:
    bundle = ("m.nnd",) if make is _lines else ()
    more = ("--pipeline", "p.toml") if pipeline else ()

    def before() -> None:
        make(num_records)
        Path("p.toml").write_text(pipeline)

    def act() -> int:
        from nndeploy.stream.sinks import resume

        resume.CHECKPOINT_SECONDS = 0.0  # after every record
        source = "x.jsonl" if make is _lines else str(_pictures())
        return command("run", *bundle, "--threads", "1", *more, "-i", source, "-o", output, "--resume")()

    return Case(
        f"run --resume, {what}",
        before,
        act,
        "",
        _whole_results,
        code=1,
        then_codes=(1,),
        holds_without_power=_counted_results,
        parts=num_records // 5,
    )


def _whole_results(old: Content, new: Content, now: Content) -> None:
    """Checks that what has its name is whole, whichever call failed or was the last."""
    _same_files(_results(old, new) & now.keys(), new, now)


def _counted_results(old: Content, new: Content, now: Content) -> None:
    """Checks the same after a loss of power: of a folder that grows, of the records that its journal counts."""
    names, journal = _results(old, new), now.get(f"{FOLDER}/.nndeploy-resume")
    if journal is None:
        return _whole_results(old, new, now)
    num_done = _num_counted(journal)
    numbers = {name: int(Path(name).name.split("_")[0]) for name in names if Path(name).name[0].isdigit()}
    counted = {name for name, number in numbers.items() if number < num_done}
    assert counted <= now.keys(), f"{sorted(counted - now.keys())} are counted and not there"
    return _same_files(counted | (names - numbers.keys()) & now.keys(), new, now)


def _results(old: Content, new: Content) -> set[str]:
    return {name for name in new.keys() - old.keys() if not name.endswith("/")}


def _same_files(names: set[str], new: Content, now: Content) -> None:
    for name in names:
        assert now[name] == new[name], f"{name} has its name and is not whole"


def _num_counted(journal: bytes) -> int:
    """Returns how many records the last whole line of a journal counts."""
    num = 0
    for line in journal.splitlines(keepends=True):
        text, _, checksum = line.rpartition(b" ")
        if checksum != f"{zlib.crc32(text):08x}\n".encode():
            break
        num = json.loads(text).get("records", 0)
    return num


ALL = (
    _stream("JSON lines", 60, "y.jsonl"),
    _stream("csv", 30, "y.csv", _sinks("csv")),
    _stream("statistics", 30, "y.json", _sinks("statistics")),
    _stream("arrays", 60, FOLDER),
    _stream("images", 60, FOLDER, IMAGES, _images),
    _stream("three outputs", 60, "y", _sinks("json-lines", "csv", "statistics")),
    _stream("four outputs", 20, "y", _sinks("json-lines", "csv", "statistics", "npz")),
)
