"""Snapshots: what a blob was, kept beside it."""


from refusals import code


def test_a_snapshot_keeps_what_was(container):
    blob = container.upload_blob("b", b"one", metadata={"n": "1"})
    snapshot = blob.create_snapshot()
    blob.upload_blob(b"two", overwrite=True, metadata={"n": "2"})
    old = container.get_blob_client("b", snapshot=snapshot["snapshot"])
    assert old.download_blob().readall() == b"one"
    assert old.get_blob_properties().metadata == {"n": "1"}
    assert blob.download_blob().readall() == b"two"


def test_a_snapshot_may_have_metadata_of_its_own(container):
    blob = container.upload_blob("b", b"one", metadata={"n": "1"})
    snapshot = blob.create_snapshot(metadata={"s": "1"})
    old = container.get_blob_client("b", snapshot=snapshot["snapshot"])
    assert old.get_blob_properties().metadata == {"s": "1"}
    assert blob.get_blob_properties().metadata == {"n": "1"}


def test_snapshots_are_listed_before_their_blob(container):
    blob = container.upload_blob("b", b"one")
    first = blob.create_snapshot()["snapshot"]
    second = blob.create_snapshot()["snapshot"]
    listed = list(container.list_blobs(include=["snapshots"]))
    assert [item.snapshot for item in listed] == [first, second, None]
    assert [item.name for item in container.list_blobs()] == ["b"]


def test_a_blob_with_snapshots_is_deleted_with_them_or_not_at_all(container):
    blob = container.upload_blob("b", b"one")
    snapshot = blob.create_snapshot()["snapshot"]
    assert code(blob.delete_blob) == "SnapshotsPresent"
    blob.delete_blob(delete_snapshots="only")
    assert blob.download_blob().readall() == b"one"
    old = container.get_blob_client("b", snapshot=snapshot)
    assert code(old.download_blob) == "BlobNotFound"
    blob.create_snapshot()
    blob.delete_blob(delete_snapshots="include")
    assert list(container.list_blobs(include=["snapshots"])) == []


def test_one_snapshot_is_deleted(container):
    blob = container.upload_blob("b", b"one")
    first = blob.create_snapshot()["snapshot"]
    second = blob.create_snapshot()["snapshot"]
    container.get_blob_client("b", snapshot=first).delete_blob()
    listed = list(container.list_blobs(include=["snapshots"]))
    assert [item.snapshot for item in listed] == [second, None]


def test_a_snapshot_is_not_written_to(container):
    blob = container.upload_blob("b", b"one")
    snapshot = blob.create_snapshot()["snapshot"]
    old = container.get_blob_client("b", snapshot=snapshot)
    missing = container.get_blob_client("b", snapshot="2020-01-01T00:00:00.0000000Z")
    assert code(missing.download_blob) == "BlobNotFound"
    assert old.download_blob().readall() == b"one"


def test_a_snapshot_becomes_the_blob_again(container):
    blob = container.upload_blob("b", b"one")
    snapshot = blob.create_snapshot()["snapshot"]
    blob.upload_blob(b"two", overwrite=True)
    blob.start_copy_from_url(container.get_blob_client("b", snapshot=snapshot).url)
    assert blob.download_blob().readall() == b"one"


def test_a_condition_guards_a_snapshot(container):
    from azure.core import MatchConditions

    blob = container.upload_blob("b", b"one")
    refused = lambda: blob.create_snapshot(
        etag='"0x8D000000000000"', match_condition=MatchConditions.IfNotModified
    )
    assert code(refused) == "ConditionNotMet"
