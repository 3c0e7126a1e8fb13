// The table of samples: search, selection of a cluster, order, pages, and a CSV file. Its data are in the page itself.
"use strict";
(() => {
  const PAGE_ROWS = 50;
  const columns = JSON.parse(document.getElementById("samples-data").textContent);
  // Values that repeat are listed once; each row has the place of its own among these, in one or two bytes.
  function decoded({ names, codes }) {
    const bytes = atob(codes);
    const place = names.length > 256
      ? (row) => bytes.charCodeAt(2 * row) + 256 * bytes.charCodeAt(2 * row + 1)
      : (row) => bytes.charCodeAt(row);
    return Array.from({ length: bytes.length / (names.length > 256 ? 2 : 1) }, (_, row) => names[place(row)]);
  }
  for (const column of columns) column.values ??= decoded(column);
  const element = (id) => document.getElementById(id);
  const [table, search, cluster] = ["samples-table", "samples-search", "samples-cluster"].map(element);
  const [previous, next, download] = ["samples-previous", "samples-next", "samples-download"].map(element);
  const headings = [...table.tHead.rows[0].cells];
  const labels = columns.find(({ name }) => name === "Cluster").values;
  const texts = columns.filter(({ kind }) => kind === "text");
  // The text of each row in which words are searched: its names, not its numbers.
  const searched = labels.map((_, row) => texts.map(({ values }) => values[row]).join(" ").toLowerCase());
  const collator = new Intl.Collator(undefined, { numeric: true });
  const swatches = new Map([...element("samples-swatches").content.children].map((one) => [one.dataset.label, one]));

  let order = labels.map((_, row) => row); // of all rows
  let matching = order;
  let start = 0;

  // Three decimals, or all of them if three would round the number to 0, 1 or -1.
  function written(value) {
    if (value === null) return "–";
    if (Number.isInteger(value)) return value.toLocaleString("en");
    const rounded = value.toFixed(3);
    return (Number.isInteger(Number(rounded)) ? String(value) : rounded).replace("-", "−");
  }

  function cell({ kind, values }, row, isFirst) {
    const made = document.createElement(isFirst ? "th" : "td");
    if (isFirst) made.scope = "row";
    made.className = kind === "number" ? "number" : "text";
    if (kind === "cluster") made.append(swatches.get(String(values[row])).cloneNode(true));
    else made.textContent = kind === "number" ? written(values[row]) : values[row];
    return made;
  }

  function show() {
    table.parentElement.scrollTop = 0;
    const end = Math.min(start + PAGE_ROWS, matching.length);
    table.tBodies[0].replaceChildren(...matching.slice(start, end).map((row) => {
      const made = document.createElement("tr");
      made.append(...columns.map((column, i) => cell(column, row, i === 0)));
      return made;
    }));
    element("samples-shown").textContent =
      matching.length === 0 ? "no sample" : `${written(start + 1)} to ${written(end)} of ${written(matching.length)}`;
    previous.disabled = start === 0;
    next.disabled = end === matching.length;
    download.disabled = matching.length === 0;
  }

  function select() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    matching = order.filter((row) =>
      (cluster.value === "" || String(labels[row]) === cluster.value) && words.every((word) => searched[row].includes(word)));
    start = 0;
    show();
  }

  function sort(heading) {
    const { kind, values } = columns[headings.indexOf(heading)];
    // The first click sorts margins and names in ascending order, as small margins are of interest.
    const ascending = heading.getAttribute("aria-sort") !== "ascending";
    const compare = kind === "text" ? collator.compare : (a, b) => (a ?? -1) - (b ?? -1);
    order = labels.map((_, row) => row).sort((a, b) => (ascending ? 1 : -1) * compare(values[a], values[b]));
    for (const each of headings) {
      each.setAttribute("aria-sort", each !== heading ? "none" : ascending ? "ascending" : "descending");
    }
    select();
  }

  // Spreadsheets compute cells that begin with these characters; an apostrophe makes them text. Numbers stay numbers.
  function csvCell(value) {
    const text = String(value ?? "");
    const safe = /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.]+(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function save() {
    const lines = matching.map((row) => columns.map(({ values }) => csvCell(values[row])).join(","));
    const header = columns.map(({ name }) => name.toLowerCase().replace(/[- ]/g, "_")).join(",");
    const address = URL.createObjectURL(new Blob([[header, ...lines, ""].join("\r\n")], { type: "text/csv" }));
    Object.assign(document.createElement("a"), { href: address, download: "samples.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  search.addEventListener("input", select);
  cluster.addEventListener("change", select);
  for (const heading of headings) heading.querySelector("button").addEventListener("click", () => sort(heading));
  previous.addEventListener("click", () => { start -= PAGE_ROWS; show(); });
  next.addEventListener("click", () => { start += PAGE_ROWS; show(); });
  download.addEventListener("click", save);
  show();
})();
