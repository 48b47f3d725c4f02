// What pages do by themselves where scripts run: copy buttons, and parts that stay up to date. Pages do without.
"use strict";

// Copying.
function copyButtons(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = false;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select the text and copy it";
  }
  setTimeout(() => { button.textContent = label; }, 2000);
});

// A partition on the drawn map leads to its page; the table below has the same as links.
document.addEventListener("click", (event) => {
  const piece = event.target.closest("[data-go]");
  if (piece) location.assign(piece.dataset.go);
});

// Live parts: the server sends the page when it has changed, and the parts that differ are taken over. A part that
// somebody is using (focus or a selection in it) waits for the next time.
function isInUse(part) {
  if (part.contains(document.activeElement) && document.activeElement !== document.body) return true;
  const selection = document.getSelection();
  return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
}

function takeOver(html) {
  const made = new DOMParser().parseFromString(html, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = made.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    if (!fresh || fresh.innerHTML === (part.made ?? part.innerHTML) || isInUse(part)) continue;
    const open = [...part.querySelectorAll("details[id][open]")].map((one) => one.id);
    part.made = fresh.innerHTML;
    part.replaceChildren(...fresh.childNodes);
    for (const id of open) {
      document.getElementById(id)?.setAttribute("open", "");
    }
    copyButtons(part);
  }
}

copyButtons(document);
if (document.querySelector("[data-live]") && window.EventSource) {
  const of = encodeURIComponent(location.pathname + location.search);
  const events = new EventSource(`/portal/live?of=${of}`);
  events.onmessage = (event) => takeOver(JSON.parse(event.data));
  window.addEventListener("pagehide", () => events.close());
}
