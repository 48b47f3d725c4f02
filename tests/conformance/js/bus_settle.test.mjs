// What becomes of a message that somebody holds.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

import { noneLeft, queue, receiver, send, take, text, using } from "./bus_target.mjs";
import { refusal, test } from "./target.mjs";

const dead = (name) => receiver(name, { subQueueType: "deadLetter" });

test("test_an_abandoned_message_comes_again_and_the_delivery_counts", async () => {
  const name = await queue();
  await send(name, "a");
  await using(receiver(name), async (one) => {
    await one.abandonMessage((await take(one, 1))[0]);
    const [again] = await take(one, 1);
    assert.deepEqual([text(again), again.deliveryCount], ["a", 1]);
    await one.completeMessage(again);
    assert.ok(await noneLeft(one));
  });
});

test("test_a_deferred_message_is_received_by_its_number_only", async () => {
  const name = await queue();
  await send(name, "a");
  await using(receiver(name), async (one) => {
    const [got] = await take(one, 1);
    await one.deferMessage(got);
    assert.ok(await noneLeft(one));
    const [deferred] = await one.receiveDeferredMessages(got.sequenceNumber);
    assert.equal(text(deferred), "a");
    await one.completeMessage(deferred);
    await refusal(() => one.receiveDeferredMessages(got.sequenceNumber));
  });
});

test("test_a_dead_letter_has_its_reason", async () => {
  const name = await queue();
  await send(name, { body: "a", applicationProperties: { own: "kept" } });
  await using(receiver(name), async (one) => {
    const why = { deadLetterReason: "why", deadLetterErrorDescription: "because" };
    await one.deadLetterMessage((await take(one, 1))[0], why);
    assert.ok(await noneLeft(one));
  });
  await using(dead(name), async (one) => {
    const [got] = await take(one, 1);
    assert.deepEqual([text(got), got.deadLetterReason], ["a", "why"]);
    assert.equal(got.deadLetterErrorDescription, "because");
    assert.equal(got.applicationProperties.own, "kept");
    await one.completeMessage(got);
    assert.ok(await noneLeft(one));
  });
});

test("test_a_message_that_fails_too_often_becomes_a_dead_letter", async () => {
  const name = await queue({ MaxDeliveryCount: 2 });
  await send(name, "a");
  await using(receiver(name), async (one) => {
    await one.abandonMessage((await take(one, 1))[0]);
    await one.abandonMessage((await take(one, 1))[0]);
    assert.ok(await noneLeft(one));
  });
  await using(dead(name), async (one) => {
    assert.equal((await take(one, 1))[0].deadLetterReason, "MaxDeliveryCountExceeded");
  });
});

test("test_a_lock_that_is_lost_cannot_be_used", async () => {
  const name = await queue({ LockDuration: "PT5S" });
  await send(name, "a");
  // By itself the SDK renews locks for as long as it runs.
  await using(receiver(name, { maxAutoLockRenewalDurationInMs: 0 }), async (one) => {
    const [got] = await take(one, 1);
    await pause(5500);
    const [again] = await take(one, 1);
    assert.equal(again.deliveryCount, 1);
    assert.equal((await refusal(() => one.completeMessage(got))).code, "MessageLockLost");
    await one.completeMessage(again);
  });
});

test("test_a_lock_can_be_renewed", async () => {
  const name = await queue({ LockDuration: "PT5S" });
  await send(name, "a");
  await using(receiver(name), async (one) => {
    const [got] = await take(one, 1);
    const until = got.lockedUntilUtc;
    await pause(1000);
    assert.ok((await one.renewMessageLock(got)) > until);
    await one.completeMessage(got);
    assert.ok(await noneLeft(one));
  });
});

test("test_an_expired_message_is_gone_or_a_dead_letter", async () => {
  const name = await queue({ DeadLetteringOnMessageExpiration: "true" });
  await send(name, { body: "a", timeToLive: 1000 });
  await pause(1500);
  await using(receiver(name), async (one) => assert.ok(await noneLeft(one)));
  await using(dead(name), async (one) => {
    assert.equal((await take(one, 1))[0].deadLetterReason, "TTLExpiredException");
  });
});
