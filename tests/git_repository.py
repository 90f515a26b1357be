"""Real git repositories for tests."""

import os
import subprocess
from pathlib import Path

START = 1_700_000_000


class Repository:
    """A new repository; the times of its commits count from `START`.

    The configuration of the user and of the machine does not apply.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str, author: str = "ann", time: int = 0, author_time: int = 0) -> str:
        """Run git in the repository and return its output."""
        settings = ["-c", f"user.name={author}", "-c", f"user.email={author}@example.org"]
        environment = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_COMMITTER_DATE": f"@{START + time} +0000",
            "GIT_AUTHOR_DATE": f"@{START + author_time} +0000",
        }
        return subprocess.run(
            ["git", "-C", str(self.path), *settings, *words],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def commit(self, *names: str, author: str = "ann", time: int = 0, author_time: int = 0) -> None:
        """Change these files, and commit all changes."""
        for name in names:
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{author} {time}\n")
        self.git("add", "--all")
        message = ("--allow-empty", "--message", "/a commit")
        self.git("commit", "--quiet", *message, author=author, time=time, author_time=author_time)
