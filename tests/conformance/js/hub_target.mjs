// Clients of Event Hubs for the target. Hubs are made by an admin client of Kafka, to which they are topics.

import { EventHubConsumerClient, EventHubProducerClient } from "@azure/event-hubs";

import { freshTopic } from "./kafka_target.mjs";
import { target } from "./target.mjs";

const port = target.endpoints.bus.split(":").pop();
const retryOptions = { maxRetries: 0, timeoutInMs: 10000 };

export const string = (key = "SAS_KEY_VALUE") =>
  `Endpoint=sb://localhost:${port};SharedAccessKeyName=RootManageSharedAccessKey;` +
  `SharedAccessKey=${key};UseDevelopmentEmulator=true;`;

export const freshHub = (partitions = 2, config = {}) => freshTopic(partitions, config);

export async function withProducer(hub, body, key = undefined) {
  const producer = new EventHubProducerClient(string(key), hub, { retryOptions });
  try {
    return await body(producer);
  } finally {
    await producer.close();
  }
}

export const send = (hub, texts, where = {}) =>
  withProducer(hub, (producer) => producer.sendBatch(texts.map((body) => ({ body })), where));

/** So many events with their partitions; of one partition or of all. */
export async function read(hub, count, { partition, ...options } = {}) {
  const consumer = new EventHubConsumerClient("$Default", string(), hub);
  const events = [];
  try {
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`only ${events.length} came`)), 30000);
      const handlers = {
        processEvents: async (batch, context) => {
          events.push(...batch.map((event) => ({ partition: context.partitionId, context, ...event })));
          if (events.length >= count) {
            clearTimeout(late);
            resolve();
          }
        },
        processError: async (error) => {
          clearTimeout(late);
          reject(error);
        },
      };
      const start = { startPosition: { offset: "-1" }, maxWaitTimeInSeconds: 1, ...options };
      if (partition === undefined) {
        consumer.subscribe(handlers, start);
      } else {
        consumer.subscribe(partition, handlers, start);
      }
    });
  } finally {
    await consumer.close();
  }
  return events;
}

export const texts = (events) => events.map((event) => event.body);
