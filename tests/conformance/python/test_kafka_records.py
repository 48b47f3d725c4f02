"""Records over Kafka: produced and fetched."""

import time
import uuid

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from kafka_target import Kafka, take, values


@pytest.fixture(scope="session")
def kafka(target):
    return Kafka(target)


def test_a_record_is_produced_and_consumed(kafka):
    topic = kafka.topic()
    headers = [("one", b"1"), ("none", None)]
    went = kafka.send(topic, [b"hello"], key=b"k", headers=headers, timestamp=1_234_567_890_123)
    assert went == [(0, 0)]
    [message] = kafka.read(topic, 1)
    assert (message.key(), message.value(), message.offset()) == (b"k", b"hello", 0)
    assert message.headers() == headers
    assert message.timestamp()[1] == 1_234_567_890_123


def test_records_come_in_their_order(kafka):
    topic = kafka.topic()
    sent = [str(number).encode() for number in range(500)]
    went = kafka.send(topic, sent, kafka.producer(**{"linger.ms": 5}))
    assert [offset for _, offset in went] == list(range(500))
    assert values(kafka.read(topic, 500)) == sent


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_passed_on(kafka, codec):
    topic = kafka.topic()
    sent = [b"x" * 1000 + str(number).encode() for number in range(50)]
    kafka.send(topic, sent, kafka.producer(**{"compression.type": codec, "linger.ms": 50}))
    assert values(kafka.read(topic, 50)) == sent


def test_an_idempotent_producer_leaves_no_gap(kafka):
    topic = kafka.topic()
    producer = kafka.producer(**{"enable.idempotence": True})
    went = kafka.send(topic, [str(number).encode() for number in range(200)], producer)
    assert [offset for _, offset in went] == list(range(200))
    assert len(kafka.read(topic, 200)) == 200


def test_a_waiting_consumer_gets_a_record_at_once(kafka):
    topic = kafka.topic()
    consumer = kafka.consumer(**{"fetch.wait.max.ms": 10_000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert take(consumer, 1, 1.0) == []
    producer = kafka.producer()
    kafka.send(topic, [b"warm"], producer)
    assert values(take(consumer, 1)) == [b"warm"]
    began = time.monotonic()
    kafka.send(topic, [b"now"], producer)
    assert values(take(consumer, 1)) == [b"now"]
    assert time.monotonic() - began < 5
    consumer.close()


def test_a_consumer_reads_from_any_offset(kafka):
    topic = kafka.topic()
    kafka.send(topic, [str(number).encode() for number in range(20)])
    consumer = kafka.consumer()
    consumer.assign([TopicPartition(topic, 0, 13)])
    assert values(take(consumer, 7)) == [str(number).encode() for number in range(13, 20)]
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0)) == (0, 20)
    consumer.close()


def test_an_offset_is_found_by_time(kafka):
    topic = kafka.topic()
    kafka.send(topic, [b"old"])
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    kafka.send(topic, [b"new"])
    consumer = kafka.consumer()
    [found] = consumer.offsets_for_times([TopicPartition(topic, 0, between)], timeout=10)
    assert found.offset == 1
    consumer.close()


def test_a_record_that_is_too_large_is_refused(kafka):
    topic = kafka.topic()
    producer = kafka.producer(**{"message.max.bytes": 4_000_000})
    [error] = kafka.send(topic, [b"x" * 2_000_000], producer)
    assert error.code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_wrong_key_is_refused(kafka):
    settings = {**kafka.settings, "sasl.password": "Endpoint=sb://x;SharedAccessKey=d3Jvbmc="}
    errors = []
    producer = Producer({**settings, "error_cb": errors.append, "message.timeout.ms": 3000})
    producer.produce("t", b"x")
    producer.flush(5)
    assert any(error.code() == KafkaError._AUTHENTICATION for error in errors)


def test_without_sasl_the_account_of_development_is_open(kafka):
    topic = f"t{uuid.uuid4().hex}"
    producer = Producer({**kafka.plain, "linger.ms": 0})
    assert kafka.send(topic, [b"x"], producer)[0][1] == 0


def test_a_transaction_is_refused(kafka):
    producer = kafka.producer(**{"transactional.id": "t"})
    with pytest.raises(KafkaException):
        producer.init_transactions(5)
