"""Versions: what a write replaces is kept, and is listed, read, deleted and brought back by its id."""

import pytest

from refusals import code, status


@pytest.fixture
def versioned(set_property, container):
    """A container of an account that keeps versions. Azurite keeps none."""
    set_property("<IsVersioningEnabled>true</IsVersioningEnabled>")
    yield container
    set_property("<IsVersioningEnabled>false</IsVersioningEnabled>")


def put(container, content, name="b"):
    """Puts a blob and gives the id of its version."""
    return container.get_blob_client(name).upload_blob(content, overwrite=True).get("version_id")


def read(container, version):
    return container.get_blob_client("b", version_id=version).download_blob().readall()


def listed(container):
    """The ids of all versions in the order of the list, and which of them are current."""
    items = list(container.list_blobs(include=["versions"]))
    return [item.version_id for item in items], [bool(item.is_current_version) for item in items]


def test_every_write_makes_a_version(versioned):
    one, two = put(versioned, b"one"), put(versioned, b"two")
    blob = versioned.get_blob_client("b")
    three = blob.set_blob_metadata({"a": "b"})["version_id"]
    assert listed(versioned) == ([one, two, three], [False, False, True])
    assert [item.version_id for item in versioned.list_blobs()] == [None]
    blob.stage_block("1", b"four")
    four = blob.commit_block_list(["1"])["version_id"]
    assert listed(versioned) == ([one, two, three, four], [False, False, False, True])


def test_a_list_shows_what_is_deleted_and_has_versions(versioned):
    for name in ["a", "b"]:
        put(versioned, b"one", name)
    versioned.delete_blob("a")
    items = list(versioned.list_blobs(include=["deletedwithversions"]))
    shown = [(item.name, bool(item.has_versions_only)) for item in items]
    assert shown == [("a", True), ("b", False)]


def test_a_version_is_read_by_its_id(versioned):
    one, two = put(versioned, b"one"), put(versioned, b"two")
    assert (read(versioned, one), read(versioned, two)) == (b"one", b"two")
    properties = lambda **which: versioned.get_blob_client("b", **which).get_blob_properties()
    assert properties().version_id == two and properties().is_current_version
    assert properties(version_id=two).is_current_version
    assert properties(version_id=one).version_id == one
    assert not properties(version_id=one).is_current_version
    assert code(lambda: read(versioned, "2020-01-01T00:00:00.0000000Z")) == "BlobNotFound"


def test_a_version_is_deleted_by_its_id(versioned):
    one, two = put(versioned, b"one"), put(versioned, b"two")
    versioned.get_blob_client("b", version_id=one).delete_blob()
    assert listed(versioned) == ([two], [True])
    assert status(lambda: read(versioned, one)) == 404
    current = versioned.get_blob_client("b", version_id=two)
    assert code(current.delete_blob) == "OperationNotAllowedOnRootBlob"
    assert versioned.download_blob("b").readall() == b"two"


def test_a_deleted_blob_leaves_its_versions(versioned):
    one, two = put(versioned, b"one"), put(versioned, b"two")
    versioned.delete_blob("b")
    assert not versioned.get_blob_client("b").exists()
    assert list(versioned.list_blobs()) == []
    assert listed(versioned) == ([one, two], [False, False])
    assert (read(versioned, one), read(versioned, two)) == (b"one", b"two")
    three = put(versioned, b"three")
    assert listed(versioned) == ([one, two, three], [False, False, True])


def test_a_version_is_promoted_by_a_copy(versioned):
    one, two = put(versioned, b"one"), put(versioned, b"two")
    blob = versioned.get_blob_client("b")
    copy = blob.start_copy_from_url(f"{blob.url}?versionid={one}")
    assert copy["copy_status"] == "success" and copy["version_id"] not in (one, two)
    assert blob.download_blob().readall() == b"one"
    assert listed(versioned) == ([one, two, copy["version_id"]], [False, False, True])


def test_a_snapshot_is_a_version_too(versioned):
    one = put(versioned, b"one")
    taken = versioned.get_blob_client("b").create_snapshot()
    assert taken["version_id"] not in (None, one)
    assert listed(versioned) == ([one, taken["version_id"]], [False, True])
    versioned.delete_blob("b", delete_snapshots="include")
    assert listed(versioned) == ([one, taken["version_id"]], [False, False])
    assert read(versioned, one) == b"one"


def test_a_version_has_tags_and_a_tier_of_its_own(versioned):
    one, _ = put(versioned, b"one"), put(versioned, b"two")
    old, blob = versioned.get_blob_client("b", version_id=one), versioned.get_blob_client("b")
    old.set_blob_tags({"age": "old"})
    assert old.get_blob_tags() == {"age": "old"} and blob.get_blob_tags() == {}
    old.set_standard_blob_tier("Cool")
    assert old.get_blob_properties().blob_tier == "Cool"
    assert blob.get_blob_properties().blob_tier == "Hot"


@pytest.mark.parametrize("size", [1, 2, 4])
def test_pages_of_versions_add_up_to_the_list(versioned, size):
    expected = [(name, put(versioned, text, name)) for name in "abc" for text in [b"1", b"2", b"3"]]
    pages = versioned.list_blobs(include=["versions"], results_per_page=size).by_page()
    found = [[(item.name, item.version_id) for item in page] for page in pages]
    assert sum(found, []) == expected and all(len(page) <= size for page in found)


def test_nothing_is_kept_where_nobody_asked_for_it(container):
    assert (put(container, b"one"), put(container, b"two")) == (None, None)
    assert listed(container) == ([None], [False])
