# SPDX-License-Identifier: Apache-2.0
"""From a sound to what is said in it: Whisper, as optimum exports its encoder and its decoder with and without a cache.

The decoder without a cache is called once, with all tokens that begin a text but the last: it gives the cache, and the
keys and values of the encoder's output. The one with a cache goes on from there, token by token.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nndeploy.errors import DataError
from nndeploy.starters.embed import token_input
from nndeploy.starters.model_folder import ModelFolder, quoted, whole

RATE_HZ = 16000
"""What Whisper was trained on, where no preprocessor_config.json says something else."""
WHISPER: Mapping[str, int] = MappingProxyType({"bins": 80, "size": 400, "hop": 160, "seconds": 30})
"""Parameters of its features, likewise."""
ENGLISH = "<|en|>"
"""The language of a model of many where generation_config.json names none."""
MOST_TOKENS = 448
"""How many tokens a text has at most where no file says it."""
MAX_SUPPRESSED = 1000
CACHE, PRESENT = "past_key_values.", "present."
"""How names of the cache begin, among inputs and outputs."""


def transcribe(*models: ModelFolder) -> str:
    """Returns the TOML for the three models, in whichever order they come.

    Raises:
        DataError: they are no such models, or nothing says how a text begins.
        MissingInputError: there is no tokenizer.
    """
    encoder, decoder, cached = _roles(models)
    tokenizer = encoder.named(encoder.needed("tokenizer.json", "that of the model"))
    said = encoder.json("generation_config.json")
    begin, dtype = _begin(encoder, said), token_input(decoder).dtype
    (*first, last), (rate_hz, features) = begin.values(), _features(encoder)
    plain, with_cache = (quoted(one.model.with_suffix(".nnd").name) for one in (decoder, cached))
    return f"""\
# Sounds to what is said in them. A longer sound is cut, to `seconds`. The bundles of the decoder stand beside that of
# the encoder.
#   nndeploy compile {decoder.model} -o {decoder.model.with_suffix(".nnd").name}
#   nndeploy compile {cached.model} -o {cached.model.with_suffix(".nnd").name}
#   nndeploy compile {encoder.model} --pipeline {encoder.out} -o transcribe.nnd
#   nndeploy run transcribe.nnd --input recordings/ --output texts.jsonl

[source]
kind = "wav"

[[level]]

[[level.pipeline]]
name = "listen"
outputs = {{ last_hidden_state = "encoder_hidden_states" }}

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "resample", rate = {rate_hz} }},
    {features}
]

[[level]]

[[level.pipeline]]
name = "begin"
model = {plain}

# {", ".join(map(quoted, [*begin][:-1]))}: tokens that begin a text; generation_config.json has other languages.
[[level.pipeline.loader]]
steps = [{{ use = "constant", value = [{first}], dtype = "{dtype}", out = ["input_ids"] }}]

[[level]]

[[level.pipeline]]
name = "write"
model = {with_cache}
inputs = {{ "{CACHE}*" = "{PRESENT}*" }}

# "no timestamps": the last one of them.
[[level.pipeline.loader]]
steps = [
    {{ use = "constant", value = [[{last}]], dtype = "{dtype}", out = ["input_ids"] }},
    {{ use = "prompt" }},
]

[[level.pipeline.loop.steps]]
use = "sample"
tokenizer = {tokenizer}
stop-tokens = {_numbers(said.get("eos_token_id"))}
suppress-tokens = {_numbers(said.get("suppress_tokens"))}
begin-suppress-tokens = {_numbers(said.get("begin_suppress_tokens"))}
max-tokens = {_most_tokens(encoder, said) - len(begin)}

[[level.pipeline.loop.steps]]
use = "next-inputs"

[[sink]]
kind = "json-lines"
fields = ["text", "end"]    # end says why: stop-token or max-tokens
"""


def _roles(models: tuple[ModelFolder, ...]) -> tuple[ModelFolder, ModelFolder, ModelFolder]:
    """Returns the encoder, the decoder without a cache and the one with it.

    Raises:
        DataError: one of them is not there, or the cache of one decoder is not that of the other.
    """
    encoder = _one(models, "an encoder, from input_features to last_hidden_state", _is_encoder)
    decoder = _one(models, "a decoder from encoder_hidden_states to logits and present.*", _is_decoder)
    cached = _one(models, "a decoder that takes past_key_values.* and no use_cache_branch", _is_cached)
    for name in cached.inputs:
        if name.startswith(CACHE) and name.replace(CACHE, PRESENT, 1) not in decoder.outputs:
            told = f"takes {name!r}, but {decoder.model} gives no {name.replace(CACHE, PRESENT, 1)!r}"
            raise DataError(told, where=str(cached.model), hint="take models of one export")
    return encoder, decoder, cached


def _one(models: tuple[ModelFolder, ...], what: str, is_it: Callable[[ModelFolder], bool]) -> ModelFolder:
    found = [one for one in models if is_it(one)]
    if len(found) != 1:
        hint = "encoder_model.onnx, decoder_model.onnx and decoder_with_past_model.onnx of optimum-cli export onnx"
        told = f"one of the models must be {what}; {len(found)} of them are"
        raise DataError(told, where=", ".join(str(one.model) for one in models), hint=hint)
    return found[0]


def _is_encoder(files: ModelFolder) -> bool:
    return "input_features" in files.inputs and "last_hidden_state" in files.outputs


def _is_decoder(files: ModelFolder) -> bool:
    return "encoder_hidden_states" in files.inputs and "logits" in files.outputs and not _has_cache(files)


def _is_cached(files: ModelFolder) -> bool:
    return _has_cache(files) and "logits" in files.outputs and "use_cache_branch" not in files.inputs


def _has_cache(files: ModelFolder) -> bool:
    return any(name.startswith(CACHE) for name in files.inputs)


def _begin(files: ModelFolder, said: Mapping[str, Any]) -> dict[str, int]:
    """Returns the tokens that begin a text, by their names.

    Raises:
        DataError: generation_config.json does not say them.
    """
    languages, tasks = said.get("lang_to_id"), said.get("task_to_id")
    found: dict[str, Any] = {"start": said.get("decoder_start_token_id")}
    if isinstance(languages, dict) and languages:
        named = str(said.get("language"))
        language = next((one for one in (named, f"<|{named}|>", ENGLISH) if one in languages), next(iter(languages)))
        found[language] = languages[language]
    if isinstance(tasks, dict) and "transcribe" in tasks:
        found["transcribe"] = tasks["transcribe"]
    found["no timestamps"] = said.get("no_timestamps_token_id")
    if any(type(number) is not int or number < 0 for number in found.values()):
        told = "generation_config.json does not say with which tokens a text begins"
        hint = "put that of the model beside it, with decoder_start_token_id and no_timestamps_token_id"
        raise DataError(told, where=str(files.model), hint=hint)
    return found


def _most_tokens(files: ModelFolder, said: Mapping[str, Any]) -> int:
    """Returns how many tokens a text has at most, with those that begin it."""
    known = (whole(files.json("config.json").get("max_target_positions")), whole(said.get("max_length")))
    return min((one for one in known if one is not None), default=MOST_TOKENS)


def _features(files: ModelFolder) -> tuple[int, str]:
    """Returns the rate that the model was trained on, and the step that makes features."""
    said = {key: whole(value) for key, value in files.json("preprocessor_config.json").items()}
    sizes = files.inputs["input_features"].shape or ()
    bins = sizes[1] if len(sizes) == 3 and isinstance(sizes[1], int) else said.get("feature_size")
    given = {
        "bins": bins,
        "size": said.get("n_fft"),
        "hop": said.get("hop_length"),
        "seconds": said.get("chunk_length"),
    }
    parameters = ", ".join(f"{key} = {given[key] or default}" for key, default in WHISPER.items())
    return said.get("sampling_rate") or RATE_HZ, f'{{ use = "log-mel", {parameters} }},'


def _numbers(said: object) -> str:
    """Returns the tokens of a file of JSON as TOML: of a list, or a single one."""
    listed = said if isinstance(said, list) else [said]
    return str([one for one in listed if type(one) is int and one >= 0][:MAX_SUPPRESSED])
