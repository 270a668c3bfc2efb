// Sort a table by its headings. The page says everything without this.
for (const heading of document.querySelectorAll("main table:not(.fixed) thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...heading.childNodes);
  heading.append(button);
  heading.setAttribute("aria-sort", "none");
  button.addEventListener("click", () => {
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const up = heading.getAttribute("aria-sort") === "descending";
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
    };
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    for (const other of heading.parentNode.cells) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    [...body.rows].sort((a, b) => compare(key(a), key(b)) * (up ? 1 : -1)).forEach((row) => body.append(row));
  });
}
