"""The service itself: properties, rules for pages of other origins, statistics."""

import pytest
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableServiceClient,
)


def rule(origin):
    return TableCorsRule(
        [origin],
        ["GET", "PUT"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["etag"],
        max_age_in_seconds=60,
    )


def test_properties_are_kept(tables):
    days = TableRetentionPolicy(enabled=True, days=5)
    logging = TableAnalyticsLogging(read=True, write=True, delete=False, retention_policy=days)
    metrics = TableMetrics(enabled=True, include_apis=True, retention_policy=days)
    cors = [rule("http://page.example")]
    tables.set_service_properties(analytics_logging=logging, hour_metrics=metrics, cors=cors)
    found = tables.get_service_properties()
    assert (found["analytics_logging"].read, found["analytics_logging"].delete) == (True, False)
    assert found["analytics_logging"].retention_policy.days == 5
    assert (found["hour_metrics"].enabled, found["hour_metrics"].include_apis) == (True, True)
    assert found["cors"][0].allowed_origins == ["http://page.example"]
    assert found["cors"][0].allowed_methods == ["GET", "PUT"]
    assert found["cors"][0].max_age_in_seconds == 60
    tables.set_service_properties(cors=[])
    assert tables.get_service_properties()["cors"] == []


def test_too_many_rules_are_refused(tables):
    """Azure takes five rules at most; Azurite takes any number."""
    rules = [rule(f"http://page{number}.example") for number in range(6)]
    with pytest.raises(HttpResponseError) as raised:
        tables.set_service_properties(cors=rules)
    assert raised.value.status_code == 400


def test_statistics_come_from_the_secondary(target, tables_url):
    credential = AzureNamedKeyCredential(target["account"], target["key"])
    # By itself the SDK makes a secondary address out of host and path that nothing answers.
    host = target["endpoints"]["tables"].removeprefix("http://")
    url = f"{tables_url}-secondary"
    with TableServiceClient(url, credential=credential, secondary_hostname=host) as client:
        stats = client.get_service_stats()
    assert stats["geo_replication"]["status"] == "live"


def test_the_secondary_reads_and_does_not_write(target, tables_url, table):
    """Azure's secondary is a copy to read; Azurite's is the same tables under another name, and takes writes."""
    table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    credential = AzureNamedKeyCredential(target["account"], target["key"])
    url = f"{tables_url}-secondary"
    with TableServiceClient(url, credential=credential, retry_total=0) as client:
        secondary = client.get_table_client(table.table_name)
        assert secondary.get_entity("p", "r")
        with pytest.raises(HttpResponseError) as raised:
            secondary.delete_entity("p", "r")
    assert raised.value.status_code == 403
