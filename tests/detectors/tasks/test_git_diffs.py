"""Diffs that git writes: what is read of them, and what one takes back of another, is what becomes of the files."""

import os
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from detectors.tasks import diff_text
from detectors.tasks.diffs import change_of_diff, change_of_texts, read_diff
from detectors.tasks.edits import join
from detectors.tasks.facts import Change
from detectors.tasks.lines import numbers
from detectors.tasks.reversal import agreement, reversal, settled
from detectors.tasks.unified import read_unified

Files = dict[str, list[str] | None]


class Repository:
    """A repository of git in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.com")
        self.git("commit", "--quiet", "--allow-empty", "--message", "Nothing")

    def git(self, *words: str) -> str:
        """Run git, whatever it is set to on this machine, and return what it prints."""
        alone = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        command = ["git", *words]
        return subprocess.run(
            command, cwd=self.root, env=alone, check=True, capture_output=True, encoding="utf-8"
        ).stdout

    def commit(self, **files: list[str] | None) -> str:
        """Write files, by their stems, and return the diff of the commit."""
        for name, lines in files.items():
            path = self.root / f"{name}.py"
            if lines is None:
                path.unlink()
            else:
                path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "An attempt\n\n- at something\n+ more")
        return self.latest()

    def latest(self, *options: str) -> str:
        """Return the diff of the latest commit."""
        return self.git("diff", *options, "HEAD~1", "HEAD")


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit."""
    found = Repository(tmp_path)
    found.commit(base=["# Nothing"])
    return found


def numbered(stem, count=60) -> list[str]:
    """Lines that are all different."""
    return [f"{stem} line {number}" for number in range(count)]


def lines_of(change: Change) -> tuple[int, int]:
    """How many lines a change takes out, and how many it puts in."""
    regions = [region for file in change.files for region in file.regions]
    return sum(len(numbers(each.removed)) for each in regions), sum(len(numbers(each.added)) for each in regions)


def share_of(first: Files, second: Files, third: Files) -> float:
    """What the second step takes back of the first one's lines, by the files' contents; lines are all different."""
    total = taken = 0
    for name in first.keys() | second.keys() | third.keys():
        before, between, after = (set(each.get(name) or ()) for each in (first, second, third))
        total += len(before ^ between)
        taken += len((between - before) - after) + len((before - between) & after)
    return taken / total if total else 0.0


def edited(lines: list[str] | None, chosen: Random, mark: str) -> list[str]:
    """Replace, drop and put in lines at a few places."""
    new = list(lines or ())
    for number in range(chosen.randint(1, 6)):
        at, count = chosen.randrange(len(new)), chosen.randint(0, 3)
        new[at : at + count] = [f"{mark} {number} {each}" for each in range(chosen.randint(not count, 3))]
    return new


def test_a_revert_takes_everything_back(repository):
    """Of edits, new and removed files alike."""
    kept = numbered("a")
    repository.commit(a=kept, b=numbered("b", 5))
    diff = repository.commit(a=[*kept[:10], "new", *kept[13:40], "more", *kept[40:]], b=None, c=numbered("c", 4))
    repository.git("revert", "--no-edit", "HEAD")
    found = reversal(change_of_diff(diff), change_of_diff(repository.latest()))
    assert found.share == 1
    assert len(found.lines) == 2 + 3 + 5 + 4


def test_a_commit_that_is_picked_again_agrees_and_takes_nothing_back(repository):
    """Approach A again: the direction counts."""
    kept = numbered("a")
    repository.commit(a=kept)
    first = change_of_diff(repository.commit(a=["new", *kept[1:]]))
    repository.git("revert", "--no-edit", "HEAD")
    repository.git("cherry-pick", "HEAD~1")
    again = change_of_diff(repository.latest())
    assert reversal(first, again).share == 0
    assert agreement(first, again) == 1
    assert first == again


@pytest.mark.parametrize("back", range(5))
def test_a_partial_revert_takes_a_part_back(repository, back):
    """The share is that of the lines, not of the places."""
    kept = numbered("a")
    repository.commit(a=kept)
    places = [5, 20, 35, 50]
    new = [f"new {number}" if number in places else line for number, line in enumerate(kept)]
    first = change_of_diff(repository.commit(a=new))
    reverted = [kept[number] if number in places[:back] else line for number, line in enumerate(new)]
    assert reversal(first, change_of_diff(repository.commit(a=reverted))).share == back / 4


def test_a_renaming_on_the_way_makes_no_difference(repository):
    """Whether the attempt renames the file or the one that takes it back does."""
    kept = numbered("a")
    repository.commit(a=kept)
    first = change_of_diff(repository.commit(a=None, b=["new", *kept[1:]]))
    assert [file.path == file.source for file in first.files] == [False]
    assert reversal(first, change_of_diff(repository.commit(b=kept))).share == 1
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    assert reversal(first, change_of_diff(repository.commit(b=None, c=kept))).share == 1


def test_a_pure_renaming_is_a_change_without_lines(repository):
    """Two attempts that do the same agree; there is nothing to take back."""
    repository.commit(a=numbered("a"))
    repository.git("mv", "a.py", "b.py")
    diff = repository.commit()
    assert read_diff(diff)[1] == ("b.py",)
    change = change_of_diff(diff)
    assert change.digest
    assert lines_of(change) == (0, 0)
    assert agreement(change, change) == 1
    assert reversal(change, change).share == 0


def test_lines_that_were_moved_and_moved_back_are_taken_back(repository):
    """Within a file, where the same lines go out at one place and in at another."""
    kept = numbered("a")
    repository.commit(a=kept)
    first = change_of_diff(repository.commit(a=[*kept[10:50], *kept[:10], *kept[50:]]))
    again = change_of_diff(repository.commit(a=kept))
    assert lines_of(first) == (10, 10)
    assert reversal(first, again).share == 1


def test_lines_that_are_moved_on_are_taken_back_by_half(repository):
    """They go out again where they were put, and not in where they were."""
    kept = numbered("a")
    repository.commit(a=kept)
    rest = kept[3:]
    first = change_of_diff(repository.commit(a=[*rest[:27], *kept[:3], *rest[27:]]))
    onward = change_of_diff(repository.commit(a=[*rest, *kept[:3]]))
    assert reversal(first, onward).share == 1 / 2


def test_an_edit_elsewhere_in_the_file_takes_nothing_back(repository):
    """Though it puts in at one place what was taken out at another: "return None" is everywhere."""
    kept = numbered("a")
    repository.commit(a=kept)
    first = change_of_diff(repository.commit(a=["new", *kept[1:]]))
    elsewhere = change_of_diff(repository.commit(a=["new", *kept[1:50], kept[0], *kept[50:]]))
    assert reversal(first, elsewhere).share == 0
    at_most_three_off = change_of_diff(repository.commit(a=["new", *kept[1:4], kept[0], *kept[4:50], *kept[50:]]))
    assert reversal(first, at_most_three_off).share == 1 / 2


@pytest.mark.parametrize("seed", range(8))
def test_the_share_is_that_of_the_contents(repository, seed):
    """Random edits of several files, then some of them taken back, some not, and others made."""
    chosen = Random(seed)  # noqa: S311 -- no secret
    first: Files = {name: numbered(name) for name in "abc"}
    repository.commit(**first)
    second: Files = {name: edited(lines, chosen, f"{name}2") for name, lines in first.items()}
    second |= {"d": numbered("d", 5)} if seed % 2 else {"c": None}
    made = change_of_diff(repository.commit(**second))
    third: Files = second | {chosen.choice("ab"): first["a"]} | {"c": first["c"]}
    third["a"] = first["a"] if chosen.random() < 0.5 else edited(second["a"], chosen, "a3")
    third["b"] = first["b"] if chosen.random() < 0.5 else edited(second["b"], chosen, "b3")
    found = reversal(made, change_of_diff(repository.commit(**third)))
    assert found.share == pytest.approx(share_of(first, second, third))


@pytest.mark.parametrize("seed", range(4))
def test_contents_as_a_whole_tell_the_same_as_diffs(repository, seed):
    """Where an agent writes its files anew each time."""
    chosen = Random(seed)  # noqa: S311 -- no secret
    versions: list[list[str] | None] = [numbered("a")]
    versions.append(edited(versions[0], chosen, "two"))
    versions.append(edited(versions[seed % 2], chosen, "three"))
    diffs = [change_of_diff(repository.commit(a=lines)) for lines in versions]
    whole = [change_of_texts([("a.py", None, "\n".join(lines or ()))]) for lines in versions]
    told = reversal(settled(whole[1], whole[0]), settled(whole[2], whole[1]))
    assert told.share == reversal(diffs[1], diffs[2]).share
    assert told.share == pytest.approx(share_of(*({"a": lines} for lines in versions)))
    assert reversal(diffs[1], whole[2]).share == told.share


@pytest.mark.parametrize("options", [(), ("--unified=0",), ("--no-prefix",), ("--no-renames",), ("--unified=30",)])
def test_however_git_is_asked_the_change_is_the_same(repository, options):
    """Context, prefixes and headers make no difference."""
    kept = numbered("a")
    repository.commit(a=kept)
    diff = repository.commit(a=[*kept[:10], "new", *kept[13:40], "-- more", "++ more", *kept[40:]], c=["-- x", "++ y"])
    assert change_of_diff(repository.latest(*options)) == change_of_diff(diff)
    assert read_diff(diff)[1] == ("a.py", "c.py")


@pytest.mark.parametrize("seed", range(4))
def test_all_readers_read_what_git_writes_alike(repository, monkeypatch, seed):
    """Where the quick one gives up, and then the library, the next must not find something else."""
    chosen = Random(seed)  # noqa: S311 -- no secret
    names = ["a", "b", "größe", "with space"]
    repository.commit(**{name: [*numbered(name), "-- sql", "++ more", ""] for name in names})
    repository.git("mv", "a.py", "moved.py")
    changed = {name: [*edited(numbered(name), chosen, f"-- {name}"), "++ more"] for name in ("moved", *names[2:])}
    diff = repository.commit(**changed, b=None, new=["-- new", "++ new"], empty=[])
    assert read_unified(diff) is not None
    quick, paths = change_of_diff(diff), read_diff(diff)[1]
    assert {"größe.py", "with space.py", "moved.py", "b.py", "new.py"} <= set(paths)
    monkeypatch.setattr(diff_text, "read_unified", lambda _: None)
    assert diff_text._parsed(diff) is not None
    assert change_of_diff(diff) == quick
    monkeypatch.setattr(diff_text, "_parsed", lambda _: None)
    assert change_of_diff(diff) == quick
    assert read_diff(diff)[1] == paths


def test_a_patch_for_mail_is_read_like_the_diff_in_it(repository):
    """Its message has lists in it, and its signature looks like a line that is taken out."""
    kept = numbered("a")
    repository.commit(a=kept)
    diff = repository.commit(a=["new", *kept[1:-1]])
    assert change_of_diff(repository.git("format-patch", "--stdout", "-1")) == change_of_diff(diff)
    repository.commit(a=kept)
    series = repository.git("format-patch", "--stdout", "-2")
    assert lines_of(change_of_diff(series)) == (3, 3)


def test_what_is_in_binary_files_is_not_read(repository):
    """They are named, and what becomes of the others is read."""
    (repository.root / "image.bin").write_bytes(bytes(range(256)))
    diff = repository.commit(a=["new"])
    assert set(read_diff(diff)[1]) == {"a.py", "image.bin"}
    assert lines_of(change_of_diff(diff)) == (0, 1)
    binary = repository.latest("--binary")
    assert set(read_diff(binary)[1]) == {"a.py", "image.bin"}
    assert lines_of(change_of_diff(binary)) == (0, 1)


@pytest.mark.parametrize("seed", range(4))
def test_commits_joined_change_what_they_do_together(repository, seed):
    """What a later one takes back of an earlier one is in neither."""
    chosen = Random(seed)  # noqa: S311 -- no secret
    kept = numbered("a")
    repository.commit(a=kept)
    middle = edited(kept, chosen, "one")
    first = change_of_diff(repository.commit(a=middle))
    last = edited(middle, chosen, "two") if seed % 2 else kept
    second = change_of_diff(repository.commit(a=last))
    both = join([first, second])
    wanted = Counter(kept), Counter(last)
    gone, come = wanted[0] - wanted[1], wanted[1] - wanted[0]
    assert lines_of(both) == (gone.total(), come.total())
