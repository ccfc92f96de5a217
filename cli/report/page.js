"use strict";
// Everything that comes from a run is put in as text: nothing here makes markup of strings.
const byId = id => document.getElementById(id);
const firstReport = JSON.parse(byId("data").textContent);
let runs = firstReport.runs;

function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text", "g", "circle", "rect"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") element.style.cssText = value;  // the policy of the page lets no attribute have it
    else element.setAttribute(name, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

function shown(value) {
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  if (size >= 1e9) return (value / 1e9).toFixed(2) + "G";
  if (size >= 1e6) return (value / 1e6).toFixed(2) + "M";
  if (size >= 1e4) return (value / 1e3).toFixed(1) + "k";
  return Number.isInteger(value) || size >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}
function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) value /= 1000, unit++;
  return (value >= 100 || unit === 0 ? value.toFixed(0) : value.toFixed(1)) + " " + units[unit];
}
function duration(seconds) {
  if (seconds < 90) return seconds.toFixed(0) + " s";
  if (seconds < 5400) return (seconds / 60).toFixed(0) + " min";
  return (seconds / 3600).toFixed(1) + " h";
}
// The runs of one combination of a sweep are shown as one, with one colour; any other run is alone.
let groups = [];
function findGroups() {
  groups = [];
  for (const run of runs) {
    let group = groups.find(one => run.combination !== undefined && one.combination === run.combination);
    if (!group) groups.push(group = {name: run.combination ?? run.name, combination: run.combination, index: groups.length, runs: []});
    group.runs.push(run);
    run.group = group.index;
  }
}
findGroups();
const color = group => `var(--run-${group % 6})`;
const dash = group => ["", "6 3", "2 3", "8 3 2 3"][Math.floor(group / 6) % 4];
const swatch = group => make("svg", {class: "swatch", viewBox: "0 0 24 4", "aria-hidden": "true"}, make("line", {x1: 0, x2: 24, y1: 2, y2: 2, stroke: color(group), "stroke-dasharray": dash(group)}));

// Puts these into `parent` and leaves those that are there already where they are: they keep focus, scrolling and selection.
function arrange(parent, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  nodes.forEach((node, i) => parent.children[i] === node || parent.insertBefore(node, parent.children[i] ?? null));
}

// Draws a part of the page anew if its data have changed; while some of its text is selected, later.
const drawn = new Map(), later = new Map();
function isSelected(element) {
  const selection = document.getSelection();
  return selection.rangeCount > 0 && !selection.isCollapsed && selection.getRangeAt(0).intersectsNode(element);
}
function settle(element, data, draw) {
  const text = JSON.stringify(data);
  later.delete(element);
  if (drawn.get(element) === text) return;
  if (isSelected(element)) {
    later.set(element, () => settle(element, data, draw));
    return;
  }
  drawn.set(element, text);
  draw();
}
document.addEventListener("selectionchange", () => {
  for (const [element, again] of [...later]) if (!isSelected(element)) again();
});

// A name may be broken after its slashes and underscores.
function named(name) {
  return name.split(/(?<=[/_])/).flatMap((part, i) => i ? [make("wbr"), part] : [part]);
}

// ---- Which metrics matter first: a line each; the first pattern of it that some metric has gets a plot.
const FIRST = [
  [/^reward\/score_mean$/, /^reward\/(?!.*(std|zero_variance)).*mean$/],
  [/^held_out\/reward\/.*mean$/, /^(?!reward|rollout)[^/]+\/reward\/.*mean$/],
  [/^reference\/kl_mean$/, /(^|\/)kl_mean$/],
  [/^policy\/loss$/, /(^|\/)loss$/],
  [/accuracy/],
  [/entropy_mean$/],
  [/^rollout\/response_length_mean$/],
  [/grad_norm$/],
  [/^time\/sampled_tokens_per_second$/, /tokens_per_second$/],
];
let allMetrics = [], firstMetrics = [];
const first = patterns => patterns.map(pattern => allMetrics.find(name => pattern.test(name))).find(Boolean);
function findMetrics() {
  allMetrics = [...new Set(runs.flatMap(run => Object.keys(run.series)))];
  firstMetrics = [...new Set(FIRST.map(first).filter(Boolean))];
  if (!firstMetrics.length) firstMetrics.push(...allMetrics.slice(0, 6));
}

// ---- Heads
function tile(name, value, small) {
  return make("div", {class: "tile"}, make("dt", {}, ...named(name)), make("dd", {}, value, small ? make("small", {}, ...named(small)) : null));
}
function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.round(share * (sorted.length - 1))];
}
function mean(values) { return values.reduce((sum, value) => sum + value, 0) / values.length; }
function change(run, name) {
  const series = run.series[name];
  if (!series || !series.y.length) return null;
  const few = Math.max(1, Math.min(10, Math.floor(series.y.length / 4)));
  return [mean(series.y.slice(0, few)), mean(series.y.slice(-few))];
}
function deviation(values) {
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}
// As `sweep --table` has it: the mean of the last 10 iterations, or the last value of what none of these has.
function final(run, name) {
  const series = run.series[name], end = Math.max(...Object.values(run.series).map(one => one.x[one.x.length - 1]));
  if (!series || !series.y.length) return null;
  const last = series.y.filter((_, i) => series.x[i] > end - 10);
  return last.length ? mean(last) : series.y[series.y.length - 1];
}
function spread(group, name) {
  const values = group.runs.map(run => final(run, name)).filter(value => value !== null);
  if (!values.length) return "";
  return shown(mean(values)) + (values.length > 1 ? ` ± ${shown(Number(deviation(values).toPrecision(2)))}` : "");
}
const finishedOf = group => group.runs.filter(run => run.state === "done").length;
function headOfGroup(group) {
  const tiles = make("dl", {class: "tiles"});
  tiles.append(tile("runs", String(group.runs.length), `${finishedOf(group)} finished`));
  for (const name of firstMetrics.slice(0, 4)) if (spread(group, name)) tiles.append(tile(name, spread(group, name), "last 10 iterations"));
  return make("div", {class: "run"}, make("h1", {}, swatch(group.index), group.name), make("p", {class: "when"}, group.runs.map(run => run.name).join(" · ")), tiles);
}
function headOfSweep(combinations) {
  const names = firstMetrics.slice(0, 4);
  const heading = (...content) => make("th", {scope: "col", class: "number"}, ...content);
  const rows = combinations.map(group => make("tr", {}, make("td", {}, swatch(group.index), " ", group.name), ...names.map(name => make("td", {class: "number"}, spread(group, name))),
    make("td", {class: "number"}, `${finishedOf(group)} of ${group.runs.length}`)));
  return make("div", {class: "run"}, make("h1", {}, document.title.split(" – ")[0]), make("p", {class: "when"}, "Last 10 iterations of each run, mean ± standard deviation over the runs of a combination"),
    make("div", {class: "card scroll", style: "max-height: none", tabindex: "0", role: "region", "aria-label": "combinations"}, make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "combination"), ...names.map(name => heading(...named(name))), heading("finished"))), make("tbody", {}, ...rows))));
}
function head(run) {
  const state = run.state === "done" ? "finished" : run.state;
  const tiles = make("dl", {class: "tiles"});
  tiles.append(tile("iterations", String(run.iterations_done || Math.max(0, ...Object.values(run.series).map(s => s.x.length ? s.x[s.x.length - 1] + 1 : 0))),
    run.iterations ? `of ${run.iterations}, ${state}` : state));
  for (const name of firstMetrics.slice(0, 3)) {
    const values = change(run, name);
    if (values) tiles.append(tile(name, shown(values[1]), `from ${shown(values[0])}`));
  }
  const speed = allMetrics.find(name => /tokens_per_second$/.test(name) && run.series[name]);
  if (speed) tiles.append(tile("tokens per second", shown(quantile(run.series[speed].y, 0.5)), "median of " + speed));
  if (run.memory && run.memory.peak_bytes) tiles.append(tile("memory", bytes(run.memory.peak_bytes), `${bytes(run.memory.planned_bytes)} planned`));
  const when = !run.ended ? "no iteration has ended yet" : run.seconds ? `${run.began.replace("T", " ")} to ${run.ended.replace("T", " ")}, ${duration(run.seconds)}` : `until ${run.ended}`;
  return make("div", {class: "run"}, make("h1", {}, runs.length > 1 ? swatch(run.group) : null, run.name), make("p", {class: "when"}, `${when} · ${run.folder}`), tiles);
}
function drawHeads() {
  settle(byId("heads"), runs.map(({name, folder, state, seconds, iterations, iterations_done, memory}) => [name, folder, state, seconds, iterations, iterations_done, memory]),
    () => byId("heads").replaceChildren(...headsOf(groups)));
}
// Many combinations are a table, few have a head each, as runs have.
function headsOf(groups) {
  const combinations = groups.filter(group => group.combination !== undefined), inTable = combinations.length > 4;
  return [...(inTable ? [headOfSweep(combinations)] : []),
    ...groups.filter(group => !inTable || group.combination === undefined).map(group => group.runs.length > 1 ? headOfGroup(group) : head(group.runs[0]))];
}

// ---- Plots
const WIDTH = 460, HEIGHT = 220, LEFT = 56, RIGHT = 10, TOP = 8, BOTTOM = 26;
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(s => s * power).find(s => s >= raw * 0.999);
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9) + (step / power === 2.5 ? 1 : 0));
  const label = value => Math.abs(value) >= 1e4 || (digits > 5 && value !== 0) ? shown(Number(value.toPrecision(6))) : value.toFixed(Math.min(6, digits));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push({value: k * step, text: label(k * step)});
  return found;
}
function smoothed(values, weight) {
  let state = 0, share = 0;
  return values.map(value => (state = state * weight + value * (1 - weight), share = share * weight + 1 - weight, state / share));
}
const pathOf = (xs, ys, x, y) => xs.map((value, i) => `${i ? "L" : "M"}${x(value).toFixed(1)} ${y(ys[i]).toFixed(1)}`).join("");

// Of several runs their mean, where a line between two points stands for what is between them.
function meanOf(lines) {
  const xs = [...new Set(lines.flatMap(line => line.x))].sort((a, b) => a - b);
  const sums = xs.map(() => 0), counts = xs.map(() => 0);
  for (const line of lines) {
    let next = 0;
    xs.forEach((x, i) => {
      while (next < line.x.length && line.x[next] < x) next++;
      if (next === line.x.length || (next === 0 && line.x[0] > x)) return;
      const back = line.x[next] === x ? next : next - 1, share = back === next ? 0 : (x - line.x[back]) / (line.x[next] - line.x[back]);
      sums[i] += line.y[back] * (1 - share) + line.y[next] * share, counts[i]++;
    });
  }
  return {x: xs, y: sums.map((sum, i) => sum / counts[i])};
}
// The card of a metric. What it draws follows the data; the card itself stays, with its focus and its open table.
function plot(name) {
  const card = make("article", {class: "card plot"});
  const last = make("span", {class: "last"}), close = make("button", {type: "button", class: "close", "aria-label": `remove the plot of ${name}`}, "×");
  close.addEventListener("click", () => removePlot(card));
  const svg = make("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: "0", role: "img"});
  const readout = make("p", {class: "readout", "aria-live": "polite"}), table = make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `values of ${name}`});
  const details = make("details", {}, make("summary", {}, "Table"), table);
  card.append(make("div", {class: "top"}, make("h3", {}, ...named(name)), last, close), svg, readout, details);
  card.dataset.metric = name;

  let shownNow, at = null;  // what is drawn; the iteration that is read, null: none
  function read(iteration) {
    at = iteration;
    const {having, stops, x, cross, rest} = shownNow;
    cross.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at === null) return readout.replaceChildren(...rest);
    for (const end of ["x1", "x2"]) cross.setAttribute(end, x(at));
    const parts = having.map(one => {
      const place = one.series.x.indexOf(at);
      return place < 0 ? null : make("span", {}, groups.length > 1 ? swatch(one.index) : "", " ", make("b", {}, shown(one.series.y[place])), " ");
    });
    readout.replaceChildren(`iteration ${at}: `, ...parts.filter(Boolean));
  }
  const readAt = place => read(shownNow.stops[Math.max(0, Math.min(shownNow.stops.length - 1, place))]);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), {stops, first, end} = shownNow;
    const value = first + ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * (end - first);
    readAt(stops.reduce((best, stop, i) => Math.abs(stop - value) < Math.abs(stops[best] - value) ? i : best, 0));
  });
  svg.addEventListener("keydown", event => {
    const {stops} = shownNow, step = {ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -stops.length, End: stops.length}[event.key];
    if (step) event.preventDefault(), readAt((at === null ? stops.length - 1 : stops.indexOf(at)) + step);
  });
  svg.addEventListener("focus", () => at === null && readAt(shownNow.stops.length - 1));
  for (const event of ["pointerleave", "blur"]) svg.addEventListener(event, () => document.activeElement === svg && event === "pointerleave" || read(null));
  details.addEventListener("toggle", fillTable);
  function fillTable() {
    if (details.open) settle(table, shownNow.having.map(one => one.series), () => table.replaceChildren(valueTable(shownNow.having, shownNow.stops)));
  }

  card.draw = () => {
    const having = groups.map(group => ({name: group.name, index: group.index, lines: group.runs.map(run => run.series[name]).filter(series => series && series.y.length)})).filter(one => one.lines.length);
    for (const one of having) one.series = one.lines.length > 1 ? meanOf(one.lines) : one.lines[0];
    const text = JSON.stringify([having.map(one => one.lines), byId("smooth").value]);
    if (drawn.get(card) === text) return;
    drawn.set(card, text);
    last.textContent = having.length > 6 ? "" : having.map(one => shown(one.series.y[one.series.y.length - 1])).join(" · ");
    shownNow = drawCurves(name, svg, having);
    if (!shownNow.stops.includes(at)) at = null;
    read(at);
    fillTable();
  };
  card.draw();
  return card;
}
function drawCurves(name, svg, having) {
  const xs = having.flatMap(one => one.series.x), ys = having.flatMap(one => one.lines.flatMap(line => line.y));
  const [lowest, highest] = [Math.min(...ys), Math.max(...ys)];
  let [low, high] = [lowest, highest];
  // A few values far away would flatten all the others: they are drawn at the edge, and the card says so.
  const [usualLow, usualHigh] = [quantile(ys, 0.02), quantile(ys, 0.97)], usual = usualHigh - usualLow;
  if (usual > 0 && high - usualHigh > 3 * usual) high = usualHigh + usual / 2;
  if (usual > 0 && usualLow - low > 3 * usual) low = usualLow - usual / 2;
  if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 10, high + (Math.abs(high) || 1) / 10];
  const [first, end] = [Math.min(...xs), Math.max(...xs, Math.min(...xs) + 1)];
  const margin = (high - low) * 0.05;
  const x = value => LEFT + (value - first) / (end - first) * (WIDTH - LEFT - RIGHT);
  const y = value => Math.max(TOP, Math.min(HEIGHT - BOTTOM, TOP + (high + margin - value) / (high - low + 2 * margin) * (HEIGHT - TOP - BOTTOM)));
  svg.setAttribute("aria-label", `${name} over iterations. ` + having.map(one => `${one.name}: from ${shown(one.series.y[0])} to ${shown(one.series.y[one.series.y.length - 1])}`).join("; ") + ". Arrow keys read values.");
  const parts = ticks(low, high, 4).flatMap(({value, text}) => [make("line", {class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value)}),
    make("text", {x: LEFT - 6, y: y(value) + 4, "text-anchor": "end"}, text)]);
  for (const {value} of ticks(first, end, 5).filter(tick => Number.isInteger(tick.value)))
    parts.push(make("text", {x: x(value), y: HEIGHT - 7, "text-anchor": "middle"}, shown(value)));
  parts.push(make("line", {class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM}));
  const weight = Number(byId("smooth").value);
  for (const {index, lines} of having.filter(one => one.lines.length > 1))
    for (const line of lines) parts.push(make("path", {class: "seed", d: pathOf(line.x, weight ? smoothed(line.y, weight) : line.y, x, y), stroke: color(index)}));
  for (const {index, series, lines} of having) {
    const style = {stroke: color(index), "stroke-dasharray": dash(index)};
    if (weight && lines.length === 1) parts.push(make("path", {class: "raw", d: pathOf(series.x, series.y, x, y), ...style}));
    if (series.x.length === 1) parts.push(make("circle", {cx: x(series.x[0]), cy: y(series.y[0]), r: 3, fill: color(index)}));
    parts.push(make("path", {d: pathOf(series.x, weight ? smoothed(series.y, weight) : series.y, x, y), ...style}));
  }
  const cross = make("line", {class: "cross", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden"});
  svg.replaceChildren(...parts, cross);
  const beyond = [highest > high ? `up to ${shown(highest)}` : "", lowest < low ? `down to ${shown(lowest)}` : ""].filter(Boolean).join(", ");
  return {having, x, first, end, cross, stops: [...new Set(xs)].sort((a, b) => a - b), rest: beyond ? [`Some values are beyond the edge: ${beyond}.`] : []};
}
function removePlot(card) {
  const next = card.nextElementSibling ?? card.previousElementSibling;
  card.remove();
  fillMore();
  (next ? next.querySelector("svg") : byId("more")).focus();
}
function valueTable(having, stops) {
  const head = make("tr", {}, make("th", {scope: "col"}, "iteration"), ...having.map(one => make("th", {scope: "col", class: "number"}, one.lines.length > 1 ? `mean of ${one.name}` : one.name)));
  const places = having.map(one => new Map(one.series.x.map((value, i) => [value, one.series.y[i]])));
  const rows = stops.map(stop => make("tr", {}, make("td", {}, String(stop)), ...places.map(place => make("td", {class: "number"}, place.has(stop) ? String(place.get(stop)) : ""))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}
const plotted = () => [...byId("plots").children].map(card => card.dataset.metric);
function fillMore() {
  if (document.activeElement === byId("more")) return;  // it may be open
  const there = new Set(plotted()), groups = new Map();
  for (const name of allMetrics.filter(name => !there.has(name)).sort()) {
    const group = name.includes("/") ? name.slice(0, name.indexOf("/")) : "other";
    if (!groups.has(group)) groups.set(group, make("optgroup", {label: group}));
    groups.get(group).append(make("option", {value: name}, name));
  }
  byId("more").replaceChildren(make("option", {value: ""}, "…"), ...groups.values());
}
function drawPlots() {
  const before = firstMetrics;
  findMetrics();
  for (const name of firstMetrics) if (!before.includes(name) && !plotted().includes(name)) byId("plots").append(plot(name));
  for (const card of byId("plots").children) card.draw();
  fillMore();
}
byId("more").addEventListener("change", event => {
  if (!event.target.value) return;
  byId("plots").append(plot(event.target.value));
  event.target.value = "";
});
byId("more").addEventListener("blur", fillMore);
byId("smooth").addEventListener("change", drawPlots);
if (runs.length > 1) byId("legend").append(...groups.map(group => make("span", {}, swatch(group.index), group.name)));

// ---- Samples
let order = {key: "", down: false};
function marked(text, word) {
  if (!word) return [text];
  const parts = [], lower = text.toLowerCase();
  let begin = 0;
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, begin)) {
    parts.push(text.slice(begin, at), make("mark", {}, text.slice(at, at + word.length)));
    begin = at + word.length;
  }
  return [...parts, text.slice(begin)];
}
// Of a sample that comes into view: all at once they would be a hundred thousand elements.
const seen = new IntersectionObserver(entries => {
  for (const {isIntersecting, target} of entries) if (isIntersecting) seen.unobserve(target), target.paint();
}, {rootMargin: "400px"});
function pieces(sample, measure) {
  const box = make("div", {class: "text pieces"}, sample.pieces.join(""));
  box.paint = () => box.replaceChildren(...paintedPieces(sample, measure));
  seen.observe(box);
  return box;
}
// By the measures of cli/samples/token_colours.cpp.
const legends = {
  advantage: " Tokens are coloured by their advantage: green above 0, red below.",
  kl: " Tokens are coloured by their KL: the stronger, the more.",
  probability: " Tokens are coloured by their probability: the stronger, the less likely.",
};
function paintedPieces(sample, measure) {
  const numbers = sample.pieces_by[measure] ?? [], isLog = measure === "probability";
  const most = Math.max(1e-9, ...numbers.map(Math.abs));
  return sample.pieces.map((text, i) => {
    if (numbers[i] == null) return make("span", {}, text);
    const value = isLog ? Math.exp(numbers[i]) : numbers[i], strength = isLog ? 1 - value : Math.abs(value) / most;
    const tone = measure === "advantage" && value >= 0 ? "--plus" : "--minus";
    return make("span", {style: `background: rgba(var(${tone}), ${(0.5 * strength).toFixed(3)})`, title: `${measure} ${shown(value)}`}, text);
  });
}
// What some of them have been measured by; the one that was chosen, or the first.
function measureOf(samples) {
  const there = Object.keys(legends).filter(measure => samples.some(sample => sample.pieces_by?.[measure]));
  const choice = byId("sample-colour"), chosen = there.includes(choice.value) ? choice.value : there[0] ?? "";
  if ([...choice.options].map(option => option.value).join() !== there.join()) choice.replaceChildren(...there.map(measure => make("option", {}, measure)));
  if (chosen) choice.value = chosen;
  byId("sample-colours").hidden = there.length < 2;
  return chosen;
}
const keysOf = samples => [...new Set(samples.flatMap(sample => Object.keys(sample)))].filter(key => !key.startsWith("pieces"));
const sampleKey = make("p", {class: "key"}), sampleHead = make("tr", {}), sampleRows = make("tbody", {});
const sampleCard = make("div", {class: "card scroll samples", style: "max-height: 46rem", tabindex: "0", role: "region", "aria-label": "samples"}, make("table", {}, make("thead", {}, sampleHead), sampleRows));
let rowsOfSamples = new Map();  // by their content: those that stay keep their scrolling
function rowOf(sample, keys, isNumber, word, measure) {
  return make("tr", {}, ...keys.map(key => {
    if (isNumber(key)) return make("td", {class: "number", "data-name": key}, sample[key] === undefined ? "" : shown(sample[key]));
    if (key === "response" && sample.pieces) return make("td", {"data-name": key}, pieces(sample, measure));
    return make("td", {"data-name": key}, make("div", {class: "text"}, ...marked(String(sample[key] ?? ""), word)));
  }));
}
function headOf(key, isNumber) {
  const button = make("button", {type: "button"}, key);
  button.addEventListener("click", () => {
    order = {key, down: order.key === key && !order.down};
    showSamples();
  });
  const cell = make("th", {scope: "col", class: isNumber(key) ? "number" : ""}, button);
  if (order.key === key) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
  return cell;
}
function showSamples() {
  const samples = runs[Number(byId("sample-run").value)].samples, word = byId("sample-find").value.toLowerCase();
  const measure = measureOf(samples);
  settle(byId("sample-list"), [samples, word, order, byId("sample-run").value, measure], () => drawSamples(samples, word, measure));
}
function drawSamples(samples, word, measure) {
  if (!samples.length) {
    byId("sample-list").replaceChildren(make("p", {class: "key"}, "This run has saved no samples: a node of type write_jsonl saves them."));
    return;
  }
  const keys = keysOf(samples), isNumber = key => samples.every(sample => sample[key] === undefined || typeof sample[key] === "number");
  const found = samples.filter(sample => !word || keys.some(key => String(sample[key] ?? "").toLowerCase().includes(word)));
  if (order.key) {
    const value = sample => sample[order.key] ?? "";
    found.sort((a, b) => (isNumber(order.key) ? value(a) - value(b) : String(value(a)).localeCompare(String(value(b)))) * (order.down ? -1 : 1));
  }
  const rows = new Map(), shape = JSON.stringify([keys, keys.map(isNumber), word, measure]);
  found.forEach((sample, i) => {
    const content = JSON.stringify(sample) + shape, key = rows.has(content) ? content + i : content;
    rows.set(key, rowsOfSamples.get(key) ?? rowOf(sample, keys, isNumber, word, measure));
  });
  rowsOfSamples = rows;
  sampleKey.textContent = `${found.length} of ${samples.length} samples that the report has.${legends[measure] ?? ""}`;
  const focused = sampleHead.contains(document.activeElement) ? document.activeElement.textContent : null;
  sampleHead.replaceChildren(...keys.map(key => headOf(key, isNumber)));
  if (focused !== null) [...sampleHead.querySelectorAll("button")].find(one => one.textContent === focused)?.focus();
  arrange(sampleRows, [...rows.values()]);
  arrange(byId("sample-list"), [sampleKey, sampleCard]);
}
byId("sample-run").append(...runs.map((run, index) => make("option", {value: index}, run.name)));
byId("sample-run").addEventListener("change", showSamples);
byId("sample-colour").addEventListener("change", showSamples);
byId("sample-find").addEventListener("input", showSamples);

// ---- Graph, memory, problems, pipeline: one part a run
function titled(run, ...content) {
  if (runs.length > 4) return make("details", {}, make("summary", {}, swatch(run.group), " ", run.name), ...content);
  return make("div", {class: "stack"}, runs.length > 1 ? make("h3", {}, swatch(run.group), " ", run.name) : null, ...content);
}
function graph(run) {
  if (!run.graph) return make("p", {class: "key"}, "The folder of this run has no graph.");
  if (run.graph.svg)
    return make("div", {class: "graph", tabindex: "0", role: "region", "aria-label": "graph"}, make("img", {src: "data:image/svg+xml;base64," + run.graph.svg, alt: "the nodes of the pipeline and what goes from one to the next; the pipeline below has the same as text"}));
  return make("div", {class: "card"}, make("p", {class: "key"}, "Graphviz (dot) was not installed, so this is its text."), make("pre", {tabindex: "0", role: "region", "aria-label": "graph"}, run.graph.dot));
}
function memory(run) {
  if (!run.memory || !run.memory.classes) return make("p", {class: "key"}, "The folder of this run has no memory.json: it is written when a run ends.");
  const most = Math.max(1, ...run.memory.classes.flatMap(one => [one.planned_bytes, one.peak_bytes]));
  const row = (name, planned, peak, all) => make("tr", {}, make("td", {}, name), make("td", {class: "number"}, bytes(planned)), make("td", {class: "number"}, bytes(peak)),
    make("td", {}, make("div", {class: "meter", "aria-hidden": "true"}, make("i", {class: "planned", style: `width: ${100 * planned / all}%`}), make("i", {style: `width: ${100 * peak / all}%; height: 45%; top: 27%`}))));
  const total = Math.max(run.memory.planned_bytes, run.memory.peak_bytes);
  return make("div", {class: "card scroll", style: "max-height: none", tabindex: "0", role: "region", "aria-label": "memory"}, make("table", {},
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "of"), make("th", {scope: "col", class: "number"}, "predicted"), make("th", {scope: "col", class: "number"}, "measured"), make("th", {scope: "col"}, "pale: predicted, full: measured"))),
    make("tbody", {}, ...run.memory.classes.map(one => row(one.name, one.planned_bytes, one.peak_bytes, most)), row("the process", run.memory.planned_bytes, run.memory.peak_bytes, total))),
    run.memory.machine_bytes ? make("p", {class: "key", style: "margin: .6rem 0 0"}, `The machine has ${bytes(run.memory.machine_bytes)}. Peaks need not have come at once.`) : null);
}
function notes(run) {
  if (!run.notes.length) return make("p", {class: "good"}, "None.");
  return make("div", {class: "card"}, ...run.notes.map(one => make("div", {class: `note ${one.severity}`}, make("b", {}, one.severity), make("span", {}, one.text))));
}
function pipeline(run) {
  const lines = run.pipeline.split("\n").map(line => {
    const comment = line.match(/^((?:[^"#]|"(?:[^"\\]|\\.)*")*)(#.*)$/);
    const part = comment ? [comment[1], make("span", {class: "comment"}, comment[2])] : [line];
    return make("span", {class: line.startsWith("[") ? "table" : ""}, ...part, "\n");
  });
  return make("div", {class: "card"}, make("pre", {tabindex: "0", role: "region", "aria-label": "pipeline"}, ...lines));
}
const PARTS = [["graphs", graph, run => run.graph], ["memories", memory, run => run.memory], ["note-list", notes, run => run.notes], ["pipelines", pipeline, run => run.pipeline]];
for (const [id] of PARTS) byId(id).classList.add("stack");

// All of it; later again with newer data of the same runs.
function show(report) {
  runs = report.runs;
  findGroups();
  drawPlots();
  drawHeads();
  showSamples();
  for (const [id, draw, dataOf] of PARTS) settle(byId(id), runs.map(dataOf), () => byId(id).replaceChildren(...runs.map(run => titled(run, draw(run)))));
}
show(firstReport);
