"""Groups of consumers over Kafka: who gets what, and how far they have come."""

import time
import uuid

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from kafka_target import WAIT_SECONDS, Kafka, take, values


@pytest.fixture(scope="session")
def kafka(target):
    return Kafka(target)


def poll_until(consumers, holds):
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            consumer.poll(0.1)


def test_a_group_goes_on_where_it_committed(kafka):
    topic, group = kafka.topic(), f"g{uuid.uuid4().hex}"
    kafka.send(topic, [str(number).encode() for number in range(10)])
    first = kafka.consumer(group)
    first.subscribe([topic])
    assert values(take(first, 4)) == [b"0", b"1", b"2", b"3"]
    first.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    first.close()
    assert values(kafka.read(topic, 6, kafka.consumer(group)))[0] == b"4"
    [committed] = kafka.consumer(group).committed([TopicPartition(topic, 0)], timeout=10)
    assert committed.offset == 4


def test_two_consumers_share_the_partitions_and_one_takes_over(kafka):
    topic, group = kafka.topic(4), f"g{uuid.uuid4().hex}"
    quick = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}
    one, two = kafka.consumer(group, **quick), kafka.consumer(group, **quick)
    one.subscribe([topic])
    two.subscribe([topic])
    both = lambda: len(one.assignment()) == 2 and len(two.assignment()) == 2
    poll_until([one, two], both)
    held = {each.partition for each in one.assignment() + two.assignment()}
    assert held == {0, 1, 2, 3}
    two.close()
    poll_until([one], lambda: len(one.assignment()) == 4)
    one.close()


def test_groups_are_listed_described_and_deleted(kafka):
    topic, group = kafka.topic(), f"g{uuid.uuid4().hex}"
    kafka.send(topic, [b"x"])
    consumer = kafka.consumer(group)
    consumer.subscribe([topic])
    take(consumer, 1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    listed = kafka.admin.list_consumer_groups().result(WAIT_SECONDS).valid
    assert group in [each.group_id for each in listed]
    described = kafka.admin.describe_consumer_groups([group])[group].result(WAIT_SECONDS)
    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    consumer.close()
    kafka.admin.delete_consumer_groups([group])[group].result(WAIT_SECONDS)
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])]
    found = kafka.admin.list_consumer_group_offsets(asked)[group].result(WAIT_SECONDS)
    assert found.topic_partitions[0].offset < 0
