// Numbers and counts as text.

/** A probability in per cent, as 93.1 %; a dash for one that is not known. */
export function percent(p) {
  if (p === null || p === undefined) return '–';
  const value = p * 100;
  return `${value === 0 || value === 100 ? value : value.toFixed(value < 10 ? 2 : 1)} %`;
}

/** A number with four digits, and a minus sign that screen readers read. */
export function number(v) {
  if (v === null || v === undefined) return '–';
  const size = Math.abs(v);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? v.toExponential(2) : String(Number(v.toPrecision(4)));
  return text.replaceAll('-', '−');
}

/** A number with its sign. */
export function signed(v) {
  return v > 0 ? `+${number(v)}` : number(v);
}

/** A count and its noun, as 1 task, 2 tasks. */
export function count(n, noun) {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
}

/** A time in milliseconds, as 14 ms or 2.1 s. */
export function time(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** A weight from 0 to 1, with four decimals so that those of a column are aligned. */
export function weight(v) {
  return v.toFixed(4);
}
