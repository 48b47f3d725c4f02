"""The connection strings of the emulators, as docs/emulators.md has them, work unchanged on a server with its default ports,
and so does the code on the pages of the services.

The server runs in a network namespace of its own, so that the default ports are free whatever else runs on the machine.
"""

import fcntl
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

from azure.cosmos import CosmosClient, PartitionKey
from azure.data.tables import TableServiceClient
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.storage.blob import BlobServiceClient
from azure.storage.queue import QueueServiceClient
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY_SECONDS = 60
RECEIVE_SECONDS = 30
SNIPPET_SECONDS = 60
# The pages whose code is run, block by block, each in a process of its own.
PAGES = ["tables", "queues", "blobs", "documents", "bus", "hubs"]
FENCE = re.compile(r"^```(python|js)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1

# What the Service Bus emulator reads at its start.
CONFIG = """{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [{"Name": "queue.1",
"Properties": {"LockDuration": "PT1M", "MaxDeliveryCount": 3}}], "Topics": []}]}}"""


def connection_strings():
    """By the name of the emulator, in the first backticks of its row."""
    found = {}
    for line in (ROOT / "docs/emulators.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and "`" in cells[2]:
            found[cells[1]] = cells[2].split("`")[1]
    return found


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(probe, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def storage(connection):
    blobs = BlobServiceClient.from_connection_string(connection)
    container = blobs.create_container("emulated")
    container.upload_blob("a", b"text")
    assert container.download_blob("a").readall() == b"text"
    queues = QueueServiceClient.from_connection_string(connection)
    queue = queues.create_queue("emulated")
    queue.send_message("text")
    assert queue.receive_message().content == "text"
    tables = TableServiceClient.from_connection_string(connection)
    table = tables.create_table("emulated")
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "A": 7})
    assert table.get_entity("p", "r")["A"] == 7


def documents(connection):
    # The emulator's certificate is self-signed too; its page tells people to leave the check out.
    client = CosmosClient.from_connection_string(connection, connection_verify=False)
    database = client.create_database_if_not_exists("emulated")
    container = database.create_container("items", PartitionKey("/kind"))
    container.create_item({"id": "1", "kind": "a", "n": 7})
    assert container.read_item("1", "a")["n"] == 7


def bus(connection):
    with ServiceBusClient.from_connection_string(connection) as client:
        with client.get_queue_sender("queue.1") as sender:
            sender.send_messages(ServiceBusMessage("text"))
        with client.get_queue_receiver("queue.1", max_wait_time=RECEIVE_SECONDS) as receiver:
            message = next(iter(receiver))
            assert str(message) == "text"
            receiver.complete_message(message)


def hubs(connection):
    admin = AdminClient({
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "$ConnectionString",
        "sasl.password": connection,
    })
    for made in admin.create_topics([NewTopic("eh1", num_partitions=2)]).values():
        made.result(RECEIVE_SECONDS)
    producer = EventHubProducerClient.from_connection_string(connection, eventhub_name="eh1")
    with producer:
        producer.send_batch([EventData("text")], partition_key="k")
    received = []
    consumer = EventHubConsumerClient.from_connection_string(
        connection, consumer_group="$Default", eventhub_name="eh1"
    )

    def take(context, event):
        received.append(event.body_as_str())
        consumer.close()

    with consumer:
        consumer.receive(on_event=take, starting_position="-1", max_wait_time=RECEIVE_SECONDS)
    assert received == ["text"], received


TRIALS = {
    "Azurite": storage,
    "Cosmos DB emulator": documents,
    "Service Bus emulator": bus,
    "Event Hubs emulator": hubs,
}


def run_pages(packages):
    """Runs the code of the pages. `packages` is the folder where Node finds what it imports."""
    for page in PAGES:
        path = ROOT / f"docs/{page}.md"
        if not path.exists():
            continue
        for language, code in FENCE.findall(path.read_text()):
            command = [sys.executable, "-"]
            if language == "js":
                command = ["node", "--input-type=module", "-"]
            done = subprocess.run(
                command, input=code, text=True, cwd=packages, timeout=SNIPPET_SECONDS,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
            assert done.returncode == 0, f"the {language} code of {path} fails:\n{done.stdout}"
            assert done.stdout.strip(), f"the {language} code of {path} prints nothing"
            print(f"docs/{page}.md: its {language} code runs")


def inside(binary, packages):
    raise_loopback()
    strings = connection_strings()
    assert set(TRIALS) <= set(strings), f"docs/emulators.md has only {sorted(strings)}"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        config, ready = folder / "Config.json", folder / "ready.json"
        config.write_text(CONFIG)
        server = subprocess.Popen([
            binary, "serve", "--data", folder / "data", "--ready-file", ready,
            "--servicebus-config", config,
        ])
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not ready.exists():
                assert server.poll() is None and time.monotonic() < deadline, "it does not start"
                time.sleep(0.05)
            for name, trial in TRIALS.items():
                trial(strings[name])
                print(f"{name}: its connection string works")
            run_pages(packages)
        finally:
            server.terminate()
            assert server.wait(60) == 0


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        inside(*sys.argv[2:4])
    else:
        command = ["unshare", "--net", sys.executable, __file__, "--inside", *sys.argv[1:3]]
        sys.exit(subprocess.run(command).returncode)
