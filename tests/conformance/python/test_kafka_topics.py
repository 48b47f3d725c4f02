"""Topics over Kafka: created, described, given more partitions, deleted."""

import time
import uuid

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from kafka_target import WAIT_SECONDS, Kafka


@pytest.fixture(scope="session")
def kafka(target):
    return Kafka(target)


def code(call):
    with pytest.raises(KafkaException) as caught:
        call()
    return caught.value.args[0].code()


def test_a_topic_is_created_listed_and_deleted(kafka):
    topic = kafka.topic(3)
    listed = kafka.admin.list_topics(topic, timeout=WAIT_SECONDS).topics[topic]
    assert sorted(listed.partitions) == [0, 1, 2]
    assert code(lambda: kafka.create(topic, 1)) == KafkaError.TOPIC_ALREADY_EXISTS
    kafka.admin.delete_topics([topic])[topic].result(WAIT_SECONDS)
    assert topic not in kafka.admin.list_topics(timeout=WAIT_SECONDS).topics


def test_partitions_are_added_and_never_taken_away(kafka):
    topic = kafka.topic(2)
    grow = lambda count: kafka.admin.create_partitions([NewPartitions(topic, count)])[topic]
    grow(5).result(WAIT_SECONDS)
    listed = kafka.admin.list_topics(topic, timeout=WAIT_SECONDS).topics[topic]
    assert len(listed.partitions) == 5
    assert code(lambda: grow(3).result(WAIT_SECONDS)) == KafkaError.INVALID_PARTITIONS
    assert kafka.send(topic, [b"x"], partition=4) == [(4, 0)]


def test_settings_of_a_topic_are_kept_and_unknown_ones_refused(kafka):
    topic = kafka.topic(**{"retention.ms": "3600000"})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = kafka.admin.describe_configs([resource])[resource].result(WAIT_SECONDS)
    assert configs["retention.ms"].value == "3600000"
    assert configs["cleanup.policy"].value == "delete"
    other = f"t{uuid.uuid4().hex}"
    refused = code(lambda: kafka.create(other, 1, {"flush.messages": "1"}))
    assert refused == KafkaError.INVALID_CONFIG


def described(kafka, topic):
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return kafka.admin.describe_configs([resource])[resource].result(WAIT_SECONDS)


def alter(kafka, topic, name, value, operation=AlterConfigOpType.SET):
    entry = ConfigEntry(name, value, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    kafka.admin.incremental_alter_configs([resource])[resource].result(WAIT_SECONDS)


def test_settings_of_a_topic_are_changed_one_by_one_and_together(kafka):
    topic = kafka.topic(**{"retention.ms": "3600000"})
    alter(kafka, topic, "cleanup.policy", "compact", AlterConfigOpType.APPEND)
    alter(kafka, topic, "delete.retention.ms", "5000")
    alter(kafka, topic, "retention.ms", None, AlterConfigOpType.DELETE)
    configs = described(kafka, topic)
    assert set(configs["cleanup.policy"].value.split(",")) == {"compact", "delete"}
    assert configs["delete.retention.ms"].value == "5000"
    assert configs["retention.ms"].value == "604800000" and configs["retention.ms"].is_default
    refused = code(lambda: alter(kafka, topic, "min.cleanable.dirty.ratio", "7"))
    assert refused == KafkaError.INVALID_CONFIG
    # All at once: what is not named goes back to what it is by default.
    whole = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"retention.bytes": "99"})
    kafka.admin.alter_configs([whole])[whole].result(WAIT_SECONDS)
    configs = described(kafka, topic)
    assert (configs["retention.bytes"].value, configs["cleanup.policy"].value) == ("99", "delete")


def test_records_are_deleted_up_to_an_offset(kafka):
    topic = kafka.topic()
    kafka.send(topic, [str(number).encode() for number in range(10)])
    delete = lambda offset: kafka.admin.delete_records([TopicPartition(topic, 0, offset)])
    [done] = delete(4).values()
    assert done.result(WAIT_SECONDS).low_watermark == 4
    messages = kafka.read(topic, 6)
    assert [(it.offset(), it.value()) for it in messages] == [
        (number, str(number).encode()) for number in range(4, 10)
    ]
    [beyond] = delete(11).values()
    assert code(lambda: beyond.result(WAIT_SECONDS)) == KafkaError.OFFSET_OUT_OF_RANGE
    [all_of_it] = delete(-1).values()
    assert all_of_it.result(WAIT_SECONDS).low_watermark == 10


def test_a_compacted_topic_keeps_the_newest_record_of_each_key(kafka):
    policy = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    topic = kafka.topic(**policy)
    producer = kafka.producer(**{"compression.type": "gzip", "batch.num.messages": 3})
    for round_ in range(5):
        for key in (b"a", b"b", b"c"):
            producer.produce(topic, f"{round_}".encode(), key=key)
        assert producer.flush(WAIT_SECONDS) == 0
    producer.produce(topic, None, key=b"a")
    assert producer.flush(WAIT_SECONDS) == 0
    left, end = [], time.monotonic() + WAIT_SECONDS
    while len(left) != 3 and time.monotonic() < end:
        time.sleep(1)
        left = read_all(kafka, topic)
    assert left == [(13, b"b", b"4"), (14, b"c", b"4"), (15, b"a", None)]
    [(error)] = kafka.send(topic, [b"no key"])
    assert error.code() == KafkaError.INVALID_RECORD


def read_all(kafka, topic):
    """All that is left, from the beginning to the end of the one partition."""
    consumer = kafka.consumer(**{"enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = []
    while (message := consumer.poll(WAIT_SECONDS)) is not None:
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            break
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


def test_a_bad_name_is_refused(kafka):
    assert code(lambda: kafka.create("bad/name", 1)) == KafkaError.TOPIC_EXCEPTION
