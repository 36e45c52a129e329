# SPDX-License-Identifier: Apache-2.0
"""Models x boxes x variants are jobs, the same in every call; what is no plan is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nndeploy.errors import DataError, MissingInputError, UsageError
from nndeploy.farm.expand import MAX_JOBS, Plan, digest_of, expand, reference_of
from nndeploy.farm.fleet import Publish
from nndeploy.farm.fleet_file import fleet_from_toml
from nndeploy.farm.job import Job, job_from_json, job_to_json
from nndeploy.farm.job_filter import Shard, filter_from_text, shard_from_text
from nndeploy.farm.job_options import given_here

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
MODELS = '[[models]]\nfiles = ["m/**/*.onnx"]\n'
TWO_AXES = '[matrix]\nprecision = ["fp32", "bf16"]\nshape = { small = "x=1,3", large = "x=4,3" }\n'

PlanOf = Callable[..., Plan]


@pytest.fixture
def plan_of(tmp_path: Path) -> PlanOf:
    for name in ("a.onnx", "b/yolo.onnx"):
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).touch()

    def expanded(text: str, *filters: str, shard: str | None = None, only: str = "") -> Plan:
        (tmp_path / "fleet.toml").write_text(text, encoding="utf-8")
        fleet = fleet_from_toml(tmp_path / "fleet.toml")
        parts = [filter_from_text(one, fleet.keys) for one in filters]
        return expand(fleet, parts, shard_from_text(shard) if shard else None, only)

    return expanded


def ids(plan: Plan) -> list[str]:
    return [job.id for job in plan.jobs]


def test_models_alone_are_built_for_the_machine_that_runs_them(plan_of: PlanOf, tmp_path: Path) -> None:
    first, second = plan_of(MODELS).jobs
    assert first == Job(
        "a/host", "a", "host", "", str(tmp_path / "m/a.onnx"), {}, {}, str(tmp_path / "dist/a/host.nnd")
    )
    assert second.id == "yolo/host"


def test_every_model_target_and_variant_is_a_job_sorted_by_id(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "box.toml").write_text('arch = "x86_64"\n')
    plan = plan_of(f'{MODELS}{TWO_AXES}[targets]\nnames = ["t4+openvino", "host"]\nfiles = ["*ox.toml"]\n')
    targets, variants = ["box", "host", "t4+openvino"], ["bf16-large", "bf16-small", "fp32-large", "fp32-small"]
    assert ids(plan) == [f"{m}/{t}/{v}" for m in ("a", "yolo") for t in targets for v in variants]
    given = {job.id: job.given for job in plan.jobs}
    assert given["a/host/bf16-small"] == {"precision": "bf16", "shapes": ["x=1,3"]}
    assert given["a/box/fp32-large"]["targets"] == [str(tmp_path / "box.toml")]
    assert given["a/t4+openvino/fp32-large"]["targets"] == ["t4+openvino"]
    assert plan.jobs[0].output == str(tmp_path / "dist/a/box/bf16-large.nnd")
    assert [job_from_json(json.loads(json.dumps(job_to_json(job)))) for job in plan.jobs] == list(plan.jobs)


def test_a_known_box_is_itself_whatever_lies_in_the_working_folder(plan_of, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t4").touch()
    (job, _) = plan_of(f'{MODELS}[targets]\nnames = ["t4+openvino"]\n').jobs
    assert given_here(job.given) == {"targets": [f"{CONFIGS / 'targets' / 't4.toml'}+openvino"]}
    assert given_here({"precision": "fp32"}) == {"precision": "fp32"}
    with pytest.raises(DataError, match=r"no target is called 't5' \(hint: known: .*'t4'"):
        given_here({"targets": ["t5"]})


def test_what_comes_later_is_in_the_place_of_what_came_before(plan_of: PlanOf) -> None:
    plan = plan_of(
        '[farm]\ntimeout = "1m"\nmemory = "1GiB"\nneeds = { a = "1" }\n[options]\ngoldens = 1\nthreads = 1\nrtol = 1\n'
        '[[models]]\nfiles = ["m/**/*.onnx", "m/a.onnx"]\noptions = { threads = 2 }\ntimeout = "2m"\n'
        '[[models]]\nfiles = ["m/b/*.onnx"]\noptions = { rtol = 2 }\nneeds = { b = "2" }\n'
        "[matrix]\nv = { one = { goldens = 3, rtol = 3 } }\n"
        '[[override]]\nmodel = "y*"\nv = "on?"\noptions = { rtol = 4 }\nmemory = "2GiB"\nsandbox = false\n'
        '[[override]]\nvariant = "one"\nmodel = "a"\ntimeout = "3m"\n'
    )
    a, yolo = plan.jobs
    assert a.given == {"num_goldens": 3, "threads": 2, "rtol": 3.0}
    assert yolo.given == {"num_goldens": 3, "threads": 2, "rtol": 4.0}
    assert a.limits == {"total_time_limit": 180.0, "memory_limit": 1 << 30}
    assert yolo.limits == {"total_time_limit": 120.0, "memory_limit": 2 << 30, "sandbox": False}
    assert (a.needs, yolo.needs) == ({"a": "1"}, {"a": "1", "b": "2"})


def test_excluded_jobs_are_not_there_and_what_matches_nothing_is_noted(plan_of: PlanOf, tmp_path: Path) -> None:
    plan = plan_of(
        f'{MODELS}{TWO_AXES}[[exclude]]\nmodel = "yolo"\nprecision = "bf16"\n[[exclude]]\nshape = "huge"\n'
        '[[exclude]]\nvariant = ["fp32-small", "bf16-l*"]\n[[override]]\nmodel = "z"\ntimeout = "1m"\n'
    )
    assert ids(plan) == ["a/host/bf16-small", "a/host/fp32-large", "yolo/host/fp32-large"]
    where = tmp_path / "fleet.toml"
    assert plan.notes == (f"{where}: exclude 2 matches no job", f"{where}: override matches no job")


def test_paths_of_options_hold_names_of_the_job(plan_of: PlanOf, tmp_path: Path) -> None:
    for name in ("a", "yolo"):
        (tmp_path / "in" / name / "host-default").mkdir(parents=True)
    text = f'{MODELS}[options]\nsamples = "in/{{model}}/{{target}}-{{variant}}"\n'
    assert [job.given["samples"] for job in plan_of(text).jobs] == [
        str(tmp_path / "in" / name / "host-default") for name in ("a", "yolo")
    ]
    shutil.rmtree(tmp_path / "in" / "yolo")
    with pytest.raises(MissingInputError, match=r"fleet.toml: job yolo/host: .*samples"):
        plan_of(text)


def test_filters_and_shards_choose(plan_of: PlanOf) -> None:
    text = f"{MODELS}{TWO_AXES}"
    whole = ids(plan_of(text))
    chosen = plan_of(text, "model=yolo* precision=bf16", "variant=fp32-small model=a")
    assert ids(chosen) == ["a/host/fp32-small", "yolo/host/bf16-large", "yolo/host/bf16-small"]
    assert sorted(ids(chosen) + [job.id for job in chosen.filtered]) == whole
    shards = [plan_of(text, shard=f"{number}/3") for number in (1, 2, 3)]
    assert sorted(one for shard in shards for one in ids(shard)) == whole
    assert {len(shard.jobs) for shard in shards} == {2, 3}
    assert len({shard.digest for shard in shards}) == 3
    assert plan_of(text, "model=a variant=fp32-small", shard="2/2").jobs == ()
    assert {shard.whole_digest for shard in shards} == {plan_of(text).digest}


def test_one_job_is_chosen_by_its_id(plan_of: PlanOf) -> None:
    whole = plan_of(f"{MODELS}{TWO_AXES}")
    for job in whole.jobs:
        chosen = plan_of(f"{MODELS}{TWO_AXES}", only=job.id)
        assert (chosen.jobs, chosen.filtered, chosen.whole_digest) == ((job,), (), whole.digest)
    with pytest.raises(UsageError, match=r"there is no job 'yolo/hots' \(hint: did you mean 'yolo/host'"):
        plan_of(MODELS, only="yolo/hots")


@pytest.mark.parametrize(("text", "message"), [
    ("", "--filter names nothing"),
    ("yolo", "'yolo' is not KEY=GLOB"),
    ("model=", "'model=' is not KEY=GLOB"),
    ("modle=a", r"jobs have no 'modle' \(hint: did you mean 'model'"),
    ("model='a", 'a quotation in "model=\'a" does not end'),
])  # fmt: skip
def test_what_is_no_filter_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        filter_from_text(text, ("model", "target", "variant"))


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1/0", "3", "a/b", "-1/3", "1/99999999", "1/2/3", "\u0661/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--shard: .* is not K/N"):
        shard_from_text(text)
    assert shard_from_text("3/8") == Shard(3, 8)


def test_the_same_tree_gives_the_same_jobs_and_digest_wherever_it_lies(plan_of: PlanOf, tmp_path: Path) -> None:
    (tmp_path / "box.toml").write_text('arch = "x86_64"\n')
    (tmp_path / "in").mkdir()
    text = (
        f'{MODELS}[targets]\nfiles = ["box.toml"]\nnames = ["t4"]\n[options]\nsamples = "in"\npin = ["/a/*=native"]\n'
    )
    plan = plan_of(text)
    assert plan == plan_of(text)
    copy = tmp_path / "elsewhere" / "deeper"
    copy.mkdir(parents=True)
    for name in ("m", "in"):
        shutil.copytree(tmp_path / name, copy / name)
    for name in ("box.toml", "fleet.toml"):
        shutil.copy(tmp_path / name, copy)
    moved = expand(fleet_from_toml(copy / "fleet.toml"))
    assert [job.source for job in moved.jobs] != [job.source for job in plan.jobs]
    assert moved.digest == plan.digest
    assert plan_of(text.replace("/a/*", "/b/*")).digest != plan.digest
    assert len(plan.digest) == 64


@pytest.mark.parametrize(("field", "value"), [
    ("variant", "v"), ("source", "/x/n.onnx"), ("given", {"threads": 1}), ("limits", {"time_limit": 1.0}),
    ("output", "/x/n.nnd"), ("needs", {"gpu": "sm89"})
])  # fmt: skip
def test_the_digest_is_of_all_that_a_job_says_but_its_estimate(field: str, value: Any) -> None:
    plain = job_to_json(Job("m/t", "m", "t", "", "/x/m.onnx", {}, {}, "/x/m.nnd"))
    digest = digest_of([Job(**plain)], Path("/x"))
    assert digest_of([Job(**{**plain, field: value})], Path("/x")) != digest
    assert digest_of([Job(**{**plain, "estimate": 5.0})], Path("/x")) == digest


REFUSED = [
    ('[[models]]\nfiles = ["m/*.onnx", "n/*.onnx"]\n', MissingInputError, ": models: no file matches 'n/*.onnx'"),
    (f'{MODELS}[targets]\nfiles = ["*.box"]\n', MissingInputError, ": targets: no file matches '*.box'"),
    (f'{MODELS}[targets]\nnames = ["t5"]\n', DataError, ": targets: no target is called 't5' (hint: known: "),
    (f'{MODELS}[targets]\nnames = ["t4+"]\n', DataError, ": targets: no target is called 't4+'"),
    (f'{MODELS}[targets]\nfiles = ["fleet.toml"]\n', DataError, ": targets: {folder}/fleet.toml: unknown key 'models'"),
    (f'{MODELS}[[exclude]]\nmodel = "*"\n', DataError, ": every job is excluded"),
    ('[farm]\noutput = "x.nnd"\n' + MODELS, DataError, ": a/host and yolo/host have one output, '{folder}/x.nnd'"),
    ('[farm]\noutput = "{model}/../x"\n' + MODELS, DataError, ": a/host and yolo/host have one output"),
    ('[farm]\noutput = "m/{model}.onnx"\n' + MODELS, DataError, ": a/host would write over the model"),
    (f"{MODELS}[options]\ncalibration = 'min-max'\n", DataError, ": job a/host: --calibration and"),
    (f"{MODELS}[options]\nrequire = 'native'\n", DataError, ": job a/host: --require 'native' is not BACKEND=SHARE"),
    (f"{MODELS}[options]\nmax-fallback = '5'\n", DataError, ": job a/host: --max-fallback: '5' is not a share"),
    (f"{MODELS}[options]\nimage = 'fleet.toml'\n", DataError, ": job a/host: {folder}/fleet.toml: "),
    (f"{MODELS}[options]\ndecisions = 'd.json'\n", MissingInputError, ": job a/host: {folder}/d.json: decisions"),
    (
        f'{MODELS}[matrix]\na = {{ "x-y" = {{}}, x = {{}} }}\nb = {{ z = {{}}, "y-z" = {{}} }}\n',
        DataError, ": matrix: two variants are called 'x-y-z': {{'a': 'x-y', 'b': 'z'}} and {{'a': 'x', 'b': 'y-z'}}",
    ),
    (f'{MODELS}[publish]\noci = "oci://r.example/x:1"\n', DataError, ": publish: a/host and yolo/host have one"),
    (f'{MODELS}[publish]\noci = "oci://r.example/X{{model}}:1"\n', DataError, ": publish: a/host makes no reference: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message"), REFUSED)
def test_what_is_no_plan_is_one_line(text: str, kind: Any, message: str, plan_of: PlanOf, tmp_path: Path) -> None:
    with pytest.raises(kind) as caught:
        plan_of(text)
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"{tmp_path}/fleet.toml{message.format(folder=tmp_path)}")


def test_no_job_matches_a_filter(plan_of: PlanOf) -> None:
    with pytest.raises(UsageError, match="no job matches the filter"):
        plan_of(MODELS, "model=z")


def test_a_matrix_that_multiplies_too_far_is_refused_before_it_is_made(plan_of: PlanOf) -> None:
    axes = "".join(f"a{n} = {{ {', '.join(f'v{v} = {{}}' for v in range(10))} }}\n" for n in range(12))
    with pytest.raises(DataError, match=rf"makes {2 * 10**12} jobs; at most {MAX_JOBS} are allowed"):
        plan_of(f"{MODELS}[matrix]\n{axes}")


def test_a_reference_of_a_registry_is_made_of_the_names() -> None:
    job = Job("yolo/t4/fp32", "yolo", "t4", "fp32", "/m", {}, {}, "/o")
    reference = reference_of(Publish(oci="oci://r.example/{model}:{target}-{variant}"), job)
    assert str(reference) == "oci://r.example/yolo:t4-fp32"


def test_the_example_makes_jobs_of_the_models_that_a_user_has(tmp_path: Path) -> None:
    shutil.copy(CONFIGS / "farm" / "fleet.toml", tmp_path)
    for name in ("vision/yolo5.onnx", "audio/vad.onnx", "audio/vad-draft.onnx"):
        (tmp_path / "models" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "models" / name).touch()
    plan = expand(fleet_from_toml(tmp_path / "fleet.toml"))
    assert len(plan.jobs) == 2 * (3 * 4 - 2)
    assert plan.notes == ()
