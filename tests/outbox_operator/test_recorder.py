"""Events: one object a reason, counted, bounded, and never in the way."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from outbox_operator import recorder as module
from outbox_operator.custom_resource import OutboxRelay
from outbox_operator.kube.client import Kube
from outbox_operator.kube.errors import ApiError, UnreachableError
from outbox_operator.kube.resources import Object, Resource
from outbox_operator.recorder import Recorder
from outbox_operator.status.announcements import Announcement

from .cluster import relay

NEWS = Announcement("Normal", "Ready", "x" * 2000)


class Server(Kube):
    """Keeps Events."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, Any]] = {}
        self.writes = 0
        self.fail = False

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:  # noqa: ARG002 - Events only
        return self.events.get(name)

    async def create(self, obj: Object) -> Object:
        self._write()
        name = obj["metadata"]["name"]
        if name in self.events:
            raise ApiError("create", status=409, reason="AlreadyExists")
        self.events[name] = dict(obj)
        return obj

    async def merge(self, resource: Resource, namespace: str, name: str, patch: Object) -> Object:  # noqa: ARG002 - as above
        self._write()
        if name not in self.events:
            raise ApiError("patch", status=404, reason="NotFound")
        self.events[name] |= patch
        return self.events[name]

    def _write(self) -> None:
        if self.fail:
            raise UnreachableError("no answer")
        self.writes += 1

    @property
    def only(self) -> dict[str, Any]:
        (event,) = self.events.values()
        return event


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def orders() -> OutboxRelay:
    obj = relay()
    obj["metadata"] |= {"namespace": "shop", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return OutboxRelay.of(obj)


async def test_what_happens_again_is_counted_and_told_at_most_every_ten_seconds(
    server: Server, clock: Clock, orders: OutboxRelay
) -> None:
    recorder = Recorder(server, now=clock)
    for _ in range(5):
        await recorder.record(orders, NEWS)
    assert (server.writes, server.only["count"]) == (1, 1)
    clock.now += timedelta(seconds=10)
    await recorder.record(orders, NEWS)
    assert (server.writes, server.only["count"]) == (2, 6)
    assert server.only["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert server.only["lastTimestamp"] == "2026-01-01T00:00:10Z"
    assert len(server.only["message"]) == 1024


async def test_another_process_goes_on_counting(server: Server, clock: Clock, orders: OutboxRelay) -> None:
    await Recorder(server, now=clock).record(orders, NEWS)
    await Recorder(server, now=clock).record(orders, NEWS)
    assert server.only["count"] == 2


async def test_an_event_that_the_server_forgot_begins_anew(server: Server, clock: Clock, orders: OutboxRelay) -> None:
    recorder = Recorder(server, now=clock)
    await recorder.record(orders, NEWS)
    server.events.clear()
    clock.now += timedelta(hours=2)
    await recorder.record(orders, NEWS)
    assert (server.only["count"], server.only["firstTimestamp"]) == (1, "2026-01-01T02:00:00Z")


async def test_an_event_that_cannot_be_written_stops_nothing(server: Server, clock: Clock, orders: OutboxRelay) -> None:
    recorder = Recorder(server, now=clock)
    server.fail = True
    await recorder.record(orders, NEWS)
    server.fail = False
    await recorder.record(orders, NEWS)
    assert server.only["count"] == 1


async def test_what_is_remembered_is_bounded(
    server: Server, clock: Clock, orders: OutboxRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REMEMBERED", 1)
    recorder = Recorder(server, now=clock)
    await recorder.record(orders, NEWS)
    await recorder.record(orders, Announcement("Warning", "NoLeader", "gone"))
    assert len(recorder._known) == 1
