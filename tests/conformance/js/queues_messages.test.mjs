// Messages: put, receive, peek, update, delete, clear.

import assert from "node:assert/strict";

import { freshQueue, peek, receive, refused, sleep, status, texts } from "./queues_target.mjs";
import { test } from "./target.mjs";

const numbers = (from, to) =>
  Array.from({ length: to - from }, (_, at) => String(from + at).padStart(2, "0"));

test("test_a_message_is_put_and_received_once", async () => {
  const queue = await freshQueue();
  const sent = await queue.sendMessage("hello");
  assert(sent.messageId && sent.popReceipt && sent.insertedOn && sent.expiresOn);
  const [received] = await receive(queue);
  assert.equal(received.messageText, "hello");
  assert.deepEqual([received.messageId, received.dequeueCount], [sent.messageId, 1]);
  assert(received.popReceipt && received.nextVisibleOn);
  assert.deepEqual(await receive(queue), []);
});

test("test_messages_come_in_their_order", async () => {
  const queue = await freshQueue();
  for (const text of numbers(0, 20)) {
    await queue.sendMessage(text);
  }
  assert.deepEqual(texts(await receive(queue, { numberOfMessages: 7 })), numbers(0, 7));
  assert.deepEqual(texts(await receive(queue, { numberOfMessages: 32 })), numbers(7, 20));
});

test("test_peeking_takes_nothing", async () => {
  const queue = await freshQueue();
  for (const text of ["0", "1", "2"]) {
    await queue.sendMessage(text);
  }
  assert.deepEqual(texts(await peek(queue)), ["0"]);
  const seen = await peek(queue, { numberOfMessages: 32 });
  assert.deepEqual(texts(seen), ["0", "1", "2"]);
  assert.deepEqual(seen.map((message) => message.dequeueCount), [0, 0, 0]);
  assert.equal((await receive(queue, { numberOfMessages: 32 })).length, 3);
  assert.deepEqual(await peek(queue), []);
});

test("test_a_message_comes_back_after_its_time", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("again");
  const [first] = await receive(queue, { visibilityTimeout: 1 });
  assert.deepEqual(await receive(queue), []);
  await sleep(1200);
  const [second] = await receive(queue);
  assert.deepEqual([second.messageId, second.dequeueCount], [first.messageId, 2]);
  assert.notEqual(second.popReceipt, first.popReceipt);
});

test("test_a_message_hides_at_first", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("later", { visibilityTimeout: 1 });
  assert.deepEqual(await peek(queue), []);
  await sleep(1200);
  assert.deepEqual(texts(await peek(queue)), ["later"]);
});

test("test_a_message_expires", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("short", { messageTimeToLive: 1 });
  await queue.sendMessage("long", { messageTimeToLive: 60 });
  assert.deepEqual(texts(await peek(queue, { numberOfMessages: 2 })), ["short", "long"]);
  await sleep(2200);
  assert.deepEqual(texts(await peek(queue, { numberOfMessages: 2 })), ["long"]);
  assert.deepEqual(texts(await receive(queue)), ["long"]);
});

test("test_a_message_may_live_forever", async () => {
  const queue = await freshQueue();
  const sent = await queue.sendMessage("forever", { messageTimeToLive: -1 });
  assert.equal(sent.expiresOn.getUTCFullYear(), 9999);
  assert.equal((await peek(queue))[0].expiresOn.getUTCFullYear(), 9999);
});

test("test_a_message_is_updated", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("one");
  const [received] = await receive(queue);
  const { messageId, popReceipt } = received;
  const updated = await queue.updateMessage(messageId, popReceipt, "two", 0);
  assert.notEqual(updated.popReceipt, popReceipt);
  const [again] = await receive(queue);
  assert.deepEqual([again.messageId, again.messageText, again.dequeueCount], [messageId, "two", 2]);
});

test("test_an_update_may_leave_the_text", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("kept");
  const [received] = await receive(queue);
  await queue.updateMessage(received.messageId, received.popReceipt, undefined, 0);
  assert.deepEqual(texts(await receive(queue)), ["kept"]);
});

test("test_a_message_is_deleted", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("gone");
  const [{ messageId, popReceipt }] = await receive(queue);
  await queue.deleteMessage(messageId, popReceipt);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  const again = await refused(() => queue.deleteMessage(messageId, popReceipt));
  assert.deepEqual(again, [404, "MessageNotFound"]);
});

test("test_who_put_a_message_may_delete_it", async () => {
  const queue = await freshQueue();
  const sent = await queue.sendMessage("mine");
  await queue.deleteMessage(sent.messageId, sent.popReceipt);
  assert.deepEqual(await peek(queue), []);
});

test("test_a_stale_receipt_is_refused", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("held");
  const [first] = await receive(queue, { visibilityTimeout: 1 });
  await sleep(1200);
  const [second] = await receive(queue);
  const { messageId, popReceipt } = first;
  for (const call of [
    () => queue.deleteMessage(messageId, popReceipt),
    () => queue.updateMessage(messageId, popReceipt, "mine", 1),
  ]) {
    assert.deepEqual(await refused(call), [400, "PopReceiptMismatch"]);
  }
  await queue.deleteMessage(messageId, second.popReceipt);
});

test("test_all_messages_are_cleared", async () => {
  const queue = await freshQueue();
  for (const text of numbers(0, 5)) {
    await queue.sendMessage(text);
  }
  const [held] = await receive(queue);
  await queue.clearMessages();
  assert.deepEqual(await peek(queue), []);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  assert.equal(await status(() => queue.deleteMessage(held.messageId, held.popReceipt)), 404);
});

for (const text of ["<a>&amp;\"'</a>", " space around ", "zürich 東京 😀", "tab\tin it"]) {
  test(`test_any_text_comes_back_as_it_was[${text}]`, async () => {
    const queue = await freshQueue();
    await queue.sendMessage(text);
    assert.deepEqual(texts(await peek(queue)), [text]);
    assert.deepEqual(texts(await receive(queue)), [text]);
  });
}

test("test_bytes_travel_as_base64", async () => {
  const queue = await freshQueue();
  const content = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  await queue.sendMessage(content.toString("base64"));
  const [received] = await receive(queue);
  assert.deepEqual(Buffer.from(received.messageText, "base64"), content);
});

test("test_a_message_has_a_size", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("x".repeat(65536));
  assert.equal((await peek(queue))[0].messageText.length, 65536);
  const refusal = await refused(() => queue.sendMessage("x".repeat(65537)));
  assert.deepEqual(refusal, [413, "RequestBodyTooLarge"]);
});

for (const [name, terms] of [
  ["hidden too long", { visibilityTimeout: 604801, messageTimeToLive: -1 }],
  ["hidden before", { visibilityTimeout: -1 }],
  ["no life", { messageTimeToLive: 0 }],
  ["less than none", { messageTimeToLive: -2 }],
  ["gone before seen", { visibilityTimeout: 10, messageTimeToLive: 10 }],
]) {
  test(`test_times_out_of_range_are_refused[${name}]`, async () => {
    const queue = await freshQueue();
    assert.equal(await status(() => queue.sendMessage("a", terms)), 400);
  });
}

for (const count of [0, 33]) {
  test(`test_counts_out_of_range_are_refused[${count}]`, async () => {
    const queue = await freshQueue();
    assert.equal(await status(() => receive(queue, { numberOfMessages: count })), 400);
  });
}

test("test_receiving_hides_for_one_second_at_least", async () => {
  const queue = await freshQueue();
  await queue.sendMessage("a");
  for (const visibilityTimeout of [0, 604801]) {
    const refusal = await refused(() => receive(queue, { visibilityTimeout }));
    assert.deepEqual(refusal, [400, "OutOfRangeQueryParameterValue"]);
  }
});
