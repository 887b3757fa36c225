// Which algorithm, how many nodes, from which start.

// What belongs to some algorithms only, with what can be said.
const PARAMETERS = {
  k: 'how many may be inside at once',
  tree: 'binary, star, chain, or parents as in -,0,0',
  quorum: 'grid or plane',
  clusters: 'sizes as in 2,2',
  proxies: 'the proxy of each cluster, as in 0,2',
  'max-preempt': 'how often a local request may overtake',
  resources: 'how many resources there are',
};

function labelled(text, field, hint) {
  const label = document.createElement('label');
  label.append(text, field);
  if (hint) field.title = hint;
  return label;
}

function select(name, options) {
  const field = document.createElement('select');
  field.name = name;
  for (const [value, text] of options) field.append(new Option(text, value));
  return field;
}

function input(name, type, attributes) {
  const field = document.createElement('input');
  Object.assign(field, { name, type, ...attributes });
  return field;
}

// A form that opens another group. `open` is given what it says, by key.
export class GroupForm {
  constructor(place, catalogue, open) {
    this.catalogue = catalogue;
    this.open = open;
    this.form = document.createElement('form');
    const most = catalogue.mostNodes;
    this.algorithm = select('algorithm', catalogue.algorithms.map(({ name, title }) => [name, `${name} (${title})`]));
    this.mutant = select('mutant', []);
    this.nodes = input('nodes', 'number', { min: 1, max: most, value: 3, required: true });
    this.requests = input('requests', 'number', { min: 1, max: 100, value: 2, required: true });
    this.crashes = input('crashes', 'number', { min: 0, max: most - 1, value: 0, required: true });
    this.start = input('start', 'text', { placeholder: 'idle' });
    this.order = select('order', [['', 'as the algorithm needs'], ['fifo', 'in order'], ['any', 'in any order']]);
    this.particular = document.createElement('div');
    this.particular.className = 'particular';
    const submit = document.createElement('button');
    submit.textContent = 'Open this group';
    this.form.append(
      labelled('Algorithm', this.algorithm),
      labelled('Nodes', this.nodes),
      labelled('Requests of each', this.requests),
      labelled('May crash', this.crashes),
      labelled('Start', this.start, 'idle, token:NODE or inside:NODE'),
      labelled('Messages arrive', this.order),
      labelled('Broken on purpose', this.mutant),
      this.particular,
      submit,
    );
    this.flaw = document.createElement('p');
    this.flaw.className = 'flaw';
    this.form.append(this.flaw);
    this.algorithm.addEventListener('change', () => this.choose(new Map()));
    this.mutant.addEventListener('change', () => this.chooseMutant());
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.open(this.said());
    });
    place.append(this.form);
  }

  entry() {
    return this.catalogue.algorithms.find(({ name }) => name === this.algorithm.value);
  }

  // Offers the mutants and the parameters of the algorithm.
  choose(said) {
    const { mutants, parameters } = this.entry();
    this.mutant.replaceChildren(new Option('nothing', ''), ...mutants.map(({ name }) => new Option(name, name)));
    const known = parameters.filter((name) => PARAMETERS[name]);
    // Several algorithms guard sets by one lock.
    if (!known.includes('resources') && said.has('resources')) known.push('resources');
    this.particular.replaceChildren(...known.map((name) => {
      const field = input(name, 'text', { placeholder: PARAMETERS[name], value: said.get(name) ?? '' });
      return labelled(name, field, PARAMETERS[name]);
    }));
    this.tellFlaw();
  }

  // A mutant is shown in the group in which it is caught.
  chooseMutant() {
    const group = this.entry().mutants.find(({ name }) => name === this.mutant.value)?.group;
    if (group) {
      this.nodes.value = group.nodes;
      this.requests.value = group.requests;
      this.crashes.value = group.crashes;
      const k = this.particular.querySelector('[name=k]');
      if (k) k.value = group.k ?? '';
    }
    this.tellFlaw();
  }

  tellFlaw() {
    const mutant = this.entry().mutants.find(({ name }) => name === this.mutant.value);
    this.flaw.hidden = !mutant;
    if (!mutant) return;
    const seldom = mutant.group ? '' : ' No small group shows it; the simulator does.';
    this.flaw.textContent = `The flaw: ${mutant.breaks}. It breaks '${mutant.property}'.${seldom}`;
  }

  // Shows what a link says.
  show(said) {
    this.algorithm.value = said.get('algorithm') ?? 'naimi-trehel';
    if (!this.algorithm.value) this.algorithm.value = 'naimi-trehel';
    this.choose(said);
    this.rest = new Map([...said].filter(([key]) => !this.form.elements.namedItem(key)));
    for (const [key, value] of said) {
      const field = this.form.elements.namedItem(key);
      if (field) field.value = value;
    }
    this.tellFlaw();
  }

  said() {
    const said = new Map();
    for (const field of this.form.elements) if (field.name && field.value !== '') said.set(field.name, field.value);
    for (const [key, value] of this.rest ?? []) said.set(key, value);
    return said;
  }
}
