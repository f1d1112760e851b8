import pytest

from outbox_dev import cli, progress
from outbox_dev.progress import SetupError, fail, step


def test_a_step_says_when_it_begins_and_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    with step("Boiling water", expect="three minutes"):
        pass
    first, last = capsys.readouterr().err.splitlines()
    assert first == "==> Boiling water (three minutes)"
    assert last.startswith("    Boiling water: done in ")


def test_a_long_step_shows_that_it_goes_on(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.01)
    seen = ""
    with step("Boiling water"):
        while "so far" not in seen:
            seen += capsys.readouterr().err
    assert "    Boiling water: 0 s so far" in seen


def test_a_step_that_fails_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), step("Boiling water"):
        raise RuntimeError
    assert "Boiling water: failed after" in capsys.readouterr().err


def test_a_setup_error_is_shown_without_a_stack_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "build_app", lambda: lambda: fail("mvn is not on the PATH", "apt-get install maven"))
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 1
    assert capsys.readouterr().err == "error: mvn is not on the PATH\n  apt-get install maven\n"


def test_fail_raises_what_is_missing_and_how_to_get_it() -> None:
    with pytest.raises(SetupError) as error:
        fail("no kettle", "buy one")
    assert (error.value.what, error.value.how_to_get_it) == ("no kettle", "buy one")
