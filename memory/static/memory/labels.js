/* Labels that Django leaves out: of cells, where narrow screens show rows as cards, and of boxes that complete names. */
"use strict";
for (const list of document.querySelectorAll("#result_list")) {
  const labels = [...list.querySelectorAll("thead th")].map((heading) => heading.innerText.trim());
  for (const row of list.querySelectorAll("tbody tr")) {
    [...row.children].forEach((cell, index) => {
      if (!cell.classList.contains("action-checkbox") && labels[index]) cell.dataset.label = labels[index];
    });
  }
}

// select2 has made its boxes by then
window.addEventListener("load", () => {
  for (const box of document.querySelectorAll(".select2-selection, .select2-selection__rendered[role]")) {
    const label = box.closest(".form-row, td")?.querySelector("label");
    box.setAttribute("aria-label", label ? label.textContent.trim().replace(/:$/, "") : "Choose a row");
    box.removeAttribute("aria-labelledby");
  }
});
