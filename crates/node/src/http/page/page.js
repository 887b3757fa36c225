// Lists the operations of /openapi.json and sends them. Nothing is kept: a token is forgotten with the page.

const METHODS = ["get", "post", "delete"];
// An answer without an end is cut at the top when it is longer than this.
const MOST_SHOWN = 100_000;

const token = document.querySelector("#token");

start();

async function start() {
  const about = document.querySelector("#about");
  try {
    const answer = await fetch("openapi.json");
    const api = await answer.json();
    about.textContent = "";
    prose(about, `${api.info.description}\n\nVersion ${api.info.version}`);
    const all = document.querySelector("#operations");
    // What is about locks comes first.
    const isOther = ([path]) => !path.startsWith("/v1/");
    const paths = Object.entries(api.paths).sort((one, two) => isOther(one) - isOther(two));
    for (const [path, item] of paths) {
      for (const method of METHODS.filter((method) => item[method])) {
        all.append(operation(api, path, method, item[method]));
      }
    }
  } catch (error) {
    about.textContent = `The node does not say what it offers: ${error.message}`;
  }
}

function operation(api, path, method, described) {
  const part = document.querySelector("#operation").content.cloneNode(true);
  const find = (selector) => part.querySelector(selector);
  find(".method").textContent = method.toUpperCase();
  find(".path").textContent = path;
  inline(find(".what"), described.summary ?? "");
  prose(find(".more"), described.description ?? "");
  const fields = find(".fields");
  const parameters = (described.parameters ?? []).map((parameter) => {
    const input = document.createElement("input");
    fields.append(labelled(parameter.name, parameter.description, input));
    return { parameter, input };
  });
  const body = bodyField(api, described, fields);
  const shown = {
    form: find("form"), curl: find(".curl"), status: find(".status"), answer: find(".answer"),
    answered: find(".answered"), send: find("[type=submit]"), stop: find(".stop"),
  };
  const request = () => requestOf(path, method, parameters, body);
  const refresh = () => { shown.curl.textContent = curlOf(request()); };
  shown.form.addEventListener("input", refresh);
  token.addEventListener("input", refresh);
  shown.form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(request(), shown);
  });
  refresh();
  return part;
}

// Texts of the document have empty lines between paragraphs, and code between backquotes.
function prose(place, text) {
  for (const paragraph of text.split(/\n{2,}/).filter((part) => part.trim())) {
    const part = document.createElement("p");
    inline(part, paragraph.replace(/\s*\n\s*/g, " "));
    place.append(part);
  }
}

function inline(place, text) {
  text.split("`").forEach((part, index) => {
    const code = document.createElement("code");
    code.textContent = part;
    place.append(index % 2 === 1 ? code : part);
  });
}

function labelled(name, description, input) {
  const label = document.createElement("label");
  const about = document.createElement("span");
  about.className = "about";
  inline(about, description ? ` ${description}` : "");
  label.append(name, about, input);
  return label;
}

function bodyField(api, described, fields) {
  const schema = described.requestBody?.content?.["application/json"]?.schema;
  if (!schema) return null;
  const input = document.createElement("textarea");
  input.spellcheck = false;
  input.value = JSON.stringify(example(api, schema), null, 2);
  fields.append(labelled("Body", "as JSON", input));
  return input;
}

// Something that fits a schema: what has to be there, as its examples say.
function example(api, schema) {
  if (schema.$ref) return example(api, api.components.schemas[schema.$ref.split("/").pop()]);
  if (schema.example !== undefined) return schema.example;
  const choices = schema.oneOf ?? schema.allOf ?? schema.anyOf;
  if (choices) return example(api, choices.find((choice) => choice.type !== "null") ?? choices[0]);
  const type = [schema.type].flat().find((type) => type !== "null");
  if (type === "object") {
    const names = schema.required ?? [];
    return Object.fromEntries(names.map((name) => [name, example(api, schema.properties[name])]));
  }
  return { array: [], string: "", integer: 0, number: 0, boolean: false }[type] ?? null;
}

function requestOf(path, method, parameters, body) {
  let filled = path;
  const query = new URLSearchParams();
  for (const { parameter, input } of parameters) {
    if (parameter.in === "path") {
      filled = filled.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    } else if (input.value !== "") {
      query.append(parameter.name, input.value);
    }
  }
  const address = query.size > 0 ? `${filled}?${query}` : filled;
  const headers = token.value ? { authorization: `Bearer ${token.value}` } : {};
  const text = body?.value.trim();
  if (text) headers["content-type"] = "application/json";
  return { address, method: method.toUpperCase(), headers, body: text || undefined };
}

function curlOf({ address, method, headers, body }) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const words = ["curl"];
  if (headers.authorization) words.push("-H", quoted("Authorization: Bearer TOKEN"));
  if (method !== (body ? "POST" : "GET")) words.push("-X", method);
  if (body) words.push("--json", quoted(body.replace(/\s*\n\s*/g, " ")));
  words.push(quoted(new URL(address, location.href).href));
  return words.join(" ");
}

async function send(request, shown) {
  const abort = new AbortController();
  const stop = () => abort.abort();
  shown.stop.addEventListener("click", stop);
  shown.send.disabled = true;
  shown.stop.hidden = false;
  shown.answered.hidden = false;
  shown.answer.hidden = true;
  shown.answer.textContent = "";
  tell(shown, "Sent; waiting …", "");
  const begin = performance.now();
  try {
    const { address, ...options } = request;
    const answer = await fetch(address, { ...options, signal: abort.signal, cache: "no-store" });
    const took = Math.round(performance.now() - begin);
    tell(shown, `${answer.status} ${answer.statusText}, ${took} ms`, answer.ok ? "good" : "bad");
    await show(answer, shown.answer);
  } catch (error) {
    tell(shown, abort.signal.aborted ? "Stopped" : error.message, abort.signal.aborted ? "" : "bad");
  } finally {
    shown.stop.removeEventListener("click", stop);
    shown.send.disabled = false;
    shown.stop.hidden = true;
  }
}

function tell(shown, text, kind) {
  shown.status.textContent = text;
  shown.status.className = `status ${kind}`;
}

// Shows an answer while it comes: some have no end.
async function show(answer, place) {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (reader) {
    const { value, done } = await reader.read();
    if (done) break;
    text = (text + value).slice(-MOST_SHOWN);
    place.textContent = text;
    place.hidden = false;
  }
  if (answer.headers.get("content-type")?.includes("json")) {
    place.textContent = JSON.stringify(JSON.parse(text), null, 2);
  }
}
