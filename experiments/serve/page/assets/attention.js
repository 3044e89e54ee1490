// The encoder's attention: a map of a layer and head, and the weights of one token for the others.

import {el, choice} from './dom.js';
import {weight} from './format.js';
import {explainFailure} from './api.js';
import {heatMap} from './heatmap.js';
import {largest, numbersTable, tokenList} from './tokens.js';

// What was chosen last stays chosen. head -1 is the mean of all.
const mapChoice = {layer: null, head: -1, token: 0, special: true};

/** Returns the panel of the attention, which is asked for when it is first seen. */
export function attentionPanel(context) {
  const node = el('div', {});
  if (context.window.attention) {
    show(context, node);
    return node;
  }
  const note = el('p', {class: 'hint', role: 'status'}, 'Loading the attention…');
  node.append(note);
  context.more({attention: true, gradients: false}).then((window) => {
    if (!window.attention) {
      note.textContent = 'This encoder has no attention.';
      return;
    }
    context.window.attention = window.attention;
    show(context, node);
  }).catch((failure) => {
    if (failure.name !== 'AbortError') note.textContent = explainFailure(failure);
  });
  return node;
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
    show(context, node);
  };
  const headName = mapChoice.head < 0 ? 'mean of the heads' : `head ${mapChoice.head + 1}`;
  const layerName = `layer ${mapChoice.layer + 1}, ${headName}`;
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
      el('div', {dir: direction}, tokenList(tokens, {values: weights, most: full, describe: weight, pick, picked: i,
        label: `Tokens, and their weights for token ${i}, ${tokens[i].token}`})),
      numbersTable(tokens, [['Weight', weights, weight]], texts,
        `Attention of token ${i}, ${tokens[i].token}, ${layerName}`));
    if (focused) detail.querySelector('[aria-pressed="true"]').focus();
  };
  const size = `${Math.min(22, Math.max(12, 1.25 * tokens.length))}rem`;
  node.replaceChildren(
    el('div', {class: 'choices'},
      choice('Layer', attention.map((_, i) => [i, String(i + 1)]), mapChoice.layer,
        (layer) => again({layer: Number(layer)})),
      choice('Head', [[-1, 'mean'], ...heads.map((_, i) => [i, String(i + 1)])], mapChoice.head,
        (head) => again({head: Number(head)})),
      el('label', {class: 'tick'}, el('input', {type: 'checkbox', checked: !mapChoice.special,
        onchange: (event) => again({special: !event.target.checked})}), 'Scale without special tokens')),
    el('div', {class: 'split', '--map': size}, picture.node, detail));
  pick(mapChoice.token);
}
