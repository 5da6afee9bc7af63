r"""Regular expressions that end: a pattern must be written in the query and must not backtrack without bound.

Java tries every way to divide a text among repetitions, and nothing can end it while it does: not the
cancelling of a job, and for a constant not even the optimizer of Spark, which evaluates it before any job
runs. ``(a+)+b`` needs twice as long for each further ``a``. So what may match in several ways (``*``, ``+``,
``?``, ``{1,3}``, ``|``) must not stand inside groups that are repeated more than ``MAX_TIMES`` times, taken
together where they stand in each other. Possessive repetitions (``a++``) and atomic groups (``(?>…)``) try one way
only and are free.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from tocsin.compiler.parse import Source

MAX_TIMES = 4
_PATTERNED = (
    *(exp.RegexpLike, exp.RegexpReplace, exp.RegexpExtract, exp.RegexpExtractAll, exp.RegexpCount),
    *(exp.RegexpInstr, exp.RegexpSubstr, exp.RegexpSplit),
)
_TOKEN = re.compile(
    r"""(?P<escape>\\.) | (?P<open>\((?:\?(?:<?[=!]|<\w+>|[a-zA-Z-]*:|>|[a-zA-Z-]+(?=\))))?)
      | (?P<close>\)) | (?P<choice>\|) | (?P<times>[*+?] | \{(?P<least>\d+)(?P<comma>,)?(?P<most>\d*)\}) (?P<mode>[+?]?)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_PART = re.compile(r"(?P<quoted>\\Q.*?(?:\\E|\Z)|\\c.)|\\.|.", re.DOTALL)
_COMMENTED = re.compile(r"\(\?[a-zA-Z-]*x")  # a mode in which anything may stand in comments


def check_pattern(source: Source, node: exp.Expr) -> None:
    """InvalidQuery unless the pattern that ``node`` may have is one that ends."""
    if not isinstance(node, _PATTERNED):
        return
    pattern = node.args["expression"]
    if not isinstance(pattern, exp.Literal):
        raise source.invalid("this regular expression is computed", node, "a pattern that is written as one text")
    if may_explode(pattern.name):
        raise source.invalid(
            f"the pattern {pattern.name!r:.60} may take for ever",
            node,
            "no repetition or choice inside a repeated group, or possessive ones such as (?:a++)*",
        )


def may_explode(pattern: str) -> bool:
    """Whether a repeated group can match the same text in several ways."""
    if _COMMENTED.search(pattern):
        return True
    groups, atom = [_Group()], 0  # ``atom``: how often what came last repeats something that varies
    for token in _TOKEN.finditer(_plain(pattern)):
        if token["open"]:
            groups.append(_Group(is_atomic=token["open"] == "(?>"))
            atom = 0
        elif token["close"] and len(groups) > 1:
            closed = groups.pop()
            atom = 0 if closed.is_atomic else closed.times
            groups[-1].note(atom)
        elif token["times"]:
            atom = 0 if token["mode"] == "+" else atom * _most(token)
            if atom > MAX_TIMES:
                return True
            groups[-1].note(atom or _varies(token))
        else:
            groups[-1].note(bool(token["choice"]))
            atom = 0
    return False


@dataclass(slots=True)
class _Group:
    """A group that is open; what varies in it is repeated up to ``times`` times."""

    is_atomic: bool = False
    times: int = 0

    def note(self, times: int) -> None:
        self.times = max(self.times, times)


def _plain(pattern: str) -> str:
    """The pattern with a letter in place of each [class], \\Q text \\E and \\c sign, in which nothing repeats."""
    kept, depth, at = [], 0, 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        assert part is not None
        depth += part[0] == "["
        if not depth:
            kept.append("q" if part["quoted"] else part[0])
        elif part[0] == "]":
            depth -= 1
            kept.append("" if depth else "c")
        at = part.end()
    return "".join(kept)


def _most(token: re.Match[str]) -> int:
    """How often a repetition repeats at most; without a bound, more than is good."""
    if token["times"] == "?":
        return 1
    if not token["least"] or (token["comma"] and not token["most"]):
        return MAX_TIMES + 1
    return int(token["most"] or token["least"])


def _varies(token: re.Match[str]) -> bool:
    return token["mode"] != "+" and (not token["least"] or (bool(token["comma"]) and token["most"] != token["least"]))
