# SPDX-License-Identifier: Apache-2.0
"""Jinja's sandbox for templates that anybody may have written: what they compute has an end, and a largest size.

    {% for ... %}, a call, a macro     count, MAX_STEPS of them in one text
    + * ** ~ {% set %} calls           give at most MAX_TEXT characters or elements, or numbers of that many bits

Law: a template that ends within these bounds writes what Jinja's sandbox writes.
"""

from collections.abc import Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import Any, TypeVar

from jinja2 import Template, TemplateError, meta, nodes
from jinja2.ext import loopcontrols
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from nndeploy.errors import InputError

T = TypeVar("T")
MAX_TEXT = 1 << 24
"""Characters of a text, elements of a list, bits of a number."""
MAX_STEPS = 100_000
"""Rounds of loops and calls, as `range` of the sandbox has at most; a message takes some ten. A second at most."""
_steps: ContextVar[int] = ContextVar("steps", default=0)


def bounded_template(source: str, functions: dict[str, Any], filters: dict[str, Any], reads: str) -> Template:
    """Returns a template that may call `functions`, as well as what Jinja has, and that reads the value `reads`.

    Raises:
        jinja2.TemplateError, RecursionError: it is none.
    """
    sandbox = _Sandbox(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    sandbox.filters |= {**filters, _COUNTED: _counted, _SIZED: _sized}
    sandbox.globals |= functions
    tree = sandbox.parse(source)
    if reads not in meta.find_undeclared_variables(tree):
        raise TemplateError(f"it does not read {reads!r}, so it writes the same whatever is said")
    tree = _Bounds(sandbox).visit(tree)
    return sandbox.template_class.from_code(sandbox, sandbox.compile(tree), sandbox.make_globals(None))


def generated(template: Template, values: dict[str, Any]) -> Iterator[str]:
    """Yields the parts of what a template writes.

    Raises:
        InputError: it computes or writes too much.
    """
    _steps.set(0)
    length = 0
    for part in template.generate(values):
        length += len(part)
        if length > MAX_TEXT:
            raise InputError(f"the template writes more than {MAX_TEXT} characters")
        yield part


_COUNTED, _SIZED = "counted by nndeploy", "sized by nndeploy"  # no name that a template can write


class _Sandbox(ImmutableSandboxedEnvironment):
    """Counts calls, and looks how large results become."""

    intercepted_binops = frozenset(("+", "*", "**"))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as Jinja has it
        _step()
        if isinstance(__obj, LoopContext):  # the next level of a recursive loop
            args = (_counted(args[0]), *args[1:])
        return _sized(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            _check(left.bit_length() * right)
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, Sized) and isinstance(times, int):
                    _check(len(many) * times)
        return _sized(super().call_binop(context, operator, left, right))


class _Bounds(NodeTransformer):
    """Lets loops count their rounds, and `~` and blocks of `set` look how long a text becomes."""

    def __init__(self, sandbox: _Sandbox) -> None:
        self._sandbox = sandbox

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - as Jinja names it
        node.iter = self._filtered(node.iter, _COUNTED, node)
        return self.generic_visit(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        return self._filtered(self.generic_visit(node), _SIZED, node)

    def visit_AssignBlock(self, node: nodes.AssignBlock) -> nodes.Node:  # noqa: N802
        node.filter = self._filtered(node.filter, _SIZED, node)
        return self.generic_visit(node)

    def _filtered(self, value: Any, name: str, place: nodes.Node) -> nodes.Filter:
        return nodes.Filter(value, name, [], [], None, None, lineno=place.lineno, environment=self._sandbox)


def _step() -> None:
    steps = _steps.get() + 1
    if steps > MAX_STEPS:
        raise InputError(f"the template goes through more than {MAX_STEPS} rounds of loops and calls")
    _steps.set(steps)


def _counted(values: Iterable[T]) -> Iterator[T]:
    for value in values:
        _step()
        yield value


def _sized(value: T) -> T:
    if isinstance(value, Sized):
        _check(len(value))
    elif isinstance(value, int):
        _check(value.bit_length())
    return value


def _check(size: int) -> None:
    if size > MAX_TEXT:
        raise InputError(f"the template computes a value of more than {MAX_TEXT} characters, elements or bits")
