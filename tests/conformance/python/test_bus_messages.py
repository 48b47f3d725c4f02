"""Messages are sent, received and looked at."""

from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode

from bus import bus, none_left, take, texts  # noqa: F401


def test_a_message_comes_back_as_it_was_sent(bus):
    queue = bus.queue()
    sent = ServiceBusMessage(
        b"body",
        message_id="id",
        subject="subject",
        content_type="text/plain",
        correlation_id="correlation",
        reply_to="reply",
        to="to",
        application_properties={"text": "red", "number": 7, "yes": True},
    )
    bus.send(queue, sent)
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        assert b"".join(got.body) == b"body"
        assert (got.message_id, got.subject, got.content_type) == ("id", "subject", "text/plain")
        assert (got.correlation_id, got.reply_to, got.to) == ("correlation", "reply", "to")
        assert got.application_properties == {b"text": b"red", b"number": 7, b"yes": True}
        assert got.delivery_count == 0 and got.sequence_number > 0
        assert got.enqueued_time_utc is not None and got.locked_until_utc is not None
        receiver.complete_message(got)
        assert none_left(receiver)


def test_messages_come_in_the_order_in_which_they_were_sent(bus):
    queue = bus.queue()
    for text in ("a", "b", "c"):
        bus.send(queue, text)
    with bus.receiver(queue) as receiver:
        assert texts(take(receiver, 3)) == ["a", "b", "c"]


def test_a_batch_is_sent_as_a_whole(bus):
    queue = bus.queue()
    with bus.client.get_queue_sender(queue) as sender:
        batch = sender.create_message_batch()
        for number in range(20):
            batch.add_message(ServiceBusMessage(str(number)))
        sender.send_messages(batch)
    with bus.receiver(queue) as receiver:
        assert texts(take(receiver, 20)) == [str(number) for number in range(20)]


def test_a_large_message_goes_through(bus):
    queue = bus.queue()
    body = "x" * 800_000
    bus.send(queue, body)
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        assert str(got) == body
        receiver.complete_message(got)


def test_what_is_received_and_deleted_is_gone(bus):
    queue = bus.queue()
    bus.send(queue, "a", "b")
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    with bus.receiver(queue, receive_mode=mode) as receiver:
        assert texts(take(receiver, 2)) == ["a", "b"]
        assert none_left(receiver)


def test_a_message_that_is_peeked_stays(bus):
    queue = bus.queue()
    bus.send(queue, "a", "b", "c")
    with bus.receiver(queue) as receiver:
        seen = receiver.peek_messages(max_message_count=10)
        assert texts(seen) == ["a", "b", "c"]
        later = receiver.peek_messages(
            max_message_count=10, sequence_number=seen[1].sequence_number
        )
        assert texts(later) == ["b", "c"]
        assert texts(take(receiver, 3)) == ["a", "b", "c"]


def test_an_empty_queue_answers_with_nothing(bus):
    with bus.receiver(bus.queue()) as receiver:
        assert none_left(receiver)
        assert receiver.peek_messages() == []


def test_a_message_that_is_sent_while_somebody_waits_comes_at_once(bus):
    queue = bus.queue()
    with bus.receiver(queue) as receiver, bus.client.get_queue_sender(queue) as sender:
        assert none_left(receiver)
        sender.send_messages(ServiceBusMessage("a"))
        assert texts(take(receiver, 1)) == ["a"]


def test_duplicates_are_dropped_where_the_queue_detects_them(bus):
    queue = bus.queue(RequiresDuplicateDetection="true")
    for text in ("first", "second"):
        bus.send(queue, ServiceBusMessage(text, message_id="same"))
    bus.send(queue, ServiceBusMessage("third", message_id="other"))
    with bus.receiver(queue) as receiver:
        assert texts(take(receiver, 2)) == ["first", "third"]
        assert none_left(receiver)


def test_a_partitioned_queue_gives_everything_back(bus):
    queue = bus.queue(EnablePartitioning="true")
    bus.send(queue, *[ServiceBusMessage(str(one), partition_key="k") for one in range(5)])
    bus.send(queue, *[str(one) for one in range(5, 40)])
    with bus.receiver(queue) as receiver:
        got = texts(take(receiver, 40))
        assert sorted(got, key=int) == [str(one) for one in range(40)]
        assert [one for one in got if int(one) < 5] == ["0", "1", "2", "3", "4"]
