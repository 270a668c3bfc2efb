
// Choose a host, a rail or a job: rows and shapes that are about others are left out; what is about none stays.
const KINDS = {host: "Host", rail: "Rail", job: "Job"};

function filter(places) {
  const marked = [...document.querySelectorAll("[data-at]")].map((shown) => [shown, shown.dataset.at.split(" ")]);
  const selects = Object.entries(KINDS).filter(([kind]) => places.dataset[kind]).map(([kind, name]) => {
    const choices = JSON.parse(places.dataset[kind]).map(([tag, shown]) => element("option", {value: tag}, shown));
    return element("select", {"aria-label": name}, element("option", {value: ""}, `${name}: all`), ...choices);
  });
  const isElsewhere = (tags) => selects.some(({value}) => value && !tags.includes(value) && tags.some((tag) => tag[0] === value[0]));
  const count = element("output", {});
  const show = () => {
    let left = 0;
    for (const [shown, tags] of marked) {
      const isOut = isElsewhere(tags);
      shown.classList.toggle("elsewhere", isOut);
      left += isOut;
    }
    tables.forEach((changed) => changed());
    const isChosen = selects.some(({value}) => value);
    bar.classList.toggle("chosen", isChosen);
    all.hidden = !isChosen;
    count.value = isChosen ? `${left} of ${marked.length} rows and marks left out` : "";
  };
  const all = button("Show all", () => { for (const select of selects) select.value = ""; show(); selects[0].focus(); });
  const bar = element("div", {class: "tools filter", role: "search", "aria-label": "Filter the page"}, ...selects, all, count);
  for (const select of selects) select.addEventListener("change", show);
  document.querySelector("main").before(bar);
  show();
}

const places = document.getElementById("places");
if (places) filter(places);
