// Asks for a token.

import { api } from "./api.js";
import { h, show } from "./dom.js";

// Shows a form in `place`; `next` is called when there is a token to try.
export function askForToken(place, refused, next) {
  const isWrong = api.token() !== null;
  const input = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true,
    "aria-describedby": "token-about" });
  const submit = (event) => {
    event.preventDefault();
    api.useToken(input.value.trim());
    next();
  };
  show(place, h("form", { class: "card token", onsubmit: submit },
    h("h2", null, "This node wants to know who you are"),
    isWrong ? h("p", { class: "bad", role: "alert" }, refused.message) : null,
    h("label", { for: "token" }, "Token"), input,
    h("p", { class: "faint", id: "token-about" },
      "It is kept in this tab only, until you close it. An administrator makes one with ",
      h("code", null, "catraca token add"), "."),
    h("button", { type: "submit" }, "Go on")));
  api.useToken(null);
  input.focus();
}
