// Code of every page: light and dark theme, sorting and filtering of tables. `data-ready` is the time in milliseconds
// from the start of the navigation until the page, including its plots, is drawn.
"use strict";
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const switcher = document.getElementById("theme");

  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);

  function showTheme() {
    switcher.textContent = isDark() ? "Light theme" : "Dark theme";
    document.dispatchEvent(new Event("coview:theme"));
  }

  switcher.hidden = false;
  switcher.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);

  // Printing uses the light theme; the reader's theme is restored afterwards.
  let themeBefore;
  addEventListener("beforeprint", () => {
    themeBefore = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("printing");
    document.dispatchEvent(new Event("coview:theme"));
  });
  addEventListener("afterprint", () => {
    if (themeBefore === undefined) delete root.dataset.theme;
    else root.dataset.theme = themeBefore;
    root.classList.remove("printing");
    document.dispatchEvent(new Event("coview:theme"));
  });

  const cellValue = (cell) => (cell ? cell.dataset.value ?? cell.textContent.trim() : "");

  function compare(a, b) {
    const [x, y] = [Number(a), Number(b)];
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
  }

  function sort(table, heading) {
    const headings = [...heading.parentNode.children];
    const column = headings.indexOf(heading);
    // The first click sorts numbers in descending and names in ascending order.
    const first = heading.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const order = heading.getAttribute("aria-sort") === first ? other : first;
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, value: cellValue(row.cells[column]) }));
    // Missing values stay last in both orders.
    rows.sort((a, b) =>
      a.value === "" || b.value === "" ? (a.value === "") - (b.value === "") : sign * compare(a.value, b.value));
    for (const each of headings) each.setAttribute("aria-sort", each === heading ? order : "none");
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }

  for (const table of document.querySelectorAll("table.sortable:not(#samples-table)")) {
    for (const button of table.tHead.querySelectorAll("button")) {
      button.addEventListener("click", () => sort(table, button.closest("th")));
    }
  }

  for (const input of document.querySelectorAll("input[data-filters]")) {
    const rows = [...document.getElementById(input.dataset.filters).tBodies[0].rows];
    const output = document.querySelector(`output[for="${input.id}"]`);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      output.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
    });
  }

  const card = document.getElementById("card");
  if (card) {
    const showSelected = () => {
      for (const each of document.querySelectorAll("[data-cluster]")) {
        each.hidden = card.value !== "" && each.dataset.cluster !== card.value;
      }
    };
    card.addEventListener("change", showSelected);
    showSelected();
  }

  showTheme();
  if (!document.getElementById("data")) root.dataset.ready = performance.now().toFixed(0);
})();
