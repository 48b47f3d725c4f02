"""Topics over Kafka: created, described, given more partitions, deleted."""

import uuid

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewPartitions

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


def test_a_bad_name_is_refused(kafka):
    assert code(lambda: kafka.create("bad/name", 1)) == KafkaError.TOPIC_EXCEPTION
