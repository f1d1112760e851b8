"""Writes the report: at once when the state changes, else rarely and only if a number changed."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

import structlog
from pydantic import ValidationError

from outbox_api import names
from outbox_api.relay_config import Runtime
from outbox_api.report import Problem as ReportedProblem
from outbox_api.report import Report
from outbox_relay.kube.client import ApiError, KubeClient, Object, config_map_path
from outbox_relay.kube.objects import FIELD_MANAGER, bare_object
from outbox_relay.report.board import Board

log = structlog.get_logger(__name__)

EVERY_SECONDS = 30.0
SETTLE_SECONDS = 1.0
"""How long a trouble must last to be told: a broken connection that is back at once is none."""

_RETRY_SECONDS = 2.0


class ReportSink(Protocol):
    """Where reports go."""

    async def write(self, report: Report) -> bool:
        """Write it; False if that failed and should be tried again."""


class LogSink:
    """Outside Kubernetes the report is a line of the log."""

    async def write(self, report: Report) -> bool:
        """Log it."""
        fields = report.wire()
        log.info("report", **{key: fields[key] for key in fields if key not in {"time", "lastError"}})
        return True


class ConfigMapSink:
    """Writes reports into the ConfigMap that the operator watches."""

    def __init__(self, client: KubeClient, runtime: Runtime, shard: int) -> None:
        self._client = client
        self._name = names.report(runtime.name, shard)
        self._path = config_map_path(runtime.namespace, self._name)
        self._bare = bare_object("v1", "ConfigMap", self._name, runtime)

    async def write(self, report: Report) -> bool:
        """Replace the report in the ConfigMap, which is created if it is gone."""
        try:
            current = await self._current()
            data = current.get("data") or {}
            text = _carry_over(data.get(names.REPORT_KEY), report).model_dump_json(by_alias=True, exclude_none=True)
            await self._client.replace(self._path, {**current, "data": {**data, names.REPORT_KEY: text}})
        except ApiError as error:
            log.warning("the report was not written", configmap=self._name, error=str(error))
            return False
        return True

    async def _current(self) -> Object:
        try:
            return await self._client.get(self._path)
        except ApiError as error:
            if error.status != 404:
                raise
        return await self._client.apply(self._path, self._bare, FIELD_MANAGER)


def _carry_over(before: str | None, report: Report) -> Report:
    """Return the report with what the one before knew and this one does not know yet.

    The position above all: it tells the next leader that there was one, should the checkpoint be gone.
    """
    if before is None:
        return report
    try:
        known = Report.model_validate_json(before)
    except ValidationError:
        return report  # of another version
    return report.model_copy(
        update={
            "position": report.position or known.position,
            "last_published_time": report.last_published_time or known.last_published_time,
        }
    )


class Reporter:
    """Turns the board and the numbers into reports while this process leads."""

    def __init__(
        self,
        board: Board,
        sink: ReportSink,
        numbers: Callable[[], Report],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare it.

        Args:
            board: what the relay is at.
            sink: where reports go.
            numbers: returns a report with the numbers as they are now; its state is filled in from the board.
            clock: monotonic seconds, the board's too.
        """
        self._board = board
        self._sink = sink
        self._numbers = numbers
        self._clock = clock
        self._written: Report | None = None
        self._written_at = 0.0

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            self._board.changed.clear()
            pause = await self.step()
            try:
                async with asyncio.timeout(pause):
                    await self._board.changed.wait()
            except TimeoutError:
                continue

    async def flush(self) -> None:
        """Write the report as it is, if its state changed: the last word of a leader."""
        report = self._report()
        if _state(report) != _state(self._written):
            await self._write(report)

    async def step(self) -> float:
        """Write a report if there is reason to; return after how many seconds to look again."""
        now = self._clock()
        report = self._report()
        if _state(report) != _state(self._written):
            settles_in = self._board.standing.since + SETTLE_SECONDS - now
            if report.state == "Retrying" and self._written is not None and settles_in > 0:
                return settles_in
            return EVERY_SECONDS if await self._write(report) else _RETRY_SECONDS
        waited = now - self._written_at
        if waited < EVERY_SECONDS:
            return EVERY_SECONDS - waited
        if _rounded(report) != _rounded(self._written):
            return EVERY_SECONDS if await self._write(report) else _RETRY_SECONDS
        self._written_at = now
        return EVERY_SECONDS

    async def _write(self, report: Report) -> bool:
        if not await self._sink.write(report):
            return False
        self._written, self._written_at = report, self._clock()
        return True

    def _report(self) -> Report:
        standing = self._board.standing
        error = self._board.last_error
        return self._numbers().model_copy(
            update={
                "state": standing.state,
                "reason": standing.reason,
                "message": standing.message,
                "time": _text(time.time()),
                "last_error": error
                and ReportedProblem(reason=error[0].reason, message=error[0].message, time=_text(error[1])),
            }
        )


def _state(report: Report | None) -> tuple[object, ...] | None:
    """Return what makes a change of state: what the relay is at, and who leads."""
    if report is None:
        return None
    return (report.state, report.reason, report.leader, report.epoch, report.checkpoint_missing)


def _rounded(report: Report | None) -> tuple[object, ...] | None:
    """Return the numbers as far as they are worth a write: two digits."""
    if report is None:
        return None
    return (
        report.position,
        report.last_published_time,
        _two_digits(report.lag_milliseconds),
        _two_digits(report.pending),
        _two_digits(report.dead_lettered),
        report.message,
    )


def _two_digits(number: int | None) -> str | None:
    return None if number is None else f"{number:.2g}"


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
