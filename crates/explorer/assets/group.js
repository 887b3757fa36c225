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
  claims: 'what each node takes at a time, as in 0,1|1,2',
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

// What is said by default is what the form goes back to.
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
    this.nodes = input('nodes', 'number', { min: 1, max: most, defaultValue: 3, required: true });
    this.requests = input('requests', 'number', { min: 1, max: 100, defaultValue: 2, required: true });
    this.crashes = input('crashes', 'number', { min: 0, max: most - 1, defaultValue: 0, required: true });
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
    const evolving = document.createElement('p');
    evolving.className = 'evolving';
    const names = catalogue.evolving.map((name) => `'${name}'`).join(' and ');
    evolving.textContent = `Not here: ${names} run on networks that change, where nodes meet instead of sending messages. 'catraca graph run GRAPH --algorithm ${catalogue.evolving[0]} --html run.html' writes a page that plays them.`;
    this.flaw = document.createElement('p');
    this.flaw.className = 'flaw';
    this.form.append(this.flaw, evolving);
    this.algorithm.addEventListener('change', () => this.choose(new Map()));
    this.particular.addEventListener('input', () => this.countNodes());
    this.show(new Map());
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
    // Sets are guarded by several algorithms; and whatever a link says can be seen, and taken back.
    const isShown = (name) => parameters.includes(name) || said.has(name);
    const hasSets = isShown('resources') || isShown('claims');
    const known = Object.keys(PARAMETERS).filter((name) => isShown(name) || (hasSets && ['resources', 'claims'].includes(name)));
    this.particular.replaceChildren(...known.map((name) => {
      const field = input(name, 'text', { placeholder: PARAMETERS[name], value: said.get(name) ?? '' });
      return labelled(name, field, PARAMETERS[name]);
    }));
    this.countNodes();
    this.tellFlaw();
  }

  // Clusters say how many nodes there are.
  countNodes() {
    const clusters = this.particular.querySelector('[name=clusters]');
    this.nodes.disabled = Boolean(clusters?.value.trim());
    this.nodes.title = this.nodes.disabled ? 'the clusters say how many' : '';
  }

  // A mutant is shown in the group in which it is caught.
  chooseMutant() {
    const group = this.entry().mutants.find(({ name }) => name === this.mutant.value)?.group;
    if (group) {
      this.nodes.value = group.nodes;
      this.requests.value = group.requests;
      this.crashes.value = group.crashes;
      for (const field of this.particular.querySelectorAll('input')) field.value = field.name === 'k' ? group.k ?? '' : '';
      this.start.value = '';
      this.order.value = '';
      this.countNodes();
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

  // Shows what a link says; what it leaves out is as usual.
  show(said) {
    this.form.reset();
    const name = said.get('algorithm');
    this.algorithm.value = this.catalogue.algorithms.some((it) => it.name === name) ? name : 'naimi-trehel';
    this.choose(said);
    for (const field of [this.nodes, this.requests, this.crashes, this.start, this.order, this.mutant]) {
      if (said.has(field.name)) field.value = said.get(field.name);
    }
    this.isPredicting = said.get('predict') === 'yes';
    this.tellFlaw();
  }

  said() {
    const said = new Map();
    for (const field of this.form.elements) {
      const value = field.value.trim();
      if (field.name && value !== '' && !field.disabled) said.set(field.name, value);
    }
    if (this.isPredicting) said.set('predict', 'yes');
    return said;
  }
}
