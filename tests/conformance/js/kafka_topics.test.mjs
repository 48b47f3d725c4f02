// Topics over Kafka: created, described, given more partitions, deleted.

import assert from "node:assert/strict";

import kafkajs, { CompressionTypes } from "kafkajs";

import { freshTopic, kafka, read, send, withAdmin } from "./kafka_target.mjs";
import { freshName, test } from "./target.mjs";

const refused = (type) => (error) =>
  (error.errors ? error.errors[0].type : error.type) === type;

test("test_a_topic_is_created_listed_and_deleted", async () => {
  const topic = await freshTopic(3);
  await withAdmin(async (admin) => {
    const [described] = (await admin.fetchTopicMetadata({ topics: [topic] })).topics;
    const ids = described.partitions.map((partition) => partition.partitionId);
    assert.deepEqual(ids.sort(), [0, 1, 2]);
    assert.equal(await admin.createTopics({ topics: [{ topic }] }), false);
    await admin.deleteTopics({ topics: [topic] });
    assert(!(await admin.listTopics()).includes(topic));
  });
});

test("test_partitions_are_added_and_never_taken_away", async () => {
  const topic = await freshTopic(2);
  await withAdmin(async (admin) => {
    await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] });
    assert.equal((await admin.fetchTopicOffsets(topic)).length, 5);
    const fewer = admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
    await assert.rejects(fewer, refused("INVALID_PARTITIONS"));
  });
});

test("test_settings_of_a_topic_are_kept_and_unknown_ones_refused", async () => {
  const topic = await freshTopic(1, { "retention.ms": "3600000" });
  await withAdmin(async (admin) => {
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }];
    const [described] = (await admin.describeConfigs({ resources })).resources;
    const value = (name) =>
      described.configEntries.find((entry) => entry.configName === name).configValue;
    assert.deepEqual([value("retention.ms"), value("cleanup.policy")], ["3600000", "delete"]);
    const configEntries = [{ name: "flush.messages", value: "1" }];
    const other = { topics: [{ topic: freshName("t"), configEntries }] };
    await assert.rejects(admin.createTopics(other), refused("INVALID_CONFIG"));
  });
});

async function described(admin, topic) {
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }];
  const [found] = (await admin.describeConfigs({ resources })).resources;
  return Object.fromEntries(found.configEntries.map((one) => [one.configName, one.configValue]));
}

// This client has no request for one setting: it names all that are not to be what they are by default.
test("test_settings_of_a_topic_are_changed_one_by_one_and_together", async () => {
  const topic = await freshTopic(1, { "retention.ms": "3600000" });
  await withAdmin(async (admin) => {
    const alter = (config) => {
      const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
      const type = kafkajs.ConfigResourceTypes.TOPIC;
      return admin.alterConfigs({ resources: [{ type, name: topic, configEntries }] });
    };
    await alter({ "cleanup.policy": "compact,delete", "delete.retention.ms": "5000" });
    let configs = await described(admin, topic);
    assert.deepEqual(configs["cleanup.policy"].split(",").sort(), ["compact", "delete"]);
    assert.equal(configs["delete.retention.ms"], "5000");
    assert.equal(configs["retention.ms"], "604800000");
    await assert.rejects(alter({ "min.cleanable.dirty.ratio": "7" }), refused("INVALID_CONFIG"));
    await alter({ "retention.bytes": "99" });
    configs = await described(admin, topic);
    assert.deepEqual([configs["retention.bytes"], configs["cleanup.policy"]], ["99", "delete"]);
  });
});

test("test_records_are_deleted_up_to_an_offset", async () => {
  const topic = await freshTopic();
  await send(topic, Array.from({ length: 10 }, (_, at) => ({ value: String(at) })));
  await withAdmin(async (admin) => {
    const until = (offset) =>
      admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset }] });
    const low = async () => (await admin.fetchTopicOffsets(topic))[0].low;
    // This client deletes records of topics only that it has asked about before.
    assert.equal(await low(), "0");
    await until("4");
    assert.equal(await low(), "4");
    const left = (await read(topic, 6)).map((one) => [one.offset, one.value.toString()]);
    assert.deepEqual(left, Array.from({ length: 6 }, (_, at) => [String(at + 4), String(at + 4)]));
    await assert.rejects(until("11"));
    assert.equal(await low(), "4");
    await until("-1");
    assert.equal(await low(), "10");
  });
});

test("test_a_compacted_topic_keeps_the_newest_record_of_each_key", async () => {
  const config = { "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0" };
  const topic = await freshTopic(1, config);
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  for (let round = 0; round < 5; round += 1) {
    const messages = ["a", "b", "c"].map((key) => ({ key, value: String(round) }));
    await producer.send({ topic, compression: CompressionTypes.GZIP, messages });
  }
  await producer.send({ topic, messages: [{ key: "a", value: null }] });
  await producer.disconnect();
  let left = [];
  for (const end = Date.now() + 30_000; Date.now() < end && left[0]?.[0] !== "13"; ) {
    const found = await read(topic, 3);
    left = found.map((one) => [one.offset, one.key.toString(), one.value?.toString() ?? null]);
  }
  assert.deepEqual(left, [["13", "b", "4"], ["14", "c", "4"], ["15", "a", null]]);
  await assert.rejects(send(topic, [{ value: "no key" }]));
});

test("test_a_bad_name_is_refused", async () => {
  const topics = { topics: [{ topic: "bad/name" }] };
  await withAdmin((admin) =>
    assert.rejects(admin.createTopics(topics), refused("INVALID_TOPIC_EXCEPTION")),
  );
});
