import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from outbox_relay.__main__ import main
from outbox_relay.cli import app

CONFIGURATION = """
spec:
  source: {uriFile: /etc/uri, database: shop, collection: outbox}
  sink: {bootstrapServers: ["127.0.0.1:9092"]}
runtime: {name: orders, checkpoint: {file: position.json}}
"""
EVENT = b'{"_id": 1, "aggregate": "Order", "aggregate_id": "a\xc3\xa9", "event_type": "Placed", "payload": {}}\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "relay.yaml"
    path.write_text(CONFIGURATION)
    return path


def outbox_relay(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def test_preview_prints_one_json_object_a_document_whatever_the_locale(config: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "outbox_relay", "preview", "--config", str(config)],
        input=EVENT * 2,
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"LC_ALL": "C"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == second
    assert first["key"] == "aé"


def test_preview_reports_bad_lines_prints_the_others_and_fails_at_the_end(config: Path) -> None:
    done = outbox_relay("preview", "--config", str(config), stdin=EVENT + b"{\n" + EVENT)
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr.startswith("line 2: not valid JSON: ")
    assert outbox_relay("preview", "--config", str(config), stdin=EVENT).exit_code == 0


@pytest.mark.parametrize("command", ["preview", "run"])
def test_a_bad_configuration_is_a_list_of_problems_and_never_a_stack_trace(config: Path, command: str) -> None:
    config.write_text(CONFIGURATION.replace("collection", "colection"))
    done = outbox_relay(command, "--config", str(config))
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "spec.source.collection: is required: add it",
        "spec.source.colection: is not a known field: correct its name or remove it",
    ]


def test_run_ends_with_the_exit_code_of_the_relay(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, int]] = []

    def run(path: Path, shard: int) -> int:
        asked.append((path, shard))
        return 3

    monkeypatch.setattr("outbox_relay.app.run", run)
    assert outbox_relay("run", "--config", str(config), "--shard", "1").exit_code == 3
    assert asked == [(config, 1)]


def test_help_names_the_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["outbox-relay", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert "preview" in shown
    assert "run" in shown
