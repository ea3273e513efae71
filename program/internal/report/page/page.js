'use strict';
// The page of a report. Its data are JSON Lines in the element "data". The script
// reads them when the document is loaded, so that a truncated report opens too.
// Strings from suites and servers become text, never markup.
(() => {
const byID = id => document.getElementById(id);
const rowHeight = 28, spare = 12, mostMessages = 300, mostOnPaper = 500, mostOfLabel = 80;
const statuses = ['failed', 'broken', 'flaky', 'passed', 'known-failing', 'skipped'];
const signs = {failed: '✘', broken: '‼', flaky: '≈', passed: '✔', 'known-failing': '○', skipped: '–'};
const red = s => s === 'failed' || s === 'broken' || s === 'flaky';

// make builds an element. Strings among kids become text.
const make = (tag, properties, ...kids) => {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (typeof value === 'function') e.addEventListener(name, value);
    else if (value !== undefined && value !== false) e.setAttribute(name, value);
  }
  e.append(...kids.filter(k => k !== null && k !== undefined && k !== ''));
  return e;
};

// ---- the data

const files = [], tests = [], columns = [], verdicts = [], earlier = [];
let run = {}, summary = null;

// number returns the index of a file and suite in files, and appends a new one.
const numbers = new Map();
const number = (path, suite) => {
  const key = path + '\n' + suite;
  if (!numbers.has(key)) numbers.set(key, files.push({path, suite, rows: [], red: 0, tests: 0}) - 1);
  return numbers.get(key);
};

// kinds are handlers by kind of line. A verdict refers to its test and column by number.
// A detail line belongs to the verdict before it and is parsed on demand.
const kinds = {
  run: x => { run = x; },
  earlier: x => { earlier.push(x); },
  test: x => {
    x.file = number(x.file, x.suite);
    x.rows = []; // by iteration
    tests.push(x);
  },
  column: x => { columns.push(x); },
  verdict: ([of, on, status, durationMS, history = '', reason = '', cause = '', iteration = 1]) => {
    const {file, test, line, column} = tests[of];
    verdicts.push({of, file, test, line, column, on, status, durationMS, history, reason, cause, iteration, row: null, detail: ''});
  },
  end: x => { summary = x; },
};
const read = text => {
  for (const line of text.split('\n')) {
    if (line.startsWith('{"detail":')) {
      verdicts.at(-1).detail = line;
      continue;
    }
    let x;
    try { x = JSON.parse(line); } catch { continue; } // an empty line, or a truncated last line
    for (const kind in x) kinds[kind](x[kind]);
  }
};
const details = v => {
  try { return JSON.parse(v.detail).detail; } catch { return {}; } // missing or truncated
};

// ---- earlier runs

// A history has a character for each earlier run, oldest first: the number of the
// status, or a minus if the run did not have the test.
const statusAt = (history, i) => history[i] === '-' ? undefined : statuses[history[i]];

// newlyRed: the test is red and was not red in the last run that had it.
const newlyRed = v => {
  if (!earlier.length || !red(v.status)) return false;
  const known = v.history.replace(/-+$/, '');
  return !known || !red(statusAt(known, known.length - 1));
};

// since returns the index of the earlier run since which the test has been red, or -1.
const since = v => {
  let first = -1;
  for (let i = v.history.length - 1; i >= 0; i--) {
    const s = statusAt(v.history, i);
    if (s === undefined) continue;
    if (!red(s)) break;
    first = i;
  }
  return first;
};

const fixed = v => earlier.length && v.status === 'passed' && red(statusAt(v.history, v.history.length - 1));

// iso returns a time of the day in UTC, as in other reports, and day the date without the year.
const iso = time => new Date(time).toISOString().slice(0, 16).replace('T', ' ') + ' UTC';
const day = time => new Date(time).toISOString().slice(5, 10);

// prefix returns the length of the common beginning of names, up to a separator. A short one remains in the names.
const prefix = (names, separator) => {
  if (names.length < 2) return 0;
  let n = 0;
  while (n < names[0].length && names.every(name => name[n] === names[0][n])) n++;
  while (n > 0 && !separator.includes(names[0][n - 1])) n--;
  return n < 12 ? 0 : n;
};
const without = (n, name) => n ? '…' + name.slice(n) : name;

// story describes the history of a test in words.
const story = v => {
  if (!earlier.length) return '';
  if (/^-*$/.test(v.history)) return 'New: absent from the last ' + earlier.length + ' runs.';
  if (newlyRed(v)) return 'New since the last run; before: ' + statusAt(v.history, v.history.replace(/-+$/, '').length - 1) + '.';
  if (fixed(v)) return 'Last run: ' + statusAt(v.history, v.history.length - 1) + '.';
  const first = since(v);
  if (!red(v.status) || first < 0) return '';
  const runs = [...v.history.slice(first)].filter(c => c !== '-').length;
  const before = /^-*$/.test(v.history.slice(0, first));
  return 'Failing since ' + iso(earlier[first].time) + (before ? ' or before' : '') + ': in this run and the ' + (runs > 1 ? runs + ' runs' : 'one') + ' before.';
};

// strip draws a history as bars; worse statuses are taller.
const heights = {failed: 12, broken: 12, flaky: 9, passed: 5, 'known-failing': 5, skipped: 2};
const strips = new Map();
const strip = history => {
  let s = strips.get(history);
  if (!s) {
    const width = earlier.length * 5, words = [];
    s = svg('svg', {class: 'strip', width, height: 13, viewBox: '0 0 ' + width + ' 13', role: 'img'});
    for (let i = 0; i < earlier.length; i++) {
      const status = statusAt(history, i);
      words.push(status || 'absent');
      if (status) s.append(svg('rect', {class: status + '-bar', x: i * 5, y: 12.5 - heights[status], width: 4, height: heights[status]}));
    }
    s.setAttribute('aria-label', 'earlier runs, oldest first: ' + words.join(', '));
    strips.set(history, s);
  }
  return s.cloneNode(true);
};

// chart draws a bar for each run; the last run is this one. parts returns the
// segments of a bar from the bottom: class and height.
const chart = (caption, runs, parts, label) => {
  const step = runs.length > 9 ? 32 : 38, high = 64, top = 14, width = runs.length * step + 4;
  const sums = runs.map(r => parts(r).reduce((sum, [, n]) => sum + n, 0)), most = Math.max(...sums, 1e-9);
  const s = svg('svg', {width, height: top + high + 18, viewBox: '0 0 ' + width + ' ' + (top + high + 18), role: 'img',
    'aria-label': caption + ': ' + runs.map((r, i) => r.label + ' ' + label(r, sums[i])).join(', ')});
  runs.forEach((r, i) => {
    const g = svg('g', {}), x = i * step + 4, middle = x + step / 2 - 2;
    let y = top + high;
    for (const [kind, n] of parts(r)) {
      if (!n) continue;
      const h = Math.max(1.5, n / most * high);
      y -= h;
      g.append(svg('rect', {class: kind, x, y, width: step - 4, height: h}));
    }
    const now = i === runs.length - 1 ? 'now' : '';
    g.append(svg('title', {}, r.title), svg('text', {class: now, x: middle, y: y - 3}, label(r, sums[i])), svg('text', {class: now, x: middle, y: top + high + 13}, runs.length > 9 && (runs.length - i) % 2 === 0 ? '' : r.label));
    s.append(g);
  });
  s.append(svg('line', {class: 'axis', x1: 0, x2: width, y1: top + high, y2: top + high}));
  const f = make('figure', {class: 'chart'}, make('figcaption', {}, caption));
  f.append(s);
  return f;
};

const brief = n => n >= 10000 ? Math.round(n / 1000) + 'k' : String(n);
const took = ms => ms >= 5940e3 ? (ms / 3600e3).toFixed(1) + 'h' : ms >= 99.5e3 ? Math.round(ms / 60e3) + 'm' : ms >= 9950 ? Math.round(ms / 1000) + 's' : ms >= 1000 ? (ms / 1000).toFixed(1) + 's' : Math.round(ms) + 'ms';

const trends = () => {
  if (!earlier.length) return;
  document.body.classList.add('trended');
  const counts = statuses.map(s => verdicts.reduce((n, v) => n + (v.status === s), 0));
  const runs = [...earlier, {time: run.time, durationMS: summary ? summary.durationMS : 0, counts}];
  for (const r of runs) {
    r.label = r.time ? day(r.time) : 'now';
    r.title = [r.time && iso(r.time), r.name, ...statuses.map((s, i) => r.counts[i] ? r.counts[i] + ' ' + s : '')].filter(Boolean).join('\n');
  }
  const some = which => r => which.map(s => [s + '-bar', r.counts[statuses.indexOf(s)]]);
  byID('charts').replaceChildren(
    chart('red tests: failed, broken, flaky', runs, some(['failed', 'broken', 'flaky']), (r, n) => brief(n)),
    chart('tests that ran and were not red: passed, known-failing', runs, some(['passed', 'known-failing']), (r, n) => brief(n)),
    chart('duration', runs, r => [['time', r.durationMS]], (r, n) => n ? took(n) : '?'));
  const news = verdicts.filter(newlyRed).length, old = verdicts.filter(v => red(v.status)).length - news, good = verdicts.filter(fixed).length;
  byID('trend').replaceChildren('Since the last run (' + iso(earlier[earlier.length - 1].time) + '): ',
    make('b', {class: news ? 'failed' : ''}, news + ' new red'), ', ' + old + ' red as before, ' + good + ' fixed' + (summary && summary.gone ? ', ' + summary.gone + ' gone' : '') +
    ' · ' + (earlier.length > 1 ? earlier.length + ' earlier runs' : 'one earlier run'));
  byID('trends').hidden = false;
  byID('trends').open = innerHeight > 700 && innerWidth > 760;
};

// ---- causes: red tests with the same number

const some = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
const mostCards = 12;
let allCauses = [];
const causes = () => {
  const known = new Map();
  for (const v of verdicts) {
    if (!red(v.status)) continue;
    const c = known.get(v.cause) || {number: v.cause, first: v, verdicts: [], tests: 0, on: new Set(), fresh: 0, since: -1};
    if (newlyRed(v) && !c.fresh) c.first = v;
    c.tests++;
    c.verdicts.push(v);
    c.on.add(v.on);
    c.fresh += newlyRed(v);
    const first = since(v);
    if (first >= 0 && (c.since < 0 || first < c.since)) c.since = first;
    known.set(v.cause, c);
  }
  return [...known.values()].sort((a, b) => !!b.fresh - !!a.fresh || b.tests - a.tests);
};

// Lines of a failure, with what differs in color.
const marked = lines => (lines || []).map(l => {
  const mark = /^ {4}(?:[> ] )?([-+!]) /.exec(l);
  const kinds = [mark ? {'-': 'less', '+': 'more', '!': 'other'}[mark[1]] : '', /^ {4}[> ] [-+! ] \S.* {3}/.test(l) ? 'columns' : ''];
  return make('span', {class: kinds.filter(Boolean).join(' ')}, l.replace(/^ {2}/, ''));
});

// command shows a command line with a button that copies it.
const command = line => {
  const text = make('pre', {}, line);
  const copy = make('button', {type: 'button', class: 'copy', click: () => {
    getSelection().selectAllChildren(text);
    if (navigator.clipboard) navigator.clipboard.writeText(line).then(() => { copy.textContent = 'copied'; }, () => {});
  }}, 'copy');
  return make('div', {class: 'command'}, text, copy);
};

const card = c => {
  const d = details(c.first), names = [...c.on].map(n => columns[n]).filter(Boolean), most = 3;
  const facts = [run.engine, names.slice(0, most).join(', ') + (names.length > most ? ' and ' + (names.length - most) + ' more' : ''),
    c.since >= 0 ? 'failing since ' + iso(earlier[c.since].time) : ''].filter(Boolean);
  return make('article', {class: 'card'},
    make('button', {type: 'button', class: 'scope', title: 'show only these tests', click: () => only(c.number)},
      make('b', {class: c.first.status}, signs[c.first.status] + ' ' + c.first.status), ' ', c.fresh ? make('span', {class: 'is-new'}, c.fresh === c.tests ? 'new' : c.fresh + ' new') : '',
      (c.fresh ? ' ' : '') + some(c.tests, 'test') + (c.on.size > 1 ? ' in ' + some(c.on.size, summary && summary.columns || 'deployment') : '')),
    make('div', {class: 'why'}, files[c.first.file].suite + ': ' + c.first.test),
    make('div', {}, d.why || c.first.reason || ''),
    d.rerun ? command(d.rerun) : '',
    d.failure ? make('pre', {class: 'failure'}, ...marked(d.failure)) : '',
    make('div', {class: 'faint'}, facts.join(' · ')),
    make('div', {class: 'bar'}, make('button', {type: 'button', click: () => open(c.first)}, 'open ' + (c.tests > 1 ? 'one of them' : 'it') + ': ' + c.first.test)));
};

let cardsOf = '', most = mostCards; // of the causes that have cards
const showCauses = causes => {
  byID('causes').hidden = !causes.length;
  const shows = most + ' ' + causes.map(c => c.number).join(' ');
  if (cardsOf === shows) return;
  cardsOf = shows;
  byID('cause').textContent = some(causes.length, 'cause') + ' of ' + some(causes.reduce((n, c) => n + c.tests, 0), 'red test');
  byID('cards').replaceChildren(...causes.slice(0, most).map(card),
    causes.length > most ? make('button', {type: 'button', class: 'chip', click: () => { most = allCauses.length; filter(); }}, 'show ' + some(causes.length - most, 'more cause')) : '');
  byID('onward').replaceChildren(make('button', {type: 'button', class: 'chip', click: toMatrix}, '↓ all ' + some(verdicts.length, 'verdict')));
};

const toMatrix = () => document.querySelector('main').scrollIntoView();

// select selects a cause with its columns, or nothing for null.
const select = cause => {
  const c = allCauses.find(c => c.number === cause);
  state.cause = c ? cause : null;
  order = c && columns.length > mostColumns ? allColumns().filter(n => c.on.has(n)) : usual;
  head();
};

// only shows the tests of a cause, or all again for null.
const only = cause => {
  select(cause);
  byID('matrix').scrollTop = 0;
  chips();
  filter();
  saveLink();
  toMatrix();
};

// focusCard moves the focus between cards.
const focusCard = by => {
  const all = [...document.querySelectorAll('.scope')], i = all.indexOf(document.activeElement);
  const next = all[Math.max(0, Math.min(all.length - 1, i < 0 ? 0 : i + by))];
  if (next) next.focus();
};

// A row is a file or a test with its verdicts by column.
let pathPrefix = 0, columnPrefix = 0;
let rows = [], shown = [], order = [], usual = []; // indexes of the columns that are shown, in order, and usually shown
const nameOfColumn = c => columns[c] ? without(columnPrefix, columns[c]) : 'not run';
const phone = () => innerWidth <= 760;
const cellWidth = () => Math.max(earlier.length ? 196 : 132, Math.min(300, Math.max(0, ...order.map(c => nameOfColumn(c).length)) * 9 + 20));
const many = () => columns.length > 4 || phone() || 300 + order.length * cellWidth() > byID('matrix').clientWidth;

// The column of tests that did not run comes last.
const allColumns = () => columns.map((_, c) => c).sort((a, b) => !columns[a] - !columns[b] || a - b);

// Of more than mostColumns, only those with red tests are shown until the user asks for all.
const mostColumns = 12;
const arrange = () => {
  const reds = new Set(); // columns with red tests
  for (const v of verdicts) {
    const known = tests[v.of].rows;
    let row = known[v.iteration];
    if (!row || row.cells[v.on]) {
      row = {file: v.file, name: v.iteration > 1 ? v.test + ' #' + v.iteration : v.test, cells: [], text: null};
      known[v.iteration] = row;
      files[v.file].rows.push(row);
    }
    row.cells[v.on] = v;
    v.row = row;
    files[v.file].tests++;
    if (!red(v.status)) continue;
    files[v.file].red++;
    reds.add(v.on);
  }
  for (const f of files) {
    f.closed = reds.size > 0 && !f.red;
    f.prefix = prefix(f.rows.map(r => r.name), ' ');
  }
  pathPrefix = prefix(files.map(f => f.path), '/');
  columnPrefix = prefix(columns.filter(Boolean), ' _');
  usual = allColumns();
  if (columns.length > mostColumns && reds.size) usual = usual.filter(c => reds.has(c));
  order = usual;
  const sorted = files.map((_, i) => i).sort((a, b) => !!files[b].red - !!files[a].red || (files[a].path < files[b].path ? -1 : 1));
  for (const i of sorted) {
    if (!files[i].rows.length) continue;
    rows.push({header: files[i]});
    for (const r of files[i].rows) rows.push(r);
  }
};

const words = row => {
  if (row.text === null) {
    const f = files[row.file];
    row.text = [f.path, f.suite, row.name, ...row.cells.filter(Boolean).map(v => columns[v.on] + ' ' + v.reason)].join(' ').toLowerCase();
  }
  return row.text;
};

// ---- filter and matrix

const state = {query: '', only: new Set(), test: '', cause: null, all: false};
let at = {row: -1, column: 0};

// A file is closed if the user closed it or it has no red test, until something is searched.
const closed = f => f.closed && !state.only.size && !state.query && state.cause === null;

// chosen reports whether the chips allow a verdict.
const chosen = v => !state.only.size || state.only.has(v.status) || state.only.has('new') && newlyRed(v);

// A phone shows the red rows, until something is searched or all rows are wanted.
const onlyRed = () => phone() && !state.all && !state.only.size && !state.query && state.cause === null && allCauses.length > 0;

const filter = () => {
  const query = state.query.toLowerCase().split(/\s+/).filter(Boolean), redRows = onlyRed();
  const found = r => query.every(w => words(r).includes(w));
  document.body.classList.toggle('reds', redRows);
  showCauses(allCauses.filter(c => c.verdicts.some(v => chosen(v) && found(v.row))));
  const row = shown[at.row];
  shown = [];
  let header = null;
  for (const r of rows) {
    if (r.header) { header = r; continue; }
    if (closed(files[r.file])) {
      if (header) { shown.push(header); header = null; }
      continue;
    }
    if (!r.cells.some(v => v && chosen(v))) continue;
    if (redRows && !r.cells.some(v => v && red(v.status))) continue;
    if (state.cause !== null && !r.cells.some(v => v && v.cause === state.cause)) continue;
    if (!found(r)) continue;
    if (header) { shown.push(header); header = null; }
    shown.push(r);
  }
  byID('space').style.height = shown.length * rowHeight + 'px';
  byID('none').hidden = shown.length > 0;
  at.row = row ? shown.indexOf(row) : -1;
  draw();
};

const cell = v => {
  if (!v) return make('span', {class: 'cell'});
  const b = make('button', {class: 'cell ' + v.status, type: 'button', tabindex: '-1', title: v.status + (v.reason ? ': ' + v.reason : ''), click: () => open(v)},
    signs[v.status], make('span', {class: 'word'}, ' ' + v.status));
  if (earlier.length) {
    if (newlyRed(v)) {
      b.classList.add('fresh');
      b.append(make('span', {class: 'is-new'}, 'new'));
      b.title += ' (new since the last run)';
    }
    b.append(strip(v.history));
  }
  return b;
};

const draw = () => {
  const box = byID('matrix'), space = byID('space');
  const first = Math.max(0, Math.floor(box.scrollTop / rowHeight) - spare);
  const last = Math.min(shown.length, Math.ceil((box.scrollTop + box.clientHeight) / rowHeight) + spare);
  const part = document.createDocumentFragment();
  for (let i = first; i < last; i++) {
    const r = shown[i];
    const e = make('div', {class: 'row' + (r.header ? ' file' : '') + (i === at.row ? ' at' : '')});
    e.style.top = i * rowHeight + 'px';
    if (r.header) {
      const f = r.header;
      e.append(make('button', {class: 'name', type: 'button', title: f.path + ': ' + f.suite, 'aria-expanded': String(!closed(f)), click: () => { f.closed = !f.closed; filter(); }},
        closed(f) ? '▸ ' : '▾ ', without(pathPrefix, f.path), ' ', make('span', {class: f.red ? 'failed' : 'faint'}, f.red ? f.red + ' of ' + f.tests + ' red' : String(f.tests))));
    } else {
      e.append(make('div', {class: 'name', title: r.name}, without(files[r.file].prefix, r.name)));
      order.forEach(c => {
        const b = cell(r.cells[c]);
        if (i === at.row && c === at.column) b.classList.add('at');
        e.append(b);
      });
    }
    part.append(e);
  }
  space.replaceChildren(part);
};

const reveal = () => {
  const box = byID('matrix'), top = at.row * rowHeight, head = byID('columns').offsetHeight;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + rowHeight + head > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight + head - box.clientHeight;
  draw();
};

// ---- deep links

const nameOf = v => [files[v.file].path, v.test, columns[v.on], v.iteration].join('|');

const link = () => {
  const p = new URLSearchParams();
  if (state.query) p.set('q', state.query);
  if (state.only.size) p.set('s', [...state.only].join(','));
  if (state.cause !== null) p.set('c', state.cause);
  if (state.test) p.set('t', state.test);
  return '#' + p;
};

const saveLink = () => history.replaceState(null, '', link());

const applyLink = () => {
  const p = new URLSearchParams(location.hash.slice(1));
  state.query = p.get('q') || '';
  state.only = new Set((p.get('s') || '').split(',').filter(s => choices().includes(s)));
  const c = allCauses.find(c => String(c.number) === p.get('c'));
  select(c ? c.number : null);
  byID('search').value = state.query;
  chips();
  filter();
  if (state.query || state.only.size || c) toMatrix();
  const wanted = p.get('t');
  const v = wanted && verdicts.find(v => nameOf(v) === wanted);
  if (v) open(v); else close();
};

// ---- one test

const milliseconds = ms => ms >= 1000 ? (ms / 1000).toFixed(2) + ' s' : ms + ' ms';
const where = p => p ? p.file + ':' + p.line + ':' + p.column : '';
const oneLine = (s, most) => s.length > most ? s.slice(0, most) + '…' : s;

const open = v => {
  state.test = nameOf(v);
  let i = shown.indexOf(v.row);
  if (i < 0) { // a link to a hidden test
    state.query = byID('search').value = '';
    state.only.clear();
    select(null);
    files[v.file].closed = false;
    state.all = true;
    chips();
    filter();
    i = shown.indexOf(v.row);
  }
  if (!order.includes(v.on)) unfold();
  at = {row: i, column: v.on};
  saveLink();
  const box = byID('detail');
  box.replaceChildren(...about(v));
  box.hidden = false;
  head(); // the columns have less room
  box.scrollTop = 0;
  toMatrix();
  reveal();
};

const close = () => {
  state.test = '';
  byID('detail').hidden = true;
  head();
  saveLink();
  draw();
};

const about = v => {
  const d = details(v);
  const f = files[v.file];
  const out = [
    make('div', {class: 'bar'},
      make('button', {type: 'button', click: close, 'aria-label': 'close'}, '✕ close'),
      make('button', {type: 'button', click: () => step(-1)}, '↑ previous red'),
      make('button', {type: 'button', click: () => step(1)}, '↓ next red'),
      make('a', {href: link()}, 'link')),
    make('h2', {}, make('span', {class: v.status}, signs[v.status] + ' ' + v.status), ' ' + f.suite + ': ' + v.row.name),
    make('div', {class: 'mono'}, f.path + (v.line ? ':' + v.line + ':' + v.column : '')),
    make('div', {class: 'faint'}, [columns[v.on], milliseconds(v.durationMS)].filter(Boolean).join(' · ')),
    v.reason && !d.failure ? make('p', {}, v.reason) : '',
    ...(d.rerun ? [make('h3', {}, 'rerun'), command(d.rerun)] : []),
    ...(d.failure ? [make('h3', {}, 'what went wrong'), make('pre', {class: 'failure'}, ...marked(d.failure))] : []),
    excerpt(d.excerpt),
    ...past(v),
    ...evidence(d),
  ];
  for (const [i, a] of (d.attempts || []).entries()) {
    out.push(make('details', {}, make('summary', {}, 'attempt ' + (i + 1) + ': ', make('span', {class: a.status}, a.status), ' (' + milliseconds(a.durationMS) + ')'),
      a.reason ? make('p', {}, a.reason) : '', ...evidence(a)));
  }
  return out.filter(Boolean);
};

// past lists the statuses of a test in earlier runs.
const past = v => {
  if (!earlier.length) return [];
  const words = story(v);
  return [words ? make('p', {class: red(v.status) ? v.status : ''}, words) : '',
    make('ul', {class: 'history', 'aria-label': 'earlier runs, oldest first'}, ...earlier.map((r, i) => {
      const s = statusAt(v.history, i);
      return make('li', {class: s || 'faint', title: (r.name || '') + ': ' + (s || 'absent')}, (s ? signs[s] : '·') + ' ' + iso(r.time));
    }))].filter(Boolean);
};

// between inserts a note at the gap of a list.
const between = (list, gap, noun) => gap ? [...list.slice(0, gap.after), make(list[0].localName, {class: 'faint'}, '… ' + gap.count + ' ' + noun + ' left out'), ...list.slice(gap.after)] : list;

// excerpt shows lines of the suite, the one that the test failed at marked.
const excerpt = e => e ? make('pre', {class: 'excerpt', 'aria-label': 'the suite'}, ...e.lines.map((l, i) => make('span', {class: e.first + i === e.line ? 'here' : ''},
  make('span', {class: 'faint'}, String(e.first + i).padStart(5) + (e.first + i === e.line ? ' ▸ ' : '   ')), l))) : '';

const evidence = d => {
  const out = [], all = mismatches(d);
  if (all.length) out.push(make('details', {open: !d.failure}, make('summary', {}, 'all mismatches (' + d.mismatches.length + ')'), ...all));
  if (d.operations) out.push(make('h3', {}, 'operations and decisions'), ...between(d.operations.map(operation), d.omittedOperations, 'operations'));
  const messages = conversation(d);
  if (messages.length) out.push(make('h3', {}, 'messages'), diagram(d, messages));
  for (const c of d.clients || []) {
    out.push(make('h3', {}, 'events of ' + c.client + ' (' + c.events.length + (c.heartbeats ? ', ' + c.heartbeats + ' heartbeats left out' : '') + ')'), make('div', {class: 'events mono'}, ...between(c.events.map(event), c.omitted, 'events')));
  }
  if (d.serverLog) {
    const lines = d.serverLog.map(l => make('div', {}, make('span', {class: 'faint'}, l.time.slice(11, 23) + ' ' + l.server + ' '), l.text));
    out.push(make('details', {class: 'log'}, make('summary', {}, 'the servers\u2019 logs (' + lines.length + ' lines)'), make('div', {class: 'events mono'}, ...between(lines, d.omittedLog, 'lines'))));
  }
  return out;
};

const mismatches = d => between((d.mismatches || []).map(m => make('div', {class: 'mismatch'},
  make('div', {class: 'mono'}, m.path, ' ', make('span', {class: 'faint'}, where(m.place))),
  make('div', {}, m.message),
  m.want || m.got ? make('div', {class: 'pair mono'}, make('span', {}, 'want'), make('span', {}, m.want || '(nothing)'), make('span', {}, 'got'), make('span', {}, m.got || '(nothing)')) : '',
  m.diff ? make('pre', {}, ...m.diff.split('\n').map(l => make('span', {class: l[0] === '-' ? 'less' : l[0] === '+' ? 'more' : ''}, l + '\n'))) : '')), d.omittedMismatches, 'mismatches');

const errorText = e => [e.kind, e.code, e.codeName, e.labels && '{' + e.labels.join(', ') + '}', e.message].filter(Boolean).join(' ');

const operation = o => make('div', {class: 'operation'},
  make('div', {class: 'mono'}, o.name + ' on ' + o.object + ' ', make('span', {class: 'faint'}, where(o.place) + ' ' + milliseconds(o.durationMS))),
  make('ol', {}, ...between((o.decisions || []).map(d => make('li', {},
    'attempt ' + d.attempt + ': ' + d.action + (d.server ? ' ' + d.server : '') + (d.delayMS ? ' ' + d.delayMS + ' ms' : '') +
    (d.tokens === undefined ? '' : ', tokens ' + d.tokens) + (d.deprioritized ? ', deprioritized ' + d.deprioritized.join(' ') : '') + ' ',
    ...(d.rules || []).map(r => make('span', {class: 'rule'}, r)), d.reason ? ' ' + d.reason : '')), o.omitted, 'decisions')),
  make('div', {class: 'mono'}, '→ ', o.error ? make('span', {class: 'failed'}, 'error ' + errorText(o.error)) : oneLine(JSON.stringify(o.result) || 'nothing', 600)));

const event = e => {
  const parts = [e.sequence, e.type, e.address];
  if (e.command) parts.push((e.database ? e.database + '.' : '') + e.command);
  if (e.connectionId) parts.push('connection ' + e.connectionId);
  if (e.reason) parts.push('(' + e.reason + ')');
  if (e.newDescription) parts.push((e.previousDescription ? e.previousDescription.type : '') + ' → ' + e.newDescription.type);
  if (e.error) parts.push(e.error);
  if (e.failure) parts.push(errorText(e.failure));
  if (e.redacted) parts.push('(redacted)');
  const line = parts.filter(Boolean).join(' ');
  if (!e.body && !e.failure && !e.newDescription) return make('div', {}, line);
  const d = make('details', {toggle: () => {
    if (d.open && d.children.length < 2) d.append(make('pre', {}, JSON.stringify(e.body || e.failure || e.newDescription, null, 2)));
  }}, make('summary', {}, line, ' ', make('span', {class: 'faint'}, e.body ? oneLine(JSON.stringify(e.body), 160) : '')));
  return d;
};

// conversation returns the messages between clients and servers in order: commands,
// replies, pool clearing and changes of server type.
const conversation = d => {
  const out = [];
  for (const c of d.clients || []) {
    for (const e of c.events) {
      const m = {client: c.client, server: e.address, time: e.time ? Date.parse(e.time) : 0, sequence: e.sequence, text: e.command || '', kind: ''};
      if (e.type === 'commandStartedEvent') m.kind = 'sent';
      else if (e.type === 'commandSucceededEvent') m.kind = 'got';
      else if (e.type === 'commandFailedEvent') { m.kind = 'bad'; m.text += ' ' + oneLine(errorText(e.failure || {}), 60); }
      else if (e.type === 'poolClearedEvent') { m.kind = 'note'; m.text = 'pool cleared'; }
      else if (e.type === 'serverDescriptionChangedEvent' && e.newDescription && (!e.previousDescription || e.previousDescription.type !== e.newDescription.type)) {
        m.kind = 'note';
        m.text = (e.previousDescription ? e.previousDescription.type : '') + ' → ' + e.newDescription.type;
      }
      if (m.kind && m.server) out.push(m);
    }
  }
  // Omit clients without commands. Events without a time keep their order.
  const active = new Set(out.filter(m => m.kind !== 'note').map(m => m.client));
  return active.size ? out.filter(m => active.has(m.client)).map((m, i) => [m, i]).sort(([a, i], [b, j]) => a.client === b.client ? a.sequence - b.sequence : a.time - b.time || i - j).map(([m]) => m) : [];
};

const svg = (tag, attributes, text) => {
  const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const name in attributes) e.setAttribute(name, attributes[name]);
  if (text !== undefined) e.textContent = text;
  return e;
};

const diagram = (d, all) => {
  const messages = all.slice(0, mostMessages);
  const lanes = [...new Set(messages.map(m => m.client)), ...new Set(messages.map(m => m.server))];
  const long = text => Math.min(text.length, mostOfLabel) * 7.2 + 24; // pixels of a label, with space
  const span = m => m.kind === 'note' ? 1 : lanes.indexOf(m.server) - lanes.indexOf(m.client);
  const lane = Math.max(180, ...lanes.map(long), ...messages.map(m => long(m.text) / span(m)));
  const step = 24, top = 34, left = Math.max(80, long(lanes[0]) / 2), x = name => left + lanes.indexOf(name) * lane;
  const width = left + (lanes.length - 1) * lane + Math.max(left, long(lanes[lanes.length - 1]) / 2, ...messages.filter(m => m.kind === 'note').map(m => long(m.text)));
  const height = top + messages.length * step + 16;
  const s = svg('svg', {width, height, viewBox: '0 0 ' + width + ' ' + height, role: 'img', 'aria-label': 'messages between clients and servers'});
  for (const name of lanes) {
    s.append(svg('line', {class: 'life', x1: x(name), x2: x(name), y1: 24, y2: height}), svg('text', {class: 'head', x: x(name), y: 16, 'text-anchor': 'middle'}, oneLine(name, mostOfLabel - 1)));
  }
  messages.forEach((m, i) => {
    const y = top + i * step + 12, client = x(m.client), server = x(m.server);
    if (m.kind === 'note') {
      s.append(svg('circle', {cx: server, cy: y - 4, r: 3.5}), svg('text', {class: 'note', x: server + 8, y}, oneLine(m.text, mostOfLabel - 1)));
      return;
    }
    const from = m.kind === 'sent' ? client : server, to = m.kind === 'sent' ? server : client, toward = Math.sign(to - from);
    s.append(svg('line', {class: m.kind, x1: from, x2: to - toward * 6, y1: y, y2: y}),
      svg('path', {class: m.kind + '-tip', d: 'M' + to + ' ' + y + 'l' + -toward * 8 + ' -4v8z'}),
      svg('text', {class: m.kind + '-text', x: Math.min(from, to) + 10, y: y - 4}, oneLine(m.text, mostOfLabel - 1)));
  });
  const box = make('div', {class: 'diagram'});
  box.append(s);
  if (all.length > messages.length) box.append(make('p', {class: 'faint'}, 'and ' + (all.length - messages.length) + ' more'));
  return box;
};

// ---- header, keys, paper

// choices are the filters by verdict, and "new" for newly red tests.
const choices = () => earlier.length ? [...statuses, 'new'] : statuses;

let counts = null;
const chips = () => {
  if (!counts) {
    counts = {};
    for (const v of verdicts) {
      counts[v.status] = (counts[v.status] || 0) + 1;
      if (newlyRed(v)) counts.new = (counts.new || 0) + 1;
    }
  }
  byID('chips').replaceChildren(...choices().map((s, i) => make('button', {
    type: 'button', class: 'chip ' + s, 'aria-pressed': String(state.only.has(s)), title: 'key ' + (i + 1), click: () => toggle(s),
  }, (signs[s] || '✱') + ' ' + (counts[s] || 0) + ' ' + s)),
  state.cause === null ? '' : make('button', {type: 'button', class: 'chip', 'aria-pressed': 'true', title: 'show all causes', click: () => only(null)}, 'one cause ✕'));
};

const toggle = s => {
  if (!state.only.delete(s)) state.only.add(s);
  chips();
  filter();
  saveLink();
};

const head = () => {
  const bad = verdicts.filter(v => red(v.status)).length;
  byID('about').textContent = [run.engine, run.time && iso(run.time), run.shard && 'shard ' + run.shard, summary && milliseconds(summary.durationMS)].filter(Boolean).join(' · ');
  const problems = [...(summary ? summary.problems || [] : ['This report was cut off: the run did not end.'])];
  const cells = summary && summary.cells || [];
  document.title = (bad ? '✘ ' + bad + ' red' : problems.length ? '✘' : '✔') + ' · utr report';
  byID('problems').replaceChildren(...[...problems, ...cells].map(p => make('li', {}, p)));
  byID('problems').hidden = !problems.length && !cells.length;
    const style = document.documentElement.style;
  style.setProperty('--count', Math.max(1, order.length));
  document.body.classList.toggle('many', many());
  document.body.style.setProperty('--cell', (many() ? 40 : cellWidth()) + 'px');
  style.setProperty('--head', document.querySelector('header').offsetHeight + 'px');
  byID('columns').replaceChildren(make('span', {}, 'test',
    state.cause === null ? '' : make('button', {type: 'button', title: 'show all tests', click: () => only(null)}, '✕ only one cause'), onlyRed() ? make('button', {type: 'button', click: () => { state.all = true; filter(); head(); }}, 'show all rows') : '', order.length < columns.length ? make('button', {type: 'button', click: unfold}, 'show all ' + columns.length + ' columns') : ''),
    ...order.map(c => make('span', {title: columns[c] || 'not run'}, nameOfColumn(c))));
};

const unfold = () => {
  order = allColumns();
  head();
  draw();
};

// step opens the next or previous red test that is shown. Newly red ones come first.
const step = by => {
  const all = [];
  shown.forEach(r => { if (!r.header) for (const c of order) if (r.cells[c] && red(r.cells[c].status)) all.push(r.cells[c]); });
  all.sort((a, b) => newlyRed(b) - newlyRed(a));
  if (!all.length) return;
  const row = shown[at.row], now = row && !row.header ? all.indexOf(row.cells[at.column]) : -1;
  open(all[now < 0 ? (by > 0 ? 0 : all.length - 1) : (now + by + all.length) % all.length]);
};

const move = (rowsBy, columnsBy) => {
  let i = at.row;
  if (rowsBy) do { i += rowsBy; } while (shown[i] && shown[i].header);
  if (shown[i] && !shown[i].header) at.row = i;
  const place = order.indexOf(at.column) + columnsBy;
  at.column = order[Math.max(0, Math.min(order.length - 1, place))];
  reveal();
};

const keys = {
  ArrowDown: () => move(1, 0), j: () => move(1, 0), ArrowUp: () => move(-1, 0), k: () => move(-1, 0),
  ArrowRight: () => move(0, 1), l: () => move(0, 1), ArrowLeft: () => move(0, -1), h: () => move(0, -1),
  t: () => { byID('trends').open = !byID('trends').open; },
  n: () => step(1), p: () => step(-1), '/': () => byID('search').focus(), '?': () => byID('keys').showModal(),
  Enter: () => {
    const r = shown[at.row];
    const v = r && !r.header && (r.cells[at.column] || r.cells.find(Boolean));
    if (v) open(v);
  },
  Escape: () => {
    if (!byID('detail').hidden) return close();
    state.query = byID('search').value = '';
    state.only.clear();
    select(null);
    chips();
    filter();
    saveLink();
  },
  c: () => focusCard(0),
};

const listen = () => {
  let waiting = false;
  const later = () => {
    if (!waiting) requestAnimationFrame(() => { waiting = false; draw(); });
    waiting = true;
  };
  byID('matrix').addEventListener('scroll', later);
  addEventListener('resize', () => { head(); filter(); later(); });
  addEventListener('hashchange', applyLink);
  byID('help').addEventListener('click', keys['?']);
  byID('search').addEventListener('input', () => { state.query = byID('search').value; at.row = -1; byID('matrix').scrollTop = 0; filter(); saveLink(); });
  addEventListener('keydown', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || byID('keys').open) return;
    const typing = e.target === byID('search'), inside = byID('detail').contains(e.target);
    if (typing && e.key !== 'Escape' && e.key !== 'Enter' && e.key !== 'ArrowDown') return;
    if ((e.target.tagName === 'BUTTON' || e.target.tagName === 'A' || e.target.tagName === 'SUMMARY') && e.key === 'Enter') return;
    if (inside && e.key.startsWith('Arrow')) return; // arrows scroll
    const by = {ArrowRight: 1, ArrowDown: 1, j: 1, l: 1, ArrowLeft: -1, ArrowUp: -1, k: -1, h: -1}[e.key];
    if (e.target.classList.contains('scope') && by) {
      e.preventDefault();
      focusCard(by);
      return;
    }
    const digit = choices()[Number(e.key) - 1];
    const what = digit && !typing ? () => toggle(digit) : keys[e.key];
    if (!what) return;
    e.preventDefault();
    if (typing) byID('matrix').focus();
    what();
  });
  addEventListener('beforeprint', paper);
};

// paper prepares printing: every red test, without buttons.
const paper = () => {
  byID('trends').open = true;
  const all = verdicts.filter(v => red(v.status));
  byID('paper').replaceChildren(...all.slice(0, mostOnPaper).flatMap(v => {
    const d = details(v);
    return [make('h2', {}, signs[v.status] + ' ' + v.status + ' ' + files[v.file].suite + ': ' + v.row.name + (columns[v.on] ? ' [' + columns[v.on] + ']' : '')),
      make('div', {class: 'mono'}, files[v.file].path + ':' + v.line + ':' + v.column), v.reason ? make('p', {}, v.reason) : '', story(v) ? make('p', {}, story(v)) : '', d.failure ? make('pre', {}, ...marked(d.failure)) : '', d.rerun ? make('pre', {}, d.rerun) : ''];
  }), all.length > mostOnPaper ? make('p', {}, 'and ' + (all.length - mostOnPaper) + ' more') : '');
};

document.addEventListener('DOMContentLoaded', () => {
  read(byID('data').textContent);
  arrange();
  head();
  trends();
  allCauses = causes();
  listen();
  applyLink();
  if (!location.hash && !allCauses.length) { // with --events, as from utr explain, the explanation is wanted
    const first = verdicts.find(v => v.status !== 'skipped');
    if (first && details(first).operations) open(first);
  }
  document.body.dataset.ready = Math.round(performance.now());
  document.body.dataset.verdicts = verdicts.length;
});
})();
