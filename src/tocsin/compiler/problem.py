"""What the two plan writers start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from tocsin.compiler.drivers import Catalog
from tocsin.compiler.parse import Source
from tocsin.model.types import SqlType


@dataclass(frozen=True, slots=True)
class Problem:
    """A resolved query, its tables marked with views, and what is known around it."""

    source: Source
    channel: str
    tree: exp.Query
    columns: tuple[str, ...]  # the outputs as the user spells them
    catalog: Catalog
    parameters: Mapping[str, SqlType]  # by name, in the order of declaration
    cell: float
    max_radius: float

    def copy(self) -> Problem:
        """The same with a tree of its own to rewrite."""
        return replace(self, tree=self.tree.copy())

    @property
    def outputs(self) -> list[str]:
        """The outputs as the tree calls them."""
        return [p.alias_or_name for p in self.tree.selects]


def flat_name(channel: str) -> str:
    return f"tocsin_{channel.lower()}_subs"


def grid_name(channel: str) -> str:
    return f"tocsin_{channel.lower()}_grid"
