"""The index plan: conditions on parameters go to an index, the rest is a query without parameters.

Possible where the query is a plain SELECT whose parameters are all in conditions of WHERE (joined by
AND) that an index knows: ``=``, IN a list, comparisons, BETWEEN, has_word, a distance. The record's
side of each becomes a probe column ``__k0``, …; the remaining query gives probes and payload once for
a record, however many subscriptions it matches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tocsin.compiler.distance import Within, within_of
from tocsin.compiler.drivers import DATASET, Catalog
from tocsin.compiler.functions import double, our_function
from tocsin.compiler.kinds import BOOLEAN, DOUBLE, STRING, common_type, type_of
from tocsin.compiler.trees import is_plain, source_named, where_conjuncts
from tocsin.matching.spec import Compare, Equal, HasWord, Member, Metric, Near, Op, Predicate
from tocsin.model.types import SqlType

PROBE = "__k"

_OPS: dict[type[exp.Expr], Op] = {exp.LT: Op.LT, exp.LTE: Op.LE, exp.GT: Op.GT, exp.GTE: Op.GE}
_FLIPPED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


class NotIndexable(Exception):
    """The index cannot answer; the message says why, in a user's words."""


@dataclass
class Conditions:
    """What was found: predicates, probes with their types, and the conditions that remain."""

    catalog: Catalog
    parameters: Mapping[str, SqlType]
    max_radius: float
    select: exp.Select
    predicates: list[Predicate] = field(default_factory=list)
    probes: list[tuple[str, exp.Expr, SqlType]] = field(default_factory=list)
    param_types: dict[str, SqlType] = field(default_factory=dict)
    rest: list[exp.Expr] = field(default_factory=list)

    def column_type(self, column: exp.Column) -> SqlType | None:
        table = source_named(self.select, column.table)
        dataset = self.catalog.get(table.meta.get(DATASET, "")) if table is not None else None
        found = dataset.column(column.name) if dataset is not None else None
        return found.type if found is not None else None

    def probe(self, node: exp.Expr, kind: SqlType) -> str:
        """The name of a probe column; the same expression in the same type is one probe."""
        for name, known, known_type in self.probes:
            if known == node and known_type == kind:
                return name
        name = f"{PROBE}{len(self.probes)}"
        self.probes.append((name, node.copy(), kind))
        return name

    def use(self, parameter: str, kind: SqlType) -> str:
        """Note the type in which a parameter is compared; one parameter has one."""
        if self.param_types.setdefault(parameter, kind) != kind:
            raise NotIndexable(f"the parameter :{parameter} is compared with values of different types")
        return parameter


def split_conditions(
    select: exp.Expr, catalog: Catalog, parameters: Mapping[str, SqlType], max_radius: float
) -> Conditions:
    """Divide WHERE between index and query; NotIndexable with the reason where that cannot be."""
    if not isinstance(select, exp.Select) or not is_plain(select):
        raise NotIndexable("it groups, compares or combines rows")
    if select.args.get("limit") is not None or select.args.get("offset") is not None:
        raise NotIndexable("LIMIT counts the rows of each subscription")
    found = Conditions(catalog, parameters, max_radius, select)
    for condition in where_conjuncts(select):
        if condition.find(exp.Placeholder) is None:
            found.rest.append(condition)
        else:
            _add(condition, found)
    inside = {id(p) for c in where_conjuncts(select) for p in c.find_all(exp.Placeholder)}
    if any(id(p) not in inside for p in select.find_all(exp.Placeholder)):
        raise NotIndexable("parameters are used outside of simple conditions of WHERE")
    if found.predicates and any(p.find(exp.Window) is not None for p in select.expressions):
        raise NotIndexable("a window function counts the rows of each subscription")
    return found


def _add(condition: exp.Expr, found: Conditions) -> None:
    if (within := within_of(condition)) is not None:
        _near(within, found)
    elif isinstance(condition, exp.EQ):
        record, parameter = _sides(condition.left, condition.right)
        found.predicates.append(Equal(*_compared(record, parameter, found)))
    elif type(condition) in _OPS:
        _compare(condition, _OPS[type(condition)], found)
    elif isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        _between(condition, found)
    elif isinstance(condition, exp.ArrayContains):
        _member(condition, found)
    elif our_function(condition) == "has_word":
        _word(condition, found)
    else:
        raise NotIndexable(f"the condition {_short(condition)} is not one that an index answers")


def _short(node: exp.Expr) -> str:
    text = node.sql(dialect="spark")
    return text if len(text) <= 60 else text[:57] + "..."


def _sides(left: exp.Expr, right: exp.Expr) -> tuple[exp.Expr, str]:
    """(record's side, parameter's name) of a condition that has a bare parameter on one side only."""
    left, right = left.unnest(), right.unnest()
    for record, other in ((left, right), (right, left)):
        if isinstance(other, exp.Placeholder) and _is_of_record(record):
            return record, other.name
    raise NotIndexable(f"a parameter is part of an expression in {_short(left)} and {_short(right)}")


def _is_of_record(node: exp.Expr) -> bool:
    return node.find(exp.Placeholder) is None and node.find(exp.Query) is None and node.find(exp.Column) is not None


def _compared(record: exp.Expr, parameter: str, found: Conditions) -> tuple[str, str]:
    """(probe, parameter) in the type that Spark would compare them in."""
    wanted, given = found.parameters[parameter], type_of(record, found.column_type)
    if given is None:
        raise NotIndexable(f"the type of {_short(record)} is not certain before Spark sees it")
    common = common_type(given, wanted)
    if common is None:
        raise NotIndexable(f"{_short(record)} and :{parameter} are compared across types")
    probe = record if common == given else exp.cast(record.copy(), str(common), dialect="spark")
    return found.probe(probe, common), found.use(parameter, common)


def _compare(condition: exp.Expr, op: Op, found: Conditions) -> None:
    record, parameter = _sides(condition.this, condition.expression)
    if not isinstance(condition.expression.unnest(), exp.Placeholder):
        op = _FLIPPED[op]
    _ordered(record, op, parameter, found)


def _ordered(record: exp.Expr, op: Op, parameter: str, found: Conditions) -> None:
    probe, name = _compared(record, parameter, found)
    if found.param_types[name] in (STRING, BOOLEAN):
        raise NotIndexable(f"an index orders numbers and times, not {found.param_types[name]}")
    found.predicates.append(Compare(probe, op, name))


def _between(condition: exp.Between, found: Conditions) -> None:
    """``x BETWEEN low AND high`` is two comparisons; a side without a parameter stays in the query."""
    record, low, high = (condition.args[k].unnest() for k in ("this", "low", "high"))
    if isinstance(record, exp.Placeholder):  # :p BETWEEN r.low AND r.high
        sides = ((low, Op.LE, record), (high, Op.GE, record))
    else:
        sides = ((record, Op.GE, low), (record, Op.LE, high))
    for value, op, bound in sides:
        if isinstance(bound, exp.Placeholder) and _is_of_record(value):
            _ordered(value, op, bound.name, found)
        elif bound.find(exp.Placeholder) is None and value.find(exp.Placeholder) is None:
            kind = exp.GTE if op is Op.GE else exp.LTE
            found.rest.append(kind(this=value.copy(), expression=bound.copy()))
        else:
            raise NotIndexable(f"a parameter is part of an expression in {_short(condition)}")


def _member(condition: exp.ArrayContains, found: Conditions) -> None:
    items, record = condition.this.unnest(), condition.expression.unnest()
    if not isinstance(items, exp.Placeholder) or not _is_of_record(record):
        raise NotIndexable(f"the condition {_short(condition)} is not one that an index answers")
    name = items.name
    wanted, given = found.parameters[name].element, type_of(record, found.column_type)
    if wanted != given:
        raise NotIndexable(f"{_short(record)} and the items of :{name} are compared across types")
    found.predicates.append(Member(found.probe(record, wanted), found.use(name, found.parameters[name])))


def _word(condition: exp.Expr, found: Conditions) -> None:
    text, word = (a.unnest() for a in condition.expressions)
    if not isinstance(word, exp.Placeholder) or not _is_of_record(text):
        raise NotIndexable("has_word has a parameter in an expression")
    name = word.name
    if found.parameters[name] != STRING or type_of(text, found.column_type) != STRING:
        raise NotIndexable("has_word compares something that is not a STRING")
    found.predicates.append(HasWord(found.probe(text, STRING), found.use(name, STRING)))


def _near(within: Within, found: Conditions) -> None:
    if not all(isinstance(c.unnest(), exp.Placeholder) for c in within.other):
        within = within.turned()
    place = [c.unnest() for c in within.other]
    if not all(isinstance(c, exp.Placeholder) for c in place) or not all(_is_of_record(c) for c in within.one):
        raise NotIndexable("a distance is not between the record and a place given by two parameters")
    x, y = (_coordinate(c, found) for c in within.one)
    at = [_numeric_parameter(c.name, found) for c in place]
    metric = Metric.SPHERE if within.sphere else Metric.PLANAR
    param, probe = _reach(within.radius.unnest(), found) if within.radius_const is None else (None, None)
    found.predicates.append(Near(metric, x, y, at[0], at[1], within.inclusive, param, probe, within.radius_const))


def _coordinate(node: exp.Expr, found: Conditions) -> str:
    node = node.unnest()
    return found.probe(node if type_of(node, found.column_type) == DOUBLE else double(node), DOUBLE)


def _numeric_parameter(name: str, found: Conditions) -> str:
    if found.parameters[name].name not in ("INT", "BIGINT", "DOUBLE"):
        raise NotIndexable(f":{name} is a coordinate or a radius, but not a DOUBLE")
    return found.use(name, DOUBLE)


def _reach(radius: exp.Expr, found: Conditions) -> tuple[str | None, str | None]:
    """(parameter, probe) that holds the radius; one of them is None."""
    if isinstance(radius, exp.Placeholder):
        return _numeric_parameter(radius.name, found), None
    if not _is_of_record(radius):
        raise NotIndexable("a radius mixes parameters and columns")
    own, most = double(radius), double(exp.Literal.number(found.max_radius))
    capped = exp.If(this=exp.GT(this=own, expression=most), true=most.copy(), false=own.copy())  # NULL stays NULL
    return None, found.probe(capped, DOUBLE)
