"""The administration of the bus: queues, topics, subscriptions and rules, as the official client makes and reads them."""

import datetime
import itertools

import pytest
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.servicebus.management import (
    CorrelationRuleFilter,
    EntityStatus,
    FalseRuleFilter,
    ServiceBusAdministrationClient,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from bus import bus, fresh  # noqa: F401

MINUTE = datetime.timedelta(minutes=1)


@pytest.fixture(scope="session")
def admin(bus):
    """A client of the administration. It insists on HTTPS, and the certificate is one that the server has made."""
    text = bus.connection_string()
    client = ServiceBusAdministrationClient.from_connection_string(text, connection_verify=False)
    with client:
        yield client


@pytest.fixture
def topic(admin):
    name = fresh("t")
    admin.create_topic(name)
    return name


def test_a_queue_keeps_the_properties_it_was_created_with(admin):
    name, other = fresh("q"), fresh("q")
    admin.create_queue(other)
    made = admin.create_queue(
        name,
        lock_duration=MINUTE * 2,
        max_size_in_megabytes=2048,
        requires_duplicate_detection=True,
        requires_session=True,
        default_message_time_to_live=MINUTE * 11,
        dead_lettering_on_message_expiration=True,
        duplicate_detection_history_time_window=MINUTE * 12,
        max_delivery_count=14,
        enable_batched_operations=False,
        auto_delete_on_idle=MINUTE * 13,
        user_metadata="some <text> & more",
        forward_dead_lettered_messages_to=other,
    )
    found = admin.get_queue(name)
    for queue in (made, found):
        assert queue.name == name
        assert queue.lock_duration == MINUTE * 2
        assert queue.max_size_in_megabytes == 2048
        assert queue.requires_duplicate_detection and queue.requires_session
        assert queue.default_message_time_to_live == MINUTE * 11
        assert queue.dead_lettering_on_message_expiration
        assert queue.duplicate_detection_history_time_window == MINUTE * 12
        assert queue.max_delivery_count == 14
        assert queue.enable_batched_operations is False
        assert queue.auto_delete_on_idle == MINUTE * 13
        assert queue.user_metadata == "some <text> & more"
        assert queue.forward_dead_lettered_messages_to.endswith(other)
        assert queue.enable_partitioning is False
        assert queue.availability_status == "Available"
        assert queue.status == EntityStatus.ACTIVE


def test_a_queue_has_defaults(admin):
    name = fresh("q")
    queue = admin.create_queue(name)
    assert queue.lock_duration == MINUTE
    assert queue.max_delivery_count == 10
    assert queue.default_message_time_to_live.days == 10675199
    assert queue.auto_delete_on_idle.days == 10675199
    assert queue.forward_to is None and queue.user_metadata is None


def test_a_partitioned_queue_is_said_to_be_one(admin):
    name = fresh("q")
    admin.create_queue(name, enable_partitioning=True)
    assert admin.get_queue(name).enable_partitioning


def test_what_exists_is_not_created_again(admin, topic):
    with pytest.raises(ResourceExistsError):
        admin.create_topic(topic)
    with pytest.raises(HttpResponseError):
        admin.create_queue(topic)


def test_what_is_not_there_is_not_found(admin, topic):
    for call in (
        lambda: admin.get_queue("nothing"),
        lambda: admin.get_topic("nothing"),
        lambda: admin.get_queue_runtime_properties("nothing"),
        lambda: admin.get_subscription(topic, "nothing"),
        lambda: admin.get_rule(topic, "nothing", "nothing"),
        lambda: admin.delete_queue("nothing"),
        lambda: admin.delete_topic("nothing"),
        lambda: admin.delete_subscription(topic, "nothing"),
        lambda: admin.create_subscription("nothing", "s"),
    ):
        with pytest.raises(ResourceNotFoundError):
            call()


def test_a_queue_is_updated(admin):
    name = fresh("q")
    queue = admin.create_queue(name)
    queue.lock_duration = MINUTE * 3
    queue.max_delivery_count = 5
    queue.status = EntityStatus.SEND_DISABLED
    admin.update_queue(queue)
    found = admin.get_queue(name)
    assert found.lock_duration == MINUTE * 3
    assert found.max_delivery_count == 5
    assert found.status == EntityStatus.SEND_DISABLED
    admin.update_queue(found, max_delivery_count=6)
    assert admin.get_queue(name).max_delivery_count == 6


def test_what_is_chosen_at_creation_cannot_be_updated(admin):
    queue = admin.create_queue(fresh("q"))
    queue.requires_session = True
    with pytest.raises(HttpResponseError) as refused:
        admin.update_queue(queue)
    assert refused.value.status_code == 400


def test_invalid_properties_are_refused(admin):
    for wrong in (
        {"lock_duration": MINUTE * 6},
        {"max_delivery_count": 0},
        {"auto_delete_on_idle": MINUTE},
        {"forward_to": "nothing"},
    ):
        with pytest.raises(HttpResponseError) as refused:
            admin.create_queue(fresh("q"), **wrong)
        assert refused.value.status_code == 400


def test_a_queue_is_deleted(admin):
    name = fresh("q")
    admin.create_queue(name)
    admin.delete_queue(name)
    with pytest.raises(ResourceNotFoundError):
        admin.get_queue(name)


def test_queues_and_topics_are_listed_in_pages(admin):
    names = [fresh("list") for _ in range(3)]
    for name in names:
        admin.create_queue(name)
    listed = {queue.name for queue in admin.list_queues()}
    assert set(names) <= listed
    topic = fresh("list")
    admin.create_topic(topic)
    assert topic in {found.name for found in admin.list_topics()}
    assert topic not in {queue.name for queue in admin.list_queues()}
    counted = list(itertools.islice(admin.list_queues_runtime_properties(), 2))
    assert all(one.total_message_count >= 0 for one in counted)


def test_runtime_properties_count_messages(admin, bus):
    name = fresh("q")
    admin.create_queue(name)
    bus.send(name, "a", "b", "c")
    with bus.receiver(name) as receiver:
        (first,) = receiver.receive_messages(max_message_count=1, max_wait_time=10)
        receiver.dead_letter_message(first)
    with bus.client.get_queue_sender(name) as sender:
        from azure.servicebus import ServiceBusMessage

        later = datetime.datetime.now(datetime.timezone.utc) + MINUTE
        sender.schedule_messages(ServiceBusMessage("d"), later)
    found = admin.get_queue_runtime_properties(name)
    assert found.active_message_count == 2
    assert found.dead_letter_message_count == 1
    assert found.scheduled_message_count == 1
    assert found.transfer_message_count == 0
    assert found.transfer_dead_letter_message_count == 0
    assert found.total_message_count == 4
    assert found.size_in_bytes > 0
    assert found.created_at_utc <= found.updated_at_utc


def test_a_topic_is_created_updated_and_counted(admin):
    name = fresh("t")
    topic = admin.create_topic(
        name,
        default_message_time_to_live=MINUTE * 10,
        max_size_in_megabytes=2048,
        requires_duplicate_detection=True,
        duplicate_detection_history_time_window=MINUTE * 12,
        enable_batched_operations=True,
        support_ordering=True,
        user_metadata="mine",
    )
    assert topic.default_message_time_to_live == MINUTE * 10
    assert topic.requires_duplicate_detection and topic.support_ordering
    topic.default_message_time_to_live = MINUTE * 20
    admin.update_topic(topic)
    assert admin.get_topic(name).default_message_time_to_live == MINUTE * 20
    for number in range(2):
        admin.create_subscription(name, f"s{number}")
    assert admin.get_topic_runtime_properties(name).subscription_count == 2
    admin.delete_topic(name)
    with pytest.raises(ResourceNotFoundError):
        admin.get_topic(name)


def test_a_subscription_is_created_updated_listed_and_deleted(admin, topic):
    queue = fresh("q")
    admin.create_queue(queue)
    made = admin.create_subscription(
        topic,
        "s",
        lock_duration=MINUTE * 2,
        requires_session=True,
        default_message_time_to_live=MINUTE * 11,
        dead_lettering_on_message_expiration=True,
        dead_lettering_on_filter_evaluation_exceptions=False,
        max_delivery_count=14,
        user_metadata="mine",
        forward_dead_lettered_messages_to=queue,
    )
    assert made.name == "s" and made.requires_session
    found = admin.get_subscription(topic, "s")
    assert found.lock_duration == MINUTE * 2
    assert found.dead_lettering_on_filter_evaluation_exceptions is False
    assert found.max_delivery_count == 14
    found.max_delivery_count = 20
    admin.update_subscription(topic, found)
    assert admin.get_subscription(topic, "s").max_delivery_count == 20
    admin.create_subscription(topic, "other")
    assert [one.name for one in admin.list_subscriptions(topic)] == ["other", "s"]
    counts = admin.get_subscription_runtime_properties(topic, "s")
    assert counts.active_message_count == 0
    with pytest.raises(ResourceExistsError):
        admin.create_subscription(topic, "S")
    admin.delete_subscription(topic, "s")
    with pytest.raises(ResourceNotFoundError):
        admin.get_subscription(topic, "s")


def test_a_subscription_begins_with_a_rule_for_everything(admin, topic):
    admin.create_subscription(topic, "s")
    (rule,) = admin.list_rules(topic, "s")
    assert rule.name == "$Default" and isinstance(rule.filter, TrueRuleFilter)
    admin.delete_rule(topic, "s", "$Default")
    assert list(admin.list_rules(topic, "s")) == []


def test_rules_of_every_kind_survive(admin, topic):
    admin.create_subscription(topic, "s")
    moment = datetime.datetime(2026, 7, 5, 11, 12, 13, tzinfo=datetime.timezone.utc)
    correlation = CorrelationRuleFilter(
        correlation_id="c",
        content_type="text/plain",
        label="l",
        message_id="m",
        reply_to="r",
        reply_to_session_id="rs",
        session_id="s",
        to="to",
        properties={"text": "x", "int": 7, "flag": True, "double": 2.5, "moment": moment},
    )
    admin.create_rule(topic, "s", "correlation", filter=correlation)
    sql = SqlRuleFilter("color = 'blue' AND size > 5")
    admin.create_rule(topic, "s", "sql", filter=sql, action=SqlRuleAction("SET size = 1"))
    admin.create_rule(topic, "s", "false", filter=FalseRuleFilter())
    found = admin.get_rule(topic, "s", "correlation").filter
    for name in ("correlation_id", "content_type", "label", "message_id", "reply_to", "to"):
        assert getattr(found, name) == getattr(correlation, name)
    assert (found.session_id, found.reply_to_session_id) == ("s", "rs")
    assert found.properties["text"] == "x" and found.properties["int"] == 7
    assert found.properties["flag"] is True and found.properties["double"] == 2.5
    rule = admin.get_rule(topic, "s", "sql")
    assert rule.filter.sql_expression == "color = 'blue' AND size > 5"
    assert rule.action.sql_expression == "SET size = 1"
    assert isinstance(admin.get_rule(topic, "s", "false").filter, FalseRuleFilter)
    rule.filter = SqlRuleFilter("color = 'red'")
    admin.update_rule(topic, "s", rule)
    assert admin.get_rule(topic, "s", "sql").filter.sql_expression == "color = 'red'"
    names = [one.name for one in admin.list_rules(topic, "s")]
    assert names == ["$Default", "correlation", "false", "sql"]


def test_a_filter_that_does_not_parse_is_refused(admin, topic):
    admin.create_subscription(topic, "s")
    for text in ("color ==", "sys.Nothing = 1", "color = 'x"):
        with pytest.raises(HttpResponseError) as refused:
            admin.create_rule(topic, "s", "r", filter=SqlRuleFilter(text))
        assert refused.value.status_code == 400
    with pytest.raises(ResourceExistsError):
        admin.create_rule(topic, "s", "$Default", filter=TrueRuleFilter())


def test_the_namespace_says_what_it_is(admin):
    found = admin.get_namespace_properties()
    assert found.name and found.namespace_type == "Messaging"


def test_nobody_without_the_key_gets_in(bus):
    text = bus.connection_string(key="another")
    client = ServiceBusAdministrationClient.from_connection_string(text, connection_verify=False)
    with client, pytest.raises(HttpResponseError) as refused:
        client.get_namespace_properties()
    assert refused.value.status_code == 401
