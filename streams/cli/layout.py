"""The option `--layout`, the file of the topics and principals. Only words here; `streams.layout` reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from streams.cli.options import shared
from streams.layout import InvalidLayout, Layout, read_layout


class LayoutFile(click.Path):
    """A file that says what an installation has on its brokers."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the file; its path is what settings show."""
        given: Any = super().convert(value, param, ctx)
        path = Path(given)
        try:
            read_layout(path)
        except InvalidLayout as problem:
            self.fail(f"{path} cannot be used: {problem}", param, ctx)
        return path


layout_option = shared(
    "--layout",
    "What should be on the brokers, topics and principals; see docs/deployment.md.",
    argument="layout_file",
    type=LayoutFile(),
    metavar="FILE.toml",
)
"""The layout's file, as a command's argument `layout_file`, for `with_layout`."""


def with_layout(file: Path | None) -> Layout:
    """Give the layout of a file that the option has checked; an empty one without a file."""
    return Layout() if file is None else read_layout(file)
