// ---------------------------------------------------------------- the state of the page
const state = { problem: 0, hidden: new Set(), x: "linear", y: "linear", panels: ["gap", "violation"],
  series: "either", what: "mistakes", epsilon: null, sort: null };
const problem = () => data.problems[state.problem];
const shown = () => problem().algorithms.filter((entry) => !state.hidden.has(entry.label));
const drawn = { charts: [], mistakes: null };

for (const each of data.problems) {
  each.epsilons = decode(each.epsilons);
  for (const entry of each.algorithms) {
    entry.episode = decode(entry.episode);
    entry.ready = {};
    for (const [name, rows] of Object.entries(entry.mistakes)) entry.mistakes[name] = rows.map(decode);
  }
}

/** A curve's arrays, decoded when it is first looked at. */
function curve(entry, name) {
  if (!(name in entry.ready)) {
    const kept = entry.curves[name];
    entry.ready[name] = kept ? { sums: kept.sums, of: kept.of.map(decode) } : null;
  }
  return entry.ready[name];
}

const labelOf = (name) => (problem().columns.find(([key]) => key === name) || [name, name])[1];
const marks = (entry) => (entry.unverified ? "*" : "") + (entry.heuristic ? "~" : "");
const nameOf = (entry) => h("span", { class: "name" }, swatch(entry), h("span", {}, entry.label,
  marks(entry) ? h("span", { class: "mark-sup", title: [entry.unverified, entry.heuristic].filter(Boolean).join("; ") }, ` ${marks(entry)}`) : ""));

// ---------------------------------------------------------------- what was run
function showHead() {
  $("title").textContent = data.title;
  document.title = `${data.title} – cmdplab report`;
  const p = problem(), entries = p.algorithms;
  const tally = (values) => [...new Set(values)];
  const seeds = tally(entries.map((e) => e.seeds.length)), episodes = tally(entries.map((e) => e.episodes));
  const [fewest, most] = [Math.min(...seeds), Math.max(...seeds)];
  const many = (n, one, more) => `${whole(n)} ${n === 1 ? one : more}`;
  $("lead").textContent = `${many(entries.length, "algorithm", "algorithms")} on ${p.name}: ` +
    `${episodes.map(whole).join(", ")} ${episodes[0] === 1 ? "episode" : "episodes"}, ${fewest < most ? `${fewest} to ` : ""}${many(most, "seed", "seeds")} each. ` +
    "Every episode’s policy was evaluated exactly.";
  const scales = (key) => tally(entries.map((e) => e.settings[key]).filter((v) => v !== undefined && v !== null));
  const facts = [["Problem", p.name], ["Optimum V*", fmt(p.optimum, 6)],
    ["Thresholds", p.threshold === null ? "–" : p.threshold.map((v) => fmt(v, 5)).join(", ") || "none"],
    ["Horizon H", fmt(p.horizon)], ["Episodes", episodes.map(whole).join(", ")], ["Seeds", fewest < most ? `${fewest} to ${most}` : most],
    ["Presets", tally(entries.map((e) => e.preset)).join(", ")], ["Bonus scale", scales("bonus_scale").map((v) => fmt(v)).join(", ") || "–"]];
  if (p.slater_gap !== null) facts.splice(3, 0, ["Slater gap", fmt(p.slater_gap, 4)]);
  if (scales("margin_scale").length) facts.push(["Margin scale", scales("margin_scale").map((v) => fmt(v)).join(", ")]);
  $("facts").replaceChildren(h("dl", { class: "tiles card" }, facts.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, v)))));
}

function showTroubles() {
  const list = data.troubles;
  $("troubles").hidden = !list.length;
  if (!list.length) return;
  const line = (t) => h("li", {}, h("strong", {}, t.status), ` – ${t.algorithm}, seed ${t.seed}, on ${t.problem} (`, h("code", {}, t.run), `): ${t.why}`);
  $("troubles").replaceChildren(h("h2", { id: "troubles-head" }, `${list.length === 1 ? "One run is" : `${list.length} runs are`} not as planned`),
    h("ul", { tabindex: 0 }, list.map(line)));
}

function showOverview() {
  const many = data.problems.length > 1;
  $("overview").hidden = $("chooser").hidden = !many;
  if (!many) return;
  const labels = [...new Set(data.problems.flatMap((p) => p.algorithms.map((e) => e.label)))];
  const head = data.problems.map((p, n) => h("th", { scope: "col", class: "wordy" }, h("button", { type: "button", onclick: () => choose(n) }, p.name)));
  const cell = (p, label) => { const e = p.algorithms.find((each) => each.label === label); return h("td", { class: "wordy" }, e ? chip(e.verdict) : "–"); };
  $("overview-table").replaceChildren(h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "wordy" }, "Algorithm"), head)),
    h("tbody", {}, labels.map((label) => h("tr", {}, h("th", { scope: "row" }, label), data.problems.map((p) => cell(p, label))))));
  $("problem").replaceChildren(...data.problems.map((p, n) => h("option", { value: n, selected: n === state.problem ? "" : null }, p.name)));
}

// ---------------------------------------------------------------- verdicts
const NUMBERS = [["final_gap", "Final gap"], ["final_violation", "Final violation"], ["strong_regret", "Strong regret"], ["weak_regret", "Weak regret"],
  ["strong_violation_regret", "Strong viol. regret"], ["weak_violation_regret", "Weak viol. regret"]];

/** The gap's band and median over the whole run, logarithmic in both. */
function spark(entry) {
  const canvas = h("canvas", { class: "spark", width: 240, height: 60, role: "img", "aria-label": `gap of ${entry.label} over the episodes` });
  const ctx = canvas.getContext("2d"), gap = curve(entry, "gap"), ys = symlog(problem().horizon * 1e-3);
  const most = ys.to(problem().horizon), last = entry.episode.length - 1;
  const X = (n) => 2 + (236 * Math.log(entry.episode[n])) / Math.log(Math.max(entry.episode[last], 2)), Y = (v) => 30 - (27 * ys.to(v)) / most;
  ctx.strokeStyle = css("--line"); ctx.lineWidth = 2; ctx.beginPath(); ctx.moveTo(0, 30); ctx.lineTo(240, 30); ctx.stroke();
  ctx.fillStyle = ctx.strokeStyle = colour(entry);
  ctx.beginPath();
  for (let n = 0; n <= last; n++) ctx.lineTo(X(n), Y(gap.of[2][n]));
  for (let n = last; n >= 0; n--) ctx.lineTo(X(n), Y(gap.of[1][n]));
  ctx.globalAlpha = 0.3; ctx.fill(); ctx.globalAlpha = 1;
  ctx.beginPath();
  for (let n = 0; n <= last; n++) ctx.lineTo(X(n), Y(gap.of[0][n]));
  ctx.lineWidth = 2.4; ctx.stroke();
  return canvas;
}

function cellOf(spread) {
  if (!spread) return h("td", {}, "–");
  return h("td", {}, fmt(spread.median), between(spread.low, spread.high));
}

function showSummary() {
  const value = { label: (e) => e.label, verdict: (e) => e.verdict, rate: (e) => e.rate };
  for (const [field] of NUMBERS) value[field] = (e) => (e.numbers[field] ? e.numbers[field].median : null);
  const all = problem().algorithms, rows = state.sort ? sorted(all, value[state.sort[0]], state.sort[1]) : all;
  const act = (order) => { state.sort = order; showSummary(); $("summary").querySelector(`[data-key="${order[0]}"]`).focus(); };
  const head = (key, words, wordy) => sorter(key, words, state.sort, act, wordy);
  const some = problem().algorithms.some((e) => e.seeds.length < e.planned);
  const heads = [head("label", "Algorithm", true), head("verdict", "Verdict", true), h("th", { scope: "col", class: "wordy" }, "Gap over time"),
    some ? h("th", { scope: "col" }, "Seeds") : "", NUMBERS.map(([field, words]) => head(field, words)), head("rate", "Episodes/s")];
  const body = rows.map((e) => h("tr", { class: state.hidden.has(e.label) ? "off" : null }, h("th", { scope: "row" }, nameOf(e)),
    h("td", { class: "wordy" }, chip(e.verdict)), h("td", {}, spark(e)), some ? h("td", {}, `${e.seeds.length} of ${e.planned}`) : "",
    NUMBERS.map(([field]) => cellOf(e.numbers[field])), h("td", {}, e.rate === null ? "–" : whole(Math.round(e.rate)))));
  $("summary").replaceChildren(h("thead", {}, h("tr", {}, heads)), h("tbody", {}, body));
  const every = problem().algorithms;
  $("summary-hint").textContent = "Medians over seeds, with the smallest and the largest below. Strong regret sums positive parts, weak regret everything. " +
    "A negative gap means more reward than the optimum, paid for by a violation. " +
    "Gap over time: both axes logarithmic, the grey line is the optimum." +
    (every.some((e) => e.unverified) ? " * has constants that no source confirms." : "") +
    (every.some((e) => e.heuristic) ? " ~ guarantees are heuristic as run (see the settings)." : "");
  const r = data.rule;
  $("rule").textContent = "The envelope E(k) is the largest gap or violation from episode k to the end. A verdict rests on its local exponent p, E ~ k^-p, between K/64, K/16 and K/4 of a run of K episodes, " +
    `and on no size of an error. Errors oscillate if in each of the last two quadruplings they rise and fall by ${fmt(r.swings)} of the largest of them. They settled if they change like k^±${fmt(r.flat)} or less, ` +
    `or their extrapolated limit is within a tenth; they converge, or shrink, at k^-p if the fit of c + a k^-p to mean errors bounds their limit c by ${fmt(r.small)} of the error; they worsen if they grow faster than k^${fmt(r.grows)} in three quadruplings. All else is undecided, ` +
    `as is every run below ${whole(r.shortest)} episodes. A verdict describes the runs up to their end. ` +
    "Where seeds differ, each verdict is given with its number of seeds.";
}

const download = () => save("summary.csv", data.csv);

// ---------------------------------------------------------------- curves
const spreadOf = (line) => { // how wide the last tenth is: the widest are drawn first
  const last = line.x[line.x.length - 1];
  let low = Infinity, high = -Infinity;
  line.x.forEach((x, n) => { if (x >= 0.9 * last) { low = Math.min(low, line.low[n]); high = Math.max(high, line.high[n]); } });
  return high - low;
};

function curveModel(panel) {
  const name = state.panels[panel], p = problem();
  const lines = shown().filter((e) => curve(e, name)).map((entry) => {
    const { sums, of } = curve(entry, name);
    return { entry, x: entry.episode, median: of[0], low: of[1], high: of[2], steps: !sums };
  }).sort((a, b) => spreadOf(b) - spreadOf(a));
  const last = Math.max(...p.algorithms.map((e) => e.episodes)), c = name.includes("regret") ? 1 : p.horizon * 1e-4;
  drawn.symlog = drawn.symlog || {};
  const ys = state.y === "linear" ? linear : (drawn.symlog[c] = drawn.symlog[c] || symlog(c));
  return { lines, xs: state.x === "log" ? log : linear, ys, whole: [1, Math.max(last, 2)], xlabel: "episode",
    at: (x) => `episode ${whole(x)}`, words: `${labelOf(name)} against the episode, ${lines.length} algorithms.` };
}

function showCurves() {
  const all = () => drawn.charts.forEach((chart) => { chart.y = null; chart.draw(); });
  const columns = problem().columns, has = (name) => columns.some(([key]) => key === name);
  state.panels = state.panels.map((name, n) => (has(name) ? name : n ? "strong_regret" : "gap"));
  $("curve-tools").replaceChildren(segments("x", [["linear", "linear"], ["log", "log"]], state.x, (v) => { state.x = v; all(); }),
    segments("y", [["linear", "linear"], ["symlog", "symlog"]], state.y, (v) => { state.y = v; all(); }),
    h("div", { class: "segments", role: "group", "aria-label": "zoom" }, h("span", {},
      h("button", { type: "button", "aria-label": "zoom in", onclick: () => drawn.charts[0].zoom(0.5) }, "+"),
      h("button", { type: "button", "aria-label": "zoom out", onclick: () => drawn.charts[0].zoom(2) }, "−"),
      h("button", { type: "button", id: "reset", onclick: () => drawn.charts.forEach((c) => c.reset()) }, "Reset"))));
  drawn.charts = [];
  $("charts").replaceChildren(...state.panels.map((name, n) => {
    const host = h("div", {});
    const menu = select(`what panel ${n + 1} shows`, columns, name, (v) => { state.panels[n] = v; drawn.charts[n].y = null; drawn.charts[n].draw(); });
    const moved = (x) => drawn.charts.forEach((other, m) => { if (m !== n) { other.x = x; other.y = null; other.draw(); } });
    drawn.charts.push(new Chart(host, () => curveModel(n), { moved }));
    return h("div", { class: "panel card" }, h("div", { class: "head" }, menu), host);
  }));
  $("curves-hint").textContent = "Drag to zoom (sideways for the x axis alone), double-click to see all again, press a name to hide it, Shift and press to see it alone. " +
    "Lines are medians over seeds. Nothing is smoothed: the bands of gap and violation hold every episode of every seed, also where the curve is thinned; " +
    "those of regrets and multipliers hold every seed at every episode that the records keep.";
}

function showLegend() {
  $("legend").replaceChildren(...problem().algorithms.map((entry) => h("button", { type: "button", "aria-pressed": String(!state.hidden.has(entry.label)),
    onclick: (event) => {
      const others = problem().algorithms.filter((e) => e !== entry).map((e) => e.label);
      if (event.shiftKey) state.hidden = state.hidden.size === others.length && !state.hidden.has(entry.label) ? new Set() : new Set(others);
      else if (!state.hidden.delete(entry.label)) state.hidden.add(entry.label);
      const place = [...$("legend").children].indexOf(event.currentTarget);
      showLegend(); showSummary(); showCounts(); redraw();
      $("legend").children[place].focus();
    } }, swatch(entry), entry.label)));
}

// ---------------------------------------------------------------- mistakes
const TITLES = { gap: "Gap", violation: "Violation", either: "Either" };
const KINDS = { mistakes: "number of mistakes", last_mistake: "last mistake" };

function mistakeModel() {
  const p = problem(), name = `${state.series}_${state.what}`;
  const lines = shown().filter((e) => e.mistakes[name]).map((entry) => {
    const [median, low, high] = entry.mistakes[name];
    return { entry, x: p.epsilons, median, low, high, steps: false };
  });
  const ends = [p.epsilons[p.epsilons.length - 1], p.epsilons[0]];
  return { lines, xs: strict, ys: counting, whole: ends, xlabel: "ε (stricter to the right)", number: whole, marker: p.epsilons[state.epsilon], at: (x) => `ε = ${fmt(x)}: ${KINDS[state.what]}`,
    words: `${TITLES[state.series]}: ${KINDS[state.what]} against epsilon, both logarithmic, stricter to the right, ${lines.length} algorithms.` };
}

/** The table at the slider's epsilon: exact, as counted while the runs went on. */
function showCounts() {
  const p = problem(), n = state.epsilon, epsilon = p.epsilons[n];
  $("epsilon-value").textContent = fmt(epsilon);
  $("epsilon").setAttribute("aria-valuetext", fmt(epsilon));
  $("epsilon-share").textContent = `${fmt((100 * epsilon) / p.horizon)} % of H. Point ${n + 1} of ${p.epsilons.length} from ${fmt(p.epsilons[0])} to ${fmt(p.epsilons[p.epsilons.length - 1])}; drag the slider or the chart.`;
  const cell = (e, series, what) => {
    const [median, low, high] = e.mistakes[`${series}_${what}`].map((row) => row[n]);
    const range = low === high ? "" : h("span", { class: "range" }, `${whole(low)} … ${whole(high)}`);
    const none = what === "last_mistake" && median === 0 ? "none" : whole(median);
    const td = h("td", { class: what === "mistakes" ? "count group" : "", "data-series": series, "data-what": what, "data-value": [median, low, high].join(" ") }, none, range);
    if (what === "mistakes") td.style.setProperty("--share", median / e.episodes);
    return td;
  };
  const top = h("tr", {}, h("th", { rowspan: 2, scope: "col", class: "wordy" }, "Algorithm"), p.series.map((s) => h("th", { colspan: 2, scope: "colgroup", class: "group" }, TITLES[s])));
  const sub = h("tr", {}, p.series.map(() => [h("th", { scope: "col", class: "group" }, "mistakes"), h("th", { scope: "col" }, "last mistake")]));
  const body = p.algorithms.map((e) => h("tr", { class: state.hidden.has(e.label) ? "off" : null, "data-algorithm": e.label }, h("th", { scope: "row" }, nameOf(e)),
    p.series.map((s) => [cell(e, s, "mistakes"), cell(e, s, "last_mistake")])));
  $("counts").replaceChildren(h("thead", {}, top, sub), h("tbody", {}, body));
}

function setEpsilon(n) {
  state.epsilon = n;
  $("epsilon").value = n;
  showCounts();
  drawn.mistakes.draw();
}

function showMistakes() {
  const p = problem(), draw = () => drawn.mistakes.draw();
  if (state.epsilon === null || state.epsilon >= p.epsilons.length) state.epsilon = Math.round(0.6 * (p.epsilons.length - 1));
  if (!p.series.includes(state.series)) state.series = p.series[0];
  $("epsilon").max = p.epsilons.length - 1;
  $("epsilon").value = state.epsilon;
  $("mistake-tools").replaceChildren(segments("of", p.series.map((s) => [s, TITLES[s].toLowerCase()]), state.series, (v) => { state.series = v; draw(); }),
    segments("", Object.entries(KINDS), state.what, (v) => { state.what = v; draw(); }));
  const host = h("div", {}), nearest = (x) => {
    let best = 0;
    p.epsilons.forEach((e, n) => { if (Math.abs(Math.log(e / x)) < Math.abs(Math.log(p.epsilons[best] / x))) best = n; });
    return best;
  };
  $("mistake-chart").replaceChildren(h("div", { class: "panel card" }, host));
  drawn.mistakes = new Chart(host, mistakeModel, { pick: (x) => setEpsilon(nearest(x)) });
  $("mistakes-hint").textContent = "Lines are medians over seeds, bands reach from the smallest to the largest; both axes are logarithmic, with a place of its own for none at all. " +
    "Bars in the table show the share of all episodes.";
  showCounts();
}

// ---------------------------------------------------------------- every algorithm against one
/** Which episodes violated while learning; a promise that was broken stands in red, and in words. */
function showSafety() {
  const entries = problem().algorithms.filter((e) => e.safety);
  $("safety").hidden = !entries.length;
  if (!entries.length) return;
  const share = (v) => (v === null ? "–" : `${fmt(100 * v)} %`), many = (v) => (v === null ? "–" : whole(Math.round(v)));
  const promise = (s) => h("span", { class: `chip ${s.broken ? "bad" : s.promise === "kept" ? "good" : s.promise === "none" ? "" : "warn"}` }, s.promise);
  const heads = ["Algorithm", "Promise", "Runs that violated", "Episodes that violated", "First", "Largest", "Sum", "To the safe policy", "Last there"];
  $("safety-table").replaceChildren(h("thead", {}, h("tr", {}, heads.map((w, n) => h("th", { scope: "col", class: n < 2 ? "wordy" : null }, w)))),
    h("tbody", {}, entries.map((e) => { const s = e.safety; return h("tr", {}, h("th", { scope: "row" }, nameOf(e)), h("td", { class: "wordy" }, promise(s)),
      h("td", {}, `${s.violating_runs} of ${s.runs}`), h("td", {}, many(s.violating)), h("td", {}, many(s.first)), h("td", {}, fmt(s.largest)),
      h("td", {}, fmt(s.total)), h("td", {}, share(s.baseline_share)), h("td", {}, many(s.left_baseline))); })));
  const broken = entries.filter((e) => e.safety.broken);
  $("safety-broken").hidden = !broken.length;
  $("safety-broken").replaceChildren(...broken.map((e) => h("p", {}, h("strong", {}, "PROMISE BROKEN"),
    `: ${e.label} promises that no episode violates, and ${e.safety.violating_runs} of its ${e.safety.runs} runs did, by up to ${fmt(e.safety.largest)}.`)));
}

function showVersus() {
  const pairs = problem().versus, told = ["smaller", "larger"];
  const rank = (p) => (told.includes(p.outcome) ? 0 : 1);
  const list = [...pairs].sort((a, b) => rank(a) - rank(b)).map((p) => h("li", {}, rank(p) ? p.words : h("strong", {}, p.words)));
  $("versus").replaceChildren(...(pairs.length ? [h("h3", {}, `Against ${pairs[0].second}, seed by seed`),
    h("p", { class: "hint" }, `Smaller is better. A difference is claimed (bold) where Holm's p over all ${pairs.length} comparisons is at most 0.05.`),
    h("ul", { tabindex: 0 }, list)] : []));
}

// ---------------------------------------------------------------- settings and provenance
function showSettings() {
  const words = (e) => Object.entries(e.settings).map(([k, v]) => `${k.replaceAll("_", " ")} ${typeof v === "number" ? fmt(v) : v}`).join(", ") || "–";
  const remarks = (e) => [e.heuristic && `heuristic (~): ${e.heuristic}`, e.unverified && `unverified (*): ${e.unverified}`, ...e.remarks].filter(Boolean);
  const head = ["Algorithm", "Preset", "Settings", "Must be told", "Remarks"].map((t) => h("th", { scope: "col", class: "wordy" }, t));
  const body = problem().algorithms.map((e) => h("tr", {}, h("th", { scope: "row" }, nameOf(e)), h("td", { class: "wordy" }, e.preset),
    h("td", { class: "wordy wrap" }, words(e)), h("td", { class: "wordy wrap" }, e.needs.join(", ") || "nothing"),
    h("td", { class: "wordy wrap" }, remarks(e).map((r) => h("div", {}, r)), remarks(e).length ? "" : "–")));
  $("settings-table").replaceChildren(h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
  const list = (values) => Object.entries(values).map(([k, v]) => `${k} ${v}`).join(", ");
  const pairs = [["Folder", data.folder], ["Seeds", [...new Set(problem().algorithms.flatMap((e) => e.seeds))].join(", ")],
    ["Ran with", list(data.versions) || "the records do not say"], ["Ran on", list(data.machine) || "the records do not say"], ["Page written by", list(data.written_by)]];
  $("provenance").replaceChildren(h("dl", { class: "pairs" }, pairs.flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])),
    data.notes.length ? h("details", {}, h("summary", {}, `Notes of the runs (${data.notes.length})`), h("ul", {}, data.notes.map((n) => h("li", {}, n)))) : "");
  $("footer").textContent = "One file, no network: everything on this page is computed from the data inside it.";
}

// ---------------------------------------------------------------- start
function redraw() { [...drawn.charts, drawn.mistakes].forEach((chart) => chart && chart.draw()); }
function showProblem() { showHead(); showLegend(); showSummary(); showSafety(); showVersus(); showCurves(); showMistakes(); showSettings(); }
function choose(n) { Object.assign(state, { problem: n, hidden: new Set(), epsilon: null }); $("problem").value = n; showProblem(); }

function recolour() { showLegend(); showSummary(); showSafety(); showCounts(); showSettings(); redraw(); }

followTheme(recolour);
let before = null;
const paintNow = () => { recolour(); [...drawn.charts, drawn.mistakes].forEach((chart) => chart.paint()); };
window.addEventListener("beforeprint", () => { before = document.documentElement.dataset.theme; setTheme("light"); document.querySelectorAll("details").forEach((d) => { d.open = true; }); paintNow(); });
window.addEventListener("afterprint", () => { if (before) setTheme(before); paintNow(); });
$("problem").addEventListener("change", (event) => choose(Number(event.target.value)));
$("epsilon").addEventListener("input", (event) => setEpsilon(Number(event.target.value)));
$("download").addEventListener("click", download);
$("copy").addEventListener("click", async () => {
  try { await navigator.clipboard.writeText($("bibtex").textContent); $("say").textContent = "copied"; $("copy").textContent = "Copied"; }
  catch { getSelection().selectAllChildren($("bibtex")); }
});
showTroubles();
showOverview();
showProblem();
