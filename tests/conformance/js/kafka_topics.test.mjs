// Topics over Kafka: created, described, given more partitions, deleted.

import assert from "node:assert/strict";

import kafkajs from "kafkajs";

import { freshTopic, withAdmin } from "./kafka_target.mjs";
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

test("test_a_bad_name_is_refused", async () => {
  const topics = { topics: [{ topic: "bad/name" }] };
  await withAdmin((admin) =>
    assert.rejects(admin.createTopics(topics), refused("INVALID_TOPIC_EXCEPTION")),
  );
});
