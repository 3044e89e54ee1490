// Tabs, as in the ARIA Authoring Practices: arrow keys choose, Tab goes on to the panel.

import {el} from './dom.js';

let made = 0;

/** Returns tabs. all are {name, title, make}; make returns the panel's nodes when it is chosen. chose gets its name. */
export function tabs(all, chosen, label, chose) {
  const id = `tabs-${made += 1}`;
  const panel = el('div', {role: 'tabpanel', id: `${id}-panel`, class: 'panel'});
  const buttons = all.map((tab) => el('button', {type: 'button', role: 'tab', id: `${id}-${tab.name}`,
    'aria-controls': panel.id, onclick: () => choose(tab)}, tab.title));
  const list = el('div', {role: 'tablist', 'aria-label': label}, buttons);
  const choose = (tab) => {
    all.forEach((other, i) => {
      buttons[i].setAttribute('aria-selected', String(other === tab));
      buttons[i].tabIndex = other === tab ? 0 : -1;
    });
    panel.setAttribute('aria-labelledby', `${id}-${tab.name}`);
    chose(tab.name);
    panel.replaceChildren(...[tab.make()].flat());
  };
  list.addEventListener('keydown', (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + all.length) % all.length;
    buttons[next].focus();
    choose(all[next]);
  });
  choose(all.find((tab) => tab.name === chosen) ?? all[0]);
  return el('div', {class: 'tabs'}, list, panel);
}
