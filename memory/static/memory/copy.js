/* A button that copies each block marked with data-copy. Without this script the block is selected and copied by hand. */
"use strict";
for (const block of document.querySelectorAll("pre[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      // outside of HTTPS browsers offer no clipboard: select the text instead
      window.getSelection().selectAllChildren(block);
      button.textContent = "Selected";
    }
  });
  block.before(button);
}
