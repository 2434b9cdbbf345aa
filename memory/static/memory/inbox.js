/* Keys of the inbox: j and k move, o opens, / goes to the reason, and each button has a letter. */
"use strict";
const items = [...document.querySelectorAll("[data-item]")];
let current = -1;

function go(to) {
  if (to < 0 || to >= items.length) return;
  current = to;
  items[to].focus();
  items[to].scrollIntoView({ block: "nearest" });
}

for (const [number, item] of items.entries()) {
  item.addEventListener("focusin", () => { current = number; });
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && isTyping && current >= 0) items[current].focus();
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j") return go(current + 1);
  if (event.key === "k") return go(current - 1);
  if (current < 0) return;
  const item = items[current];
  const target = event.key === "o" ? item.querySelector("[data-open]") : item.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (event.key === "/") item.querySelector("input[name=_reason]")?.focus();
  else if (target) target.click();
  else return;
  event.preventDefault();
});
go(0);
