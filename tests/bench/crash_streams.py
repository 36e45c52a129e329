# SPDX-License-Identifier: Apache-2.0
"""Cases of crashes: streams with a checkpoint after every record, into each kind of output; none is lost or doubled."""

from collections.abc import Callable
from pathlib import Path

from crash_case import Case, Content, command, write_bundle

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

    Path("x").mkdir()
    for number in range(num_records):
        Image.new("RGB", (5, 4), (4 * number, 0, 0)).save(f"x/{number:03}.png")
    Path("x/001.png").write_bytes(b"no image")


def _stream(what: str, num_records: int, output: str, pipeline: str = "", make: Callable[[int], None] = _lines) -> Case:
    bundle = ("m.nnd",) if make is _lines else ()
    source = "x.jsonl" if make is _lines else "x"
    more = ("--pipeline", "p.toml") if pipeline else ()
    run = command("run", *bundle, "--threads", "1", *more, "-i", source, "-o", output, "--resume")

    def before() -> None:
        make(num_records)
        Path("p.toml").write_text(pipeline)

    def act() -> int:
        from nndeploy.stream.sinks import resume

        resume.CHECKPOINT_SECONDS = 0.0  # after every record
        return run()

    return Case(
        f"run --resume, {what}",
        before,
        act,
        "",
        _whole_results,
        code=1,
        then_codes=(1,),
        parts=num_records // 5,
    )


def _whole_results(old: Content, new: Content, now: Content) -> None:
    """Checks that what has its name is whole; of a folder that grows, power may take what was not yet counted."""
    grows = "y/.nndeploy-resume" in now
    for name in {name for name in new if name not in old and not name.endswith("/")} & now.keys():
        is_as_it_may_be = new[name].startswith(now[name]) if grows else now[name] == new[name]
        assert is_as_it_may_be, f"{name} has its name and is not whole"


ALL = (
    _stream("JSON lines", 60, "y.jsonl"),
    _stream("csv", 30, "y.csv", _sinks("csv")),
    _stream("statistics", 30, "y.json", _sinks("statistics")),
    _stream("arrays", 60, "y"),
    _stream("images", 60, "y", IMAGES, _images),
    _stream("three outputs", 60, "y", _sinks("json-lines", "csv", "statistics")),
    _stream("four outputs", 20, "y", _sinks("json-lines", "csv", "statistics", "npz")),
)
