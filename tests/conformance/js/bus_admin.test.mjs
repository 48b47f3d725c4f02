// The administration of the bus: queues, topics, subscriptions and rules, as the official client makes and reads them.

import assert from "node:assert/strict";

import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";

import { all, freshName, refusal, target, test } from "./target.mjs";

const host = target.endpoints.bus.split("://")[1].replace(/\/$/, "");

/** With the key that all emulators of the service publish, or another one. */
function connectionString(key = "SAS_KEY_VALUE") {
  const rule = "SharedAccessKeyName=RootManageSharedAccessKey";
  return `Endpoint=sb://${host};${rule};SharedAccessKey=${key};UseDevelopmentEmulator=true`;
}

// The client insists on HTTPS, and the certificate is one that the server has made.
process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";

const admin = new ServiceBusAdministrationClient(connectionString(), {
  retryOptions: { maxRetries: 0 },
});

const status = async (call) => (await refusal(call)).statusCode;

async function freshTopic() {
  const name = freshName("t");
  await admin.createTopic(name);
  return name;
}

test("test_a_queue_keeps_the_properties_it_was_created_with", async () => {
  const name = freshName("q");
  const other = freshName("q");
  await admin.createQueue(other);
  const options = {
    lockDuration: "PT2M",
    maxSizeInMegabytes: 2048,
    requiresDuplicateDetection: true,
    requiresSession: true,
    defaultMessageTimeToLive: "PT11M",
    deadLetteringOnMessageExpiration: true,
    duplicateDetectionHistoryTimeWindow: "PT12M",
    maxDeliveryCount: 14,
    enableBatchedOperations: false,
    autoDeleteOnIdle: "PT13M",
    userMetadata: "some <text> & more",
  };
  const terms = { ...options, forwardDeadLetteredMessagesTo: other };
  for (const queue of [await admin.createQueue(name, terms), await admin.getQueue(name)]) {
    assert.equal(queue.name, name);
    for (const [key, value] of Object.entries(options)) assert.equal(queue[key], value, key);
    assert.ok(queue.forwardDeadLetteredMessagesTo.endsWith(other));
    assert.equal(queue.enablePartitioning, false);
    assert.equal(queue.availabilityStatus, "Available");
    assert.equal(queue.status, "Active");
  }
});

test("test_a_queue_has_defaults", async () => {
  const queue = await admin.createQueue(freshName("q"));
  assert.equal(queue.lockDuration, "PT1M");
  assert.equal(queue.maxDeliveryCount, 10);
  assert.ok(queue.defaultMessageTimeToLive.startsWith("P10675199D"));
  assert.ok(queue.autoDeleteOnIdle.startsWith("P10675199D"));
  assert.ok(!queue.forwardTo && !queue.userMetadata);
});

test("test_a_partitioned_queue_is_said_to_be_one", async () => {
  const name = freshName("q");
  await admin.createQueue(name, { enablePartitioning: true });
  assert.equal((await admin.getQueue(name)).enablePartitioning, true);
});

test("test_what_exists_is_not_created_again", async () => {
  const topic = await freshTopic();
  assert.equal(await status(() => admin.createTopic(topic)), 409);
  assert.equal(await status(() => admin.createQueue(topic)), 409);
});

test("test_what_is_not_there_is_not_found", async () => {
  const topic = await freshTopic();
  for (const call of [
    () => admin.getQueue("nothing"),
    () => admin.getTopic("nothing"),
    () => admin.getQueueRuntimeProperties("nothing"),
    () => admin.getSubscription(topic, "nothing"),
    () => admin.getRule(topic, "nothing", "nothing"),
    () => admin.deleteQueue("nothing"),
    () => admin.deleteTopic("nothing"),
    () => admin.deleteSubscription(topic, "nothing"),
    () => admin.createSubscription("nothing", "s"),
  ]) {
    assert.equal((await refusal(call)).code, "MessageEntityNotFoundError", call.toString());
  }
  assert.equal(await admin.queueExists("nothing"), false);
  assert.equal(await admin.topicExists(topic), true);
});

test("test_a_queue_is_updated", async () => {
  const name = freshName("q");
  const queue = await admin.createQueue(name);
  queue.lockDuration = "PT3M";
  queue.maxDeliveryCount = 5;
  queue.status = "SendDisabled";
  await admin.updateQueue(queue);
  const found = await admin.getQueue(name);
  assert.equal(found.lockDuration, "PT3M");
  assert.equal(found.maxDeliveryCount, 5);
  assert.equal(found.status, "SendDisabled");
});

test("test_what_is_chosen_at_creation_cannot_be_updated", async () => {
  const queue = await admin.createQueue(freshName("q"));
  queue.requiresSession = true;
  assert.equal(await status(() => admin.updateQueue(queue)), 400);
});

test("test_invalid_properties_are_refused", async () => {
  for (const wrong of [
    { lockDuration: "PT6M" },
    { maxDeliveryCount: 0 },
    { autoDeleteOnIdle: "PT1M" },
    { forwardTo: "nothing" },
    { lockDuration: "one minute" },
  ]) {
    const call = () => admin.createQueue(freshName("q"), wrong);
    assert.equal(await status(call), 400, JSON.stringify(wrong));
  }
});

test("test_a_queue_is_deleted", async () => {
  const name = freshName("q");
  await admin.createQueue(name);
  await admin.deleteQueue(name);
  assert.equal(await admin.queueExists(name), false);
});

test("test_queues_and_topics_are_listed_in_pages", async () => {
  const names = [freshName("l"), freshName("l"), freshName("l")];
  for (const name of names) await admin.createQueue(name);
  const listed = [];
  for await (const page of admin.listQueues().byPage({ maxPageSize: 2 })) {
    assert.ok(page.length <= 2);
    listed.push(...page.map((queue) => queue.name));
  }
  for (const name of names) assert.ok(listed.includes(name));
  assert.equal(new Set(listed).size, listed.length);
  const topic = await freshTopic();
  assert.ok((await all(admin.listTopics())).some((found) => found.name === topic));
  assert.ok(!listed.includes(topic));
  const counted = await all(admin.listQueuesRuntimeProperties());
  assert.ok(counted.every((one) => one.totalMessageCount >= 0));
});

test("test_runtime_properties_count_messages", async () => {
  const name = freshName("q");
  await admin.createQueue(name);
  const client = new ServiceBusClient(connectionString());
  try {
    const sender = client.createSender(name);
    await sender.sendMessages(["a", "b", "c"].map((body) => ({ body })));
    const receiver = client.createReceiver(name);
    const [first] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
    await receiver.deadLetterMessage(first);
    await sender.scheduleMessages({ body: "d" }, new Date(Date.now() + 60_000));
  } finally {
    await client.close();
  }
  const found = await admin.getQueueRuntimeProperties(name);
  assert.equal(found.activeMessageCount, 2);
  assert.equal(found.deadLetterMessageCount, 1);
  assert.equal(found.scheduledMessageCount, 1);
  assert.equal(found.transferMessageCount, 0);
  assert.equal(found.transferDeadLetterMessageCount, 0);
  assert.equal(found.totalMessageCount, 4);
  assert.ok(found.sizeInBytes > 0);
  assert.ok(found.createdAt <= found.modifiedAt);
});

test("test_a_topic_is_created_updated_and_counted", async () => {
  const name = freshName("t");
  const topic = await admin.createTopic(name, {
    defaultMessageTimeToLive: "PT10M",
    maxSizeInMegabytes: 2048,
    requiresDuplicateDetection: true,
    duplicateDetectionHistoryTimeWindow: "PT12M",
    supportOrdering: true,
    userMetadata: "mine",
  });
  assert.equal(topic.defaultMessageTimeToLive, "PT10M");
  assert.ok(topic.requiresDuplicateDetection && topic.supportOrdering);
  topic.defaultMessageTimeToLive = "PT20M";
  await admin.updateTopic(topic);
  assert.equal((await admin.getTopic(name)).defaultMessageTimeToLive, "PT20M");
  for (const subscription of ["s0", "s1"]) await admin.createSubscription(name, subscription);
  assert.equal((await admin.getTopicRuntimeProperties(name)).subscriptionCount, 2);
  await admin.deleteTopic(name);
  assert.equal(await admin.topicExists(name), false);
});

test("test_a_subscription_is_created_updated_listed_and_deleted", async () => {
  const topic = await freshTopic();
  const made = await admin.createSubscription(topic, "s", {
    lockDuration: "PT2M",
    requiresSession: true,
    defaultMessageTimeToLive: "PT11M",
    deadLetteringOnMessageExpiration: true,
    deadLetteringOnFilterEvaluationExceptions: false,
    maxDeliveryCount: 14,
    userMetadata: "mine",
  });
  assert.equal(made.subscriptionName, "s");
  assert.equal(made.topicName, topic);
  const found = await admin.getSubscription(topic, "s");
  assert.equal(found.lockDuration, "PT2M");
  assert.equal(found.deadLetteringOnFilterEvaluationExceptions, false);
  found.maxDeliveryCount = 20;
  await admin.updateSubscription(found);
  assert.equal((await admin.getSubscription(topic, "s")).maxDeliveryCount, 20);
  await admin.createSubscription(topic, "other");
  const names = (await all(admin.listSubscriptions(topic))).map((one) => one.subscriptionName);
  assert.deepEqual(names, ["other", "s"]);
  const counts = await admin.getSubscriptionRuntimeProperties(topic, "s");
  assert.equal(counts.activeMessageCount, 0);
  assert.equal(await status(() => admin.createSubscription(topic, "S")), 409);
  await admin.deleteSubscription(topic, "s");
  assert.equal(await admin.subscriptionExists(topic, "s"), false);
});

test("test_a_subscription_begins_with_a_rule_for_everything", async () => {
  const topic = await freshTopic();
  await admin.createSubscription(topic, "s");
  const [rule] = await all(admin.listRules(topic, "s"));
  assert.equal(rule.name, "$Default");
  await admin.deleteRule(topic, "s", "$Default");
  assert.deepEqual(await all(admin.listRules(topic, "s")), []);
});

test("test_rules_of_every_kind_survive", async () => {
  const topic = await freshTopic();
  await admin.createSubscription(topic, "s");
  const correlation = {
    correlationId: "c",
    contentType: "text/plain",
    subject: "l",
    messageId: "m",
    replyTo: "r",
    replyToSessionId: "rs",
    sessionId: "s",
    to: "to",
    applicationProperties: { text: "x", int: 7, flag: true, double: 2.5 },
  };
  await admin.createRule(topic, "s", "correlation", correlation);
  const sql = { sqlExpression: "color = 'blue' AND size > 5" };
  await admin.createRule(topic, "s", "sql", sql, { sqlExpression: "SET size = 1" });
  const found = (await admin.getRule(topic, "s", "correlation")).filter;
  for (const [key, value] of Object.entries(correlation)) assert.deepEqual(found[key], value, key);
  const rule = await admin.getRule(topic, "s", "sql");
  assert.equal(rule.filter.sqlExpression, sql.sqlExpression);
  assert.equal(rule.action.sqlExpression, "SET size = 1");
  rule.filter = { sqlExpression: "color = 'red'" };
  await admin.updateRule(topic, "s", rule);
  assert.equal((await admin.getRule(topic, "s", "sql")).filter.sqlExpression, "color = 'red'");
  const names = (await all(admin.listRules(topic, "s"))).map((one) => one.name);
  assert.deepEqual(names, ["$Default", "correlation", "sql"]);
});

test("test_a_filter_that_does_not_parse_is_refused", async () => {
  const topic = await freshTopic();
  await admin.createSubscription(topic, "s");
  for (const sqlExpression of ["color ==", "sys.Nothing = 1", "color = 'x"]) {
    assert.equal(await status(() => admin.createRule(topic, "s", "r", { sqlExpression })), 400);
  }
  const again = () => admin.createRule(topic, "s", "$Default", { sqlExpression: "1=1" });
  assert.equal(await status(again), 409);
});

test("test_the_namespace_says_what_it_is", async () => {
  const found = await admin.getNamespaceProperties();
  assert.ok(found.name);
  assert.equal(found.messagingSku, "Standard");
});

test("test_nobody_without_the_key_gets_in", async () => {
  const other = new ServiceBusAdministrationClient(connectionString("another"));
  assert.equal(await status(() => other.getNamespaceProperties()), 401);
});
