"""Reports are written at once when the state changes, and otherwise rarely."""

import pytest

from outbox_api.reasons import RelayReason
from outbox_api.report import Report
from outbox_relay.problems import Problem
from outbox_relay.report.board import Board, Part
from outbox_relay.report.writer import Reporter


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Sink:
    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.works = True

    async def write(self, report: Report) -> bool:
        if self.works:
            self.reports.append(report)
        return self.works


class Desk:
    """A reporter with everything around it in the test's hands."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.board = Board(self.clock)
        self.sink = Sink()
        self.numbers = Report(state="Starting", reason=RelayReason.STARTING, message="", time="", leader="pod-a")
        self.reporter = Reporter(self.board, self.sink, lambda: self.numbers, self.clock)

    def set(self, **numbers: object) -> None:
        self.numbers = self.numbers.model_copy(update=numbers)

    async def step_after(self, seconds: float) -> int:
        """Let time pass, look once, and return how many reports there are."""
        self.clock.now += seconds
        await self.reporter.step()
        return len(self.sink.reports)


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def test_the_first_report_and_each_change_of_state_are_written_at_once(desk: Desk) -> None:
    assert await desk.step_after(0) == 1
    desk.board.activity("Streaming", RelayReason.STREAMING, "events flow")
    assert await desk.step_after(0.1) == 2
    desk.board.trouble(Part.STALL, Problem(RelayReason.POISON_EVENT, "document _id=7"))
    assert await desk.step_after(0.1) == 3
    assert desk.sink.reports[-1].state == "Stalled"
    assert desk.sink.reports[-1].message == "document _id=7"


async def test_a_new_leader_is_a_change_of_state(desk: Desk) -> None:
    await desk.step_after(0)
    desk.set(leader="pod-b")
    assert await desk.step_after(0.1) == 2


async def test_a_trouble_is_told_only_once_it_has_lasted_a_second(desk: Desk) -> None:
    await desk.step_after(0)
    desk.board.trouble(Part.STREAM, Problem(RelayReason.SOURCE_UNREACHABLE, "no answer"))
    assert await desk.step_after(0.5) == 1
    desk.board.clear(Part.STREAM)
    assert await desk.step_after(5) == 1, "a connection that was back at once is no news"
    desk.board.trouble(Part.STREAM, Problem(RelayReason.SOURCE_UNREACHABLE, "no answer"))
    assert await desk.step_after(1.1) == 2


async def test_numbers_are_written_every_30_seconds_at_most(desk: Desk) -> None:
    await desk.step_after(0)
    for number in range(29):
        desk.set(pending=number)
        assert await desk.step_after(1) == 1
    desk.set(pending=500)
    assert await desk.step_after(1) == 2


async def test_numbers_that_are_equal_in_two_digits_are_not_written(desk: Desk) -> None:
    desk.set(pending=1_000, lag_milliseconds=101)
    await desk.step_after(0)
    desk.set(pending=1_040, lag_milliseconds=104)
    assert await desk.step_after(100) == 1
    desk.set(pending=1_060)
    assert await desk.step_after(100) == 2


async def test_an_idle_relay_writes_nothing(desk: Desk) -> None:
    await desk.step_after(0)
    for _ in range(100):
        assert await desk.step_after(30) == 1


async def test_a_report_that_could_not_be_written_is_tried_again_soon(desk: Desk) -> None:
    desk.sink.works = False
    assert await desk.reporter.step() < 5
    desk.sink.works = True
    assert await desk.step_after(2) == 1


async def test_the_last_word_is_written_if_it_is_news(desk: Desk) -> None:
    await desk.step_after(0)
    await desk.reporter.flush()
    assert len(desk.sink.reports) == 1
    desk.board.activity("Stopped", RelayReason.DRAINING, "drained")
    await desk.reporter.flush()
    assert desk.sink.reports[-1].state == "Stopped"
