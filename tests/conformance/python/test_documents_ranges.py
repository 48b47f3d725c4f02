"""Documents: physical partitions, their splits, and request units."""

import threading

from azure.cosmos import CosmosClient
from azure.cosmos._retry_options import RetryOptions
from azure.cosmos.documents import ConnectionPolicy

from documents import all_of, container, ids, make, refusal, settle


def test_throughput_decides_how_many_ranges_there_are(database):
    for units, expected in [(400, 1), (12000, 2), (30000, 5)]:
        container = make(database, offer_throughput=units)
        assert len(list(container.read_feed_ranges())) == expected


def test_ranges_tile_the_space_of_keys(database):
    container = make(database, offer_throughput=30000)
    ranges = [one["Range"] for one in container.read_feed_ranges()]
    bounds = [(one["min"], one["max"]) for one in ranges]
    assert bounds[0][0] == "" and bounds[-1][1] == "FF"
    assert [one[1] for one in bounds[:-1]] == [one[0] for one in bounds[1:]]


def test_a_range_is_queried_by_itself(database):
    container = make(database, offer_throughput=12000)
    for n in range(40):
        container.create_item({"id": str(n), "pk": str(n)})
    parts = [ids(container.query_items("SELECT * FROM c", feed_range=one)) for one in container.read_feed_ranges()]
    assert len(parts) == 2 and all(parts)
    assert sorted(sum(parts, []), key=int) == [str(n) for n in range(40)]


def test_more_throughput_splits_ranges_and_nothing_is_lost(database):
    container = make(database)
    for n in range(60):
        container.create_item({"id": str(n), "pk": str(n)})
    before = list(container.read_feed_ranges())
    container.replace_throughput(30000)
    settle(container)
    assert len(list(container.read_feed_ranges(force_refresh=True))) == 5
    assert sorted(ids(all_of(container, "SELECT * FROM c")), key=int) == [str(n) for n in range(60)]
    assert container.read_item("7", "7")["id"] == "7"
    old = container.query_items("SELECT * FROM c", feed_range=before[0])
    assert sorted(ids(old), key=int) == [str(n) for n in range(60)]


def test_a_split_under_load_reaches_no_caller(database):
    container = make(database)
    failures, written, stop = [], [], threading.Event()

    def work(name):
        n = 0
        while not stop.is_set():
            try:
                key = f"{name}-{n}"
                container.create_item({"id": key, "pk": key})
                written.append(key)
                assert container.read_item(key, key)["id"] == key
            except Exception as error:
                failures.append(error)
            n += 1

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    while len(written) < 20 and not failures:
        pass
    assert len(list(container.read_feed_ranges())) == 1
    container.replace_throughput(30000)
    settle(container)
    while len(written) < 100 and not failures:
        pass
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(list(container.read_feed_ranges(force_refresh=True))) == 5
    assert sorted(ids(all_of(container, "SELECT * FROM c"))) == sorted(written)


def test_a_change_of_throughput_is_pending_until_its_ranges_are_there(database):
    container = make(database)
    replaced = container.replace_throughput(30000)
    assert replaced.properties["content"]["isOfferReplacePending"] is True
    assert replaced.offer_throughput == 30000
    settle(container)
    assert len(list(container.read_feed_ranges(force_refresh=True))) == 5
    # What the ranges can give is given at once.
    assert container.replace_throughput(20000).properties["content"]["isOfferReplacePending"] is False


def test_costs_follow_the_size_of_items(container):
    charges = []
    hook = lambda headers, _: charges.append(float(headers["x-ms-request-charge"]))
    container.create_item({"id": "1", "pk": "a"}, response_hook=hook)
    container.create_item({"id": "2", "pk": "a", "text": "x" * 100 * 1024}, response_hook=hook)
    container.read_item("1", "a", response_hook=hook)
    container.read_item("2", "a", response_hook=hook)
    small, large, read_small, read_large = charges
    assert 5 < small < 10 and large > 45
    assert read_small == 1 and 9.5 < read_large < 10.5


def test_a_container_over_its_budget_refuses_and_says_when_to_come(target, documents_key, database):
    container = make(database)
    policy = ConnectionPolicy()
    policy.RetryOptions = RetryOptions(0, None, 0)
    client = CosmosClient(target["endpoints"]["documents"], documents_key, connection_policy=policy)
    hasty = client.get_database_client(database.id).get_container_client(container.id)
    big = {"id": "1", "pk": "a", "text": "x" * 500 * 1024}

    def load():
        for _ in range(20):
            hasty.upsert_item(big)

    refused = refusal(load)
    assert refused.status_code == 429 and refused.sub_status == 3200
    assert int(refused.headers["x-ms-retry-after-ms"]) > 0
    # The neighbour does not feel it.
    neighbour = make(database)
    neighbour.create_item({"id": "1", "pk": "a"})


def test_sessions_go_on(container):
    headers = {}
    container.create_item({"id": "1", "pk": "a"}, response_hook=lambda found, _: headers.update(found))
    token = headers["x-ms-session-token"]
    assert "#" in token and headers["x-ms-alt-content-path"].startswith("dbs/")
    assert container.read_item("1", "a", session_token=token)["id"] == "1"
