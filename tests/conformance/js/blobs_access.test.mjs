// Access: keys, signatures of accounts, containers and blobs, stored policies, public containers.

import assert from "node:assert/strict";

import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  AnonymousCredential,
  BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  BlockBlobClient,
  ContainerClient,
  ContainerSASPermissions,
  StorageSharedKeyCredential,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
} from "@azure/storage-blob";

import {
  credential,
  freshContainer,
  hours,
  names,
  options,
  put,
  readUrl,
  status,
  text,
  url,
} from "./blobs.mjs";
import { all, target, test } from "./target.mjs";

const anybody = new AnonymousCredential();
const STRANGER = [401, 403, 404, 409];

/** A client of the service that signs with a signature of the account. */
function accountSigned(permissions, resourceTypes) {
  const signature = generateAccountSASQueryParameters(
    {
      permissions: AccountSASPermissions.parse(permissions),
      resourceTypes: AccountSASResourceTypes.parse(resourceTypes).toString(),
      services: AccountSASServices.parse("b").toString(),
      expiresOn: hours(1),
    },
    credential,
  );
  return new BlobServiceClient(`${url}?${signature}`, anybody, options);
}

/** A client of the container that signs with a signature for it. */
function containerSigned({ containerName }, { permissions, ...terms }) {
  const parsed = permissions && ContainerSASPermissions.parse(permissions);
  const signature = generateBlobSASQueryParameters(
    { containerName, permissions: parsed, ...terms },
    credential,
  );
  return new ContainerClient(`${url}/${containerName}?${signature}`, anybody, options);
}

/** A client of one blob that signs with a signature for another one, or for itself. */
function blobSigned({ containerName }, blobName, terms, signed = blobName) {
  const permissions = BlobSASPermissions.parse("r");
  const signature = generateBlobSASQueryParameters(
    { containerName, blobName: signed, permissions, ...terms },
    credential,
  );
  return new BlobClient(`${url}/${containerName}/${blobName}?${signature}`, anybody, options);
}

const block = (service, container, name) =>
  service.getContainerClient(container.containerName).getBlockBlobClient(name);

test("test_a_wrong_key_is_refused", async () => {
  const wrong = new StorageSharedKeyCredential(target.account, "d3Jvbmc=");
  const client = new BlobServiceClient(url, wrong, options);
  assert.equal(await status(() => all(client.listContainers())), 403);
});

test("test_an_account_signature_grants_what_it_says", async () => {
  const container = await freshContainer();
  const prefix = container.containerName;
  const listed = await all(accountSigned("l", "s").listContainers({ prefix }));
  assert.deepEqual(listed.map((item) => item.name), [prefix]);
  assert.equal(await status(() => all(accountSigned("r", "s").listContainers())), 403);
  assert.equal(await status(() => all(accountSigned("l", "o").listContainers())), 403);
  const writer = block(accountSigned("w", "o"), container, "b");
  await writer.upload("x", 1);
  assert.equal(await status(() => writer.download()), 403);
  assert.equal(await text(block(accountSigned("r", "o"), container, "b")), "x");
  assert.equal(await status(() => writer.delete()), 403);
  await block(accountSigned("d", "o"), container, "b").delete();
});

test("test_who_may_create_may_not_overwrite", async () => {
  const container = await freshContainer();
  const blob = block(accountSigned("c", "o"), container, "b");
  await blob.upload("one", 3);
  assert.equal(await status(() => blob.upload("two", 3)), 403);
  assert.equal(await text(container.getBlobClient("b")), "one");
});

test("test_a_container_signature_grants_what_it_says", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const reader = containerSigned(container, { permissions: "r", expiresOn: hours(1) });
  assert.equal(await text(reader.getBlobClient("b")), "x");
  assert.equal(await status(() => names(reader.listBlobsFlat())), 403);
  const lister = containerSigned(container, { permissions: "l", expiresOn: hours(1) });
  assert.deepEqual(await names(lister.listBlobsFlat()), ["b"]);
  assert.equal(await status(() => lister.getBlobClient("b").download()), 403);
  assert.equal(await status(() => reader.delete()), 403);
});

test("test_a_blob_signature_is_for_that_blob", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  await put(container, "other", "y");
  assert.equal(await text(blobSigned(container, "b", { expiresOn: hours(1) })), "x");
  const other = blobSigned(container, "other", { expiresOn: hours(1) }, "b");
  assert.equal(await status(() => other.download()), 403);
});

// Azurite does not know signatures for folders.
test("test_a_folder_signature_is_for_what_is_in_the_folder", async () => {
  const container = await freshContainer();
  const { containerName } = container;
  const names = ["top/in/b", "top/in/deep/b", "top/b", "top/into/b", "b"];
  for (const name of names) {
    await put(container, name, "x");
  }
  const permissions = BlobSASPermissions.parse("rw");
  const terms = { containerName, blobName: "top/in", permissions, expiresOn: hours(1) };
  const signed = generateBlobSASQueryParameters({ ...terms, isDirectory: true }, credential);
  const signature = signed.toString();
  assert(signature.includes("sr=d") && signature.includes("sdd=2"));
  const client = (name) =>
    new BlockBlobClient(`${url}/${containerName}/${name}?${signature}`, anybody, options);
  for (const name of names.slice(0, 2)) {
    assert.equal(await text(client(name)), "x");
    assert.equal(await status(() => client(name).delete()), 403);
  }
  await client("top/in/new").upload("y", 1);
  for (const name of names.slice(2)) {
    assert.equal(await status(() => client(name).download()), 403);
  }
});

test("test_a_signature_holds_for_its_time_only", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const late = blobSigned(container, "b", { expiresOn: hours(-1) });
  assert.equal(await status(() => late.download()), 403);
  const early = blobSigned(container, "b", { startsOn: hours(1), expiresOn: hours(2) });
  assert.equal(await status(() => early.download()), 403);
});

test("test_a_signature_holds_for_its_addresses_only", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const ipRange = { start: "203.0.113.1", end: "203.0.113.9" };
  const elsewhere = blobSigned(container, "b", { expiresOn: hours(1), ipRange });
  assert.equal(await status(() => elsewhere.download()), 403);
});

test("test_a_signature_may_set_headers_of_the_answer", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const blob = blobSigned(container, "b", {
    expiresOn: hours(1),
    contentType: "text/html",
    contentDisposition: "attachment",
    cacheControl: "no-store",
  });
  const read = await blob.download();
  assert.equal(read.contentType, "text/html");
  assert.equal(read.contentDisposition, "attachment");
  assert.equal(read.cacheControl, "no-store");
});

test("test_a_stored_policy_gives_its_terms_and_takes_them_back", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const accessPolicy = { permissions: "r", startsOn: hours(-1), expiresOn: hours(1) };
  await container.setAccessPolicy(undefined, [{ id: "readers", accessPolicy }]);
  const client = containerSigned(container, { identifier: "readers" });
  assert.equal(await text(client.getBlobClient("b")), "x");
  assert.equal(await status(() => names(client.listBlobsFlat())), 403);
  await container.setAccessPolicy(undefined, []);
  assert.equal(await status(() => client.getBlobClient("b").download()), 403);
});

test("test_a_snapshot_has_signatures_of_its_own", async () => {
  const container = await freshContainer();
  const blob = await put(container, "b", "one");
  const { snapshot } = await blob.createSnapshot();
  await put(container, "b", "two");
  const old = new BlockBlobClient(readUrl(blob.withSnapshot(snapshot)), anybody, options);
  assert.equal(await text(old), "one");
});

test("test_a_public_container_is_read_by_anybody", async () => {
  const container = await freshContainer();
  await put(container, "b", "x");
  const stranger = new ContainerClient(container.url, anybody, options);
  const blob = stranger.getBlockBlobClient("b");
  assert(STRANGER.includes(await status(() => blob.download())));
  await container.setAccessPolicy("blob", []);
  assert.equal(await text(blob), "x");
  assert(STRANGER.includes(await status(() => names(stranger.listBlobsFlat()))));
  await container.setAccessPolicy("container", []);
  assert.deepEqual(await names(stranger.listBlobsFlat()), ["b"]);
  assert.equal((await stranger.getProperties()).blobPublicAccess, "container");
  assert(STRANGER.includes(await status(() => put(stranger, "c", "y"))));
});
