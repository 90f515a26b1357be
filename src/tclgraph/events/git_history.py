"""Read the history of a git repository as a log: which author changed which file, and when.

Every file that a commit adds, changes or deletes is an event. Its source is the author, its target
is the path of the file, and its time is the committer time. A commit that was rebased still has the
author time of its first draft, but its committer time is that of its place in the history.

Commits come in the order of `git log --date-order`, reversed: oldest first, and parents before
their children. If a clock was wrong, times can go backwards all the same; then the stable sort of
`EventStream.from_columns` moves the events, and commits of equal times keep their order. The files
of a commit are simultaneous events in the order of their paths. A renamed file is deleted and
added. Merge commits are left out, because the history contains the commits that they merge.

No e-mail address is stored: the key of an author is the beginning of the address's SHA-256 digest.
"""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from tclgraph.errors import InputError
from tclgraph.events.stream import EventStream, GraphKind

PREFIX = "git:"
"""Beginning of the name of a log that is a git history; the path of the repository follows."""

_KEY_LENGTH = 12
# The user's configuration must not change the output.
_SETTINGS = ("log.showRoot=true", "log.showSignature=false", "diff.relative=false")
# The header of a commit begins with a slash, because no path in a repository does. It has the short
# id, the committer time in seconds, and the author's e-mail address as corrected by .mailmap.
_LOG = (
    *("log", "--date-order", "--reverse", "--no-merges", "--no-renames"),
    *("--name-only", "-z", "--encoding=UTF-8", "--format=/%h %ct %aE"),
)
# Git sets these variables in a hook, and they would override the path of the repository.
_OVERRIDES = ("GIT_DIR", "GIT_WORK_TREE")


def repository_of(log: str) -> Path | None:
    """Return the path of the repository that a log names; None if the log is not a git history.

    >>> repository_of("git:work/project"), repository_of("log.csv")
    (PosixPath('work/project'), None)
    """
    return Path(log.removeprefix(PREFIX)) if log.startswith(PREFIX) else None


def read_git_history(repository: Path, *, kind: GraphKind = "bipartite") -> EventStream:
    """Read the history of the checked-out commit; `repository` is any folder of the repository."""
    if not repository.is_dir():
        raise InputError(
            f"cannot read {PREFIX}{repository}: there is no such folder; "
            "give the path of a git repository"
        )
    if _run_git(repository, "rev-parse", "--is-shallow-repository").strip() == b"true":
        raise InputError(
            f"cannot read {PREFIX}{repository}: the repository is a shallow clone, which lacks a "
            f"part of the history; run: git -C {repository} fetch --unshallow"
        )
    source: list[str] = []
    target: list[str] = []
    time: list[int] = []
    for commit, seconds, author, paths in _commits(_run_git(repository, *_LOG)):
        if not seconds.isdigit():
            raise InputError(
                f"cannot read {PREFIX}{repository}: commit {commit} has no valid time; "
                f"correct it with: git -C {repository} replace --edit {commit}"
            )
        source += [author] * len(paths)
        target += paths
        time += [int(seconds)] * len(paths)
    if not time:
        raise InputError(
            f"cannot read {PREFIX}{repository}: no commit changes a file; "
            "give a repository with changes"
        )
    return EventStream.from_columns(pl.Series(source), pl.Series(target), time, kind=kind)


def _commits(output: bytes) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield the short id, the time, the author's key and the sorted paths of every commit."""
    for section in (b"\0" + output).split(b"\0/")[1:]:
        header, _, names = section.partition(b"\0")
        commit, seconds, email = header.split(b" ", 2)
        # With -z, git ends the header with NUL and nevertheless begins a new line for the paths.
        paths = sorted(filter(None, names.removeprefix(b"\n").split(b"\0")))
        yield (
            commit.decode(),
            seconds.decode(),
            hashlib.sha256(email).hexdigest()[:_KEY_LENGTH],
            [path.decode(errors="backslashreplace") for path in paths],
        )


def _run_git(repository: Path, *arguments: str) -> bytes:
    """Return the output of git; if it fails, raise an `InputError` with its reason."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    environment = {name: text for name, text in os.environ.items() if name not in _OVERRIDES}
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *settings, *arguments],
            env={**environment, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise InputError(
            f"cannot read {PREFIX}{repository}: the program git does not start "
            f"({error.strerror}); install git"
        ) from None
    if done.returncode:
        raise InputError(
            f"cannot read {PREFIX}{repository}: {_reason(done)}; "
            "give a repository that `git log` can read"
        )
    return done.stdout


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return git's sentence about its failure, without warnings before it and advice after it."""
    lines = done.stderr.decode(errors="replace").splitlines()
    for line in lines:
        if line.startswith("fatal: "):
            return line.removeprefix("fatal: ")
    return lines[0] if lines else f"git ended with code {done.returncode}"
