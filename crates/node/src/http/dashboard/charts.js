// Pictures of numbers: lines over the last minutes, and bars of how long things take.
//
// Only lines and bars are SVG, stretched to whatever room there is; words are HTML, so that they keep their size.

import { attribute, h, show, svg, text } from "./dom.js";

// The room of a picture, in its own units.
const WIDTH = 600;
const HEIGHT = 120;

// A chart of lines. `series`: `{ name, of(sample), unit(value) }`; nothing where `of` gives null. `isLog`: each
// step upwards is ten times as much. Returns its element, and what draws it anew.
export function lines(title, series, { isLog = false, least = 1 } = {}) {
  const paths = series.map((it, index) => svg("path", { class: `line k${index}`, "vector-effect": "non-scaling-stroke" }));
  const grid = svg("path", { class: "grid", "vector-effect": "non-scaling-stroke" });
  const top = h("span", null);
  const bottom = h("span", null);
  const from = h("span", null);
  const values = series.map(() => h("strong", null));
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" }, grid, paths);
  const element = h("figure", { class: "chart" },
    h("figcaption", null, h("h3", null, title), h("ul", { class: "legend" },
      series.map((it, index) => h("li", { class: `k${index}` }, it.name, " ", values[index])))),
    h("div", { class: "plot" }, h("div", { class: "axis-y" }, top, bottom), picture),
    h("div", { class: "axis-x" }, from, h("span", null, "now")));

  function draw(samples, seconds) {
    const all = series.map((it) => samples.map((sample) => it.of(sample)));
    const known = all.flat().filter((value) => value !== null);
    const most = known.reduce((most, value) => Math.max(most, value), least);
    const scale = isLog ? logarithmic(known, most, least) : linear(most);
    const begin = (samples.at(-1)?.unix_ms ?? 0) - 1000 * seconds;
    const x = (sample) => (WIDTH * (sample.unix_ms - begin)) / (1000 * seconds);
    all.forEach((values, index) => {
      attribute(paths[index], "d", path(values, samples.map(x), scale.y));
    });
    attribute(grid, "d", scale.lines.map((y) => `M0 ${y.toFixed(1)}H${WIDTH}`).join(""));
    text(top, series[0].unit(scale.top));
    text(bottom, series[0].unit(scale.bottom));
    text(from, `${Math.round(seconds / 60)} min ago`);
    const last = series.map((it, index) => all[index].at(-1) ?? null);
    last.forEach((value, index) => text(values[index], value === null ? "–" : series[index].unit(value)));
    const words = series.map((it, index) => `${it.name} ${values[index].textContent}`).join(", ");
    attribute(picture, "aria-label", `${title}, now: ${words}`);
  }
  return { element, draw };
}

// A line through all values that are there; it is broken where one is missing.
function path(values, xs, y) {
  let isDown = false;
  const parts = values.map((value, index) => {
    if (value === null) { isDown = false; return ""; }
    const part = `${isDown ? "L" : "M"}${xs[index].toFixed(1)} ${y(value).toFixed(1)}`;
    // A value alone is a point.
    const isAlone = !isDown && (values[index + 1] ?? null) === null;
    isDown = true;
    return isAlone ? `${part}h0.1` : part;
  });
  return parts.join("");
}

function linear(most) {
  const top = round(most);
  const y = (value) => HEIGHT - 2 - ((HEIGHT - 4) * value) / top;
  return { y, top, bottom: 0, lines: [0, top / 2, top].map(y) };
}

function logarithmic(known, most, least) {
  const low = Math.floor(Math.log10(Math.max(1e-3, known.reduce((low, value) => Math.min(low, value), least))));
  const high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  const y = (value) => HEIGHT - 2 - ((HEIGHT - 4) * (Math.log10(Math.max(value, 10 ** low)) - low)) / (high - low);
  const decades = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index));
  return { y, top: 10 ** high, bottom: 10 ** low, lines: decades.map(y) };
}

// The next number that people like: 1, 2 or 5, and zeros.
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

// How long something takes: a bar for each power of two. `counted`: what is said of how many that were.
export function bars(title, about, unit, counted = (count) => `${count.toLocaleString("en")} so far:`) {
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
  const low = h("span", null);
  const high = h("span", null);
  const said = h("p", { class: "faint" });
  const element = h("figure", { class: "chart" },
    h("figcaption", null, h("h3", null, title), said),
    h("div", { class: "plot whole" }, picture),
    h("div", { class: "axis-x" }, low, high));
  let drawn = "";

  function draw({ count, p50_ms, p99_ms, buckets }) {
    const now = JSON.stringify(buckets);
    if (now === drawn) return;
    drawn = now;
    text(said, count === 0 ? `${about} None yet.`
      : `${about} ${counted(count)} half within ${unit(p50_ms)}, 99 of 100 within ${unit(p99_ms)}.`);
    attribute(picture, "aria-label", `${title}: ${said.textContent}`);
    const first = buckets.findIndex((bucket) => bucket.count > 0);
    const last = buckets.findLastIndex((bucket) => bucket.count > 0);
    if (first < 0) { text(low, ""); text(high, ""); return show(picture); }
    // A few more, so that one bar does not fill the picture.
    const begin = Math.max(0, Math.min(first - 1, last - 7));
    const end = Math.min(buckets.length - 1, Math.max(last + 1, begin + 8));
    const part = buckets.slice(begin, end + 1);
    const most = Math.max(...part.map((bucket) => bucket.count));
    const width = WIDTH / part.length;
    show(picture, part.map((bucket, index) => {
      // What has happened once among millions is still seen.
      const height = bucket.count === 0 ? 0 : Math.max(2, ((HEIGHT - 4) * bucket.count) / most);
      const range = bucket.at_most_ms === null ? "longer" : `up to ${unit(bucket.at_most_ms)}`;
      return svg("rect", { class: "bar", x: (index * width + 1).toFixed(1), y: (HEIGHT - height).toFixed(1),
        width: Math.max(1, width - 2).toFixed(1), height: height.toFixed(1) },
      svg("title", null, `${range}: ${bucket.count}`));
    }));
    text(low, begin === 0 ? unit(0) : unit(buckets[begin - 1].at_most_ms));
    text(high, part.at(-1).at_most_ms === null ? "longer" : unit(part.at(-1).at_most_ms));
  }
  return { element, draw };
}
