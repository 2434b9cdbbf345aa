/* An editor for a JSON document: it checks the JSON while one types and formats it. The page also works without this
   script, since the server validates what is saved. Formatting moves blanks only: numbers keep their spelling. */
"use strict";

const INDENT = "  ";

function scan(text) {
  return text.match(/"(?:[^"\\]|\\[^])*"|[[\]{},:]|[^\s"[\]{},:]+/g) || [];
}

function format(text) {
  let depth = 0;
  let written = "";
  const line = () => "\n" + INDENT.repeat(depth);
  const tokens = scan(text);
  tokens.forEach((token, place) => {
    const next = tokens[place + 1];
    if (token === "{" || token === "[") {
      depth += 1;
      written += token + (next === "}" || next === "]" ? "" : line());
    } else if (token === "}" || token === "]") {
      const before = tokens[place - 1];
      depth -= 1;
      written += (before === "{" || before === "[" ? "" : line()) + token;
    } else if (token === ",") {
      written += token + line();
    } else {
      written += token === ":" ? ": " : token;
    }
  });
  return written;
}

function findError(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? "" : "The value must be an object.";
  } catch (err) {
    return err.message;
  }
}

function addFormatBar(box) {
  const bar = document.createElement("div");
  const button = document.createElement("button");
  const remark = document.createElement("span");
  let waiting = 0;
  bar.className = "json-bar";
  button.type = "button";
  button.className = "button";
  button.textContent = "Format";
  remark.setAttribute("role", "status");
  bar.append(button, remark);
  box.after(bar);
  const check = () => {
    const error = findError(box.value || "{}");
    remark.textContent = error || "Valid JSON.";
    remark.className = error ? "json-error" : "help";
    return !error;
  };
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(check, 300);
  });
  button.addEventListener("click", () => {
    if (check()) {
      box.value = format(box.value);
    }
  });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("textarea.json-document").forEach(addFormatBar);
});
