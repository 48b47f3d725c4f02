"""Events over AMQP: published, read, and what is said about hubs."""

import threading
import time
import uuid

import pytest
from azure.eventhub import EventData
from azure.eventhub.exceptions import AuthenticationError, ConnectError, EventHubError
from azure.eventhub.extensions.checkpointstoreblob import BlobCheckpointStore

from hub_target import WAIT_SECONDS, Hub, receive, texts
from kafka_target import values


@pytest.fixture
def hub(target):
    return Hub(target)


def test_events_are_published_and_read(hub):
    with hub.producer() as producer:
        event = EventData("hello")
        event.properties = {"text": "a", "number": 7}
        producer.send_batch([event], partition_id="1")
    [(partition, event)] = hub.read(1)
    assert (partition, event.body_as_str()) == ("1", "hello")
    assert (event.sequence_number, event.offset) == (0, "0")
    assert event.properties == {b"text": b"a", b"number": 7}
    assert event.enqueued_time is not None and event.partition_key is None


def test_events_of_a_key_are_in_one_partition_and_in_order(hub):
    sent = [str(number) for number in range(100)]
    for at in range(0, 100, 20):
        hub.send(sent[at : at + 20], partition_key="k")
    events = hub.read(100)
    # The partition that the published hash of the service says.
    assert {partition for partition, _ in events} == {"1"}
    assert texts(events) == sent
    assert {event.partition_key for _, event in events} == {b"k"}


def test_events_without_a_key_go_to_all_partitions(hub):
    with hub.producer() as producer:
        for number in range(4):
            producer.send_batch([EventData(str(number))])
    assert {partition for partition, _ in hub.read(4)} == {"0", "1"}


def test_a_reader_begins_at_an_offset_a_number_or_a_time(hub):
    hub.send(["0", "1", "2"], partition_id="0")
    time.sleep(0.05)
    [(_, last)] = hub.read(3, partition_id="0")[2:]
    time.sleep(0.05)
    hub.send(["3", "4"], partition_id="0")
    begin = lambda count, **start: texts(hub.read(count, partition_id="0", **start))
    assert begin(3, starting_position=1) == ["2", "3", "4"]
    inclusive = {"starting_position": 1, "starting_position_inclusive": True}
    assert begin(4, **inclusive) == ["1", "2", "3", "4"]
    assert begin(2, starting_position=last.offset) == ["3", "4"]
    assert begin(2, starting_position=last.enqueued_time) == ["3", "4"]


def test_a_reader_at_the_end_gets_what_comes_next(hub):
    hub.send(["old"], partition_id="0")
    later = threading.Timer(1.5, lambda: hub.send(["new"], partition_id="0"))
    later.start()
    assert texts(hub.read(1, partition_id="0", starting_position="@latest")) == ["new"]
    later.join()


def test_hubs_and_partitions_are_described(hub):
    hub.send(["0", "1", "2"], partition_id="0")
    with hub.producer() as producer:
        about = producer.get_eventhub_properties()
        assert (about["eventhub_name"], about["partition_ids"]) == (hub.name, ["0", "1"])
        first, second = (producer.get_partition_properties(each) for each in ["0", "1"])
    assert (first["beginning_sequence_number"], first["last_enqueued_sequence_number"]) == (0, 2)
    assert (first["last_enqueued_offset"], first["is_empty"]) == ("2", False)
    assert second["is_empty"]


def test_a_reader_with_a_higher_epoch_takes_the_partition(hub):
    hub.send(["x"], partition_id="0")
    errors, first = [], hub.consumer(retry_total=0)
    start = {"partition_id": "0", "starting_position": "-1"}
    run = lambda: first.receive(
        on_event=lambda *_: None, on_error=lambda _, error: errors.append(error), owner_level=1, **start
    )
    task = threading.Thread(target=run, daemon=True)
    task.start()
    time.sleep(1.5)
    assert texts(hub.read(1, partition_id="0", owner_level=2)) == ["x"]
    end = time.monotonic() + WAIT_SECONDS
    while not errors and time.monotonic() < end:
        time.sleep(0.05)
    first.close()
    task.join(WAIT_SECONDS)
    assert errors and "epoch" in str(errors[0])


def test_the_end_of_the_partition_is_told_with_events(hub):
    hub.send(["0", "1", "2"], partition_id="0")
    seen, done = [], threading.Event()
    consumer = hub.consumer()

    def on_event(context, event):
        seen.append(context.last_enqueued_event_properties["sequence_number"])
        done.set()

    run = lambda: consumer.receive(
        on_event=on_event, partition_id="0", starting_position="-1",
        track_last_enqueued_event_properties=True,
    )
    task = threading.Thread(target=run, daemon=True)
    task.start()
    assert done.wait(WAIT_SECONDS)
    consumer.close()
    task.join(WAIT_SECONDS)
    assert seen[0] == 2


def test_processors_share_partitions_by_checkpoints_on_blobs(hub, target, blobs, blobs_url):
    container = f"c{uuid.uuid4().hex}"
    blobs.create_container(container)
    credential = {"account_name": target["account"], "account_key": target["key"]}
    store = lambda: BlobCheckpointStore(
        blobs_url, container, credential=credential, api_version="2019-07-07"
    )
    hub.send(["0", "1", "2"], partition_id="0")
    consumer = hub.consumer(checkpoint_store=store())
    done = threading.Event()

    def on_event(context, event):
        context.update_checkpoint(event)
        if event.body_as_str() == "2":
            done.set()

    task = threading.Thread(
        target=lambda: consumer.receive(on_event=on_event, starting_position="-1"), daemon=True
    )
    task.start()
    assert done.wait(WAIT_SECONDS)
    consumer.close()
    task.join(WAIT_SECONDS)
    hub.send(["3"], partition_id="0")
    again = hub.consumer(checkpoint_store=store())
    assert texts(receive(again, 1, starting_position="-1")) == ["3"]


def test_what_is_published_over_amqp_is_read_over_kafka_and_back(hub):
    hub.send(["over amqp"], partition_key="k")
    [message] = hub.kafka.read(hub.name, 1)
    assert (message.key(), message.value()) == (b"k", b"over amqp")
    hub.kafka.send(hub.name, [b"over kafka"], partition=1, key=b"key", headers=[("h", b"v")])
    events = hub.read(2)
    assert sorted(texts(events)) == ["over amqp", "over kafka"]
    [event] = [event for _, event in events if event.body_as_str() == "over kafka"]
    assert (event.partition_key, event.properties) == (b"key", {b"h": b"v"})
    assert values(hub.kafka.read(hub.name, 2))[-1] == b"over kafka"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_what_kafka_has_compressed_is_read_over_amqp(hub, codec):
    producer = hub.kafka.producer(**{"compression.type": codec, "linger.ms": 100})
    sent = [f"{number} " + "text " * 100 for number in range(50)]
    hub.kafka.send(hub.name, [text.encode() for text in sent], producer, partition=0, key=b"k")
    events = hub.read(50, partition_id="0")
    assert texts(events) == sent
    assert [event.sequence_number for _, event in events] == list(range(50))
    assert {event.partition_key for _, event in events} == {b"k"}


def test_a_compacted_hub_is_read_over_its_gaps(target):
    hub = Hub(target, 1, **{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    for number in range(4):
        hub.send([f"a{number}"], partition_key="a")
        hub.send([f"b{number}"], partition_key="b")
    hub.kafka.send(hub.name, [b"a4"], key=b"a")
    found, end = [], time.monotonic() + WAIT_SECONDS
    while found != ["b3", "a4"] and time.monotonic() < end:
        time.sleep(1)
        found = texts(hub.read(2))
    assert found == ["b3", "a4"]


def test_a_missing_hub_a_missing_group_and_a_wrong_key_are_refused(hub):
    with pytest.raises((ConnectError, EventHubError)):
        hub.name, name = f"no{uuid.uuid4().hex}", hub.name
        try:
            with hub.producer() as producer:
                producer.send_batch([EventData("x")])
        finally:
            hub.name = name
    hub.string, string = (lambda: string("wrong")), hub.string
    with pytest.raises((AuthenticationError, ConnectError)):
        with hub.producer() as producer:
            producer.send_batch([EventData("x")])
