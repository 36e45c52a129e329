# SPDX-License-Identifier: Apache-2.0
"""How a model was quantised, as `compile` and `inspect` print it: what was tried, what stayed float, and what for."""

from nndeploy.bundle.report import QuantisationReport, Report, TaskMeasure
from nndeploy.cli.console import print_line, print_table


def print_quantisation(report: Report, *, verbose: bool) -> None:
    """Prints how the model of a report was quantised, where it was; each layer where `verbose`."""
    found = report.quantisation
    if found is None:
        return
    quantised = sum(layer.quantised for layer in found.layers)
    print_table(
        f"quantised to {found.to}: {quantised} of {len(found.layers)} layers; error against float32 on "
        f"{found.num_held_out} samples held out, at least {found.least_db:g} dB asked for",
        ("tried", "layers float", "signal to noise", "max abs", "mean abs", "worst output", ""),
        [
            (
                trial.name, str(trial.num_float), f"{trial.sqnr_db:.1f} dB", f"{trial.max_abs:.3g}",
                f"{trial.mean_abs:.3g}", trial.output, "taken" if trial.chosen else "",
            )
            for trial in found.trials
        ],
        right=("layers float", "signal to noise", "max abs", "mean abs"),
    )  # fmt: skip
    shown = [layer for layer in found.layers if verbose or not layer.quantised]
    if shown:
        rows = [
            (
                layer.name, layer.op, found.to if layer.quantised else "float",
                "" if layer.alone_db is None else f"{layer.alone_db:.1f} dB", layer.reason,
            )
            for layer in shown
        ]  # fmt: skip
        columns = ("layer", "operator", "is", "quantised alone", "why")
        print_table("layers" if verbose else "layers that stay float", columns, rows, right=("quantised alone",))
    for line in _lines(found):
        print_line(line)


def _lines(found: QuantisationReport) -> list[str]:
    ranges = f"ranges from {found.num_calibration} samples; " if found.calibration else ""
    lines = [f"{ranges}constants: {found.float_bytes:,} bytes in float32, {found.quantised_bytes:,} quantised"]
    if found.bundle_db is not None:
        lines.append(f"the bundle itself against float32: {found.bundle_db:.1f} dB")
    lines += [_measure_line(one) for one in found.measures]
    if found.float_ms and found.quantised_ms:
        times = f"float32 {found.float_ms:.3f} ms, quantised {found.quantised_ms:.3f} ms"
        lines.append(f"a call here: {times} ({found.float_ms / found.quantised_ms:.2f} times as fast)")
    return lines


def _measure_line(one: TaskMeasure) -> str:
    told = {
        "boxes": f"boxes cover {one.agreement:.1%} of float32's, of {one.count}",
        "classes": f"{one.agreement:.2%} of {one.count:,} classes are float32's",
        "cosine": f"cosine to float32 {one.agreement:.4f}, the mean of {one.count}",
        "texts": f"{one.agreement:.1%} of {one.count} texts are float32's",
    }[one.kind]
    return f"{one.result}: {told}"
