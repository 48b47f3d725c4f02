"""Access: keys, signatures of accounts and tables, stored policies."""

import datetime

import pytest
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableAccessPolicy,
    TableClient,
    TableSasPermissions,
    TableServiceClient,
    generate_account_sas,
    generate_table_sas,
)

from answers import keys

HOUR = datetime.timedelta(hours=1)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


@pytest.fixture
def signed(target, tables_url, table):
    """A client of the table that signs with a signature for it."""

    def client(**terms):
        credential = AzureNamedKeyCredential(target["account"], target["key"])
        signature = generate_table_sas(credential, table.table_name, **terms)
        return TableClient(
            tables_url, table.table_name, credential=AzureSasCredential(signature), retry_total=0
        )

    return client


@pytest.fixture
def account_signed(target, tables_url):
    """A client of the service that signs with a signature of the account."""

    def client(permission, resource_types):
        credential = AzureNamedKeyCredential(target["account"], target["key"])
        signature = generate_account_sas(
            credential,
            ResourceTypes.from_string(resource_types),
            AccountSasPermissions.from_string(permission),
            now() + HOUR,
        )
        return TableServiceClient(
            tables_url, credential=AzureSasCredential(signature), retry_total=0
        )

    return client


def status(call):
    with pytest.raises(HttpResponseError) as raised:
        call()
    return raised.value.status_code


def test_a_wrong_key_is_refused(target, tables_url):
    """Azure answers AuthenticationFailed; Azurite answers AuthorizationFailure."""
    credential = AzureNamedKeyCredential(target["account"], "d3Jvbmc=")
    with TableServiceClient(tables_url, credential=credential, retry_total=0) as client:
        with pytest.raises(ClientAuthenticationError) as raised:
            list(client.list_tables())
    assert raised.value.status_code == 403


def test_an_account_signature_grants_what_it_says(account_signed, table):
    name = table.table_name
    assert name in [item.name for item in account_signed("l", "c").list_tables()]
    assert status(lambda: list(account_signed("r", "c").list_tables())) == 403
    assert status(lambda: list(account_signed("l", "o").list_tables())) == 403
    writer = account_signed("a", "o").get_table_client(name)
    writer.create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert status(lambda: writer.get_entity("p", "r")) == 403
    assert account_signed("r", "o").get_table_client(name).get_entity("p", "r")


def test_a_table_signature_grants_what_it_says(signed, table, tables):
    adder = signed(permission=TableSasPermissions(add=True), expiry=now() + HOUR)
    adder.create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert status(lambda: adder.get_entity("p", "r")) == 403
    reader = signed(permission=TableSasPermissions(read=True), expiry=now() + HOUR)
    assert keys(reader.list_entities()) == [("p", "r")]
    assert status(lambda: reader.delete_entity("p", "r")) == 403


def test_a_signature_holds_for_its_time_only(signed):
    read = TableSasPermissions(read=True)
    assert status(lambda: list(signed(permission=read, expiry=now() - HOUR).list_entities())) == 403
    early = signed(permission=read, start=now() + HOUR, expiry=now() + 2 * HOUR)
    assert status(lambda: list(early.list_entities())) == 403


def test_a_signature_holds_for_its_addresses_only(signed):
    """Azure refuses a signature for other addresses than the caller's; Azurite looks at no address."""
    read = TableSasPermissions(read=True)
    elsewhere = signed(
        permission=read, expiry=now() + HOUR, ip_address_or_range="203.0.113.1-203.0.113.9"
    )
    assert status(lambda: list(elsewhere.list_entities())) == 403


def test_a_range_of_keys_bounds_a_signature(signed, table):
    """Azure keeps a signature to its range of keys; Azurite shows the whole table."""
    for partition, row in ["a1", "b1", "b5", "c1", "c5", "d1"]:
        table.create_entity({"PartitionKey": partition, "RowKey": row})
    client = signed(
        permission=TableSasPermissions(read=True, add=True),
        expiry=now() + HOUR,
        start_pk="b",
        start_rk="2",
        end_pk="c",
        end_rk="3",
    )
    assert keys(client.list_entities()) == [("b", "5"), ("c", "1")]
    client.create_entity({"PartitionKey": "b", "RowKey": "3"})
    assert status(lambda: client.create_entity({"PartitionKey": "d", "RowKey": "3"})) == 403


def test_a_stored_policy_gives_its_terms_and_takes_them_back(signed, table):
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    start, expiry = now() - HOUR, now() + HOUR
    policy = TableAccessPolicy(start=start, expiry=expiry, permission="r")
    table.set_table_access_policy({"readers": policy})
    stored = table.get_table_access_policy()
    assert set(stored) == {"readers"} and stored["readers"].permission == "r"
    assert abs(stored["readers"].expiry - expiry) < datetime.timedelta(seconds=1)
    client = signed(policy_id="readers")
    assert client.get_entity("p", "r")
    assert status(lambda: client.delete_entity("p", "r")) == 403
    table.set_table_access_policy({})
    assert table.get_table_access_policy() == {}
    assert status(lambda: client.get_entity("p", "r")) == 403


def test_a_stored_policy_may_leave_all_terms_open(table):
    """In Azure a policy may leave its terms to the signatures that name it; Azurite takes none without terms."""
    table.set_table_access_policy({"nobody": None})
    assert set(table.get_table_access_policy()) == {"nobody"}
