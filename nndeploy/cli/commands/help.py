# SPDX-License-Identifier: Apache-2.0
"""`nndeploy help`: the pages of the guide and the reference, and the help of commands, in the terminal."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from nndeploy.cli.help.help_pages import SECTIONS, page_called, title, topics, with_topics_for_links
from nndeploy.cli.help.other_words import COMMANDS, command_hint
from nndeploy.cli.options.value_types import FOLDER, Items, Text, starting_with
from nndeploy.errors import UsageError, did_you_mean

EXAMPLES = """\b
Examples:
  nndeploy help
  nndeploy help pipelines
  nndeploy help compile                   the same as nndeploy compile --help
  nndeploy help pipelines > pipelines.md  not a terminal: the page as Markdown
  nndeploy help --man man1/               then man -l man1/nndeploy-compile.1
"""


class Topic(Text):
    """The name of a page or of a command."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:  # noqa: ARG002
        """Returns pages and commands."""
        commands = _command_names(ctx)
        return starting_with(incomplete, [*topics(commands), *commands])


@click.command("help", epilog=EXAMPLES)
@click.argument("topic", nargs=-1, type=Topic())
@click.option("--man", "man", type=FOLDER, metavar="FOLDER", help="Write a man page for each command to a folder.")
@click.pass_context
def help_(context: click.Context, topic: tuple[str, ...], man: str | None) -> None:
    """Show a page of the guide or the reference, or list the pages.

    TOPIC may also be a command, whose --help is then shown.
    """
    if man is not None:
        from nndeploy.cli.help.man_pages import write_man_pages

        write_man_pages(context.find_root(), Path(man))
    elif not topic:
        _list_topics(context)
    elif topic[0] in _command_names(context):
        _show_command(context.find_root(), topic)
    else:
        _show_page(context, " ".join(topic))


def _command_names(context: click.Context) -> list[str]:
    root = context.find_root()
    return root.command.list_commands(root) if isinstance(root.command, click.Group) else []


def _list_topics(context: click.Context) -> None:
    formatter = context.make_formatter()
    formatter.write_text("nndeploy help TOPIC shows a page, nndeploy help COMMAND the help of a command.")
    known = topics(_command_names(context))
    for section in SECTIONS:
        if rows := [(name, title(page.text)) for name, page in known.items() if page.section == section]:
            with formatter.section(section.capitalize()):
                formatter.write_dl(rows)
    with formatter.section("Commands"):
        formatter.write_text(", ".join(_command_names(context)))
    print(formatter.getvalue(), end="")


def _show_command(root: click.Context, names: Iterable[str]) -> None:
    context = root
    for name in names:
        group = context.command
        found = group.get_command(context, name) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(context) if isinstance(group, click.Group) else ()
            raise UsageError(
                f"{context.command_path} has no command {name!r:.80}",
                hint=command_hint(context.command_path.removeprefix("nndeploy "), name, known),
            )
        context = click.Context(found, info_name=name, parent=context)
    text = context.get_help()
    if page := page_called(context.info_name or ""):
        text += f"\n\nSee also: nndeploy help {page.full_name}"
    print(text)


def _show_page(context: click.Context, name: str) -> None:
    page = page_called(name)
    known = topics(_command_names(context))
    if page is None:
        hint = COMMANDS.get(name) or did_you_mean(name, [*known, *_command_names(context)])
        raise UsageError(f"there is no help about {name!r:.80}", hint=f"{hint}; nndeploy help lists all")
    if not sys.stdout.isatty():
        print(page.text, end="")
        return
    from nndeploy.cli.help.pager import show_markdown

    show_markdown(with_topics_for_links(page.text, known))
