# SPDX-License-Identifier: Apache-2.0
"""Help in which options stand under headings, by purpose: for commands with many of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


class SectionedCommand(click.Command):
    """A command whose `sections` say under which heading each option stands; what is in none comes last."""

    def __init__(self, *args: Any, sections: Mapping[str, Sequence[str]], **options: Any) -> None:
        """`sections` maps headings to names of parameters, both in the order of the help."""
        super().__init__(*args, **options)
        self.sections = sections

    def headed_records(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Returns heading -> (option, its help) of each option below it."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]  # click 8.5 has arguments too
        records = {option.name: option.get_help_record(ctx) for option in options}
        placed = {name for names in self.sections.values() for name in names}
        rest = [name for name in records if name not in placed]
        headed = {**self.sections, "Other options": rest}
        found = {
            heading: [record for name in names if (record := records.get(name)) is not None]
            for heading, names in headed.items()
        }
        return {heading: rows for heading, rows in found.items() if rows}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, a section for each heading."""
        for heading, rows in self.headed_records(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)
