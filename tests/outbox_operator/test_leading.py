"""The operator's Lease, against a server in memory and with a driven clock."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from outbox_operator import leading
from outbox_operator.kube.client import Kube
from outbox_operator.kube.errors import ApiError, UnreachableError
from outbox_operator.kube.resources import Object, Resource
from outbox_operator.leading import Elector, NotLeaderError
from outbox_operator.settings import LeaseSettings
from outbox_operator.watchdog import Watchdog

from .clock import Clock


class Server(Kube):
    """One Lease, with the server's rule that a replacement must name the current version."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.fail: Exception | None = None
        self.before_write: Callable[[], None] = lambda: None

    def _check(self) -> None:
        if self.fail is not None:
            raise self.fail

    async def get(self, resource: Resource, namespace: str, name: str) -> Object | None:  # noqa: ARG002 - one Lease
        self._check()
        return self.lease

    async def create(self, obj: Object) -> Object:
        self._check()
        self.before_write()
        if self.lease is not None:
            raise ApiError("create", status=409, reason="AlreadyExists")
        return self._store(obj)

    async def replace(self, obj: Object) -> Object:
        self._check()
        self.before_write()
        if self.lease is None or obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiError("update", status=409, reason="Conflict")
        return self._store(obj)

    def _store(self, obj: Object) -> Object:
        self.version += 1
        self.lease = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        return self.lease

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture(autouse=True)
def _driven(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        clock.now += seconds

    monkeypatch.setattr(leading.asyncio, "sleep", sleep)


def elector(server: Server, clock: Clock, identity: str) -> Elector:
    settings = LeaseSettings("system", "operator", identity)
    return Elector(server, settings, clock=clock, now=lambda: datetime(2026, 1, 1, tzinfo=UTC))


async def test_a_free_lease_is_taken_and_gives_the_right_to_write_for_less_than_its_duration(
    server: Server, clock: Clock
) -> None:
    one = elector(server, clock, "one")
    with pytest.raises(NotLeaderError):
        one.fence()
    await one.acquire()
    one.fence()
    assert server.holder == "one"
    assert one.deadline == 1000 + 15 - leading.MARGIN
    clock.now = one.deadline
    with pytest.raises(NotLeaderError):
        one.fence()


async def test_the_deadline_counts_from_before_the_renewal_was_sent(server: Server, clock: Clock) -> None:
    def slow() -> None:
        clock.now += 4

    server.before_write = slow
    one = elector(server, clock, "one")
    await one.acquire()
    assert one.deadline == 1000 + 15 - leading.MARGIN


async def test_another_takes_the_lease_only_after_it_saw_no_change_for_its_duration(
    server: Server, clock: Clock
) -> None:
    one, two = elector(server, clock, "one"), elector(server, clock, "two")
    await one.acquire()
    assert one.deadline is not None
    await two.acquire()
    assert clock.now >= 1000 + 15
    assert clock.now > one.deadline
    assert server.holder == "two"
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 2


async def test_a_lease_that_is_given_back_is_taken_at_once(server: Server, clock: Clock) -> None:
    one, two = elector(server, clock, "one"), elector(server, clock, "two")
    await one.acquire()
    await one.release()
    with pytest.raises(NotLeaderError):
        one.fence()
    before = clock.now
    await two.acquire()
    assert clock.now == before


async def test_a_restarted_container_takes_its_own_lease_back_at_once(server: Server, clock: Clock) -> None:
    await elector(server, clock, "one").acquire()
    before = clock.now
    await elector(server, clock, "one").acquire()
    assert clock.now == before


async def test_holding_ends_when_another_has_taken_the_lease(server: Server, clock: Clock) -> None:
    one = elector(server, clock, "one")
    await one.acquire()
    server.lease = None
    await elector(server, clock, "two").acquire()
    with pytest.raises(NotLeaderError, match="another"):
        await one.hold()


async def test_holding_ends_at_the_deadline_when_the_server_does_not_answer(server: Server, clock: Clock) -> None:
    one = elector(server, clock, "one")
    await one.acquire()
    server.fail = UnreachableError("no answer")
    with pytest.raises(NotLeaderError):
        await one.hold()
    assert 1000 + 13 <= clock.now < 1000 + 15


async def test_a_renewal_that_fails_once_is_made_good(server: Server, clock: Clock) -> None:
    one = elector(server, clock, "one")
    await one.acquire()
    failures = [UnreachableError("cut"), None, UnreachableError("stop")]

    def script() -> None:
        # A renewal is lost, the next one works, and then the server is gone for good.
        failure = failures.pop(0) if failures else UnreachableError("gone")
        if failure is not None:
            raise failure

    server.before_write = script
    with pytest.raises(NotLeaderError):
        await one.hold()
    assert clock.now > 1000 + 15, "it was renewed in between"


async def test_of_two_that_write_at_once_one_leads(server: Server, clock: Clock) -> None:
    one, two = elector(server, clock, "one"), elector(server, clock, "two")
    await one.acquire()
    await one.release()
    live = await server.get(leading.LEASE, "system", "operator")
    assert live is not None
    await two.acquire()
    assert not await one._write(live)
    with pytest.raises(NotLeaderError):
        one.fence()


async def test_a_release_that_fails_is_no_error(server: Server, clock: Clock) -> None:
    one = elector(server, clock, "one")
    await one.release()
    await one.acquire()
    server.fail = UnreachableError("gone")
    await one.release()


@pytest.mark.parametrize(("deadline", "expires"), [(None, False), (2000.0, False), (1000.0, True)])
def test_the_watchdog_ends_the_process_only_past_the_deadline(
    deadline: float | None, expires: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from outbox_operator import watchdog

    monkeypatch.setattr(watchdog, "INTERVAL", 0.001)
    looked, expired = threading.Event(), threading.Event()

    def read() -> float | None:
        looked.set()
        return deadline

    dog = Watchdog(read, lambda: 1000.0, expired.set)
    dog.start()
    assert looked.wait(5)
    if expires:
        assert expired.wait(5)
    dog.stop()
    assert expired.is_set() is expires
