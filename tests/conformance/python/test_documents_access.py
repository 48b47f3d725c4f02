"""Documents: keys, users, permissions and resource tokens."""

import base64

import pytest
from azure.cosmos import CosmosClient

from documents import container, fresh, make, status


@pytest.fixture
def url(target):
    return target["endpoints"]["documents"]


def test_a_wrong_key_is_refused(url):
    wrong = base64.b64encode(b"wrong").decode()
    assert status(lambda: CosmosClient(url, wrong).get_database_account()) == 401


def test_users_are_created_listed_and_deleted(database):
    name = fresh("u")
    user = database.create_user({"id": name})
    assert user.read()["id"] == name
    assert name in [one["id"] for one in database.list_users()]
    assert status(lambda: database.create_user({"id": name})) == 409
    database.upsert_user({"id": name})
    database.delete_user(name)
    assert status(user.read) == 404


def permission(database, resource, mode):
    user = database.create_user({"id": fresh("u")})
    return user, user.create_permission({"id": "p", "permissionMode": mode, "resource": resource})


def test_permissions_are_read_and_replaced(database, container):
    user, made = permission(database, container.container_link, "Read")
    assert made.permission_mode == "Read" and made.properties["_token"]
    changed = user.replace_permission("p", {"id": "p", "permissionMode": "All", "resource": container.container_link})
    assert changed.permission_mode == "All"
    assert [one["id"] for one in user.list_permissions()] == ["p"]
    user.delete_permission("p")
    assert status(lambda: user.get_permission("p")) == 404


def test_a_token_for_reading_reads_and_does_not_write(url, database, container):
    container.create_item({"id": "1", "pk": "a"})
    _, made = permission(database, container.container_link, "Read")
    client = CosmosClient(url, {container.container_link: made.properties["_token"]})
    there = client.get_database_client(database.id).get_container_client(container.id)
    assert there.read_item("1", "a")["id"] == "1"
    assert [one["id"] for one in there.query_items("SELECT * FROM c", partition_key="a")] == ["1"]
    assert status(lambda: there.create_item({"id": "2", "pk": "a"})) == 403


def test_a_token_for_everything_writes_in_its_container_alone(url, database, container):
    _, made = permission(database, container.container_link, "All")
    client = CosmosClient(url, {container.container_link: made.properties["_token"]})
    there = client.get_database_client(database.id).get_container_client(container.id)
    there.create_item({"id": "1", "pk": "a"})
    other = make(database)
    token = {other.container_link: made.properties["_token"]}
    stranger = CosmosClient(url, token).get_database_client(database.id).get_container_client(other.id)
    assert status(lambda: stranger.read_item("1", "a")) == 403


