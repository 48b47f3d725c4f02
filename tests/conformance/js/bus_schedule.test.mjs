// Messages that are sent now and come later.

import assert from "node:assert/strict";

import { client, noneLeft, queue, receiver, take, text, texts, using } from "./bus_target.mjs";
import { refusal, test } from "./target.mjs";

const soon = (seconds) => new Date(Date.now() + seconds * 1000);

test("test_a_scheduled_message_comes_when_it_is_due", async () => {
  const name = await queue();
  const began = Date.now();
  await using(client.createSender(name), async (sender) => {
    const [number] = await sender.scheduleMessages({ body: "a" }, soon(2));
    assert.ok(number.greaterThan(0));
  });
  await using(receiver(name), async (one) => {
    assert.ok(await noneLeft(one));
    assert.deepEqual(texts(await take(one, 1)), ["a"]);
    assert.ok(Date.now() - began >= 1500);
  });
});

test("test_a_scheduled_message_can_be_cancelled", async () => {
  const name = await queue();
  await using(client.createSender(name), async (sender) => {
    const numbers = await sender.scheduleMessages([{ body: "a" }, { body: "b" }], soon(1));
    await sender.cancelScheduledMessages(numbers[0]);
    await refusal(() => sender.cancelScheduledMessages(numbers[0]));
  });
  await using(receiver(name), async (one) => {
    assert.deepEqual(texts(await take(one, 1)), ["b"]);
    assert.ok(await noneLeft(one));
  });
});

test("test_a_scheduled_message_can_be_peeked", async () => {
  const name = await queue();
  await using(client.createSender(name), (sender) => sender.scheduleMessages({ body: "a" }, soon(600)));
  await using(receiver(name), async (one) => {
    const [seen] = await one.peekMessages(1);
    assert.equal(text(seen), "a");
    assert.ok(seen.scheduledEnqueueTimeUtc);
  });
});
