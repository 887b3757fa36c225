// The space-time diagram: a line for each node, a column for each event, an arrow for each message.
import { svgElement } from './svg.js';

const COLUMN = 34;
const ROW = 46;
const LEFT = 62;
const TOP = 34;

export class Diagram {
  // `choose` is told which event was clicked on; `deliver`, if given, which message on its way.
  constructor(place, run, choose, deliver) {
    this.place = place;
    this.run = run;
    this.deliver = deliver;
    this.svg = svgElement('svg', { role: 'img' });
    this.place.append(this.svg);
    this.svg.addEventListener('click', (click) => {
      const message = click.target.closest('[data-message]');
      if (message && this.deliver) return this.deliver(Number(message.dataset.message));
      const x = click.clientX - this.svg.getBoundingClientRect().left;
      const index = this.first + Math.round((x - LEFT) / COLUMN - 0.5);
      if (x > LEFT && index < this.run.events.length) choose(index);
    });
  }

  x(index) {
    return LEFT + (index - this.first + 0.5) * COLUMN;
  }

  y(node) {
    return TOP + (node + 0.5) * ROW;
  }

  // Only the columns that fit are drawn, so that long runs cost no more than short ones.
  draw({ index, hidden, related }) {
    const { run, svg } = this;
    const width = Math.max(this.place.clientWidth, 240);
    // What has not arrived in the end needs room behind the last column.
    const columns = Math.max(Math.floor((width - LEFT - 8) / COLUMN) - 1, 1);
    const most = Math.max(run.events.length - columns, 0);
    this.first = Math.min(Math.max(index - Math.floor(columns * 0.65), 0), most);
    const last = Math.min(this.first + columns, run.events.length) - 1;
    const height = TOP + run.data.nodes * ROW + 8;
    svg.replaceChildren();
    svg.setAttribute('width', width);
    svg.setAttribute('height', height);
    svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
    const text = index < 0 ? 'before the first step' : run.events[index].text;
    svg.setAttribute('aria-label', `Space-time diagram, ${text}`);
    // What comes from before the first column ends at its edge, and not in the names.
    const part = svgElement('clipPath', { id: 'columns' });
    part.append(svgElement('rect', { x: LEFT, y: 0, width: Math.max(width - LEFT, 0), height }));
    this.arrows = svgElement('g', { 'clip-path': 'url(#columns)' });
    this.drawNow(index, height);
    this.drawNodes(index, last);
    const faint = (at) => related && !related.past.has(at) && !related.future.has(at);
    svg.append(part, this.arrows);
    this.drawMessages(index, last, hidden, faint);
    for (let at = this.first; at <= last; at += 1) this.drawEvent(at, index, faint(at));
  }

  drawNow(index, height) {
    const { violation } = this.run.data;
    if (index >= this.first) {
      const x = this.x(index) - COLUMN / 2;
      this.svg.append(svgElement('rect', { x, y: 0, width: COLUMN, height, class: 'now' }));
    }
    if (violation && violation.event >= this.first) {
      const x = this.x(violation.event);
      this.svg.append(svgElement('line', { x1: x, x2: x, y1: 18, y2: height, class: 'violation' }));
      this.svg.append(svgElement('text', { x, y: 13, class: 'violation-mark' }, '✗'));
    }
  }

  drawNodes(index, last) {
    const { run, svg } = this;
    const end = Math.max(this.x(last) + COLUMN / 2, LEFT + COLUMN);
    for (let node = 0; node < run.data.nodes; node += 1) {
      const y = this.y(node);
      svg.append(svgElement('text', { x: 6, y: y + 4, class: 'name' }, `node ${node}`));
      svg.append(svgElement('line', { x1: LEFT, x2: end, y1: y, y2: y, class: 'life' }));
      for (let at = this.first; at <= last; at += 1) {
        const phase = run.phases[at][node];
        if (phase === 'idle') continue;
        // What began before the first column reaches to its edge.
        const x = at === this.first && at > 0 ? LEFT : this.x(at);
        const to = at === last ? end : this.x(at + 1);
        const shown = { x, y: y - 5, width: to - x, height: 10, class: `phase ${phase}` };
        svg.append(svgElement('rect', shown));
      }
    }
    if (index >= 0) svg.append(svgElement('text', { x: 6, y: 16, class: 'name' }, `step ${index + 1}`));
  }

  drawMessages(index, last, hidden, faint) {
    for (const sent of this.run.sentBy.values()) {
      const arrives = this.run.arrivesAt.get(sent.id);
      if (hidden.has(sent.kind) || sent.index > last) continue;
      if (arrives !== undefined && arrives < this.first) continue;
      if (arrives === undefined && sent.index < this.first) continue;
      const lost = arrives !== undefined && this.run.events[arrives].kind === 'lost';
      const there = arrives === undefined || lost ? null : arrives;
      const [x1, y1] = [this.x(sent.index), this.y(sent.from)];
      let [x2, y2] = there === null ? [x1 + COLUMN * 0.8, this.y(sent.to)] : [this.x(there), this.y(sent.to)];
      if (there === null) y2 = y1 + (y2 - y1) * 0.5;
      const future = sent.index > index ? ' later' : '';
      const kind = `kind-${this.run.kindNumber(sent.kind)}`;
      const dim = faint(sent.index) || (there !== null && faint(there)) ? ' faint' : '';
      const way = there === null ? ' pending' : '';
      const shape = { class: `message ${kind}${future}${dim}${way}` };
      const group = svgElement('g', shape);
      group.append(svgElement('title', {}, `${sent.text}, ${sent.from} to ${sent.to}${lost ? ', lost' : ''}`));
      if (this.deliver && there === null && !lost) {
        group.dataset.message = sent.id;
        // A thin line is hard to hit.
        group.append(svgElement('line', { x1, y1, x2, y2, class: 'wide' }));
      }
      group.append(svgElement('line', { x1, y1, x2, y2 }));
      const angle = Math.atan2(y2 - y1, x2 - x1);
      const corner = (turn) => `${x2 - 9 * Math.cos(angle + turn)},${y2 - 9 * Math.sin(angle + turn)}`;
      group.append(svgElement('polygon', { points: `${x2},${y2} ${corner(0.4)} ${corner(-0.4)}` }));
      this.arrows.append(group);
    }
  }

  drawEvent(at, index, isFaint) {
    const event = this.run.events[at];
    if (event.node === undefined) return;
    const [cx, cy] = [this.x(at), this.y(event.node)];
    const later = at > index ? ' later' : '';
    const dim = isFaint ? ' faint' : '';
    const entry = event.granted === undefined ? '' : ' entry';
    const shape = { class: `event ${event.kind}${entry}${later}${dim}` };
    const group = svgElement('g', shape);
    group.append(svgElement('title', {}, event.text));
    group.append(svgElement('circle', { cx, cy, r: event.kind === 'message' ? 4 : 6 }));
    if (event.kind === 'crash') group.append(svgElement('text', { x: cx, y: cy + 5 }, '✗'));
    this.svg.append(group);
  }
}
