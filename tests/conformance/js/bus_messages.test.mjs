// Messages are sent, received and looked at.

import assert from "node:assert/strict";

import { client, noneLeft, queue, receiver, send, take, texts, using } from "./bus_target.mjs";
import { test } from "./target.mjs";

test("test_a_message_comes_back_as_it_was_sent", async () => {
  const name = await queue();
  const sent = {
    body: Buffer.from("body"),
    messageId: "id",
    subject: "subject",
    contentType: "text/plain",
    correlationId: "correlation",
    replyTo: "reply",
    to: "to",
    applicationProperties: { text: "red", number: 7, yes: true },
  };
  await send(name, sent);
  await using(receiver(name), async (one) => {
    const [got] = await take(one, 1);
    assert.equal(got.body.toString(), "body");
    for (const field of ["messageId", "subject", "contentType", "correlationId", "replyTo", "to"]) {
      assert.equal(got[field], sent[field], field);
    }
    assert.deepEqual(got.applicationProperties, sent.applicationProperties);
    assert.equal(got.deliveryCount, 0);
    assert.ok(got.sequenceNumber.greaterThan(0));
    assert.ok(got.enqueuedTimeUtc && got.lockedUntilUtc);
    await one.completeMessage(got);
    assert.ok(await noneLeft(one));
  });
});

test("test_messages_come_in_the_order_in_which_they_were_sent", async () => {
  const name = await queue();
  for (const text of ["a", "b", "c"]) {
    await send(name, text);
  }
  await using(receiver(name), async (one) => assert.deepEqual(texts(await take(one, 3)), ["a", "b", "c"]));
});

test("test_a_batch_is_sent_as_a_whole", async () => {
  const name = await queue();
  const expected = Array.from({ length: 20 }, (_, number) => String(number));
  await using(client.createSender(name), async (sender) => {
    const batch = await sender.createMessageBatch();
    expected.forEach((body) => assert.ok(batch.tryAddMessage({ body })));
    await sender.sendMessages(batch);
  });
  await using(receiver(name), async (one) => assert.deepEqual(texts(await take(one, 20)), expected));
});

test("test_a_large_message_goes_through", async () => {
  const name = await queue();
  const body = "x".repeat(800_000);
  await send(name, body);
  await using(receiver(name), async (one) => {
    const [got] = await take(one, 1);
    assert.equal(got.body, body);
    await one.completeMessage(got);
  });
});

test("test_what_is_received_and_deleted_is_gone", async () => {
  const name = await queue();
  await send(name, "a", "b");
  await using(receiver(name, { receiveMode: "receiveAndDelete" }), async (one) => {
    assert.deepEqual(texts(await take(one, 2)), ["a", "b"]);
    assert.ok(await noneLeft(one));
  });
});

test("test_a_message_that_is_peeked_stays", async () => {
  const name = await queue();
  await send(name, "a", "b", "c");
  await using(receiver(name), async (one) => {
    const seen = await one.peekMessages(10);
    assert.deepEqual(texts(seen), ["a", "b", "c"]);
    const later = await one.peekMessages(10, { fromSequenceNumber: seen[1].sequenceNumber });
    assert.deepEqual(texts(later), ["b", "c"]);
    assert.deepEqual(texts(await take(one, 3)), ["a", "b", "c"]);
  });
});

test("test_an_empty_queue_answers_with_nothing", async () => {
  await using(receiver(await queue()), async (one) => {
    assert.ok(await noneLeft(one));
    assert.deepEqual(await one.peekMessages(1), []);
  });
});

test("test_a_message_that_is_sent_while_somebody_waits_comes_at_once", async () => {
  const name = await queue();
  await using(receiver(name), async (one) => {
    const waiting = take(one, 1);
    await send(name, "a");
    assert.deepEqual(texts(await waiting), ["a"]);
  });
});

test("test_duplicates_are_dropped_where_the_queue_detects_them", async () => {
  const name = await queue({ RequiresDuplicateDetection: "true" });
  for (const body of ["first", "second"]) {
    await send(name, { body, messageId: "same" });
  }
  await send(name, { body: "third", messageId: "other" });
  await using(receiver(name), async (one) => {
    assert.deepEqual(texts(await take(one, 2)), ["first", "third"]);
    assert.ok(await noneLeft(one));
  });
});

test("test_a_partitioned_queue_gives_everything_back", async () => {
  const name = await queue({ EnablePartitioning: "true" });
  const bodies = Array.from({ length: 40 }, (_, number) => String(number));
  await send(name, ...bodies.slice(0, 5).map((body) => ({ body, partitionKey: "k" })));
  await send(name, ...bodies.slice(5));
  await using(receiver(name), async (one) => {
    const got = texts(await take(one, 40));
    assert.deepEqual([...got].sort((a, b) => a - b), bodies);
    assert.deepEqual(got.filter((body) => Number(body) < 5), bodies.slice(0, 5));
  });
});
