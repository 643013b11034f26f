const power = (k) => (k >= -2 && k <= 4 ? (k < 0 ? (10 ** k).toFixed(-k) : whole(10 ** k)) : `10${raised(k)}`);
/** Labels of ticks: powers of ten as such, and as many digits as tell the others apart. */
function labelled(ticks, powers) {
  const label = (v, digits) => {
    const k = v === 0 ? NaN : Math.log10(Math.abs(v));
    return powers && Math.abs(k - Math.round(k)) < 1e-9 ? (v < 0 ? "−" : "") + power(Math.round(k)) : short(v, digits);
  };
  for (let digits = 3; ; digits++) {
    const labels = ticks.map((v) => label(v, digits));
    if (digits === 10 || new Set(labels).size === labels.length) return labels;
  }
}

// ---------------------------------------------------------------- colours
const ON_DARK = { "#0072B2": "#3d97e0", "#000000": "#f2f5f8", "#882255": "#a76fe0", "#009E73": "#2fcf9f",
  "#D55E00": "#ff7a33", "#A0A0A0": "#8b98a5", "#E69F00": "#f0b429", "#CC79A7": "#f29bc9", "#56B4E9": "#96dcff" };
const colour = (entry) => (isDark() && ON_DARK[entry.colour]) || entry.colour;
const thickness = (entry) => Math.max(entry.width, 0.6);

function swatch(entry) {
  const svg = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "line");
  for (const [k, v] of [["width", 26], ["height", 10], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
  const look = { x1: 1, y1: 5, x2: 25, y2: 5, stroke: colour(entry), "stroke-width": Math.max(entry.width, 2),
    "stroke-dasharray": entry.dash.join(" ") };
  for (const [k, v] of Object.entries(look)) line.setAttribute(k, v);
  svg.append(line);
  return svg;
}

function chip(verdict) {
  const kinds = [["conver", "good"], ["oscillating, sh", "move"], ["oscill", "bad"], ["worse", "bad"], ["settled", "warn"]];
  const kind = (kinds.find(([start]) => verdict.startsWith(start)) || ["", ""])[1];
  return h("span", { class: `chip ${kind}` }, verdict);
}

// ---------------------------------------------------------------- scales: values to a line and back
const linear = { to: (v) => v, from: (t) => t, ticks(low, high, count) {
  const rough = (high - low) / count, unit = 10 ** Math.floor(Math.log10(rough));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough);
  const ticks = [];
  const first = Math.ceil(low / step);
  for (let n = 0; n < 50 && (first + n) * step <= high + step * 1e-9; n++) ticks.push((first + n) * step);
  return ticks;
} };
const decades = (from, to, count) => {
  const skip = Math.max(1, Math.ceil((to - from + 1) / count)), found = [];
  for (let k = Math.ceil(from / skip) * skip; k <= to; k += skip) found.push(10 ** k);
  return found;
};
const log = { to: (v) => Math.log10(Math.max(v, 1e-300)), from: (t) => 10 ** t, ticks(low, high, count) {
  const ticks = decades(Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9), count);
  return ticks.length > 1 ? ticks : linear.ticks(low, high, count);
} };
/** Logarithmic, and the smaller the further to the right: stricter is later, as in the figures. */
const strict = { to: (v) => -log.to(v), from: (t) => log.from(-t), ticks: log.ticks };
/** Linear within c, logarithmic beyond, for both signs. */
const symlog = (c) => ({
  to: (v) => Math.sign(v) * Math.log10(1 + Math.abs(v) / c),
  from: (t) => Math.sign(t) * c * (10 ** Math.abs(t) - 1),
  ticks(low, high, count) {
    const ends = [low, high].filter((v) => v !== 0).map((v) => Math.log10(Math.abs(v)));
    if (low * high > 0 && Math.abs(ends[1] - ends[0]) < 1) return linear.ticks(low, high, count);
    const sizes = decades(Math.ceil(Math.log10(c)), Math.floor(Math.max(...ends)), low < 0 && high > 0 ? count / 2 : count);
    return [...sizes.map((v) => -v).reverse(), 0, ...sizes].filter((v) => v >= low && v <= high);
  },
});
/** Logarithmic for counts, where none at all has a place below one half. */
const NOTHING = -0.9;
const counting = { to: (v) => (v > 0 ? Math.log10(v) : NOTHING), from: (t) => (t <= NOTHING ? 0 : 10 ** t), ticks(low, high, count) {
  return [0, ...decades(0, Math.floor(Math.log10(Math.max(high, 1))), count)].filter((v) => v >= low && v <= high);
} };

// ---------------------------------------------------------------- a chart on canvas
class Chart {
  /** model() gives lines, scales and words; `moved` is told of a new x range, `pick` of a place pressed. */
  constructor(host, model, { moved = null, pick = null } = {}) {
    Object.assign(this, { model, moved, pick, x: null, y: null, cursor: null, drag: null, queued: false });
    this.canvas = h("canvas", { tabindex: 0, role: "img" });
    this.tip = h("div", { class: "tip", hidden: "", "aria-hidden": "true" });
    host.replaceChildren(h("div", { class: "plot" }, this.canvas, this.tip));
    this.context = this.canvas.getContext("2d");
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    const on = (name, act) => this.canvas.addEventListener(name, act);
    on("pointerdown", (e) => this.press(e));
    on("pointermove", (e) => this.move(e));
    on("pointerup", (e) => this.release(e));
    on("pointercancel", () => { this.drag = null; this.draw(); });
    on("pointerleave", () => { if (!this.drag) { this.cursor = null; this.draw(); } });
    on("blur", () => { this.cursor = null; this.draw(); });
    on("dblclick", () => this.reset());
    on("keydown", (e) => this.key(e));
  }

  draw() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => { this.queued = false; this.paint(); });
  }

  reset() { this.show(null, null); }

  show(x, y) {
    const { xs, whole } = this.model(), wide = (ends) => xs.to(ends[1]) - xs.to(ends[0]);
    if (x && wide(x) < 1e-5 * wide(whole)) return; // nothing lies between two points
    this.x = x; this.y = y;
    this.draw();
    if (this.moved) this.moved(x);
  }

  /** Halve or double what is seen, about the cursor or the middle. */
  zoom(factor) {
    const { xs } = this.model(), [low, high] = this.range.map(xs.to);
    const middle = this.cursor === null ? (low + high) / 2 : xs.to(this.cursor);
    const [least, most] = this.whole.map(xs.to);
    const ends = [Math.max(least, middle + (low - middle) * factor), Math.min(most, middle + (high - middle) * factor)];
    if (ends[0] <= least && ends[1] >= most) this.reset(); else this.show(ends.map(xs.from), null);
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    if (event.button || !this.frame) return;
    const [px, py] = this.place(event);
    this.drag = { px, py, qx: px, qy: py };
    try { this.canvas.setPointerCapture(event.pointerId); } catch { /* the pointer is gone */ }
    if (this.pick) this.pick(this.value(px));
  }

  move(event) {
    if (!this.frame) return;
    const [px, py] = this.place(event);
    this.cursor = this.value(px);
    if (this.drag) Object.assign(this.drag, { qx: px, qy: py });
    if (this.drag && this.pick) this.pick(this.cursor);
    this.draw();
  }

  release() {
    const drag = this.drag;
    this.drag = null;
    if (drag && !this.pick && Math.abs(drag.qx - drag.px) > 8) {
      const xs = [this.value(Math.min(drag.px, drag.qx)), this.value(Math.max(drag.px, drag.qx))];
      const tall = Math.abs(drag.qy - drag.py) > 24;
      const ys = tall ? [this.height(Math.max(drag.py, drag.qy)), this.height(Math.min(drag.py, drag.qy))] : null;
      this.show(xs, ys);
    }
    this.draw();
  }

  key(event) {
    const { xs } = this.model(), [low, high] = this.range.map(xs.to), step = (high - low) / 60;
    const along = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (along) {
      const from = this.cursor === null ? (low + high) / 2 : xs.to(this.cursor);
      this.cursor = xs.from(Math.min(high, Math.max(low, from + along)));
      if (this.pick) this.pick(this.cursor);
      this.draw();
      requestAnimationFrame(() => { $("say").textContent = this.spoken || ""; });
    } else if (event.key === "+" || event.key === "=") this.zoom(0.5);
    else if (event.key === "-") this.zoom(2);
    else if (event.key === "Escape" || event.key === "0") this.reset();
    else return;
    event.preventDefault();
  }

  value(px) {
    const { left, width } = this.frame, [a, b] = this.range.map(this.xs.to);
    return this.xs.from(a + (b - a) * Math.min(1, Math.max(0, (px - left) / width)));
  }

  height(py) {
    const { top, tall } = this.frame, [a, b] = this.rise.map(this.ys.to);
    return this.ys.from(a + (b - a) * Math.min(1, Math.max(0, 1 - (py - top) / tall)));
  }

  /** What lies between the ends of the view, and one neighbour on either side. */
  static span(line, ends) {
    const low = Math.min(...ends), high = Math.max(...ends);
    let a = 0, b = line.x.length - 1;
    while (a < b && line.x[a + 1] < low) a++;
    while (b > a && line.x[b - 1] > high) b--;
    return [a, b];
  }

  fit(lines) {
    let low = Infinity, high = -Infinity;
    for (const line of lines) {
      const [a, b] = Chart.span(line, this.range);
      for (let n = a; n <= b; n++) {
        if (line.low[n] < low) low = line.low[n];
        if (line.high[n] > high) high = line.high[n];
      }
    }
    if (!(low <= high)) return [0, 1];
    const [a, b] = [this.ys.to(low), this.ys.to(high)], pad = (b - a) * 0.05 || Math.abs(a) * 0.1 || 0.5;
    return this.ys === counting ? [0, counting.from(b + pad)] : [this.ys.from(a - pad), this.ys.from(b + pad)];
  }

  paint() {
    const model = this.model(), ctx = this.context, ratio = window.devicePixelRatio || 1;
    const W = this.canvas.clientWidth, H = this.canvas.clientHeight;
    if (!W || !H) return;
    this.canvas.width = Math.round(W * ratio); this.canvas.height = Math.round(H * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const lines = model.lines;
    Object.assign(this, { xs: model.xs, ys: model.ys, whole: model.whole });
    this.range = this.x || model.whole;
    this.rise = this.y || this.fit(lines);
    const left = 54, top = 10, width = W - left - 12, tall = H - top - 40;
    this.frame = { left, top, width, tall };
    const across = this.range.map(this.xs.to), up = this.rise.map(this.ys.to);
    const X = (v) => left + ((this.xs.to(v) - across[0]) / (across[1] - across[0] || 1)) * width;
    const Y = (v) => top + tall - ((this.ys.to(v) - up[0]) / (up[1] - up[0] || 1)) * tall;
    this.axes(ctx, model, X, Y, W, H);
    ctx.save();
    ctx.beginPath(); ctx.rect(left, top, width, tall); ctx.clip();
    for (const line of lines) this.band(ctx, line, X, Y);
    for (const line of lines) this.line(ctx, line, X, Y);
    if (model.marker !== undefined) this.upright(ctx, X(model.marker), css("--accent"), 1.6, []);
    if (this.cursor !== null) this.upright(ctx, X(this.cursor), css("--soft"), 1, [3, 3]);
    if (this.drag && !this.pick) this.selection(ctx);
    ctx.restore();
    this.readout(model, lines, X(this.cursor === null ? 0 : this.cursor), W);
    this.canvas.dataset.x = this.range.join(" ");
    this.canvas.dataset.y = this.rise.join(" ");
    this.canvas.dataset.lines = lines.length;
    this.canvas.setAttribute("aria-label", `${model.words} Arrow keys read values, plus and minus zoom, Escape shows all.`);
  }

  axes(ctx, model, X, Y, W, H) {
    const { left, top, width, tall } = this.frame;
    ctx.font = "12px system-ui, sans-serif"; ctx.lineWidth = 1;
    ctx.fillStyle = css("--soft"); ctx.textBaseline = "middle"; ctx.textAlign = "right";
    const taken = []; // zero first: a label that would touch another is left out
    const rungs = this.ys.ticks(...this.rise, Math.max(3, tall / 36)).sort((p, q) => (q === 0) - (p === 0));
    const names = labelled(rungs, this.ys !== linear);
    for (const [n, v] of rungs.entries()) {
      const y = Math.round(Y(v)) + 0.5;
      ctx.strokeStyle = v === 0 ? css("--soft") : css("--grid");
      ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + width, y); ctx.stroke();
      if (taken.some((other) => Math.abs(other - y) < 14)) continue;
      taken.push(y);
      ctx.fillText(names[n], left - 7, y);
    }
    ctx.textAlign = "center"; ctx.textBaseline = "top"; ctx.strokeStyle = css("--grid");
    const marks = this.xs.ticks(Math.min(...this.range), Math.max(...this.range), Math.max(3, width / 64)), words = labelled(marks, this.xs !== linear);
    for (const [n, v] of marks.entries()) {
      const x = Math.round(X(v)) + 0.5;
      ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, top + tall); ctx.stroke();
      const half = ctx.measureText(words[n]).width / 2;
      ctx.fillText(words[n], Math.min(x, W - half - 1), top + tall + 6);
    }
    ctx.fillText(model.xlabel, left + width / 2, H - 15);
  }

  /** From one point to the next the band is as wide as what happened between them. */
  band(ctx, line, X, Y) {
    const [a, b] = Chart.span(line, this.range);
    ctx.beginPath();
    const edge = (values, n) => {
      if (line.steps && n > 0) ctx.lineTo(X(line.x[n - 1]), Y(values[n]));
      ctx.lineTo(X(line.x[n]), Y(values[n]));
    };
    for (let n = a; n <= b; n++) edge(line.high, n);
    for (let n = b; n >= a; n--) {
      ctx.lineTo(X(line.x[n]), Y(line.low[n]));
      if (line.steps && n > 0) ctx.lineTo(X(line.x[n - 1]), Y(line.low[n]));
    }
    ctx.closePath();
    ctx.globalAlpha = isDark() ? 0.26 : 0.2; ctx.fillStyle = colour(line.entry); ctx.fill(); ctx.globalAlpha = 1;
  }

  line(ctx, line, X, Y) {
    const [a, b] = Chart.span(line, this.range);
    ctx.beginPath();
    for (let n = a; n <= b; n++) ctx.lineTo(X(line.x[n]), Y(line.median[n]));
    ctx.strokeStyle = colour(line.entry); ctx.lineWidth = thickness(line.entry); ctx.lineJoin = "round";
    ctx.setLineDash(line.entry.dash); ctx.stroke(); ctx.setLineDash([]);
  }

  upright(ctx, x, stroke, width, dash) {
    const { top, tall } = this.frame;
    ctx.beginPath(); ctx.moveTo(x, top); ctx.lineTo(x, top + tall);
    ctx.strokeStyle = stroke; ctx.lineWidth = width; ctx.setLineDash(dash); ctx.stroke(); ctx.setLineDash([]);
  }

  selection(ctx) {
    const { px, py, qx, qy } = this.drag, { top, tall } = this.frame, flat = Math.abs(qy - py) <= 24;
    const box = [Math.min(px, qx), flat ? top : Math.min(py, qy), Math.abs(qx - px), flat ? tall : Math.abs(qy - py)];
    ctx.fillStyle = css("--bar"); ctx.fillRect(...box);
    ctx.strokeStyle = css("--accent"); ctx.lineWidth = 1; ctx.strokeRect(...box);
  }

  readout(model, lines, px, W) {
    const off = this.cursor === null || !lines.length || (this.drag && !this.pick && Math.abs(this.drag.qx - this.drag.px) > 8);
    this.tip.hidden = Boolean(off);
    if (off) return;
    const say = model.number || fmt; // how the model's values are written
    const near = lines.map((line) => {
      let [n, m] = [0, line.x.length - 1];
      while (m - n > 1) { const half = (n + m) >> 1; if (line.x[half] < this.cursor) n = half; else m = half; }
      const k = Math.abs(line.x[n] - this.cursor) <= Math.abs(line.x[m] - this.cursor) ? n : m;
      return { line, x: line.x[k], median: line.median[k], low: line.low[k], high: line.high[k] };
    }).sort((p, q) => q.median - p.median);
    const rows = near.slice(0, 12).map(({ line, median, low, high }) => h("tr", {}, h("td", {}, swatch(line.entry), ` ${line.entry.label}`),
      h("td", {}, h("strong", {}, say(median))), h("td", {}, low === high ? "" : `${say(low)} … ${say(high)}`)));
    const head = model.at(near[0].x);
    this.tip.replaceChildren(h("table", {}, h("caption", {}, head), ...rows));
    this.spoken = `${head}: ${near.map((each) => `${each.line.entry.label} ${say(each.median)}`).join(", ")}`;
    const wide = this.tip.offsetWidth, place = px + wide + 16 < W ? px + 14 : px - wide - 14;
    this.tip.style.left = `${Math.max(2, Math.min(place, W - wide - 2))}px`;
    this.tip.style.top = "14px";
  }
}
