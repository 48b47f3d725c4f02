"""Documents: databases and containers, and what they say of themselves."""

import pytest
from azure.cosmos import CosmosClient, PartitionKey

from documents import fresh, make, refusal, status


def test_a_database_is_created_listed_and_deleted(cosmos):
    name = fresh("d")
    database = cosmos.create_database(name)
    assert database.read()["id"] == name
    assert name in [one["id"] for one in cosmos.list_databases()]
    assert status(lambda: cosmos.create_database(name)) == 409
    cosmos.delete_database(name)
    assert status(database.read) == 404


@pytest.mark.parametrize("name", ["with space", "кириллица", "100%", "it's", "a+b&c=d"])
def test_names_may_have_odd_characters(cosmos, name):
    name = fresh("d") + name
    database = cosmos.create_database(name)
    container = database.create_container(name, PartitionKey("/pk"))
    container.create_item({"id": name, "pk": name})
    assert container.read_item(name, name)["pk"] == name
    cosmos.delete_database(name)


@pytest.mark.parametrize("name", ["a/b", "a?b", "a#b", "a" * 256, "ends "])
def test_bad_names_are_refused(cosmos, name):
    try:
        cosmos.create_database(name)
    except ValueError:
        return  # The SDK refuses some itself.
    except Exception as error:
        assert error.status_code == 400
        return
    raise AssertionError("it was to be refused")


def test_a_container_has_the_defaults_of_the_service(database):
    found = make(database).read()
    assert found["indexingPolicy"] == {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/*"}],
        "excludedPaths": [{"path": '/"_etag"/?'}],
    }
    assert found["partitionKey"] == {"paths": ["/pk"], "kind": "Hash", "version": 2}
    assert found["conflictResolutionPolicy"]["mode"] == "LastWriterWins"
    assert found["_self"].startswith("dbs/") and found["_docs"] == "docs/"
    assert "defaultTtl" not in found


def test_a_container_keeps_its_definition(database):
    policy = {
        "indexingMode": "consistent",
        "automatic": True,
        "includedPaths": [{"path": "/a/?"}],
        "excludedPaths": [{"path": "/*"}],
        "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]],
    }
    unique = {"uniqueKeys": [{"paths": ["/email"]}]}
    container = make(database, indexing_policy=policy, unique_key_policy=unique, default_ttl=100)
    found = container.read()
    assert found["indexingPolicy"]["includedPaths"] == policy["includedPaths"]
    assert found["indexingPolicy"]["compositeIndexes"] == policy["compositeIndexes"]
    assert found["uniqueKeyPolicy"] == unique
    assert found["defaultTtl"] == 100


def test_a_container_is_listed_and_deleted(database):
    container = make(database)
    assert container.id in [one["id"] for one in database.list_containers()]
    found = list(database.query_containers({
        "query": "SELECT * FROM r WHERE r.id = @id", "parameters": [{"name": "@id", "value": container.id}]}))
    assert [one["id"] for one in found] == [container.id]
    assert status(lambda: database.create_container(container.id, PartitionKey("/pk"))) == 409
    database.delete_container(container.id)
    assert status(container.read) == 404
    assert status(lambda: container.create_item({"id": "1", "pk": "a"})) == 404


def test_the_partition_key_of_a_container_stays(database):
    container = make(database)
    assert status(lambda: database.replace_container(container, PartitionKey("/other"))) == 400
    database.replace_container(container, PartitionKey("/pk"), default_ttl=60)
    assert container.read()["defaultTtl"] == 60


def test_a_definition_that_makes_no_sense_is_refused(database):
    for more in [{"default_ttl": 0}, {"indexing_policy": {"indexingMode": "odd"}}]:
        assert status(lambda: make(database, **more)) == 400
    assert status(lambda: make(database, path="pk")) == 400


def test_a_database_without_the_container_says_what_is_missing(cosmos):
    database = cosmos.get_database_client(fresh("d"))
    assert status(database.read) == 404
    error = refusal(lambda: make(database))
    assert error.status_code == 404


def test_throughput_is_offered_and_changed(database):
    container = make(database, offer_throughput=700)
    assert container.get_throughput().offer_throughput == 700
    container.replace_throughput(900)
    assert container.get_throughput().offer_throughput == 900
    assert status(lambda: container.replace_throughput(450)) == 400
    assert status(lambda: make(database, offer_throughput=300)) == 400


def test_a_database_may_share_its_throughput(cosmos):
    database = cosmos.create_database(fresh("d"), offer_throughput=1000)
    assert database.get_throughput().offer_throughput == 1000
    container = make(database)
    with pytest.raises(Exception):
        container.get_throughput()
    assert database.get_throughput().offer_throughput == 1000


def test_the_account_names_the_address_that_was_used(target, documents_key):
    url = target["endpoints"]["documents"]
    with CosmosClient(url, documents_key) as client:
        account = client.get_database_account()
        assert account.ConsistencyPolicy["defaultConsistencyLevel"] == "Session"
        assert [one["databaseAccountEndpoint"] for one in account.WritableLocations] == [url + "/"]
