/* Shows how far a bulk change, an erasure or a run of a job is, and loads the page again at its end. */
"use strict";
const bar = document.getElementById("bulk-progress");
const state = document.getElementById("bulk-state");

async function show() {
  try {
    const answer = await fetch(`${location.pathname}?progress=1`, {headers: {Accept: "application/json"}});
    if (answer.ok) {
      const change = await answer.json();
      // a job does not know how many rows it will find
      if ("examined" in change) bar.value = change.examined;
      if (state.textContent !== change.state) state.textContent = change.state;
      if (!change.is_running) {
        location.reload();
        return;
      }
    }
  } catch {
    // the server may be restarting: ask again
  }
  setTimeout(show, 2000);
}
setTimeout(show, 1000);
