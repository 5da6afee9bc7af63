"""Who drives a channel, and which view of its dataset each table reads."""

from __future__ import annotations

import pytest

from support.city_catalog import compiled

NEAR = "distance(r.x, r.y, u.x, u.y) < 300"


@pytest.mark.parametrize(
    ("query", "drivers", "reads"),
    [
        pytest.param("SELECT id FROM Reports", ("Reports",), {"reports_new"}, id="the active dataset drives"),
        pytest.param(
            "SELECT r.id FROM Shelters s JOIN Reports r ON s.cap = r.sev",
            ("Reports",),
            {"reports_new", "shelters_now"},
            id="the first active one, not the first",
        ),
        pytest.param(
            "SELECT r.id FROM Reports r JOIN Users u ON u.x = r.x WHERE is_new(u)",
            ("Users",),
            {"reports_now", "users_new"},
            id="is_new overrides",
        ),
        pytest.param(
            "SELECT a.id FROM Reports a JOIN Reports b ON a.sev = b.sev",
            ("Reports",),
            {"reports_new", "reports_now"},
            id="a dataset twice: new reports meet all",
        ),
        pytest.param(
            "SELECT a.id FROM Reports a JOIN Users b ON a.x = b.x WHERE is_new(a) AND is_new(b)",
            ("Reports", "Users"),
            {"reports_new", "users_new"},
            id="both must be new",
        ),
        pytest.param(
            "WITH c AS (SELECT * FROM Reports) SELECT c.id FROM c JOIN Reports d ON c.sev = d.sev",
            ("Reports",),
            {"reports_new", "reports_now"},
            id="found through WITH",
        ),
        pytest.param(
            "SELECT z.id FROM (SELECT * FROM Reports) z", ("Reports",), {"reports_new"}, id="found in a derived table"
        ),
        pytest.param(
            "SELECT id FROM Reports UNION ALL SELECT cap FROM Shelters s WHERE is_new(s)",
            ("Reports", "Shelters"),
            {"reports_new", "shelters_new"},
            id="each arm has its own",
        ),
        pytest.param(
            "SELECT id FROM Reports EXCEPT SELECT cap FROM Shelters",
            ("Reports",),
            {"reports_new", "shelters_now"},
            id="the right of EXCEPT needs none",
        ),
        pytest.param(
            "SELECT u.user FROM Users u WHERE EXISTS (SELECT 1 FROM Reports r WHERE is_new(r) AND r.x = u.x)",
            ("Reports",),
            {"reports_new", "users_now"},
            id="is_new inside EXISTS",
        ),
        pytest.param(
            f"SELECT r.id FROM Reports r, Users u WHERE (is_new(r) OR is_new(u)) AND {NEAR}",
            ("Reports", "Users"),
            {"reports_new", "users_now", "reports_old", "users_new_before"},
            id="either is new, one appends: its pairs need no before-image",
        ),
        pytest.param(
            "SELECT s.name FROM Shelters s, Users u WHERE (is_new(s) OR is_new(u)) AND s.x = u.x",
            ("Shelters", "Users"),
            {"shelters_new_before", "users_now_before", "shelters_old", "users_new_before"},
            id="either is new, both keyed",
        ),
    ],
)
def test_views(query: str, drivers: tuple[str, ...], reads: set[str]) -> None:
    channel = compiled(query)
    assert channel.drivers == drivers
    assert {r.name for r in channel.relations} == {f"tocsin_{name}" for name in reads}
    assert channel.datasets == {r.dataset for r in channel.relations}


def test_what_matched_before_is_left_out() -> None:
    sql = compiled("SELECT s.name FROM Shelters s, Users u WHERE (is_new(s) OR is_new(u)) AND s.x = u.x").join.sql
    both, one = sql.split("UNION ALL")
    assert "`s`.`__before_x` = `u`.`__before_x`" in both
    assert "`s`.`x` = `u`.`__before_x`" in one


def test_the_sequence_is_the_later_of_two_drivers() -> None:
    sql = compiled(f"SELECT r.id FROM Reports r, Users u WHERE (is_new(r) OR is_new(u)) AND {NEAR}").join.sql
    assert sql.count("GREATEST(`r`.`__seq`, `u`.`__seq`) AS `__seq`") == 2
