import subprocess
import sys
from pathlib import Path

import pytest

from outbox_dev.cached import cached


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OUTBOX_RELAY_CACHE", str(tmp_path))
    return tmp_path


def test_an_entry_is_built_once_and_found_again() -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        (folder / "file").write_text("content")

    entry = cached("thing", "1.0", build)
    assert (entry / "file").read_text() == "content"
    assert cached("thing", "1.0", build) == entry
    assert len(built) == 1


def test_another_key_is_another_entry() -> None:
    assert cached("thing", "1.0", lambda _: None) != cached("thing", "2.0", lambda _: None)


def test_a_failed_build_leaves_nothing_and_can_be_tried_again() -> None:
    def half(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        cached("thing", "1.0", half)
    entry = cached("thing", "1.0", lambda folder: (folder / "whole").touch())
    assert [path.name for path in entry.iterdir()] == ["whole"]


def test_what_a_crash_left_half_made_is_never_used(cache: Path) -> None:
    program = "\n".join(
        [
            "import os",
            "from outbox_dev.cached import cached",
            "cached('thing', '1.0', lambda folder: ((folder / 'half').touch(), os._exit(1)))",
        ]
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 1
    assert list(cache.rglob("half"))
    entry = cached("thing", "1.0", lambda folder: (folder / "whole").touch())
    assert [path.name for path in entry.iterdir()] == ["whole"]
    assert not list(cache.rglob("half"))


def test_two_processes_that_want_the_same_entry_build_it_once(tmp_path: Path) -> None:
    # Each build waits for the other process to have asked as well, so that they do meet.
    program = "\n".join(
        [
            "import sys, time",
            "from pathlib import Path",
            "from outbox_dev.cached import cached",
            "base, me, other = Path(sys.argv[1]), sys.argv[2], sys.argv[3]",
            "(base / me).touch()",
            "def build(folder):",
            "    with (base / 'builds').open('a') as log: log.write(me + '\\n')",
            "    deadline = time.monotonic() + 20",
            "    while not (base / other).exists() and time.monotonic() < deadline: time.sleep(0.01)",
            "    (folder / 'whole').touch()",
            "assert (cached('thing', '1.0', build) / 'whole').exists()",
        ]
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), *names], stderr=subprocess.PIPE)
        for names in (("a", "b"), ("b", "a"))
    ]
    for process in running:
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
    assert len((tmp_path / "builds").read_text().splitlines()) == 1
