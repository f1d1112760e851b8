import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from outbox_dev.kubernetes.leftovers import kill_strays


@pytest.fixture
def sleepers(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """A process that a recorded engine started, and one of another checkout's."""
    argv = [sys.executable, "-c", "print(flush=True); input()"]
    records = (tmp_path / "dockerd.json", tmp_path / "other" / "dockerd.json")
    started = [
        subprocess.Popen(argv, env={"OUTBOX_DEV_RECORD": str(record)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for record in records
    ]
    for process in started:
        # Until it runs, its environment is that of its parent.
        assert process.stdout is not None
        process.stdout.readline()
    yield started[0], started[1]
    for process in started:
        process.kill()
        process.communicate(timeout=10)


def test_what_a_killed_engine_left_is_ended_and_nothing_of_another(
    tmp_path: Path, sleepers: tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]
) -> None:
    ours, others = sleepers

    # An ended child is listed until its parent, here this test, has asked for it.
    reaper = threading.Thread(target=ours.wait)
    reaper.start()
    kill_strays(tmp_path / "dockerd.json", "outbox-00000000")
    reaper.join(timeout=10)

    assert ours.returncode == -signal.SIGKILL
    assert others.poll() is None
