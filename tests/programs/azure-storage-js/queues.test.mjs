// Queues through the last SDK of the older generation.

import assert from "node:assert/strict";
import { test } from "node:test";

import { address, call, connection, fresh, minutes, refusal, storage } from "./target.mjs";

const queues = storage.createQueueService(connection);

async function queue() {
  const name = fresh("q");
  await call(queues, "createQueue", name);
  return name;
}

test("a queue is created, found, listed and deleted", async () => {
  const name = fresh("q");
  assert.equal((await call(queues, "doesQueueExist", name)).exists, false);
  const create = () => call(queues, "createQueueIfNotExists", name, { metadata: { a: "b" } });
  assert.equal((await create()).created, true);
  assert.equal((await create()).created, false);
  assert.equal((await call(queues, "doesQueueExist", name)).exists, true);
  const other = call(queues, "createQueue", name, { metadata: { a: "c" } });
  assert.equal(await refusal(other), "409 QueueAlreadyExists");
  const listed = await call(queues, "listQueuesSegmentedWithPrefix", name, null, {
    include: "metadata",
  });
  const found = listed.entries.map((entry) => [entry.name, entry.metadata]);
  assert.deepEqual(found, [[name, { a: "b" }]]);
  await call(queues, "setQueueMetadata", name, { c: "d" });
  assert.deepEqual((await call(queues, "getQueueMetadata", name)).metadata, { c: "d" });
  await call(queues, "deleteQueue", name);
  assert.equal(await call(queues, "deleteQueueIfExists", name), false);
  assert.equal(await refusal(call(queues, "deleteQueue", name)), "404 QueueNotFound");
});

test("a message is put, peeked at, got, changed and deleted", async () => {
  const name = await queue();
  const put = await call(queues, "createMessage", name, "häl<l>o & more");
  assert.ok(put.messageId && put.popReceipt);
  const [peeked] = await call(queues, "peekMessages", name, { numOfMessages: 32 });
  assert.equal(peeked.messageText, "häl<l>o & more");
  assert.equal((await call(queues, "getQueueMetadata", name)).approximateMessageCount, 1);
  const [got] = await call(queues, "getMessages", name, { visibilityTimeout: 30 });
  assert.deepEqual([got.messageText, got.dequeueCount], ["häl<l>o & more", 1]);
  assert.deepEqual(await call(queues, "getMessages", name), []);
  const changed = await call(queues, "updateMessage", name, got.messageId, got.popReceipt, 0, {
    messageText: "other",
  });
  const stale = call(queues, "deleteMessage", name, got.messageId, got.popReceipt);
  assert.equal(await refusal(stale), "400 PopReceiptMismatch");
  const again = await call(queues, "getMessage", name);
  assert.deepEqual([again.messageText, again.dequeueCount], ["other", 2]);
  assert.notEqual(again.popReceipt, changed.popReceipt);
  await call(queues, "deleteMessage", name, again.messageId, again.popReceipt);
  assert.equal((await call(queues, "getQueueMetadata", name)).approximateMessageCount, 0);
  await call(queues, "deleteQueue", name);
});

test("many messages come in order and are cleared at once", async () => {
  const name = await queue();
  const texts = Array.from({ length: 40 }, (_, at) => `message ${at}`);
  for (const text of texts) {
    await call(queues, "createMessage", name, text, { messageTimeToLive: 60 });
  }
  const first = await call(queues, "getMessages", name, { numOfMessages: 32 });
  assert.deepEqual(first.map((message) => message.messageText), texts.slice(0, 32));
  const rest = await call(queues, "peekMessages", name, { numOfMessages: 32 });
  assert.deepEqual(rest.map((message) => message.messageText), texts.slice(32));
  await call(queues, "clearMessages", name);
  assert.equal((await call(queues, "getQueueMetadata", name)).approximateMessageCount, 0);
  await call(queues, "deleteQueue", name);
});

test("a signature grants what it says, and a stored policy can be taken back", async () => {
  const name = await queue();
  const sign = (policy) => queues.generateSharedAccessSignature(name, policy);
  const signed = (signature) => storage.createQueueServiceWithSas(address("queues"), signature);
  const adder = signed(sign({ AccessPolicy: { Permissions: "a", Expiry: minutes(10) } }));
  await call(adder, "createMessage", name, "from outside");
  const peek = (service) => call(service, "peekMessages", name);
  assert.equal(await refusal(peek(adder)), "403 AuthorizationPermissionMismatch");
  const [start, expiry] = [new Date(Date.UTC(2024, 0, 1)), new Date(Date.UTC(2124, 0, 1))];
  const policy = { Permissions: "r", Start: start, Expiry: expiry };
  await call(queues, "setQueueAcl", name, { readers: policy });
  const kept = (await call(queues, "getQueueAcl", name)).signedIdentifiers.readers;
  assert.deepEqual([kept.Permissions, kept.Expiry], ["r", expiry]);
  const reader = signed(sign({ Id: "readers" }));
  assert.equal((await peek(reader))[0].messageText, "from outside");
  await call(queues, "setQueueAcl", name, {});
  assert.equal(await refusal(peek(reader)), "403 AuthenticationFailed");
  await call(queues, "deleteQueue", name);
});

test("the service's properties are kept", async () => {
  const before = await call(queues, "getServiceProperties");
  const retention = { RetentionPolicy: { Enabled: false } };
  const logging = { Version: "1.0", Delete: true, Read: false, Write: true, ...retention };
  await call(queues, "setServiceProperties", { ...before, Logging: logging });
  assert.equal((await call(queues, "getServiceProperties")).Logging.Delete, true);
  await call(queues, "setServiceProperties", before);
});
