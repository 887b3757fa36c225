// Ending a hold by force: asks once more, and for a note.

import { h } from "./dom.js";
import { lasting } from "./times.js";

// The longest note, in bytes.
const LONGEST_NOTE = 1024;

// A button that ends one hold of a lock, for administrators; for others it is there and says why it does nothing.
export function forceButton(api, name, holder, done) {
  const isAllowed = api.may("administer");
  return h("button", {
    type: "button", class: "quiet force", disabled: !isAllowed,
    title: isAllowed ? null : "This takes the role 'administer'",
    "aria-label": `Release ${name} by force`,
    onclick: () => confirm(api, name, holder, done),
  }, "Release by force");
}

function confirm(api, name, holder, done) {
  const note = h("input", { id: "note", maxlength: LONGEST_NOTE, autocomplete: "off", placeholder: "why, for the audit log" });
  const trouble = h("p", { class: "bad", role: "alert" });
  const go = h("button", { type: "submit", class: "danger" }, "Release by force");
  const who = holder.label || "somebody without a label";
  const send = async (event) => {
    event.preventDefault();
    go.disabled = true;
    trouble.textContent = "";
    try {
      await api.json("/v1/force-release", { body: { name, fences: [holder.fence], note: note.value } });
      dialog.close();
      done?.();
    } catch (error) {
      trouble.textContent = error.message;
      go.disabled = false;
    }
  };
  const dialog = h("dialog", { "aria-labelledby": "force-title", onclose: () => dialog.remove() },
    h("form", { onsubmit: send },
      h("h2", { id: "force-title" }, "Release this lock by force?"),
      h("p", null, h("strong", { class: "name" }, name), " is held by ", h("strong", { class: "name" }, who),
        ` at member ${holder.member} for ${lasting(performance.now() - holder.since)}, with fence `, h("code", null, holder.fence), "."),
      h("p", null, holder.durable
        ? "This hold is durable: it belongs to its owner until it is released, and nobody may notice that it is gone."
        : "A client that lives is told, and the next one gets in when this one cannot believe to be inside any more."),
      h("label", { for: "note" }, "Note"), note, trouble,
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Cancel"), go)));
  document.body.append(dialog);
  dialog.showModal();
  note.focus();
}
