"""Reading the history of git repositories that the tests make."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from tclgraph.errors import InputError
from tclgraph.events.catalog import load
from tclgraph.events.git_history import read_git_history
from tclgraph.events.log_spec import LogSpec
from tclgraph.events.stream import EventStream
from tests.git_repository import START, Repository
from tests.streams import refuse_notices

ODD_NAMES = ["two words", "Übung/ñandú.txt", "\nline", 'quo"te', "tab\tbed", "-rf", "a-b", "a/b"]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ignore the configuration of the user, and repositories around the test's folder."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))


def author_key(author: str) -> str:
    return sha256(f"{author}@example.org".encode()).hexdigest()[:12]


def events(stream: EventStream) -> list[tuple[str, str, int]]:
    """Return author, path and time of every event."""
    authors = {author_key(author): author for author in ("ann", "bob")}
    return [
        (authors[str(stream.sources.key(source))], str(stream.targets.key(target)), int(time))
        for source, target, time in zip(
            stream.source, stream.target, stream.time - START, strict=True
        )
    ]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return a repository with three commits by two authors."""
    made = Repository(tmp_path / "project.x")
    made.commit("b", "a", "folder/c", time=10, author_time=7)
    made.commit("a", author="bob", time=20, author_time=5)
    made.commit("folder/c", author="bob", time=35)
    return made


EVENTS = [
    *[("ann", name, 10) for name in ("a", "b", "folder/c")],
    *[("bob", "a", 20), ("bob", "folder/c", 35)],
]


def test_events_are_the_files_of_each_commit_at_the_committer_time(repository: Repository) -> None:
    stream = load(f"git:{repository.path}", notify=refuse_notices)
    assert stream.kind == "bipartite"
    assert events(stream) == EVENTS


def test_deleting_a_file_is_an_event_and_renaming_it_is_two(repository: Repository) -> None:
    repository.git("rm", "b")
    repository.commit(time=40)
    repository.git("mv", "a", "z")
    repository.commit(time=50)
    assert events(read_git_history(repository.path)) == [
        *EVENTS,
        *[("ann", "b", 40), ("ann", "a", 50), ("ann", "z", 50)],
    ]


def test_a_merge_adds_no_events_to_those_of_its_branches(repository: Repository) -> None:
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("side", time=40)
    repository.git("switch", "--quiet", "main")
    repository.commit("main", author="bob", time=45)
    repository.git("merge", "--quiet", "--no-edit", "side", time=50)
    assert repository.git("rev-list", "--merges", "--count", "HEAD").strip() == "1"
    assert events(read_git_history(repository.path)) == [
        *EVENTS,
        *[("ann", "side", 40), ("bob", "main", 45)],
    ]


def test_odd_file_names_are_keys(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "odd")
    repository.commit(*ODD_NAMES)
    # Not every file system can hold a name that is not UTF-8, but git can.
    blob = repository.git("rev-parse", "HEAD:-rf").strip()
    name = os.fsdecode(b"caf\xe9")
    repository.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    repository.git("commit", "--quiet", "--message", "latin", time=1)
    keys = read_git_history(repository.path).targets.keys.to_list()
    in_order = sorted(ODD_NAMES, key=str.encode)
    assert keys == [*(name.strip() for name in in_order), "caf\\xe9"]


def test_events_are_sorted_by_time_and_parents_come_first(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "clock")
    for name, time in (("a", 20), ("b", 10), ("z", 30), ("y", 30), ("x", 30)):
        repository.commit(name, time=time)
    names = [name for _, name, _ in events(read_git_history(repository.path))]
    assert names == ["b", "a", "z", "y", "x"]


def test_parents_come_first_even_if_a_clock_on_a_branch_was_wrong(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "clock")
    repository.commit("parent", time=30)
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit("child", time=30)
    repository.commit("early", time=10)
    repository.git("switch", "--quiet", "main")
    repository.commit("main", time=40)
    repository.git("merge", "--quiet", "--no-edit", "side", time=50)
    names = [name for _, name, _ in events(read_git_history(repository.path))]
    assert names == ["early", "parent", "child", "main"]


def test_empty_commits_have_no_events(repository: Repository) -> None:
    repository.commit(time=40)
    repository.commit("b", time=50)
    assert events(read_git_history(repository.path)) == [*EVENTS, ("ann", "b", 50)]


def test_mailmap_joins_the_addresses_of_an_author(repository: Repository) -> None:
    (repository.path / ".mailmap").write_text("<ann@example.org> <bob@example.org>\n")
    stream = read_git_history(repository.path)
    assert stream.sources.keys.to_list() == [author_key("ann")]


def test_settings_of_the_user_and_of_a_hook_change_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order").write_text("folder/*\nb\n")
    signer = tmp_path / "signer"
    signer.write_text(
        "#!/bin/sh\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    signer.chmod(0o755)
    for name, value in (
        ("log.showRoot", "false"),
        ("log.showSignature", "true"),
        ("diff.relative", "true"),
        ("diff.renames", "copies"),
        ("diff.orderFile", str(tmp_path / "order")),
        ("log.diffMerges", "first-parent"),
        ("format.pretty", "full"),
        ("color.ui", "always"),
        ("gpg.program", str(signer)),
    ):
        repository.git("config", name, value)
    repository.git("commit", "--quiet", "--allow-empty", "--gpg-sign", "--message", "signed")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another" / ".git"))
    assert events(read_git_history(repository.path)) == EVENTS
    assert events(read_git_history(repository.path / "folder")) == EVENTS


def test_a_bare_repository_is_read(repository: Repository, tmp_path: Path) -> None:
    bare = tmp_path / "project.git"
    repository.git("clone", "--quiet", "--bare", ".", str(bare))
    assert events(read_git_history(bare)) == EVENTS
    assert LogSpec(log=f"git:{bare}").name == "git-project"


def assert_refused(path: Path, *parts: str) -> None:
    with pytest.raises(InputError) as caught:
        read_git_history(path)
    message = str(caught.value)
    assert message.startswith(f"cannot read git:{path}: ")
    assert "\n" not in message
    for part in parts:
        assert part in message


def test_folders_without_a_history_are_refused(tmp_path: Path) -> None:
    assert_refused(tmp_path / "nowhere", "there is no such folder; give the path of a git")
    assert_refused(tmp_path, "not a git repository", "; give a repository that `git log` can read")
    empty = Repository(tmp_path / "empty")
    assert_refused(empty.path, "does not have any commits yet; give a repository")
    empty.commit()
    assert_refused(empty.path, "no commit changes a file; give a repository with changes")


def test_a_shallow_clone_is_refused(repository: Repository, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow"
    origin = f"file://{repository.path}"
    repository.git("clone", "--quiet", "--depth=1", origin, str(shallow))
    assert_refused(shallow, "the repository is a shallow clone", "fetch --unshallow")


def test_a_damaged_repository_is_refused(repository: Repository) -> None:
    tree = repository.git("rev-parse", "HEAD~1^{tree}").strip()
    (repository.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    assert_refused(repository.path, tree)


def test_a_commit_without_a_time_is_named(repository: Repository) -> None:
    tree = repository.git("rev-parse", "HEAD~1^{tree}").strip()
    text = f"tree {tree}\nauthor a <a@b> x +0000\ncommitter a <a@b> x +0000\n\nmessage\n"
    (repository.path / "commit").write_text(text)
    words = ("hash-object", "-t", "commit", "-w", "--literally", "commit")
    commit = repository.git(*words).strip()
    repository.git("update-ref", "HEAD", commit)
    assert_refused(repository.path, f"commit {commit[:7]}", "has no valid time", "replace --edit")


def test_a_machine_without_git_is_refused(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_refused(repository.path, "the program git does not start", "; install git")


def test_a_history_has_no_columns_to_name(repository: Repository) -> None:
    for columns in ({"source": "author"}, {"features": ["size"]}):
        with pytest.raises(InputError, match="has no columns to name; leave out --source"):
            load(f"git:{repository.path}", columns=columns)


def test_a_spec_names_the_repository_from_any_folder(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.path)
    spec = LogSpec(log="git:.", split="40/20/40")
    assert (spec.name, spec.file) == ("git-project", "git:project.x")
    split = spec.open()
    assert (split.events.kind, split.sizes) == ("bipartite", {"train": 2, "valid": 1, "test": 2})
    resolved = spec.resolved()
    assert resolved == LogSpec(log=f"git:{repository.path.resolve()}", split="40/20/40")
    monkeypatch.chdir(tmp_path)
    assert resolved.resolved() == resolved
    assert resolved.open().events.equals(split.events)
