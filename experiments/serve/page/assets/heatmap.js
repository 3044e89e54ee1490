// A map of weights from tokens (rows) to tokens (columns). Those who do not see it pick tokens one by one instead.

import {el} from './dom.js';
import {weight} from './format.js';

/** Returns {node, choose}: the map, with the row that choose names outlined. picked is called with a row's index. */
export function heatMap(map, tokens, most, title, picked) {
  const n = tokens.length;
  const name = `Attention, ${title}: a row for each token, a column for each token that it looks at.`;
  const canvas = el('canvas', {width: n, height: n, role: 'img',
    'aria-label': `${name} Choose a token to read its row.`});
  const row = el('div', {class: 'row', 'aria-hidden': 'true', '--rows': String(n)});
  const readout = el('p', {class: 'hint readout', 'aria-hidden': 'true'}, 'Rows look at columns.');
  const cell = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (position, size) => Math.min(n - 1, Math.max(0, Math.floor(position / size * n)));
    return [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
  };
  canvas.addEventListener('pointermove', (event) => {
    const [i, j] = cell(event);
    const [from, to] = [i, j].map((k) => el('bdi', {}, tokens[k].token));
    readout.replaceChildren(from, ' → ', to, ` ${weight(map[i][j])}`);
  });
  canvas.addEventListener('click', (event) => picked(cell(event)[0]));
  const node = el('div', {class: 'map'}, el('div', {class: 'canvas', '--rows': String(n)}, canvas, row), readout);
  const draw = () => canvas.isConnected && paint(canvas, map, most);
  requestAnimationFrame(draw); // its colours are known once it is in the page
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const redraw = () => (canvas.isConnected ? draw() : dark.removeEventListener('change', redraw));
  dark.addEventListener('change', redraw);
  return {node, choose: (i) => row.style.setProperty('--row', String(i))};
}

/** Paints a pixel for each weight, from the colour of nothing to that of the largest. */
function paint(canvas, map, most) {
  const context = canvas.getContext('2d');
  const style = getComputedStyle(canvas);
  const [none, full] = [style.backgroundColor, style.color].map(channels);
  const image = context.createImageData(map.length, map.length);
  map.flat().forEach((value, i) => {
    const part = Math.min(1, value / most);
    for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = Math.round(none[c] + part * (full[c] - none[c]));
    image.data[4 * i + 3] = 255;
  });
  context.putImageData(image, 0, 0);
}

/** The red, green and blue of a colour as a style has it, from 0 to 255. */
function channels(colour) {
  return colour.match(/[\d.]+/g).slice(0, 3).map(Number);
}
