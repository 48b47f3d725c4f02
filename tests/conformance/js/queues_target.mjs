// Clients of the official Queues SDK for the target, and how their refusals read.

import { QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";

import { freshName, refusal, target } from "./target.mjs";

export const url = `${target.endpoints.queues}/${target.account}`;
export const credential = new StorageSharedKeyCredential(target.account, target.key);
export const options = { retryOptions: { maxTries: 1 } };
export const queues = new QueueServiceClient(url, credential, options);

/** A fresh queue with a name of its own. It stays: every run starts with fresh data. */
export async function freshQueue() {
  const client = queues.getQueueClient(freshName("q"));
  await client.create();
  return client;
}

/** Status and code of a call that must be refused. */
export async function refused(call) {
  const error = await refusal(call);
  return [error.statusCode, error.code ?? error.details?.errorCode];
}

export const status = async (call) => (await refused(call))[0];

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export async function receive(queue, terms) {
  return (await queue.receiveMessages(terms)).receivedMessageItems;
}

export async function peek(queue, terms) {
  return (await queue.peekMessages(terms)).peekedMessageItems;
}

export const texts = (messages) => messages.map((message) => message.messageText);
