/* Writes the heading of each column into its cells: narrow screens show rows as cards with these labels. */
"use strict";
for (const list of document.querySelectorAll("#result_list")) {
  const labels = [...list.querySelectorAll("thead th")].map((heading) => heading.innerText.trim());
  for (const row of list.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, index) => {
      if (!cell.classList.contains("action-checkbox") && labels[index]) cell.dataset.label = labels[index];
    });
  }
}
