// A browser on the portal of a running server: started once for a file of tests, logged in, watched for faults.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { TableClient, AzureNamedKeyCredential } from "@azure/data-tables";
import { chromium } from "playwright-core";

/** What the tests run against: endpoints, admin token, account, and the folder for screenshots. */
export const target = JSON.parse(readFileSync(process.env.LAZULI_PORTAL_FILE, "utf8"));

export const portal = `${target.endpoints.admin}/portal`;

/** How long anything on a page may take, in milliseconds. */
const PATIENCE_MS = 30_000;

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A browser with a profile of its own, which ends with `close`. */
export async function open(options = {}) {
  const profile = mkdtempSync(join(tmpdir(), "lazuli-portal-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.LAZULI_CHROMIUM ?? "/usr/bin/chromium",
    args: FLAGS,
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  const page = context.pages()[0] ?? (await context.newPage());
  const faults = watch(page);
  const close = async () => {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  };
  return { context, page, faults, close };
}

/** What goes wrong on a page behind the scenes: scripts that fail, blocked content, requests to anybody else. */
function watch(page) {
  const faults = [];
  page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(target.endpoints.admin)) faults.push(`request: ${request.url()}`);
  });
  return faults;
}

/** Shows the token, unless a session is there already, and waits for the overview. */
export async function logIn(page) {
  await page.goto(`${portal}/`);
  if (!page.url().includes("/login")) return;
  await page.getByLabel("Admin token").fill(target.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
}

/** A client of the official SDK for a table. */
export function table(name) {
  const credential = new AzureNamedKeyCredential(target.account.name, target.account.key);
  const url = `${target.endpoints.tables}/${target.account.name}`;
  return new TableClient(url, name, credential, { allowInsecureConnection: true });
}

/** One request to the admin API itself. */
export async function admin(method, path, body) {
  const headers = { authorization: `Bearer ${target.token}` };
  const answer = await fetch(`${target.endpoints.admin}${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${JSON.stringify(said)}`);
  return said;
}
