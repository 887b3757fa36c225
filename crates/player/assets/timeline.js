// Contacts over time: a line for each node, a column for each instant, a bar between two that meet.
import { svgElement } from './svg.js';

const WIDE = 26;
const HIGH = 24;
const BEGIN = 70;
const ABOVE = 24;

export class Timeline {
  constructor(place, run, choose) {
    this.place = place;
    this.run = run;
    this.svg = svgElement('svg', { role: 'img', 'aria-label': 'Contacts over time' });
    place.append(this.svg);
    this.svg.addEventListener('click', (click) => {
      const x = click.clientX - this.svg.getBoundingClientRect().left;
      const index = this.first + Math.floor((x - BEGIN) / WIDE);
      if (x > BEGIN && index < run.instants.length) choose(index);
    });
  }

  x(index) {
    return BEGIN + (index - this.first + 0.5) * WIDE;
  }

  y(node) {
    return ABOVE + (node + 0.5) * HIGH;
  }

  // Only the columns that fit are drawn.
  draw({ index, journey }) {
    const { run, svg } = this;
    const width = Math.max(this.place.clientWidth, 240);
    const columns = Math.max(Math.floor((width - BEGIN - 8) / WIDE), 1);
    const most = Math.max(run.instants.length - columns, 0);
    this.first = Math.min(Math.max(index - Math.floor(columns * 0.6), 0), most);
    const last = Math.min(this.first + columns, run.instants.length) - 1;
    const height = ABOVE + run.data.names.length * HIGH + 6;
    svg.replaceChildren();
    svg.setAttribute('width', width);
    svg.setAttribute('height', height);
    svg.append(svgElement('rect', { x: this.x(index) - WIDE / 2, y: 0, width: WIDE, height, class: 'now' }));
    this.drawLines(last);
    for (let at = this.first; at <= last; at += 1) this.drawInstant(at, index);
    for (const hop of journey ?? []) {
      if (hop.index < this.first || hop.index > last) continue;
      const x = this.x(hop.index);
      svg.append(svgElement('line', { x1: x, x2: x, y1: this.y(hop.from), y2: this.y(hop.to), class: 'hop-bar' }));
      svg.append(svgElement('circle', { cx: x, cy: this.y(hop.to), r: 4, class: 'hop-end' }));
    }
  }

  drawLines(last) {
    const { run, svg } = this;
    const end = this.x(last) + WIDE / 2;
    run.data.names.forEach((name, node) => {
      const y = this.y(node);
      svg.append(svgElement('text', { x: 6, y: y + 4, class: 'name' }, name.length > 8 ? `${name.slice(0, 7)}…` : name));
      svg.append(svgElement('line', { x1: BEGIN, x2: end, y1: y, y2: y, class: 'life' }));
      for (let at = this.first; at <= last; at += 1) {
        const { phase } = run.labels[at][node];
        if (phase === 'idle') continue;
        svg.append(svgElement('rect', { x: this.x(at) - WIDE / 2, y: y - 5, width: WIDE, height: 10, class: `phase ${phase}` }));
      }
    });
  }

  drawInstant(at, index) {
    const { run, svg } = this;
    const x = this.x(at);
    const instant = run.instants[at];
    if ((at - this.first) % 3 === 0) svg.append(svgElement('text', { x, y: 14, class: 'tick' }, instant.at));
    const group = svgElement('g', { class: at > index ? 'meet later' : 'meet' });
    group.append(svgElement('title', {}, run.when(at)));
    instant.edges.forEach(([a, b], which) => {
      // Bars of one instant stand beside each other.
      const shift = ((which % 5) - Math.min(instant.edges.length - 1, 4) / 2) * 4;
      const [x1, y1, y2] = [x + shift, this.y(a), this.y(b)];
      group.append(svgElement('line', { x1, x2: x1, y1, y2 }));
      for (const cy of [y1, y2]) group.append(svgElement('circle', { cx: x1, cy, r: 2.5 }));
    });
    svg.append(group);
  }
}
