"""Copies: at once or in the background, within the account, by signature, aborted too late."""

from azure.core import MatchConditions

from refusals import code, status


def test_a_copy_is_a_blob_of_its_own(container):
    source = container.upload_blob("source", b"hello", metadata={"a": "b"})
    blob = container.get_blob_client("copy")
    copy = blob.start_copy_from_url(source.url)
    assert copy["copy_status"] == "success" and copy["copy_id"]
    source.delete_blob()
    read = blob.download_blob()
    assert read.readall() == b"hello" and read.properties.metadata == {"a": "b"}
    copied = blob.get_blob_properties().copy
    assert copied.status == "success" and copied.id == copy["copy_id"]
    assert copied.progress == "5/5" and copied.source.endswith("/source")


def test_a_copy_may_have_metadata_of_its_own(container):
    source = container.upload_blob("source", b"hello", metadata={"a": "b"})
    blob = container.get_blob_client("copy")
    blob.start_copy_from_url(source.url, metadata={"c": "d"})
    assert blob.get_blob_properties().metadata == {"c": "d"}


def test_a_copy_at_once_needs_no_waiting(container, read_url):
    source = container.upload_blob("source", b"hello")
    blob = container.get_blob_client("copy")
    copy = blob.start_copy_from_url(read_url(source), requires_sync=True)
    assert copy["copy_status"] == "success"
    assert blob.download_blob().readall() == b"hello"


def test_a_blob_is_put_from_a_url(container, read_url):
    """Azurite does not know Put Blob From URL."""
    source = container.upload_blob("source", b"hello")
    blob = container.get_blob_client("put")
    blob.upload_blob_from_url(read_url(source))
    assert blob.download_blob().readall() == b"hello"
    assert code(lambda: blob.upload_blob_from_url(read_url(source), overwrite=False)) == (
        "BlobAlreadyExists"
    )


def test_a_source_that_is_not_there_is_not_found(container):
    blob = container.get_blob_client("copy")
    missing = container.get_blob_client("missing")
    assert status(lambda: blob.start_copy_from_url(missing.url)) == 404
    assert not blob.exists()


def test_conditions_guard_source_and_target_of_a_copy(container):
    source = container.upload_blob("source", b"hello")
    target = container.upload_blob("target", b"old")
    refused = lambda: target.start_copy_from_url(
        source.url,
        source_etag='"0x8D000000000000"',
        source_match_condition=MatchConditions.IfNotModified,
    )
    assert code(refused) == "SourceConditionNotMet"
    refused = lambda: target.start_copy_from_url(
        source.url, etag='"0x8D000000000000"', match_condition=MatchConditions.IfNotModified
    )
    assert code(refused) == "TargetConditionNotMet"
    assert target.download_blob().readall() == b"old"


def test_a_lease_guards_the_target_of_a_copy(container):
    source = container.upload_blob("source", b"hello")
    target = container.upload_blob("target", b"old")
    lease = target.acquire_lease(lease_duration=15)
    assert code(lambda: target.start_copy_from_url(source.url)) == "LeaseIdMissing"
    target.start_copy_from_url(source.url, destination_lease=lease)
    assert target.download_blob().readall() == b"hello"


def test_a_copy_that_is_done_is_not_aborted(container):
    source = container.upload_blob("source", b"hello")
    blob = container.get_blob_client("copy")
    copy = blob.start_copy_from_url(source.url)
    assert code(lambda: blob.abort_copy(copy["copy_id"])) == "NoPendingCopyOperation"


def test_copies_keep_the_kind_of_blob(container):
    append = container.get_blob_client("append")
    append.upload_blob(b"one", blob_type="AppendBlob")
    page = container.get_blob_client("page")
    page.upload_blob(b"p" * 512, blob_type="PageBlob")
    for source, kind in [(append, "AppendBlob"), (page, "PageBlob")]:
        blob = container.get_blob_client(f"copy of {kind}")
        blob.start_copy_from_url(source.url)
        assert blob.get_blob_properties().blob_type == kind
        assert blob.download_blob().readall() == source.download_blob().readall()
