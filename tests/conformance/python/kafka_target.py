"""Clients of Kafka for the target."""

import time
import uuid

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

WAIT_SECONDS = 30
CONNECTION_STRING = (
    "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;"
    "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
)


class Kafka:
    def __init__(self, target):
        address = target["endpoints"]["kafka"]
        self.plain = {"bootstrap.servers": address}
        self.settings = {
            **self.plain,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "$ConnectionString",
            "sasl.password": CONNECTION_STRING,
        }
        self.admin = AdminClient(self.settings)

    def topic(self, partitions=1, **config):
        """A fresh topic with a name of its own."""
        name = f"t{uuid.uuid4().hex}"
        self.create(name, partitions, config)
        return name

    def create(self, name, partitions, config=None):
        new = NewTopic(name, num_partitions=partitions, config=config or {})
        self.admin.create_topics([new])[name].result(WAIT_SECONDS)

    def producer(self, **settings):
        return Producer({**self.settings, "linger.ms": 0, **settings})

    def send(self, topic, values, producer=None, **where):
        """Sends all and answers where each went: partition and offset."""
        went, producer = [], producer or self.producer()

        def note(error, message):
            went.append(error if error else (message.partition(), message.offset()))

        for value in values:
            producer.produce(topic, value, on_delivery=note, **where)
        assert producer.flush(WAIT_SECONDS) == 0
        return went

    def consumer(self, group=None, **settings):
        group = group or f"g{uuid.uuid4().hex}"
        base = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        return Consumer({**self.settings, **base, **settings})

    def read(self, topic, count, consumer=None):
        """So many messages of a topic, from its beginning or from where the group of the consumer is."""
        consumer = consumer or self.consumer()
        consumer.subscribe([topic])
        messages = take(consumer, count)
        consumer.close()
        return messages


def take(consumer, count, seconds=WAIT_SECONDS):
    messages, end = [], time.monotonic() + seconds
    while len(messages) < count and time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        messages.append(message)
    return messages


def values(messages):
    return [message.value() for message in messages]
