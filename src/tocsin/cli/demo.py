"""``tocsin demo``: a city of reports and subscribers on a cluster of its own, for half a minute or until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tocsin.cli.extras import needs
from tocsin.cli.http import connect
from tocsin.cli.options import Json
from tocsin.cli.output import console, note, print_json, tell
from tocsin.cli.signals import ended_by_signals
from tocsin.config import Config, load
from tocsin.tokens import mint, read_secret

if TYPE_CHECKING:
    from tocsin.demo.onlooker import Onlooker
    from tocsin.demo.plan import Plan
    from tocsin.demo.process import ClusterProcess, Servers
    from tocsin.demo.run import DemoRun
    from tocsin.demo.summary import Summary
    from tocsin.demo.view import Screen

REPORT = "report.html"
_TOKEN_S = 30 * 86_400.0  # of the demonstration's own requests: --keep may go on for long
_PERSON_S = 3600.0  # of people's tokens, which they renew

Past = dict[str, Any] | None


def demo(
    seconds: Annotated[float, typer.Option(help="How long the city is fed.")] = 30.0,
    people: Annotated[int, typer.Option(help="People who move through the city.")] = 600,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions on the channels.")] = 3_000,
    connected: Annotated[int, typer.Option(help="How many of the people have connections of their own.")] = 60,
    brokers: Annotated[int, typer.Option(help="How many brokers.", min=1, max=16)] = 2,
    storms: Annotated[bool, typer.Option("--storms", help="Make one district after the other hot.")] = False,
    all_channels: Annotated[
        bool, typer.Option("--all-channels", help="Play all seven channels of the city instead of four.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Let the city go on after the summary, until Ctrl-C.")] = False,
    directory: Annotated[Path, typer.Option("--dir", help="Directory for it all, made fresh.")] = Path(".demo"),
    as_json: Json = False,
) -> None:
    """Run a [bold]demonstration[/bold]: emergencies in a generated city, four channels, thousands of subscriptions.

    Starts a cluster, a coordinator, brokers and a dashboard of its own, and feeds them while people log in. Some
    people are connected to the brokers, the others are counted where a broker would receive. Checks that every
    notification came exactly once, and exits with 1 if one did not. A machine that is too slow for the feed slows it
    down. With --keep people and reports go on after the summary, without being counted, until Ctrl-C ends everything.
    """
    with needs("cluster"):
        from tocsin.demo.plan import Plan
        from tocsin.demo.process import ClusterProcess, Servers
        from tocsin.demo.view import Screen
    plan = Plan(
        seconds, people, subscriptions, datetime.now(UTC), connected=connected, storms=storms,
        all_channels=all_channels, goes_on=keep,
    )  # fmt: skip

    def tell_all(summary: Summary, past: Past) -> None:
        _report(summary, as_json)
        _write(directory / REPORT, summary, past)

    with ended_by_signals(), Screen(Console(stderr=True)) as screen:
        process = ClusterProcess(directory, brokers=brokers)
        servers = Servers(process)

        def go_on(run: DemoRun, summary: Summary, past: Past) -> None:
            screen.close()
            tell_all(summary, past)
            _live(run, process, servers)

        try:
            summary, past = _run(plan, process, servers, screen, go_on if keep else None)
            screen.waiting("Stopping everything", 0)
        finally:
            servers.stop()
    if not keep:
        tell_all(summary, past)
    if summary.problems:
        raise typer.Exit(1)


def _run(
    plan: Plan,
    process: ClusterProcess,
    servers: Servers,
    screen: Screen,
    go_on: Callable[[DemoRun, Summary, Past], None] | None,
) -> tuple[Summary, Past]:
    """``go_on`` is called while everything still runs, if there is one."""
    from tocsin.demo.crowd import Crowd
    from tocsin.demo.feeder import Ahead
    from tocsin.demo.process import START_S
    from tocsin.demo.receiver import NoticeReceiver
    from tocsin.demo.run import DemoRun
    from tocsin.demo.view import dashboard_lines

    screen.waiting("Building the city while Spark starts", 0)
    is_connected = plan.connected_people.__contains__
    ahead = Ahead(plan.events())
    try:
        process.wait_ready(lambda waited: screen.waiting("Starting Spark", waited), START_S)
        servers.start(lambda waited: screen.waiting("Starting coordinator and brokers", waited))
        config = load(process.config_path)
        secret = read_secret(config.secret_path)
        token = mint(secret, "local", ["admin"], _TOKEN_S)
        with connect(config, None, token) as client, NoticeReceiver(secret) as receiver:
            crowd = Crowd(
                servers.coordinator_url, lambda user: mint(secret, user, ["subscribe:*"], _PERSON_S), is_connected
            )
            onlooker = _onlooker(plan, servers, secret, screen)
            for line in dashboard_lines(_entrance(config, servers), plan.seconds, is_kept=plan.goes_on):
                screen.say(line)
            run = DemoRun(client, plan, ahead, receiver, crowd, onlooker.show if onlooker else _unseen)
            crowd.start()
            try:
                run.set_up(process.root / "cluster.log", lambda step: screen.waiting(step, 0))

                def watch(summary: Summary) -> None:
                    process.check()
                    servers.check()
                    screen.watch(summary)

                summary, past = run.play(watch), onlooker.past() if onlooker else None
                if go_on:
                    go_on(run, summary, past)
                return summary, past
            finally:
                crowd.stop()
                if onlooker:
                    onlooker.stop()
    finally:
        ahead.stop()


def _entrance(config: Config, servers: Servers) -> str | None:
    """For a visitor of the dashboard, where there is one."""
    if servers.dashboard_url is None:
        return None
    from tocsin.dashboard.entering import entrance

    return entrance(servers.dashboard_url, read_secret(config.secret_path), config.dashboard.enter_ttl)


def _onlooker(plan: Plan, servers: Servers, secret: bytes, screen: Screen) -> Onlooker | None:
    """Shows the city on the dashboard, where there is one."""
    if servers.dashboard_url is None:
        return None
    from tocsin.demo.onlooker import Onlooker

    onlooker = Onlooker(servers.dashboard_url, secret, plan.scenario, screen.say)
    onlooker.start()
    return onlooker


def _unseen(t: float, records: object) -> None:
    """Where there is no dashboard."""


def _live(run: DemoRun, process: ClusterProcess, servers: Servers) -> None:
    """Until Ctrl-C, or the cluster's end. A broker may be killed: that is something to look at."""
    from tocsin.demo.view import Screen, living_line

    _tell_how_to_go_on(process, servers)
    with Screen(Console(stderr=True)) as screen, suppress(KeyboardInterrupt):

        def watch(reports: int, lag_s: float) -> None:
            process.check()
            screen.living(living_line(reports, lag_s))

        run.live(watch)


def _write(path: Path, summary: Summary, past: Past) -> None:
    from tocsin.demo.process import has_dashboard

    if has_dashboard():
        from tocsin.demo import report

        report.write(path, summary, past)
        note(f"The report with its plots is in {path}")


def _report(summary: Summary, as_json: bool) -> None:
    from tocsin.demo.view import closing_lines, table

    if as_json:
        print_json({**asdict(summary), "has_lagged": summary.has_lagged})
    else:
        out = console()
        out.print(table(summary))
        for line in closing_lines(summary):
            out.print(line, highlight=False, soft_wrap=True)
    for problem in summary.problems:
        tell(problem)


def _tell_how_to_go_on(process: ClusterProcess, servers: Servers) -> None:
    config, coordinator = process.config_path, servers.coordinator_url
    out = Console(stderr=True, soft_wrap=True, highlight=False)
    out.print(
        "The city goes on until Ctrl-C, which ends everything: people stay connected and walk, reports keep coming. "
        "From here on nothing is counted."
    )
    out.print(f"The cluster is at {process.url}, the coordinator at {coordinator}. In another terminal:")
    out.print(f"  tocsin subscribe ByKind kind=fire --coordinator {coordinator} --config {config}", markup=False)
    out.print(f"  tocsin sql --config {config}", markup=False)
    out.print(f"  tocsin status --config {config}", markup=False)
    if entrance := _entrance(load(config), servers):
        out.print(f"  {entrance}    (the dashboard, for one visitor more)", markup=False)
