// Queues: create, delete, list, and what is kept about them.

import assert from "node:assert/strict";

import { freshQueue, peek, queues, receive, refused, status } from "./queues_target.mjs";
import { all, freshName, test } from "./target.mjs";

test("test_a_queue_is_created_listed_and_deleted", async () => {
  const queue = await freshQueue();
  const prefix = queue.name;
  assert.deepEqual((await all(queues.listQueues({ prefix }))).map((item) => item.name), [prefix]);
  await queue.delete();
  assert.deepEqual(await all(queues.listQueues({ prefix })), []);
});

test("test_creating_a_queue_again_depends_on_its_metadata", async () => {
  const queue = queues.getQueueClient(freshName("q"));
  await queue.create({ metadata: { color: "red" } });
  const same = await queue.create({ metadata: { color: "red" } });
  assert.equal(same._response.status, 204);
  const again = await refused(() => queue.create({ metadata: { color: "blue" } }));
  assert.deepEqual(again, [409, "QueueAlreadyExists"]);
});

test("test_a_missing_queue_is_not_found", async () => {
  const queue = queues.getQueueClient(freshName("q"));
  for (const call of [
    () => queue.delete(),
    () => queue.getProperties(),
    () => queue.setMetadata({ a: "1" }),
    () => queue.getAccessPolicy(),
    () => queue.sendMessage("a"),
    () => queue.peekMessages(),
    () => queue.clearMessages(),
    () => queue.receiveMessages(),
  ]) {
    assert.deepEqual(await refused(call), [404, "QueueNotFound"]);
  }
});

for (const [name, expected] of [
  ["ab", "OutOfRangeInput"],
  ["a".repeat(64), "OutOfRangeInput"],
  ["Upper", "InvalidResourceName"],
  ["a--b", "InvalidResourceName"],
  ["-ab", "InvalidResourceName"],
  ["a_b", "InvalidResourceName"],
]) {
  test(`test_names_follow_the_rules[${name}-${expected}]`, async () => {
    assert.deepEqual(await refused(() => queues.createQueue(name)), [400, expected]);
  });
}

test("test_metadata_is_set_and_read", async () => {
  const queue = await freshQueue();
  await queue.setMetadata({ color: "red", shape: "round" });
  assert.deepEqual((await queue.getProperties()).metadata, { color: "red", shape: "round" });
  await queue.setMetadata({});
  assert.deepEqual((await queue.getProperties()).metadata ?? {}, {});
});

test("test_bad_metadata_is_refused", async () => {
  const queue = await freshQueue();
  assert.equal(await status(() => queue.setMetadata({ "1-a": "x" })), 400);
});

test("test_the_count_of_messages_is_that_of_all", async () => {
  const queue = await freshQueue();
  const count = async () => (await queue.getProperties()).approximateMessagesCount;
  assert.equal(await count(), 0);
  for (const text of ["0", "1", "2"]) {
    await queue.sendMessage(text);
  }
  await queue.sendMessage("hidden", { visibilityTimeout: 60 });
  assert.equal(await count(), 4);
});

test("test_a_list_has_prefix_pages_and_metadata", async () => {
  const prefix = freshName("list").slice(0, 16);
  const names = [0, 1, 2, 3, 4].map((number) => `${prefix}-${number}`);
  for (const name of names) {
    await queues.createQueue(name, { metadata: { name } });
  }
  const found = await all(queues.listQueues({ prefix, includeMetadata: true }));
  assert.deepEqual(found.map((queue) => queue.name), names);
  assert.deepEqual(found.map((queue) => queue.metadata.name), names);
  const plain = await all(queues.listQueues({ prefix }));
  assert.deepEqual(plain.map((queue) => queue.metadata), Array(5).fill(undefined));
  const pages = await all(queues.listQueues({ prefix }).byPage({ maxPageSize: 2 }));
  const listed = pages.map((page) => page.queueItems.map((queue) => queue.name));
  assert.deepEqual(listed, [names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
  const first = await queues.listQueues({ prefix }).byPage({ maxPageSize: 3 }).next();
  const { continuationToken } = first.value;
  const second = await queues.listQueues({ prefix }).byPage({ maxPageSize: 3, continuationToken }).next();
  assert.deepEqual(second.value.queueItems.map((queue) => queue.name), names.slice(3));
});

test("test_a_deleted_queue_comes_back_empty", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("old");
  await queue.delete();
  await queue.create();
  assert.deepEqual(await peek(queue), []);
  assert.deepEqual(await receive(queue), []);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
});
