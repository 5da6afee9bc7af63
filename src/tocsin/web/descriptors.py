"""Files that a process may have open: every connection is one, and so is every log and segment."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger(__name__)

OWN = 512  # what a server has open besides its connections


def allow_connections(count: int, usual: int | None = None) -> None:
    """Raise the process's limit so that ``count`` connections fit; where the system forbids it, say so.

    It is a warning, unless so many are the ``usual`` ones: then nobody has asked for them.
    """
    wanted = count + OWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
        if allowed < wanted:
            told = "%d connections are configured, and the system allows %d open files; `ulimit -n` raises that"
            log.log(logging.INFO if count == usual else logging.WARNING, told, count, allowed)
