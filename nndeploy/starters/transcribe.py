# SPDX-License-Identifier: Apache-2.0
"""From a sound to what is said in it: Whisper, as optimum exports its encoder and its decoder.

The decoder is one model, `decoder_model_merged.onnx`, or two: the one without a cache then makes the keys and values of
the encoder's output, and the one with a cache writes.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from nndeploy.errors import DataError, UsageError, did_you_mean
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.tokenizer_file import TokenizerFile
from nndeploy.starters.embed import token_input
from nndeploy.starters.images import label_list
from nndeploy.starters.model_folder import ModelFolder, quoted, whole
from nndeploy.stream.pipeline.bundled_pipeline import MAX_NAMED_BYTES

RATE_HZ = 16000
"""What Whisper was trained on, where no preprocessor_config.json says something else."""
WHISPER: Mapping[str, int] = MappingProxyType({"bins": 80, "size": 400, "hop": 160, "seconds": 30})
"""Parameters of its features, likewise."""
MOST_TOKENS = 448
"""How many tokens a text has at most where no file says it."""
MAX_SUPPRESSED = 1000
_HINT = "encoder_model.onnx and decoder_model_merged.onnx of optimum-cli export onnx"
MERGED = "use_cache_branch"
"""The input of a decoder that is both, without a cache and with one."""
CACHE, PRESENT = "past_key_values.", "present."
"""How names of the cache begin, among inputs and outputs."""


def transcribe(*models: ModelFolder, language: str | None = None) -> str:
    """Returns the TOML for the models, in whichever order they come, and the language that is spoken, as "de".

    Raises:
        UsageError: the model does not know the language.
        DataError: they are no such models, or nothing says how a text begins.
        MissingInputError: there is no tokenizer.
    """
    encoder, plain, decoder = _roles(models)
    path = encoder.needed("tokenizer.json", "that of the model")
    tokenizer = encoder.named(path)
    said = encoder.json("generation_config.json")
    if language is not None:
        said |= {"language": _known(language, said, encoder)}
    (start, begin), dtype = _begin(encoder, said), token_input(decoder).dtype
    rate_hz, features, frames = _features(encoder)
    opened = TokenizerFile(path.name, read_regular(path, MAX_NAMED_BYTES)).opened()
    compiled = [f"{one.model} -o {_bundle(one)}" for one in (plain, decoder) if one is not None]
    commands = "\n".join(f"#   nndeploy compile {one}" for one in compiled)
    times, latest = said["no_timestamps_token_id"] + 1, whole(said.get("max_initial_timestamp_index"))
    return f"""\
# Sounds to what is said in them, and when: window by window, each with the times that the model writes. The bundles of
# the decoder stand beside that of the encoder.
{commands}
#   nndeploy compile {encoder.model} --pipeline {encoder.out} -o transcribe.nnd
#   nndeploy run transcribe.nnd --input recordings/ --output texts.jsonl

[source]
kind = "wav"

[[level]]

[[level.pipeline]]
name = "hear"
runners = 0

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "resample", rate = {rate_hz} }},
    {features}
    {{ use = "constant", value = [{start}], dtype = "{dtype}", out = ["start"] }},
]

[[level]]

[[level.pipeline]]
name = "listen"
outputs = {{ last_hidden_state = "encoder_hidden_states" }}

[[level.pipeline.loader]]
steps = [
    {{ use = "next-window", frames = {frames} }},
    {{ use = "prompt", in = ["start"] }},
]
{_begin_level(plain)}
# Goes back to "listen" until all of the sound was heard.
[[level]]
back-to = "listen"
until = "done"

[[level.pipeline]]
name = "write"
model = {quoted(_bundle(decoder))}
carry = {{ "{PRESENT}*" = "{CACHE}*" }}
{f'inputs = {{ "{CACHE}*" = "{PRESENT}*" }}{chr(10)}' if plain else ""}
# `begin`: the language, of which leave one if you know it (`nndeploy new transcribe --language`), and the task.
[[level.pipeline.loop.steps]]
use = "sample"
tokenizer = {tokenizer}
begin = [{", ".join(_choices(one, opened) for one in begin)}]
timestamps = {times}
{f"max-initial-timestamp = {latest}{chr(10)}" if latest else ""}stop-tokens = {_numbers(said.get("eos_token_id"))}
suppress-tokens = {_numbers(said.get("suppress_tokens"))}
begin-suppress-tokens = {_numbers(said.get("begin_suppress_tokens"))}
max-tokens = {_most_tokens(encoder, said, 1 + len(begin))}

[[level.pipeline.loop.steps]]
use = "next-inputs"

[[level.pipeline.post]]
steps = [{{ use = "spoken-segments", tokenizer = {tokenizer}, timestamps = {times}, frames = {frames} }}]

[[sink]]
kind = "json-lines"
fields = ["text", "segments", "texts"]    # all of it, and of each segment begin and end in seconds, and its text
"""


def _begin_level(plain: ModelFolder | None) -> str:
    """Returns the level of a decoder that makes the keys and values of what the encoder gave, "" without one."""
    if plain is None:
        return ""
    return f"""
# Of its outputs the keys and values of what was heard are wanted alone.
[[level]]

[[level.pipeline]]
name = "begin"
model = {quoted(_bundle(plain))}
outputs = {{ logits = "unused" }}
"""


def _bundle(files: ModelFolder) -> str:
    return files.model.with_suffix(".nnd").name


def _roles(models: tuple[ModelFolder, ...]) -> tuple[ModelFolder, ModelFolder | None, ModelFolder]:
    """Returns the encoder, the decoder without a cache, None where one decoder is both, and the one with a cache.

    Raises:
        DataError: one of them is not there, or the cache of one decoder is not that of the other.
    """
    encoder = _one(models, "an encoder, from input_features to last_hidden_state", _is_encoder)
    decoder = _one(models, "a decoder from past_key_values.* to logits", _is_cached)
    is_merged = MERGED in decoder.inputs
    if len(models) != 2 + (not is_merged):
        told = f"{decoder.model} {'needs no' if is_merged else 'needs a'} decoder without past_key_values.* beside it"
        raise DataError(told, where=", ".join(str(one.model) for one in models), hint=_HINT)
    if is_merged:
        return encoder, None, decoder
    plain = _one(models, "a decoder from encoder_hidden_states to logits and present.*", _is_plain)
    for name in decoder.inputs:
        if name.startswith(CACHE) and name.replace(CACHE, PRESENT, 1) not in plain.outputs:
            told = f"takes {name!r}, but {plain.model} gives no {name.replace(CACHE, PRESENT, 1)!r}"
            raise DataError(told, where=str(decoder.model), hint="take models of one export")
    return encoder, plain, decoder


def _one(models: tuple[ModelFolder, ...], what: str, is_it: Callable[[ModelFolder], bool]) -> ModelFolder:
    found = [one for one in models if is_it(one)]
    if len(found) != 1:
        told = f"one of the models must be {what}; {len(found)} of them are"
        raise DataError(told, where=", ".join(str(one.model) for one in models), hint=_HINT)
    return found[0]


def _is_encoder(files: ModelFolder) -> bool:
    return "input_features" in files.inputs and "last_hidden_state" in files.outputs


def _is_plain(files: ModelFolder) -> bool:
    return "encoder_hidden_states" in files.inputs and "logits" in files.outputs and not _has_cache(files)


def _is_cached(files: ModelFolder) -> bool:
    return _has_cache(files) and "logits" in files.outputs


def _has_cache(files: ModelFolder) -> bool:
    return any(name.startswith(CACHE) for name in files.inputs)


def _known(language: str, said: Mapping[str, Any], files: ModelFolder) -> str:
    """Returns a language as the model has it.

    Raises:
        UsageError: it has none of that name.
    """
    listed = said.get("lang_to_id")
    known = [one.strip("<|>") for one in listed] if isinstance(listed, dict) else []
    if language.strip("<|>").lower() not in known:
        hint = did_you_mean(language, known) or f"it knows {', '.join(known) or 'none by name'}"
        raise UsageError(f"the model knows no language {language!r:.40}", where=str(files.model), hint=hint)
    return language.strip("<|>").lower()


def _begin(files: ModelFolder, said: Mapping[str, Any]) -> tuple[int, list[dict[str, int]]]:
    """Returns the token that begins a text, and of each behind it those among which is chosen, by their names.

    Raises:
        DataError: generation_config.json does not say them.
    """
    languages, tasks = said.get("lang_to_id"), said.get("task_to_id")
    start, found = said.get("decoder_start_token_id"), list[dict[str, Any]]()
    if isinstance(languages, dict) and languages:
        named = str(said.get("language"))
        found.append({one: languages[one] for one in (named, f"<|{named}|>") if one in languages} or languages)
    if isinstance(tasks, dict) and "transcribe" in tasks:
        found.append({"<|transcribe|>": tasks["transcribe"]})
    numbers = [start, said.get("no_timestamps_token_id"), *(one for several in found for one in several.values())]
    if any(type(number) is not int or number < 0 for number in numbers):
        told = "generation_config.json does not say with which tokens a text begins"
        hint = "put that of the model beside it, with decoder_start_token_id and no_timestamps_token_id"
        raise DataError(told, where=str(files.model), hint=hint)
    return int(numbers[0]), found


def _most_tokens(files: ModelFolder, said: Mapping[str, Any], begun: int) -> int:
    """Returns how many tokens the text of a window has at most, behind so many that begin it."""
    most, length = whole(files.json("config.json").get("max_target_positions")), whole(said.get("max_length"))
    return max(1, min((most or MOST_TOKENS) - begun, (length or MOST_TOKENS) - 1))


def _choices(tokens: Mapping[str, int], tokenizer: Any) -> str:
    """Returns tokens as TOML: by their names, if these are the tokenizer's, else by number."""
    if all(tokenizer.token_to_id(name) == number for name, number in tokens.items()):
        return label_list([*tokens])
    return str([*tokens.values()])


def _features(files: ModelFolder) -> tuple[int, str, int]:
    """Returns the rate that the model was trained on, the step that makes features, and the frames of a window."""
    said = {key: whole(value) for key, value in files.json("preprocessor_config.json").items()}
    sizes = files.inputs["input_features"].shape or ()
    bins = sizes[1] if len(sizes) == 3 and isinstance(sizes[1], int) else said.get("feature_size")
    given = {
        "bins": bins,
        "size": said.get("n_fft"),
        "hop": said.get("hop_length"),
        "seconds": said.get("chunk_length"),
    }
    used = {key: given[key] or default for key, default in WHISPER.items()}
    rate_hz = said.get("sampling_rate") or RATE_HZ
    parameters = ", ".join(f"{key} = {number}" for key, number in used.items())
    step = f'{{ use = "log-mel", {parameters}, whole = true, out = ["features"] }},'
    return rate_hz, step, used["seconds"] * rate_hz // used["hop"]


def _numbers(said: object) -> list[int]:
    """Returns the tokens of a file of JSON: of a list, or a single one."""
    listed = said if isinstance(said, list) else [said]
    return [one for one in listed if type(one) is int and one >= 0][:MAX_SUPPRESSED]
