# SPDX-License-Identifier: Apache-2.0
"""`nndeploy compile`: options -> a compile in a child process -> progress by stage -> the table at the end."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.options.ci_options import CI_SECTION, ci_options, ci_report
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import given, options_given, options_of, sections_of
from nndeploy.cli.options.output_file import OUTPUT_FILE
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.value_types import MODEL_FILE, TOML_FILE, Number
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.compiler.cached_compile import CacheOptions
from nndeploy.compiler.options import CompileLimits, CompileOptions
from nndeploy.errors import CheckError, DataError, MissingInputError, NndeployError, UsageError, did_you_mean
from nndeploy.files.named_outputs import is_stream
from nndeploy.files.toml_file import toml_from_file
from nndeploy.options.described import described_fields, option_name

if TYPE_CHECKING:
    from nndeploy.bundle.report import Report
    from nndeploy.ci_reports.command_report import CommandReport
    from nndeploy.compiler.recipe import Recipe

EXAMPLES = """\b
Examples:
  nndeploy compile model.onnx                     writes model.nnd here
  nndeploy compile models/model.onnx -o bundles/model.nnd
  nndeploy compile model.onnx -o model.nnd --shape x=1..8,3,224,224:4,3,224,224
  nndeploy compile model.onnx -o model.nnd --backends openvino,onnxruntime --require openvino=95%
  nndeploy compile model.onnx -o model.nnd --target rtx4090 --target t4 --target x86-64-v3
  nndeploy compile model.onnx -o model.nnd --target box.toml --cache-buffer 256KiB
  nndeploy compile model.onnx --dry-run
  nndeploy compile model.onnx --goldens 3 --dump-config > recipe.toml
  nndeploy compile model.onnx -o model.nnd --samples inputs/ --objective latency --threads 2
  nndeploy compile model.onnx -o model.nnd --quantise int8 --samples inputs/     quantise weights and activations
"""


SUFFIX = ".nnd"
TRUTHS = frozenset(("true", "false", "yes", "no", "on", "off"))
"""What `cache` of a configuration file may be but for a place: whether there is a cache."""
RECIPE = "recipe"
"""The table of a configuration file that says what the model and other files must be."""


def _load_config(context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Makes a TOML file's keys the defaults of the other options; the command line wins."""
    if path is None:
        return None
    data = toml_from_file(path, "configuration file")
    if RECIPE in data:
        from nndeploy.compiler.recipe import recipe_from_table
        from nndeploy.files.toml_table import TomlTable

        table = TomlTable({RECIPE: data.pop(RECIPE)}, str(path)).table(RECIPE)
        context.meta[RECIPE] = None if table is None else recipe_from_table(table)
    if isinstance(said := data.get("cache"), list) or (isinstance(said, str) and said.lower() not in TRUTHS):
        data |= _caches(data.pop("cache"), path)
    known = {parameter.name: parameter for parameter in context.command.params if parameter.name != "config"}
    defaults: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in known:
            raise DataError(f"unknown key {key!r}", where=str(path), hint=did_you_mean(key, [n for n in known if n]))
        defaults[name] = _configured(known[name], key, value, path)
    context.default_map = defaults
    return path


def _caches(found: str | list[object], path: Path) -> dict[str, object]:
    """Returns the options that say which caches are used: a folder, an address, or both."""
    texts = [found] if isinstance(found, str) else found
    options: dict[str, object] = {}
    for text in texts:
        key = "cache-remote" if isinstance(text, str) and "://" in text else "cache-dir"
        if not isinstance(text, str) or not text or key in options:
            raise DataError(f"cache names a folder, an address or both, is {found!r:.80}", where=str(path))
        options[key] = text
    return options


def _configured(parameter: click.Parameter, key: str, value: object, path: Path) -> object:
    """Returns the value of a key as click takes it: a list where the option may be repeated."""
    if not getattr(parameter, "multiple", False):
        if isinstance(value, list | dict):
            raise DataError(f"{key} takes one value, not {value!r:.60}", where=str(path))
        return value
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise DataError(f"{key} must be a text or a list of texts, is {value!r:.60}", where=str(path))
    return values


_DESCRIBED = [
    (name, one) for options in (CompileOptions, CompileLimits) for name, (_, one) in described_fields(options).items()
]
SECTIONS = sections_of(
    CompileOptions,
    {"Output": ("output", "tune", "as_json", "verbose")},
    CompileLimits,
    CacheOptions,
    CI_SECTION,
    {"Configuration": ("config", "dump_config")},
)


def _british(name: str) -> str:
    """Returns an option's name as we spell it: `--quantize` is taken, and stands in no help."""
    return name.replace("quantize", "quantise")


@click.command(
    "compile", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES,
    context_settings={"token_normalize_func": _british},
)  # fmt: skip
@click.argument("model", type=MODEL_FILE)
@click.option("-o", "--output", type=OUTPUT_FILE, help="Bundle to write. Default: MODEL.nnd in the current folder.")
@options_of(CompileOptions)
@options_of(CompileLimits)
@options_of(CacheOptions)
@ci_options
@click.option(
    "--tune", type=Number(min=0, min_open=True), metavar="SECONDS",
    help="Then tune the bundle for this machine, as `nndeploy tune` does, for so long.",
)  # fmt: skip
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
@click.option("-v", "--verbose", is_flag=True, help="Show every node, not only the submodels.")
@click.option(
    "--config",
    type=TOML_FILE,
    is_eager=True,
    callback=_load_config,
    help="TOML file with options; the command line takes precedence.",
)
@click.option(
    "--dump-config", is_flag=True, help="Print the options as TOML, with digests of all input files, and exit."
)
@click.pass_context
def compile_(context: click.Context, /, **options: Any) -> None:
    """Compile an ONNX MODEL into a single offline bundle.

    Each node is assigned to the first backend that supports it, and the outputs are compared with the original model.
    The bundle contains everything that is needed to run it.
    """
    if options["dump_config"]:
        click.echo(_dumped(context, _recipe(options)), nl=False)
        return
    if not options["dry_run"]:
        options["output"] = options["output"] or Path(options["model"].name.removesuffix(".onnx") + SUFFIX)
    with ci_report("compile", options["model"], options) as told:
        _compile(context, options, told)


def _compile(context: click.Context, options: Mapping[str, Any], told: "CommandReport") -> None:
    """Compiles, prints what came of it, and tells it for CI."""
    from nndeploy.bundle.report import report_to_json
    from nndeploy.bundle.writer import check_can_create
    from nndeploy.cli.console import print_json, print_line, warn
    from nndeploy.cli.views.compile_for_ci import tell_ci
    from nndeploy.cli.views.compile_view import CompileProgress, cache_line, print_report, print_warnings
    from nndeploy.compiler.cached_compile import CacheNews, compile_cached
    from nndeploy.compiler.early_checks import check_early
    from nndeploy.compiler.stages import stages_of
    from nndeploy.target.target import host_target

    if options["tune"] is not None and (options["dry_run"] or is_stream(options["output"])):
        raise UsageError("--tune is for a bundle in a file", hint="without --dry-run, and with -o FILE")
    if not options["dry_run"]:
        check_can_create(options["output"])
    if not options["model"].exists():
        raise MissingInputError("no such file", where=str(options["model"]))
    if (out := options["output"]) is not None and out.suffix != SUFFIX and not is_stream(out):
        warn(f"{out} does not end in {SUFFIX}, as bundles do; every command takes it all the same")
    source = str(options["model"].absolute())
    place = None if out is None else str(out.absolute())

    def show(report: "Report", cache: CacheNews | None = None, tuned: "list[Any] | None" = None) -> None:
        print_warnings(report)
        tell_ci(told, report)
        if options["as_json"]:
            more = {"cache": None if cache is None else asdict(cache), "tuned": tuned}
            print_json({**report_to_json(report), **{key: value for key, value in more.items() if value is not None}})
            return
        print_report(report, verbose=options["verbose"], dry_run=cache is None or options["dry_run"])
        if cache is not None and (line := cache_line(cache)):
            print_line(line)
        if tuned is not None:
            from nndeploy.cli.views.tuned_view import print_tuned

            print_tuned(tuned, is_measured=True)

    try:
        limits, asked = options_given(CompileLimits, options), given(CompileOptions, options)
        caching = options_given(CacheOptions, options)
        early = check_early(options["model"].absolute(), asked)
        if (recipe := context.meta.get(RECIPE)) is not None:
            others = recipe.check(_recipe(options), str(options["config"]))
            if others:
                warn(f"these packages differ from the recipe: {', '.join(others)}")
        with CompileProgress(stages_of(early, has_gpu=bool(host_target().gpus))) as progress:
            compiled = compile_cached(source, place, asked, limits, caching, progress, warn)
    except NndeployError as err:
        err.where = err.where.replace(f"{Path.cwd()}/", "")  # the child was given absolute paths, the user wrote others
        if isinstance(err, CheckError) and err.report is not None:
            show(err.report)  # what a gate is about comes before the gate
        raise
    if not options["dry_run"]:
        effect_is_made()
    report = replace(
        compiled.report, bundle=str(options["output"] or "")
    )  # as the user wrote it, not as the child saw it
    try:
        tuned = None if options["tune"] is None else _tuned(options, asked.get("threads"))
    except NndeployError:
        show(report, compiled.cache)  # the bundle is there
        raise
    show(report, compiled.cache, tuned)


def _tuned(options: Mapping[str, Any], threads: int | None) -> list[Any]:
    from nndeploy.cli.commands.tune import tuned_bundle
    from nndeploy.runtime.load_options import LoadOptions

    return tuned_bundle(options["output"], LoadOptions(threads=threads), options["tune"])


def _recipe(options: Mapping[str, Any]) -> "Recipe":
    from nndeploy.compiler.recipe import recipe_of

    return recipe_of(options["model"].absolute(), given(CompileOptions, options), options_given(CompileLimits, options))


def _dumped(context: click.Context, recipe: "Recipe") -> str:
    """Returns the options as TOML that --config reads, and the recipe.

    Defaults of what a bundle depends on are written out, so that a release with others makes the same of it.
    """
    decide = {option_name(*one) for one in _DESCRIBED if one[0] != "dry_run"}
    lines = []
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        default = False if value is False and not parameter.secondary_opts else parameter.default  # click names none
        is_default = value == default and name not in decide
        if name in ("config", "dump_config") or value in (None, ()) or is_default:
            continue
        lines.append(f"{name.replace('_', '-')} = {_toml(value)}")
    for table, texts in (("files", recipe.files), ("packages", recipe.packages)):
        lines += ["", f"[{RECIPE}.{table}]", *(f"{_toml(key)} = {_toml(texts[key])}" for key in sorted(texts))]
    return "".join(line + "\n" for line in lines)


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value)
