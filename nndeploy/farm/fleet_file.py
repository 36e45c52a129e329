# SPDX-License-Identifier: Apache-2.0
"""Reads a fleet file: models x boxes x variants, and what is asked of all of them; docs/guide/batch.md has the keys.

All that can be wrong in the file itself is found here, before anything is looked for or run, as one line that names
the file and the place in it. What the file names - models, boxes, samples - is looked for by `expand`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from nndeploy.build_cache.remote_address import PUSH, remote_address
from nndeploy.compiler.option_texts import memory_in
from nndeploy.errors import DataError, NndeployError, UsageError, did_you_mean
from nndeploy.farm.cluster.scheduler_address import parted
from nndeploy.farm.fleet import (
    Axis,
    Cluster,
    Fleet,
    Match,
    ModelFiles,
    Override,
    Publish,
    Settings,
    keys_of,
)
from nndeploy.farm.job import HOST, why_no_name
from nndeploy.farm.job_options import given_by, is_option
from nndeploy.farm.reports.gates import Gates
from nndeploy.farm.reports.write_reports import ReportFiles
from nndeploy.farm.rooted_path import rooted_path
from nndeploy.farm.template import PLACEHOLDERS, check_template
from nndeploy.files.toml_file import toml_from_file
from nndeploy.files.toml_table import TomlTable
from nndeploy.options.described import options_from
from nndeploy.options.plain_value import plain_values
from nndeploy.options.texts import seconds_in

MAX_AT_ONCE = 4096
_OUTPUT = "dist/{model}/{target}.nnd"
_OUTPUT_OF_VARIANTS = "dist/{model}/{target}/{variant}.nnd"
_SETTINGS = ("options", "timeout", "time_limit", "memory", "sandbox", "needs")


def fleet_from_toml(path: Path) -> Fleet:
    """Returns what a fleet file says.

    Raises:
        MissingInputError: there is no such file.
        DataError: it is not TOML, or a key is unknown, missing, of the wrong type or without a meaning.
    """
    where, folder = str(path), path.absolute().parent
    return _Reader(where, folder).fleet(TomlTable(toml_from_file(path, "fleet file"), where))


@contextmanager
def _as_data(where: str) -> Iterator[None]:
    """What a text of an option means is said for the command line; in a file it is the file that is wrong."""
    try:
        yield
    except UsageError as err:
        raise DataError(err.what, where=where, hint=err.hint) from err
    except NndeployError as err:
        raise err.about(where) from err


class _Reader:
    """Makes parts of a fleet of tables."""

    def __init__(self, where: str, folder: Path) -> None:
        self._where = where
        self._folder = folder

    def fleet(self, top: TomlTable) -> Fleet:
        farm, targets = _table(top, "farm"), _table(top, "targets")
        axes = self._axes(_table(top, "matrix"))
        keys = keys_of(axes)
        settings = self._settings(farm, has_options=False)
        made = Fleet(
            where=self._where,
            folder=self._folder,
            output=self._template(farm, "output", _OUTPUT_OF_VARIANTS if axes else _OUTPUT),
            models=tuple(self._models(table) for table in top.tables("models", "models")),
            target_globs=self._globs(targets, "files"),
            target_names=self._target_names(targets),
            settings=Settings(self._options(top, "options")).then(settings),
            axes=axes,
            excludes=tuple(self._match(table, keys) for table in top.tables("exclude", "exclude")),
            overrides=tuple(self._override(table, keys) for table in top.tables("override", "override")),
            jobs=_jobs(farm),
            cache=self._caches(farm),
            push=_choice(farm, "push", PUSH),
            cache_ca=self._file(farm, "cache_ca"),
            cluster=self._cluster(top.table("cluster")),
            publish=self._publish(top.table("publish")),
            reports=self._reports(_table(top, "report")),
            gates=_gates(_table(top, "gates")),
        )
        for table in (farm, top):
            table.done()
        if not made.models:
            raise DataError("names no models", where=self._where, hint='[[models]] with files = ["models/**/*.onnx"]')
        return made

    def _models(self, table: TomlTable) -> ModelFiles:
        made = ModelFiles(table.where, self._globs(table, "files"), self._settings(table))
        table.done()
        if all(glob.startswith("!") for glob in made.globs):
            raise DataError("files names no models", where=table.where, hint='files = ["models/**/*.onnx"]')
        return made

    def _globs(self, table: TomlTable, key: str) -> tuple[str, ...]:
        globs = table.texts(key, may_repeat=True)
        with _as_data(table.where):
            for glob in globs:
                rooted_path(self._folder, glob.removeprefix("!"))
        return globs

    def _target_names(self, table: TomlTable) -> tuple[str, ...]:
        names, globs = table.texts("names"), self._globs(table, "files")
        table.done()
        for name in names:
            if name.endswith(".toml") or (reason := why_no_name(name)):
                hint = "files = [...] names target files" if name.endswith(".toml") or "/" in name else ""
                raise DataError(f"names: {name!r:.80} is not a target name", where=table.where, hint=hint or reason)
        if table.values and not names and not globs:
            raise DataError(
                "names no target", where=table.where, hint=f'names = ["{HOST}"] is the machine that runs it'
            )
        return names

    def _settings(self, table: TomlTable, *, has_options: bool = True) -> Settings:
        limits: dict[str, Any] = {}
        for key, field, read, example in (
            ("timeout", "total_time_limit", seconds_in("timeout"), "30m"),
            ("time_limit", "time_limit", seconds_in("time_limit"), "10m"),
            ("memory", "memory_limit", memory_in("memory"), "8GiB"),
        ):
            text = table.text(key, example=example)
            if key in table:
                with _as_data(table.where):
                    limits[field] = read(text)
        sandbox = table.flag("sandbox", default=True)
        if "sandbox" in table:
            limits["sandbox"] = sandbox
        needs = table.names("needs")
        if not all(text.isprintable() for text in (*needs, *needs.values())):
            raise DataError("needs holds a character that cannot be printed", where=table.where)
        return Settings(self._options(table, "options") if has_options else {}, limits, needs)

    def _options(self, table: TomlTable, key: str) -> dict[str, Any]:
        options = table.table(key)
        if options is None:
            return {}
        with _as_data(options.where):
            return given_by(options.rest())

    def _axes(self, matrix: TomlTable) -> tuple[Axis, ...]:
        axes = tuple(self._axis(name, value, f"{matrix.where}: {name}") for name, value in matrix.rest().items())
        setters: dict[str, str] = {}
        for axis in axes:
            for field in sorted({field for given in axis.values.values() for field in given}):
                if field in setters:
                    raise DataError(f"{setters[field]} and {axis.name} both set {field}", where=matrix.where)
                setters[field] = axis.name
        return axes

    def _axis(self, name: str, value: object, where: str) -> Axis:
        if name in (*PLACEHOLDERS, *_SETTINGS) or not name.isprintable():
            raise DataError(f"an axis cannot be called {name!r:.60}", where=where)
        if isinstance(value, list):
            named = [(_own_name(one, where), one) for one in value]
        elif isinstance(value, dict):
            named = list(value.items())
        else:
            raise DataError(f"must be a list of values, or a table of them by name, is {value!r:.60}", where=where)
        if not named:
            raise DataError("has no values", where=where, hint='for example ["fp32", "bf16"]')
        values: dict[str, Mapping[str, Any]] = {}
        for value_name, one in named:
            if reason := why_no_name(value_name) or ("is there twice" if value_name in values else ""):
                raise DataError(
                    f"the value {value_name!r:.60} {reason}",
                    where=where,
                    hint=f'{name} = {{ small = "..", large = ".." }}',
                )
            with _as_data(where):
                values[value_name] = given_by(one if isinstance(one, dict) else {name: one})
        return Axis(name, values)

    def _match(self, table: TomlTable, keys: tuple[str, ...], others: tuple[str, ...] = ()) -> Match:
        for key in table.values:
            if key not in (*keys, *others):
                is_misplaced = bool(others) and is_option(key)
                hint = f"options = {{ {key} = .. }}" if is_misplaced else did_you_mean(key, (*keys, *others))
                raise DataError(f"unknown key {key!r:.60}", where=table.where, hint=hint)
        globs = {key: table.text_or_texts(key) for key in keys if key in table}
        if not globs:
            known = ", ".join(keys)
            raise DataError("does not say which jobs it is for", where=table.where, hint=f"by globs on {known}")
        return Match(table.where, globs)

    def _override(self, table: TomlTable, keys: tuple[str, ...]) -> Override:
        made = Override(self._match(table, keys, _SETTINGS), self._settings(table))
        if made.settings == Settings():
            raise DataError("sets nothing", where=table.where, hint=f"it may set {', '.join(_SETTINGS)}")
        return made

    def _template(self, table: TomlTable, key: str, default: str) -> str:
        text = table.text(key, default)
        with _as_data(table.where):
            check_template(text)
            rooted_path(self._folder, text)
        return text

    def _caches(self, table: TomlTable) -> tuple[str, ...]:
        texts = table.text_or_texts("cache") if "cache" in table else ()
        if sum("://" in text for text in texts) > 1 or sum("://" not in text for text in texts) > 1:
            raise DataError("cache names more than a folder and an address", where=table.where)
        with _as_data(table.where):
            return tuple(remote_address(text) if "://" in text else self._rooted(text, table) for text in texts)

    def _rooted(self, text: str, table: TomlTable) -> str:
        with _as_data(table.where):
            return rooted_path(self._folder, text)

    def _file(self, table: TomlTable, key: str) -> str:
        text = table.text(key)
        return self._rooted(text, table) if key in table else ""

    def _cluster(self, table: TomlTable | None) -> Cluster | None:
        if table is None:
            return None
        made = Cluster(table.text("address"), *(self._file(table, key) for key in ("ca", "cert", "key")))
        table.done()
        if not made.address:
            raise DataError("address is missing", where=table.where, hint='for example address = "tls://farm:8786"')
        with _as_data(table.where):
            parted(made.address)
        if bool(made.cert) != bool(made.key):
            raise DataError("cert and key go together", where=table.where)
        return made

    def _publish(self, table: TomlTable | None) -> Publish | None:
        if table is None:
            return None
        made = Publish(self._file(table, "folder"), table.text("oci"), self._file(table, "sign"))
        table.done()
        if not (made.folder or made.oci):
            raise DataError(
                "does not say where to publish", where=table.where, hint='folder = ".." or oci = "oci://.."'
            )
        with _as_data(table.where):
            check_template(made.oci)
        if made.oci and not made.oci.startswith("oci://"):
            raise DataError(f"oci must begin with oci://, is {made.oci!r:.80}", where=table.where)
        return made

    def _reports(self, table: TomlTable) -> ReportFiles:
        kinds = [field.name for field in fields(ReportFiles)]
        paths = {kind: Path(text) for kind in kinds if (text := self._file(table, kind))}
        table.done()
        for kind, at in paths.items():
            if other := next((one for one, path in paths.items() if one != kind and path == at), ""):
                raise DataError(f"{kind} and {other} are one file, {str(at)!r:.200}", where=table.where)
        return ReportFiles(**paths)


def _table(top: TomlTable, key: str) -> TomlTable:
    return top.table(key) or TomlTable({}, f"{top.where}: {key}")


def _choice(table: TomlTable, key: str, choices: tuple[str, ...]) -> str:
    text = table.text(key, choices[0])
    if text not in choices:
        raise DataError(f"{key} cannot be {text!r:.60}", where=table.where, hint=did_you_mean(text, choices))
    return text


def _jobs(farm: TomlTable) -> int | None:
    if farm.values.get("jobs", "auto") == "auto":
        farm.text("jobs")
        return None
    if isinstance(farm.values["jobs"], str):
        raise DataError(f'jobs must be "auto" or a number, is {farm.values["jobs"]!r:.60}', where=farm.where)
    return farm.whole("jobs", 1, 1, MAX_AT_ONCE)


def _own_name(value: object, where: str) -> str:
    """Returns what a value of a list is called: itself."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise DataError(f"a list cannot hold {value!r:.60}", where=where, hint="a table gives such a value a name")


def _gates(table: TomlTable) -> Gates:
    with _as_data(table.where):
        return options_from(Gates, plain_values(Gates, table.rest()))
