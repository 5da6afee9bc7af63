"""Commands whose help shows a flag as a flag, without the type of a value that nobody may write, and paragraphs as wide
as the terminal."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.help = self.help and _unwrapped(self.help)

    def get_params(self, ctx: Any) -> Any:
        return _bare_flags(super().get_params(ctx))


class Group(TyperGroup):
    def get_params(self, ctx: Any) -> Any:
        return _bare_flags(super().get_params(ctx))


def _bare_flags(params: Any) -> Any:
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


def _unwrapped(text: str) -> str:
    """The paragraphs of a docstring, a line each: its own line ends would be shown where the terminal wraps, too."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
