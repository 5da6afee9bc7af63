r"""Regular expressions that end: a pattern must be written in the query and must not backtrack without bound.

Java tries every way to divide a text among repetitions, and nothing can end it while it does: not the
cancelling of a job, and for a constant not even the optimizer of Spark, which evaluates it before any job
runs. ``(a+)+b`` needs twice as long for each further ``a``. So what may match in several ways (``*``, ``+``,
``?``, ``{1,3}``, ``|``) must not stand inside a group that is repeated more than ``MAX_TIMES`` times. Possessive
repetitions (``a++``) and atomic groups (``(?>…)``) try one way only and are free.
"""

from __future__ import annotations

import re

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
_PART = re.compile(r"(?P<quoted>\\Q.*?(?:\\E|\Z))|\\.|.", re.DOTALL)
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
    groups, is_atomic, atom = [False], [False], False
    for token in _TOKEN.finditer(_plain(pattern)):
        if token["open"]:
            groups.append(False)
            is_atomic.append(token["open"] == "(?>")
            atom = False
        elif token["close"] and len(groups) > 1:
            atom = groups.pop() and not is_atomic.pop()
            groups[-1] |= atom
        elif token["times"]:
            if atom and _is_many(token) and token["mode"] != "+":
                return True
            groups[-1] |= _varies(token)
        else:
            groups[-1] |= bool(token["choice"])
            atom = False
    return False


def _plain(pattern: str) -> str:
    """The pattern with a letter in place of each [class] and each \\Q text \\E, in which nothing repeats."""
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


def _is_many(token: re.Match[str]) -> bool:
    if not token["least"]:
        return token["times"] != "?"
    return bool(token["comma"] and not token["most"]) or int(token["most"] or token["least"]) > MAX_TIMES


def _varies(token: re.Match[str]) -> bool:
    return token["mode"] != "+" and (not token["least"] or (bool(token["comma"]) and token["most"] != token["least"]))
