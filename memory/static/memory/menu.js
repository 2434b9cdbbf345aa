/* Folds the menu where there is little room, and otherwise keeps it as it was left. */
"use strict";
const menu = document.querySelector("#console-menu > details");
if (menu) {
  const narrow = window.matchMedia("(max-width: 1024px)").matches;
  menu.open = !narrow && localStorage.getItem("console.menu") !== "closed";
  menu.addEventListener("toggle", () => {
    if (!narrow) localStorage.setItem("console.menu", menu.open ? "open" : "closed");
  });
}

// the list of the user's pages closes like a menu
const tools = document.querySelector("details#user-tools");
if (tools) {
  document.addEventListener("click", (event) => {
    if (!tools.contains(event.target)) tools.open = false;
  });
  tools.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    tools.open = false;
    tools.querySelector("summary").focus();
  });
}
