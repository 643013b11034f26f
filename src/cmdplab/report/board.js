// ---------------------------------------------------------------- the state of the page
data.rows = data.rows.map((row) => Object.fromEntries(data.fields.map((name, n) => [name, row[n]])));
const STEP = 150; // rows that are drawn at once
const start = { environment: "", algorithm: "", scale: "", mark: "" };
const state = { ...start, order: null, lineOrder: null, lineScale: "", most: STEP };
const percent = (share) => (share === null ? "–" : `${fmt(100 * share)} %`);
const RESULTS = { smaller: ["good", "▼ less"], larger: ["bad", "▲ more"], same: ["", "= same"],
  "not told apart": ["", "≈ not told apart"], undecided: ["warn", "? undecided"] };
const scaleOf = (each) => each.scale + (each.factor === null ? "" : ` ${fmt(each.factor)}`);
const signs = (each) => [[each.preset === "custom", "~", "a learner from outside"], [each.unverified, "*", `unverified: ${each.unverified}`],
  [each.heuristic, "°", `no guarantee as run: ${each.heuristic}`], [each.rarely, "²", "plans anew when the visits of a pair have doubled"]].filter(([on]) => on);
const nameOf = (each) => h("span", { class: "name" }, h("span", {}, each.algorithm, signs(each).length ? " " : "",
  signs(each).map(([, sign, words]) => h("abbr", { class: "mark-sup", title: words }, sign))));
const broken = () => h("span", { class: "chip bad" }, "PROMISE BROKEN");
const outcome = (key) => h("span", { class: `chip ${RESULTS[key][0]}` }, RESULTS[key][1]);
const linkOf = (row) => `#${encodeURIComponent([row.algorithm, row.scale, row.problem].join("|"))}`;
const options = (field) => [...new Set(data.rows.map((row) => row[field]))];

// ---------------------------------------------------------------- head and troubles
function showHead() {
  const problems = options("problem").length, algorithms = options("algorithm").length;
  $("lead").textContent = `${algorithms} algorithm${algorithms === 1 ? "" : "s"} on ${problems} problem${problems === 1 ? "" : "s"}, ${whole(data.steps)} steps and ${data.seeds} seeds each. ` +
    "Every episode’s policy was evaluated exactly against a certified optimum. Numbers are medians over seeds; press one to see its runs.";
  const said = data.troubles;
  $("troubles").hidden = !said.length;
  $("troubles").replaceChildren(h("h2", { id: "troubles-head" }, `${said.length === 1 ? "One row is" : `${said.length} rows are`} not whole and not shown`),
    h("ul", { tabindex: 0 }, said.map((text) => h("li", {}, text))));
}

// ---------------------------------------------------------------- algorithms over all problems
const rank = (counts) => (Object.keys(counts).length ? (counts.smaller || 0) - (counts.larger || 0) : null);
function tally(counts) {
  const all = Object.values(counts).reduce((a, b) => a + b, 0);
  if (!all) return "–";
  const better = counts.smaller || 0, worse = counts.larger || 0;
  return [h("strong", {}, better), ` less, `, h("strong", {}, worse), ` more, ${all - better - worse} open`];
}
const counts = [...new Set(data.lines.map((e) => e.problems))], shared = counts.length === 1 ? counts[0] : null;
const LINES = [["algorithm", "Algorithm", (e) => e.algorithm, null, true], ["scale", "Scale", scaleOf, null, true],
  ["regret", "Regret", (e) => e.regret, percent], ["violation", "Violation", (e) => e.violation, percent], ["last_gap", "Last gap", (e) => e.last_gap, percent],
  ["last_violation", "Last violation", (e) => e.last_violation, percent], ["unsafe", "Unsafe episodes", (e) => e.unsafe_share, percent],
  ["violating", "Runs that violate", (e) => (e.runs ? e.violating_runs / e.runs : null), null, true], ["largest", "Largest violation", (e) => e.largest_violation, percent],
  ["baseline", "Safe policy", (e) => e.baseline_share, percent], ["us", "µs/episode", (e) => e.us_per_episode, fmt], ["problems", "Problems", (e) => e.problems, whole],
  ["against", "Regret against", (e) => rank(e.regret_outcomes), null, true], ["safer", "Violation against", (e) => rank(e.violation_outcomes), null, true]]
  .filter(([key]) => key !== "problems" || shared === null); // one number stands below the table

function showLines() {
  const mine = data.lines.filter((e) => !state.lineScale || e.scale === state.lineScale);
  const order = state.lineOrder, column = order && LINES.find(([key]) => key === order[0]);
  const act = (next) => { state.lineOrder = next; showLines(); $("lines").querySelector(`[data-key="${next[0]}"]`).focus(); };
  const cell = (e, [key, , of, show]) => {
    if (key === "algorithm") return h("th", { scope: "row" }, nameOf(e));
    if (key === "violating") return h("td", { class: "wordy" }, e.runs ? `${e.violating_runs} of ${e.runs}` : "–", e.broken ? [" ", broken()] : "");
    if (key === "against") return h("td", { class: "wordy" }, tally(e.regret_outcomes));
    if (key === "safer") return h("td", { class: "wordy" }, tally(e.violation_outcomes));
    return h("td", { class: show ? null : "wordy" }, show ? show(of(e)) : of(e));
  };
  $("lines").replaceChildren(h("thead", {}, h("tr", {}, LINES.map(([key, words, , , wordy]) => sorter(key, words, order, act, wordy)))),
    h("tbody", {}, (order ? sorted(mine, column[2], order[1]) : mine).map((e) => h("tr", {}, LINES.map((c) => cell(e, c))))));
}

// ---------------------------------------------------------------- all rows
const ROWS = [["algorithm", "Algorithm", (r) => r.algorithm, null, true], ["scale", "Scale", scaleOf, null, true], ["problem", "Problem", (r) => r.problem, null, true],
  ["strong_regret", "Strong regret", (r) => r.strong_regret, fmt], ["strong_violation_regret", "Strong viol. regret", (r) => r.strong_violation_regret, fmt],
  ["last_gap", "Last gap", (r) => r.last_gap, fmt], ["last_violation", "Last violation", (r) => r.last_violation, fmt], ["unsafe_share", "Unsafe episodes", (r) => r.unsafe_share, percent],
  ["violating", "Runs that violate", (r) => r.safety && r.safety.violating_runs, null, true], ["largest", "Largest violation", (r) => r.safety && r.safety.largest, fmt],
  ["baseline", "Safe policy", (r) => r.safety && r.safety.baseline_share, percent], ["us_per_episode", "µs/episode", (r) => r.us_per_episode, fmt],
  ["regret_against", "Regret against", (r) => r.regret_against.outcome || null, null, true], ["violation_against", "Violation against", (r) => r.violation_against.outcome || null, null, true]];
const MARKS = [["", "any provenance"], ["printed", "printed formulas"], ["released", "released code"], ["custom", "from outside (~)"], ["verified", "no unverified constants"],
  ["unverified", "unverified constants (*)"], ["proved", "guarantee as run"], ["heuristic", "no guarantee as run (°)"]];
const FITS = { verified: (r) => !r.unverified, unverified: (r) => r.unverified, proved: (r) => !r.heuristic, heuristic: (r) => r.heuristic };
const fits = (row) => ["environment", "algorithm", "scale"].every((field) => !state[field] || row[field] === state[field]) &&
  (!state.mark || (FITS[state.mark] ? FITS[state.mark](row) : row.preset === state.mark));

function cellOf(row, [key, , of, show]) {
  const link = (content) => h("a", { class: "cell", href: linkOf(row) }, content);
  if (key === "algorithm") return h("th", { scope: "row" }, nameOf(row));
  if (key.endsWith("_against")) {
    const against = row[key];
    return h("td", { class: "wordy" }, against.outcome ? h("a", { class: "cell", href: linkOf(row), title: against.words }, outcome(against.outcome)) : row.algorithm === data.reference ? "reference" : "–");
  }
  if (key === "violating") {
    return h("td", { class: "wordy" }, row.safety ? [link(`${row.safety.violating_runs} of ${row.safety.runs}`), row.safety.broken ? [" ", broken()] : ""] : "–");
  }
  return h("td", { class: show ? null : "wordy" }, show ? link(show(of(row))) : of(row));
}

function showRows() {
  const mine = data.rows.filter(fits), order = state.order, column = order && ROWS.find(([key]) => key === order[0]);
  const all = order ? sorted(mine, column[2], order[1]) : mine, drawn = all.slice(0, state.most);
  const act = (next) => { state.order = next; showRows(); $("rows").querySelector(`[data-key="${next[0]}"]`).focus(); };
  $("rows").replaceChildren(h("thead", {}, h("tr", {}, ROWS.map(([key, words, , , wordy]) => sorter(key, words, order, act, wordy)))),
    h("tbody", {}, drawn.map((row) => h("tr", {}, ROWS.map((c) => cellOf(row, c))))));
  $("more").hidden = drawn.length === all.length;
  $("more").textContent = `Show ${Math.min(STEP, all.length - drawn.length)} more`;
  $("rows-count").textContent = `${whole(drawn.length)} of ${whole(all.length)} rows` + (all.length < data.rows.length ? `, ${whole(data.rows.length)} without filters` : "");
}

function showFilters() {
  const act = (field) => (value) => { Object.assign(state, { [field]: value, most: STEP }); showRows(); };
  const choices = (field, every) => [["", every], ...options(field).map((each) => [each, each])];
  $("filters").replaceChildren(select("environment", choices("environment", "every environment"), state.environment, act("environment")),
    select("algorithm", choices("algorithm", "every algorithm"), state.algorithm, act("algorithm")),
    select("scale", choices("scale", "every scale"), state.scale, act("scale")), select("provenance", MARKS, state.mark, act("mark")),
    h("button", { type: "button", id: "reset", onclick: () => { Object.assign(state, start, { order: null, most: STEP }); showFilters(); showRows(); } }, "Reset"));
}

// ---------------------------------------------------------------- the runs behind a cell
function safetyWords(of) {
  const said = of.violating_runs ? `${of.violating_runs} of ${of.runs} runs violated, first in episode ${whole(of.first)}, at most by ${fmt(of.largest)}`
    : `No episode of ${of.runs} runs violated`;
  return of.promise === "none" ? `${said}.` : `${said}. The promise that none does: ${of.promise}.`;
}
function showDetails() {
  const found = data.rows.find((row) => linkOf(row) === location.hash), dialog = $("details");
  if (!found) { if (dialog.open) dialog.close(); return; }
  const heads = ["Seed", "Strong regret", "Strong viol. regret", "Last gap", "Last violation", "Unsafe", "µs/episode", "Run"];
  const show = [fmt, fmt, fmt, fmt, percent, fmt];
  const run = (n) => (found.folder === null ? h("code", {}, found.runs[n]) : h("a", { href: `${found.folder}/${found.runs[n]}/` }, found.runs[n]));
  const body = found.numbers.map((each, n) => h("tr", {}, h("th", { scope: "row" }, n), each.map((v, m) => h("td", {}, show[m](v))), h("td", { class: "wordy" }, run(n))));
  const safe = found.safety ? [safetyWords(found.safety)] : [];
  const said = [...safe, found.regret_against.words, found.violation_against.words, ...signs(found).map(([, sign, words]) => `${sign} ${words}`)].filter(Boolean);
  dialog.replaceChildren(h("div", { class: "head" }, h("h2", { id: "details-head" }, `${found.algorithm}, ${scaleOf(found)}, on ${found.problem}`),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    h("p", { class: "hint" }, `${whole(found.episodes)} episodes of ${found.horizon} steps, preset ${found.preset}.`),
    h("div", { class: "scroll card", tabindex: 0 }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, body))),
    h("ul", {}, said.map((text) => h("li", {}, text))),
    h("p", {}, found.folder === null ? "Curves were not kept. Play a run again, to the last bit on the same kind of processor:" : "Play a run again:"),
    h("pre", { tabindex: 0 }, `${found.command} --seed 0`));
  if (!dialog.open) dialog.showModal();
}

// ---------------------------------------------------------------- protocol and tuning
function showProtocol() {
  const list = [`Problems: ${options("problem").join(", ")}.`,
    `Length: ${whole(data.steps)} steps, so that an algorithm plays ${whole(data.steps)} / H episodes of a problem with H steps; it is told that number where it asks for one.`,
    `Seeds 0 to ${data.seeds - 1}; on a seed all algorithms meet the same random numbers.`,
    "Theory: the formulas as printed, bonus and margin scale 1. Tuned: the preset that runs by default, at the scale that lost least in tuning. Own: a learner from outside, as it is.",
    "Planners that solve a program, and searches, plan anew when the visits of a pair have doubled (²), not in every episode; those with a queue plan in every episode.",
    "Strong regret and strong violation regret sum the positive parts of gap and violation over all episodes. Last gap and last violation are means of positive parts over the last tenth. Unsafe episodes miss a threshold by more than 0.01 H; a run violates where an episode misses one by more than 1e-5 H. Safe policy: the share of probability that the coin of Safe(...) gave it.",
    `Against ${data.reference}: differences seed by seed, an exact sign test, Holm’s correction over the algorithms of a problem, a scale and a measure. Smaller is better. What is undecided stays undecided.`,
    "Time is that of the machine below, with many runs side by side, exact evaluation included."];
  $("protocol-text").replaceChildren(h("ul", {}, list.map((text) => h("li", {}, text))),
    h("dl", { class: "pairs" }, [["Folder", data.folder], ["Ran with", data.versions.map((v) => `cmdplab ${v}`).join(", ")], ["Ran on", data.processors.join(", ")],
      ["Page written by", Object.entries(data.written_by).map(([k, v]) => `${k} ${v}`).join(", ")]].flatMap(([k, v]) => [h("dt", {}, k), h("dd", {}, v)])));
  const scales = [...new Set(Object.values(data.tuning).flatMap(Object.keys))].sort((a, b) => b - a);
  $("tuning").hidden = !scales.length;
  $("tuning-table").replaceChildren(h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "wordy" }, "Algorithm"), scales.map((s) => h("th", { scope: "col" }, `scale ${s}`)))),
    h("tbody", {}, Object.entries(data.tuning).map(([name, losses]) => {
      const best = Math.min(...Object.values(losses)), chosen = scales.find((s) => losses[s] === best);
      return h("tr", {}, h("th", { scope: "row" }, name), scales.map((s) => h("td", {}, losses[s] === undefined ? "–" : s === chosen ? h("strong", {}, `✓ ${fmt(losses[s])}`) : fmt(losses[s]))));
    })));
  const legend = "~ a learner from outside. * has constants that no source confirms. ° no guarantee applies as run. ² plans anew when visits have doubled.";
  $("lines-hint").textContent = `Medians over the ${shared === null ? "" : `${shared} `}problems that all lines have, of the medians over seeds, in % of H, the most that an episode can give. Regret and violation: strong, per episode. ${legend}`;
  $("rows-hint").textContent = `Against ${data.reference} at the same kind of scale: ▼ less and ▲ more are claimed, the others are not. ${legend}`;
  $("footer").textContent = "One file, no network: everything on this page is computed from the data inside it.";
}

// ---------------------------------------------------------------- start
followTheme(() => {});
const scales = ["", ...options("scale")].map((each) => [each, each || "all"]);
$("line-tools").replaceChildren(segments("scale", scales, "", (value) => { state.lineScale = value; showLines(); }));
$("more").addEventListener("click", () => { state.most += STEP; showRows(); });
$("details").addEventListener("close", () => history.replaceState(null, "", location.pathname + location.search));
window.addEventListener("hashchange", showDetails);
showHead(); showLines(); showFilters(); showRows(); showProtocol(); showDetails();
