# SPDX-License-Identifier: Apache-2.0
"""Engines that write texts, each made inside a child of `interleaved`: greedy tokens behind a prompt.

All get the weights of one ONNX model of `decoders` in their own format, and keep caches of float32. A call writes one
text and appends a line to `record`: seconds to the first token, seconds of a later one, and the most bytes that the
process has held. Seconds are those of the processor on one thread, which other work does not change.
"""

import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, Inputs, Ready

Got = Callable[[int], None]
Writer = Callable[[list[int], int, Got], None]
"""Writes so many tokens behind a prompt, and tells each when it is there."""


def texts(inputs: Inputs, engine: str, model: str, threads: int, record: str) -> Ready:
    """`inputs` are the tokens of a "prompt" and the number of "steps"; `model` is a file or a folder."""
    prompt, steps = [int(one) for one in inputs["prompt"]], int(inputs["steps"])
    writer, note = _OPENERS[engine](model, threads, len(prompt) + steps)
    clock = time.process_time if threads == 1 else time.perf_counter

    def call() -> list[int]:
        tokens, times = list[int](), [clock()]

        def got(token: int) -> None:
            tokens.append(token)
            times.append(clock())

        writer(prompt, steps, got)
        told = {"first": times[1] - times[0], "later": (times[-1] - times[1]) / (steps - 1), "peak": _peak()}
        with Path(record).open("a") as lines:
            lines.write(json.dumps(told) + "\n")
        return tokens

    return Ready(call, lambda tokens: [np.array(tokens)], note)


def _peak() -> int:
    """Returns the most bytes that this program has held; `ru_maxrss` begins with those of the parent."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _nndeploy(model: str, threads: int, most: int) -> tuple[Writer, str]:
    from nndeploy import LoadOptions, __version__, load_bundle

    return partial(_write_by_steps, load_bundle(model, LoadOptions(threads=threads))), __version__


def _write_by_steps(program: Any, prompt: list[int], steps: int, got: Got) -> None:
    caches: dict[str, Array] = {}
    for one in program.inputs:
        if one.name.startswith("past"):
            _, heads, _, size = one.type.shape
            caches[one.name] = np.zeros((1, heads, 0, size), one.type.dtype)
    new, past = prompt, 0
    for _ in range(steps):
        feed = {
            "input_ids": np.array([new]),
            "attention_mask": np.ones((1, past + len(new)), np.int64),
            "position_ids": np.arange(past, past + len(new))[None],
        }
        outputs = program.run({**feed, **caches})
        past += len(new)
        caches = {name: outputs[name.replace("past_key_values", "present")] for name in caches}
        new = [int(outputs["logits"][0, -1].argmax())]
        got(new[0])


def _genai(model: str, threads: int, most: int) -> tuple[Writer, str]:
    """ONNX Runtime GenAI, of a folder that `genai_decoders` wrote."""
    import onnxruntime_genai as genai

    configuration = genai.Config(model)
    told = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
    configuration.overlay(json.dumps({"model": {"decoder": {"session_options": told}}}))
    network = genai.Model(configuration)

    def write(prompt: list[int], steps: int, got: Got) -> None:
        search = genai.GeneratorParams(network)
        search.set_search_options(max_length=most, min_length=most, do_sample=False)
        generator = genai.Generator(network, search)
        generator.append_tokens(np.array(prompt, np.int32))
        for _ in range(steps):
            generator.generate_next_token()
            got(int(generator.get_next_tokens()[0]))

    return write, str(genai.__version__)


def _openvino(model: str, threads: int, most: int) -> tuple[Writer, str]:
    """OpenVINO GenAI, of a folder that `openvino_decoders` wrote; its precisions are said, which default to less."""
    import openvino
    import openvino_genai as genai

    class Streamer(genai.StreamerBase):  # type: ignore[misc]
        def __init__(self, got: Got) -> None:
            super().__init__()
            self._got = got

        def write(self, tokens: int | list[int]) -> Any:
            for token in [tokens] if isinstance(tokens, int) else tokens:
                self._got(token)
            return genai.StreamingStatus.RUNNING

        def end(self) -> None:
            pass

    pipeline = genai.LLMPipeline(
        model, "CPU", INFERENCE_PRECISION_HINT="f32", KV_CACHE_PRECISION="f32", INFERENCE_NUM_THREADS=threads,
        scheduler_config=genai.SchedulerConfig(),  # which keeps nothing of a prompt that comes again
    )  # fmt: skip

    def write(prompt: list[int], steps: int, got: Got) -> None:
        how = genai.GenerationConfig(max_new_tokens=steps, ignore_eos=True, do_sample=False, apply_chat_template=False)
        given = openvino.Tensor(np.array([prompt])), openvino.Tensor(np.ones((1, len(prompt)), np.int64))
        pipeline.generate(genai.TokenizedInputs(*given), how, Streamer(got))

    return write, genai.get_version()


def _llama(model: str, threads: int, most: int) -> tuple[Writer, str]:
    """llama.cpp, of a file that `gguf_decoders` wrote."""
    import llama_cpp

    llama_cpp.llama_backend_init()
    opening = llama_cpp.llama_model_default_params()
    has_amx = " amx_int8 " in Path("/proc/cpuinfo").read_text(encoding="ascii")
    opening.use_extra_bufts = not has_amx  # its products by AMX end the process (0.3.36), and the choice is all or none
    network = llama_cpp.llama_model_load_from_file(model.encode(), opening)
    how = llama_cpp.llama_context_default_params()
    how.n_ctx = how.n_batch = how.n_ubatch = most
    how.n_threads = how.n_threads_batch = threads
    how.type_k = how.type_v = llama_cpp.GGML_TYPE_F32
    context = llama_cpp.llama_init_from_model(network, how)
    count = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(network))

    def write(prompt: list[int], steps: int, got: Got) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        new = prompt
        for _ in range(steps):
            tokens = (llama_cpp.llama_token * len(new))(*new)
            if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(tokens, len(new))):
                raise RuntimeError("llama_decode")
            logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (count,))
            new = [int(logits.argmax())]
            got(new[0])

    return write, f"{llama_cpp.__version__}{', weights not repacked' if has_amx else ''}"


_OPENERS = {"nndeploy": _nndeploy, "onnxruntime-genai": _genai, "openvino-genai": _openvino, "llama.cpp": _llama}
