// Clients of Kafka for the target.

import { Kafka, Partitioners, logLevel } from "kafkajs";

import { freshName, target } from "./target.mjs";

export const broker = target.endpoints.kafka;
export const password =
  "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;" +
  "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";
const quiet = { brokers: [broker], logLevel: logLevel.NOTHING, retry: { retries: 3 } };

/** A client with this connection string; without one it says nothing about itself. */
export function client(secret = password) {
  const sasl = { mechanism: "plain", username: "$ConnectionString", password: secret };
  return new Kafka(secret ? { ...quiet, sasl } : quiet);
}

export const kafka = client();

export async function withAdmin(body) {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return await body(admin);
  } finally {
    await admin.disconnect();
  }
}

/** A fresh topic with a name of its own. */
export async function freshTopic(numPartitions = 1, config = {}) {
  const topic = freshName("t");
  const configEntries = Object.entries(config).map(([name, value]) => ({ name, value }));
  await withAdmin((admin) =>
    admin.createTopics({ topics: [{ topic, numPartitions, configEntries }] }),
  );
  return topic;
}

/** Sends messages in one request and answers what came back. */
export async function send(topic, messages, settings = {}, of = kafka) {
  const producer = of.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...settings });
  await producer.connect();
  try {
    return await producer.send({ topic, messages });
  } finally {
    await producer.disconnect();
  }
}

/** So many messages of a topic for a group, from its beginning or from where the group is. */
export async function read(topic, count, groupId = freshName("g"), seek = undefined) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 10000, maxWaitTimeInMs: 500 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const messages = [];
  try {
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`only ${messages.length} came`)), 30000);
      consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          messages.push({ partition, ...message });
          if (messages.length === count) {
            clearTimeout(late);
            resolve();
          }
        },
      });
      if (seek !== undefined) {
        consumer.seek({ topic, partition: 0, offset: seek });
      }
    });
  } finally {
    await consumer.disconnect();
  }
  return messages;
}

export const values = (messages) => messages.map((message) => message.value.toString());
