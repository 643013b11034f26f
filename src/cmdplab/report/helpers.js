// ---------------------------------------------------------------- small helpers
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; text is always text, never markup. */
function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

/** "f4:..." or "f8:..." as a typed array. */
function decode(text) {
  const bytes = Uint8Array.from(atob(text.slice(3)), (c) => c.charCodeAt(0));
  return text.startsWith("f4") ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const raised = (n) => String(n).split("").map((c) => RAISED[c]).join("");
const minus = (text) => text.replace("-", "−");
const whole = (n) => Number(n).toLocaleString("en-GB", { maximumFractionDigits: 0 });

/** A number for people: so many digits, powers of ten where they help. */
function fmt(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) {
    const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
    return minus(value.toLocaleString("en-GB", { maximumFractionDigits: Math.min(places, 12) }));
  }
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e");
  const ten = `10${raised(Number(exponent))}`;
  return Number(mantissa) === 1 ? ten : `${minus(String(Number(mantissa)))}×${ten}`;
}
/** Shorter still, for ranges: 12 300 is 12.3k. */
function short(v, digits = 3) {
  if (Math.abs(v) < 1e4 || Math.abs(v) >= 1e9) return fmt(v, digits);
  return Math.abs(v) < 1e6 ? `${fmt(v / 1e3, digits)}k` : `${fmt(v / 1e6, digits)}M`;
}
const between = (low, high) => (low === high ? "" : h("span", { class: "range" }, `${short(low)} … ${short(high)}`));
// ---------------------------------------------------------------- controls
function segments(label, choices, chosen, act) {
  const buttons = choices.map(([key, words]) => h("button", { type: "button", "aria-pressed": String(key === chosen), onclick: () => {
    buttons.forEach((b, n) => b.setAttribute("aria-pressed", String(choices[n][0] === key)));
    act(key);
  } }, words));
  return h("div", { class: "segments", role: "group", "aria-label": label }, label, h("span", {}, buttons));
}

function select(label, choices, chosen, act) {
  const options = choices.map(([key, words]) => h("option", { value: key, selected: key === chosen ? "" : null }, words));
  return h("select", { "aria-label": label, onchange: (e) => act(e.target.value) }, options);
}

// ---------------------------------------------------------------- light and dark
const isDark = () => document.documentElement.dataset.theme === "dark";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "☀ Light" : "☾ Dark";
}

/** As the system has it, until the button is pressed; `recolour` draws again what has colours of its own. */
function followTheme(recolour) {
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  setTheme(darkness.matches ? "dark" : "light");
  darkness.addEventListener("change", () => { if (chosen === null) { setTheme(darkness.matches ? "dark" : "light"); recolour(); } });
  $("theme").addEventListener("click", () => { chosen = isDark() ? "light" : "dark"; setTheme(chosen); recolour(); });
}

// ---------------------------------------------------------------- tables
/** Rows in the order of a column; what has no value comes last, whichever way. */
function sorted(rows, of, down) {
  return [...rows].sort((a, b) => {
    const [p, q] = [of(a), of(b)];
    if (p === null || q === null) return (p === null) - (q === null);
    return (down ? -1 : 1) * (typeof p === "string" ? p.localeCompare(q) : p - q);
  });
}

/** The head of a column that sorts; `order` is [key, down] or null, `act` takes the next one. */
function sorter(key, words, order, act, wordy) {
  const way = order && order[0] === key ? (order[1] ? "descending" : "ascending") : "none";
  const press = () => act([key, way === "ascending"]);
  return h("th", { scope: "col", "aria-sort": way, class: wordy ? "wordy" : null }, h("button", { type: "button", "data-key": key, onclick: press }, words));
}

/** Comma-separated values as a file to save. */
function save(name, text) {
  const link = h("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
