// The page of time. It asks this server only, and shows all text as text: no name of a key becomes markup.
'use strict';

// Elements, numbers and times as people read them.

const find = (selector) => document.querySelector(selector);

/** Makes an element: attributes, then what is in it. `text` in an attribute's place is its text. */
function make(tag, attributes = {}, ...inside) {
  const made = tag.startsWith('svg:')
    ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'text') made.textContent = value;
    else if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

/** Sets a text, if it differs: screen readers and the browser have less to do. */
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

const count = (number) => (Math.abs(number) < 10000 ? whole.format(number) : short.format(number));
const keysOf = (number) => (number === 1 ? '1 key' : `${whole.format(number)} keys`);
const percent = (part) => `${(part * 100).toFixed(part === 1 || part === 0 ? 0 : 1)} %`;

function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; Math.abs(number) >= 1024 && unit < units.length - 1; unit += 1) number /= 1024;
  return `${unit === 0 || Math.abs(number) >= 100 ? number.toFixed(0) : number.toPrecision(3)} ${units[unit]}`;
}

/** A time, in the greatest unit of which it has two; smaller ones, of which it has one. */
function time(ms) {
  const units = [[2 * 31557600000, 31557600000, 'y'], [2 * 86400000, 86400000, 'd'], [2 * 3600000, 3600000, 'h'],
    [120000, 60000, 'min'], [1000, 1000, 's'], [1, 1, 'ms'], [0.001, 0.001, 'µs']];
  const [, of, name] = units.find(([least]) => ms >= least) ?? [0, 1, 'ms'];
  const value = ms / of;
  return `${value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)))} ${name}`;
}

const clockTime = (ms) => new Date(ms).toLocaleTimeString();

/** What is shown in place of a part that this user may not see, or that failed. */
function refusal(why) {
  const denied = why.startsWith('NOPERM') || why.includes('may not');
  return make('p', { class: 'no', text: denied ? `Not allowed: ${why.replace(/^NOPERM /, '')}` : why });
}

/** Puts into an element what `draw` makes of a part, or why there is none. */
function show(element, part, draw) {
  element.replaceChildren(...(part?.no === undefined ? [draw(part)].flat() : [refusal(part.no)]));
}

/** A table; `columns` are [title, class], `rows` have texts or elements. */
function table(columns, rows, empty) {
  if (rows.length === 0) return make('p', { class: 'quiet', text: empty });
  const cell = (tag, inside, kind) => {
    const made = make(tag, kind ? { class: kind } : {});
    made.append(inside);
    return made;
  };
  const head = make('tr', {}, ...columns.map(([title, kind]) => cell('th', title, kind)));
  head.querySelectorAll('th').forEach((th) => th.setAttribute('scope', 'col'));
  const body = rows.map((row) => make('tr', {}, ...row.map((inside, i) => cell('td', inside, columns[i][1]))));
  return make('div', { class: 'scroll' }, make('table', {}, make('thead', {}, head), make('tbody', {}, ...body)));
}

/** Lists names and values. */
function facts(pairs) {
  return make('dl', { class: 'facts' }, ...pairs.flatMap(([name, value]) => [make('dt', { text: name }), make('dd', { text: value })]));
}

/** A row of buttons of which one is pressed. */
function choice(buttons, chosen) {
  for (const button of buttons) {
    button.addEventListener('click', () => {
      for (const other of buttons) other.setAttribute('aria-pressed', String(other === button));
      chosen(button);
    });
  }
}

// What is known.

const known = {
  db: 0,
  paused: false,
  /** A row a second ago and now; both as `/events` tells them. */
  before: null,
  numbers: null,
  /** `[from, to, keys]` in milliseconds, and when it came. */
  forecast: [],
  at: 0,
  databases: [],
  /** Rows of the last hour, one each five seconds; the newest is of this second. */
  rows: [],
  minutes: 60,
  since: 'minute',
  /** Parts that this user may not see; they are not asked for again. */
  denied: new Set(),
};

const EVERY_S = 5;

/** Asks the server. Throws what it says when it says no. */
async function ask(path, words = {}) {
  const query = Object.entries({ db: known.db, ...words }).map(([name, value]) => `${name}=${value}`);
  const reply = await fetch(`${path}?${query.join('&')}`);
  if (!reply.ok) throw new Error((await reply.text()).trim());
  return reply.json();
}

/** Asks, and shows what comes, or why nothing does. */
async function askInto(element, path, words, draw) {
  element.setAttribute('aria-busy', 'true');
  try {
    const answer = await ask(path, words);
    element.replaceChildren(...[draw(answer)].flat());
  } catch (error) {
    element.replaceChildren(refusal(error.message));
  }
  element.removeAttribute('aria-busy');
}

/** Those of these parts that are still to be asked for, after an answer. */
function wanted(names, answer = {}) {
  for (const [name, part] of Object.entries(answer)) if (part?.no?.startsWith('NOPERM')) known.denied.add(name);
  return names.filter((name) => !known.denied.has(name)).join(',');
}

// Rates between two rows.

/** How much a counter grew a second; nothing after a reset. */
function rate(before, row, name) {
  const [grown, ms] = [row[name] - before[name], row.time_ms - before.time_ms];
  return grown < 0 || ms <= 0 ? null : (grown * 1000) / ms;
}

/** The part of reads that found their key. */
function hitRatio(before, row) {
  const [hits, misses] = [row.hits - before.hits, row.misses - before.misses];
  return hits < 0 || misses < 0 || hits + misses === 0 ? null : hits / (hits + misses);
}

/** How many keys were removed how late, between two rows. */
function lateBetween(before, row) {
  const grown = row.late_us_by_power.map((now, i) => now - (before?.late_us_by_power[i] ?? 0));
  return grown.some((number) => number < 0) ? row.late_us_by_power : grown;
}

/** The milliseconds within which a part of the keys was removed. */
function lateWithin(counts, part) {
  const all = counts.reduce((sum, number) => sum + number, 0);
  if (all === 0) return null;
  let sum = 0;
  const power = counts.findIndex((number) => (sum += number) >= all * part);
  return 2 ** power / 1000;
}

/** The row that is so many milliseconds older than the newest, or the oldest there is. */
function rowBefore(ms) {
  const then = known.numbers.time_ms - ms;
  return known.rows.findLast((row) => row.time_ms <= then) ?? known.rows[0];
}

// This second.

const FIGURES = [
  ['Operations / s', (before, now) => shown(rate(before, now, 'commands'), count)],
  ['Expired / s', (before, now) => shown(rate(before, now, 'expired'), count)],
  ['Evicted / s', (before, now) => shown(rate(before, now, 'evicted'), count), (before, now) => now.evicted > before.evicted],
  ['99 % left within', () => shown(lateWithin(lateBetween(rowBefore(60000), known.numbers), 0.99), time)],
  ['Behind by', (_, now) => (now.frozen ? 'frozen' : now.backlog_ms ? time(now.backlog_ms) : 'nothing'), (_, now) => now.backlog_ms > 100],
  ['Keys', (_, now) => count(now.keys)],
  ['Memory', (_, now) => bytes(now.memory), (_, now) => now.memory_max > 0 && now.memory > 0.9 * now.memory_max],
  ['Clients', (_, now) => count(now.clients)],
];

const shown = (value, how) => (value === null ? '–' : how(value));

function drawFigures() {
  const list = find('#now dl');
  if (list.childElementCount !== FIGURES.length) {
    list.replaceChildren(...FIGURES.map(([name]) => make('div', {}, make('dt', { text: name }), make('dd', { text: '–' }))));
  }
  const before = known.before ?? known.numbers;
  FIGURES.forEach(([, value, alarms], i) => {
    say(list.children[i].lastChild, value(before, known.numbers));
    list.children[i].classList.toggle('alarm', alarms?.(before, known.numbers) ?? false);
  });
}

// The wheels: rings of 256 slots, each as long as the whole ring within it.

const SLOTS = 256;
const DIALS = [0, 1, 2, 3].map((level) => ({ level, span: SLOTS ** level }));
const still = matchMedia('(prefers-reduced-motion: reduce)');
const dark = matchMedia('(prefers-color-scheme: dark)');

/** Keys a millisecond that are due so many milliseconds after the forecast was made. */
function density(ms) {
  const window = ms < 1 ? 0 : Math.floor(Math.log2(ms)) + 1;
  const [from, to, keys] = known.forecast[window] ?? [0, 1, 0];
  return to > from ? keys / (to - from) : 0;
}

/** Keys on a wheel, and when they are due. */
function onWheel({ span }) {
  const [from, to] = [span === 1 ? 0 : span, span * SLOTS];
  const windows = known.forecast.filter(([start, end]) => start >= from && end > 0 && end <= to);
  return windows.reduce((sum, [, , keys]) => sum + keys, 0);
}

function makeDials() {
  const titles = ['milliseconds', 'quarter seconds', 'minutes', 'hours'];
  find('.dials').replaceChildren(...DIALS.map((dial) => {
    dial.canvas = make('canvas', { role: 'img', 'aria-label': `Wheel of ${titles[dial.level]}` });
    dial.name = titles[dial.level];
    dial.keys = make('strong', { text: '–' });
    const turn = dial.level === 0 ? 'turns four times a second, too fast to be drawn' : `turns once in ${time(dial.span * SLOTS)}`;
    const about = make('span', { text: `A slot is ${time(dial.span)}; it ${turn}.` });
    return make('figure', { class: 'dial' }, dial.canvas, make('figcaption', {}, dial.keys, about));
  }));
}

function drawDials() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const [first, second, track, ink, quiet] = ['--first', '--second', '--track', '--ink', '--quiet'].map(colour);
  const age = known.numbers?.frozen || known.paused ? 0 : Math.min(performance.now() - known.at, 3000);
  const now = (known.numbers?.tick ?? 0) + age;
  for (const dial of DIALS) {
    const { canvas, span, level } = dial;
    const size = Math.round(canvas.clientWidth * devicePixelRatio);
    if (size === 0) continue;
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const pen = canvas.getContext('2d');
    const [middle, radius, width] = [size / 2, size * 0.40, size * 0.085];
    pen.clearRect(0, 0, size, size);
    // The wheel of milliseconds is too fast: its slots stand still.
    const place = level === 0 ? 0 : now / span;
    const part = place - Math.floor(place);
    const turn = (2 * Math.PI) / SLOTS;
    pen.lineWidth = width;
    for (let slot = 0; slot < SLOTS; slot += 1) {
      const from = (slot - part) * turn - Math.PI / 2;
      const ms = (slot + 0.5 - part) * span + (level === 0 ? 0 : age);
      const keys = ms < (level === 0 ? 0 : span) ? 0 : density(ms) * span;
      pen.beginPath();
      pen.arc(middle, middle, radius, from, from + turn * 0.72);
      pen.strokeStyle = keys > 0 ? first : track;
      pen.globalAlpha = keys > 0 ? Math.min(1, 0.25 + 0.15 * Math.log10(1 + 100 * keys)) : 1;
      pen.stroke();
      // Each sixteenth slot has a tooth, so that one sees the wheel turn.
      if ((Math.floor(place) + slot) % 16 === 0) {
        pen.globalAlpha = 1;
        pen.beginPath();
        pen.arc(middle, middle, radius + width * 0.78, from, from + turn * 1.5);
        pen.strokeStyle = quiet;
        pen.lineWidth = width * 0.3;
        pen.stroke();
        pen.lineWidth = width;
      }
    }
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.moveTo(middle, middle - radius + width * 1.1);
    pen.lineTo(middle, middle - radius - width * 0.9);
    pen.strokeStyle = second;
    pen.lineWidth = Math.max(2, size * 0.012);
    pen.stroke();
    pen.fillStyle = ink;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.font = `600 ${Math.round(size * 0.085)}px system-ui, sans-serif`;
    pen.fillText(time(span * SLOTS), middle, middle - size * 0.03);
    pen.fillStyle = quiet;
    pen.font = `${Math.round(size * 0.055)}px system-ui, sans-serif`;
    pen.fillText('a turn', middle, middle + size * 0.06);
  }
}

function nameDials() {
  for (const dial of DIALS) {
    const keys = onWheel(dial);
    say(dial.keys, keysOf(keys));
    const label = `Wheel of ${dial.name}: ${keysOf(keys)} due within ${time(dial.span * SLOTS)}`;
    if (dial.canvas.getAttribute('aria-label') !== label) dial.canvas.setAttribute('aria-label', label);
  }
  const last = DIALS[DIALS.length - 1].span * SLOTS;
  const beyond = known.forecast.filter(([from]) => from >= last).reduce((sum, [, , keys]) => sum + keys, 0);
  const database = known.databases.find?.(({ db }) => db === known.db);
  // All of one moment, while the forecast is of another one. Few keys have a deadline and timed members.
  const { keys = 0, expires = 0, keys_with_volatile_items: timed = 0 } = database ?? {};
  const without = Math.max(0, keys - expires - timed);
  say(find('.beyond'), `Farther out, on slower wheels: ${keysOf(beyond)}. On no wheel, since they have no deadline: ${keysOf(without)}.`);
}

/** Turns the wheels some twenty times a second, while they are seen. */
function turnDials() {
  let [last, seen] = [0, true];
  new IntersectionObserver(([entry]) => { seen = entry.isIntersecting; }).observe(find('#wheels'));
  const frame = (at) => {
    const wanted = still.matches ? 1000 : 50;
    if (seen && at - last >= wanted) {
      last = at;
      drawDials();
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

// The forecast as a picture.

/** Bars end at these powers of two of milliseconds; the last has all that is later. */
const ENDS = [6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, Infinity];
const NAMES = ['64 ms', '¼ s', '1 s', '4 s', '16 s', '1 min', '4 min', '17 min', '1 h', '5 h', '19 h', '3 d', '12 d', '50 d', '200 d', '2 y', 'later'];
const TILES = [[1000, 'second'], [60000, 'minute'], [3600000, 'hour'], [86400000, 'day']];

/** Keys due within so many milliseconds. A window that lies across the end counts in part. */
function dueWithin(ms) {
  let sum = 0;
  for (const [from, to, keys] of known.forecast) {
    if (from >= ms) break;
    const end = to < 0 ? Infinity : to;
    sum += end <= ms ? keys : keys * ((ms - from) / (end - from));
  }
  return Math.round(sum);
}

/** The mean size of a key. */
const meanBytes = () => (known.numbers?.keys ? known.numbers.memory / known.numbers.keys : 0);

const about = (keys) => (meanBytes() > 0 && keys > 0 ? `about ${bytes(keys * meanBytes())}` : 'no bytes');

function makeForecast() {
  find('.tiles').replaceChildren(...TILES.map(([ms, name]) => {
    const tile = make('button', { type: 'button' },
      make('span', { class: 'quiet', text: `In the next ${name}` }), make('span', { class: 'value', text: '–' }), make('span', { class: 'quiet', text: '' }));
    tile.addEventListener('click', () => lookAt(0, ms, `the next ${name}`));
    return tile;
  }));
  find('.bars').replaceChildren(...ENDS.map((power, i) => {
    const bar = make('button', { type: 'button', 'aria-pressed': 'false' },
      make('span', { class: 'track' }, make('span', { class: 'fill' }), make('span', { class: 'over' })), make('span', { class: 'foot', text: NAMES[i] }));
    bar.addEventListener('click', () => lookAt(i ? 2 ** ENDS[i - 1] : 0, 2 ** power, null, bar));
    return bar;
  }));
}

const windowName = (from, to) => (to === Infinity ? `after ${time(from)}` : from === 0 ? `within ${time(to)}` : `in ${time(from)} to ${time(to)}`);

function drawForecast() {
  find('.tiles').childNodes.forEach((tile, i) => {
    const keys = dueWithin(TILES[i][0]);
    say(tile.children[1], `${keys ? '≈ ' : ''}${keysOf(keys)}`);
    say(tile.children[2], about(keys));
  });
  const sums = ENDS.map((power, i) => {
    const from = i ? 2 ** ENDS[i - 1] : -1;
    const windows = known.forecast.filter(([start]) => start >= from && start < 2 ** power);
    return windows.reduce((sum, [, , keys]) => sum + keys, 0);
  });
  const top = Math.log10(1 + Math.max(100, ...sums)) * 1.15;
  find('.bars').childNodes.forEach((bar, i) => {
    const [fill, over] = bar.firstChild.children;
    fill.style.setProperty('--part', `${(100 * Math.log10(1 + sums[i])) / top}%`);
    say(over, sums[i] ? count(sums[i]) : '');
    const label = `${keysOf(sums[i])} ${windowName(i ? 2 ** ENDS[i - 1] : 0, 2 ** ENDS[i])}, ${about(sums[i])}`;
    bar.setAttribute('aria-label', label);
    bar.title = label;
  });
}

/** Has the server look for keys of a window, and shows some. */
function lookAt(from, to, name, bar, cursor) {
  for (const other of find('.bars').children) other.setAttribute('aria-pressed', String(other === bar));
  const words = { from, ...(to === Infinity ? {} : { to }), ...(cursor ? { cursor } : {}) };
  askInto(find('#forecast .detail'), '/forecast', words, (answer) => {
    const { looked, found, prefixes, samples } = answer;
    const title = `Due ${name ? `in ${name}` : windowName(from, to)}`;
    const told = `Looked at ${keysOf(looked)}; ${whole.format(found)} of them ${found === 1 ? 'is' : 'are'} due then.`;
    const more = further(answer, (next) => lookAt(from, to, name, bar, next));
    const byPrefix = table([['Prefix', 'wide'], ['Keys', 'number']], prefixes.map(({ prefix, keys }) => [prefix || '(none)', whole.format(keys)]), 'None of them.');
    const some = table([['Key', 'wide'], ['Time left', 'number']], samples.map(({ key, ms }) => [keyButton(key), time(ms)]), 'None of them.');
    return [make('h3', { text: title }), make('p', {}, `${told} `, ...more), ...(found ? [make('div', { class: 'pair' }, byPrefix, some)] : [])];
  });
}

/** A button that goes on with a walk, unless it is at its end. */
function further({ cursor }, go) {
  if (cursor === '0') return [];
  const button = make('button', { type: 'button', text: 'Look further' });
  button.addEventListener('click', () => go(cursor));
  return [button];
}

/** A key's name that leads to what there is to know of it. */
function keyButton({ text, id }) {
  if (id === null) return make('span', { text });
  const button = make('button', { type: 'button', text: text === '' ? '(empty)' : text });
  button.addEventListener('click', () => inspect(id, text, true));
  return button;
}

// The last hour.

const CHARTS = [
  { title: 'Operations a second', how: count, lines: [['', (a, b) => rate(a, b, 'commands')]] },
  { title: 'Hit ratio', how: percent, top: 1, lines: [['', hitRatio]] },
  { title: 'Leaving, a second', how: count, lines: [['expired', (a, b) => rate(a, b, 'expired')], ['evicted', (a, b) => rate(a, b, 'evicted')]] },
  { title: 'How late: 99 % within', how: time, lines: [['', (a, b) => lateWithin(lateBetween(a, b), 0.99)]] },
  { title: 'Keys', how: count, lines: [['all', (_, b) => b.keys], ['with a deadline', (_, b) => b.keys_with_deadline]] },
  { title: 'Memory', how: bytes, lines: [['data', (_, b) => b.memory], ['of the process', (_, b) => b.resident]] },
  { title: 'Network, a second', how: bytes, lines: [['in', (a, b) => rate(a, b, 'input_bytes')], ['out', (a, b) => rate(a, b, 'output_bytes')]] },
  { title: 'Processor', how: percent, lines: [['of one core', (a, b) => rate(a, b, 'cpu_s')]] },
];

const [WIDE, HIGH] = [300, 80];

function makeCharts() {
  find('.charts').replaceChildren(...CHARTS.map((chart) => {
    chart.cursor = make('svg:path', { class: 'cursor' });
    chart.paths = chart.lines.map((_, i) => make('svg:path', { class: i ? 'two' : 'one' }));
    chart.area = make('svg:path', { class: 'area' });
    chart.svg = make('svg:svg', { viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', role: 'img', tabindex: '0' }, chart.area, ...chart.paths, chart.cursor);
    chart.legend = make('div', { class: 'legend' }, ...chart.lines.map((_, i) => make('span', { class: i ? 'two' : 'one' })));
    chart.most = make('span');
    chart.when = make('span');
    chart.chosen = null;
    const choose = (part) => { chart.chosen = part === null ? null : Math.max(0, Math.min(1, part)); drawChart(chart); };
    chart.svg.addEventListener('pointermove', (event) => choose(event.offsetX / chart.svg.clientWidth));
    chart.svg.addEventListener('pointerleave', () => choose(null));
    chart.svg.addEventListener('blur', () => choose(null));
    chart.svg.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
      if (event.key === 'Escape') choose(null);
      if (step === undefined) return;
      event.preventDefault();
      choose((chart.chosen ?? 1) + step);
    });
    return make('figure', { class: 'chart' }, make('h3', { text: chart.title }), chart.legend, chart.svg, make('div', { class: 'scale' }, chart.most, chart.when));
  }));
}

/** The values of a chart's lines: `[ms, value, …]` for each pair of rows that are shown. */
function values(chart, from) {
  const told = [];
  for (let i = 1; i < known.rows.length; i += 1) {
    const [before, row] = [known.rows[i - 1], known.rows[i]];
    if (row.time_ms < from) continue;
    const isGap = row.time_ms - before.time_ms > 3 * EVERY_S * 1000;
    told.push([row.time_ms, ...chart.lines.map(([, of]) => (isGap ? null : of(before, row)))]);
  }
  return told;
}

/** Where charts begin: so many minutes ago, or where the rows begin. */
function beginning() {
  const [first, now] = [known.rows[0].time_ms, known.numbers.time_ms];
  return Math.max(now - known.minutes * 60000, Math.min(first, now - 30000));
}

function drawChart(chart) {
  const to = known.numbers.time_ms;
  const from = beginning();
  const told = values(chart, from);
  const greatest = Math.max(...told.flatMap(([, ...of]) => of).filter((value) => value !== null), 0);
  const top = chart.top ?? (greatest * 1.1 || 1);
  const x = (ms) => (((ms - from) / (to - from)) * WIDE).toFixed(1);
  const y = (value) => (HIGH - 2 - (Math.min(value, top) / top) * (HIGH - 6)).toFixed(1);
  chart.paths.forEach((path, i) => {
    let [line, pen] = ['', 'M'];
    let [area, begun] = ['', null];
    const close = (at) => { if (begun !== null) area += `L${at} ${HIGH}L${begun} ${HIGH}Z`; begun = null; };
    let last = null;
    for (const row of told) {
      const value = row[i + 1];
      if (value === null) { close(last); pen = 'M'; continue; }
      last = x(row[0]);
      line += `${pen}${last} ${y(value)}`;
      if (begun === null) begun = last;
      area += `${pen}${last} ${y(value)}`;
      pen = 'L';
    }
    close(last);
    path.setAttribute('d', line);
    if (i === 0) chart.area.setAttribute('d', area);
  });
  const moment = chart.chosen === null ? told.at(-1) : nearest(told, from + chart.chosen * (to - from));
  chart.cursor.setAttribute('d', chart.chosen === null || !moment ? '' : `M${x(moment[0])} 0V${HIGH}`);
  chart.lines.forEach(([name], i) => {
    const value = moment?.[i + 1] ?? null;
    say(chart.legend.children[i], [name, shown(value, chart.how)].filter(Boolean).join(' '));
  });
  say(chart.most, greatest > 0 ? `most ${chart.how(greatest)}` : '');
  say(chart.when, chart.chosen === null || !moment ? `last ${time(Math.round((to - from) / 1000) * 1000)}` : clockTime(moment[0]));
  const spoken = [...chart.legend.children].map((part) => part.textContent).join(', ');
  chart.svg.setAttribute('aria-label', `${chart.title}: ${chart.when.textContent}: ${spoken}; ${chart.most.textContent}`);
}

const nearest = (told, ms) => told.reduce((best, row) => (!best || Math.abs(row[0] - ms) < Math.abs(best[0] - ms) ? row : best), null);

/** Keeps a row for each five seconds, and the newest. */
function keep(row) {
  const { rows } = known;
  if (rows.length > 1 && row.time_ms - rows.at(-2).time_ms < EVERY_S * 1000) rows.pop();
  rows.push(row);
  while (rows[0].time_ms < row.time_ms - 3600000) rows.shift();
}

async function loadHour() {
  try {
    const { names, rows } = await ask('/hour', { every: EVERY_S });
    known.rows = rows.map((row) => {
      const numbers = Object.fromEntries(names.map((name, i) => [name, row[i]]));
      return { ...numbers, late_us_by_power: row.slice(names.length) };
    });
  } catch { /* The charts begin with what they have. */ }
}

// How late, and how long.

function makeHistogram() {
  find('.histogram').replaceChildren(...Array.from({ length: 24 }, (_, power) => {
    const track = make('div', { class: 'track' }, make('span', { class: 'over' }), make('div', { class: 'fill' }));
    const foot = power % 4 === 0 ? time(2 ** power / 1000) : '\u00a0';
    return make('div', {}, track, make('div', { class: 'foot', text: foot }));
  }));
}

function drawHistogram() {
  const before = known.since === 'minute' ? rowBefore(60000) : null;
  const counts = lateBetween(before, known.numbers);
  const all = counts.reduce((sum, number) => sum + number, 0);
  const top = Math.log10(1 + Math.max(10, ...counts));
  find('.histogram').childNodes.forEach((bar, power) => {
    bar.firstChild.lastChild.style.setProperty('--part', `${(100 * Math.log10(1 + counts[power])) / top}%`);
    bar.title = `${keysOf(counts[power])} within ${time(2 ** power / 1000)}`;
  });
  const quantile = (part, name) => `${name} within ${shown(lateWithin(counts, part), time)}`;
  const said = all === 0 ? 'No key has left.' : `${keysOf(all)}: ${quantile(0.5, 'half')}, ${quantile(0.99, '99 %')}, ${quantile(0.999, '99.9 %')}, all ${quantile(1, '').trim()}. Heights are logarithmic.`;
  say(find('#lateness .summary'), said);
}

/** Calls in each bucket of a histogram that adds up. */
const eachBucket = (buckets) => buckets.map(([us, sum], i) => [us, sum - (i ? buckets[i - 1][1] : 0)]);

function within(buckets, calls, part) {
  const bucket = buckets.find(([, sum]) => sum >= calls * part);
  return bucket ? time(bucket[0] / 1000) : '–';
}

/** A small histogram: powers of two of microseconds from left to right. */
function sparkBars(name, buckets) {
  const bars = eachBucket(buckets);
  const top = Math.log10(1 + Math.max(...bars.map(([, calls]) => calls)));
  return make('svg:svg', { viewBox: '0 0 100 20', preserveAspectRatio: 'none', role: 'img', 'aria-label': `Times of ${name}, from 1 µs to 1 s` },
    ...bars.filter(([, calls]) => calls > 0).map(([us, calls]) => {
      const place = Math.min(20, Math.max(0, Math.log2(us)));
      const high = Math.max(1, (Math.log10(1 + calls) / top) * 20);
      return make('svg:rect', { x: (place * 100) / 21, y: 20 - high, width: 4, height: high });
    }));
}

function drawLatencies(part) {
  show(find('#latencies .rows'), part, (commands) => table(
    [['Command', ''], ['Calls', 'number'], ['Half within', 'number'], ['99 %', 'number'], ['99.9 %', 'number'], ['1 µs to 1 s', '']],
    commands.slice(0, 8).map(([name, calls, buckets]) => [name, count(calls), ...[0.5, 0.99, 0.999].map((p) => within(buckets, calls, p)), sparkBars(name, buckets)]),
    'No command has been timed yet.',
  ));
}

// Slow calls, clients, large keys, one key.

function drawSlow(part) {
  show(find('#slow .rows'), part, (calls) => table(
    [['At', ''], ['Took', 'number'], ['Call', 'wide'], ['From', '']],
    calls.map(({ at_s: at, us, call, from }) => [clockTime(at * 1000), time(us / 1000), call, from]),
    'No call has been slow.',
  ));
}

function drawClients(part) {
  show(find('#clients .rows'), part, (clients) => table(
    [['Address', ''], ['Name', 'wide'], ['User', ''], ['Last command', ''], ['Since', 'number'], ['Idle', 'number'], ['Memory', 'number']],
    clients.map((of) => [of.address, of.name, of.user, of.command, time(of.age_s * 1000), time(of.idle_s * 1000), bytes(of.bytes)]),
    'No client.',
  ));
}

function lookForLarge(cursor) {
  askInto(find('#large .rows'), '/largest', cursor ? { cursor } : {}, (answer) => {
    const keys = table([['Key', 'wide'], ['Type', ''], ['Bytes', 'number']], answer.keys.map(({ key, type, bytes: size }) => [keyButton(key), type, bytes(size)]), 'There is no key.');
    return [make('p', {}, `The largest of ${keysOf(answer.looked)}. `, ...further(answer, lookForLarge)), keys];
  });
}

/** Shows what there is to know of a key, by its name as an address takes it. */
function inspect(id, name, jumps) {
  if (jumps) {
    find('#key-name').value = name;
    find('#key').scrollIntoView({ behavior: still.matches ? 'auto' : 'smooth' });
  }
  askInto(find('#key .detail'), '/key', { key: id }, (key) => {
    if (key.type === 'none') return make('p', { text: 'There is no such key.' });
    const of = (part, how) => (part?.no !== undefined ? `not allowed (${part.no})` : how(part));
    const parts = [facts([
      ['Key', key.key.text],
      ['Type', of(key.type, String)],
      ['Time left', of(key.ms, (ms) => (ms === -1 ? 'no deadline' : ms < 0 ? 'gone' : `${time(ms)}, until ${new Date(Date.now() + ms).toLocaleString()}`))],
      ['Length', of(key.length, (length) => (length === undefined ? '–' : whole.format(length)))],
      ['Memory', of(key.bytes, bytes)],
      ['Encoding', of(key.encoding, String)],
    ])];
    if (key.members?.no !== undefined) parts.push(refusal(key.members.no));
    else if (key.members) {
      const { looked, timed } = key.members;
      parts.push(make('h3', { text: 'Members with deadlines of their own' }));
      parts.push(table([['Member', 'wide'], ['Time left', 'number']], timed.map(({ member, ms }) => [member, time(ms)]), `None of the ${looked} that were looked at.`));
    }
    return parts;
  });
}

// What comes, and when.

function drawSecond() {
  if (known.numbers === null) return;
  drawFigures();
  CHARTS.forEach(drawChart);
  drawHistogram();
}

function drawDatabases() {
  const select = find('#database');
  const numbers = [...new Set([0, known.db, ...known.databases.map(({ db }) => db)])].sort((a, b) => a - b);
  if ([...select.options].map(({ value }) => value).join() === numbers.join()) return;
  select.replaceChildren(...numbers.map((db) => make('option', { value: db, text: String(db) })));
  select.value = String(known.db);
}

/** Tells in a section's place why it shows nothing; or shows it again. */
function deny(sections, why) {
  for (const section of document.querySelectorAll(sections)) {
    section.querySelector(':scope > .no')?.remove();
    section.classList.toggle('denied', why !== undefined);
    if (why !== undefined) section.append(refusal(why));
  }
}

/** Takes what `/events` tells each second. */
function take({ numbers, databases, forecast }) {
  known.at = performance.now();
  if (numbers) deny('#now, #hour, #lateness', numbers.no);
  if (forecast) deny('#wheels, #forecast', forecast.no);
  if (numbers && numbers.no === undefined) {
    known.before = known.numbers;
    known.numbers = numbers;
    known.databases = databases;
    keep(numbers);
    drawDatabases();
    drawSecond();
  }
  if (forecast && forecast.no === undefined) {
    known.forecast = forecast;
    nameDials();
    drawForecast();
  }
}

/** Takes what is looked at every five seconds. */
async function refresh() {
  if (document.hidden || known.paused) return;
  try {
    const parts = wanted(['user', 'about', 'latencies', 'slow', 'clients']);
    const now = await ask('/now', { parts });
    wanted([], now);
    if (now.latencies) drawLatencies(now.latencies);
    if (now.slow) drawSlow(now.slow);
    if (now.clients) drawClients(now.clients);
    drawAbout(now);
  } catch (error) {
    state('lost', error.message);
  }
}

function drawAbout({ about: of, user }) {
  const words = of && of.no === undefined ? [`version ${of.tidewheel_version}`, `port ${of.tcp_port}`, `up ${time(of.uptime_in_seconds * 1000)}`] : [];
  if (typeof user === 'string') words.push(`you are ${user}`);
  say(find('#about'), words.join(' · '));
}

function state(kind, text) {
  find('#state').className = `state ${kind}`;
  say(find('#state'), text);
}

let events = null;
let again = null;

function close() {
  events?.close();
  events = null;
  clearTimeout(again);
}

/** Opens the stream of events. Whoever sees numbers gets the hour with the first of them. */
function open() {
  close();
  if (document.hidden || known.paused) return;
  const parts = ['numbers', 'forecast'];
  const asked = wanted(parts);
  const stream = new EventSource(`/events?db=${known.db}&parts=${asked}`);
  events = stream;
  let isFirst = true;
  stream.addEventListener('message', async ({ data }) => {
    const second = JSON.parse(data);
    if (isFirst && second.numbers && second.numbers.no === undefined) await loadHour();
    isFirst = false;
    if (stream !== events) return;
    state('live', 'live');
    take(second);
    if (wanted(parts, second) !== asked) open();
  });
  stream.addEventListener('error', () => {
    state('lost', 'no connection; trying again');
    if (stream.readyState === EventSource.CLOSED) again = setTimeout(open, 5000);
  });
}

function start() {
  makeDials();
  makeForecast();
  makeCharts();
  makeHistogram();
  turnDials();
  choice(document.querySelectorAll('[data-minutes]'), (button) => {
    known.minutes = Number(button.dataset.minutes);
    say(find('#span-name'), known.minutes === 60 ? 'hour' : '5 minutes');
    drawSecond();
  });
  choice(document.querySelectorAll('[data-since]'), (button) => {
    known.since = button.dataset.since;
    drawSecond();
  });
  find('#pause').addEventListener('click', () => {
    known.paused = !known.paused;
    find('#pause').setAttribute('aria-pressed', String(known.paused));
    if (known.paused) { close(); state('', 'paused'); } else { open(); refresh(); }
  });
  find('#database').addEventListener('change', ({ target }) => {
    known.db = Number(target.value);
    open();
    refresh();
  });
  find('#look-large').addEventListener('click', () => lookForLarge());
  find('#key form').addEventListener('submit', (event) => {
    event.preventDefault();
    const name = find('#key-name').value;
    inspect(encodeURIComponent(name), name, false);
  });
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  dark.addEventListener('change', drawDials);
  open();
  refresh();
  setInterval(refresh, EVERY_S * 1000);
}

start();
