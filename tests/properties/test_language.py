"""The laws of the language: print then parse is identity, and no text breaks the parser."""

from decimal import Decimal

import sqlglot
from hypothesis import given
from hypothesis import strategies as some
from sqlglot.tokens import TokenType

from tocsin.errors import StatementError
from tocsin.language import statements as st
from tocsin.language.parser import complete_statement, parse_script, parse_statement
from tocsin.language.printer import to_sql
from tocsin.model.catalog import BrokerSpec, ChannelSpec, Column, DatasetSpec, FeedSpec, Parameter, Retention
from tocsin.model.types import SCALARS, SqlType

KEYWORDS = [
    *("IF", "NOT", "EXISTS", "PRIMARY", "KEY", "AS", "SELECT", "WITH", "DATASET", "CHANNEL", "ARRAY", "NULL", "TRUE"),
    *("DATE", "TIMESTAMP", "PERIOD", "RETAIN", "AND", "FROM", "INTO", "ON", "TO", "OF", "IN", "VALUES", "WHERE"),
    *("FORMAT", "HTTP", "ACTIVE", "PUSH", "CONTINUOUS", "CREATE", "DROP", "SHOW", "RECORDS", "AT", "r"),
]
plain = some.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True).filter(
    lambda n: not n.lower().startswith("tocsin_")
)
names = plain | some.sampled_from(KEYWORDS) | some.sampled_from([k.lower() for k in KEYWORDS])
texts = some.text(max_size=12) | some.text(alphabet="ab'\"\\;-/*\n `", max_size=12)
filled = texts.filter(lambda t: bool(t.strip()))
flags = some.booleans()


def distinct(strategy, **size):
    return some.lists(strategy, unique_by=str.lower, **size)


long_decimals = some.builds(
    lambda whole, part: Decimal(f"{whole}.{part}7"), some.integers(-(10**12), 10**12), some.integers(10**20, 10**25)
)
scalars = (
    some.none()
    | flags
    | some.integers(-(10**40), 10**40)
    | some.floats(allow_nan=False, allow_infinity=False)
    | long_decimals
    | texts
)
keys = scalars.filter(lambda v: v is not None)
literals = scalars | some.lists(scalars, max_size=4).map(tuple)


@some.composite
def types(draw, arrays=True):
    name = draw(some.sampled_from(SCALARS))
    precision = draw(some.integers(1, 38)) if name == "DECIMAL" else 0
    return SqlType(name, precision, draw(some.integers(0, precision)), arrays and draw(flags))


retentions = some.builds(
    Retention,
    some.none() | some.integers(1, 10**12).map(lambda ms: ms / 1000),
    some.none() | some.integers(1, 10**15),
    some.none() | some.integers(1, 10**15),
)


@some.composite
def datasets(draw):
    columns = [Column(n, draw(types()), draw(flags)) for n in draw(distinct(names, min_size=1, max_size=6))]
    scalar = [c.name for c in columns if not c.type.is_array]
    key = tuple(draw(some.permutations(scalar))[: draw(some.integers(0, len(scalar)))])
    marked = tuple(Column(c.name, c.type, c.not_null or c.name in key) for c in columns)
    return DatasetSpec(draw(names), marked, key, draw(flags), draw(retentions))


fragments = some.sampled_from(
    [" ", "\n", "/* ; ' /* n */ */", "-- ; '\n", "r.id", "*", ", ", " = :p", "`a;b`", "||", "1.5e3", "é", "[0]"]
)
strings = some.sampled_from(["'it''s;'", r"'a\';b'", '"x;y"', r'"\";"', r"r'\'", "';'", "'/*'", "'--'"])
inner = some.lists(fragments | strings.map(lambda s: f" {s} "), max_size=8).map("".join)
queries = some.builds(
    lambda verb, a, b, c: f"{verb} {a} ({b} y) {c} x",
    some.sampled_from(["SELECT", "with", "(SELECT 1) UNION SELECT"]),
    inner,
    inner,
    inner,
)


@some.composite
def channels(draw):
    parameters = tuple(Parameter(n, draw(types())) for n in draw(distinct(names, max_size=4)))
    continuous = draw(flags)
    period = None if continuous else draw(some.integers(1, 10**9)) / 1000
    return ChannelSpec(draw(names), parameters, draw(queries), continuous, draw(flags), period, draw(retentions))


@some.composite
def feeds(draw):
    kind = draw(some.sampled_from(["http", "directory", "kafka"]))
    form = draw(some.sampled_from(["json", "csv", "parquet"]))
    own = {
        "http": (),
        "directory": (("path", draw(filled)), ("format", form)),
        "kafka": (("topic", draw(filled)), ("servers", "a.example:9092,[::1]:9093")),
    }[kind]
    added = draw(some.dictionaries(filled.filter(lambda k: k not in ("path", "format", "topic", "servers")), texts))
    return FeedSpec(draw(names), draw(names), kind, own + tuple(added.items()))


@some.composite
def inserts(draw):
    width = draw(some.integers(1, 4))
    columns = draw(some.just([]) | distinct(names, min_size=width, max_size=width))
    row = some.tuples(*[literals] * width)
    return st.InsertRecords(draw(names), tuple(columns), tuple(draw(some.lists(row, min_size=1, max_size=3))))


@some.composite
def deletes(draw):
    columns = tuple(draw(distinct(names, min_size=1, max_size=3)))
    rows = some.lists(some.tuples(*[keys] * len(columns)), min_size=1, max_size=3)
    return st.DeleteRecords(draw(names), columns, tuple(draw(rows)))


@some.composite
def subscribes(draw):
    positional = [(None, v) for v in draw(some.lists(literals, max_size=3))]
    named = [(n, draw(literals)) for n in draw(distinct(names, max_size=3))]
    return st.Subscribe(draw(names), tuple(positional + named), draw(names))


@some.composite
def create_channels(draw):
    lenient, replacing = draw(some.sampled_from([(False, False), (True, False), (False, True)]))
    return st.CreateChannel(draw(channels()), lenient, replacing)


urls = some.sampled_from(["http://localhost:7070", "https://broker.example/a'b", "http://[::1]:1"])
narrowed = some.sampled_from([st.Shown.SUBSCRIPTIONS, st.Shown.EXECUTIONS, st.Shown.DEAD_LETTERS])
statements = some.one_of(
    some.builds(st.CreateDataset, datasets(), flags),
    some.builds(st.AlterDatasetAddColumn, names, some.builds(Column, names, types()), flags),
    some.builds(st.AlterDatasetDropColumn, names, names, flags),
    some.builds(st.LoadDataset, names, filled, some.sampled_from(["json", "csv", "parquet"])),
    inserts(),
    deletes(),
    some.builds(st.CreateFeed, feeds(), flags),
    create_channels(),
    some.builds(st.CreateBroker, some.builds(BrokerSpec, names, urls), flags),
    some.builds(st.CreateBroker, some.builds(BrokerSpec, names, urls), or_replace=flags),
    some.sampled_from([st.DropDataset, st.DropFeed, st.DropChannel, st.DropBroker]).flatmap(
        lambda drop: some.builds(drop, names, flags)
    ),
    some.sampled_from([st.PauseFeed, st.ResumeFeed, st.PauseChannel, st.ResumeChannel, st.ExplainChannel]).flatmap(
        lambda kind: some.builds(kind, names)
    ),
    subscribes(),
    some.builds(st.Unsubscribe, filled, some.none() | names, flags),
    some.builds(st.ChangeSubscription, filled, names),
    some.builds(st.Show, some.sampled_from(st.Shown)),
    some.builds(st.Show, narrowed, names),
    some.builds(st.Describe, names, some.sampled_from([None, "dataset", "channel"])),
    some.builds(st.Select, queries),
)


@given(statements)
def test_parsing_what_was_printed_gives_the_statement_back(statement):
    again = parse_statement(to_sql(statement))
    assert again == statement
    assert to_sql(again) == to_sql(statement)  # tells 1, 1.0 and TRUE apart, which compare equal


@given(some.lists(statements, max_size=4))
def test_a_script_splits_into_its_statements(script):
    assert parse_script(";\n".join(map(to_sql, script))) == script


@given(statements)
def test_a_statement_is_complete_with_its_semicolon_only(statement):
    assert complete_statement(to_sql(statement) + ";")
    assert not complete_statement(to_sql(statement))


@given(queries)
def test_spark_sees_one_query_where_we_see_one(query):
    tokens = sqlglot.tokenize(query, dialect="spark")
    assert TokenType.SEMICOLON not in {token.token_type for token in tokens}


def check_refusal(text, error):
    """The error's place lies in the text, or one past it."""
    lines = text.split("\n")
    assert error.span is not None
    assert 1 <= error.span.line <= len(lines)
    assert 1 <= error.span.column <= len(lines[error.span.line - 1]) + 1


soup = some.lists(
    some.sampled_from([*KEYWORDS, "LOAD", "INSERT", "DELETE", "FEED", "BROKER", "SUBSCRIBE", "DESCRIBE", "ALTER"])
    | some.sampled_from(["(", ")", "[", "]", ",", "=", "=>", "<", ">", "-", "'10s'", "'", "`", "/*", "--", "1", "a"])
    | some.text(max_size=3),
    max_size=12,
).map(" ".join)


@given(soup)
def test_any_text_parses_or_is_refused_with_its_place(text):
    try:
        parse_script(text)
    except StatementError as error:
        check_refusal(text, error)


@given(statements, some.data())
def test_a_damaged_statement_parses_or_is_refused_with_its_place(statement, data):
    text = to_sql(statement)
    start = data.draw(some.integers(0, len(text)))
    damaged = text[:start] + data.draw(texts) + text[start + data.draw(some.integers(0, 5)) :]
    try:
        parse_script(damaged)
    except StatementError as error:
        check_refusal(damaged, error)
