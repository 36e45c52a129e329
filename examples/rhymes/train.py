# SPDX-License-Identifier: Apache-2.0
"""Trains the reciter of nursery rhymes and writes `rhymes.onnx` and `talks.jsonl`.

What comes in: `rhymes.txt`, a dozen rhymes that are in the public domain, and the characters that `rhymes.toml` names.
What goes out: a transformer of two layers that goes on from any line of a rhyme, character by character, and requests
of three talks, mixed. A call takes one token or several. Its state is the cache of keys and values, one place longer
after each token, and the token that it gives: a request whose token is `GO_ON` takes that one, so nobody has to feed it
back.

The law: nothing is written unless every rhyme is recited to its end from its first words alone. Same seed, same library
versions: same bytes.

Nothing else in the project needs torch; install it apart from it and run this file:

    python3 -m venv build/train
    build/train/bin/pip install torch==2.13.0 onnx
    build/train/bin/python examples/rhymes/train.py
"""

import json
import tomllib
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import torch
from onnx import numpy_helper
from torch import nn

HERE = Path(__file__).resolve().parent
SEED = 2026
NUM_STEPS = 1500
BATCH_SIZE = 16
PEAK_LEARNING_RATE = 1e-2
OPENING = 16  # characters of a rhyme that must suffice to recite it
END = 0  # the token behind the last character of a rhyme, and what a talk without any token begins with
GO_ON = -1
TALKS = {"star": "Twinkle", "sheep": "Baa", "hill": "Jack and"}

WIDTH, HEADS, LAYERS = 32, 2, 2
PER_HEAD = WIDTH // HEADS
LOWEST_FREQUENCY = 1e-2  # of the rotations that tell positions apart, in radians a position; the highest is 1
EPSILON = 1e-5
OPSET, IR_VERSION = 17, 8


class Layer(nn.Module):
    """Attention over all tokens so far and two products of each token, both added to what comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, EPSILON), nn.LayerNorm(WIDTH, EPSILON)
        self.joint = nn.Linear(WIDTH, 3 * WIDTH, bias=False)  # queries, keys and values of all heads
        self.attended = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Takes and returns (N, time, WIDTH)."""
        split = self.joint(self.norm1(x)).unflatten(-1, (3, HEADS, PER_HEAD)).permute(2, 0, 3, 1, 4)
        queries, keys, values = rotated(split[0]), rotated(split[1]), split[2]
        attended = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.attended(attended.transpose(1, 2).flatten(2))
        return x + self.narrow(torch.relu(self.wide(self.norm2(x))))


class Reciter(nn.Module):
    """Logits of the token behind each token: (N, time, num_tokens) of (N, time)."""

    def __init__(self, num_tokens: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_tokens, WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.embedding.weight.T


def frequencies() -> np.ndarray:
    """Returns the angle of each pair of columns for one position, (PER_HEAD / 2,)."""
    return np.geomspace(1, LOWEST_FREQUENCY, PER_HEAD // 2).astype(np.float32)


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Returns (..., time, PER_HEAD), pairs of columns turned by position x frequency: scores depend on distances."""
    angles = torch.arange(x.shape[-2])[:, None] * torch.from_numpy(frequencies())
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def main() -> None:
    """Trains, recites, writes; stops before writing when a rhyme is not recited."""
    torch.manual_seed(SEED)
    torch.set_num_threads(1)  # sums in the same order
    torch.use_deterministic_algorithms(True)
    rhymes = [rhyme.strip("\n") + "\n" for rhyme in (HERE / "rhymes.txt").read_text().split("\n\n")]
    labels = labels_of_pipeline()
    numbers = {label: number for number, label in enumerate(labels)}
    coded = [[numbers[character] for character in rhyme] for rhyme in rhymes]
    reciter = trained_reciter(coded, numbers["\n"], len(labels))
    wrong = [rhyme for rhyme, tokens in zip(rhymes, coded, strict=True) if recited(reciter, tokens[:OPENING]) != tokens]
    if wrong:
        raise SystemExit(f"{len(wrong)} rhymes are not recited, the first is\n{wrong[0]}\nnothing was written")
    onnx.save(onnx_from_reciter(reciter), HERE / "rhymes.onnx")
    prompts = {talk: [numbers[character] for character in text] for talk, text in TALKS.items()}
    lengths = {talk: len(recited(reciter, prompt)) for talk, prompt in prompts.items()}
    write_talks(prompts, lengths)


def labels_of_pipeline() -> list[str]:
    """Returns the text of each token."""
    pipeline = tomllib.loads((HERE / "rhymes.toml").read_text())
    (step,) = pipeline["level"][0]["pipeline"][0]["post"][0]["steps"]
    return step["labels"]


def trained_reciter(rhymes: list[list[int]], line_end: int, num_tokens: int) -> Reciter:
    """Returns a network that learned every rhyme from the beginning of any of its lines to its end."""
    texts = []
    for rhyme in rhymes:
        begins = [0, *(place + 1 for place, token in enumerate(rhyme[:-1]) if token == line_end)]
        texts += [torch.tensor([*before, *rhyme[begin:], END]) for begin in begins for before in ([], [END])]
    texts = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=END)
    reciter = Reciter(num_tokens)
    optimizer = torch.optim.AdamW(reciter.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, total_steps=NUM_STEPS)
    for step in range(NUM_STEPS):
        batch = texts[torch.randint(len(texts), (BATCH_SIZE,))]
        logits = reciter(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reciter.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.4f}", flush=True)
    return reciter.eval()


@torch.no_grad()
def recited(reciter: Reciter, prompt: list[int], most: int = 400) -> list[int]:
    """Returns the prompt and what the network says behind it, up to the end or `most` tokens."""
    tokens = list(prompt)
    while len(tokens) < most:
        following = int(reciter(torch.tensor([tokens]))[0, -1].argmax())
        if following == END:
            break
        tokens.append(following)
    return tokens


# Names that end in `#` are those of a layer: x0 goes into the first, x1 comes out of it. H heads of D columns each:
# queries, keys and values of all heads come out of one product, (time, 3 H D), and are then (3 H, time, D).
FIRST_NODES = """
    goes_on = Less(token, zero)
    taken = Where(goes_on, predicted, token)
    x0 = Gather(embedding_weight, taken)
    num_past = Shape <start = 1, end = 2> (values0)
    num_new = Shape(token)
    num_all = Add(num_past, num_new)
    begin = Squeeze(num_past)
    end = Squeeze(num_all)
    new_places = Range(begin, end, step)
    new_column = Unsqueeze(new_places, axis_1)
    all_places = Range(first, end, step)
    is_later = Greater(all_places, new_column)
    mask = Where(is_later, hidden, shown)
    positions = Cast <to = 1> (new_column)
    angles = Mul(positions, frequencies)
    cos = Cos(angles)
    sin = Sin(angles)
"""
LAYER_NODES = """
    rows# = LayerNormalization <epsilon = EPSILON> (x#, layers_#_norm1_weight, layers_#_norm1_bias)
    joint# = MatMul(rows#, layers_#_joint_weight)
    by_head# = Reshape(joint#, split_shape)
    turned# = Transpose <perm = [1, 0, 2]> (by_head#)
    unrotated#, new_values# = Split <axis = 0> (turned#, split_sizes)
    left#, right# = Split <axis = 2> (unrotated#)
    left_cos# = Mul(left#, cos)
    left_sin# = Mul(left#, sin)
    right_cos# = Mul(right#, cos)
    right_sin# = Mul(right#, sin)
    rotated_left# = Sub(left_cos#, right_sin#)
    rotated_right# = Add(left_sin#, right_cos#)
    rotated# = Concat <axis = 2> (rotated_left#, rotated_right#)
    queries#, new_keys# = Split <axis = 0> (rotated#)
    keys#_after = Concat <axis = 1> (keys#, new_keys#)
    values#_after = Concat <axis = 1> (values#, new_values#)
    columns# = Transpose <perm = [0, 2, 1]> (keys#_after)
    products# = MatMul(queries#, columns#)
    scores# = Mul(products#, scale)
    masked# = Add(scores#, mask)
    weights# = Softmax <axis = -1> (masked#)
    found# = MatMul(weights#, values#_after)
    found_rows# = Transpose <perm = [1, 0, 2]> (found#)
    joined# = Reshape(found_rows#, joined_shape)
    attended# = MatMul(joined#, layers_#_attended_weight)
    between# = Add(x#, attended#)
    between_rows# = LayerNormalization <epsilon = EPSILON> (between#, layers_#_norm2_weight, layers_#_norm2_bias)
    wide_product# = MatMul(between_rows#, layers_#_wide_weight)
    wide# = Add(wide_product#, layers_#_wide_bias)
    active# = Relu(wide#)
    narrow_product# = MatMul(active#, layers_#_narrow_weight)
    narrow# = Add(narrow_product#, layers_#_narrow_bias)
    x{#+1} = Add(between#, narrow#)
"""
LAST_NODES = """
    last = Gather(x#, last_place)
    last_rows = LayerNormalization <epsilon = EPSILON> (last, norm_weight, norm_bias)
    logits = Gemm <transB = 1> (last_rows, embedding_weight)
    next = ArgMax <axis = 1, keepdims = 0> (logits)
"""


def onnx_from_reciter(reciter: Reciter) -> onnx.ModelProto:
    """Returns the network with its caches: the tokens of one talk in, the token behind them out; checked."""
    caches = [f"{kind}{layer}" for layer in range(LAYERS) for kind in ("keys", "values")]
    before = ", ".join(f"float[{HEADS}, past, {PER_HEAD}] {cache}" for cache in caches)
    after = ", ".join(f"float[{HEADS}, all, {PER_HEAD}] {cache}_after" for cache in caches)
    layers = [LAYER_NODES.replace("{#+1}", str(layer + 1)).replace("#", str(layer)) for layer in range(LAYERS)]
    nodes = "".join([FIRST_NODES, *layers, LAST_NODES.replace("#", str(LAYERS))]).replace("EPSILON", str(EPSILON))
    model = onnx.parser.parse_model(
        f"""<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}], producer_name: "examples/rhymes/train.py">
        rhymes (int64[time] token, int64[1] predicted, {before})
            => (int64[time] taken, int64[1] next, float[1, {reciter.embedding.num_embeddings}] logits, {after})
        {{ {nodes} }}"""
    )
    for output in model.graph.output[3:]:
        output.type.tensor_type.shape.dim[1].dim_param = "past + time"
    for node in model.graph.node:
        node.name = f"{node.op_type}_{node.output[0]}"
    constants = {name.replace(".", "_"): array for name, array in weights_of(reciter).items()} | NUMBERS
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    onnx.checker.check_model(model, full_check=True)
    return model


NUMBERS = {
    **{name: np.int64(value) for name, value in {"zero": 0, "first": 0, "step": 1}.items()},
    **{name: np.int64([value]) for name, value in {"axis_1": 1, "last_place": -1}.items()},
    "split_shape": np.int64([-1, 3 * HEADS, PER_HEAD]),
    "split_sizes": np.int64([2 * HEADS, HEADS]),
    "joined_shape": np.int64([-1, WIDTH]),
    "frequencies": frequencies(),
    "scale": np.float32(PER_HEAD**-0.5),
    "hidden": np.float32(-1e9),
    "shown": np.float32(0),
}


def weights_of(reciter: Reciter) -> dict[str, np.ndarray]:
    """Returns the parameters; those of products as their right operand."""
    arrays = {name: tensor.numpy() for name, tensor in reciter.state_dict().items()}
    is_product = {f"{name}.weight" for name, module in reciter.named_modules() if isinstance(module, nn.Linear)}
    return {name: np.ascontiguousarray(array.T) if name in is_product else array for name, array in arrays.items()}


def write_talks(prompts: dict[str, list[int]], lengths: dict[str, int]) -> None:
    """Writes a request with the prompt of each talk, then as many of one token each as its rhyme takes, all mixed."""
    left = np.repeat(list(prompts), [lengths[talk] - len(prompt) for talk, prompt in prompts.items()])
    mixed = np.random.default_rng(SEED).permutation(left).tolist()
    requests = [*prompts.items(), *((talk, [GO_ON]) for talk in mixed)]
    lines = [json.dumps({"talk": talk, "token": tokens}) + "\n" for talk, tokens in requests]
    (HERE / "talks.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
