"""Who may do what, and what there is not."""

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import (
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)

from bus import bus, take  # noqa: F401


def test_a_wrong_key_is_refused(bus):
    queue = bus.queue()
    with bus.connect("WRONG") as client, pytest.raises(ServiceBusAuthenticationError):
        with client.get_queue_sender(queue) as sender:
            sender.send_messages(ServiceBusMessage("a"))


def test_an_entity_that_is_not_there_cannot_be_received_from(bus):
    with pytest.raises(MessagingEntityNotFoundError):
        with bus.receiver("missing") as receiver:
            receiver.receive_messages(max_wait_time=1)


def test_an_entity_that_is_not_there_cannot_be_sent_to(bus):
    with pytest.raises(MessagingEntityNotFoundError):
        with bus.client.get_queue_sender("missing") as sender:
            sender.send_messages(ServiceBusMessage("a"))


def test_names_are_the_same_in_any_case(bus):
    queue = bus.queue()
    bus.send(queue.upper(), "a")
    with bus.receiver(queue) as receiver:
        assert str(take(receiver, 1)[0]) == "a"


def test_a_message_over_the_limit_is_refused(bus):
    queue = bus.queue()
    with pytest.raises(ServiceBusError):
        with bus.client.get_queue_sender(queue) as sender:
            sender.send_messages(ServiceBusMessage("x" * 20_000_000))
