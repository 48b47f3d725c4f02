"""The service itself: properties, statistics, the account, batches, websites."""

import uuid

import pytest
from azure.storage.blob import BlobServiceClient, CorsRule, Metrics, RetentionPolicy, StaticWebsite

from refusals import code, status


def test_properties_are_kept(blobs):
    rule = CorsRule(["http://a.test"], ["GET"], allowed_headers=["*"], max_age_in_seconds=5)
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(True, 3))
    blobs.set_service_properties(cors=[rule], hour_metrics=metrics, target_version="2021-12-02")
    kept = blobs.get_service_properties()
    assert kept["cors"][0].allowed_origins == "http://a.test"
    assert kept["hour_metrics"].retention_policy.days == 3
    assert kept["target_version"] == "2021-12-02"
    blobs.set_service_properties(cors=[], hour_metrics=Metrics(enabled=False))
    kept = blobs.get_service_properties()
    assert kept["cors"] == [] and not kept["hour_metrics"].enabled


def test_the_account_says_what_it_is(blobs, container):
    assert blobs.get_account_information()["account_kind"] == "StorageV2"
    assert container.get_account_information()["sku_name"] == "Standard_RAGRS"


def test_statistics_come_from_the_secondary(target, blobs, blobs_url):
    credential = {"account_name": target["account"], "account_key": target["key"]}
    client = BlobServiceClient(f"{blobs_url}-secondary", credential=credential, retry_total=0)
    # The SDK's own call looks for the secondary at a host of its own.
    stats = client._client.service.get_statistics()
    assert stats.geo_replication.status == "live"


def test_the_secondary_reads_and_does_not_write(target, blobs_url, container):
    """Azure's secondary only reads; Azurite's also writes."""
    container.upload_blob("b", b"x")
    credential = {"account_name": target["account"], "account_key": target["key"]}
    client = BlobServiceClient(f"{blobs_url}-secondary", credential=credential, retry_total=0)
    blob = client.get_blob_client(container.container_name, "b")
    assert blob.download_blob().readall() == b"x"
    assert status(blob.delete_blob) == 403


def test_a_batch_deletes_many_blobs(container):
    names = [f"b{n}" for n in range(5)]
    for name in names:
        container.upload_blob(name, b"x")
    answers = list(container.delete_blobs(*names))
    assert [answer.status_code for answer in answers] == [202] * 5
    assert list(container.list_blobs()) == []


def test_a_batch_answers_each_request_by_itself(container):
    container.upload_blob("there", b"x")
    answers = list(
        container.delete_blobs("there", "missing", raise_on_any_failure=False)
    )
    assert [answer.status_code for answer in answers] == [202, 404]
    assert answers[1].headers["x-ms-error-code"] == "BlobNotFound"


def test_a_batch_sets_tiers(container):
    for name in ["a", "b"]:
        container.upload_blob(name, b"x")
    answers = list(container.set_standard_blob_tier_blobs("Cool", "a", "b"))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [item.blob_tier for item in container.list_blobs()] == ["Cool", "Cool"]


def test_a_website_is_set(blobs):
    """Azurite takes the website and does not keep it."""
    site = StaticWebsite(enabled=True, index_document="index.html", error_document404_path="404.html")
    blobs.set_service_properties(static_website=site)
    kept = blobs.get_service_properties()["static_website"]
    assert kept.enabled and kept.index_document == "index.html"
    blobs.set_service_properties(static_website=StaticWebsite(enabled=False))
    assert not blobs.get_service_properties()["static_website"].enabled


def test_the_root_container_needs_no_name(blobs, blobs_url, target):
    root = blobs.get_container_client("$root")
    if not root.exists():
        root.create_container()
    name = f"b{uuid.uuid4().hex}"
    root.upload_blob(name, b"x")
    from azure.storage.blob import BlobClient

    credential = {"account_name": target["account"], "account_key": target["key"]}
    blob = BlobClient.from_blob_url(f"{blobs_url}/$root/{name}", credential=credential)
    assert blob.download_blob().readall() == b"x"
