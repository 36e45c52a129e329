# SPDX-License-Identifier: Apache-2.0
"""Einsum of one, two and more operands against NumPy in float64."""

import numpy as np
import pytest
from native_models import built, dynamic, each_float_level, model_of, reals, run
from nndeploy_native.lowering.table import refusal_of

from nndeploy.graph.einsum import parsed_equation
from nndeploy.values.types import DimRange

EQUATIONS = [
    ("ij,jk->ik", [(5, 17), (17, 33)]),
    ("ij,kj->ki", [(5, 17), (33, 17)]),
    ("ij,jk", [(5, 17), (17, 33)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 5, 8), (2, 3, 7, 8)]),
    ("bqhd,bkhd->bhqk", [(2, 5, 3, 8), (2, 7, 3, 8)]),
    ("bhqk,bkhd->bqhd", [(2, 3, 5, 7), (2, 7, 3, 8)]),
    ("bsd,dhk->bshk", [(2, 5, 12), (12, 3, 4)]),
    ("bshk,hkd->bsd", [(2, 5, 3, 4), (3, 4, 12)]),
    ("bskh,hkd->bsd", [(2, 5, 4, 3), (3, 4, 12)]),
    ("...ij,...jk->...ik", [(3, 1, 5, 6), (2, 6, 7)]),
    ("...i,i...->i...", [(2, 3, 4), (4, 3)]),
    ("i,j->ij", [(5,), (7,)]),
    ("i,i->", [(17,), (17,)]),
    ("i,i->i", [(17,), (17,)]),
    ("ij,j->i", [(5, 17), (17,)]),
    ("ij,ik->jki", [(4, 5), (4, 6)]),
    ("ijk,jl->ikl", [(3, 4, 5), (4, 6)]),
    ("ijk,lj->lki", [(3, 4, 5), (6, 4)]),
    ("abcd,cdef->abef", [(2, 3, 4, 5), (4, 5, 2, 3)]),
    ("abcd,dcef->eafb", [(2, 3, 4, 5), (5, 4, 2, 3)]),
    ("ab,cd->acbd", [(2, 3), (4, 5)]),
    ("ij,jk->k", [(3, 4), (4, 5)]),
    ("ij,jk->", [(3, 4), (4, 5)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ijk->ki", [(3, 4, 5)]),
    ("...ij->...ji", [(2, 3, 4)]),
    ("ii->i", [(7, 7)]),
    ("ii", [(7, 7)]),
    ("iji->ji", [(3, 4, 3)]),
    ("ii,ij->j", [(4, 4), (4, 5)]),
    ("ij,jk,kl->il", [(3, 4), (4, 5), (5, 6)]),
    ("bi,ij,bj->b", [(2, 3), (3, 4), (2, 4)]),
    ("a,b,c,d->dcba", [(2,), (3,), (4,), (5,)]),
    ("nchw,hj,wk->ncjk", [(2, 3, 4, 5), (4, 6), (5, 7)]),
    ("xab,xbc->acx", [(3, 4, 5), (3, 5, 6)]),
    ("Ab,bC->AC", [(3, 4), (4, 5)]),
]


@each_float_level
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(level: str, equation: str, shapes: list[tuple[int, ...]]) -> None:
    """With the last operand given and constant, and the first one."""
    names = [f"x{number}" for number in range(len(shapes))]
    values = {name: reals(*shape, seed=number) for number, (name, shape) in enumerate(zip(names, shapes, strict=True))}
    wanted = np.einsum(equation, *(one.astype(np.float64) for one in values.values()))
    for constant in ("", *({names[0], names[-1]} if len(names) > 1 else ())):
        inputs = ", ".join(
            f"float[{','.join(map(str, values[name].shape))}] {name}" for name in names if name != constant
        )
        text = f"""g ({inputs}) => (float[{",".join(map(str, wanted.shape))}] y) {{
            y = Einsum<equation="{equation}">({", ".join(names)}) }}"""
        model = model_of(text, {constant: values[constant]} if constant else {})
        artifact = built(model)
        found = run(artifact, {name: array for name, array in values.items() if name != constant}, level)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-5, err_msg=f"constant {constant!r}")


@each_float_level
@pytest.mark.parametrize(
    ("equation", "first", "second"),
    [
        ("bqhd,bkhd->bhqk", "n,t,3,8", "n,t,3,8"),
        ("bhqk,bkhd->bqhd", "n,3,t,t", "n,t,3,8"),
        ("bsd,dhk->bshk", "n,t,6", "6,t,n"),
        ("...ij,...jk->...ik", "n,1,t,5", "3,5,t"),
        ("ijk,jl->ikl", "n,t,5", "t,6"),
    ],
)
def test_einsum_of_sizes_that_are_not_fixed(level: str, equation: str, first: str, second: str) -> None:
    ranges = {"n": DimRange(1, 4, 1), "t": DimRange(1, 40, 10)}
    rank = len(parsed_equation(equation, [first.count(",") + 1, second.count(",") + 1]).output)  # type: ignore[union-attr]
    text = f"""g (float[{first}] a, float[{second}] b) => (float[{",".join(f"d{axis}" for axis in range(rank))}] y) {{
        y = Einsum<equation="{equation}">(a, b) }}"""
    artifact = built(dynamic(text, ranges), ranges)
    for n, t in ((1, 1), (3, 17), (2, 40)):
        values = [
            reals(*(int(size) if size.isdigit() else {"n": n, "t": t}[size] for size in shape.split(",")), seed=number)
            for number, shape in enumerate((first, second))
        ]
        found = run(artifact, dict(zip("ab", values, strict=True)), level, threads=2)["y"]
        wanted = np.einsum(equation, *(one.astype(np.float64) for one in values))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-5)


def test_heads_are_read_where_they_lie() -> None:
    text = """g (float[2,9,5,8] q, float[2,7,5,8] k) => (float[2,5,9,7] y) {
        y = Einsum<equation="bqhd,bkhd->bhqk">(q, k) }"""
    assert "view_copy" not in built(model_of(text)).log
    text = """g (float[2,5,9,7] p, float[2,7,5,8] v) => (float[2,9,5,8] y) {
        y = Einsum<equation="bhqk,bkhd->bqhd">(p, v) }"""
    assert "view_copy" not in built(model_of(text)).log


@pytest.mark.parametrize(
    ("text", "ranks", "wanted"),
    [
        ("ij,jk", (2, 2), (("i", "j"), ("j", "k"), ("i", "k"))),
        ("ba", (2,), (("b", "a"), ("a", "b"))),
        ("...i, ...j -> ...ij", (3, 1), (("...1", "...0", "i"), ("j",), ("...1", "...0", "i", "j"))),
        ("i...", (3,), (("i", "...1", "...0"), ("...1", "...0", "i"))),
        ("->", (0,), ((), ())),
    ],
)
def test_equation_is_read_as_onnx_says(text: str, ranks: tuple[int, ...], wanted: tuple[tuple[str, ...], ...]) -> None:
    found = parsed_equation(text, ranks)
    assert found is not None
    assert (*found.operands, found.output) == wanted


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("ij,jk->ik", (2,)), ("ij->ij", (3,)), ("i1->i", (2,)), ("ij->k", (2,)), ("ij->ii", (2,)), ("i..j->i", (3,)),
        ("i......->i", (3,)), ("ij->i->j", (2,)), ("", (1,)),
    ],
)  # fmt: skip
def test_what_is_no_equation(text: str, ranks: tuple[int, ...]) -> None:
    assert parsed_equation(text, ranks) is None


def test_what_is_refused_and_why() -> None:
    model = model_of('g (float[3,4] a) => (float[3] y) { y = Einsum<equation="ii->i">(a) }')
    assert "a diagonal of axes of different sizes: [3, 4]" in refusal_of(model.graph[-1], model, {})
