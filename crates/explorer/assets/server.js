// Questions to the server, and links.

async function answerOf(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

// Puts a question; whoever aborts the signal takes it back.
export async function ask(path, question, signal) {
  const body = JSON.stringify(question);
  const headers = { 'Content-Type': 'application/json' };
  let response;
  try {
    response = await fetch(path, { method: 'POST', headers, body, signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Error("the lab does not answer; is 'catraca lab serve' still running?");
  }
  return answerOf(response);
}

export async function catalogue() {
  return answerOf(await fetch('/catalogue'));
}

// What a link says: values by key, and the steps.
export function readLink(hash) {
  const said = new Map(new URLSearchParams(hash.replace(/^#/, '')));
  const steps = (said.get('steps') ?? '').split('.').filter((step) => step !== '');
  said.delete('steps');
  return { said, steps };
}

const escaped = (text) => encodeURIComponent(text).replace(/%(2C|3A|7C)/g, decodeURIComponent);

export function writeLink(said, steps) {
  const parts = [...said].filter(([, value]) => value !== '').map(([key, value]) => `${key}=${escaped(value)}`);
  if (steps.length > 0) parts.push(`steps=${steps.join('.')}`);
  return parts.join('&');
}

// A step in words, for one that is not possible yet.
export function stepWords(step) {
  const [whole, letter, one, two] = step.match(/^([a-z])(\d+)(?:-(\d+))?/) ?? [];
  if (!whole) return step;
  const words = {
    a: `node ${one} asks`,
    l: `node ${one} leaves`,
    m: `a message from ${one} arrives at ${two}`,
    t: `timer ${two} of node ${one} runs out`,
    c: `node ${one} crashes`,
    s: `node ${one} is told that ${two} has crashed`,
  };
  return words[letter] + (step.includes('~') ? ', and crashes meanwhile' : '');
}
