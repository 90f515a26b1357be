"""Download a file over HTTP."""

import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias

from tclgraph.errors import InputError
from tclgraph.events.writers import replacing

Progress: TypeAlias = Callable[[int, int], None]
"""Progress callback, called with the amount done and the total; a total of 0 means "unknown"."""

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30


def download(
    url: str, path: Path, *, check: Callable[[Path], None], progress: Progress | None = None
) -> None:
    """Download `url` to `path` if the complete file passes `check`.

    `check` raises an error to reject the file. A failed download leaves nothing at `path`.
    """
    with replacing(path) as temporary:
        try:
            with (
                urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response,
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
            raise InputError(f"cannot download {url} ({reason})") from None
        if total and done != total:
            raise InputError(
                f"cannot download {url} (the connection closed after {done} of {total} bytes)"
            )
        check(temporary)
