// A recorded run: what every node knows after each event, what caused what, and counts.

const EVERY = 100;

// What a value looks like as text.
export function valueText(value) {
  const [kind, content] = Object.entries(value)[0];
  if (kind === 'flag') return content ? 'yes' : 'no';
  if (kind === 'node') return content === null ? 'nobody' : `→ ${content}`;
  if (kind === 'set') return `{${content.join(', ')}}`;
  if (kind === 'queue') return `[${content.join(', ')}]`;
  if (kind === 'stamps') return `[${content.map((s) => `(${s.time}, ${s.node})`).join(', ')}]`;
  if (kind === 'per-node') return `⟨${content.join(' ')}⟩`;
  return content === '' ? '–' : String(content);
}

export class Run {
  constructor(data) {
    this.data = data;
    this.events = data.events;
    this.sentBy = new Map();
    this.arrivesAt = new Map();
    this.kinds = [];
    this.messages = [];
    this.entries = [];
    let messages = data.before.messages;
    let entries = data.before.entries;
    this.events.forEach((event, index) => {
      for (const sent of event.sends ?? []) {
        this.sentBy.set(sent.id, { index, from: event.node, ...sent });
        if (!this.kinds.includes(sent.kind)) this.kinds.push(sent.kind);
      }
      if (event.message !== undefined) this.arrivesAt.set(event.message, index);
      messages += (event.sends ?? []).length;
      entries += event.granted === undefined ? 0 : 1;
      this.messages.push(messages);
      this.entries.push(entries);
    });
    this.link();
    this.saved = [data.start.map((node) => node.map((variable) => variable.value))];
    this.phases = this.findPhases();
  }

  // The events that come right before each: of its node, and the one that sent its message.
  link() {
    const last = new Map();
    this.causes = this.events.map((event, index) => {
      const causes = [];
      if (event.node !== undefined && last.has(event.node)) causes.push(last.get(event.node));
      const sent = this.sentBy.get(event.message);
      if (sent) causes.push(sent.index);
      if (event.node !== undefined) last.set(event.node, index);
      return causes;
    });
  }

  // By event, whether each node waits, is inside or has crashed.
  findPhases() {
    const now = this.data.start.map((node) => {
      const phase = node.find((variable) => variable.name === 'phase');
      const using = node.find((variable) => variable.name === 'USING');
      if (using?.value.flag) return 'inside';
      return phase?.value.text ?? 'idle';
    });
    this.firstPhases = [...now];
    return this.events.map((event) => {
      if (event.kind === 'request') now[event.node] = 'waiting';
      if (event.kind === 'release') now[event.node] = 'idle';
      if (event.kind === 'crash') now[event.node] = 'crashed';
      if (event.granted !== undefined) now[event.node] = 'inside';
      return [...now];
    });
  }

  // Whether a node is idle, waits, is inside or has crashed after an event; -1 is before the first.
  phaseOf(node, index) {
    return index < 0 ? this.firstPhases[node] : this.phases[index][node];
  }

  // The handler that took the step of an event, with what its message says.
  ruleOf(index) {
    const event = this.events[index];
    if (!event) return undefined;
    const kind = event.kind === 'message' ? `message ${event.brought}` : event.kind;
    return this.data.rules[kind];
  }

  // What every node knows after an event; -1 is before the first.
  stateAt(index) {
    const want = index + 1;
    let from = Math.min(Math.floor(want / EVERY), this.saved.length - 1);
    let state = this.saved[from].map((node) => [...node]);
    for (let at = from * EVERY; at < want; at += 1) {
      const event = this.events[at];
      for (const [place, value] of event.changes ?? []) state[event.node][place] = value;
      if ((at + 1) % EVERY === 0 && this.saved.length === (at + 1) / EVERY) {
        this.saved.push(state.map((node) => [...node]));
      }
    }
    return state;
  }

  nextEntry(index) {
    return this.events.findIndex((event, at) => at > index && event.granted !== undefined);
  }

  // The request that an event of a node belongs to: the last one before it, and its entry.
  requestOf(index) {
    const node = this.events[index]?.node;
    let ask = index;
    while (ask >= 0 && !(this.events[ask].node === node && this.events[ask].kind === 'request')) ask -= 1;
    if (ask < 0) return null;
    const isEntry = (event, at) => at >= ask && event.node === node && event.granted !== undefined;
    const entry = this.events.findIndex(isEntry);
    return { node, ask, entry: entry < 0 ? ask : entry };
  }

  // What an entry depends on, and what depends on its request.
  related(request) {
    const past = new Set([request.entry]);
    for (let at = request.entry; at >= 0; at -= 1) {
      if (past.has(at)) for (const cause of this.causes[at]) past.add(cause);
    }
    const future = new Set([request.ask]);
    for (let at = request.ask + 1; at < this.events.length; at += 1) {
      if (this.causes[at].some((cause) => future.has(cause))) future.add(at);
    }
    return { past, future };
  }
}
