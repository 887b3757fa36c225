// Asks whether something is really meant that takes something away.

import { h } from "./dom.js";

let last = 0;

// Resolves to null if it is not meant, else to `{ note }`. `title`, `words` (texts and elements), `act` (the button),
// `danger`, and `note`: what a note is asked for with.
export function ask(place, { title, words, act, danger, note }) {
  const id = `confirm-${++last}`;
  const input = note ? h("textarea", { id: `${id}-note`, rows: 2, maxlength: 300 }) : null;
  const dialog = h("dialog", { "aria-labelledby": `${id}-title`, "aria-describedby": `${id}-words` },
    h("form", { method: "dialog" },
      h("h2", { id: `${id}-title` }, title), h("p", { id: `${id}-words`, class: "name" }, words),
      note ? [h("label", { for: `${id}-note` }, note), input] : null,
      h("div", { class: "buttons" },
        h("button", { type: "submit", value: "no", class: "plain", autofocus: !note }, "Leave it"),
        h("button", { type: "submit", value: "yes", class: danger ? "danger" : null }, act))));
  place.append(dialog);
  dialog.showModal();
  (input ?? dialog.querySelector("button")).focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? { note: input?.value.trim() ?? "" } : null);
    }, { once: true });
  });
}
