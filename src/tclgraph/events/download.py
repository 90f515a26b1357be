"""Fetch one file over HTTP: whole or not at all, with progress."""

import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias

from tclgraph.errors import InputError
from tclgraph.events.writers import replacing

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how much is done and how much there is; 0 where the whole is not known."""

_CHUNK_BYTES = 1 << 20
_PATIENCE_SECONDS = 30


def download(
    url: str, path: Path, *, check: Callable[[Path], None], progress: Progress | None = None
) -> None:
    """Fetch `url`, let `check` look at it, and only then put it at `path`."""
    with replacing(path) as temporary:
        try:
            with (
                urllib.request.urlopen(url, timeout=_PATIENCE_SECONDS) as response,
                temporary.open("wb") as file,
            ):
                total = int(response.headers.get("Content-Length") or 0)
                done = 0
                while chunk := response.read(_CHUNK_BYTES):
                    file.write(chunk)
                    done += len(chunk)
                    if progress:
                        progress(done, total)
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            reason = getattr(error, "reason", error)
            raise InputError(f"could not download {url} ({reason})") from None
        if total and done != total:
            raise InputError(f"could not download {url} (it broke off at {done} of {total} bytes)")
        check(temporary)
