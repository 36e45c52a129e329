# SPDX-License-Identifier: Apache-2.0
"""Follows the fields of records through the levels of a pipeline: which are there, which may be, which are needed.

In come the fields of each source and the levels; out come the fields that every record has and those that some have.
Where pipelines take records by condition, share them, or are bound to a source, a field that one of them gives is only
there in the records that went its way. Laws: a step only takes fields that every record has that comes to it; no two
pipelines give one record the same field.

A pipeline is bound by `source`; `when = "has(plate)"` says that every record that comes to it has the field `plate`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nndeploy.errors import DataError, did_you_mean
from nndeploy.stream.description import LevelPlan, PipelinePlan, StagePlan, optional_fields, step_name


def place_of(number: int, plan: PipelinePlan) -> str:
    """Returns what messages call a pipeline of a level."""
    return f"level {number}, pipeline {plan.name!r}"


class FieldFlow:
    """The fields of records, level by level: `always` those that each record of a source has, `known` all.

    Joined records are of no source; `joined` then has the fields that each source gave them.
    """

    def __init__(self, where: str, fields: Mapping[str, Iterable[str]], *, is_joined: bool = False) -> None:
        self._where = where
        self._joined = {name: set(own) for name, own in fields.items()} if is_joined else {}
        every = {name for own in fields.values() for name in own}
        self.always = {"": set(every)} if is_joined else {name: set(own) for name, own in fields.items()}
        self.known = every

    @property
    def certain(self) -> set[str]:
        """The fields that every record has."""
        return set.intersection(*self.always.values())

    def follow_level(self, number: int, level: Sequence[PipelinePlan], how: LevelPlan) -> None:
        """Checks the pipelines of a level; what they give is known behind it."""
        given = {plan.name: self._follow(number, plan) for plan in level}
        for source, fields in self.always.items():
            takers = [plan for plan in level if self._joined or plan.route.source in ("", source)]
            if not takers and how.not_taken == "end":
                raise DataError(
                    f"no pipeline takes the records of the source {source!r}", where=f"{self._where}: level {number}",
                    hint='bind one with source = "...", or let them pass with not-taken = "pass"',
                )  # fmt: skip
            fields |= _certain_of(takers, given, how)
        self.known |= set().union(*given.values())
        if how.until:
            self._check(how.until, self.certain, f"{self._where}: level {number}, until")

    def _follow(self, number: int, plan: PipelinePlan) -> set[str]:
        """Returns the fields that a pipeline gives."""
        where = f"{self._where}: {place_of(number, plan)}"
        known = self._coming_to(number, plan, where)
        if plan.each:
            self._check(plan.each, known, f"{where}, each")
            known.add(plan.part)
        given = self._follow_stages(f"{where}, loader", plan.loaders, known)
        if plan.runner is not None:
            for name, source in (plan.runner.inputs or {}).items():
                self._check(source, known, f"{where}, input {name!r}")
            if plan.runner.session:
                self._check(plan.runner.session, known, f"{where}, session")
            given |= set(plan.runner.outputs.values())
            known |= given
        given |= self._follow_stages(f"{where}, loop", plan.looped, known)
        if plan.loop is not None:
            self._check(plan.loop.until, set(plan.looped[0].gives), f"{where}, loop, until")
        return given | self._follow_stages(f"{where}, post", plan.posts, known)

    def _coming_to(self, number: int, plan: PipelinePlan, where: str) -> set[str]:
        """Returns the fields that every record has that a pipeline takes."""
        route = plan.route
        known = self._of_source(number, route.source, where) if route.source else self.certain
        if route.when is None:
            return known
        for name in sorted(route.when.needs):
            self._check(name, known, f"{where}, when")
        for name in sorted(route.when.mentions - self.known):
            self._check(name, known, f"{where}, when")
        return known | route.when.implies

    def _of_source(self, number: int, source: str, where: str) -> set[str]:
        names = self._joined or self.always
        if source not in names or not source:
            hint = did_you_mean(source, filter(None, names)) or '[[source]] name = "..."'
            raise DataError(f"no source is called {source!r}", where=f"{where}, source", hint=hint)
        if self._joined and number > 1:
            raise DataError(
                "the records of all sources are joined here", where=f"{where}, source", hint="leave source out"
            )
        return set(names[source])

    def _follow_stages(self, where: str, stages: Sequence[StagePlan], known: set[str]) -> set[str]:
        """Returns what different workers give together; it is known behind them."""
        givers: dict[str, int] = {}
        for number, stage in enumerate(stages, 1):
            own, place = set(known), f"{where} {number}" if len(stages) > 1 else where
            for step in stage.steps:
                for name in step.takes:
                    self._check(name, own, f"{place}, step {step_name(step)!r}")
                own |= set(step.gives)
            for name in stage.gives:
                if name in givers:
                    raise DataError(
                        f"the field {name!r} is given by {givers[name]} and by {number}, which work beside each other",
                        where=where, hint=f'rename one: out = ["{name}-{number}"]',
                    )  # fmt: skip
                givers[name] = number
        known.update(givers)
        return set(givers)

    def _check(self, name: str, known: set[str], where: str) -> None:
        if name in known:
            return
        if name in self.known:
            hint = f'take those that do: when = "has({name})", or by source = "..."'
            raise DataError(f"not every record that comes here has the field {name!r}", where=where, hint=hint)
        raise DataError(f"nothing before it gives the field {name!r}", where=where, hint=did_you_mean(name, known))


def _certain_of(takers: Sequence[PipelinePlan], given: Mapping[str, set[str]], how: LevelPlan) -> set[str]:
    """Returns what every record has behind a level that one of the `takers` may take."""
    without_condition = [given[plan.name] for plan in takers if plan.route.when is None]
    if how.queue == "copy" and without_condition:
        return set().union(*without_condition)
    if not takers or (how.not_taken == "pass" and not without_condition):
        return set()
    return set.intersection(*(given[plan.name] for plan in takers))


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a pipeline with how each shares its records out."""

    levels: tuple[tuple[PipelinePlan, ...], ...]
    hows: tuple[LevelPlan, ...]


def kept(where: str, levels: Levels, wanted: Iterable[str]) -> tuple[tuple[PipelinePlan, ...], ...]:
    """Returns the levels with the fields that must go on from each pipeline; all others end there.

    Raises:
        DataError: two pipelines give a record the same field, which somebody needs.
    """
    needed, made = set(wanted), []
    for number, (level, how) in reversed(list(enumerate(zip(levels.levels, levels.hows, strict=True), 1))):
        if how.back_to:
            again = (plan for level in levels.levels[how.back_to - 1 : number] for plan in level)
            needed |= {how.until}.union(*map(_takes, again))
        if how.queue == "copy":
            _check_beside(where, number, level, needed)
        made.append(tuple(replace(plan, keep=tuple(sorted(needed))) for plan in level))
        for plan in level:
            needed |= _takes(plan)
    return tuple(reversed(made))


def _check_beside(where: str, number: int, level: Sequence[PipelinePlan], needed: set[str]) -> None:
    """Refuses two pipelines beside each other that give the same field, where somebody needs it."""
    givers: dict[str, list[PipelinePlan]] = {}
    for plan in level:
        for name in sorted(needed.intersection(plan.gives)):
            for other in givers.setdefault(name, []):
                if plan.route.source and other.route.source not in ("", plan.route.source):
                    continue
                raise DataError(
                    f"the field {name!r} is given by {other.name!r} and {plan.name!r}, which work beside each other",
                    where=f"{where}: level {number}", hint="rename one, with out = [...] or outputs = {...}",
                )  # fmt: skip
            givers[name].append(plan)


def _takes(plan: PipelinePlan) -> set[str]:
    """Returns the fields that a pipeline needs from before it."""
    given = {plan.part}
    taken = {plan.each} - {""} | _taken_by(plan.loaders, given)
    if plan.runner is not None:
        taken |= {*(plan.runner.inputs or {}).values(), plan.runner.session} - given - {""}
        given |= set(plan.runner.outputs.values())
    taken |= _taken_by(plan.looped, given)
    asked = plan.route.when.mentions if plan.route.when is not None else frozenset[str]()
    return taken | _taken_by(plan.posts, given) | asked


def _taken_by(stages: Sequence[StagePlan], given: set[str]) -> set[str]:
    """Returns what stages take or may take that is not among `given`, to which what they give is added."""
    taken: set[str] = set()
    for stage in stages:
        own = set(given)
        for step in stage.steps:
            taken |= {*step.takes, *optional_fields(step)} - own
            own |= set(step.gives)
    given |= {name for stage in stages for name in stage.gives}
    return taken
