"""What becomes of a message that somebody holds."""

import time
from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError

from bus import bus, none_left, take, texts  # noqa: F401


def test_an_abandoned_message_comes_again_and_the_delivery_counts(bus):
    queue = bus.queue()
    bus.send(queue, "a")
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        receiver.abandon_message(got)
        (again,) = take(receiver, 1)
        assert (str(again), again.delivery_count) == ("a", 1)
        receiver.complete_message(again)
        assert none_left(receiver)


def test_a_deferred_message_is_received_by_its_number_only(bus):
    queue = bus.queue()
    bus.send(queue, "a")
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        receiver.defer_message(got)
        assert none_left(receiver)
        (deferred,) = receiver.receive_deferred_messages([got.sequence_number])
        assert str(deferred) == "a"
        receiver.complete_message(deferred)
        with pytest.raises(ServiceBusError):
            receiver.receive_deferred_messages([got.sequence_number])


def test_a_dead_letter_has_its_reason(bus):
    queue = bus.queue()
    bus.send(queue, ServiceBusMessage("a", application_properties={"own": "kept"}))
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        receiver.dead_letter_message(got, reason="why", error_description="because")
        assert none_left(receiver)
    with bus.receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (dead,) = take(receiver, 1)
        assert (str(dead), dead.dead_letter_reason) == ("a", "why")
        assert dead.dead_letter_error_description == "because"
        assert dead.application_properties[b"own"] == b"kept"
        receiver.complete_message(dead)
        assert none_left(receiver)


def test_a_message_that_fails_too_often_becomes_a_dead_letter(bus):
    queue = bus.queue(MaxDeliveryCount=2)
    bus.send(queue, "a")
    with bus.receiver(queue) as receiver:
        for _ in range(2):
            (got,) = take(receiver, 1)
            receiver.abandon_message(got)
        assert none_left(receiver)
    with bus.receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (dead,) = take(receiver, 1)
        assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"


def test_a_lock_that_is_lost_cannot_be_used(bus):
    queue = bus.queue(LockDuration="PT5S")
    bus.send(queue, "a")
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        time.sleep(5.5)
        (again,) = take(receiver, 1)
        assert again.delivery_count == 1
        with pytest.raises(MessageLockLostError):
            receiver.complete_message(got)
        receiver.complete_message(again)


def test_a_lock_can_be_renewed(bus):
    queue = bus.queue(LockDuration="PT5S")
    bus.send(queue, "a")
    with bus.receiver(queue) as receiver:
        (got,) = take(receiver, 1)
        until = got.locked_until_utc
        time.sleep(1)
        assert receiver.renew_message_lock(got) > until
        receiver.complete_message(got)
        assert none_left(receiver)


def test_an_expired_message_is_gone_or_a_dead_letter(bus):
    queue = bus.queue(DeadLetteringOnMessageExpiration="true")
    bus.send(queue, ServiceBusMessage("a", time_to_live=timedelta(seconds=1)))
    time.sleep(1.5)
    with bus.receiver(queue) as receiver:
        assert none_left(receiver)
    with bus.receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (dead,) = take(receiver, 1)
        assert dead.dead_letter_reason == "TTLExpiredException"
