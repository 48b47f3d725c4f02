// What the tests of Blobs start from: a client of the service, fresh containers, and what is read out of answers. The
// names of tests are those of the Python files of the same groups.

import assert from "node:assert/strict";

import {
  AccountSASPermissions,
  BlobSASPermissions,
  BlobServiceClient,
  StorageSharedKeyCredential,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
} from "@azure/storage-blob";

import { freshName, refusal, target } from "./target.mjs";

export const url = `${target.endpoints.blobs}/${target.account}`;
export const credential = new StorageSharedKeyCredential(target.account, target.key);
export const options = { retryOptions: { maxTries: 1 } };
export const blobs = new BlobServiceClient(url, credential, options);
/** A client of another server, which has the same account and nothing else in common. */
export const otherBlobs = new BlobServiceClient(
  `${target.other_endpoints.blobs}/${target.account}`,
  credential,
  options,
);
export const hours = (count) => new Date(Date.now() + count * 3_600_000);
export const NO_ETAG = '"0x8D000000000000"';

/** A fresh container with a name of its own. It stays: every run starts with fresh data. */
export async function freshContainer(service = blobs) {
  const container = service.getContainerClient(freshName("c"));
  await container.create();
  return container;
}

/** A block blob with this content. */
export async function put(container, name, content, terms) {
  const blob = container.getBlockBlobClient(name);
  const data = Buffer.from(content);
  await blob.upload(data, data.length, terms);
  return blob;
}

/** Sets what the SDK cannot set: the original leaves it to the management of accounts. */
export async function setProperty(section) {
  const permissions = AccountSASPermissions.parse("w");
  const terms = { permissions, resourceTypes: "s", services: "b", expiresOn: hours(1) };
  const signature = generateAccountSASQueryParameters(terms, credential);
  const answer = await fetch(`${url}/?restype=service&comp=properties&${signature}`, {
    method: "PUT",
    body: `<StorageServiceProperties>${section}</StorageServiceProperties>`,
    headers: { "x-ms-version": "2021-12-02" },
  });
  assert.equal(answer.status, 202, await answer.text());
}

/** The whole content as text. */
export async function text(blob, ...terms) {
  return (await bytes(blob, ...terms)).toString();
}

export async function bytes(blob, offset = 0, count = undefined, terms = {}) {
  const answer = await blob.download(offset, count, terms);
  const pieces = [];
  for await (const piece of answer.readableStreamBody) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The address of a blob with a signature that lets anybody read it for an hour. */
export function readUrl(blob) {
  const parts = new URL(blob.url);
  const terms = {
    containerName: blob.containerName,
    blobName: blob.name,
    snapshotTime: parts.searchParams.get("snapshot") ?? undefined,
    permissions: BlobSASPermissions.parse("r"),
    expiresOn: hours(1),
  };
  const signature = generateBlobSASQueryParameters(terms, credential).toString();
  return `${blob.url}${blob.url.includes("?") ? "&" : "?"}${signature}`;
}

/** The service's code of a call that must be refused. */
export async function code(call) {
  const error = await refusal(call);
  return error.response?.headers?.get("x-ms-error-code") ?? error.code;
}

export async function status(call) {
  return (await refusal(call)).statusCode;
}

export async function names(pages) {
  const found = [];
  for await (const item of pages) {
    found.push(item.name);
  }
  return found;
}
