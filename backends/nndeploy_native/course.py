# SPDX-License-Identifier: Apache-2.0
"""The course of an artifact that is more than one plan: plans, steps of Python and choices (If), as plan.json says.

    course := part*, results         part := plan | step of Python | choice | value without elements | refusal
    choice := condition, course where it is true, course where it is not

Parts run in order and pass values by name. A branch is a course of its own: what it makes is seen by nobody else, and
its results become the outputs of the choice, so that sizes behind it are those of the branch that was taken. A branch
that is refused, alone in its course, is for sizes of the inputs that the artifact was not built for.

Laws: `course_from_json(course_to_json(c)) == c`; every plan stands in a course once, and whatever is read was made
before, of that element and rank. Everything that is read is checked: it comes from a bundle.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from nndeploy.errors import BundleError
from nndeploy_native.plan import (
    COURSE_ELEMENTS,
    DOCUMENT_FILE,
    DTYPES,
    MAX_RANK,
    MAX_SIZE,
    PlanBorder,
    PlanDocument,
    borders_from_data,
    data_of_borders,
    data_of_document,
    document_from_data,
)
from nndeploy_native.python_step import Kind, PythonStep
from nndeploy_native.python_steps import made_step

MAX_DEPTH = 16
"""Choices inside of each other."""


def plan_file(number: int) -> str:
    """Returns the name of the file of one of several plans."""
    return f"plan.{number}.bin"


class Empty(NamedTuple):
    """A value without elements, which no plan makes."""

    name: str
    element: str
    shape: tuple[int, ...]


class Refused(NamedTuple):
    """Why a branch was not built."""

    reason: str


class Choice(NamedTuple):
    """`courses` are those of true and of false; their results are `outputs`, in order."""

    condition: str
    outputs: tuple[str, ...]
    courses: tuple["Course", "Course"]


class Course(NamedTuple):
    """Numbers of plans, steps, choices and values without elements in order; `results` are names of values."""

    parts: tuple["Part", ...]
    results: tuple[str, ...]


Part: TypeAlias = int | PythonStep | Choice | Empty | Refused


class CourseDocument(NamedTuple):
    """What stands in plan.json beside several plans."""

    inputs: tuple[PlanBorder, ...]
    outputs: tuple[PlanBorder, ...]
    plans: tuple[PlanDocument, ...]
    course: Course


def read_beside_plans(course: Course) -> set[str]:
    """Returns what conditions and steps of a course, and of those inside it, read."""
    found = set[str]()
    for part in course.parts:
        if isinstance(part, PythonStep):
            found.update(part.inputs)
        elif isinstance(part, Choice):
            found.add(part.condition)
            found.update(*map(read_beside_plans, part.courses))
    return found


def has_choices(course: Course) -> bool:
    """Whether a course depends on what is computed in it."""
    return any(isinstance(part, Choice) for part in course.parts)


def python_steps(course: Course) -> list[PythonStep]:
    """Returns the steps of a course, and of those inside it, that Python computes."""
    found = list[PythonStep]()
    for part in course.parts:
        if isinstance(part, PythonStep):
            found.append(part)
        elif isinstance(part, Choice):
            found += [step for one in part.courses for step in python_steps(one)]
    return found


def told_python_steps(course: Course) -> list[dict[str, int | str]]:
    """Returns these steps as people are shown them."""
    return [{"kernel": "python", "what": one.operator, "value": one.outputs[0]} for one in python_steps(course)]


def course_to_json(document: CourseDocument) -> bytes:
    """Returns the bytes of plan.json; steps of all plans stand in one list, as of one plan, then those of Python."""
    data = {
        "inputs": data_of_borders(document.inputs),
        "outputs": data_of_borders(document.outputs),
        "plans": [{**data_of_document(plan), "steps": len(plan.steps)} for plan in document.plans],
        "steps": [
            *(dict(step) for plan in document.plans for step in plan.steps),
            *told_python_steps(document.course),
        ],
        "course": _data_of(document.course),
    }
    return json.dumps(data, indent=1, ensure_ascii=False).encode()


def course_from_json(text: bytes) -> CourseDocument:
    """Returns the document.

    Raises:
        BundleError: it is malformed.
    """
    try:
        data = json.loads(text)
        plans, begin = [], 0
        for one in data["plans"]:
            count = one["steps"]
            if type(count) is not int or not 0 <= count <= len(data["steps"]) - begin:
                raise ValueError(f"a plan of {count!r:.40} steps")
            plans.append(document_from_data({**one, "steps": data["steps"][begin : begin + count]}))
            begin += count
        inputs, outputs = (borders_from_data(data[side], COURSE_ELEMENTS) for side in ("inputs", "outputs"))
        document = CourseDocument(inputs, outputs, tuple(plans), _course_from(data["course"], MAX_DEPTH))
        _check(document)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as err:
        raise BundleError(f"a malformed {DOCUMENT_FILE}: {err!s:.200}") from err
    return document


def _data_of(course: Course) -> dict[str, Any]:
    return {"parts": [_data_of_part(part) for part in course.parts], "results": list(course.results)}


def _data_of_part(part: Part) -> object:
    match part:
        case Empty():
            return {"empty": [part.name, part.element, list(part.shape)]}
        case Refused():
            return {"refused": part.reason}
        case PythonStep():
            ends = {"inputs": list(part.inputs), "outputs": list(part.outputs)}
            return {"step": part.operator, **ends, "with": dict(part.attributes)}
        case Choice():
            then, otherwise = map(_data_of, part.courses)
            return {"if": part.condition, "outputs": list(part.outputs), "then": then, "else": otherwise}
    return part


def _course_from(data: Mapping[str, Any], depth: int) -> Course:
    if depth < 0:
        raise ValueError(f"more than {MAX_DEPTH} choices inside of each other")
    return Course(tuple(_part_from(one, depth) for one in data["parts"]), _names_from(data["results"]))


def _part_from(data: Any, depth: int) -> Part:
    if type(data) is int:
        return data
    if "empty" in data:
        name, element, shape = data["empty"]
        sizes = tuple(shape)
        known = all(type(size) is int and size >= 0 for size in sizes) and len(sizes) <= MAX_RANK
        if element not in DTYPES or not known or 0 not in sizes or math.prod(filter(None, sizes)) > MAX_SIZE:
            raise ValueError(f"not a value without elements: {data!r:.80}")
        return Empty(_name_from(name), str(element), sizes)
    if "refused" in data:
        return Refused(_name_from(data["refused"]))
    if "step" in data:
        inputs, outputs = tuple(map(_name_from, data["inputs"])), _names_from(data["outputs"])
        return PythonStep(_name_from(data["step"]), inputs, outputs, dict(data["with"]))
    courses = (_course_from(data["then"], depth - 1), _course_from(data["else"], depth - 1))
    return Choice(_name_from(data["if"]), _names_from(data["outputs"]), courses)


def _names_from(data: Sequence[Any]) -> tuple[str, ...]:
    names = tuple(map(_name_from, data))
    if len(set(names)) != len(names):
        raise ValueError("a name stands twice")
    return names


def _name_from(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError(f"not a name: {data!r:.40}")
    return data


def _check(document: CourseDocument) -> None:
    """Passes a document that keeps the laws.

    Raises:
        ValueError: it does not.
    """
    used: list[int] = []
    known = {one.name: kind_of(one) for one in document.inputs}
    results = _checked(document.course, known, document.plans, used)
    if len(known) != len(document.inputs) or not document.outputs:
        raise ValueError("an input stands twice, or there is no output")
    if document.course.results != tuple(one.name for one in document.outputs):
        raise ValueError("results that are not the outputs")
    if results != [kind_of(one) for one in document.outputs]:
        raise ValueError("outputs of other elements or ranks than the results")
    if sorted(used) != list(range(len(document.plans))):
        raise ValueError("a plan that stands nowhere or twice")


def _checked(course: Course, outer: Mapping[str, Kind], plans: Sequence[PlanDocument], used: list[int]) -> list[Kind]:
    """Returns the kinds of the results of a course which reads what is known."""
    known = dict(outer)
    for part in course.parts:
        made: Mapping[str, Kind]
        match part:
            case Empty():
                made = {part.name: (part.element, len(part.shape))}
            case Choice():
                if known[part.condition][0] != "bool":
                    raise ValueError(f"a condition that is no truth: {part.condition:.40}")
                built = [one for one in part.courses if not _is_refused(one)]
                then, *others = (_checked(one, known, plans, used) for one in built)
                if others not in ([], [then]) or len(then) != len(part.outputs):
                    raise ValueError(f"branches that give other elements or ranks: {part.outputs!r:.80}")
                made = dict(zip(part.outputs, then, strict=True))
            case PythonStep():
                kinds = made_step(part, [known[name] for name in part.inputs]).kinds
                made = dict(zip(part.outputs, kinds, strict=True))
            case Refused():
                raise ValueError("a refusal that does not stand alone in a branch")
            case _:
                if not 0 <= part < len(plans):
                    raise ValueError(f"no plan {part}")
                used.append(part)
                if any(known[one.name] != kind_of(one) for one in plans[part].inputs):
                    raise ValueError(f"plan {part} reads another element or rank")
                made = {one.name: kind_of(one) for one in plans[part].outputs}
        if not made.keys().isdisjoint(known):
            raise ValueError("a value that is made twice")
        known.update(made)
    return [known[name] for name in course.results]


def _is_refused(course: Course) -> bool:
    return len(course.parts) == 1 and isinstance(course.parts[0], Refused) and not course.results


def kind_of(border: PlanBorder) -> Kind:
    """Returns the element and the rank of an input or output."""
    return border.element, len(border.shape)
