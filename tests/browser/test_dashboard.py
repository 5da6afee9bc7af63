"""The pages in a real browser, on a real system."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from support.usable import check_fits, check_usable
from tocsin.dashboard import city
from tocsin.scenarios.city import City

PAGES = ("/operator", "/city", "/me", "/lab")
PHONE = {"width": 390, "height": 844}
Opener = Callable[..., Any]


def settled(page: Any) -> None:
    """Until the page has what it shows, or says that there is nothing."""
    expect(page.locator("body > header.bar")).to_be_visible()
    expect(page.locator(".state")).not_to_have_text("connecting")


def near(page: Any, kind: str = "fire", x: float = 100, y: float = 100) -> None:
    """Subscribe to what happens around a place."""
    page.get_by_label("kind (string)").fill(kind)
    page.locator("input[name=x]").fill(str(x))
    page.locator("input[name=y]").fill(str(y))
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#mine li")).to_have_count(1)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_without_complaints_and_can_be_used_by_everyone(visit: Opener, system: Any, path: str) -> None:
    found = visit(path, system.token("operator"))
    settled(found.page)
    if path == "/operator":
        expect(found.page.locator("#brokers tbody tr")).to_have_count(2)
        expect(found.page.locator("#cov-chart .main-svg").first).to_be_visible()
    check_usable(found.page, "light", "dark")
    assert found.complaints == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_fits_a_phone(visit: Opener, system: Any, path: str) -> None:
    page = visit(path, system.token("operator"), viewport=PHONE, is_mobile=True, has_touch=True).page
    settled(page)
    check_fits(page)


def test_the_printed_address_lets_one_visitor_in(visit: Opener, system: Any) -> None:
    entrance = system.entrance()
    first = visit(entrance).page
    expect(first.locator("#brokers tbody tr")).to_have_count(2)
    assert "enter" not in first.url
    second = visit(entrance).page
    expect(second.get_by_role("alert")).to_contain_text("was used before")
    second.get_by_label("Token").fill(system.token("someone", "read", "topic:system"))
    second.get_by_label("Token").press("Enter")
    expect(second.locator("#brokers tbody tr")).to_have_count(2)


def test_who_may_only_read_drains_nothing(visit: Opener, system: Any) -> None:
    page = visit("/operator", system.token("reader", "read", "topic:system")).page
    page.get_by_role("button", name="Drain broker_1").click()
    check_usable(page, "dark")
    page.get_by_role("dialog").get_by_role("button", name="Drain broker_1").click()
    expect(page.get_by_role("alert")).to_contain_text("'coordinator'")
    states = {one["name"]: one["state"] for one in system.ask("coordinator", "GET", "/brokers")["brokers"]}
    assert states["broker_1"] == "live"


def test_a_notification_appears_on_my_page_with_what_the_channel_adds(visit: Opener, system: Any) -> None:
    found = visit("/me", system.token("ann", "subscribe:Near"))
    near(found.page)
    system.report(1, "smoke over the harbour")
    card = found.page.locator("#told > li").first
    expect(card).to_contain_text("smoke over the harbour")
    expect(card).to_contain_text("Town hall")
    expect(card).to_contain_text("severity 4")
    check_usable(found.page, "light", "dark")
    assert found.complaints == []


def test_what_the_channel_adds_is_marked_on_the_map(visit: Opener, system: Any) -> None:
    shelter = City.generate(1).shelters[0]
    system.ask("dashboard", "PUT", "/api/city", {"seed": 1})
    system.ask("cluster", "POST", "/datasets/Shelters/records", {"name": shelter.name, "x": shelter.x, "y": shelter.y})
    found = visit("/me", system.token("fay", "subscribe:Near"))
    near(found.page, "outage", shelter.x, shelter.y)
    expect(found.page.locator("#no-map")).to_be_hidden()
    expect(found.page.locator("#pick")).to_be_visible()
    system.report(40, "dark streets", "outage", shelter.x, shelter.y)
    expect(found.page.locator("#marked")).to_contain_text(shelter.name)
    assert found.complaints == []


def test_who_opens_the_map_late_sees_people_and_no_old_reports(visit: Opener, system: Any) -> None:
    system.ask("dashboard", "PUT", "/api/city", {"seed": 1, "people": 2})
    fire = {"report_id": "r", "kind": "fire", "severity": 3, "x": 100, "y": 100, "radius": 50}
    for t in (6.0, 7.0):
        system.ask("dashboard", "POST", "/topics/city/messages", city.people(t, [1e3, 2e3], [1e3, 2e3], (1e4, 8e3)))
        system.ask("dashboard", "POST", "/topics/city/messages", city.reports(t, [fire]))
    page = visit("/city", system.token("operator")).page
    expect(page.locator("#clock")).to_have_text("7 s from the beginning")
    expect(page.locator(".state")).to_have_text("live")
    system.ask("dashboard", "POST", "/topics/city/messages", city.reports(8.0, [fire]))
    expect(page.locator("#reports li")).to_have_count(1)
    expect(page.locator("#reports")).to_contain_text("8 s")


def test_a_move_to_another_broker_breaks_nothing_on_my_page(visit: Opener, system: Any) -> None:
    found = visit("/me", system.token("bob", "subscribe:Near"))
    page = found.page
    near(page, "flood")
    system.report(10, "before the move", "flood")
    expect(page.locator("#told > li")).to_have_count(1)
    here = page.locator("#link").get_attribute("data-broker")
    there = "broker_2" if here == "broker_1" else "broker_1"
    system.ask("coordinator", "POST", "/plans", {"moves": [{"user": "bob", "to": there, "reason": "a test"}]})
    expect(page.locator("#link li").first).to_contain_text(f"moved from {here} to {there}")
    system.report(11, "after the move", "flood")
    expect(page.locator("#told > li")).to_have_count(2)
    expect(page.locator("#told > li").first).to_contain_text("after the move")
    assert found.complaints == []
    operator = visit("/operator", system.token("operator")).page
    expect(operator.locator("#events")).to_contain_text(f"bob has moved from {here} to {there} (a test)")


def test_policies_are_compared_and_chosen(visit: Opener, system: Any) -> None:
    page = visit("/operator", system.token("operator")).page
    page.get_by_role("button", name="Compare now").click()
    expect(page.locator("#trials tbody tr")).to_have_count(7)
    expect(page.locator("#trials")).to_contain_text("xbal")
    check_usable(page, "light", "dark")
    page.get_by_label("Newcomers are placed by").select_option("round_robin")
    switch(page, "Newcomers will be placed by round_robin instead of nearest.")
    assert system.ask("coordinator", "GET", "/policies")["placement"]["name"] == "round_robin"


def switch(page: Any, sentence: str) -> None:
    """Use the policies that were chosen, after the question."""
    page.get_by_role("button", name="Use these").click()
    expect(page.get_by_role("dialog")).to_contain_text(sentence)
    page.get_by_role("dialog").get_by_role("button", name="Switch policies").click()
    expect(page.get_by_text("These policies are in force now.")).to_be_visible()
    page.locator(".toast").evaluate("(toast) => toast.remove()")


def test_a_switch_does_not_undo_the_one_before(visit: Opener, system: Any) -> None:
    page = visit("/operator", system.token("operator")).page
    migrate, shuffle = page.get_by_label("Some are moved by"), page.get_by_label("Everyone is arranged anew by")
    use = page.get_by_role("button", name="Use these")
    before = system.ask("coordinator", "GET", "/policies")["balancing"]
    expect(migrate).to_have_value(before["migrate"]["name"])
    migrate.select_option("ldm")
    expect(use).to_be_enabled()
    migrate.select_option(before["migrate"]["name"])
    expect(use).to_be_disabled()
    migrate.select_option("ldm")
    switch(page, "Some will be moved by ldm")
    shuffle.select_option("gsh")
    switch(page, "Everyone will be arranged anew by gsh")
    expect(migrate).to_have_value("ldm")
    found = system.ask("coordinator", "GET", "/policies")["balancing"]
    assert (found["migrate"]["name"], found["shuffle"]["name"]) == ("ldm", "gsh")
    system.ask("coordinator", "PUT", "/policies", {"balancing": before})
    expect(shuffle).to_have_value((before["shuffle"] or {"name": "(none)"})["name"])


def test_a_study_is_run_by_its_form_and_drawn(visit: Opener, system: Any) -> None:
    found = visit("/lab", system.token("operator"))
    page = found.page
    expect(page.locator("#papers tbody tr").or_(page.get_by_text("No paper was reproduced")).first).to_be_visible()
    page.get_by_label("Subscribers").fill("200")
    page.get_by_label("Minutes").fill("5")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#schemes tbody tr")).to_have_count(3)
    expect(page.locator("#schemes")).to_contain_text("xbal + simsh")
    for chart in ("#study-cov", "#study-max"):
        expect(page.locator(f"{chart} .scatterlayer .trace")).to_have_count(3)
    check_usable(page, "light", "dark")
    assert found.complaints == []


def test_a_study_that_asks_for_too_much_is_refused_with_the_bound(visit: Opener, system: Any) -> None:
    page = visit("/lab", system.token("operator")).page
    page.get_by_label("Subscribers").fill("90000")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("at most 20,000")


def test_the_operator_sees_channels_and_spark_and_is_warned_of_uneven_load(visit: Opener, system: Any) -> None:
    """One subscriber at one of two brokers is as uneven as can be."""
    page = visit("/operator", system.token("operator")).page
    near(visit("/me", system.token("eve", "subscribe:Near")).page, "gas")
    for number in (30, 31, 32):
        system.report(number, "a smell of gas", "gas")
    row = page.locator("#channels tbody tr", has_text="Near")
    expect(row).to_contain_text("continuous")
    expect(row).to_contain_text(re.compile(r"\d m?s"))
    expect(page.locator("#alerts")).to_contain_text("unevenly loaded: cov")
    expect(page.locator("#tiles")).to_contain_text("ready")
    expect(page.locator("#tiles")).to_contain_text("local")


def test_pages_outlive_a_coordinator_that_is_killed(visit: Opener, system: Any) -> None:
    operator, ida = visit("/operator", system.token("operator")), visit("/me", system.token("ida", "subscribe:Near"))
    near(ida.page, "crime")
    row = operator.page.locator("tr[data-broker=broker_1]")
    expect(row).to_contain_text("live")
    system.kill("coordinator")
    expect(row).to_contain_text("unknown")
    expect(operator.page.locator("#alerts")).to_contain_text("The coordinator at")
    expect(operator.page.locator("#tiles")).to_contain_text("the coordinator is away")
    system.report(50, "a broken window", "crime")
    expect(ida.page.locator("#told > li")).to_have_count(1)
    late = visit("/me", system.token("ida", "subscribe:Near"))  # while it is away, or has just come back
    expect(late.page.locator("#mine li")).to_have_count(1)
    expect(row).to_contain_text("live")
    expect(operator.page.locator("#alerts")).not_to_contain_text("The coordinator at")
    assert operator.complaints + ida.complaints == []


def test_pages_of_one_user_outlive_a_dashboard_that_is_killed(visit: Opener, system: Any) -> None:
    """Each has a gap to get over when it is back, and none takes the other's subscription away."""
    pages = [visit("/operator", system.token("operator")).page for _ in range(2)]
    for page in pages:
        expect(page.locator(".state")).to_have_text("live")
    system.kill("dashboard")
    for page in pages:
        expect(page.locator(".state")).to_contain_text("trying again")
        expect(page.locator("#alerts")).to_contain_text("this page is as of")
    for page in pages:
        expect(page.locator(".state")).to_have_text("live")
        expect(page.locator("#alerts")).not_to_contain_text("this page is as of")
    kept = {one["user"] for one in system.ask("coordinator", "GET", "/assignments")["assignments"] if one["online"]}
    near(visit("/me", system.token("jon", "subscribe:Near")).page, "medical")
    for page in pages:
        expect(page.locator("#tiles dd").nth(4)).to_have_text(str(len(kept) + 1))


def test_who_stays_until_the_token_ends_is_asked_for_another(visit: Opener, system: Any) -> None:
    page = visit("/operator", system.token("operator", ttl_s=60)).page
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("Your token ends at")
    dialog.get_by_label("Token").fill("no token")
    dialog.get_by_role("button", name="Log in").click()
    expect(dialog.get_by_role("alert")).to_contain_text("This is not a token")
    check_usable(page, "light", "dark")
    dialog.get_by_label("Token").fill(system.token("operator"))
    dialog.get_by_role("button", name="Log in").click()
    expect(page.locator(".state")).to_have_text("live")
    expect(page.locator("#brokers tbody tr")).to_have_count(2)


def test_a_drain_empties_a_broker(visit: Opener, system: Any) -> None:
    """The last of them: a drained broker serves nobody until it is started again."""
    people = [visit("/me", system.token(name, "subscribe:Near")).page for name in ("cat", "dan")]
    for page in people:
        near(page, "storm")
    broker = people[0].locator("#link").get_attribute("data-broker")
    page = visit("/operator", system.token("operator")).page
    row = page.locator(f"tr[data-broker={broker}]")
    row.get_by_role("button").click()
    page.get_by_role("dialog").get_by_role("button", name=f"Drain {broker}").click()
    expect(row).to_contain_text(re.compile("drain(ing|ed)"))
    expect(row.locator("[data-online]")).to_have_text("0")
    system.report(20, "still told", "storm")
    for person in people:
        expect(person.locator("#told > li")).to_have_count(1)
