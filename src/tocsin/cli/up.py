"""``tocsin up``: the whole system on this machine, as separate processes with one log."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from tocsin.cli.options import ConfigFile, DataDir, Sets, settings
from tocsin.config import Resolved
from tocsin.errors import BadArgument
from tocsin.system.backoff import Backoff
from tocsin.system.parts import DASHBOARD, ORIGINS, Addresses, broker_names, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.supervisor import Supervisor
from tocsin.system.view import JsonView, TextView
from tocsin.tokens import ensure_secret, read_secret

MAX_PORT = 65535
DRAIN = "3s"  # when all brokers stop together, there is nobody to send subscribers to


def up(
    brokers: Annotated[int, typer.Option(help="How many brokers.", min=1, max=64)] = 3,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start a process again that ended by itself, with growing pauses.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every line as a JSON object.")] = False,
    dashboard: Annotated[
        bool | None,
        typer.Option(
            "--dashboard/--no-dashboard", help="Serve the dashboard, too.", show_default="where it is installed"
        ),
    ] = None,
    sets: Sets = None,
) -> None:
    """Start the [bold]whole system[/bold]: cluster, coordinator, brokers and dashboard, and show what they say.

    Ports are the configured ones, else the usual ones where they are free. Ctrl-C stops everything in order: dashboard,
    brokers, coordinator, cluster. A process that ends by itself is told; with --restart it is started again.
    """
    resolved = settings(config, sets, {"cluster.data_dir": data_dir})
    ensure_secret(resolved.config.secret_path)
    has_dashboard = find_spec("plotly") is not None if dashboard is None else dashboard
    addresses = _addresses(resolved, brokers, has_dashboard)
    parts = parts_of(resolved.config.data_dir, addresses, _common(resolved, sets or [], as_json))
    names, limits = [part.name for part in parts], resolved.config.up
    view = JsonView(sys.stdout) if as_json else TextView(Console(), names)
    supervisor = Supervisor(parts, view, config=config, backoff=Backoff() if restart else None)
    with _ended_by_signals(supervisor):
        try:
            supervisor.start(limits.start_timeout)
            _greet(view, addresses, resolved)
            supervisor.watch()
        finally:
            supervisor.stop(limits.stop_timeout)
    if supervisor.unheard is not None:
        raise supervisor.unheard
    if supervisor.ended_unasked and not restart:
        raise typer.Exit(1)


def _addresses(resolved: Resolved, brokers: int, has_dashboard: bool) -> Addresses:
    """The ports that are configured, if they are free; else the usual ones, or others where those are taken.

    Hosts are the configured ones, else the cluster's.
    """
    config, names = resolved.config, broker_names(brokers)
    usual = [config.cluster.port, config.coordinator.port, config.dashboard.port, *_ports(config.broker.port, brokers)]
    sections = ["cluster", "coordinator", "dashboard", *["broker"] * brokers]
    needed = [_is_set(resolved, section) and (has_dashboard or section != DASHBOARD) for section in sections]
    chosen = free_ports(usual, config.cluster.host, needed=needed)
    ports = dict(zip(names, chosen[3:], strict=True))
    board = chosen[2] if has_dashboard else None
    hosts = {one: getattr(config, one).host for one in sections if f"{one}.host" in resolved.sources}
    return Addresses(chosen[0], chosen[1], ports, config.cluster.host, config.http.scheme, board, hosts)


def _ports(first: int, count: int) -> list[int]:
    """One after the other from the first on; any, where that is 0."""
    if first + count - 1 > MAX_PORT:
        raise BadArgument("broker.port", f"at most {MAX_PORT - count + 1}, since {count} brokers take one each", first)
    return [first + number if first else 0 for number in range(count)]


def _is_set(resolved: Resolved, section: str) -> bool:
    return f"{section}.port" in resolved.sources and getattr(resolved.config, section).port != 0


def _common(resolved: Resolved, sets: list[str], as_json: bool) -> dict[str, str]:
    """What every process gets, besides the file and the environment that it reads itself."""
    found = dict(pair.split("=", 1) for pair in sets)
    if "broker.drain_timeout" not in resolved.sources:
        found["broker.drain_timeout"] = DRAIN
    if resolved.config.http.allowed_origins:
        found[ORIGINS] = resolved.config.http.allowed_origins
    return found | ({"log.format": "json"} if as_json else {})


def _greet(view: TextView | JsonView, addresses: Addresses, resolved: Resolved) -> None:
    where = {"cluster": addresses.cluster_url, "coordinator": addresses.coordinator_url}
    where |= {name: addresses.broker_url(name) for name in addresses.brokers}
    if addresses.dashboard_url:
        where[DASHBOARD] = addresses.dashboard_url
    here = f"--coordinator {addresses.coordinator_url} --data-dir {resolved.config.data_dir}"
    line = f"tocsin subscribe news --topic {here}"
    if isinstance(view, JsonView):
        view.tell({"ready": where, "try": line})
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print("\n[bold]Everything runs.[/bold]")
    for name, url in where.items():
        console.print(f"  {name:<12} {url}")
    entrance = _entrance(addresses, resolved)
    if entrance and console.is_terminal:  # a log is no place for an address that lets somebody in
        console.print("In a browser, good for one visitor (others paste a token):")
        console.print(f"  {entrance}", markup=False)
    console.print("In another terminal:")
    console.print(f"  {line}", markup=False)
    console.print("Ctrl-C stops everything.\n")


def _entrance(addresses: Addresses, resolved: Resolved) -> str | None:
    if addresses.dashboard_url is None:
        return None
    from tocsin.dashboard.entering import entrance

    config = resolved.config
    return entrance(addresses.dashboard_url, read_secret(config.secret_path), config.dashboard.enter_ttl)


@contextmanager
def _ended_by_signals(supervisor: Supervisor) -> Iterator[None]:
    """The first Ctrl-C, SIGTERM or closed terminal stops in order; a second Ctrl-C kills what has not ended."""

    def end(number: int, frame: FrameType | None) -> None:
        supervisor.interrupt()
        signal.signal(signal.SIGINT, before[signal.SIGINT])

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
