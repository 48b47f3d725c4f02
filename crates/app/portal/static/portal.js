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

// Charts: each place has its values as a tooltip. They are also shown below the chart, where the pointer is, and with the arrow
// keys where the chart has the focus.
function plots(root) {
  for (const plot of root.querySelectorAll("figure.plot")) {
    if (plot.tabIndex >= 0 || !plot.querySelector(".hit")) continue;
    const chart = plot.querySelector("svg");
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", `${chart.getAttribute("aria-label")} Arrow keys read its values.`);
    plot.querySelector(".readout").setAttribute("aria-live", "polite");
  }
}

function readOut(plot, at) {
  const hits = [...plot.querySelectorAll(".hit")];
  const place = Math.max(0, Math.min(at, hits.length - 1));
  hits.forEach((hit, n) => hit.classList.toggle("chosen", n === place));
  plot.dataset.at = place;
  plot.querySelector(".readout").textContent = hits[place]?.querySelector("title").textContent ?? "";
}

document.addEventListener("pointerover", (event) => {
  const hit = event.target.closest?.(".hit");
  const plot = hit?.closest("figure.plot");
  if (plot) readOut(plot, [...plot.querySelectorAll(".hit")].indexOf(hit));
});

document.addEventListener("keydown", (event) => {
  const plot = event.target.closest?.("figure.plot");
  if (!plot) return;
  const last = plot.querySelectorAll(".hit").length - 1;
  const at = Number(plot.dataset.at ?? last);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  readOut(plot, plot.dataset.at === undefined && event.key !== "Home" ? last : to);
});

// Live parts: the server sends the page when it has changed, and the parts that differ are taken over. A part that
// somebody is using (focus or a selection in it) waits for the next time.
function isInUse(part) {
  if (part.contains(document.activeElement) && document.activeElement !== document.body) return true;
  const selection = document.getSelection();
  return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
}

// The charts of a part keep what is read out of them.
function chosen(part) {
  return [...part.querySelectorAll("figure.plot")].map((plot) => plot.dataset.at);
}

function takeOver(html) {
  const made = new DOMParser().parseFromString(html, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = made.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    if (!fresh || fresh.innerHTML === (part.made ?? part.innerHTML) || isInUse(part)) continue;
    const open = [...part.querySelectorAll("details[id][open]")].map((one) => one.id);
    const at = chosen(part);
    part.made = fresh.innerHTML;
    part.replaceChildren(...fresh.childNodes);
    plots(part);
    part.querySelectorAll("figure.plot").forEach((plot, n) => {
      if (at[n] !== undefined) readOut(plot, Number(at[n]));
    });
    for (const id of open) {
      document.getElementById(id)?.setAttribute("open", "");
    }
    copyButtons(part);
  }
}

copyButtons(document);
plots(document);
if (document.querySelector("[data-live]") && window.EventSource) {
  const of = encodeURIComponent(location.pathname + location.search);
  const events = new EventSource(`/portal/live?of=${of}`);
  events.onmessage = (event) => takeOver(JSON.parse(event.data));
  window.addEventListener("pagehide", () => events.close());
}
