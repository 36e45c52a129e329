# SPDX-License-Identifier: Apache-2.0
"""A fleet file: every key becomes its value; whatever else stands there is one line that names the place."""

import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import DataError, MissingInputError, NndeployError
from nndeploy.farm.fleet import Axis, Cluster, Fleet, Publish, Settings
from nndeploy.farm.fleet_file import fleet_from_toml
from nndeploy.farm.reports.gates import Gates
from nndeploy.farm.reports.write_reports import ReportFiles

EXAMPLE = (Path(__file__).resolve().parents[3] / "configs" / "farm" / "fleet.toml").read_text(encoding="utf-8")
MODELS = '[[models]]\nfiles = ["*.onnx"]\n'
ALL_OF_IT = "\n".join(
    line.removeprefix("# ") if "=" in line or line.startswith("# [") else line for line in EXAMPLE.splitlines()
)
"""The example with all that is commented out."""

Read = Callable[[str], Fleet]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def reader(text: str) -> Fleet:
        (tmp_path / "fleet.toml").write_text(text, encoding="utf-8")
        return fleet_from_toml(tmp_path / "fleet.toml")

    return reader


def test_a_file_that_names_models_alone_has_the_defaults(read: Read, tmp_path: Path) -> None:
    fleet = read(MODELS)
    assert fleet.folder == tmp_path
    assert fleet.output == "dist/{model}/{target}.nnd"
    assert (fleet.jobs, fleet.cache, fleet.push, fleet.cluster, fleet.publish) == (None, (), "never", None, None)
    assert (fleet.settings, fleet.gates, fleet.reports, fleet.axes) == (Settings(), Gates(), ReportFiles(), ())
    assert fleet.keys == ("model", "target", "variant")


def test_the_farm_s_table(read: Read, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/of")
    fleet = read(
        '[farm]\noutput = "out/{model}-{target}.nnd"\ncache = ["~/d", "https://h.example:9/n/"]\n'
        'push = "always"\ncache_ca = "ca.pem"\n'
        'jobs = 3\ntimeout = "30m"\nmemory = "8GiB"\ntime_limit = "90s"\nsandbox = false\nneeds = { gpu = "sm89" }\n'
        f"{MODELS}[options]\nprecision = 'bf16'\n"
    )
    assert (fleet.output, fleet.jobs, fleet.push) == ("out/{model}-{target}.nnd", 3, "always")
    assert fleet.cache == ("/home/of/d", "https://h.example:9/n")
    assert fleet.cache_ca == str(tmp_path / "ca.pem")
    assert read(f'[farm]\ncache = "d"\n{MODELS}').cache == (str(tmp_path / "d"),)
    limits = {"total_time_limit": 1800.0, "memory_limit": 8 << 30, "time_limit": 90.0, "sandbox": False}
    assert fleet.settings == Settings({"precision": "bf16"}, limits, {"gpu": "sm89"})


def test_models_say_what_their_jobs_need(read: Read) -> None:
    models = '[[models]]\nfiles = ["a", "!b", "a"]\ntimeout = "6h"\noptions = { samples = "in/{model}", goldens = 2 }\n'
    first, second = read(models + MODELS).models
    assert first.globs == ("a", "!b", "a")
    assert first.settings == Settings({"samples": "in/{model}", "num_goldens": 2}, {"total_time_limit": 21600.0})
    assert second.settings == Settings()


def test_axes_of_values_of_named_values_and_of_several_options(read: Read) -> None:
    fleet = read(
        f'{MODELS}[matrix]\nprecision = ["fp32", "bf16"]\nthreads = [1, 2]\nfallback = [true, false]\n'
        'shape = { small = "x=1,3", both = ["x=1", "y=2"] }\n'
        "build = { plain = {}, exact = { rtol = 0, cache-buffer = 4096 } }\n"
    )
    assert fleet.axes == (
        Axis("precision", {"fp32": {"precision": "fp32"}, "bf16": {"precision": "bf16"}}),
        Axis("threads", {"1": {"threads": 1}, "2": {"threads": 2}}),
        Axis("fallback", {"true": {"keep_fallback": True}, "false": {"keep_fallback": False}}),
        Axis("shape", {"small": {"shapes": ["x=1,3"]}, "both": {"shapes": ["x=1", "y=2"]}}),
        Axis("build", {"plain": {}, "exact": {"rtol": 0.0, "cache_buffer": "4096"}}),
    )
    assert fleet.output == "dist/{model}/{target}/{variant}.nnd"


def test_excludes_and_overrides_match_by_names_and_axes(read: Read) -> None:
    fleet = read(
        f'{MODELS}[matrix]\nprecision = ["fp32", "bf16"]\n'
        '[[exclude]]\ntarget = ["a*", "b*"]\nprecision = "bf16"\n'
        '[[override]]\nmodel = "yolo?"\ntimeout = "1h"\nmemory = "1GiB"\noptions = { require = ["native=90%"] }\n'
    )
    (exclude,), (override,) = fleet.excludes, fleet.overrides
    names = {"model": "yolo5", "target": "box", "variant": "bf16", "precision": "bf16"}
    assert exclude.matches(names)
    assert override.match.matches(names)
    assert not exclude.matches({**names, "precision": "fp32"})
    assert not exclude.matches({**names, "target": "cox"})
    assert not override.match.matches({**names, "model": "yolo"})
    limits = {"total_time_limit": 3600.0, "memory_limit": 1 << 30}
    assert override.settings == Settings({"require": ["native=90%"]}, limits)


def test_where_jobs_run_bundles_go_and_reports_are_written(read: Read, tmp_path: Path) -> None:
    fleet = read(
        f'{MODELS}[cluster]\naddress = "tls://farm:8786"\nca = "ca.pem"\ncert = "c.pem"\nkey = "/k.pem"\n'
        '[publish]\noci = "oci://r.example/{model}:{target}"\nsign = "farm.key"\n'
        '[report]\njunit = "r/j.xml"\npage = "r/index.html"\n'
        '[gates]\nmax_slowdown = "5%"\nmax_error_growth = "2x"\nmax_size_growth = "12.5 %"\n'
        'min-share = "native=90%"\n'
    )
    assert fleet.cluster == Cluster("tls://farm:8786", str(tmp_path / "ca.pem"), str(tmp_path / "c.pem"), "/k.pem")
    assert fleet.publish == Publish("", "oci://r.example/{model}:{target}", str(tmp_path / "farm.key"))
    assert fleet.reports == ReportFiles(junit=tmp_path / "r/j.xml", page=tmp_path / "r/index.html")
    assert fleet.gates == Gates(
        max_slowdown=0.05, max_size_growth=0.125, max_error_growth=2.0, min_share={"native": 0.9}
    )


def test_the_example_is_read_as_it_is_and_with_all_that_is_commented_out(read: Read) -> None:
    assert [axis.name for axis in read(EXAMPLE).axes] == ["precision", "placement"]
    fleet = read(ALL_OF_IT)
    assert fleet.cluster is not None
    assert fleet.publish is not None
    assert len(fleet.models) == 2
    assert len(fleet.cache) == 2


REFUSED = [
    ("[farm]\n", ": names no models (hint: [[models]] with files = [\"models/**/*.onnx\"])"),
    ("a = [", ": is not TOML: "),
    ("[frm]\n" + MODELS, ": unknown key 'frm' (hint: did you mean 'farm'?)"),
    ("[farm]\noutptu = 'x'\n" + MODELS, ": farm: unknown key 'outptu' (hint: did you mean 'output'?)"),
    ("farm = 1\n" + MODELS, ": farm must be a table, is 1"),
    ("models = 1\n", ": models must be a list of tables, is 1 (hint: each begins with [[models]])"),
    ("[farm]\noutput = '{modle}.nnd'\n" + MODELS, ": farm: {modle} means nothing in '{modle}.nnd' (hint: did you mean"),
    ("[farm]\noutput = 'a{b.nnd'\n" + MODELS, ": farm: a brace stands alone in 'a{b.nnd'"),
    ("[farm]\noutput = ''\n" + MODELS, ": farm: '' is no path"),
    ('[farm]\noutput = "a\\u0007"\n' + MODELS, ": farm: 'a\\x07' is no path"),
    ("[farm]\npush = 'allways'\n" + MODELS, ": farm: push cannot be 'allways' (hint: did you mean 'always'?)"),
    ("[farm]\njobs = 0\n" + MODELS, ": farm: jobs must be 1 to 4096, is 0"),
    ("[farm]\njobs = 'all'\n" + MODELS, ": farm: jobs must be \"auto\" or a number, is 'all'"),
    ("[farm]\njobs = true\n" + MODELS, ": farm: jobs must be a whole number, is True"),
    ("[farm]\ntimeout = 30\n" + MODELS, ": farm: timeout must be a text, is 30"),
    ("[farm]\ntimeout = '30'\n" + MODELS, ": farm: timeout: '30' is not a time (hint: for example 30m, 6h or 90s)"),
    ("[farm]\ntimeout = ''\n" + MODELS, ": farm: timeout: '' is not a time"),
    ("[farm]\nmemory = '8TB'\n" + MODELS, ": farm: memory: '8TB' is not a size"),
    ("[farm]\nmemory = '1MiB'\n" + MODELS, ": farm: memory: '1MiB' is not enough to compile any model"),
    ("[farm]\nsandbox = 'no'\n" + MODELS, ": farm: sandbox must be true or false, is 'no'"),
    ("[farm]\nneeds = { gpu = 1 }\n" + MODELS, ": farm: needs must be a table of texts"),
    ('[farm]\nneeds = { gpu = "\\u001b" }\n' + MODELS, ": farm: needs holds a character that cannot be printed"),
    ("[farm]\ncache = ['ftp://x']\n" + MODELS, ": farm: 'ftp://x' is no address of http or https"),
    ("[farm]\ncache = ['http://[x']\n" + MODELS, ": farm: 'http://[x' is no address of http or https"),
    ("[farm]\ncache = ['https://me:word@x/']\n" + MODELS, ": farm: an address holds a name or a password"),
    ("[farm]\ncache = ['https://x/?a=b']\n" + MODELS, ": farm: 'https://x/?a=b' is no address of http or https"),
    ("[farm]\ncache = ['a', 'b']\n" + MODELS, ": farm: cache names more than a folder and an address"),
    ("[farm]\noptions = {}\n" + MODELS, ": farm: unknown key 'options'"),
    ("[[models]]\n", ": models: files names no models"),
    ("[[models]]\nfiles = ['!a']\n", ": models: files names no models"),
    ("[[models]]\nfiles = 'a'\n", ": models: files must be a list of texts, is 'a'"),
    (MODELS + "[[models]]\nfile = ['a']\nfiles = ['a']\n", ": models 2: unknown key 'file' (hint: did you"),
    (MODELS + "[models.options]\nprecison = 'bf16'\n", ": models: options: there is no option 'precison'"),
    (MODELS + "[options]\nprecision = 'fp16'\n", ": options: precision cannot be 'fp16' (hint: "),
    (MODELS + "[options]\ntarget = 'x'\n", ": options: 'target' does not stand here (hint: [targets] names the"),
    (MODELS + "[options]\ndry-run = true\n", ": options: 'dry-run' does not stand here"),
    (MODELS + "[options]\ntotal-time-limit = 5\n", ": options: 'total-time-limit' does not stand here"),
    (MODELS + "[options]\nthreads = 0\n", ": options: threads must be a number from 1, is 0"),
    (MODELS + "[options]\nshape = 'small'\n", ": options: shape: 'small' names no input"),
    (MODELS + "[options]\nsamples = '{box}'\n", ": options: {box} means nothing in '{box}'"),
    (MODELS + "[options]\ncache_buffer = '1KiB'\ncache-buffer = '1KiB'\n", ": options: the option 'cache-buffer'"),
    (MODELS + "[targets]\nnames = []\n", ": targets: names no target"),
    (MODELS + "[targets]\nnames = ['a.toml']\n", ": targets: names: 'a.toml' is not a target name (hint: files"),
    (MODELS + "[targets]\nnames = ['host', 'host']\n", ": targets: names lists something twice: host, host"),
    (MODELS + "[matrix]\nprecision = 'bf16'\n", ": matrix: precision: must be a list of values, or a table of them by"),
    (MODELS + "[matrix]\nprecision = []\n", ": matrix: precision: has no values"),
    (MODELS + "[matrix]\nprecision = ['bf16', 'bf16']\n", ": matrix: precision: the value 'bf16' is there twice"),
    (MODELS + "[matrix]\nprecison = ['bf16']\n", ": matrix: precison: there is no option 'precison' (hint: did you"),
    (MODELS + "[matrix]\nmodel = ['a']\n", ": matrix: model: an axis cannot be called 'model'"),
    (MODELS + "[matrix]\ntimeout = ['a']\n", ": matrix: timeout: an axis cannot be called 'timeout'"),
    (MODELS + "[matrix]\nshape = [['x=1']]\n", ": matrix: shape: a list cannot hold ['x=1'] (hint: a table gives"),
    (MODELS + "[matrix]\npin = ['/a=native']\n", ": matrix: pin: the value '/a=native' holds a slash (hint: pin = {"),
    (MODELS + '[matrix.shape]\n"a\\u0007" = "x=1"\n', ": matrix: shape: the value 'a\\x07' holds a character that"),
    (
        MODELS + "[matrix]\nprecision = ['bf16']\nb = { c = { precision = 'fp32' } }\n",
        ": matrix: precision and b both set precision",
    ),
    (MODELS + "[[exclude]]\n", ": exclude: does not say which jobs it is for"),
    (MODELS + "[[exclude]]\nmodle = 'a'\n", ": exclude: unknown key 'modle' (hint: did you mean 'model'?)"),
    (MODELS + "[[exclude]]\nmodel = 1\n", ": exclude: model must be a text or a list of texts, is 1"),
    (MODELS + "[[override]]\nmodel = 'a'\n", ": override: sets nothing"),
    (MODELS + "[[override]]\ntimeout = '1h'\n", ": override: does not say which jobs it is for"),
    (
        MODELS + "[[override]]\nmodel = 'a'\nrequire = 'native=9%'\n",
        ": override: unknown key 'require' (hint: options = { require = .. })",
    ),
    (MODELS + "[cluster]\n", ": cluster: address is missing"),
    (MODELS + "[cluster]\naddress = 'farm:8786'\n", ": cluster: 'farm:8786' is no address of tls or tcp"),
    (MODELS + "[cluster]\naddress = 'tls://farm'\n", ": cluster: 'tls://farm' is no address of tls or tcp"),
    (MODELS + "[cluster]\naddress = 'tls://farm:99999'\n", ": cluster: 'tls://farm:99999' is no address of tls or tcp"),
    (MODELS + "[cluster]\naddress = 'tls://f:1/x'\n", ": cluster: an address holds a name, a password or more than"),
    (MODELS + "[cluster]\naddress = 'tls://f:1'\ncert = 'c'\n", ": cluster: cert and key go together"),
    (MODELS + "[publish]\nsign = 'k'\n", ": publish: "),
    (MODELS + "[publish]\noci = 'r/x'\n", ": publish: oci must begin with oci://, is 'r/x'"),
    (MODELS + "[publish]\noci = 'oci://{x}'\n", ": publish: {x} means nothing"),
    (MODELS + "[report]\njson = 'a'\npage = './a'\n", ": report: json and page are one file"),
    (MODELS + "[report]\nhtml = 'a'\n", ": report: unknown key 'html' (hint: known: 'json'"),
    (MODELS + "[gates]\nmax_slowdown = '2x'\n", ": gates: --max-slowdown: '2x' is no growth"),
    (MODELS + "[gates]\nmax_error_growth = '0.5x'\n", ": gates: --max-error-growth: '0.5x' is no growth"),
    (MODELS + "[gates]\nmax_slowdwon = '5%'\n", ": gates: there is no option 'max_slowdwon'"),
    (MODELS + "[gates]\nmin_share = 'native=101%'\n", ": gates: --min-share: '101%' is not a share"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_a_file_may_not_say_is_one_line_with_the_place(text: str, message: str, read: Read, tmp_path) -> None:
    with pytest.raises(DataError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{tmp_path}/fleet.toml{message}")
    assert str(caught.value).isprintable()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match=r"fleet\.toml: no such fleet file"):
        fleet_from_toml(tmp_path / "fleet.toml")


TOKENS = sorted({*EXAMPLE.replace("=", " = ").split(), "[", "]", "{}", "''", "-1", "nan", "true", "1e9", '"\\u0000"'})


@pytest.mark.parametrize("seed", range(3))
def test_mutants_of_the_example_are_read_or_refused_by_an_error_of_ours(seed: int, read: Read) -> None:
    dice, refused = random.Random(seed), 0  # noqa: S311 - the same mutants in every run
    for _ in range(60):
        words = ALL_OF_IT.split(" ")
        for _ in range(dice.randint(1, 4)):
            words[dice.randrange(len(words))] = dice.choice([*TOKENS, dice.choice(words), ""])
        try:
            read(" ".join(words))
        except NndeployError as err:
            refused += str(err).isprintable()
    assert 20 < refused < 60


PLAIN = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    (table, key)
    for table, value in tomllib.loads(ALL_OF_IT).items()
    for key in (value[0] if isinstance(value, list) else value)
]


@settings(max_examples=40)
@given(place=st.sampled_from(PLACES), value=PLAIN)
def test_any_value_in_any_place_is_read_or_refused_by_an_error_of_ours(place, value: Any, tmp_path_factory) -> None:
    table, key = place
    data = tomllib.loads(ALL_OF_IT)
    (data[table][0] if isinstance(data[table], list) else data[table])[key] = value
    folder = tmp_path_factory.getbasetemp()
    (folder / "any.toml").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nndeploy.farm.fleet_file.toml_from_file", lambda *_: data)
        try:
            made = fleet_from_toml(folder / "any.toml")
        except DataError as err:
            text = str(err)
        else:
            text = made.where
    assert text.isprintable()
