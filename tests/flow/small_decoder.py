# SPDX-License-Identifier: Apache-2.0
"""A small decoder of random weights, as exporters write Qwen's, in a bundle that goes from prompts to texts."""

import json
from pathlib import Path

import pytest
from trained_tokenizers import bytes_bpe

from nndeploy.cli.main import run_command

BENCH = Path(__file__).resolve().parents[1] / "bench"
PROMPT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)
PIPELINE = """
[source]
kind = "lines"
[[level]]
[[level.pipeline]]
name = "write"
carry = {{ "present.*" = "past_key_values.*" }}
[[level.pipeline.loader]]
steps = [
    {{ use = "chat", template = "tokenizer_config.json", in = ["text"], out = ["asked"] }},
    {{ use = "tokenize", tokenizer = "tokenizer.json", special-tokens = false, in = ["asked"] }},
    {{ use = "prompt", context = 40 }},
]
[level.pipeline.loop]
steps = [
    {{ use = "sample", tokenizer = "tokenizer.json", context = 40, {sample} }},
    {{ use = "next-inputs" }},
]
[[sink]]
kind = "json-lines"
fields = ["text", "end", "tokens"]
"""


def compiled(folder):
    """Puts into a folder the model m.onnx, its texts, its pipeline p.toml and the bundle m.nnd, and returns it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        from decoders import Decoder, write_decoder

    write_decoder(Decoder(2, 32, 48, 4, 2, 400, biases=True, head_size=8), "float32", folder / "m.onnx")
    (folder / "tokenizer.json").write_bytes(bytes_bpe())
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    (folder / "p.toml").write_text(PIPELINE.format(sample="max-tokens = 12"))
    command = ["compile", f"{folder}/m.onnx", "--pipeline", f"{folder}/p.toml", "-o", f"{folder}/m.nnd"]
    assert run_command([*command, "--backends", "native", "--objective", "priority"]) == 0
    return folder
