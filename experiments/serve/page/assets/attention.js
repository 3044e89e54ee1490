// The encoder's attention: a map of a layer and head, and the weights of one token for the others.

import {el, choice, keepingFocus} from './dom.js';
import {weight} from './format.js';
import {explainFailure} from './api.js';
import {heatMap} from './heatmap.js';
import {largest, numbersTable, tokenList} from './tokens.js';

// Weights of each layer and head that are asked for at once: a model of 12 layers of 12 heads has 75 MB of JSON then.
const askedAtOnce = 60_000;

// What was chosen last stays chosen. Layers and heads count from 0, as all of jenga does; head -1 is the mean of all.
const mapChoice = {layer: null, head: -1, token: 0, special: true};

/** Returns the panel of the attention, which is asked for when it is first seen, or by a button if it is large. */
export function attentionPanel(context) {
  const node = el('div', {});
  if (context.window.attention) {
    show(context, node);
    return node;
  }
  if (context.weights <= askedAtOnce) {
    load(context, node);
    return node;
  }
  const tokens = context.window.tokens.length;
  node.append(el('p', {class: 'hint'}, `The attention is large: a number for each two of the ${tokens} tokens`
    + ' of a window, in each layer and head. Loading it may take long.'),
  el('p', {}, el('button', {type: 'button', class: 'quiet', onclick: () => load(context, node)}, 'Load it')));
  return node;
}

/** Asks for the attention and shows it in a node. */
function load(context, node) {
  const note = el('p', {class: 'hint', role: 'status'}, 'Loading the attention…');
  node.replaceChildren(note);
  context.more({attention: true, gradients: false}).then(() => {
    if (context.window.attention) show(context, node);
    else note.textContent = 'This encoder has no attention.';
  }).catch((failure) => {
    if (failure.name !== 'AbortError') note.textContent = explainFailure(failure);
  });
}

/** The mean of maps, [T][T]. */
function mean(maps) {
  return maps[0].map((row, i) => row.map((_, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length));
}

/** Whether the weights of a token count for the scale. */
function counts(token) {
  return mapChoice.special || token.in !== 'special';
}

function show(context, node) {
  const {window: {tokens, attention}, texts, direction} = context;
  mapChoice.layer = Math.min(mapChoice.layer ?? attention.length - 1, attention.length - 1);
  const heads = attention[mapChoice.layer];
  if (mapChoice.head >= heads.length) mapChoice.head = -1;
  if (mapChoice.token >= tokens.length) mapChoice.token = 0;
  const map = mapChoice.head < 0 ? mean(heads) : heads[mapChoice.head];
  const counted = (list) => list.filter((_, i) => counts(tokens[i]));
  const most = largest(counted(map).flatMap(counted));
  const again = (change) => {
    Object.assign(mapChoice, change);
    keepingFocus(node, () => show(context, node));
  };
  const headName = mapChoice.head < 0 ? 'mean of the heads' : `head ${mapChoice.head}`;
  const layerName = `layer ${mapChoice.layer}, ${headName}`;
  const detail = el('div', {class: 'detail'});
  const picture = heatMap(map, tokens, most, layerName, (i) => {
    pick(i);
    detail.querySelector('[aria-pressed="true"]').focus();
  });
  const pick = (i) => {
    const focused = detail.contains(document.activeElement);
    mapChoice.token = i;
    picture.choose(i);
    const weights = map[i];
    const full = largest(counted(weights));
    detail.replaceChildren(
      el('p', {class: 'hint'}, 'From ', el('strong', {}, el('bdi', {}, tokens[i].token)),
        ` to each token; full bar: ${weight(full)}.`),
      el('div', {dir: direction}, tokenList(tokens, {values: weights, most: full, describe: weight, texts, pick,
        picked: i, label: `Tokens, and their weights for token ${i}, ${tokens[i].token}`})),
      numbersTable(tokens, [['Weight', weights, weight]], texts,
        `Attention of token ${i}, ${tokens[i].token}, ${layerName}`));
    if (focused) detail.querySelector('[aria-pressed="true"]').focus();
  };
  const size = `${Math.min(22, Math.max(12, 1.25 * tokens.length))}rem`;
  node.replaceChildren(
    el('div', {class: 'choices'},
      choice('Layer', attention.map((_, i) => [i, String(i)]), mapChoice.layer,
        (layer) => again({layer: Number(layer)})),
      choice('Head', [[-1, 'mean'], ...heads.map((_, i) => [i, String(i)])], mapChoice.head,
        (head) => again({head: Number(head)})),
      el('label', {class: 'tick'}, el('input', {type: 'checkbox', checked: !mapChoice.special,
        'data-control': 'special', onchange: (event) => again({special: !event.target.checked})}),
      'Scale without special tokens')),
    el('div', {class: 'split', '--map': size}, picture.node, detail));
  pick(mapChoice.token);
}
