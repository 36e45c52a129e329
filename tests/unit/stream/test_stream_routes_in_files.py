# SPDX-License-Identifier: Apache-2.0
"""Several sources and routes in a pipeline's TOML: what they mean, and one line for everything that is wrong."""

from pathlib import Path

import pytest
from test_stream_pipeline_file import make_step

from nndeploy.errors import DataError, MissingInputError, UsageError
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml
from nndeploy.stream.pipeline.pipeline_sources import Reading, pipeline_source
from nndeploy.stream.sources.source_rules import JoinRules, ReadRules
from nndeploy.stream.stopping import Stop


def read(text):
    return pipeline_from_toml(text.encode(), "p.toml", lambda name: b"", make_step)


def plan_from(text):
    return checked_plan(read(text), {})[0]


def steps(takes, gives, *keys, kind="loader"):
    """Returns the TOML of a pipeline that makes a field of others."""
    named = ", ".join(f"'{name}'" for name in takes)
    return (
        "[[level.pipeline]]\nrunners = 0\n" + "".join(f"{key}\n" for key in keys) + f"[[level.pipeline.{kind}]]\n"
        f"steps = [{{ use = 'label', in = [{named}], out = ['{gives}'] }}]\n"
    )


def source(name, kind="lines", *keys):
    return f"[[source]]\nname = '{name}'\nkind = '{kind}'\n" + "".join(f"{key}\n" for key in keys)


A, B = source("a", "lines", "out = ['x']"), source("b", "lines", "out = ['y']")
KEYED = source("a", "json-lines", "fields = ['id', 'x']") + source("b", "json-lines", "fields = ['id', 'y']")
LEVEL = "[[level]]\n"
JOIN = "[join]\nby = 'index'\n"


def test_every_key_of_a_source_means_what_it_says() -> None:
    keys = (
        "fields = ['x']", "out = ['z']", "buffer = 3", "drop = 'oldest'", "max-age-ms = 1.5", "reconnect = 7",
        "backoff-ms = 20", "backoff-most-ms = 300", "rate-hz = 12.5",
    )  # fmt: skip
    file = read(source("a", "json-lines", *keys) + LEVEL + steps(["z"], "q"))
    (made,) = file.sources
    assert (made.name, made.kind, made.fields, made.out) == ("a", "json-lines", ("x",), ("z",))
    assert made.rules == ReadRules(3, "oldest", 1_500_000, 7, 20_000_000, 300_000_000, 12.5)


def test_every_key_of_a_join_means_what_it_says() -> None:
    keys = "by = 'time'\nfield = { a = 't', b = 's' }\ntolerance-ms = 5\nmissing = 'wait'\nbuffer = 9\nwait-ms = 2.5\n"
    file = read(A + B + "[join]\n" + keys + LEVEL + steps(["x"], "q"))
    assert file.join == JoinRules("time", {"a": "t", "b": "s"}, 0.005, "wait", 9, 2_500_000)
    assert read(KEYED + "[join]\nby = 'key'\nfield = 'id'\n" + LEVEL + steps(["x"], "q")).join == JoinRules(
        "key", {"a": "id", "b": "id"}
    )


def test_every_key_of_a_route_means_what_it_says() -> None:
    text = LEVEL + "queue = 'basic'\nnot-taken = 'pass'\n"
    file = read(A + B + text + steps(["x"], "q", "source = 'a'", "when = \"x == 'u'\"", "priority = 3"))
    ((plan,),) = file.levels
    assert (plan.route.source, plan.route.priority, plan.route.when.text) == ("a", 3, "x == 'u'")
    assert (file.hows[0].queue, file.hows[0].not_taken) == ("basic", "pass")
    assert plan.loaders[0].take == 1


def test_a_level_may_send_its_records_back() -> None:
    text = A + LEVEL + steps(["x"], "q", "name = 'first'") + LEVEL + steps(["x"], "y", "name = 'again'")
    text += "[[level]]\nback-to = 'again'\nuntil = 'done'\n" + steps(["q"], "done")
    made = plan_from(text + "[[sink]]\nkind = 'json-lines'\nfields = ['done']")
    assert (made.how(3).back_to, made.how(3).until) == (2, "done")
    assert made.levels[2][0].keep == ("done", "q", "x")  # which level 2 and 3 take in the next round


def test_a_joined_record_has_the_fields_of_all_sources() -> None:
    plan = plan_from(A + B + JOIN + LEVEL + steps(["x", "y"], "q"))
    assert (plan.fields, plan.may_lack) == (("q",), frozenset())


def test_a_record_of_one_source_has_its_fields_and_those_that_its_pipelines_give() -> None:
    of_a = steps(["x"], "q", "source = 'a'") + steps(["x"], "r", "source = 'a'")
    levels = LEVEL + of_a + steps(["y"], "q", "source = 'b'") + LEVEL + steps(["q"], "z")
    plan = plan_from(A + B + levels + "[[sink]]\nkind = 'json-lines'\nfields = ['q', 'r', 'z']")
    assert plan.may_lack == {"r"}


@pytest.mark.parametrize(
    ("queue", "may_lack"), [("copy", {"r"}), ("basic", {"q", "r"}), ("switch", {"q", "r"})],
)  # fmt: skip
def test_what_a_condition_takes_not_every_record_has(queue, may_lack) -> None:
    whens = ("", "when = 'has(x)'") if queue != "switch" else ("when = 'has(x)'", "")
    level = f"[[level]]\nqueue = '{queue}'\n" + steps(["x"], "q", whens[0]) + steps(["x"], "r", whens[1])
    assert plan_from(A + level).may_lack == may_lack


def test_has_makes_a_field_certain() -> None:
    first = "[[level]]\nnot-taken = 'pass'\n" + steps(["x"], "q", "when = \"x == 'u'\"")
    with pytest.raises(DataError, match="not every record that comes here has the field 'q'"):
        plan_from(A + first + LEVEL + steps(["q"], "z"))
    plan = plan_from(A + first + "[[level]]\nnot-taken = 'pass'\n" + steps(["q"], "z", "when = 'has(q) and q == 1'"))
    assert plan.may_lack == {"z"}


TWO = LEVEL + "queue = 'basic'\n" + steps(["x"], "q", "{}") + steps(["x"], "q", "{}")


@pytest.mark.parametrize(("text", "message"), [
    (A + "[[source]]\nkind = 'lines'\n", "p.toml: several sources each need a name"),
    (A + A, "p.toml: two sources are called 'a'"),
    (source("a=b"), "source: name must be a plain word, is 'a=b'"),
    (source("a", "lines", "drop = 'newest'"), 'drop must be "none" or "oldest", is \'newest\''),
    (source("a", "lines", "max-age-ms = 5"), 'max-age-ms needs drop = "oldest"'),
    (source("a", "lines", "reconect = 5"), "unknown key 'reconect' (hint: did you mean 'reconnect'?)"),
    (source("a", "lines", "backoff-ms = 50", "backoff-most-ms = 20"), "backoff-most-ms must be 50 to"),
    (A + JOIN, "p.toml: join: joins several sources, and there is one"),
    (A + B + "[join]\n", 'join: by must be "index", "key" or "time", is \'\''),
    (A + B + JOIN + "field = 'x'", "join: the n-th items of all are joined, whatever is in them"),
    (A + B + "[join]\nby = 'key'", "join: needs the field by which items are joined"),
    (A + B + "[join]\nby = 'key'\nfield = { a = 'x' }", "join: field says nothing of the source 'b'"),
    (A + B + "[join]\nby = 'key'\nfield = { a = 'x', c = 'y' }", "join: field names no source 'c'"),
    (A + B + JOIN + "tolerance-ms = 5", 'tolerance-ms is for by = "time"'),
    (A + B + JOIN + "missing = 'ignore'", 'missing must be "error", "drop" or "wait", is \'ignore\''),
    (A + B + JOIN + "mising = 'drop'", "unknown key 'mising'"),
    (A + "[[level]]\nqueue = 'sync'\n" + steps(["x"], "q"), 'queue must be "copy", "basic" or "switch"'),
    (A + "[[level]]\nnot-taken = 'x'\n" + steps(["x"], "q"), 'not-taken must be "end" or "pass", is \'x\''),
    (A + LEVEL + steps(["x"], "q", "when = 'x = 1'"), "pipeline: when: column 3: '='"),
    (A + LEVEL + steps(["x"], "q", "when = 3"), "pipeline: when must be a text, is 3"),
    (A + LEVEL + steps(["x"], "q", "share = 2"), "share is for pipelines that share their records"),
    (A + TWO.replace("{}", "share = 2", 1).replace("{}", ""), "needs a share, as others have one"),
    (A + TWO.replace("{}", "share = 1\npriority = 2"), "has a share and a priority"),
    (A + TWO.replace("'basic'", "'switch'").replace("{}", ""), "'pipeline 1' takes every record before it"),
    (A + LEVEL + steps(["x"], "q").replace("steps", "take = 0\nsteps"), "take must be 1 to 4096, is 0"),
    (A + "[[level]]\nback-to = 'pipeline 1'\n" + steps(["x"], "q"), "back-to and until go together"),
    (A + "[[level]]\nback-to = 'no'\nuntil = 'q'\n" + steps(["x"], "q"), "level: back-to names no pipeline"),
    (A + "[[level]]\nback-to = 'pipeline 1'\nuntil = 'r'\n" + steps(["x"], "q"), "until: nothing before it gives"),
    (A + "[[level]]\nnot-taken = 'pass'\nback-to = 'pipeline 1'\nuntil = 'q'\n" + steps(["x"], "q", "when = 'has(x)'"),
     "until: not every record that comes here has the field 'q'"),
    (A + B + LEVEL + steps(["x"], "q"), "not every record that comes here has the field 'x' (hint: take those"),
    (A + B + LEVEL + steps(["x"], "q", "source = 'c'"), "source: no source is called 'c'"),
    (A + LEVEL + steps(["x"], "q", "source = 'b'"), "source: no source is called 'b' (hint: known: 'a')"),
    (A + B + LEVEL + steps(["x"], "q", "source = 'a'"), "no pipeline takes the records of the source 'b'"),
    (A + B + JOIN + LEVEL + steps(["x", "y"], "q", "source = 'a'"),
     "not every record that comes here has the field 'y'"),
    (A + B + JOIN + LEVEL + steps(["x"], "q") + LEVEL + steps(["x"], "r", "source = 'a'"),
     "source: the records of all sources are joined here"),
    (A + source("b", "lines", "out = ['x']") + JOIN + LEVEL + steps(["x"], "q"),
     "source 'b': the field 'x' is given by the sources 'a' and 'b', which are joined"),
    (A + B + "[join]\nby = 'key'\nfield = 'id'\n" + LEVEL + steps(["x"], "q"),
     "join, source 'a': the source has no field 'id'"),
    (A + LEVEL + steps(["x"], "q", "when = 'y > 1'"), "pipeline 1', when: nothing before it gives the field 'y'"),
    (A + LEVEL + steps(["x"], "q", "when = 'has(y)'"), "when: nothing before it gives the field 'y'"),
    (A + LEVEL + steps(["x"], "q", "source = 'a'") + steps(["x"], "q", "when = 'has(x)'"),
     "the field 'q' is given by 'pipeline 1' and 'pipeline 2', which work beside each other"),
    (source("a", "lines", "out = ['x', 'y']") + LEVEL + steps(["x"], "q"), "source 'a': out names 2 fields"),
    (source("a", "json-lines", "out = ['x']") + LEVEL + steps(["x"], "q"), "source 'a': needs fields"),
    (KEYED.replace("fields = ['id', 'y']", "") + JOIN + LEVEL + steps(["x"], "q"), "source 'b': needs fields"),
    (A + "[[level]]\nnot-taken = 'pass'\n" + steps(["x"], "q", "when = 'has(x)'") + "[[sink]]\nkind = 'csv'",
     "sink 'csv': not every record has the field 'q', which a sink of csv needs"),
])  # fmt: skip
def test_what_is_wrong_is_one_line_before_anything_runs(text, message) -> None:
    with pytest.raises(DataError) as caught:
        plan_from(text if "[[level]]" in text else text + "\n" + LEVEL + steps(["x"], "q"))
    assert message in str(caught.value)
    assert str(caught.value).startswith("p.toml: ")


def opened(text, *texts, **options):
    file = read(text)
    types = checked_plan(file, {})[1]
    stop = Stop()
    try:
        return pipeline_source(file, texts, types, Reading(lambda stop: open("/dev/null", "rb"), stop, **options))  # noqa: PTH123
    finally:
        stop.close()


ONE = A + LEVEL + steps(["x"], "q")
BOTH = A + B + JOIN + LEVEL + steps(["x"], "q")
IMAGES = "[source]\nkind = 'images'\n" + LEVEL + steps(["data"], "q")


@pytest.mark.parametrize(("text", "texts", "error", "message"), [
    (BOTH, ["x.txt"], UsageError, "'x.txt' does not say which source it is for (hint: for example --input a="),
    (BOTH, ["a=/dev/null"], UsageError, "there is no input for the source 'b' (hint: --input b=...)"),
    (BOTH, ["a=x", "c=y"], UsageError, "'c=y' does not say which source it is for"),
    (BOTH, ["a=-", "b=-"], UsageError, "only one source can read standard input"),
    (BOTH, ["a=/no/such", "b=/dev/null"], MissingInputError, "/no/such: no such file or folder"),
    (BOTH, ["rtsp://u:secret@cam/1"], UsageError, "'rtsp://cam/1' does not say which source it is for (hint: for"),
    (ONE, ["tail:x", "y"], UsageError, "'tail:x' goes alone: it may never end"),
    (ONE, ["rtsp://camera/1"], UsageError, "a source of lines does not read 'rtsp://camera/1' (hint: [source]"),
    (IMAGES, ["tcp:box:1"], UsageError, "a source of images does not read 'tcp:box:1'"),
])  # fmt: skip
def test_inputs_that_do_not_fit_the_sources_are_one_line(text, texts, error, message) -> None:
    with pytest.raises(error) as caught:
        opened(text, *texts)
    assert message in str(caught.value)


def test_one_source_of_files_is_read_without_a_thread_and_with_its_own_names(tmp_path) -> None:
    (tmp_path / "x.txt").write_text("one\n", encoding="utf-8")
    for texts in ([str(tmp_path / "x.txt")], [f"a={tmp_path / 'x.txt'}"]):
        found = opened(ONE, *texts)
        assert found.readers is None
        assert [item.load() for item in found.items] == [{"x": "one"}]
        assert found.paths == (Path(tmp_path / "x.txt"),)
    assert opened(ONE, *texts, drop="oldest").readers is not None
