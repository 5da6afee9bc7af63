"""Which functions a query may call, and the expansion of our own.

The list says what is allowed; everything else is refused, so a function that a later Spark adds
(and that may read files, the session, the clock or chance) stays out until someone puts it here.
Functions that yield MAPs are absent, because rows with maps cannot be ordered or compared.

Our own functions are expanded in the tree: Spark forbids SQL functions inside LATERAL subqueries,
and the optimizer sees through an expression but not through a function.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tocsin.compiler.parse import DIALECT, Source
from tocsin.errors import nearest

EARTH_RADIUS_M = 6371008.8
NOW = "{now}"


def words(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


# Functions that sqlglot knows, by the name of their class.
KNOWN = words(
    """
    Abs Acos Asin Atan Atan2 Cbrt Ceil Cos Cot Csc Degrees Exp Floor Greatest IsNan Least Ln Log Nanvl Negative Pi Pow
    Radians Rint Round SafeAdd SafeDivide SafeMultiply SafeSubtract Sec Sign Sin Sqrt Tan Trunc WidthBucket
    Ascii Chr Concat ConcatWs Contains EndsWith Initcap Left Length Levenshtein Lower Overlay Pad RegexpCount
    RegexpExtract RegexpExtractAll RegexpInstr RegexpLike RegexpReplace RegexpSplit RegexpSubstr Repeat Replace
    Reverse Right Soundex Space Split SplitPart StartsWith StrPosition Substring SubstringIndex Translate Trim Upper
    MD5 SHA SHA2 Hex
    AddMonths CurrentDate CurrentTimestamp Date DateAdd DateDiff DateFromParts DateFromUnixDate DateSub DateTrunc Day
    DayOfMonth DayOfWeek DayOfYear Dayname Extract Hour LastDay MakeInterval Minute Month Monthname MonthsBetween
    NextDay Quarter Second StrToDate StrToTime StrToUnix TimestampAdd TimestampDiff TimestampFromParts TimestampSub
    TimestampTrunc TimeToStr TimeToUnix TsOrDsAdd TsOrDsDiff TsOrDsToDate TsOrDsToTimestamp UnixDate UnixMicros
    UnixMillis UnixSeconds UnixToStr UnixToTime Week WeekOfYear Year TimeAdd TimeSub TimeStrToTime DatetimeAdd
    DatetimeSub Timestamp
    Case Cast Coalesce EqualNull If Nullif Nvl2 TryCast
    Array ArrayAppend ArrayCompact ArrayConcat ArrayContains ArrayDistinct ArrayExcept ArrayIntersect ArrayMax
    ArrayMin ArrayOverlaps ArrayPosition ArrayPrepend ArrayRemove ArrayReverse ArraySize ArraySlice ArrayToString
    ArraysZip Flatten ArraySort Struct GenerateSeries
    Avg Count CountIf Max Min Sum Stddev StddevPop StddevSamp Variance VariancePop Median Mode PercentileCont
    PercentileDisc Quantile ApproxQuantile ApproxDistinct ArrayAgg ArrayUniqueAgg ArgMax ArgMin AnyValue First Last
    FirstValue LastValue LogicalAnd LogicalOr Corr CovarPop CovarSamp Skewness Kurtosis BitwiseAndAgg BitwiseOrAgg
    RegrIntercept RegrR2 RegrSlope Grouping GroupingId GroupConcat
    RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead NthValue
    And Or Xor Exists
    """
)
# Functions that sqlglot has no class for, by name.
ANONYMOUS = words(
    """
    now hypot log1p expm1 pmod positive bround octet_length find_in_set btrim format_number
    make_date date_part datepart weekday timestamp_seconds timestamp_millis timestamp_micros
    array_repeat get cardinality nullifzero zeroifnull every some
    """
)
AGGREGATE_ANONYMOUS = words("every some")
OURS = {"distance": 4, "distance_m": 4, "has_word": 2, "is_new": 1}
TABLE_FUNCTIONS = frozenset({"Explode", "Posexplode", "Inline", "_ExplodeOuter", "PosexplodeOuter"})


def check_function(source: Source, node: exp.Func) -> None:
    """InvalidQuery unless the function is on the list."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else node.sql_name().lower()
    if isinstance(node, exp.Anonymous):
        if name in OURS:
            _check_arguments(source, node, name)
        elif name not in ANONYMOUS:
            raise source.invalid(f"function {name!r} is not allowed{nearest(name, ANONYMOUS | set(OURS))}", node)
    elif type(node).__name__ not in KNOWN:
        raise source.invalid(f"function {name!r} is not allowed", node)


def _check_arguments(source: Source, node: exp.Anonymous, name: str) -> None:
    wanted, got = OURS[name], len(node.expressions)
    if wanted != got:
        raise source.invalid(f"{name} was given {got} arguments", node, f"{wanted}")
    if name == "has_word" and isinstance(word := node.expressions[1], exp.Literal) and not word.name.strip():
        raise source.invalid("has_word was given an empty word", node, "a word of letters and digits")


def our_function(node: exp.Expr | None) -> str | None:
    """The lower-case name where ``node`` calls one of our functions."""
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return name if name in OURS else None


def expand(tree: exp.Query) -> None:
    """Replace our functions, the clock and lists of parameters by plain Spark expressions, in place."""
    # Breadth first, backwards: the inner call is expanded before the one around it.
    for node in reversed(list(tree.find_all(exp.Anonymous))):
        if (expansion := _EXPANSIONS.get(node.name.lower())) is not None:
            node.replace(expansion(*node.expressions))
    for moment in list(tree.find_all(exp.CurrentTimestamp)):
        moment.replace(exp.Var(this=NOW))
    for today in list(tree.find_all(exp.CurrentDate)):
        today.replace(exp.cast(exp.Var(this=NOW), "DATE"))
    _protect_now(tree)


def print_sql(tree: exp.Expr) -> str:
    """The tree as Spark SQL, without comments; ``{now}`` stands where the time of the window goes."""
    return tree.sql(dialect=DIALECT, identify=True, comments=False)


def _protect_now(tree: exp.Query) -> None:
    """A string of the user's that contains ``{now}`` is cut in two, so that no time is put into it."""
    for node in list(tree.find_all(exp.Literal)):
        if node.is_string and NOW in node.name:
            pieces = node.name.split(NOW)
            texts = [pieces[0] + "{", *("now}" + piece + "{" for piece in pieces[1:-1]), "now}" + pieces[-1]]
            node.replace(exp.func("CONCAT", *(exp.Literal.string(text) for text in texts)))


def double(node: exp.Expr) -> exp.Expr:
    """``node`` as DOUBLE."""
    return exp.cast(node.copy(), "DOUBLE", dialect=DIALECT)


def _distance(*arguments: exp.Expr) -> exp.Expr:
    """Planar: sqrt(dx * dx + dy * dy)."""
    x1, y1, x2, y2 = (double(a) for a in arguments)
    dx, dy = exp.paren(exp.Sub(this=x1, expression=x2)), exp.paren(exp.Sub(this=y1, expression=y2))
    squares = exp.Add(
        this=exp.Mul(this=dx, expression=dx.copy()),
        expression=exp.Mul(this=dy, expression=dy.copy()),
    )
    return exp.Sqrt(this=squares)


def _distance_m(*arguments: exp.Expr) -> exp.Expr:
    """Great circle, by the haversine formula, whose argument is held to 1 against rounding (and stays NULL)."""
    lat1, lon1, lat2, lon2 = (f"RADIANS({print_sql(double(a))})" for a in arguments)
    half = f"POW(SIN(({lat2} - {lat1}) / 2), 2) + COS({lat1}) * COS({lat2}) * POW(SIN(({lon2} - {lon1}) / 2), 2)"
    held = f"IF({half} > CAST(1 AS DOUBLE), CAST(1 AS DOUBLE), {half})"
    text = f"2 * CAST({EARTH_RADIUS_M} AS DOUBLE) * ASIN(SQRT({held}))"
    return exp.maybe_parse(text, dialect=DIALECT)


def words_of(text: exp.Expr) -> exp.Expr:
    """The words of a text in lower case: its maximal runs of letters and digits, and maybe an empty one."""
    return exp.func("SPLIT", exp.Lower(this=text.copy()), exp.Literal.string(r"[^\p{L}\p{N}]+"), dialect=DIALECT)


def _has_word(text: exp.Expr, word: exp.Expr) -> exp.Expr:
    """Splitting leaves empty strings at the ends, so the empty word is excluded by hand."""
    found = exp.ArrayContains(this=words_of(text), expression=exp.Lower(this=word.copy()))
    return exp.paren(exp.and_(found, exp.NEQ(this=word.copy(), expression=exp.Literal.string(""))))


_EXPANSIONS: dict[str, Callable[..., exp.Expr]] = {
    "distance": _distance,
    "distance_m": _distance_m,
    "has_word": _has_word,
    "now": lambda: exp.Var(this=NOW),
}
