"""What the tests of the bus share: clients, fresh entities, and how messages are taken until all have come.

Entities are made over plain HTTP, with the documents that the administration takes: what its own clients do is judged by
tests of their own.
"""

import base64
import hashlib
import hmac
import time
import urllib.parse
import uuid

import pytest
import requests
from azure.servicebus import ServiceBusClient, ServiceBusMessage

# What all emulators of the service publish. It protects nothing, and Lazuli takes it on loopback only.
RULE, KEY = "RootManageSharedAccessKey", "SAS_KEY_VALUE"
NAMESPACE = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
# The order in which the service wants the properties of a description.
ORDER = [
    "LockDuration",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DuplicateDetectionHistoryTimeWindow",
    "MaxDeliveryCount",
    "EnablePartitioning",
    "ForwardTo",
]


def fresh(prefix="q"):
    return f"{prefix}{uuid.uuid4().hex}"


def token(resource, key=KEY, seconds=600):
    """A shared access signature for a resource."""
    quoted = urllib.parse.quote_plus(resource)
    expires = str(int(time.time()) + seconds)
    signed = f"{quoted}\n{expires}".encode()
    digest = hmac.new(key.encode(), signed, hashlib.sha256).digest()
    signature = urllib.parse.quote_plus(base64.b64encode(digest))
    return f"SharedAccessSignature sr={quoted}&sig={signature}&se={expires}&skn={RULE}"


class Bus:
    """A client of the bus, and what makes entities on it."""

    def __init__(self, target):
        self.host = target["endpoints"]["bus"].split("://")[1].rstrip("/")
        self.client = self.connect()

    def connection_string(self, key=KEY):
        return (
            f"Endpoint=sb://{self.host};SharedAccessKeyName={RULE};SharedAccessKey={key};"
            "UseDevelopmentEmulator=true"
        )

    def connect(self, key=KEY):
        return ServiceBusClient.from_connection_string(self.connection_string(key), retry_total=0)

    def put(self, path, kind, **properties):
        known = [name for name in ORDER if name in properties]
        assert set(known) == set(properties), properties
        inside = "".join(f"<{name}>{properties[name]}</{name}>" for name in known)
        body = (
            '<entry xmlns="http://www.w3.org/2005/Atom"><content type="application/xml">'
            f'<{kind} xmlns="{NAMESPACE}">{inside}</{kind}></content></entry>'
        )
        url = f"http://{self.host}/{path}?api-version=2021-05"
        headers = {"Authorization": token(f"http://{self.host}/")}
        answer = requests.put(url, data=body, headers=headers, timeout=60)
        assert answer.status_code == 201, f"{answer.status_code} {answer.text}"

    def queue(self, **properties):
        name = fresh("q")
        self.put(name, "QueueDescription", **properties)
        return name

    def topic(self, **properties):
        name = fresh("t")
        self.put(name, "TopicDescription", **properties)
        return name

    def subscription(self, topic, **properties):
        name = fresh("s")
        self.put(f"{topic}/subscriptions/{name}", "SubscriptionDescription", **properties)
        return name

    def send(self, queue, *messages):
        with self.client.get_queue_sender(queue) as sender:
            sender.send_messages([message(one) for one in messages])

    def receiver(self, queue, **more):
        return self.client.get_queue_receiver(queue, **more)


def message(what):
    return what if isinstance(what, ServiceBusMessage) else ServiceBusMessage(what)


def take(receiver, count):
    """This many messages, in the order in which they come."""
    taken = []
    while len(taken) < count:
        more = receiver.receive_messages(max_message_count=count - len(taken), max_wait_time=10)
        assert more, f"{len(taken)} of {count} messages came"
        taken += more
    return taken


def texts(messages):
    return [str(one) for one in messages]


def none_left(receiver):
    return receiver.receive_messages(max_wait_time=0.5) == []


@pytest.fixture(scope="session")
def bus(target):
    made = Bus(target)
    yield made
    made.client.close()
