// Looking at a page as people do: wide and at 360 pixels, light and dark, for the eye (a screenshot) and without it (axe).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { target } from "./browser.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const LOOKS = [
  { kind: "light", scheme: "light", width: 1280 },
  { kind: "dark", scheme: "dark", width: 1280 },
  { kind: "narrow", scheme: "light", width: 360 },
  { kind: "narrow-dark", scheme: "dark", width: 360 },
];

/** The page in every look: no wider than the screen, and without a serious fault for screen readers and keyboards. */
export async function look(page, name) {
  for (const { kind, scheme, width } of LOOKS) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    await page.screenshot({ path: join(target.screenshots, `${name}-${kind}.png`), fullPage: true });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${name} is ${wide} pixels wide on a screen of ${width}`);
    await page.evaluate(AXE);
    const found = await page.evaluate(() => globalThis.axe.run(document));
    const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
    const told = serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
    assert.deepEqual(told, [], `${name}, ${kind}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
}
