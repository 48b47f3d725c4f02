"""Sessions: one receiver at a time, messages in order, and a state."""

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage
from azure.servicebus.exceptions import (
    OperationTimeoutError,
    ServiceBusError,
    SessionCannotBeLockedError,
)

from bus import bus, none_left, take, texts  # noqa: F401


def of(session, text):
    return ServiceBusMessage(text, session_id=session)


@pytest.fixture
def queue(bus):
    return bus.queue(RequiresSession="true")


def test_a_session_gives_its_own_messages_in_order(bus, queue):
    bus.send(queue, of("a", "a1"), of("b", "b1"), of("a", "a2"))
    with bus.receiver(queue, session_id="a") as receiver:
        got = take(receiver, 2)
        assert texts(got) == ["a1", "a2"] and got[0].session_id == "a"
        for one in got:
            receiver.complete_message(one)
        assert none_left(receiver)


def test_the_next_session_is_one_that_has_messages(bus, queue):
    bus.send(queue, of("a", "a1"))
    with bus.receiver(queue, session_id=NEXT_AVAILABLE_SESSION) as receiver:
        assert receiver.session.session_id == "a"
        receiver.complete_message(take(receiver, 1)[0])


def test_a_session_that_somebody_holds_cannot_be_accepted(bus, queue):
    with bus.receiver(queue, session_id="a"):
        with pytest.raises(SessionCannotBeLockedError):
            with bus.receiver(queue, session_id="a"):
                pass
    with bus.receiver(queue, session_id="a") as receiver:
        assert receiver.session.session_id == "a"


def test_without_a_session_to_accept_the_wait_ends(bus, queue):
    with pytest.raises(OperationTimeoutError):
        with bus.receiver(queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1):
            pass


def test_the_state_of_a_session_outlives_its_receiver(bus, queue):
    with bus.receiver(queue, session_id="a") as receiver:
        assert receiver.session.get_state() is None
        receiver.session.set_state(b"state")
    with bus.receiver(queue, session_id="a") as receiver:
        assert bytes(receiver.session.get_state()) == b"state"
        receiver.session.set_state(None)
        assert receiver.session.get_state() is None


def test_the_lock_of_a_session_can_be_renewed(bus, queue):
    with bus.receiver(queue, session_id="a") as receiver:
        until = receiver.session.locked_until_utc
        assert receiver.session.renew_lock() >= until


def test_a_message_without_a_session_is_refused(bus, queue):
    with pytest.raises(ServiceBusError):
        bus.send(queue, "a")
