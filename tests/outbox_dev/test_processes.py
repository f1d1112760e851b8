import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from outbox_dev.processes import Process, Processes
from outbox_dev.progress import SetupError


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    yield processes
    processes.stop_all(timeout=1)


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.01)


def printed(process: Process, text: str) -> None:
    until(lambda: text in process.log_tail())


def rewrite_record(processes: Processes, process: Process, **changes: object) -> None:
    path = processes.state / "processes" / f"{process.name}.json"
    path.write_text(json.dumps({**dataclasses.asdict(process), **changes}))


def test_a_started_process_is_found_by_another_program_with_the_same_folder(processes: Processes) -> None:
    process = processes.start("sleeper", ["sleep", "60"])
    assert Processes(processes.state).running() == [process]
    assert os.getsid(process.pid) == process.pid


def test_output_goes_to_the_log(processes: Processes) -> None:
    process = processes.start("talker", ["sh", "-c", "echo one; echo two >&2"])
    printed(process, "one\ntwo")
    assert process.log == str(processes.state / "logs" / "talker.log")


def test_stop_lets_a_process_end_in_an_orderly_way(processes: Processes) -> None:
    process = processes.start(
        "orderly", ["sh", "-c", "trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.05; done"]
    )
    printed(process, "up")
    processes.stop("orderly")
    assert process.log_tail() == "up\nbye"
    assert processes.running() == []


def test_stop_kills_a_process_that_ignores_sigterm(processes: Processes) -> None:
    process = processes.start("stubborn", ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"])
    printed(process, "up")
    processes.stop("stubborn", timeout=0.2)
    assert not process.alive


def test_stop_ends_a_frozen_process(processes: Processes) -> None:
    process = processes.start("frozen", ["sleep", "60"])
    process.freeze()
    processes.stop("frozen")
    assert not process.alive


def test_stop_kills_what_a_process_leaves_behind(processes: Processes) -> None:
    process = processes.start("parent", ["sh", "-c", "sleep 600 & echo $!; wait"])
    until(lambda: process.log_tail().strip() != "")
    child = int(process.log_tail())
    process.kill()
    processes.stop("parent")
    until(lambda: not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes())


def test_stop_of_something_unknown_is_no_error(processes: Processes) -> None:
    processes.stop("nobody")


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another boot"}])
def test_a_pid_that_now_belongs_to_somebody_else_is_never_signalled(
    processes: Processes, change: dict[str, object]
) -> None:
    process = processes.start("reused", ["sleep", "60"])
    rewrite_record(processes, process, **change)
    assert processes.running() == []
    processes.stop("reused", timeout=0.1)
    assert process.alive
    process.kill()


def test_a_strangers_session_with_a_reused_pid_is_left_alone(processes: Processes) -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        process = processes.start("gone", ["true"])
        assert process.wait(10)
        rewrite_record(processes, process, pid=stranger.pid, start_ticks=1)
        processes.stop("gone", timeout=0.1)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_name_that_runs_cannot_be_started_again(processes: Processes) -> None:
    processes.start("once", ["sleep", "60"])
    with pytest.raises(ValueError, match="runs already"):
        processes.start("once", ["sleep", "60"])


def test_a_name_can_be_started_again_after_its_process_died(processes: Processes) -> None:
    processes.start("again", ["sleep", "60"]).kill()
    assert processes.start("again", ["sleep", "60"]).alive


def test_a_malformed_name_is_refused(processes: Processes) -> None:
    with pytest.raises(ValueError, match="process name"):
        processes.start("../escape", ["true"])


def test_a_missing_program_is_named(processes: Processes) -> None:
    with pytest.raises(SetupError, match="no-such-program is not there"):
        processes.start("missing", ["no-such-program"])
    assert not list(processes.state.glob("processes/*"))


def test_stop_all_ends_the_youngest_first(processes: Processes) -> None:
    log = processes.state / "all.log"
    for name in ("first", "second"):
        process = processes.start(
            name, ["sh", "-c", f"trap 'echo end {name}; exit' TERM; echo {name}; while :; do sleep 0.05; done"], log=log
        )
        printed(process, name)
    processes.stop_all()
    assert log.read_text().splitlines()[-2:] == ["end second", "end first"]


def test_records_survive_a_crash_of_the_command_that_started_the_process(tmp_path: Path) -> None:
    program = "\n".join(
        [
            "import os, signal, sys",
            "from pathlib import Path",
            "from outbox_dev.processes import Processes",
            "Processes(Path(sys.argv[1])).start('survivor', ['sleep', '60'])",
            "os.kill(os.getpid(), signal.SIGKILL)",
        ]
    )
    crashed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert crashed.returncode == -signal.SIGKILL
    processes = Processes(tmp_path)
    (survivor,) = processes.running()
    processes.stop_all()
    assert not survivor.alive


def test_a_crash_before_the_record_is_written_leaves_no_process(tmp_path: Path) -> None:
    program = "\n".join(
        [
            "import os, signal, sys",
            "from pathlib import Path",
            "from outbox_dev import processes",
            "processes._write_atomically = lambda path, text: os.kill(os.getpid(), signal.SIGKILL)",
            "processes.Processes(Path(sys.argv[1])).start('unborn', ['touch', sys.argv[1] + '/born'])",
        ]
    )
    crashed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert crashed.returncode == -signal.SIGKILL
    mark = f"OUTBOX_DEV_RECORD={tmp_path}".encode()

    def environment(pid: Path) -> bytes:
        try:
            return (pid / "environ").read_bytes()
        except OSError:
            return b""

    until(lambda: not any(mark in environment(pid) for pid in Path("/proc").glob("[0-9]*")))
    assert not (tmp_path / "born").exists()


def test_what_is_tied_to_its_caller_ends_with_it_even_after_sigkill(tmp_path: Path) -> None:
    program = "\n".join(
        [
            "import os, signal, sys",
            "from pathlib import Path",
            "from outbox_dev.processes import Processes",
            "processes = Processes(Path(sys.argv[1]))",
            "processes.end_with_caller()",
            "processes.start('tied', ['sleep', '60'])",
            "os.kill(os.getpid(), signal.SIGKILL)",
        ]
    )
    crashed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert crashed.returncode == -signal.SIGKILL
    until(lambda: not list(tmp_path.glob("processes/*.json")))
    assert Processes(tmp_path).running() == []
