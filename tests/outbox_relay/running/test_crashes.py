"""What becomes of events when a relay dies, is stopped, or is frozen."""

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from outbox_api.checkpoint import Checkpoint


class Writer(threading.Thread):
    """Commits events steadily until told to stop."""

    def __init__(self, outbox: Any, batch: int = 20) -> None:
        super().__init__()
        self._outbox = outbox
        self._batch = batch
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.01):
            self._outbox.emit(self._batch, aggregates=30)

    def stop(self) -> None:
        self._done.set()
        self.join()


@pytest.mark.timeout(240)
@pytest.mark.parametrize("after_publish", ["Mark", "Keep"])
def test_a_relay_that_is_killed_in_mid_flow_loses_nothing_and_keeps_the_order(
    outbox: Any, new_relay: Any, eventually: Any, after_publish: str
) -> None:
    relay = new_relay(outbox, afterPublish=after_publish).start()
    relay.wait_for_report("Streaming", "Streaming")
    writer = Writer(outbox)
    writer.start()
    kills = 3
    for _ in range(kills):
        before = outbox.arrived()
        eventually(lambda before=before: outbox.arrived() > before + 200, "200 more records", within=60)
        relay.kill()
        relay.start()
    writer.stop()
    verdict = outbox.wait_until_delivered()
    assert verdict.holds, verdict
    if after_publish == "Mark":
        # What was marked is looked up and not sent again: only what was in flight repeats.
        assert verdict.duplicates <= kills * 1_500, verdict


@pytest.mark.timeout(240)
def test_a_relay_that_is_killed_while_it_sends_a_backlog_repeats_at_most_what_was_in_flight(
    outbox: Any, new_relay: Any, eventually: Any
) -> None:
    outbox.emit(20_000, aggregates=200)
    relay = new_relay(outbox).start()
    eventually(lambda: outbox.arrived() > 1_000, "the first thousand", within=60)
    relay.kill()
    relay.start()
    verdict = outbox.wait_until_delivered()
    assert verdict.holds, verdict
    assert verdict.duplicates <= 10_000
    eventually(lambda: outbox.unpublished() == 0, "everything marked")


def test_sigterm_drains_within_a_second_and_writes_the_position(
    outbox: Any, new_relay: Any, tmp_path: Path, eventually: Any
) -> None:
    relay = new_relay(outbox, afterPublish="Keep", checkpoint={"interval": "1h"}).start()
    relay.wait_for_report("Streaming", "Streaming")
    writer = Writer(outbox)
    writer.start()
    eventually(lambda: outbox.arrived() > 300, "300 records")
    code, seconds = relay.terminate()
    writer.stop()
    assert code == 0
    # One second on an idle machine; tests share theirs.
    assert seconds < 5
    checkpoint = Checkpoint.model_validate_json((tmp_path / "checkpoint.json").read_text())
    assert checkpoint.position is not None
    assert checkpoint.position.backlog == "Done"
    relay.start()
    verdict = outbox.wait_until_delivered()
    assert verdict.holds
    assert verdict.duplicates == 0, "a drained relay leaves nothing to repeat"


def test_a_stop_is_bounded_when_brokers_and_server_are_gone(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox, relay={"template": {"terminationGracePeriodSeconds": 10}}).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(100)
    eventually(lambda: outbox.arrived() == 100, "100 records")
    for broker in outbox.kafka.brokers:
        broker.kill()
    outbox.emit(100)
    eventually(lambda: relay.metric("outbox_relay_in_flight_bytes"), "events in flight")
    outbox.mongodb.nodes[0].kill()
    code, seconds = relay.terminate()
    assert code == 0
    assert seconds < 10
    outbox.mongodb.nodes[0].start()
    for broker in outbox.kafka.brokers:
        broker.start()
    relay.start()
    assert outbox.wait_until_delivered().holds


def test_a_relay_that_was_frozen_goes_on(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    relay.signal(signal.SIGSTOP)
    outbox.emit(300)
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 2, "two seconds")
    relay.signal(signal.SIGCONT)
    assert outbox.wait_until_delivered().holds


def test_a_second_relay_on_the_same_checkpoint_file_ends_the_first(outbox: Any, new_relay: Any) -> None:
    first = new_relay(outbox).start()
    first.wait_for_report("Streaming", "Streaming")
    second = new_relay(outbox).start()
    second.wait_for_report("Streaming", "Streaming")
    outbox.emit(100)
    assert first.process.wait(30) == 3
    assert "was claimed by another relay" in first.log.read_text()
    outbox.emit(100)
    assert outbox.wait_until_delivered().holds
    assert second.process.poll() is None
