// What is wrong, what happens now, and how long things take: of one node.

import { bars, lines } from "./charts.js";
import { h, show, text } from "./dom.js";
import { live } from "./live.js";
import { brief, clock, count, lasting, rate } from "./times.js";

// What is shown of the past, in seconds.
const SHOWN = 300;
// How long things take is asked so often.
const TIMES = 5000;
// The figures are of the last so many seconds.
const RECENT = 10;

export function renderOverview(container, api) {
  const alerts = h("div");
  const figures = FIGURES.map(figure);
  const charts = CHARTS.map(([title, series, options]) => lines(title, series, options));
  const waits = bars("Waits", "From asking to being inside, of those who had to wait.", brief);
  const holds = bars("Holds", "From being inside to leaving.", brief);
  const handovers = bars("Hand-overs", "From one's leaving until the next client of this node is inside.", brief);
  const trouble = h("p", { class: "notice", role: "alert", hidden: true });
  show(container,
    h("section", { class: "card alerts", "aria-labelledby": "alerts-title" }, h("h2", { id: "alerts-title" }, "Alerts"), alerts),
    h("dl", { class: "figures" }, figures.map((it) => it.element)),
    trouble,
    h("section", { class: "card" }, h("h2", null, "The last minutes at this node"),
      h("div", { class: "columns" }, charts.map((chart) => chart.element))),
    h("section", { class: "card" }, h("h2", null, "How long things take at this node, since it began"),
      h("div", { class: "columns" }, [waits, holds, handovers].map((chart) => chart.element))));

  const abort = new AbortController();
  let samples = [];
  const add = (sample) => {
    if (samples.length > 0 && sample.unix_ms <= samples.at(-1).unix_ms) return;
    samples.push(sample);
    if (samples.length > SHOWN) samples.shift();
    draw();
  };
  const draw = () => {
    charts.forEach((chart) => chart.draw(samples, SHOWN));
    const recent = samples.slice(-RECENT);
    figures.forEach((it) => it.draw(recent));
  };
  const fail = (error) => {
    if (abort.signal.aborted) return;
    trouble.hidden = false;
    text(trouble, `What has happened is not known: ${error.message}.`);
  };
  const begin = async () => {
    try {
      const past = await api.json(`/v1/rates?seconds=${SHOWN}`, { signal: abort.signal });
      samples = past.samples;
      trouble.hidden = true;
      draw();
    } catch (error) {
      fail(error);
    }
  };
  let timer = null;
  const measure = async () => {
    try {
      const times = await api.json("/v1/times", { signal: abort.signal });
      waits.draw(times.waits);
      holds.draw(times.holds);
      handovers.draw(times.handovers);
    } catch (error) {
      fail(error);
    }
    if (!abort.signal.aborted) timer = setTimeout(measure, TIMES);
  };
  const ends = [
    live.on("alerts", (all) => drawAlerts(alerts, all)),
    live.on("sample", add),
    // After it was cut off the page has missed something.
    live.on("gap", begin),
    () => { abort.abort(); clearTimeout(timer); },
  ];
  begin();
  measure();
  return () => ends.forEach((end) => end());
}

const sum = (samples, of) => samples.reduce((sum, sample) => sum + of(sample), 0);
const perSecond = (of) => (samples) => {
  const seconds = sum(samples, (sample) => sample.took_ms) / 1000;
  return seconds > 0 ? rate(sum(samples, of) / seconds) : "–";
};
const newest = (of) => (samples) => (samples.length > 0 ? count(of(samples.at(-1))) : "–");
const slowest = (of) => (samples) => {
  const known = samples.map(of).filter((value) => value !== null);
  return known.length > 0 ? brief(Math.max(...known)) : "–";
};

const FIGURES = [
  ["Held", newest((it) => it.held), "holds of clients of this node"],
  ["Waiting", newest((it) => it.waiting), "clients of this node"],
  ["Grants", perSecond((it) => it.grants), "a second"],
  ["Hand-overs", perSecond((it) => it.handovers), "a second, without a message"],
  ["Waits", slowest((it) => it.waits.p99_ms), "99 of 100, last 10 s"],
  ["Sessions", newest((it) => it.sessions), "open"],
];

const each = (of) => (sample) => (1000 * of(sample)) / Math.max(1, sample.took_ms);
const CHARTS = [
  ["Grants a second", [
    { name: "grants", of: each((it) => it.grants), unit: rate },
    { name: "of these hand-overs", of: each((it) => it.handovers), unit: rate },
  ]],
  ["Clients that wait", [
    { name: "waiting", of: (it) => it.waiting, unit: count },
    { name: "longest queue", of: (it) => it.longest_queue, unit: count },
  ]],
  ["Time to get a lock, of those who wait", [
    { name: "99 of 100", of: (it) => it.waits.p99_ms, unit: brief },
    { name: "half", of: (it) => it.waits.p50_ms, unit: brief },
  ], { isLog: true }],
  ["Messages between members a second", [
    { name: "sent", of: each((it) => it.sent), unit: rate },
    { name: "received", of: each((it) => it.arrived), unit: rate },
  ]],
  ["Requests refused a second", [
    { name: "refused", of: each((it) => it.refused), unit: rate },
  ]],
  ["Time of an answer of the registry", [
    { name: "99 of 100", of: (it) => it.registry.p99_ms, unit: brief },
    { name: "half", of: (it) => it.registry.p50_ms, unit: brief },
  ], { isLog: true }],
];

function figure([name, of, about]) {
  const value = h("strong", null, "–");
  const element = h("div", { class: "figure" }, h("dt", null, name), h("dd", null, value, h("span", { class: "faint" }, ` ${about}`)));
  return { element, draw: (samples) => text(value, of(samples)) };
}

function drawAlerts(place, all) {
  if (all.length === 0) return show(place, h("p", { class: "good" }, "Nothing is wrong, as far as this node sees."));
  return show(place, h("ul", null, all.map((alert) => h("li", null,
    h("span", { class: `badge ${alert.severity === "critical" ? "bad" : "warn"}` }, alert.severity), " ",
    h("span", { class: "name" }, alert.text), " ",
    alert.lock !== undefined ? h("a", { href: `#/lock/${encodeURIComponent(alert.lock)}` }, "Show the lock") : null,
    alert.member !== undefined ? h("a", { href: "#/members" }, "Show the members") : null,
    h("span", { class: "faint" }, ` since ${clock(alert.since_unix_ms)}, ${lasting(Date.now() - alert.since_unix_ms)}`)))));
}
