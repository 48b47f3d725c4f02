"""Messages that are sent now and come later."""

import datetime
import time

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from bus import bus, none_left, take, texts  # noqa: F401


def soon(seconds):
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)


def test_a_scheduled_message_comes_when_it_is_due(bus):
    queue = bus.queue()
    began = time.monotonic()
    with bus.client.get_queue_sender(queue) as sender:
        (number,) = sender.schedule_messages(ServiceBusMessage("a"), soon(2))
        assert number > 0
    with bus.receiver(queue) as receiver:
        assert none_left(receiver)
        assert texts(take(receiver, 1)) == ["a"]
        assert time.monotonic() - began >= 1.5


def test_a_scheduled_message_can_be_cancelled(bus):
    queue = bus.queue()
    with bus.client.get_queue_sender(queue) as sender:
        numbers = sender.schedule_messages([ServiceBusMessage(one) for one in "ab"], soon(1))
        sender.cancel_scheduled_messages(numbers[0])
        with pytest.raises(ServiceBusError):
            sender.cancel_scheduled_messages(numbers[0])
    with bus.receiver(queue) as receiver:
        assert texts(take(receiver, 1)) == ["b"]
        assert none_left(receiver)


def test_a_scheduled_message_can_be_peeked(bus):
    queue = bus.queue()
    with bus.client.get_queue_sender(queue) as sender:
        sender.schedule_messages(ServiceBusMessage("a"), soon(600))
    with bus.receiver(queue) as receiver:
        (seen,) = receiver.peek_messages()
        assert str(seen) == "a" and seen.scheduled_enqueue_time_utc is not None
