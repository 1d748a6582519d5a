// Two rooms side by side: the one that the address names, and the one after it. Lines of one lead to those that they became.
const $ = (name, parent = document) => parent.querySelector(name);
const make = (name, attributes = {}, text = '') => Object.assign(document.createElement(name), { textContent: text }, attributes);
const escape = s => s.replace(/[&<>]/g, x => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[x]);

async function unpack() {
  const data = $('#data'), bytes = Uint8Array.from(atob(data.textContent), x => x.charCodeAt(0));
  let body = new Blob([bytes]).stream();
  if (data.dataset.form === 'deflate') body = body.pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(body).text());
}

// Comments, strings, attributes, values, symbols, ops, types and numbers, of the IR, of LLVM's IR and of assembly.
const TOKENS = /(\/\/.*$|^\s*;.*$|\s;.*$)|("(?:[^"\\]|\\.)*")|(#[\w.]+)|(%[\w$.#-]+)|(@[\w$.]+)|((?:^|(?<=[\s=]))(?:[a-z_]\w*\.)+\w+)|(\b(?:tensor|memref|vector|index|bf16|f16|f32|f64|i1|i8|i16|i32|i64|ptr|float|double|half|bfloat)\b|![\w.]+)|(\b-?\d[\w.+]*\b)|[&<>]/g;
const mark = line => line.replace(TOKENS, (x, comment, string, attribute, value, symbol, op, type, number) =>
  comment ? `<i>${escape(x)}</i>` : string ? `<em>${escape(x)}</em>` : attribute ? `<em>${x}</em>` : value ? `<a>${x}</a>` :
  symbol ? `<em>${x}</em>` : op ? `<b>${x}</b>` : type ? `<u>${x}</u>` : number ? `<s>${x}</s>` : escape(x));

const CONSTANT = /^\s*%[\w#$.-]+ = (?:arith\.constant|llvm\.mlir\.(?:constant|zero|undef|poison)|ub\.poison)\b/;
const PART = 200;

class Pane {
  constructor(main) {
    this.section = main.appendChild(make('section'));
    this.title = this.section.appendChild(make('h2'));
    this.code = this.section.appendChild(make('div', { className: 'code', tabIndex: 0 }));
    this.code.addEventListener('click', event => this.click(event));
  }

  show(room, areFolded) {
    this.room = room;
    this.section.classList.toggle('hidden', !room);
    this.code.replaceChildren();
    this.lines = [];
    if (!room) return;
    this.title.innerHTML = `${room.number || ''} ${escape(room.name)} <small>${escape(room.sentence)}; ${room.lines.length} lines</small>`;
    const parts = [];
    for (let first = 0; first < room.lines.length; first += PART) {
      const html = room.lines.slice(first, first + PART).map((line, i) => `<div class="l" data-n="${first + i + 1}">${mark(line)}</div>`);
      const part = make('div', { className: 'part', innerHTML: html.join('') });
      part.style.containIntrinsicSize = `auto ${18 * html.length}px`;
      parts.push(part);
    }
    this.code.append(...parts);
    this.lines = [...this.code.querySelectorAll('.l')];
    this.fold(areFolded);
  }

  // Three constants and more, one after the other.
  fold(areFolded) {
    for (const line of this.code.querySelectorAll('.fold')) line.remove();
    for (const line of this.lines) line.classList.remove('hidden');
    if (!areFolded) return;
    const { lines } = this.room;
    for (let first = 0; first < lines.length; ++first) {
      let end = first;
      while (end < lines.length && CONSTANT.test(lines[end])) ++end;
      if (end - first >= 3) {
        const folded = this.lines.slice(first, end), line = make('div', { className: 'l fold' }, `${' '.repeat(lines[first].search(/\S/))}… ${end - first} constants`);
        for (const x of folded) x.classList.add('hidden');
        folded[0].before(line);
        line.addEventListener('click', () => { line.remove(); for (const x of folded) x.classList.remove('hidden'); });
      }
      first = Math.max(first, end);
    }
  }

  reveal(number, block = 'center') {
    const line = this.lines[number - 1];
    if (!line) return;
    if (line.classList.contains('hidden')) {
      let before = line;
      while (before && !before.classList.contains('fold')) before = before.previousElementSibling;
      before?.click();
    }
    line.scrollIntoView({ block, inline: 'nearest' });
  }

  set(name, numbers) {
    for (const line of this.code.querySelectorAll('.' + name)) line.classList.remove(name);
    for (const number of numbers) this.lines[number - 1]?.classList.add(name);
  }

  click(event) {
    if (event.target.matches('a')) {
      const name = event.target.textContent, isOn = event.target.classList.contains('same');
      for (const x of this.code.querySelectorAll('a')) x.classList.toggle('same', !isOn && x.textContent === name);
    }
    const line = event.target.closest('.l');
    if (line?.dataset.n) this.choose?.(+line.dataset.n);
  }
}

// Tiles of a mask, those of a line with the same status as one.
function drawMask({ rows, keys, tile: [height, width], lines, density }) {
  const names = ['empty', 'partial', 'full'], counts = [0, 0, 0], parts = [];
  lines.forEach((line, i) => {
    for (const run of line.match(/(.)\1*/g)) counts[run[0]] += run.length;
    const y = i * height, h = Math.min(height, rows - y);
    for (const { 0: run, index } of line.matchAll(/(.)\1*/g)) {
      const x = index * width, w = Math.min(run.length * width, keys - x);
      parts.push(`<rect class="t${run[0]}" x="${x}" y="${y}" width="${w}" height="${h}"><title>rows ${y} to ${y + h - 1}, keys ${x} to ${x + w - 1}: ${names[run[0]]}</title></rect>`);
    }
  });
  const edges = [...lines.keys()].slice(1).map(i => `M0 ${i * height}H${keys}`).concat([...lines[0]].slice(1).map((_, i) => `M${(i + 1) * width} 0V${rows}`));
  const scale = 210 / Math.max(rows, keys), size = x => Math.max(24, Math.round(x * scale));
  const told = `${rows} x ${keys}, tiles of ${height} x ${width}`;
  const figure = make('figure', { className: 'mask' });
  figure.innerHTML = `<svg viewBox="0 0 ${keys} ${rows}" width="${size(keys)}" height="${size(rows)}" preserveAspectRatio="none" role="img" aria-label="mask: ${told}">
    ${parts.join('')}<path class="edges" d="${edges.join('')}"/></svg><figcaption>mask, ${told}:
    ${[2, 1, 0].map(i => `<span class="t${i}"></span>${counts[i]} ${names[i]}`).join(', ')}; ${(100 * density).toFixed(1)}% of the pairs</figcaption>`;
  return figure;
}

// Mask, timeline and prediction of a call, open where there is room for the rooms too.
function showPictures({ shape, mask, timeline, predicted, notes }) {
  const details = make('details', { id: 'pictures', open: innerWidth > 800 && innerHeight > 700 });
  const told = [mask && `mask keeps ${(100 * mask.density).toFixed(1)}%`, ...predicted.slice(0, 1).map(x => x.join(' '))].filter(x => x);
  details.append(make('summary', {}, `${[shape, ...told].join(' · ') || 'pictures'}`));
  const row = details.appendChild(make('div', { className: 'pictures' }));
  if (mask) row.append(drawMask(mask));
  if (timeline) {
    const figure = row.appendChild(make('figure', { className: 'timeline' }));
    figure.innerHTML = `<div>${timeline}</div><figcaption>a block, simulated: ${predicted.map(x => escape(x.join(' '))).join('; ')}</figcaption>`;
  }
  for (const note of notes) row.append(make('p', { className: 'note' }, note));
  return details;
}

function start(page) {
  const rooms = page.rooms, header = $('header'), main = document.body.appendChild(make('main'));
  for (const room of rooms) {
    room.lines = room.text.replace(/\n$/, '').split('\n');
    room.before = new Map(room.links.map(([line, ...of]) => [line, of]));
  }
  rooms.forEach((room, i) => {
    room.after = new Map();
    for (const [line, of] of rooms[i + 1]?.before ?? [])
      for (const x of of) room.after.set(x, [...room.after.get(x) ?? [], line]);
  });
  const left = new Pane(main), right = new Pane(main);
  const tools = header.appendChild(make('span', { className: 'tools' }));
  const search = tools.appendChild(make('input', { type: 'search', placeholder: 'search (/)', ariaLabel: 'search both rooms' }));
  const count = tools.appendChild(make('span', { id: 'count' }));
  const folding = tools.appendChild(make('button', { id: 'fold' }, 'show constants'));
  const nav = header.appendChild(make('nav'));
  for (const room of rooms) nav.appendChild(make('a', { href: '#' + room.name }, `${room.number || ''} ${room.name}`.trim()));
  if (page.stopped) header.appendChild(make('p', { className: 'stopped' }, page.stopped));
  if (page.decisions) {
    const details = header.appendChild(make('details', { id: 'decisions' }));
    details.append(make('summary', {}, page.decisions.split('\n').slice(0, 2).join(' · ')), make('pre', {}, page.decisions));
  }
  if (page.pictures) header.append(showPictures(page.pictures));

  let areFolded = true, shown = -1, found = [], at = -1;
  const symbol = rooms.map(x => /func\.func @([\w$.]+)/.exec(x.text)?.[1]).find(x => x);
  // The kernel that most calls take has the name of the function.
  const findKernel = room => room.lines.findIndex(x => /func|define|entry|^\w+:/.test(x) && new RegExp(`(@|\\b)${symbol}(\\(|:|$| )`).test(x)) + 1;

  function show() {
    const index = Math.max(0, rooms.findIndex(x => '#' + x.name === location.hash)), first = Math.min(index, Math.max(0, rooms.length - 2));
    if (first !== shown) {
      shown = first;
      left.show(rooms[first], areFolded);
      right.show(rooms[first + 1], areFolded);
      connect();
      for (const pane of [left, right]) if (pane.room) pane.reveal(findKernel(pane.room) || 1, 'start');
      if (search.value) look();
    }
    [...nav.children].forEach((x, i) => x.classList.toggle('shown', i === first || i === first + 1));
  }

  function connect() {
    for (const number of left.room.after.keys()) left.lines[number - 1]?.classList.add('from');
    for (const number of right.room?.before.keys() ?? []) right.lines[number - 1]?.classList.add('from');
    const lead = (from, to, map) => number => {
      const others = map.get(number) ?? [];
      from.set('chosen', [number]), from.set('linked', []);
      to.set('linked', others), to.set('chosen', []);
      if (others.length) to.reveal(others[0]);
    };
    left.choose = lead(left, right, left.room.after);
    right.choose = right.room && lead(right, left, right.room.before);
  }

  function look() {
    const text = search.value.toLowerCase();
    found = [], at = -1;
    for (const pane of [left, right]) {
      const numbers = !text || !pane.room ? [] : pane.room.lines.flatMap((x, i) => x.toLowerCase().includes(text) ? [i + 1] : []);
      pane.set('found', numbers);
      found.push(...numbers.map(x => [pane, x]));
    }
    count.textContent = text ? `${found.length} lines` : '';
    if (found.length) next(1);
  }

  function next(step) {
    if (!found.length) return;
    at = (at + step + found.length) % found.length;
    found[at][0].reveal(found[at][1]);
    count.textContent = `${at + 1} of ${found.length}`;
  }

  search.addEventListener('input', look);
  search.addEventListener('keydown', event => { if (event.key === 'Enter') next(event.shiftKey ? -1 : 1); });
  folding.addEventListener('click', () => {
    areFolded = !areFolded;
    folding.textContent = areFolded ? 'show constants' : 'fold constants';
    for (const pane of [left, right]) if (pane.room) pane.fold(areFolded);
  });
  addEventListener('hashchange', show);
  addEventListener('keydown', event => {
    if (event.target === search) return;
    if (event.key === '/') { event.preventDefault(); search.focus(); }
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const room = step && rooms[shown + step];
    if (room) location.hash = room.name;
  });
  show();
  document.body.classList.add('ready');
}

unpack().then(start);
