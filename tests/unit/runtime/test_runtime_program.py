# SPDX-License-Identifier: Apache-2.0
"""A program: names in, arrays out, over stand-ins for bundle and backends."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from nndeploy.bundle.manifest import Manifest, NamedType, Submodel
from nndeploy.errors import BundleError, InputError, UnavailableError, UsageError
from nndeploy.plugin.interface import Probe
from nndeploy.runtime import program as program_module
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.opened_chain import OpenedChain
from nndeploy.runtime.places import ChainChoice, portable_place
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.runtime.select import Choice
from nndeploy.values.types import TensorType

F32 = TensorType("float32", ("N",))


def manifest(submodels, outputs=("y",), **fields):
    names = {"x", *outputs, *(name for submodel in submodels for name in (*submodel.inputs, *submodel.outputs))}
    return Manifest(
        model_name="m", model_sha256="0" * 64, inputs=(NamedType("x", F32),),
        outputs=tuple(NamedType(name, F32) for name in outputs), submodels=tuple(submodels),
        values=dict.fromkeys(sorted(names), F32), **fields,
    )  # fmt: skip


@pytest.fixture
def load(monkeypatch, fake_bundle):
    """Returns a function that loads a program from a manifest, and the bundle that it used."""

    def load(man, constants=None, **options):
        bundle = fake_bundle(man, constants or {})
        monkeypatch.setattr("nndeploy.runtime.program.open_bundle", lambda path: bundle)
        return bundle, load_bundle("model.nnd", LoadOptions(**options))

    return load


@pytest.fixture
def double(fake_backend):
    return fake_backend("one", functions={"double": lambda x: {"y": x * 2}, "next": lambda y: {"z": y + 1}})


def test_runs_a_chain(install, double, variant, load) -> None:
    install(double)
    subs = [
        Submodel("s0", ("x",), ("y",), (variant("one", metadata={"function": "double"}),)),
        Submodel("s1", ("y",), ("z",), (variant("one", metadata={"function": "next"}),)),
    ]
    _, program = load(manifest(subs, ("z", "y")))
    with program:
        found = program.run({"x": np.ones(2, np.float32)})
    assert list(found) == ["z", "y"]
    assert found["z"].tolist() == [3, 3]
    assert [choice.submodel for choice in program.choices] == ["s0", "s1"]


def test_closing_frees_sessions_and_file_once(install, double, variant, load) -> None:
    install(double)
    sub = Submodel("s0", ("x",), ("y",), (variant("one", metadata={"function": "double"}),))
    bundle, program = load(manifest([sub]))
    program.close()
    program.close()
    assert bundle.is_closed
    assert double.opened[0][2].num_closed == 1
    with pytest.raises(UsageError, match="closed"):
        program.run({"x": [1.0]})


def test_close_waits_for_running_calls(install, fake_backend, variant, load) -> None:
    started, may_end = threading.Event(), threading.Event()

    def slow(x):
        started.set()
        assert may_end.wait(10)
        return {"y": x}

    backend = fake_backend("one", functions={"slow": slow})
    install(backend)
    _, program = load(manifest([Submodel("s0", ("x",), ("y",), (variant("one", metadata={"function": "slow"}),))]))
    results = []
    runner = threading.Thread(target=lambda: results.append(program.run({"x": [1.0]})))
    runner.start()
    assert started.wait(10)
    closer = threading.Thread(target=program.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    assert backend.opened[0][2].num_closed == 0
    may_end.set()
    closer.join(10)
    runner.join(10)
    assert results[0]["y"].tolist() == [1]


def test_outputs_that_are_inputs_or_constants_belong_to_the_caller(load) -> None:
    constant = np.arange(2, dtype=np.float32)
    constant.flags.writeable = False
    man = manifest([], ("same", "fixed"), aliases={"same": "x"}, constants="goldens/constants")
    _, program = load(man, {"fixed": constant})
    x = np.ones(3, np.float32)
    for _ in range(2):
        found = program.run({"x": x})
        assert list(found) == ["same", "fixed"]
        assert found["fixed"].tolist() == [0, 1]
        found["fixed"][:] = 9
        found["same"][:] = 9
    assert x.tolist() == [1, 1, 1]


def test_an_output_from_nowhere_is_a_bad_bundle(load) -> None:
    with pytest.raises(BundleError, match=r"model.nnd: nothing computes the output 'y'"):
        load(manifest([]))


def test_inputs_are_checked_before_anything_runs(install, fake_backend, variant, load) -> None:
    calls = []
    install(fake_backend("one", functions={"f": lambda x: calls.append(1) or {"y": x}}))
    _, program = load(manifest([Submodel("s0", ("x",), ("y",), (variant("one", metadata={"function": "f"}),))]))
    with pytest.raises(InputError, match="no input is named"):
        program.run({"X": [1.0]})
    assert calls == []


def test_a_fallback_is_told(install, fake_backend, variant, load) -> None:
    two = fake_backend("two", functions={"f": lambda x: {"y": x}})
    install(fake_backend("one", Probe(False, False, reason="no driver")), two)
    sub = Submodel("s0", ("x",), ("y",), (variant("one"), variant("two", metadata={"function": "f"})))
    _, program = load(manifest([sub]))
    assert program.warnings == ("submodel s0 runs on two (two-1), not on one (one-1): no driver",)
    with pytest.raises(UnavailableError, match="s0: variant one-1 cannot be taken: no driver"):
        load(manifest([sub]), strict=True)


def test_a_failed_load_closes_what_was_opened(install, fake_backend, variant, load, monkeypatch) -> None:
    one = fake_backend("one")
    install(one, fake_backend("two", failure=RuntimeError("no")))
    subs = [Submodel("s0", ("x",), ("y",), (variant("one"),)), Submodel("s1", ("x",), ("z",), (variant("two"),))]
    with pytest.raises(UnavailableError, match="s1: no variant can run here: two: did not open"):
        load(manifest(subs))
    assert one.opened[0][2].num_closed == 1


def test_arguments_without_meaning_are_refused_before_the_file_is_read() -> None:
    with pytest.raises(UsageError, match="unknown device"):
        load_bundle("nowhere.nnd", LoadOptions(device="tpu"))


def test_program_takes_over_what_it_is_given(fake_bundle, fake_session) -> None:
    sub = Submodel("s0", ("x",), ("y",), ())
    session = fake_session(lambda x: {"y": x})
    chain = ChainChoice("portable", (sub,), manifest([sub]).values, portable_place())
    opened = OpenedChain(None, [(session, Choice("s0", "v", "fake"))])
    with Program(fake_bundle(manifest([sub])), chain, opened) as program:
        assert program.run({"x": [1.0]})["y"].tolist() == [1]
        assert [item.name for item in (*program.inputs, *program.outputs)] == ["x", "y"]
    assert session.num_closed == 1


ALLOWED = {"nndeploy", "numpy"}
"""What the run half may load besides the standard library."""


def test_the_run_half_loads_numpy_alone() -> None:
    code = (
        "import sys; before = set(sys.modules); import nndeploy.runtime.program, nndeploy.bundle.reader;"
        "import nndeploy.stream.engine.engine;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= ALLOWED


@pytest.mark.parametrize(("names", "loaded"), [
    (("nndeploy.pacing", "tomllib"), ["nndeploy.pacing", "nndeploy.pacing.run", "nndeploy.pacing.run.protocol"]),
    (("nndeploy.sandbox", "nndeploy.runtime.isolat"), []),
], ids=["pacing", "processes"])  # fmt: skip
def test_a_program_loads_nothing_of_what_it_was_not_asked_for(names, loaded) -> None:
    code = f"import sys, nndeploy.runtime.program; print(*[name for name in sys.modules if name.startswith({names})])"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == loaded


def test_the_package_offers_load_bundle() -> None:
    import nndeploy

    assert nndeploy.load_bundle is program_module.load_bundle
