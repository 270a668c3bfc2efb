// Draw the ranks of the table as cubes. The table says everything without this.
const view = document.getElementById("view");
const canvas = document.getElementById("cubes");
const controls = document.getElementById("controls");
const legend = document.getElementById("legend");
const hint = document.getElementById("hint");
const firstHint = hint.textContent;
const head = [...document.querySelectorAll("#ranks thead th")].map((cell) => cell.textContent);
const axes = head.slice(2, head.indexOf("State"));
const columns = head.slice(head.indexOf("State") + 1, -1);
const numbers = (text) => text.trim().split(/\s+/).filter(Boolean).map(Number);
const dark = matchMedia("(prefers-color-scheme: dark)");

// Okabe and Ito's colours, told apart by readers who do not tell red from green; states in the order of the table's own.
const STATES = ["#93c1e6", "#e6b800", "#e07b00", "#cc79a7", "#9aa0a8", "#b3261e", "#3a3f47", "#2fa37c"];
const RAMP = ["#c9dff2", "#93c1e6", "#559dd3", "#2273b5", "#0b3d78"];
const UNKNOWN = "#9aa0a8";

const cubes = [...document.querySelectorAll("#ranks tbody tr")].map((row) => {
  const values = row.dataset.values.split(" ").slice(0, columns.length).map((text) => (text === "" ? NaN : Number(text)));
  return {row, place: numbers(row.dataset.place), values, state: Number(row.dataset.state), name: row.cells[2 + axes.length].textContent};
});
const size = axes.map((_, axis) => 1 + Math.max(0, ...cubes.map((cube) => cube.place[axis] ?? 0)));
let spare = 0;
for (const cube of cubes) {
  const [x = 0, y = 0, z = 0] = cube.place;
  cube.at = cube.place.length ? [x, y, z] : [spare++, -2, 0];
}

const start = {yaw: 0.7, pitch: 0.5, zoom: 1};
let camera = {...start};
let drawn = [];
let hovered = null;

function shown() {
  return cubes.filter((cube) => axes.every((axis, at) => {
    const chosen = controls.elements[axis].value;
    return chosen === "" || cube.place[at] === Number(chosen);
  }));
}

function ramp(cube, column, high) {
  const value = cube.values[column];
  if (Number.isNaN(value)) return UNKNOWN;
  const [low, top] = column === 0 ? [1, Math.max(high, 1.02)] : [0, Math.max(high, 0.01)];
  return RAMP[Math.max(0, Math.min(RAMP.length - 1, Math.floor(((value - low) / (top - low)) * RAMP.length)))];
}

function shade(colour, by) {
  const part = (at) => Math.round(parseInt(colour.slice(at, at + 2), 16) * by);
  return `rgb(${part(1)}, ${part(3)}, ${part(5)})`;
}

function turned([x, y, z]) {
  const [cx, cy, cz] = [0, 1, 2].map((axis) => ((size[axis] ?? 1) - 1) / 2);
  const [dx, dy, dz] = [x - cx, y - cy, z - cz];
  const across = dx * Math.cos(camera.yaw) - dy * Math.sin(camera.yaw);
  const away = dx * Math.sin(camera.yaw) + dy * Math.cos(camera.yaw);
  return [across, -dz * Math.cos(camera.pitch) - away * Math.sin(camera.pitch), away * Math.cos(camera.pitch) - dz * Math.sin(camera.pitch)];
}

function draw() {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const chosen = controls.elements.colour.value;
  const visible = shown();
  const isMarked = visible.some((cube) => cube.state > 0);  // then the others let it through
  const high = chosen === "state" ? 0 : Math.max(...cubes.map((cube) => cube.values[chosen]).filter((value) => !Number.isNaN(value)), 0);
  const reach = Math.hypot(...[0, 1, 2].map((axis) => (size[axis] ?? 1) + 1));
  const unit = (Math.min(width, height) / reach) * camera.zoom;
  const edge = 0.36;
  const corner = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]].map((bits) => bits.map((bit) => (bit ? edge : -edge)));
  const faces = [[4, 5, 6, 7, 1.0], [0, 1, 5, 4, 0.8], [3, 2, 6, 7, 0.8], [0, 3, 7, 4, 0.62], [1, 2, 6, 5, 0.62], [0, 1, 2, 3, 0.5]];
  const project = (point) => {
    const [x, y, depth] = turned(point);
    return [width / 2 + x * unit, height / 2 + y * unit, depth];
  };
  drawn = visible.map((cube) => ({cube, centre: project(cube.at)})).sort((a, b) => b.centre[2] - a.centre[2]);
  for (const {cube} of drawn) {
    const colour = chosen === "state" ? STATES[cube.state] : ramp(cube, Number(chosen), high);
    pen.globalAlpha = chosen === "state" && isMarked && cube.state === 0 && cube !== hovered ? 0.3 : 1;
    const points = corner.map((offset) => project(cube.at.map((value, axis) => value + offset[axis])));
    const depths = faces.map(([a, b, c, d]) => points[a][2] + points[b][2] + points[c][2] + points[d][2]);
    for (const face of [...faces.keys()].sort((a, b) => depths[b] - depths[a]).slice(3)) {
      const [a, b, c, d, light] = faces[face];
      pen.beginPath();
      for (const point of [a, b, c, d]) pen.lineTo(points[point][0], points[point][1]);
      pen.closePath();
      pen.fillStyle = shade(colour, light);
      pen.fill();
      pen.strokeStyle = cube === hovered ? (dark.matches ? "#ffffff" : "#000000") : shade(colour, light * 0.7);
      pen.lineWidth = cube === hovered ? 2 : 0.5;
      pen.stroke();
    }
  }
  pen.globalAlpha = 1;
  drawAxes(pen, project);
  drawLegend(chosen, high);
}

function drawAxes(pen, project) {
  pen.fillStyle = pen.strokeStyle = dark.matches ? "#9aa4b0" : "#5b6470";
  pen.font = "13px sans-serif";
  pen.lineWidth = 1;
  const origin = [-1, -1, -1];
  axes.slice(0, 3).forEach((axis, at) => {
    const end = origin.map((value, other) => (other === at ? size[at] : value));
    const [from, to] = [project(origin), project(end)];
    pen.beginPath();
    pen.moveTo(from[0], from[1]);
    pen.lineTo(to[0], to[1]);
    pen.stroke();
    pen.fillText(`${axis} 0 to ${size[at] - 1}`, to[0] + 4, to[1] + 4);
  });
}

function drawLegend(chosen, high) {
  const entry = (text, colour) => {
    const label = document.createElement("span");
    label.textContent = text;
    label.style.setProperty("--swatch", colour);
    return label;
  };
  if (chosen === "state") {
    const seen = new Map(cubes.map((cube) => [cube.state, cube.name]));
    legend.replaceChildren(...[...seen].sort((a, b) => a[0] - b[0]).map(([state, name]) => entry(name, STATES[state])));
    return;
  }
  const percent = (value) => `${(100 * value).toFixed(1)} %`;
  const [low, top] = chosen === "0" ? ["1", Math.max(high, 1.02).toFixed(3)] : ["0 %", percent(Math.max(high, 0.01))];
  legend.replaceChildren(entry(`${low} or less`, RAMP[0]), ...RAMP.slice(1, -1).map((colour) => entry("", colour)), entry(top, RAMP.at(-1)), entry("not known", UNKNOWN));
}

function hover(event) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const reach = Math.hypot(...[0, 1, 2].map((axis) => (size[axis] ?? 1) + 1));
  const near = 0.6 * (Math.min(canvas.clientWidth, canvas.clientHeight) / reach) * camera.zoom;
  const under = drawn.filter(({centre}) => Math.hypot(centre[0] - x, centre[1] - y) < near);
  const found = under.length ? under.at(-1).cube : null;  // the nearest is drawn last
  if (found === hovered) return;
  hovered = found;
  hint.textContent = found ? head.map((name, at) => `${name} ${found.row.cells[at].textContent}`).filter((text, at) => found.row.cells[at].textContent).join(", ") : firstHint;
  draw();
}

let grabbed = null;
canvas.addEventListener("pointerdown", (event) => {
  grabbed = [event.clientX, event.clientY];
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => { grabbed = null; });
canvas.addEventListener("pointermove", (event) => {
  if (!grabbed) return hover(event);
  turn((event.clientX - grabbed[0]) / 150, (event.clientY - grabbed[1]) / 150);
  grabbed = [event.clientX, event.clientY];
});
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
}, {passive: false});
const KEYS = {
  ArrowLeft: () => turn(-0.1, 0), ArrowRight: () => turn(0.1, 0), ArrowUp: () => turn(0, -0.1), ArrowDown: () => turn(0, 0.1),
  "+": () => zoom(1.1), "=": () => zoom(1.1), "-": () => zoom(1 / 1.1),
};
canvas.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});

function turn(yaw, pitch) {
  camera.yaw += yaw;
  camera.pitch = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, camera.pitch + pitch));
  draw();
}

function zoom(by) {
  camera.zoom = Math.max(0.2, Math.min(20, camera.zoom * by));
  draw();
}

controls.addEventListener("change", draw);
controls.addEventListener("reset", () => {
  camera = {...start};
  setTimeout(draw);
});
addEventListener("resize", draw);
dark.addEventListener("change", draw);
view.hidden = false;
draw();
