// Groups of consumers over Kafka: who gets what, and how far they have come.

import assert from "node:assert/strict";

import { freshTopic, kafka, read, send, values, withAdmin } from "./kafka_target.mjs";
import { freshName, test } from "./target.mjs";

const numbers = (from, to) => Array.from({ length: to - from }, (_, at) => String(from + at));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(holds) {
  const end = Date.now() + 30000;
  while (!holds()) {
    assert(Date.now() < end, "it never came to that");
    await sleep(20);
  }
}

test("test_a_group_goes_on_where_it_committed", async () => {
  const topic = await freshTopic();
  const groupId = freshName("g");
  await send(topic, numbers(0, 10).map((value) => ({ value })));
  await withAdmin((admin) =>
    admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: "4" }] }),
  );
  assert.deepEqual(values(await read(topic, 6, groupId)), numbers(4, 10));
  const [found] = await withAdmin((admin) => admin.fetchOffsets({ groupId, topics: [topic] }));
  assert.equal(found.partitions[0].offset, "4");
});

test("test_two_consumers_share_the_partitions_and_one_takes_over", async () => {
  const topic = await freshTopic(4);
  const groupId = freshName("g");
  const held = [[], []];
  const consumers = [];
  for (const at of [0, 1]) {
    const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 300 });
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
      held[at] = payload.memberAssignment[topic] ?? [];
    });
    await consumer.connect();
    await consumer.subscribe({ topic });
    await consumer.run({ eachMessage: async () => {} });
    consumers.push(consumer);
  }
  await until(() => held[0].length === 2 && held[1].length === 2);
  assert.deepEqual([...held[0], ...held[1]].sort(), [0, 1, 2, 3]);
  await consumers[1].disconnect();
  await until(() => held[0].length === 4);
  await consumers[0].disconnect();
});

test("test_groups_are_listed_described_and_deleted", async () => {
  const topic = await freshTopic();
  const groupId = freshName("g");
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topic });
  const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
  await consumer.run({ eachMessage: async () => {} });
  await joined;
  await withAdmin(async (admin) => {
    const { groups } = await admin.listGroups();
    assert(groups.some((group) => group.groupId === groupId));
    const [described] = (await admin.describeGroups([groupId])).groups;
    assert.deepEqual([described.state, described.members.length], ["Stable", 1]);
    await consumer.disconnect();
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: "1" }] });
    await admin.deleteGroups([groupId]);
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
    assert.equal(found.partitions[0].offset, "-1");
  });
});
