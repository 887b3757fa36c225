// A run on an evolving graph: what every label says at each instant, and journeys.

export class ContactRun {
  constructor(data) {
    this.data = data;
    this.instants = data.instants;
    const now = [];
    this.labels = this.instants.map((instant) => {
      for (const [node, label] of instant.labels) now[node] = label;
      return [...now];
    });
  }

  // The instants that look like the one at `index`, as text.
  when(index) {
    const { at } = this.instants[index];
    const next = index + 1 < this.instants.length ? this.instants[index + 1].at - 1 : this.data.last;
    return next > at ? `instants ${at} to ${next}` : `instant ${at}`;
  }

  // The place of what is shown at an instant.
  placeOf(at) {
    const after = this.instants.findIndex((instant) => instant.at > at);
    return (after < 0 ? this.instants.length : after) - 1;
  }

  nextEntry(index) {
    const entry = this.data.entries.find(({ entered }) => this.placeOf(entered) > index);
    return entry ? this.placeOf(entry.entered) : -1;
  }

  // The journey from one node to another that arrives first, leaving now or later: hops with their places.
  // At one instant it may take several hops.
  foremost(source, target, from) {
    const by = new Map([[source, null]]);
    for (let index = Math.max(from, 0); index < this.instants.length; index += 1) {
      let grows = true;
      while (grows && !by.has(target)) {
        grows = false;
        for (const [a, b] of this.instants[index].edges) {
          for (const [here, there] of [[a, b], [b, a]]) {
            if (!by.has(here) || by.has(there)) continue;
            by.set(there, { from: here, to: there, index });
            grows = true;
          }
        }
      }
      if (by.has(target)) break;
    }
    if (!by.has(target)) return null;
    const hops = [];
    for (let hop = by.get(target); hop; hop = by.get(hop.from)) hops.unshift(hop);
    return hops;
  }
}
