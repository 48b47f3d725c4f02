"""What every conformance test starts from: the target it runs against, and clients of the official SDK for it.

`cargo xtask conformance` starts the target and writes the file behind `--target-file`: a name, an account, its key and
an endpoint for each front, and the endpoints of another server of the same kind. Tests get what they need as fixtures
and never know which target it is.
"""

import datetime
import json
import pathlib
import uuid

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.cosmos import CosmosClient
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient, generate_account_sas, generate_blob_sas
from azure.storage.queue import QueueServiceClient

import gaps

KNOWN_GAPS = pathlib.Path(__file__).parent.parent / "known_gaps.toml"


def pytest_addoption(parser):
    parser.addoption("--target-file", help="JSON: name, account, key, endpoints")


def pytest_configure(config):
    path = config.getoption("--target-file")
    if path is None:
        raise pytest.UsageError("run these tests by `cargo xtask conformance FRONT --sdk python`")
    config.target = json.loads(pathlib.Path(path).read_text())
    config.pluginmanager.register(gaps.Gaps(gaps.load(KNOWN_GAPS), config.target["name"]))


@pytest.fixture(scope="session")
def target(pytestconfig):
    """The target as a dictionary: name, account, key, endpoints."""
    return pytestconfig.target


@pytest.fixture(scope="session")
def tables_url(target):
    """The address of the Tables front with the account in its path, as emulators have it."""
    return f"{target['endpoints']['tables']}/{target['account']}"


@pytest.fixture(scope="session")
def tables(target, tables_url):
    """A client of the Tables service that signs with the account's key and does not retry behind our back."""
    credential = AzureNamedKeyCredential(target["account"], target["key"])
    with TableServiceClient(tables_url, credential=credential, retry_total=0) as client:
        yield client


@pytest.fixture
def table(tables):
    """A fresh table with a name of its own. It stays: every run starts with fresh data."""
    return tables.create_table(f"t{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def documents_key():
    """The key that all emulators of the service publish. It protects nothing, and Lazuli takes it on loopback only."""
    return "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="


@pytest.fixture(scope="session")
def cosmos(target, documents_key):
    """A client of the Documents service that signs with the published key."""
    with CosmosClient(target["endpoints"]["documents"], documents_key) as client:
        yield client


@pytest.fixture(scope="session")
def documents_database(cosmos):
    """A database that the tests of a run share."""
    return cosmos.create_database(f"d{uuid.uuid4().hex}")


@pytest.fixture
def database(documents_database):
    return documents_database


@pytest.fixture(scope="session")
def queues_url(target):
    """The address of the Queues front with the account in its path."""
    return f"{target['endpoints']['queues']}/{target['account']}"


@pytest.fixture(scope="session")
def queues(target, queues_url):
    """A client of the Queues service that signs with the account's key and does not retry behind our back."""
    credential = {"account_name": target["account"], "account_key": target["key"]}
    with QueueServiceClient(queues_url, credential=credential, retry_total=0) as client:
        yield client


@pytest.fixture
def queue(queues):
    """A fresh queue with a name of its own. It stays: every run starts with fresh data."""
    return queues.create_queue(f"q{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def blobs_url(target):
    """The address of the Blobs front with the account in its path, as emulators have it."""
    return f"{target['endpoints']['blobs']}/{target['account']}"


@pytest.fixture(scope="session")
def blobs(target, blobs_url):
    """A client of the Blob service that signs with the account's key and does not retry behind our back."""
    credential = {"account_name": target["account"], "account_key": target["key"]}
    with BlobServiceClient(blobs_url, credential=credential, retry_total=0) as client:
        yield client


@pytest.fixture
def container(blobs):
    """A fresh container with a name of its own. It stays: every run starts with fresh data."""
    return blobs.create_container(f"c{uuid.uuid4().hex}")


@pytest.fixture(scope="session")
def other_blobs(target):
    """A client of another server, which has the same account and nothing else in common."""
    credential = {"account_name": target["account"], "account_key": target["key"]}
    url = f"{target['other_endpoints']['blobs']}/{target['account']}"
    terms = {"retry_total": 0, "connection_verify": target["certificate"]}
    with BlobServiceClient(url, credential=credential, **terms) as client:
        yield client


@pytest.fixture
def other_container(other_blobs):
    """A fresh container of the other server."""
    return other_blobs.create_container(f"c{uuid.uuid4().hex}")


@pytest.fixture
def set_property(target, blobs_url):
    """Sets what the SDK cannot set: the original leaves it to the management of accounts."""

    def put(section):
        expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        signature = generate_account_sas(target["account"], target["key"], "s", "w", expiry)
        url = f"{blobs_url}/?restype=service&comp=properties&{signature}"
        body = f"<StorageServiceProperties>{section}</StorageServiceProperties>"
        headers = {"x-ms-version": "2021-12-02"}
        answer = requests.put(url, data=body, headers=headers, timeout=60)
        assert answer.status_code == 202, answer.text

    return put


@pytest.fixture
def read_url(target):
    """The address of a blob with a signature that lets anybody read it for an hour."""

    def url(blob):
        signature = generate_blob_sas(
            target["account"],
            blob.container_name,
            blob.blob_name,
            snapshot=blob.snapshot,
            account_key=target["key"],
            permission="r",
            expiry=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1),
        )
        return f"{blob.url}{'&' if '?' in blob.url else '?'}{signature}"

    return url
