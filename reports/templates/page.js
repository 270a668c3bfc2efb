// Sort, search and page tables, and look closer at times. The page says everything without this.
const LEAST_ROWS = 13;  // of a table that can be searched
const PAGE_ROWS = 25;

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function button(text, act) {
  const made = element("button", {type: "button"}, text);
  made.addEventListener("click", act);
  return made;
}

function sortable(table, changed) {
  for (const heading of table.tHead.rows[0].cells) {
    const sort = button("", () => {
      const up = heading.getAttribute("aria-sort") === "descending";
      const key = (row) => {
        const cell = row.cells[heading.cellIndex];
        return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
      };
      const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
      for (const other of heading.parentNode.cells) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      [...body.rows].sort((a, b) => compare(key(a), key(b)) * (up ? 1 : -1)).forEach((row) => body.append(row));
      changed();
    });
    sort.append(...heading.childNodes);
    heading.append(sort);
    heading.setAttribute("aria-sort", "none");
  }
}

// Rows that hold every word of the search, a page of them at a time; returns what to call after the rows were sorted.
function searchable(table) {
  const body = table.tBodies[0];
  if (body.rows.length < LEAST_ROWS) return () => {};
  let page = 0;
  const search = element("input", {type: "search", placeholder: "Search", "aria-label": "Search the rows of this table"});
  const count = element("output", {});
  const turn = (by) => () => { page += by; show(); };
  const back = button("Back", turn(-1)), on = button("Next", turn(1));
  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...body.rows].filter((row) => !row.classList.contains("elsewhere") && words.every((word) => row.textContent.toLowerCase().includes(word)));
    page = Math.max(0, Math.min(page, Math.ceil(found.length / PAGE_ROWS) - 1));
    const [first, last] = [page * PAGE_ROWS, Math.min((page + 1) * PAGE_ROWS, found.length)];
    for (const row of body.rows) row.hidden = true;
    found.forEach((row, at) => {
      row.hidden = false;
      row.classList.toggle("other-page", at < first || at >= last);
    });
    back.disabled = page === 0;
    on.disabled = last === found.length;
    back.hidden = on.hidden = body.rows.length <= PAGE_ROWS;
    count.value = found.length ? `${first + 1} to ${last} of ${found.length} rows` : "no row";
  };
  search.addEventListener("input", () => { page = 0; show(); });
  (table.closest(".scroll") ?? table).before(element("div", {class: "tools"}, search, count, back, on));
  show();
  return () => { page = 0; show(); };
}

const tables = [];  // what to call after rows were filtered
for (const table of document.querySelectorAll("main table:not(.fixed)")) {
  tables.push(searchable(table));
  sortable(table, tables.at(-1));
}

// Plots on one clock share a crosshair, and a stretch of time that a drag or the keys choose.
const UNITS = [["s", 1e12], ["ms", 1e9], ["us", 1e6], ["ns", 1e3], ["ps", 1]];

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function shownTime(time, span) {
  const [unit, size] = UNITS.find(([, one]) => Math.max(Math.abs(time), span) >= one) ?? UNITS.at(-1);
  const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.max(span / size, 1e-9)))));
  return `${Number((time / size).toFixed(digits))} ${unit}`;
}

// The least of 1, 2 or 5 times a power of ten that is not below.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least * 0.999);
}

function opened(group) {
  const figure = group.ownerSVGElement;
  const [low, high, left, right, top, foot] = ["low", "high", "left", "right", "top", "foot"].map((key) => Number(group.dataset[key]));
  const clip = drawn("svg", {x: left, y: 0, width: right - left, height: foot, viewBox: `${left} 0 ${right - left} ${foot}`});
  group.before(clip);
  clip.append(group);
  const cross = drawn("line", {class: "cross", y1: top, y2: foot, visibility: "hidden"});
  const label = drawn("text", {class: "tick", y: top - 4, visibility: "hidden"});
  const ticks = drawn("g", {});
  figure.append(ticks, cross, label);
  figure.setAttribute("tabindex", "0");
  return {group, figure, low, high, left, right, top, foot, cross, label, ticks, own: figure.querySelector("g.across")};
}

function share(plots) {
  const resets = [];
  let chosen = null;  // [from, to] of the times shown, null where all are
  const shownOf = (plot) => chosen ?? [plot.low, plot.high];
  const placeOf = (plot, time) => {
    const [from, to] = shownOf(plot);
    return plot.left + ((time - from) / (to - from)) * (plot.right - plot.left);
  };

  function timeAt(plot, event) {
    const box = plot.figure.getBoundingClientRect();
    const x = ((event.clientX - box.left) * plot.figure.viewBox.baseVal.width) / box.width;
    const [from, to] = shownOf(plot);
    return Math.max(from, Math.min(to, from + ((x - plot.left) / (plot.right - plot.left)) * (to - from)));
  }

  function point(time) {
    for (const plot of plots) {
      const [from, to] = shownOf(plot);
      const seen = time !== null && time >= from && time <= to ? "visible" : "hidden";
      for (const mark of [plot.cross, plot.label]) mark.setAttribute("visibility", seen);
      if (seen === "hidden") continue;
      const x = placeOf(plot, time);
      plot.cross.setAttribute("x1", x);
      plot.cross.setAttribute("x2", x);
      plot.label.setAttribute("x", x);
      plot.label.setAttribute("text-anchor", x > (plot.left + plot.right) / 2 ? "end" : "start");
      plot.label.textContent = shownTime(time, (to - from) / 100);
    }
  }

  function zoom(stretch) {
    const [least, most] = [Math.min(...plots.map((plot) => plot.low)), Math.max(...plots.map((plot) => plot.high))];
    chosen = stretch && [Math.max(least, stretch[0]), Math.min(most, stretch[1])];
    if (chosen && (chosen[1] - chosen[0] >= most - least || chosen[1] - chosen[0] < 1)) chosen = null;
    for (const plot of plots) {
      const [from, to] = shownOf(plot);
      const scale = (plot.high - plot.low) / (to - from);
      const start = plot.left + ((from - plot.low) / (plot.high - plot.low)) * (plot.right - plot.left);
      plot.group.setAttribute("transform", `translate(${plot.left - scale * start} 0) scale(${scale} 1)`);
      plot.own.setAttribute("visibility", chosen ? "hidden" : "visible");
      const step = roundStep((to - from) / 6);
      const times = chosen ? Array.from({length: 13}, (_, at) => (Math.ceil(from / step) + at) * step).filter((time) => time <= to) : [];
      plot.ticks.replaceChildren(...times.map((time) => {
        const x = placeOf(plot, time);
        const anchor = x > plot.right - 24 ? "end" : "middle";
        return drawn("text", {class: "tick", x, y: plot.foot + 16, "text-anchor": anchor}, shownTime(time, step));
      }));
    }
    for (const reset of resets) reset.hidden = chosen === null;
  }

  for (const plot of plots) {
    let begin = null;
    const choice = drawn("rect", {class: "choice", y: plot.top, height: plot.foot - plot.top, visibility: "hidden"});
    plot.figure.append(choice);
    const hide = () => { begin = null; choice.setAttribute("visibility", "hidden"); };
    plot.figure.addEventListener("pointerdown", (event) => { if (event.button === 0) begin = timeAt(plot, event); });
    plot.figure.addEventListener("pointermove", (event) => {
      const time = timeAt(plot, event);
      point(time);
      if (begin === null) return;
      const ends = [begin, time].map((end) => placeOf(plot, end)).sort((a, b) => a - b);
      choice.setAttribute("x", ends[0]);
      choice.setAttribute("width", ends[1] - ends[0]);
      choice.setAttribute("visibility", "visible");
    });
    plot.figure.addEventListener("pointerup", (event) => {
      if (begin === null) return;
      const ends = [begin, timeAt(plot, event)].sort((a, b) => a - b);
      hide();
      if (placeOf(plot, ends[1]) - placeOf(plot, ends[0]) > 8) zoom(ends);
    });
    plot.figure.addEventListener("pointerleave", () => { hide(); point(null); });
    plot.figure.addEventListener("dblclick", () => zoom(null));
    plot.figure.addEventListener("keydown", (event) => {
      const [from, to] = shownOf(plot);
      const [middle, half] = [(from + to) / 2, (to - from) / 2];
      const moved = (by) => [from + by * half, to + by * half];
      const stretches = {"+": [middle - half / 2, middle + half / 2], "-": [middle - 2 * half, middle + 2 * half], ArrowLeft: moved(-0.5), ArrowRight: moved(0.5), Escape: null};
      if (!(event.key in stretches) || (event.key.startsWith("Arrow") && chosen === null)) return;
      event.preventDefault();
      zoom(stretches[event.key]);
    });
    const reset = button("Show all times", () => zoom(null));
    reset.className = "reset-time";
    reset.hidden = true;
    resets.push(reset);
    plot.figure.after(reset);
  }
}

const clocks = new Map();
for (const group of document.querySelectorAll("g.plot")) {
  const clock = group.dataset.clock;
  clocks.set(clock, [...(clocks.get(clock) ?? []), opened(group)]);
}
clocks.forEach(share);
