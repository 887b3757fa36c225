// Times and numbers, as people read them.

// A number with thin spaces between thousands, as in 12 345.
export function count(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

// A rate, as in 0.4 or 1 234.
export function rate(value) {
  return value >= 10 || value === 0 ? count(value) : value.toFixed(1);
}

// How long something has lasted, as in 3 s, 4 min 05 s, 2 h 10 min, 3 d 4 h.
export function lasting(millis) {
  const seconds = Math.max(0, Math.floor(millis / 1000));
  const two = (value) => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor(seconds / 3600) % 24} h`;
}

// How long something takes, with three digits at the most, as in 120 µs, 3.5 ms, 12 s.
export function brief(millis) {
  if (millis === null || millis === undefined) return "–";
  const digits = (value) => (value >= 99.5 ? value.toFixed(0) : String(Number(value.toPrecision(2))));
  if (millis < 1) return `${digits(millis * 1000)} µs`;
  if (millis < 1000) return `${digits(millis)} ms`;
  if (millis < 120_000) return `${digits(millis / 1000)} s`;
  return lasting(millis);
}

// The time of day of a moment, in milliseconds since 1970.
export function clock(unixMillis) {
  const date = new Date(unixMillis);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
