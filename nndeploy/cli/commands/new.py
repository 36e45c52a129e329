# SPDX-License-Identifier: Apache-2.0
"""`nndeploy new`: a pipeline file to begin with, written from a model and what lies beside it."""

from pathlib import Path

import click

from nndeploy.cli.console import print_json, print_line
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.value_types import ANY_FILE
from nndeploy.cli.standard_streams import effect_is_made

KINDS = ("embed", "rerank", "generate", "classify", "detect", "depth", "segment", "ocr", "vad", "transcribe")

EXAMPLES = """\b
Examples:
  nndeploy new embed --model minilm/model.onnx -o embed.toml
  nndeploy new rerank --model reranker/model.onnx -o rerank.toml
  nndeploy new generate --model qwen/model.onnx -o write.toml
  nndeploy new detect --model yolo11n.onnx -o detect.toml
  nndeploy new ocr --model det.onnx --model cls.onnx --model rec.onnx -o ocr.toml
  nndeploy new vad --model silero_vad.onnx -o vad.toml
  nndeploy new transcribe --model encoder_model.onnx --model decoder_model_merged.onnx -o text.toml
"""


@click.command("new", epilog=EXAMPLES)
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.option(
    "--model", "models", type=ANY_FILE, required=True, multiple=True, metavar="MODEL.onnx",
    help="Model that the pipeline is for (repeatable: ocr and transcribe take two or three, in any order).",
)  # fmt: skip
@click.option(
    "--language", metavar="CODE",
    help="Language that is spoken, as de, for transcribe. Default: the likeliest one of each recording.",
)  # fmt: skip
@click.option("-o", "--output", type=OUTPUT_FILE, required=True, metavar="FILE.toml", help="File to write.")
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON on standard output.")
def new(kind: str, models: tuple[str, ...], language: str | None, output: Path, as_json: bool) -> None:
    """Write a pipeline file for a model.

    KIND is embed (texts to vectors), rerank (questions and documents to scores), generate (prompts to texts), classify
    (images or texts to classes), detect (images to boxes, by a YOLO, or to faces, by SCRFD or YuNet), depth and segment
    (images to grey PNGs: how far each pixel is, or its class), ocr (images to texts, by PP-OCR's detector, recogniser
    and, if you like, classifier of angles), vad (sounds to times of speech, by Silero's VAD) or transcribe (sounds to
    texts, by Whisper's encoder and decoder).
    Names, sizes and types come from the model, all else from its metadata and from files that exporters write beside
    it: tokenizer.json, config.json, generation_config.json, preprocessor_config.json and others. The pipeline is
    checked on one input before it is written.
    """
    from nndeploy.starters.written import write_pipeline

    made = write_pipeline(kind, [Path(model) for model in models], output, language=language)
    effect_is_made()
    if as_json:
        print_json({"pipeline": str(output), "inputs": made})
        return
    print_line(f"wrote {output}; of one input it makes {', '.join(f'{name} {kind}' for name, kind in made.items())}")
    print_line("its first lines say how to go on")
