"""The cache as a cluster judged by redis-py's RedisCluster: keys in all slots, pipelines, scripts, and the map of slots."""

import uuid

import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster


@pytest.fixture(scope="session")
def nodes(target):
    urls = [target["endpoints"][f"cache-node-{number}"] for number in (1, 2)]
    addresses = [url.split("://")[1].rsplit(":", 1) for url in urls]
    return [ClusterNode(host, int(port)) for host, port in addresses]


@pytest.fixture
def cluster(nodes):
    client = RedisCluster(startup_nodes=nodes[:1], decode_responses=True)
    yield client
    client.close()


@pytest.fixture
def key():
    return f"k{uuid.uuid4().hex}"


def test_keys_of_all_slots_are_set_and_read(cluster, key):
    for number in range(200):
        assert cluster.set(f"{key}:{number}", number) is True
    for number in range(200):
        assert cluster.get(f"{key}:{number}") == str(number)
    assert cluster.delete(f"{key}:1") == 1


def test_a_pipeline_over_one_tag_is_answered_in_order(cluster, key):
    pipeline = cluster.pipeline()
    pipeline.rpush(f"{{{key}}}:l", "a", "b")
    pipeline.lrange(f"{{{key}}}:l", 0, -1)
    pipeline.incr(f"{{{key}}}:n")
    assert pipeline.execute() == [2, ["a", "b"], 1]


def test_commands_over_several_slots_are_refused(nodes, key):
    node = redis.Redis(host=nodes[0].host, port=nodes[0].port)
    with pytest.raises(redis.exceptions.ClusterCrossSlotError):
        node.execute_command("MSET", f"{{a}}{key}", 1, f"{{b}}{key}", 2)
    node.close()


def test_a_script_runs_where_its_key_is(cluster, key):
    body = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    assert cluster.eval(body, 1, key, 5) == 5
    assert cluster.eval(body, 1, key, 2) == 7


def test_the_map_covers_every_slot(cluster):
    covered = set()
    for first, last in cluster.cluster_slots():
        covered.update(range(first, last + 1))
    assert covered == set(range(16384))
    assert cluster.cluster_info()["cluster_state"] == "ok"
