// Buttons, keys and what they do.

const HELP = [
  ['space', 'play or pause'],
  ['→ ←', 'one step forwards or back'],
  ['Home End', 'to the beginning, to the end'],
  ['n', 'to the next entry'],
  ['v', 'to the violation'],
  ['f', 'follow the request of this step, or stop following'],
  ['?', 'this help'],
];

export function button(label, key, act) {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = label;
  if (key) element.setAttribute('aria-keyshortcuts', key);
  element.addEventListener('click', act);
  return element;
}

// The title, with what has to be known first below it.
export function headed(title, { notice }) {
  if (!notice) return title;
  const words = document.createElement('p');
  words.className = 'notice';
  words.setAttribute('role', 'note');
  words.textContent = notice;
  const head = document.createElement('header');
  head.append(title, words);
  return head;
}

// A box that tells keys and what they do.
export function helpDialog(help) {
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-label', 'Keys');
  const list = document.createElement('dl');
  for (const [key, what] of help) {
    const term = document.createElement('dt');
    const text = document.createElement('dd');
    term.textContent = key;
    text.textContent = what;
    list.append(term, text);
  }
  dialog.append(list, button('Close', 'Escape', () => dialog.close()));
  return dialog;
}

export class Controls {
  constructor(place, run, actions) {
    this.run = run;
    this.actions = actions;
    this.dialog = helpDialog(HELP);
    this.playing = button('Play', 'Space', actions.play);
    this.following = button('Follow request', 'f', actions.follow);
    this.slider = document.createElement('input');
    this.slider.type = 'range';
    this.slider.min = 0;
    this.slider.max = run.events.length;
    this.slider.setAttribute('aria-label', 'step');
    this.slider.addEventListener('input', () => actions.go(Number(this.slider.value) - 1));
    place.append(
      button('◀ Back', 'ArrowLeft', actions.back),
      this.playing,
      button('Step ▶', 'ArrowRight', actions.forward),
      button('Next entry', 'n', actions.nextEntry),
    );
    if (run.data.violation) place.append(button('Violation', 'v', actions.violation));
    place.append(this.following, button('?', '?', () => this.dialog.showModal()), this.slider);
    document.body.append(this.dialog);
    document.addEventListener('keydown', (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || this.dialog.open) return;
    const { actions } = this;
    const keys = {
      ' ': actions.play,
      ArrowRight: actions.forward,
      ArrowLeft: actions.back,
      Home: () => actions.go(-1),
      End: () => actions.go(this.run.events.length - 1),
      n: actions.nextEntry,
      v: actions.violation,
      f: actions.follow,
      '?': () => this.dialog.showModal(),
    };
    // A button that has the focus is pressed by space, as everywhere.
    const isButton = event.target instanceof HTMLButtonElement || event.target instanceof HTMLInputElement;
    if (event.key === ' ' && isButton) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  show({ index, isPlaying, related }) {
    this.slider.value = index + 1;
    this.playing.textContent = isPlaying ? 'Pause' : 'Play';
    this.following.setAttribute('aria-pressed', String(Boolean(related)));
  }
}

// A box for each kind of message; unticked, its messages are not drawn.
export function drawKinds(place, run, toggle) {
  const title = document.createElement('legend');
  title.textContent = 'Messages';
  const boxes = run.kinds.map((kind) => {
    const label = document.createElement('label');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = !run.hidden?.has(kind);
    box.addEventListener('change', () => toggle(kind, !box.checked));
    const mark = document.createElement('span');
    mark.className = `mark kind-${run.kindNumber(kind)}`;
    label.append(box, mark, kind);
    return label;
  });
  place.replaceChildren(title, ...boxes);
}
