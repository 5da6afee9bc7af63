"""``tocsin up``: the whole system on this machine, as separate processes with one log."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from tocsin.cli.options import ConfigFile, DataDir, Sets, settings
from tocsin.config import Resolved
from tocsin.system.backoff import Backoff
from tocsin.system.parts import Addresses, broker_names, parts_of
from tocsin.system.ports import free_ports
from tocsin.system.supervisor import Supervisor
from tocsin.system.view import JsonView, TextView
from tocsin.tokens import ensure_secret

DRAIN = "3s"  # when all brokers stop together, there is nobody to send subscribers to


def up(
    brokers: Annotated[int, typer.Option(help="How many brokers.", min=1, max=64)] = 3,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start a process again that ended by itself, with growing pauses.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every line as a JSON object.")] = False,
    sets: Sets = None,
) -> None:
    """Start the [bold]whole system[/bold]: cluster, coordinator and brokers, and show what they say.

    Ports are the configured ones, else the usual ones where they are free. Ctrl-C stops everything in order: brokers,
    coordinator, cluster. A process that ends by itself is told; with --restart it is started again.
    """
    resolved = settings(config, sets, {"cluster.data_dir": data_dir})
    ensure_secret(resolved.config.secret_path)
    addresses = _addresses(resolved, brokers)
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
    if supervisor.ended_unasked and not restart:
        raise typer.Exit(1)


def _addresses(resolved: Resolved, brokers: int) -> Addresses:
    """The ports that are configured; else the usual ones, or others where those are taken."""
    config, names = resolved.config, broker_names(brokers)
    usual = [config.cluster.port, config.coordinator.port, *_ports(config.broker.port, brokers)]
    sections = ["cluster", "coordinator", *["broker"] * brokers]
    free = zip(sections, usual, free_ports(usual, config.cluster.host), strict=True)
    chosen = [wished if _is_set(resolved, section) else found for section, wished, found in free]
    ports = dict(zip(names, chosen[2:], strict=True))
    return Addresses(chosen[0], chosen[1], ports, config.cluster.host, config.http.scheme)


def _ports(first: int, count: int) -> list[int]:
    """One after the other from the first on; any, where that is 0."""
    return [first + number if first else 0 for number in range(count)]


def _is_set(resolved: Resolved, section: str) -> bool:
    return f"{section}.port" in resolved.sources and getattr(resolved.config, section).port != 0


def _common(resolved: Resolved, sets: list[str], as_json: bool) -> dict[str, str]:
    """What every process gets, besides the file and the environment that it reads itself."""
    found = dict(pair.split("=", 1) for pair in sets)
    if "broker.drain_timeout" not in resolved.sources:
        found["broker.drain_timeout"] = DRAIN
    return found | ({"log.format": "json"} if as_json else {})


def _greet(view: TextView | JsonView, addresses: Addresses, resolved: Resolved) -> None:
    where = {"cluster": addresses.cluster_url, "coordinator": addresses.coordinator_url}
    where |= {name: addresses.url(port) for name, port in addresses.brokers.items()}
    here = f"--coordinator {addresses.coordinator_url} --data-dir {resolved.config.data_dir}"
    line = f"tocsin subscribe news --topic {here}"
    if isinstance(view, JsonView):
        view.tell({"ready": where, "try": line})
        return
    console = Console(soft_wrap=True, highlight=False)
    console.print("\n[bold]Everything runs.[/bold]")
    for name, url in where.items():
        console.print(f"  {name:<12} {url}")
    console.print("In another terminal:")
    console.print(f"  {line}", markup=False)
    console.print("Ctrl-C stops everything.\n")


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
