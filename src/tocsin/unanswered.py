"""What a request over HTTP may raise when nobody answers it."""

from __future__ import annotations

import httpx

# AttributeError is anyio's: a socket that is reset in the step in which it was connected has no peer to name.
UNANSWERED = (httpx.HTTPError, AttributeError)
