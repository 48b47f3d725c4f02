"""The service itself: properties, rules for pages of other origins, statistics."""

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import (
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueServiceClient,
    RetentionPolicy,
)


def rule(origin):
    return CorsRule(
        [origin],
        ["GET", "PUT"],
        allowed_headers=["x-ms-*"],
        exposed_headers=["etag"],
        max_age_in_seconds=60,
    )


def test_properties_are_kept(queues):
    days = RetentionPolicy(enabled=True, days=5)
    logging = QueueAnalyticsLogging(read=True, write=True, delete=False, retention_policy=days)
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=days)
    cors = [rule("http://page.example")]
    queues.set_service_properties(analytics_logging=logging, hour_metrics=metrics, cors=cors)
    found = queues.get_service_properties()
    assert (found["analytics_logging"].read, found["analytics_logging"].delete) == (True, False)
    assert found["analytics_logging"].retention_policy.days == 5
    assert (found["hour_metrics"].enabled, found["hour_metrics"].include_apis) == (True, True)
    assert found["cors"][0].allowed_origins == "http://page.example"
    assert found["cors"][0].allowed_methods == "GET,PUT"
    assert found["cors"][0].max_age_in_seconds == 60
    queues.set_service_properties(cors=[])
    assert queues.get_service_properties()["cors"] == []


def test_too_many_rules_are_refused(queues):
    """Azure takes five rules at most."""
    rules = [rule(f"http://page{number}.example") for number in range(6)]
    with pytest.raises(HttpResponseError) as raised:
        queues.set_service_properties(cors=rules)
    assert raised.value.status_code == 400


def test_statistics_come_from_the_secondary(target, queues_url):
    credential = {"account_name": target["account"], "account_key": target["key"]}
    # By itself the SDK makes a secondary address out of host and path that nothing answers.
    host = target["endpoints"]["queues"].removeprefix("http://")
    url = f"{queues_url}-secondary"
    with QueueServiceClient(url, credential=credential, secondary_hostname=host) as client:
        stats = client.get_service_stats()
    assert stats["geo_replication"]["status"] == "live"


def test_the_secondary_reads_and_does_not_write(target, queues_url, queue):
    """Azure's secondary is a copy to read; Azurite's is the same queues under another name, and takes writes."""
    queue.send_message("a")
    credential = {"account_name": target["account"], "account_key": target["key"]}
    url = f"{queues_url}-secondary"
    with QueueServiceClient(url, credential=credential, retry_total=0) as client:
        secondary = client.get_queue_client(queue.queue_name)
        assert [message.content for message in secondary.peek_messages()] == ["a"]
        with pytest.raises(HttpResponseError) as raised:
            secondary.send_message("b")
    assert raised.value.status_code == 403
