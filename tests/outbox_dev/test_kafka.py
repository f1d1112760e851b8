import asyncio
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, UnknownTopicOrPartitionError

from outbox_dev import kafka_program
from outbox_dev.kafka import Kafka, Security
from outbox_dev.processes import Processes
from outbox_dev.progress import SetupError


async def test_what_all_replicas_acknowledged_is_read_back_in_order(kafka: Kafka, unique: str) -> None:
    await kafka.create_topic(unique, partitions=3)
    headers = [("id", b"1"), ("id", b"2")]
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all") as producer:
        for number in range(30):
            await producer.send(unique, b"%d" % number, key=b"key", partition=number % 3, headers=headers)
    records = await kafka.read_all(unique)
    assert [record.value for record in records] == [b"%d" % n for p in range(3) for n in range(p, 30, 3)]
    assert [record.offset for record in records] == [*range(10)] * 3
    assert {record.headers for record in records} == {tuple(headers)}
    assert await kafka.end_offsets(unique) == {0: 10, 1: 10, 2: 10}


async def test_a_committed_reader_sees_no_aborted_and_no_open_transaction(kafka: Kafka, unique: str) -> None:
    await kafka.create_topic(unique)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=unique) as producer:
        for value, outcome in ((b"committed", producer.commit_transaction), (b"aborted", producer.abort_transaction)):
            await producer.begin_transaction()
            await producer.send_and_wait(unique, value)
            await outcome()
        await producer.begin_transaction()
        await producer.send_and_wait(unique, b"open")
        committed = await kafka.read_all(unique, isolation="read_committed")
        everything = await kafka.read_all(unique)
        await producer.abort_transaction()
    assert [record.value for record in committed] == [b"committed"]
    assert [record.value for record in everything] == [b"committed", b"aborted", b"open"]


async def test_a_topic_is_created_only_when_told_so(kafka: Kafka, unique: str) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        await kafka.read_all(unique)
    await kafka.create_topic(unique)
    with pytest.raises(TopicAlreadyExistsError, match=unique):
        await kafka.create_topic(unique)
    await kafka.delete_topic(unique)


async def test_acknowledged_records_survive_a_kill_of_the_broker(kafka: Kafka, unique: str) -> None:
    await kafka.create_topic(unique)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, acks="all") as producer:
        await producer.send_and_wait(unique, b"kept")
    await asyncio.to_thread(kafka.brokers[0].kill)
    await asyncio.to_thread(kafka.brokers[0].start)
    assert [record.value for record in await kafka.read_all(unique)] == [b"kept"]


async def test_three_brokers_go_on_when_one_dies(kafka_cluster: Kafka, unique: str) -> None:
    await kafka_cluster.create_topic(unique, partitions=3)
    await asyncio.to_thread(kafka_cluster.brokers[0].kill)
    async with AIOKafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers, acks="all") as producer:
        for partition in range(3):
            await producer.send_and_wait(unique, b"value", partition=partition)
    assert len(await kafka_cluster.read_all(unique)) == 3


async def test_with_scram_only_the_right_password_gets_in(
    processes: Processes, tmp_path_factory: pytest.TempPathFactory, unique: str
) -> None:
    security = Security("SASL_PLAINTEXT", {"relay": "secret"})
    data = tmp_path_factory.mktemp("kafka-sasl")
    kafka = await asyncio.to_thread(Kafka.start, processes, data, security=security, name="kafka-sasl")
    try:
        await kafka.create_topic(unique)
        for password, expected in (("secret", 1), ("wrong", 1)):
            producer = AIOKafkaProducer(
                bootstrap_servers=kafka.bootstrap_servers,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="SCRAM-SHA-512",
                sasl_plain_username="relay",
                sasl_plain_password=password,
            )
            try:
                await producer.start()
                await producer.send_and_wait(unique, b"value")
            except KafkaError:
                assert password == "wrong"
            finally:
                await producer.stop()
            assert len(await kafka.read_all(unique)) == expected
    finally:
        await asyncio.to_thread(kafka.stop)


def test_missing_java_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"Java 17 or newer \(on Debian: apt-get install default-jre-headless\)"):
        kafka_program.java()


def test_a_java_that_is_too_old_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "java"
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="too old"):
        kafka_program.java()


def test_missing_maven_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OUTBOX_RELAY_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SetupError, match="apt-get install maven"):
        kafka_program.kafka_jars()
