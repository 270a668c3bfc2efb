
// Figures as files: as SVG, and as PNG by drawing each shape on a canvas, since the page's policy admits no image.
const PIXELS = 2;  // of a PNG for a unit of the figure
const INHERITED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-family", "font-size", "font-weight", "text-anchor", "visibility"];
const OWN = {"opacity": "1", "vector-effect": "none"};

function ground() {
  return getComputedStyle(document.body).backgroundColor;
}

// The figure as it is shown, with what the style sheet says written at its shapes.
function asSvg(figure) {
  const copy = figure.cloneNode(true);
  const copies = [copy, ...copy.querySelectorAll("*")];
  [figure, ...figure.querySelectorAll("*")].forEach((shown, at) => {
    const style = getComputedStyle(shown), above = at ? getComputedStyle(shown.parentNode) : null;
    for (const name of INHERITED) {
      const value = style.getPropertyValue(name);
      if (value !== above?.getPropertyValue(name)) copies[at].setAttribute(name, value);
    }
    for (const [name, usual] of Object.entries(OWN)) {
      if (style.getPropertyValue(name) !== usual) copies[at].setAttribute(name, style.getPropertyValue(name));
    }
    copies[at].removeAttribute("class");
  });
  const {width, height} = figure.viewBox.baseVal;
  copy.prepend(drawn("rect", {width, height, fill: ground()}));
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new Blob([new XMLSerializer().serializeToString(copy)], {type: "image/svg+xml"});
}

function outlineOf(shape) {
  const outline = new Path2D(shape.getAttribute("d") ?? "");
  const at = (name) => shape[name].baseVal.value;
  if (shape.tagName === "rect") outline.rect(at("x"), at("y"), at("width"), at("height"));
  if (shape.tagName === "circle") outline.arc(at("cx"), at("cy"), at("r"), 0, 2 * Math.PI);
  if (shape.tagName === "line") {
    outline.moveTo(at("x1"), at("y1"));
    outline.lineTo(at("x2"), at("y2"));
  }
  return outline;
}

function paint(context, figure, shape) {
  const style = getComputedStyle(shape), frame = shape.viewportElement;
  if (style.visibility === "hidden") return;
  const place = [figure.getScreenCTM().inverse(), shape.getScreenCTM()]
    .reduce((product, matrix) => product.multiply(DOMMatrix.fromMatrix(matrix)), new DOMMatrix([PIXELS, 0, 0, PIXELS, 0, 0]));
  context.save();
  if (frame !== figure) {  // what is zoomed into ends at the edges of its plot
    const edges = new Path2D();
    edges.rect(...["x", "y", "width", "height"].map((name) => PIXELS * frame[name].baseVal.value));
    context.clip(edges);
  }
  context.globalAlpha = Number(style.opacity);
  context.fillStyle = style.fill;
  if (shape.tagName === "text") {
    context.setTransform(place);
    context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    context.textAlign = {middle: "center", end: "right"}[style.textAnchor] ?? "left";
    context.fillText(shape.textContent, shape.getAttribute("x"), shape.getAttribute("y"));
  } else {
    const outline = new Path2D();
    outline.addPath(outlineOf(shape), place);
    if (style.fill !== "none") context.fill(outline);
    if (style.stroke !== "none") {
      context.strokeStyle = style.stroke;
      context.lineWidth = PIXELS * parseFloat(style.strokeWidth);
      context.setLineDash(style.strokeDasharray === "none" ? [] : style.strokeDasharray.split(",").map((dash) => PIXELS * parseFloat(dash)));
      context.stroke(outline);
    }
  }
  context.restore();
}

function asPng(figure) {
  const {width, height} = figure.viewBox.baseVal;
  const canvas = element("canvas", {width: PIXELS * width, height: PIXELS * height});
  const context = canvas.getContext("2d");
  context.fillStyle = ground();
  context.fillRect(0, 0, canvas.width, canvas.height);
  for (const shape of figure.querySelectorAll("path, line, rect, circle, text")) paint(context, figure, shape);
  return new Promise((done) => canvas.toBlob(done));
}

function save(file, name) {
  const url = URL.createObjectURL(file);
  element("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

document.querySelectorAll("main figure").forEach((figure, at) => {
  const drawing = figure.querySelector("svg");
  const name = [document.title, figure.closest("section").id, at + 1].join(" ").replace(/[^\p{L}\p{N}_.]+/gu, "-");
  figure.querySelector("figcaption").after(element("div", {class: "tools save"},
    button("Save SVG", () => save(asSvg(drawing), `${name}.svg`)),
    button("Save PNG", async () => save(await asPng(drawing), `${name}.png`))));
});
