"""The worst trouble is what a relay is at."""

from outbox_api.reasons import RelayReason
from outbox_relay.problems import Problem
from outbox_relay.report.board import Board, Part


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def problem(reason: RelayReason, message: str = "why") -> Problem:
    return Problem(reason, message)


def test_without_trouble_it_is_what_it_does() -> None:
    board = Board()
    board.activity("Streaming", RelayReason.STREAMING, "events flow")
    assert (board.standing.state, board.standing.reason) == ("Streaming", "Streaming")


def test_a_stall_hides_what_heals_by_itself() -> None:
    board = Board()
    board.trouble(Part.SINK, problem(RelayReason.SINK_UNREACHABLE))
    assert (board.standing.state, board.standing.reason) == ("Retrying", "SinkUnreachable")
    board.trouble(Part.STALL, problem(RelayReason.POISON_EVENT))
    assert (board.standing.state, board.standing.reason) == ("Stalled", "PoisonEvent")
    board.clear(Part.STALL)
    assert board.standing.reason == "SinkUnreachable"
    board.clear(Part.SINK)
    assert board.standing.state == "Starting"


def test_the_same_trouble_in_other_words_is_as_old_as_it_was() -> None:
    clock = Clock()
    board = Board(clock)
    board.trouble(Part.SINK, problem(RelayReason.SINK_UNREACHABLE, "for 1 s"))
    clock.now = 5.0
    board.trouble(Part.SINK, problem(RelayReason.SINK_UNREACHABLE, "for 5 s"))
    assert board.standing.since == 0.0
    assert board.standing.message == "for 5 s"
    board.trouble(Part.SINK, problem(RelayReason.SINK_NOT_AUTHORIZED))
    assert board.standing.since == 5.0


def test_only_a_change_wakes_the_reporter() -> None:
    board = Board()
    board.trouble(Part.SINK, problem(RelayReason.SINK_UNREACHABLE))
    board.changed.clear()
    board.trouble(Part.SINK, problem(RelayReason.SINK_UNREACHABLE))
    board.clear(Part.MARKS)
    board.activity("Starting", RelayReason.STARTING, "starting")
    assert not board.changed.is_set()
    board.clear(Part.SINK)
    assert board.changed.is_set()
