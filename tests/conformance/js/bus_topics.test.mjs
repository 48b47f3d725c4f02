// Topics: every subscription gets the messages that its rules let through.

import assert from "node:assert/strict";

import { client, noneLeft, send, subscription, take, text, topic, using } from "./bus_target.mjs";
import { test } from "./target.mjs";

test("test_every_subscription_gets_a_message", async () => {
  const name = await topic();
  const all = [await subscription(name), await subscription(name)];
  await send(name, "a");
  for (const each of all) {
    await using(client.createReceiver(name, each), async (one) => {
      const [got] = await take(one, 1);
      assert.equal(text(got), "a");
      await one.completeMessage(got);
      assert.ok(await noneLeft(one));
    });
  }
});

test("test_a_subscription_has_dead_letters_of_its_own", async () => {
  const name = await topic();
  const own = await subscription(name);
  await send(name, "a");
  await using(client.createReceiver(name, own), async (one) => {
    await one.deadLetterMessage((await take(one, 1))[0], { deadLetterReason: "why" });
  });
  await using(client.createReceiver(name, own, { subQueueType: "deadLetter" }), async (one) => {
    assert.equal((await take(one, 1))[0].deadLetterReason, "why");
  });
});
