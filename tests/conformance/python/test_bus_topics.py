"""Topics: every subscription gets the messages that its rules let through."""

from azure.servicebus import ServiceBusMessage, ServiceBusSubQueue

from bus import bus, none_left, take, texts  # noqa: F401


def send(bus, topic, *messages):
    with bus.client.get_topic_sender(topic) as sender:
        sender.send_messages(list(messages))


def test_every_subscription_gets_a_message(bus):
    topic = bus.topic()
    names = [bus.subscription(topic) for _ in range(2)]
    send(bus, topic, ServiceBusMessage("a"))
    for name in names:
        with bus.client.get_subscription_receiver(topic, name) as receiver:
            (got,) = take(receiver, 1)
            assert str(got) == "a"
            receiver.complete_message(got)
            assert none_left(receiver)


def test_a_subscription_has_dead_letters_of_its_own(bus):
    topic = bus.topic()
    name = bus.subscription(topic)
    send(bus, topic, ServiceBusMessage("a"))
    with bus.client.get_subscription_receiver(topic, name) as receiver:
        receiver.dead_letter_message(take(receiver, 1)[0], reason="why")
    dead = ServiceBusSubQueue.DEAD_LETTER
    with bus.client.get_subscription_receiver(topic, name, sub_queue=dead) as receiver:
        assert take(receiver, 1)[0].dead_letter_reason == "why"
