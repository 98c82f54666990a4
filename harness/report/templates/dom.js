// Building blocks of the page. Every text becomes a text node: data is never parsed as HTML.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

function announce(text) {
  byId("announce").textContent = text;
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page opened as a file may be refused the clipboard; the old way still works there.
    const area = el("textarea", { "aria-hidden": "true", class: "unseen" });
    area.value = text;
    (button.closest("[role=dialog]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = "Copied";
  announce("Copied to the clipboard");
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

function command(text) {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", () => copy(text, button));
  return el("div", { class: "command" }, el("code", {}, text), button);
}

// Calls `build` once `node` comes near what is visible in `root` (null: the window).
function whenNear(node, build, root = null) {
  const observer = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      build();
    },
    { root, rootMargin: "600px" },
  );
  observer.observe(node);
}

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
