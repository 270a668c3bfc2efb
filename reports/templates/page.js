// Sort a table by a click on a heading. The page says everything without this.
for (const heading of document.querySelectorAll("main table:not(.fixed) thead th")) {
  heading.tabIndex = 0;
  const sort = () => {
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const up = heading.getAttribute("aria-sort") === "descending";
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
    };
    const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    [...body.rows].sort((a, b) => compare(key(a), key(b)) * (up ? 1 : -1)).forEach((row) => body.append(row));
  };
  heading.addEventListener("click", sort);
  heading.addEventListener("keydown", (event) => event.key === "Enter" && sort());
}
