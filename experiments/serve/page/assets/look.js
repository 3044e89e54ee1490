// Where the model looked: an explanation of the last text, asked for when the section is open.

import {el, choice, keepingFocus} from './dom.js';
import {explainFailure} from './api.js';
import {tabs} from './tabs.js';
import {directionOf} from './tokens.js';
import {tokensPanel} from './attribution.js';
import {attentionPanel} from './attention.js';
import {fusionPanel} from './fusion.js';
import {lensPanel} from './lens.js';

/**
 * Shows explanations in a node. shown is called with whether there is anything to see; order returns the names of the
 * tasks in their order; explain asks the server for an explanation.
 */
export function lookView(node, {shown, order, explain}) {
  let open = true;
  let waiting = false; // for an explanation of the last text, once it is opened
  let controller = null;

  async function load() {
    waiting = false;
    controller?.abort();
    const own = controller = new AbortController();
    node.setAttribute('aria-busy', 'true');
    try {
      const explanation = await explain({attention: false, gradients: true}, own.signal);
      const more = (options) => explain(options, own.signal);
      node.replaceChildren(explanationView(explanation, {order: order(), more}));
      shown(true);
    } catch (failure) {
      if (own !== controller) return;
      node.replaceChildren(el('p', {class: 'notice'}, explainFailure(failure)));
      shown(failure.status !== 404); // a server without explanations
    } finally {
      if (own === controller) node.removeAttribute('aria-busy');
    }
  }

  return {
    ask() {
      waiting = true;
      if (open) load();
      else shown(true);
    },
    clear() {
      controller?.abort();
      controller = null;
      node.replaceChildren();
    },
    open(now) {
      open = now;
      if (open && waiting) load();
    },
  };
}

// What was chosen last stays chosen for the next text.
const place = {tab: 'tokens', reading: 0, window: 0};

/** Returns a view of an explanation. more asks for attention or integrated gradients; null without a server. */
export function explanationView(explanation, {order = [], more = null} = {}) {
  const readings = explanation.readings.map((reading) => ({...reading, tasks: inOrder(reading.tasks, order)}));
  const squares = explanation.readings.flatMap((reading) => reading.windows.map((window) => window.tokens.length ** 2));
  const weights = squares.reduce((sum, square) => sum + square, 0); // of the attention, in each layer and head
  const node = el('div', {class: 'look'});
  const show = () => {
    place.reading = Math.min(place.reading, readings.length - 1);
    const {windows, tasks} = readings[place.reading];
    place.window = Math.min(place.window, windows.length - 1);
    const context = {texts: explanation.prediction, tasks, window: windows[place.window],
      figures: explanation.fusion_figures, weights, notes, more: more && ask};
    context.direction = directionOf(context.window.tokens, context.texts);
    const choose = (name) => { place.tab = name; };
    keepingFocus(node, () => node.replaceChildren(controls(),
      tabs(tabsOf(context), place.tab, 'What to see', choose),
      ...notes.map((note) => el('p', {class: 'hint'}, note))));
  };
  const notes = [...explanation.notes ?? []];
  const add = (fresh, options) => {
    fresh.readings.forEach((reading, r) => reading.windows.forEach(({attention, answers}, w) => {
      Object.assign(readings[r].windows[w], options.attention ? {attention} : {}, options.gradients ? {answers} : {});
    }));
    notes.push(...(fresh.notes ?? []).filter((note) => !notes.includes(note)));
  };
  const asked = new Map(); // what more was asked for, as JSON, and its promise: a request is sent once
  const ask = (options) => {
    const key = JSON.stringify(options);
    if (!asked.has(key)) {
      const answer = more(options).then((fresh) => add(fresh, options));
      asked.set(key, answer);
      answer.catch(() => asked.delete(key)); // it may be sent again
    }
    return asked.get(key);
  };
  const controls = () => el('div', {class: 'choices'},
    readings.length > 1 ? choice('Read for', readings.map((r, i) => [i, r.tasks.join(', ')]), place.reading, (i) => {
      place.reading = Number(i);
      place.window = 0;
      show();
    }) : null,
    readings[place.reading].windows.length > 1
      ? choice('Window', windowNames(readings[place.reading].windows), place.window, (i) => {
        place.window = Number(i);
        show();
      }) : null);
  show();
  return node;
}

function inOrder(tasks, order) {
  return [...tasks].sort((a, b) => order.indexOf(a) - order.indexOf(b));
}

function windowNames(windows) {
  return windows.map((window, i) => {
    const inPair = window.tokens.every((token) => token.in !== 'text');
    return [i, `${i + 1} of ${windows.length}${inPair ? ' (second text)' : ''}`];
  });
}

/** The tabs that a window has something for. */
function tabsOf(context) {
  const {window, more} = context;
  const all = [{name: 'tokens', title: 'Tokens', make: () => tokensPanel(context)}];
  if (window.attention || more) all.push({name: 'attention', title: 'Attention', make: () => attentionPanel(context)});
  if (window.fusion || context.figures) all.push({name: 'fusion', title: 'Fusion', make: () => fusionPanel(context)});
  if (window.lenses) all.push({name: 'lens', title: 'Lens', make: () => lensPanel(context)});
  return all;
}

