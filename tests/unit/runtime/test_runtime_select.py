# SPDX-License-Identifier: Apache-2.0
"""Which variant a host takes, and what it says about the ones it passed over."""

import pytest

from nndeploy.bundle.manifest import Submodel
from nndeploy.errors import BundleError, UnavailableError, UsageError
from nndeploy.plugin.interface import Probe
from nndeploy.runtime.select import SessionOptions, choose, open_submodel, why_not
from nndeploy.target.target import host_target


def submodel(*variants):
    return Submodel("s0", ("x",), ("y",), variants)


def files_of(variant):
    return {name: memoryview(path.encode()) for name, path in variant.files.items()}


def opened(sub, **options):
    return open_submodel(sub, files_of, SessionOptions(**options), host_target())


def test_takes_the_first_variant_that_opens(install, fake_backend, variant) -> None:
    first, second = fake_backend("one"), fake_backend("two")
    install(first, second)
    _, choice = opened(submodel(variant("one"), variant("two")))
    assert (choice.variant, choice.passed_over) == ("one-1", ())
    assert first.opened[0][0] == {"model": b"submodels/s0/one/model"}
    assert not second.opened


def test_hands_device_threads_and_libraries_to_the_backend(install, fake_backend, variant) -> None:
    one = fake_backend("one")
    install(one)
    opened(submodel(variant("one")), threads=3, custom_op_libraries=("ops.so",))
    options = one.opened[0][1]
    assert (options.device, options.threads, options.custom_op_libraries) == ("cpu", 3, ("ops.so",))


@pytest.mark.parametrize(("how", "reason", "hint"), [
    ({"probe_result": Probe(False, False, reason="no library", hint="get it")}, "no library", "get it"),
    ({"probe_result": Probe(False, False)}, "cannot run here", ""),
    ({"failure": RuntimeError("bad\nblob")}, "did not open: RuntimeError: bad blob", ""),
])  # fmt: skip
def test_passes_over_a_backend_that_cannot_run_or_open(install, fake_backend, variant, how, reason, hint) -> None:
    install(fake_backend("one", **how), fake_backend("two"))
    _, choice = opened(submodel(variant("one"), variant("two")))
    assert choice.backend == "two"
    assert [(p.reason, p.hint) for p in choice.losses] == [(reason, hint)]


def test_passes_over_a_backend_that_is_not_installed(install, fake_backend, variant) -> None:
    install(fake_backend("two"))
    choice = choose(submodel(variant("openvino"), variant("two")), SessionOptions(), host_target())
    assert choice.backend == "two"
    assert choice.losses[0].reason == "the backend openvino is not installed here"
    assert choice.losses[0].hint == "pip install --no-index --find-links FOLDER 'nndeploy-toolchain[openvino]'"


def refusal(variant, **options):
    found = why_not(variant, SessionOptions(**options), host_target())
    return found and (found.reason, found.hint)


def test_passes_over_a_plugin_that_cannot_be_loaded(monkeypatch, install, fake_backend, variant, unavailable) -> None:
    def broken(name):
        raise unavailable

    install(fake_backend("one"))
    monkeypatch.setattr("nndeploy.runtime.select.backend", broken)
    assert refusal(variant("one")) == ("no such library", "install it")


def test_passes_over_a_plugin_whose_probe_fails(install, fake_backend, variant, monkeypatch) -> None:
    one = fake_backend("one")
    monkeypatch.setattr(one, "probe", lambda target: 1 / 0)
    install(one)
    assert refusal(variant("one"))[0] == "its probe failed: ZeroDivisionError: division by zero"


def test_a_damaged_file_is_not_a_reason_to_try_the_next(install, fake_backend, variant) -> None:
    install(fake_backend("one", failure=BundleError("damaged")), fake_backend("two"))
    with pytest.raises(BundleError, match="damaged"):
        opened(submodel(variant("one"), variant("two")))


def test_a_variant_for_another_machine_is_no_loss(install, fake_backend, variant) -> None:
    install(fake_backend("one"), fake_backend("two"))
    foreign = variant("one", requires={"arch": "vax"})
    _, choice = opened(submodel(foreign, variant("two")), strict=True)
    assert choice.backend == "two"
    assert choice.losses == ()
    assert "needs vax" in choice.passed_over[0].reason


def test_strict_refuses_to_take_the_next(install, fake_backend, variant) -> None:
    install(fake_backend("one", Probe(False, False, reason="no library", hint="get it")), fake_backend("two"))
    with pytest.raises(UnavailableError, match=r"s0: variant one-1 cannot be taken: no library \(hint: get it\)"):
        opened(submodel(variant("one"), variant("two")), strict=True)


def test_no_variant_names_every_backend_and_hint(install, variant) -> None:
    install()
    with pytest.raises(UnavailableError) as caught:
        opened(submodel(variant("openvino"), variant("onnxruntime")))
    text = str(caught.value)
    assert caught.value.exit_code == 69
    for part in ("openvino: ", "onnxruntime: ", "nndeploy-toolchain[openvino]", "nndeploy-toolchain[cpu]"):
        assert part in text
    assert "install nndeploy[" not in text


def test_custom_operators_need_a_library_from_the_operator(install, fake_backend, variant) -> None:
    install(fake_backend("one"))
    needy = variant("one", requires={"custom_ops": ["ai.onnx.contrib"]})
    assert refusal(needy) == ("needs an operator library for ai.onnx.contrib", "name it with --custom-ops")
    assert refusal(needy, custom_op_libraries=("ops.so",)) is None


def test_native_code_can_be_forbidden(install, fake_backend, variant) -> None:
    install(fake_backend("one"))
    native = variant("one", native_code=True)
    assert refusal(native) is None
    assert "native code" in refusal(native, allow_native_code=False)[0]


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cpu:0", "cuda:-1", ""])
def test_unknown_devices_are_refused(device) -> None:
    with pytest.raises(UsageError, match="unknown device"):
        SessionOptions(device=device)


def test_threads_must_be_positive() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        SessionOptions(threads=0)
