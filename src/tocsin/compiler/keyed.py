"""The state of one rewriting of parameters into columns, shared by its parts."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from tocsin.compiler.parse import Source


@dataclass
class Keying:
    """One rewriting: the subscriptions' relation, and the WITH queries that got a ``__bs``."""

    source: Source
    relation: str
    parameters: tuple[str, ...]  # all of the channel's
    ctes: set[str] = field(default_factory=set)
    uses: int = 0  # of the subscriptions' relation
    has_lateral: bool = False  # whether a LATERAL query had to be made

    def alias(self) -> str:
        """A name for one more use of the subscriptions' relation."""
        self.uses += 1
        return "__s" if self.uses == 1 else f"__s{self.uses}"

    def depends(self, node: exp.Expr) -> bool:
        """Whether a part of the query has parameters, by itself or through a WITH query."""
        return any(
            isinstance(n, exp.Placeholder) or (isinstance(n, exp.Table) and n.name in self.ctes) for n in node.walk()
        )

    def table(self, alias: str) -> exp.Table:
        """The subscriptions' relation under an alias."""
        table = exp.to_table(self.relation)
        table.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))
        return table
