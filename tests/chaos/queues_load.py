"""Load on Queues: messages put, received, hidden for longer, deleted.

What the service promises is looked at with every delivery: a message comes at least once, to one at a time, is the one
that was put, and does not come back once its deletion was answered. Who holds a message may settle it by its receipt,
wherever the queue lives by then.
"""

import random
import threading
import time

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from calls import InDoubt, Sdk, Unreachable, Violation
from load import Presence, Worker, pages

QUEUES = [f"queue-{number}" for number in range(6)]
PRODUCERS = 2
CONSUMERS = 3
# Messages that lie in the queues, at most.
MESSAGES_KEPT = 600
RECEIVED_AT_ONCE = 8
HIDDEN_SECONDS = [2, 4, 12]
HIDDEN_SECONDS_MAX = 12
# The server's clock counts in milliseconds, and its time and ours begin to be measured at different moments.
CLOCK_SECONDS = 0.1
CONTENT_BYTES_MAX = 3_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# How long the end may take until every message has come.
DRAIN_SECONDS_MAX = 2 * HIDDEN_SECONDS_MAX + 60


def text_of(number):
    chance = random.Random(number)
    return f"{number}:" + "".join(chance.choices(LETTERS, k=chance.randrange(CONTENT_BYTES_MAX)))


class Message:
    def __init__(self, queue):
        self.queue = queue
        # Whether its put was answered.
        self.put = False
        self.id = None
        self.deliveries = 0
        self.dequeue_count = 0
        # From when to when somebody holds it for certain, and when its deletion was answered.
        self.held_from = None
        self.held_until = None
        self.deleted = None
        self.delete_in_doubt = False


class Delivery:
    def __init__(self, number, message, received, sent, hidden):
        self.number = number
        self.message = message
        self.id = received.id
        self.receipt = received.pop_receipt
        self.until = sent + hidden


class Load:
    def __init__(self, run):
        self.run = run
        self.lock = threading.Lock()
        self.messages = {}
        self.presence = Presence("queues")

    def prepare(self):
        queues = Sdk(self.run.target, self.run.tally, self.run.retries).queues()
        for queue in QUEUES:
            queues.create_queue(queue)

    def workers(self):
        consumers = [Consumer(self, number) for number in range(CONSUMERS)]
        return [Producer(self, number) for number in range(PRODUCERS)] + consumers + [Lister(self)]

    def waiting(self):
        with self.lock:
            return sum(
                1 for message in self.messages.values() if message.put and not message.deleted
            )

    def delivered(self, queue, received, sent, answered):
        """Looks at one message as it comes: the number of the message, and the message."""
        number = int(received.content.split(":", 1)[0])
        with self.lock:
            message = self.messages.get(number)
            if message is None or message.queue != queue or received.content != text_of(number):
                raise Violation(f"{queue} gives what nobody put there: {received.content[:60]}")
            if message.id not in (None, received.id):
                raise Violation(f"DOUBLED: {number} is both {message.id} and {received.id}")
            if message.deleted is not None and sent > message.deleted:
                raise Violation(f"{number} of {queue} came back after its deletion")
            held = message.held_until is not None
            if held and sent > message.held_from and answered < message.held_until - CLOCK_SECONDS:
                left = message.held_until - answered
                raise Violation(
                    f"TWO HOLDERS of {number} in {queue}, the first for {left:.3f} s more"
                )
            if (
                received.dequeue_count <= message.dequeue_count
                and held
                and sent > message.held_from
            ):
                count = f"{received.dequeue_count} after {message.dequeue_count}"
                raise Violation(f"{number} in {queue} counts its deliveries as {count}")
            message.id = received.id
            message.deliveries += 1
            message.dequeue_count = max(message.dequeue_count, received.dequeue_count)
            message.delete_in_doubt = False
            return number, message

    def check(self):
        """Every message whose put was answered has come, or comes now."""
        consumer = Consumer(self, CONSUMERS)
        consumer.prepare()
        until = time.monotonic() + DRAIN_SECONDS_MAX
        while time.monotonic() < until:
            for queue in QUEUES:
                while deliveries := consumer.receive(queue, HIDDEN_SECONDS_MAX):
                    for delivery in deliveries:
                        consumer.delete(delivery)
            with self.lock:
                missing = [
                    number
                    for number, message in self.messages.items()
                    if message.put and message.deleted is None and not message.delete_in_doubt
                ]
            if not missing:
                break
            time.sleep(0.2)
        else:
            raise Violation(f"LOST: {len(missing)} messages never came: {missing[:5]}")
        never = [
            it for it, message in self.messages.items() if message.put and not message.deliveries
        ]
        if never:
            raise Violation(f"LOST: {never[:5]} never came")
        for queue in QUEUES:
            client = consumer.clients[queue]
            if client.peek_messages(max_messages=32):
                raise Violation(f"{queue} is not empty")


class Producer(Worker):
    def __init__(self, load, number):
        super().__init__(load.run, f"queues-put-{number}")
        self.load = load
        self.number = number
        self.made = 0

    def prepare(self):
        service = self.sdk.queues()
        self.clients = {queue: service.get_queue_client(queue) for queue in QUEUES}

    def step(self):
        if self.load.waiting() > MESSAGES_KEPT:
            time.sleep(0.05)
            return
        self.made += 1
        queue, number = self.random.choice(QUEUES), self.number * 10_000_000 + self.made
        message = Message(queue)
        with self.load.lock:
            self.load.messages[number] = message
        # One that hides at first has its time from the put on.
        hidden = self.random.choice([0, 0, 0, 2])
        sent = time.monotonic()
        try:
            put = self.clients[queue].send_message
            made = self.calls("put message", put, text_of(number), visibility_timeout=hidden)
        except InDoubt:
            return
        with self.load.lock:
            message.put = True
            if message.id not in (None, made.id):
                raise Violation(f"DOUBLED: {number} is both {message.id} and {made.id}")
            message.id = made.id
            if hidden and message.deliveries == 0:
                message.held_from, message.held_until = time.monotonic(), sent + hidden


class Consumer(Worker):
    def __init__(self, load, number):
        super().__init__(load.run, f"queues-get-{number}")
        self.load = load
        self.held = []

    def prepare(self):
        service = self.sdk.queues()
        self.clients = {queue: service.get_queue_client(queue) for queue in QUEUES}

    def step(self):
        if self.held and (len(self.held) > 20 or self.random.random() < 0.7):
            delivery = self.held.pop(self.random.randrange(len(self.held)))
            self.choose({self.delete: 6, self.hide: 2, self.put_back: 1, self.forget: 1})(delivery)
            return
        queue = self.random.choice(QUEUES)
        self.held += self.receive(queue, self.random.choice(HIDDEN_SECONDS))

    def receive(self, queue, hidden):
        count = self.random.randrange(1, RECEIVED_AT_ONCE + 1)
        sent = time.monotonic()
        terms = {"messages_per_page": count, "max_messages": count, "visibility_timeout": hidden}
        try:
            got = self.calls(
                "get messages", lambda: list(self.clients[queue].receive_messages(**terms))
            )
        except InDoubt:
            # Whatever it gave is hidden for a while, and comes again.
            return []
        answered = time.monotonic()
        deliveries = []
        for received in got:
            number, message = self.load.delivered(queue, received, sent, answered)
            self.hold(message, answered, sent + hidden)
            deliveries.append(Delivery(number, message, received, sent, hidden))
        return deliveries

    def hold(self, message, since, until):
        with self.load.lock:
            message.held_from, message.held_until = since, until

    def settle(self, delivery, kind, call, *words, **options):
        """The answer to who holds a message, or none if it holds it no longer or will never know."""
        if time.monotonic() > delivery.until - CLOCK_SECONDS:
            return None
        try:
            return self.calls(kind, call, delivery.id, *words, **options) or True
        except HttpResponseError as refusal:
            # Its time may have run out under way, and somebody else may have got it since.
            if (
                refusal.status_code not in (400, 404)
                or time.monotonic() < delivery.until - CLOCK_SECONDS
            ):
                message = f"{kind} of {delivery.number} in {delivery.message.queue}"
                raise Violation(f"{message}: the receipt is no longer good: {refusal}") from refusal
            return None

    def delete(self, delivery):
        message = delivery.message
        client = self.clients[message.queue]
        # From here on its holder may be rid of it.
        self.hold(message, None, None)
        try:
            done = self.settle(delivery, "delete message", client.delete_message, delivery.receipt)
        except InDoubt:
            with self.load.lock:
                message.delete_in_doubt = True
            return
        except Unreachable:
            return
        if done is not None:
            with self.load.lock:
                message.deleted = time.monotonic()

    def hide(self, delivery):
        """Keeps it for longer; what comes back is the receipt from now on."""
        message, hidden = delivery.message, self.random.choice(HIDDEN_SECONDS)
        client, sent = self.clients[message.queue], time.monotonic()
        self.hold(message, None, None)
        terms = {"pop_receipt": delivery.receipt, "visibility_timeout": hidden}
        try:
            answer = self.settle(delivery, "update message", client.update_message, **terms)
        except (InDoubt, Unreachable):
            return
        if answer is not None:
            delivery.receipt, delivery.until = answer.pop_receipt, sent + hidden
            self.hold(message, time.monotonic(), sent + hidden)
            self.held.append(delivery)

    def put_back(self, delivery):
        message = delivery.message
        self.hold(message, None, None)
        terms = {"pop_receipt": delivery.receipt, "visibility_timeout": 0}
        client = self.clients[message.queue]
        try:
            self.settle(delivery, "put back message", client.update_message, **terms)
        except (InDoubt, Unreachable):
            return

    def forget(self, delivery):
        """It comes again when its time is over."""


class Lister(Worker):
    """Lists of all queues, and queues that come and go."""

    def __init__(self, load):
        super().__init__(load.run, "queues-lister")
        self.load = load
        self.made = 0
        self.own = []
        for queue in QUEUES:
            load.presence.set(queue, "there")

    def prepare(self):
        self.service = self.sdk.queues()

    def step(self):
        self.choose({self.list: 5, self.create: 2, self.delete: 2})()

    def list(self):
        began = time.monotonic()
        found = pages(
            self.calls, "list queues", lambda: self.service.list_queues(results_per_page=4)
        )
        self.load.presence.judge([queue.name for queue in found], began)
        self.go.tally.count(self.go.tally.settled, "lists of queues")

    def create(self):
        if len(self.own) > 8:
            return
        self.made += 1
        name = f"{self.random.choice(LETTERS)}-extra-{self.made}"
        self.load.presence.set(name, "unsure")
        try:
            self.calls("create queue", self.service.create_queue, name)
        except (InDoubt, Unreachable):
            try:
                self.calls.until_answered("create queue", self.service.create_queue, name)
            except ResourceExistsError:
                pass
        self.own.append(name)
        self.load.presence.set(name, "there")

    def delete(self):
        if not self.own:
            return
        name = self.own.pop(self.random.randrange(len(self.own)))
        self.load.presence.set(name, "unsure")
        try:
            self.calls("delete queue", self.service.delete_queue, name)
        except (InDoubt, Unreachable):
            try:
                self.calls.until_answered("delete queue", self.service.delete_queue, name)
            except ResourceNotFoundError:
                pass
        self.load.presence.set(name, "gone")
