"""What a query may consist of: an allow-list of constructs, of their clauses, and of functions.

Anything that is not listed is refused, with its place. This covers hints, samples, time travel,
table functions, positional markers, session variables and scripts without naming each of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tocsin.compiler.amplify import check_sizes
from tocsin.compiler.functions import TABLE_FUNCTIONS, check_function, our_function, words
from tocsin.compiler.parse import Source
from tocsin.compiler.patterns import check_pattern
from tocsin.errors import nearest
from tocsin.model.types import SqlType

RESERVED_PREFIX = "__"

_NODES: tuple[type[exp.Expr], ...] = (
    *(exp.Select, exp.SetOperation, exp.Subquery, exp.With, exp.CTE, exp.From, exp.Join, exp.Where, exp.Group),
    *(exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Table, exp.TableAlias),
    *(exp.Identifier, exp.Column, exp.Alias, exp.Literal, exp.Boolean, exp.Null, exp.Star, exp.Paren, exp.Tuple),
    *(exp.Placeholder, exp.Not, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe),
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In),
    *(exp.Is, exp.Like, exp.ILike, exp.Escape, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var),
    *(exp.Bracket, exp.Dot, exp.PropertyEQ, exp.Window, exp.WindowSpec, exp.Filter, exp.IgnoreNulls),
    *(exp.RespectNulls, exp.WithinGroup, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Lateral, exp.BitwiseAnd),
    *(exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
)
# The clauses that a construct may have; constructs that are not here may have any.
_CLAUSES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: words("with_ expressions from_ joins laterals where group having order limit offset distinct windows"),
    exp.SetOperation: words("with_ this expression distinct order limit offset"),
    exp.Subquery: frozenset({"this", "alias", "with_"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Group: frozenset({"expressions", "rollup", "cube", "grouping_sets", "all"}),
    exp.Star: frozenset({"except_"}),
    exp.Placeholder: frozenset({"this"}),
}
# How a user would call a clause, where the tree calls it otherwise.
_CLAUSE_NAMES = {
    "db": "a name with a dot",
    "hint": "a hint",
    "locks": "FOR UPDATE",
    "method": "a NATURAL join",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "version": "VERSION AS OF",
    "when": "time travel",
}
_CAST_TYPES = words(
    "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL TEXT VARCHAR DATE TIMESTAMP TIMESTAMPTZ TIMESTAMPNTZ "
    "ARRAY BINARY INTERVAL"
)


def validate(source: Source, tree: exp.Query, parameters: Mapping[str, SqlType], names: Mapping[str, str]) -> None:
    """InvalidQuery unless every part of the tree is allowed; ``names`` are the known relations, by lower-case name.

    Parameters come out spelled as they were declared.
    """
    ctes = _cte_names(source, tree, names)
    for node in tree.walk():
        _check_node(source, node)
        if isinstance(node, exp.Table):
            _check_table(source, node, names, ctes)
        elif isinstance(node, exp.Placeholder):
            _check_parameter(source, node, parameters)
        elif isinstance(node, exp.Identifier):
            _check_identifier(source, node)
        elif isinstance(node, exp.Lateral):
            _check_lateral(source, node)
        elif isinstance(node, exp.Join):
            _check_join(source, node)
    check_sizes(source, tree)


def _check_node(source: Source, node: exp.Expr) -> None:
    if isinstance(node, exp.Func) and not isinstance(node, _NODES):
        inside_view = isinstance(node.parent, exp.Lateral) and type(node).__name__ in TABLE_FUNCTIONS
        if not inside_view:
            check_function(source, node)
            check_pattern(source, node)
    elif not isinstance(node, _NODES):
        raise source.invalid(f"{_readable(node)} is not allowed in a query", node)
    for kind, clauses in _CLAUSES.items():
        if isinstance(node, kind):
            for clause, value in node.args.items():
                if value and clause not in clauses:
                    raise source.invalid(f"{_CLAUSE_NAMES.get(clause, clause.upper())} is not allowed in a query", node)
    if isinstance(node, exp.DataType) and node.this.name not in _CAST_TYPES:
        raise source.invalid(f"type {node.this.name} is not allowed", node)
    if isinstance(node, exp.Distinct) and isinstance(node.parent, exp.Select) and node.expressions:
        raise source.invalid("DISTINCT ON is not allowed in a query", node)


def _readable(node: exp.Expr) -> str:
    words = "".join(f" {c}" if c.isupper() else c for c in type(node).__name__)
    return words.strip().upper()


def _cte_names(source: Source, tree: exp.Query, names: Mapping[str, str]) -> set[str]:
    found: set[str] = set()
    for with_ in tree.find_all(exp.With):
        if with_.recursive:
            raise source.invalid("RECURSIVE is not allowed in a query", with_)
    for cte in tree.find_all(exp.CTE):
        name = cte.alias.lower()
        if name in found or name in names:
            raise source.invalid(f"the name {cte.alias!r} is taken", cte, "another name for this WITH query")
        found.add(name)
    return found


def _check_table(source: Source, node: exp.Table, names: Mapping[str, str], ctes: set[str]) -> None:
    if not isinstance(node.this, exp.Identifier):
        if our_function(node.this):
            return
        raise source.invalid("a table function is not allowed in FROM", node, "a dataset, or LATERAL VIEW explode(…)")
    name = node.name.lower()
    if name not in names and name not in ctes:
        raise source.invalid(f"there is no dataset {node.name!r}{nearest(name, [*names.values(), *ctes])}", node)


def _check_parameter(source: Source, node: exp.Placeholder, parameters: Mapping[str, SqlType]) -> None:
    if not isinstance(node.this, str) or not node.this:
        raise source.invalid("a positional parameter is not allowed", node.parent, "a named one such as :place")
    declared = {name.lower(): name for name in parameters}
    if node.name.lower() not in declared:
        close = nearest(node.name, parameters)
        known = "one of " + ", ".join(f":{name}" for name in parameters) if parameters else "no parameter at all"
        raise source.invalid(f"there is no parameter :{node.name}{close}", node, None if close else known)
    node.set("this", declared[node.name.lower()])


def _check_identifier(source: Source, node: exp.Identifier) -> None:
    if node.name.startswith(RESERVED_PREFIX):
        raise source.invalid(f"the name {node.name!r} is reserved", node, "a name that does not begin with two _")
    if not node.name.replace("_", "a").isalnum():
        raise source.invalid(f"the name {node.name!r} is not allowed", node, "letters, digits and _")


def _check_lateral(source: Source, node: exp.Lateral) -> None:
    is_query = isinstance(node.this, exp.Subquery)
    if not is_query and type(node.this).__name__ not in TABLE_FUNCTIONS:
        raise source.invalid("this is not allowed after LATERAL", node, "a query in parentheses, or explode(…)")
    if not is_query and not node.args.get("view"):
        raise source.invalid("a table function is not allowed in FROM", node, "LATERAL VIEW explode(…) name AS column")


def _check_join(source: Source, node: exp.Join) -> None:
    if node.side in ("RIGHT", "FULL") and isinstance(node.this, exp.Lateral):
        raise source.invalid(f"{node.side} JOIN LATERAL is not possible", node, "CROSS or LEFT JOIN LATERAL")


def check_no_is_new(source: Source, tree: exp.Query) -> None:
    """For plain SELECT statements, where nothing is new."""
    for node in tree.find_all(exp.Anonymous):
        if node.name.lower() == "is_new":
            raise source.invalid("is_new has no meaning outside of a channel", node)
