# SPDX-License-Identifier: Apache-2.0
"""Small changes of production code that a test should notice: a seeded choice over all rooms, of Python and C."""

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PYTHON = ("nndeploy", "backends")
_C = "backends/nndeploy_kernels/c"
_COMPARED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
_COMPUTED: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.Mod: ("%", "+"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"), ast.LShift: ("<<", ">>"),
}  # fmt: skip
_CALLED = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_BETWEEN = r"(?<=[\w)\]]) %s (?=[\w(])"
"""An operator between two operands."""
_IN_C = [
    (re.compile(pattern), to)
    for pattern, to in (
        (_BETWEEN % "<", " <= "), (r" <= ", " < "), (_BETWEEN % ">", " >= "), (r" >= ", " > "),
        (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
        (_BETWEEN % r"\+", " - "), (_BETWEEN % "-", " + "), (_BETWEEN % r"\*", " + "), (_BETWEEN % "/", " * "),
        (r" \+= ", " -= "), (r"\b1\b(?!\.)", "2"), (r"\b0\b(?!\.)", "1"),
        (r"\bmin_of\(", "max_of("), (r"\bif \(!", "if (!!"),
    )
]  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A source of the tree, the characters of it that are replaced, and by what."""

    path: str
    begin: int
    end: int
    text: str

    def applied_to(self, source: str) -> str:
        return source[: self.begin] + self.text + source[self.end :]

    def shown(self, source: str) -> str:
        line = source.count("\n", 0, self.begin) + 1
        before = source.splitlines()[line - 1].strip()
        after = self.applied_to(source).splitlines()[line - 1].strip()
        return f"{self.path}:{line}: {before}  ->  {after}"


def mutants_of(root: Path, count: int, seed: int, under: str = "") -> list[Mutant]:
    """Returns changes in files below `under`, spread over lines of code: the same for the same sources and seed."""
    chance = random.Random(seed)  # noqa: S311
    every: list[Mutant] = []
    for path in _sources(root):
        name = path.relative_to(root).as_posix()
        if name.startswith(under):
            text = path.read_text(encoding="utf-8")
            every += [Mutant(name, *place) for place in (_in_c(text) if path.suffix == ".c" else _in_python(text))]
    return chance.sample(every, min(count, len(every)))


def _sources(root: Path) -> Iterator[Path]:
    for folder in _PYTHON:
        yield from sorted((root / folder).rglob("*.py"))
    yield from sorted((root / _C).rglob("*.c"))


def _in_python(source: str) -> Iterator[tuple[int, int, str]]:
    """Yields (begin, end, text): conditions, computations, numbers, and calls of which only the effect counts."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines = source.splitlines()

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno or 0, node.end_col_offset or 0)

    def between(left: ast.expr, right: ast.expr, pair: tuple[str, str]) -> Iterator[tuple[int, int, str]]:
        begin, end = span(left)[1], span(right)[0]
        at = source.find(pair[0], begin, end)
        if at >= 0:
            yield at, at + len(pair[0]), pair[1]

    for node in _of_code(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARED:
                yield from between(left, right, _COMPARED[type(operator)])
            case ast.BinOp(left=left, op=computed, right=right) if type(computed) in _COMPUTED:
                yield from between(left, right, _COMPUTED[type(computed)])
            case ast.BoolOp(op=joined, values=[left, right, *_]):
                yield from between(left, right, ("and", "or") if isinstance(joined, ast.And) else ("or", "and"))
            case ast.UnaryOp(op=ast.Not()):
                yield span(node)[0], span(node)[0] + len("not "), ""
            case ast.Call(func=ast.Name(id=name)) if name in _CALLED:
                yield *span(node.func), _CALLED[name]
            case ast.Constant(value=bool() as value):
                yield *span(node), str(not value)
            case ast.Constant(value=int() as number):
                yield *span(node), str(number + 1)
            case ast.If(test=test) | ast.IfExp(test=test):
                begin, end = span(test)
                yield begin, end, f"(not ({source[begin:end]}))"
            case ast.Expr(value=ast.Call()) | ast.Raise():
                yield *span(node), "pass"


def _of_code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields nodes that run when the code is used: no annotation, and nothing for types alone."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue  # which raises where a programmer erred
        yield node
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                waiting += [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, ast.AST)]


def _in_c(source: str) -> Iterator[tuple[int, int, str]]:
    """Yields (begin, end, text) in lines of statements: not in comments, directives, or constants of a file."""
    at = 0
    comment = False
    for line in source.splitlines(keepends=True):
        code = line.split("/*", 1)[0].split("//", 1)[0]
        if not comment and line.startswith((" ", "\t")) and not code.lstrip().startswith("#") and '"' not in code:
            for pattern, to in _IN_C:
                for found in pattern.finditer(code):
                    yield at + found.start(), at + found.end(), to
        comment = (comment or "/*" in line) and "*/" not in line.rsplit("/*", 1)[-1]
        at += len(line)
