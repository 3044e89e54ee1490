// Elements are made here, from names, attributes and strings. A string is always text, never markup.

const svgNamespace = 'http://www.w3.org/2000/svg';

/**
 * Returns an HTML element. Attributes with null or false are left out; those that begin with "on" are listeners, and
 * those that begin with "--" custom properties of its style. Children are nodes, strings, or lists of them.
 */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** Returns an SVG element, as el does. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(svgNamespace, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name.startsWith('--')) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return element;
}

/** Lets the keyboard reach and scroll an element that is too long for its box, once it is in the page. */
export function scrolling(element) {
  requestAnimationFrame(() => {
    if (element.scrollHeight > element.clientHeight || element.scrollWidth > element.clientWidth) element.tabIndex = 0;
  });
  return element;
}

/** Calls rebuild, which replaces what is in a node, and keeps the focus on the control of the same name. */
export function keepingFocus(node, rebuild) {
  const {control} = node.contains(document.activeElement) ? document.activeElement.dataset : {};
  rebuild();
  if (control) node.querySelector(`[data-control="${control}"]`)?.focus();
}

/** Returns a <select> with its label. Options are [value, text]; changed is called with the value that is chosen. */
export function choice(label, options, chosen, changed) {
  const select = el('select', {'data-control': label, onchange: () => changed(select.value)},
    options.map(([value, text]) => el('option', {value, selected: String(value) === String(chosen)}, text)));
  return el('label', {class: 'choice'}, el('span', {}, label), select);
}

/**
 * Returns a button that shows and hides what make returns, which is made when it is first shown. toggled is called with
 * whether it is shown.
 */
export function disclosure(show, hide, isOpen, toggled, make) {
  const body = el('div', {});
  const button = el('button', {type: 'button', class: 'quiet', 'data-control': show, onclick: () => {
    set(body.hidden);
    toggled(!body.hidden);
  }});
  const set = (open) => {
    if (open && !body.firstChild) body.append(make());
    body.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
    button.textContent = open ? hide : show;
  };
  set(isOpen);
  return el('div', {class: 'disclosure'}, button, body);
}

/** Returns a table with a caption for screen readers, a row of headings, and rows of cells, strings or nodes. */
export function table(caption, headings, rows) {
  const cell = (value, i) => el(i === 0 ? 'th' : 'td', {scope: i === 0 ? 'row' : null}, value);
  return el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption}, el('table', {},
    el('caption', {class: 'unseen'}, caption),
    el('thead', {}, el('tr', {}, headings.map((heading) => el('th', {scope: 'col'}, heading)))),
    el('tbody', {}, rows.map((row) => el('tr', {}, row.map(cell))))));
}
