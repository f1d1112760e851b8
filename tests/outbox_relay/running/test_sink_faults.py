"""What the relay does, and says, when Kafka is not as it should be, or refuses an event."""

import asyncio
from typing import Any


def test_a_broker_that_is_gone_is_told_and_nothing_is_lost(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(200)
    eventually(lambda: outbox.arrived() == 200, "200 records")
    (broker,) = outbox.kafka.brokers
    broker.kill()
    outbox.emit(200)
    report = relay.wait_for_report("Retrying", "SinkUnreachable")
    assert outbox.kafka.bootstrap_servers in report["message"]
    eventually(lambda: (relay.metric("outbox_relay_lag_seconds") or 0) > 1, "a lag that grows")
    broker.start()
    relay.wait_for_report("Streaming", "Streaming", within=60)
    assert outbox.wait_until_delivered().holds


def test_a_relay_that_starts_without_brokers_waits_for_them(outbox: Any, new_relay: Any) -> None:
    (broker,) = outbox.kafka.brokers
    broker.stop()
    relay = new_relay(outbox).start()
    relay.wait_for_report("Retrying", "SinkUnreachable")
    assert relay.page("/readyz")[0] == 503
    outbox.emit(100)
    broker.start()
    relay.wait_for_report("Streaming", "Streaming", within=60)
    assert outbox.wait_until_delivered().holds


def test_a_missing_topic_is_named_and_its_events_arrive_when_it_is_made(
    outbox: Any, new_relay: Any, unique: str, eventually: Any
) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    late = f"late-{unique}"
    first = outbox.topic
    outbox.emit(50)
    eventually(lambda: outbox.arrived() == 50, "50 records")
    outbox.topic = late
    outbox.emit(50)
    report = relay.wait_for_report("Retrying", "TopicHeld")
    assert late in report["message"]
    asyncio.run(outbox.kafka.create_topic(late, partitions=2))
    relay.wait_for_report("Streaming", "Streaming")
    eventually(lambda: outbox.arrived(late) == 50, "the events that waited")
    assert outbox.arrived(first) == 50
    eventually(lambda: outbox.unpublished() == 0, "everything marked")


def test_a_document_that_cannot_be_routed_stops_the_relay_at_it(outbox: Any, new_relay: Any, eventually: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(100)
    poison = outbox.document("a1")
    del poison["aggregate_id"]
    outbox.collection.insert_one(poison)
    outbox.emit(100)
    report = relay.wait_for_report("Stalled", "PoisonEvent")
    assert poison["_id"] in report["message"]
    assert "aggregate_id" in report["message"]
    eventually(lambda: outbox.arrived() == 100, "what came before it")
    assert outbox.unpublished() == 101

    # The next step that the message names: mark it as published, and restart.
    outbox.collection.update_one({"_id": poison["_id"]}, {"$currentDate": {"published_at": True}})
    code, _ = relay.terminate()
    assert code == 0
    relay.start().wait_for_report("Streaming", "Streaming")
    eventually(lambda: outbox.arrived() == 200, "what came after it")
    assert outbox.verdict().inversions == []


def test_an_event_that_the_broker_refuses_stops_the_relay_at_it_alone(
    outbox: Any, new_relay: Any, eventually: Any
) -> None:
    relay = new_relay(outbox, sink={"compression": "none"}).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(300, aggregates=1)
    large = outbox.document("a0", payload={"text": "y" * 2_000_000})
    outbox.collection.insert_one(large)
    outbox.emit(300, aggregates=1)
    report = relay.wait_for_report("Stalled", "PoisonEvent", within=60)
    assert large["_id"] in report["message"]
    assert outbox.arrived() == 300
    assert outbox.verdict().inversions == []
    assert outbox.verdict().duplicates == 0
    assert outbox.unpublished() == 301


def test_a_large_event_that_compresses_well_is_delivered(outbox: Any, new_relay: Any) -> None:
    relay = new_relay(outbox).start()
    relay.wait_for_report("Streaming", "Streaming")
    outbox.emit(3, payload={"text": "z" * 1_500_000})
    assert outbox.wait_until_delivered().holds
