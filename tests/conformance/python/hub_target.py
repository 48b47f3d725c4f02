"""Clients of Event Hubs for the target. Hubs are made by an admin client of Kafka, to which they are topics."""

import threading

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient

from kafka_target import WAIT_SECONDS, Kafka

KEY = "SAS_KEY_VALUE"


class Hub:
    def __init__(self, target, partitions=2, **config):
        self.port = target["endpoints"]["bus"].rsplit(":", 1)[1]
        self.kafka = Kafka(target)
        self.name = self.kafka.topic(partitions, **config)

    def string(self, key=KEY):
        return (
            f"Endpoint=sb://localhost:{self.port};SharedAccessKeyName=RootManageSharedAccessKey;"
            f"SharedAccessKey={key};UseDevelopmentEmulator=true;"
        )

    def producer(self, **settings):
        make = EventHubProducerClient.from_connection_string
        return make(self.string(), eventhub_name=self.name, retry_total=0, **settings)

    def consumer(self, group="$Default", **settings):
        make = EventHubConsumerClient.from_connection_string
        return make(self.string(), group, eventhub_name=self.name, **settings)

    def send(self, texts, **where):
        with self.producer() as producer:
            batch = producer.create_batch(**where)
            for text in texts:
                batch.add(EventData(text))
            producer.send_batch(batch)

    def read(self, count, **start):
        """So many events, with their partitions."""
        start = {"starting_position": "-1", **start}
        return receive(self.consumer(), count, **start)


def receive(consumer, count, seconds=WAIT_SECONDS, **start):
    events, done = [], threading.Event()

    def on_event(context, event):
        events.append((context.partition_id, event))
        if len(events) >= count:
            done.set()

    run = lambda: consumer.receive(on_event=on_event, **start)
    task = threading.Thread(target=run, daemon=True)
    task.start()
    done.wait(seconds)
    consumer.close()
    task.join(WAIT_SECONDS)
    return events


def texts(events):
    return [event.body_as_str() for _, event in events]
