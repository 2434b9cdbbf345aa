/* Labels that Django leaves out: of cells, where narrow screens show rows as cards, and of boxes in tables and of times. */
"use strict";
const headings = (table) => [...table.querySelectorAll("thead th")].map((heading) => heading.innerText.trim());

for (const list of document.querySelectorAll("#result_list")) {
  const labels = headings(list);
  for (const row of list.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, index) => {
      if (!cell.classList.contains("action-checkbox") && labels[index]) cell.dataset.label = labels[index];
    });
  }
}

const name = (box, label) => {
  if (label && !box.labels?.length && !box.getAttribute("aria-label")) box.setAttribute("aria-label", label);
};
for (const table of document.querySelectorAll(".tabular.inline-related table")) {
  const columns = [...table.querySelectorAll("thead th")];
  const labels = columns.flatMap((heading) => Array(heading.colSpan).fill(heading.innerText.trim()));
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, index) => {
      for (const box of cell.querySelectorAll("input:not([type=hidden]), select, textarea")) name(box, labels[index] || "Delete");
    });
  }
}
for (const times of document.querySelectorAll("p.datetime")) {
  const label = times.closest(".form-row")?.querySelector("label, legend")?.innerText.trim().replace(/:$/, "");
  times.querySelectorAll("input").forEach((box, index) => name(box, `${label}, ${index ? "time" : "date"}`));
}

// select2 makes its boxes at a time of its own
const nameChoices = () => {
  for (const box of document.querySelectorAll(".select2-selection[aria-labelledby], .select2-selection__rendered[role]:not([aria-label])")) {
    const label = box.closest(".form-row, td")?.querySelector("label");
    box.setAttribute("aria-label", label ? label.textContent.trim().replace(/:$/, "") : "Choose a row");
    box.removeAttribute("aria-labelledby");
  }
};
nameChoices();
if (document.querySelector(".admin-autocomplete")) {
  new MutationObserver(nameChoices).observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-labelledby"] });
}
