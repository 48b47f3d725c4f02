// Holds `known_gaps.toml` to its word, both ways: a listed test must fail on the target it is listed for, any other one
// must pass. `cargo xtask conformance` writes the entries for the target into the file that describes it.

import assert from "node:assert/strict";

const SDK = "js";

/** The function to run in place of a test's own: the same, or one that passes only if the test fails. */
export function held(name, body, gaps) {
  const base = name.split("[")[0];
  const listed = gaps.some(
    (gap) => (gap.sdk === "" || gap.sdk === SDK) && (gap.test === name || gap.test === base),
  );
  if (!listed) {
    return body;
  }
  return async () => {
    await assert.rejects(
      async () => body(),
      () => true,
      `${name} passes: its entry in known_gaps.toml is a lie`,
    );
  };
}
