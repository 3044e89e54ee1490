// Texts with marked spans, each with its label in words and a colour.

import {el, scrolling} from './dom.js';
import {percent} from './format.js';

const hues = 8; // in answers.css

/** Gives each label one of the colours, in the order in which labels are first asked for. */
export function palette() {
  const known = new Map();
  return (label) => {
    if (!known.has(label)) known.set(label, known.size % hues);
    return known.get(label);
  };
}

/**
 * Returns a text in which spans are marked. Starts and ends are indices of the string, ends exclusive; spans that
 * overlap an earlier one are left out.
 */
export function markedText(text, spans, hueOf) {
  const parts = [];
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start)) {
    if (!(span.start >= at && span.end > span.start && span.end <= text.length)) continue;
    parts.push(text.slice(at, span.start), mark(text.slice(span.start, span.end), span, hueOf));
    at = span.end;
  }
  parts.push(text.slice(at));
  return scrolling(el('p', {class: 'text', dir: 'auto'}, parts));
}

function mark(text, span, hueOf) {
  const title = span.probability === undefined ? null : `${span.label}, ${percent(span.probability)}`;
  // A label stays beside what it names: a mark has its own direction within a line of the other one, and a short mark
  // is not broken over lines.
  const short = text.length + span.label.length <= 24;
  return el('mark', {'data-hue': hueOf(span.label), title, dir: 'auto', class: short ? 'short' : null},
    el('span', {class: 'marked'}, text), el('bdi', {class: 'name'}, span.label));
}

/** Returns a text with a tag under each word. Words are pairs of start and end; a word without a tag has null. */
export function taggedText(text, words, tags, hueOf) {
  const parts = [];
  let at = 0;
  words.forEach(([start, end], i) => {
    if (start < at || end > text.length) return;
    parts.push(text.slice(at, start));
    const word = text.slice(start, end);
    const plain = tags[i] === null || tags[i] === 'O';
    parts.push(plain ? word : el('ruby', {'data-hue': hueOf(tags[i])}, word, el('rt', {}, el('bdi', {}, tags[i]))));
    at = end;
  });
  parts.push(text.slice(at));
  return scrolling(el('p', {class: 'text tagged', dir: 'auto'}, parts));
}

/** Returns the labels of marks with their colours and how many there are. */
export function legend(labels, hueOf) {
  const counts = new Map();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  const swatch = (label) => el('span', {class: 'swatch', 'data-hue': hueOf(label), 'aria-hidden': 'true'});
  return el('ul', {class: 'legend', 'aria-label': 'Labels'},
    [...counts].map(([label, n]) => el('li', {}, swatch(label), el('bdi', {}, label), ` ${n}`)));
}
