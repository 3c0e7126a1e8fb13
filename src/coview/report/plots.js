// The plots of a report: support, samples, spectrum, tree, similarities. Their data are in the page itself.
"use strict";
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const element = (id) => document.getElementById(id);
  const config = {
    responsive: true,
    displaylogo: false,
    showSendToCloud: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { scale: 2 },
  };

  function unpack({ low, step, codes }) {
    const bytes = Uint8Array.from(atob(codes), (letter) => letter.charCodeAt(0));
    const numbers = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 2 }, (_, i) => {
      const code = numbers.getUint16(2 * i, true);
      return code === 65535 ? NaN : low + step * code;
    });
  }

  // Plotly interprets some HTML in strings; names of samples must appear literally.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  function colour(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function theme() {
    const [ink, quiet, line, paper, high, heat] = ["ink", "quiet", "line", "paper", "high", "heat"].map(colour);
    return { ink, quiet, line, paper, high, heat };
  }

  function layout(more) {
    const { ink, quiet, line, paper } = theme();
    const axis = (own) => ({
      gridcolor: line, zerolinecolor: quiet, linecolor: line, automargin: true, tickfont: { color: quiet }, ...own,
      title: { standoff: 10, font: { size: 13, color: quiet }, ...own?.title },
    });
    return {
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: ink },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 48, r: 12, t: 32, b: 44 },
      showlegend: false,
      hoverlabel: { bgcolor: paper, bordercolor: line, font: { color: ink }, align: "left" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: quiet, activecolor: ink },
      ...more,
      xaxis: axis(more.xaxis),
      ...(more.xaxis2 && { xaxis2: axis(more.xaxis2) }),
      yaxis: axis(more.yaxis),
    };
  }

  // A printed page is narrower than most windows, and its plots cannot be resized.
  const printSize = {
    scatter: { width: 520, height: 420 },
    decay: { width: 320, height: 260 },
    variance: { width: 320, height: 260 },
    heatmap: { width: 560, height: 500 },
    sankey: { width: 560, height: 420 },
  };

  function show(id, traces, more) {
    const isPrinted = document.documentElement.classList.contains("printing");
    const size = isPrinted ? printSize[id] ?? { width: 560, height: element(id).clientHeight } : { autosize: true };
    return Plotly.react(id, traces, { ...layout(more), ...size }, config);
  }

  const webgl = (() => {
    try {
      return Boolean(document.createElement("canvas").getContext("webgl"));
    } catch {
      return false;
    }
  })();

  const clusterStyle = (number) => ({
    colour: data.colours[number % data.colours.length],
    shape: data.shapes[Math.floor(number / data.colours.length) % data.shapes.length],
  });

  function scatter() {
    const { samples, groupings, spaces } = data.points;
    const unpacked = new Map();
    const component = (space, number) => {
      const key = `${space} ${number}`;
      const packed = space === "map" ? data.points.map : spaces[Number(space)].components;
      if (!unpacked.has(key)) unpacked.set(key, unpack(packed[number]));
      return unpacked.get(key);
    };
    const jitter = Float64Array.from(samples, (_, i) => (i * 0.6180339887) % 1);
    const quantities = data.points.quantities.map(({ name, values }) => ({ name, values: unpack(values) }));
    const [colourBy, space, across, up] = ["colour", "space", "across", "up"].map(element);
    const list = element("legend").querySelector("ul");

    // Keeps the selected value if it is still available.
    function options(select, names, otherwise) {
      const old = select.value;
      select.replaceChildren(...names.map(([value, text]) => new Option(text, value)));
      select.value = names.some(([value]) => value === old) ? old : otherwise;
    }
    const colourings = [...groupings, ...quantities];
    options(colourBy, colourings.map(({ name }, i) => [String(i), name]), "0");
    const colouring = () => colourings[Number(colourBy.value)];
    const byGroup = () => Number(colourBy.value) < groupings.length;
    const onMap = () => space.value === "map";
    const numberedSpaces = spaces.map(({ name }, i) => [String(i), `scores of ${name}`]);
    options(space, data.points.map ? [["map", "map (t-SNE)"], ...numberedSpaces] : numberedSpaces, "map");
    if (!space.value) space.value = "0";
    // A view can have fewer components than all views together.
    function listComponents() {
      for (const select of [across, up]) select.closest("div").hidden = onMap();
      const n = onMap() ? 2 : spaces[Number(space.value)].components.length;
      const numbered = Array.from({ length: n }, (_, i) => [String(i), `component ${i + 1}`]);
      options(across, numbered, "0");
      options(up, [...numbered, ["jitter", "none (jitter)"]], n > 1 ? "1" : "jitter");
    }
    listComponents();
    space.closest("div").hidden = space.options.length === 1;

    let hidden = new Set();

    function legend() {
      hidden = new Set();
      element("legend").querySelector(".buttons").hidden = !byGroup();
      if (!byGroup()) {
        const item = document.createElement("li");
        item.textContent = `All samples; the colour bar shows the ${colouring().name}.`;
        list.replaceChildren(item);
        return;
      }
      const { names, short_names, numbers, counts } = colouring();
      list.replaceChildren(...names.map((name, i) => {
        const { colour: fill, shape } = clusterStyle(numbers[i]);
        const item = document.createElement("li");
        const label = document.createElement("label");
        const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
        const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
        swatch.setAttribute("viewBox", "0 0 12 12");
        swatch.setAttribute("class", "swatch");
        swatch.setAttribute("aria-hidden", "true");
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", shape.path);
        path.setAttribute("fill", fill);
        swatch.append(path);
        const text = Object.assign(document.createElement("span"), { textContent: short_names[i], title: name });
        const size = document.createElement("small");
        size.textContent = counts?.[i]?.toLocaleString("en") ?? "";
        label.append(box, swatch, text, size);
        item.append(label);
        box.addEventListener("change", () => {
          if (box.checked) hidden.delete(i);
          else hidden.add(i);
          draw();
        });
        return item;
      }));
    }

    function hoverText(i) {
      const lines = groupings.map(({ name, names, codes }) => `${plain(name)}: ${plain(names[codes[i]])}`);
      for (const { name, values } of quantities) {
        if (!Number.isNaN(values[i])) lines.push(`${plain(name)}: ${values[i].toPrecision(4)}`);
      }
      return `<b>${plain(samples[i])}</b><br>${lines.join("<br>")}`;
    }
    const texts = samples.map((_, i) => hoverText(i));

    const coordinates = (select) =>
      select.value === "jitter" ? jitter : component(space.value, Number(select.value));

    // One trace for all groups: with one trace per group, the last group would cover the others.
    function trace() {
      const { codes, numbers, values } = colouring();
      const kept = [...samples.keys()].filter((i) => !byGroup() || !hidden.has(codes[i]));
      const [x, y] = [across, up].map(coordinates);
      const styles = byGroup() && numbers.map(clusterStyle);
      const marker = { size: samples.length > 2000 ? 5 : 6.5, opacity: 0.85 };
      if (byGroup()) {
        marker.color = kept.map((i) => styles[codes[i]].colour);
        marker.symbol = styles.some(({ shape }) => shape !== styles[0].shape)
          ? kept.map((i) => styles[codes[i]].shape.name)
          : styles[0].shape.name;
      } else {
        const title = { text: plain(colouring().name) };
        // Beside the samples, the bar would take up a third of a narrow window.
        const isNarrow = element("scatter").clientWidth < 500;
        const below = isNarrow ? { orientation: "h", y: onMap() ? 0 : -0.2, yanchor: "top" } : {};
        Object.assign(marker, {
          color: kept.map((i) => values[i]),
          colorscale: ["smallest", "middle", "largest"].map((name, i) => [i / 2, colour(name)]),
          showscale: true,
          colorbar: { thickness: 10, outlinewidth: 0, title, tickfont: { color: theme().quiet }, ...below },
        });
      }
      return {
        type: webgl ? "scattergl" : "scatter",
        mode: "markers",
        x: kept.map((i) => x[i]),
        y: kept.map((i) => y[i]),
        text: kept.map((i) => texts[i]),
        hoverinfo: "text",
        marker,
      };
    }

    // The training samples behind new samples on the map.
    const training = data.points.training?.map(unpack);
    function background() {
      if (!training || !onMap()) return [];
      const [x, y] = training.map((axis) => Array.from(axis));
      const marker = { size: 5, color: theme().quiet, opacity: 0.25 };
      return [{ type: webgl ? "scattergl" : "scatter", mode: "markers", x, y, hoverinfo: "skip", marker }];
    }

    function axisTitle(select) {
      if (select.value === "jitter") return "jitter (no meaning)";
      const ratio = data.variance?.shown[Number(select.value)];
      return `component ${Number(select.value) + 1}` +
        (ratio == null || space.value !== "0" ? "" : ` (${ratio} of the variance)`);
    }

    // The name of each group at the median of its samples, which is inside of compact groups.
    function groupNames() {
      if (!onMap() || !byGroup() || colouring().names.length > 30) return [];
      const { codes, short_names } = colouring();
      const [x, y] = [across, up].map(coordinates);
      const { ink, paper } = theme();
      const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
      return short_names.flatMap((name, code) => {
        const members = [...samples.keys()].filter((i) => codes[i] === code);
        if (!members.length || hidden.has(code)) return [];
        return {
          x: median(members.map((i) => x[i])), y: median(members.map((i) => y[i])), text: plain(name),
          showarrow: false, bgcolor: paper, borderpad: 2, opacity: 0.85, font: { size: 12, color: ink },
        };
      });
    }

    const bare = { visible: false };

    function draw() {
      const drawn = onMap() ? "Map of the samples" : "Scatter plot of the scores";
      element("scatter").setAttribute("aria-label", `${drawn}, coloured by ${colouring().name}`);
      const jittered = up.value === "jitter";
      const axes = onMap() ? { xaxis: bare, yaxis: { ...bare, scaleanchor: "x" }, annotations: groupNames() } : {
        xaxis: { title: { text: axisTitle(across) } },
        yaxis: { title: { text: axisTitle(up) }, showticklabels: !jittered, showgrid: !jittered },
        annotations: [],
      };
      return show("scatter", [...background(), trace()], {
        ...axes,
        hovermode: "closest",
        dragmode: "pan",
        uirevision: `${space.value} ${across.value} ${up.value}`,
      });
    }

    function showAll(checked) {
      const boxes = [...list.querySelectorAll("input")];
      for (const box of boxes) box.checked = checked;
      hidden = new Set(checked ? [] : boxes.keys());
      draw();
    }
    element("all").addEventListener("click", () => showAll(true));
    element("none").addEventListener("click", () => showAll(false));
    colourBy.addEventListener("change", () => { legend(); draw(); });
    space.addEventListener("change", () => { listComponents(); draw(); });
    for (const select of [across, up]) select.addEventListener("change", draw);
    for (const button of document.querySelectorAll("button[data-colour]")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        colourBy.value = String(groupings.findIndex(({ name }) => name === button.dataset.colour));
        colourBy.dispatchEvent(new Event("change"));
        element("samples").scrollIntoView();
        colourBy.focus({ preventScroll: true });
      });
    }
    legend();
    return draw;
  }

  const numbers = (values) => values.map((_, i) => i + 1);
  // At most about twelve ticks, at integers only.
  const components = (n) => ({
    title: { text: "component" }, tick0: 1, dtick: Math.ceil(n / 12), range: [0.4, n + 0.6], showgrid: false,
  });

  // A dashed line after the components that separate the clusters.
  const gapAfter = (n) => ({
    shapes: [{
      type: "line", x0: n + 0.5, x1: n + 0.5, yref: "paper", y0: 0, y1: 1,
      line: { color: theme().ink, width: 1, dash: "dash" },
    }],
    annotations: [{
      x: n + 0.5, xanchor: "left", yref: "paper", y: 1, yanchor: "top", text: "gap", showarrow: false,
      font: { color: theme().quiet },
    }],
  });

  function decay() {
    const { high, heat } = theme();
    const values = [...data.eigenvalues, ...data.further];
    const isUsed = (i) => i < data.eigenvalues.length;
    return show("decay", [{
      type: "bar",
      x: numbers(values),
      y: values,
      marker: {
        color: values.map((_, i) => (isUsed(i) ? high : heat)),
        pattern: { shape: values.map((_, i) => (isUsed(i) ? "" : "/")) },
      },
      text: values.map((_, i) => (isUsed(i) ? "used" : "not used")),
      textposition: "none",
      hovertemplate: "component %{x} (%{text}): %{y:.4g}<extra></extra>",
    }], {
      xaxis: components(values.length),
      yaxis: { title: { text: "eigenvalue" }, rangemode: "tozero", exponentformat: "power" },
      bargap: 0.35,
      ...(data.further.length ? gapAfter(data.eigenvalues.length) : {}),
    });
  }

  function tree() {
    const { nodes, sources, targets, sizes } = data.tree;
    const { ink, paper, quiet } = theme();
    const levels = [...new Set(nodes.map(([number]) => number))].sort((a, b) => a - b);
    const fill = ([, cluster]) => data.colours[cluster % data.colours.length];
    return show("sankey", [{
      type: "sankey",
      arrangement: "snap",
      node: {
        label: nodes.map(([, cluster]) => String(cluster)),
        color: nodes.map(fill),
        customdata: nodes.map(([number, cluster]) => `cluster ${cluster} of ${number}`),
        hovertemplate: "%{customdata}: %{value:,} samples<extra></extra>",
        pad: 12, thickness: 14, line: { width: 0 },
      },
      link: {
        source: sources,
        target: targets,
        value: sizes,
        color: targets.map((target) => `${fill(nodes[target])}66`),
        hovertemplate: "%{source.customdata} → %{target.customdata}: %{value:,} samples<extra></extra>",
      },
      textfont: { color: ink, shadow: `0 0 2px ${paper}, 0 0 2px ${paper}` },
    }], {
      margin: { l: 24, r: 32, t: 64, b: 12 },
      annotations: levels.map((number, i) => ({
        xref: "paper", x: levels.length > 1 ? i / (levels.length - 1) : 0, xanchor: "center",
        yref: "paper", y: 1, yanchor: "bottom", yshift: 6, showarrow: false,
        text: String(number), font: { color: quiet },
      })),
    });
  }

  function variance() {
    const { high, ink } = theme();
    const { ratios, cumulative, shown, cumulative_shown } = data.variance;
    return show("variance", [
      {
        type: "bar",
        x: numbers(ratios),
        y: ratios,
        marker: { color: high },
        text: shown,
        textposition: "none",
        hovertemplate: "component %{x}: %{text}<extra></extra>",
      },
      {
        type: "scatter",
        mode: "lines+markers",
        x: numbers(ratios),
        y: cumulative,
        line: { color: ink, width: 1.5 },
        marker: { size: 5 },
        text: cumulative_shown,
        hovertemplate: "components 1 to %{x}: %{text}<extra></extra>",
      },
    ], {
      xaxis: components(ratios.length),
      yaxis: { title: { text: "explained variance" }, tickformat: ".3~p", rangemode: "tozero" },
      bargap: 0.35,
    });
  }

  function similarities() {
    const { labels, values, range } = data.similarities;
    const n = labels.length;
    const flat = unpack(values);
    const rows = Array.from({ length: n }, (_, i) => Array.from(flat.subarray(i * n, (i + 1) * n)));
    const starts = labels.map((label, i) => i).filter((i) => i === 0 || labels[i] !== labels[i - 1]);
    const ends = [...starts.slice(1), n];
    // Narrow clusters have no room for a tick label.
    const named = starts.map((start, j) => [start, ends[j]]).filter(([start, end]) => end - start >= n / 30);
    const ticks = {
      tickvals: named.map(([start, end]) => (start + end - 1) / 2),
      ticktext: named.map(([start]) => String(labels[start])),
      showgrid: false, zeroline: false, ticks: "", constrain: "domain",
    };
    const { ink, paper, high, quiet } = theme();
    const lines = starts.slice(1).flatMap((start) => [
      { type: "line", x0: start - 0.5, x1: start - 0.5, y0: -0.5, y1: n - 0.5 },
      { type: "line", y0: start - 0.5, y1: start - 0.5, x0: -0.5, x1: n - 0.5 },
    ]);
    return show("heatmap", [{
      type: "heatmap",
      z: rows,
      zmin: range[0],
      zmax: range[1],
      colorscale: [[0, paper], [0.5, high], [1, ink]],
      colorbar: { thickness: 10, outlinewidth: 0, tickfont: { color: quiet } },
      customdata: rows.map((row, i) => row.map((_, j) => `${labels[i]} and ${labels[j]}`)),
      hovertemplate: "clusters %{customdata}: %{z:.3g}<extra></extra>",
    }], {
      xaxis: { title: { text: "cluster" }, ...ticks },
      yaxis: { title: { text: "cluster" }, ...ticks, autorange: "reversed", scaleanchor: "x" },
      shapes: starts.length > 40 ? [] : lines.map((line) => ({ ...line, line: { color: quiet, width: 0.5 } })),
    });
  }

  // Text above the plot: `words` beside x, on the side of the anchor.
  const above = (axis, x, xanchor, words) => ({
    x, xref: axis, xanchor, yref: "paper", y: 1, yanchor: "bottom", align: xanchor, showarrow: false,
    text: words.replace("\n", "<br>"), font: { size: 11, color: theme().quiet },
  });
  const shaded = (axis, [x0, x1], y) => ({
    type: "rect", xref: axis, x0, x1, layer: "below", line: { width: 0 }, fillcolor: theme().heat, opacity: 0.3, ...y,
  });
  const dashed = (axis, x) => ({
    type: "line", xref: axis, x0: x, x1: x, yref: "paper", y0: 0, y1: 1,
    line: { color: theme().quiet, width: 1, dash: "dash" },
  });
  const rows = (n) => ({ range: [n - 0.5, -0.5], zeroline: false });

  function clusterSupport() {
    const { labels, measures, row } = data.support;
    const styles = labels.map(clusterStyle);
    const every = Math.ceil(15 / row);
    const named = labels.map((_, i) => i).filter((i) => i % every === 0);
    const axes = measures.map((_, i) => `x${i ? i + 1 : ""}`);
    const xaxes = measures.map(({ name, ticks, start, end }, i) => [axes[i].replace("x", "xaxis"), {
      title: { text: name }, showgrid: false, zeroline: false, fixedrange: true,
      range: [start - 0.04 * (end - start), end + 0.04 * (end - start)],
      tickvals: ticks, ticktext: ticks.map(String), tickangle: 0, tickfont: { size: 11, color: theme().quiet },
      domain: measures.length > 1 ? [0.54 * i, 0.46 + 0.54 * i] : [0, 1],
    }]);
    return show("ratios", measures.map(({ values, end, texts }, i) => ({
      type: "scatter",
      mode: "markers+text",
      xaxis: axes[i],
      x: values.map((value) => (value === null ? null : Math.min(value, end))),
      y: labels.map((_, place) => place),
      text: values.map((value) => (value > end ? value.toPrecision(2) : "")),
      textposition: "middle left",
      customdata: texts,
      hovertemplate: "%{customdata}<extra></extra>",
      cliponaxis: false,
      marker: {
        size: Math.min(9, row), color: styles.map(({ colour }) => colour), symbol: styles.map(({ shape }) => shape.name),
      },
    })), {
      ...Object.fromEntries(xaxes),
      yaxis: {
        ...rows(labels.length), title: { text: "cluster" }, fixedrange: true,
        tickvals: named, ticktext: named.map((i) => String(labels[i])),
      },
      margin: { l: 48, r: 12, t: 64, b: 44 },
      shapes: measures.flatMap(({ supported, bound }, i) => [
        shaded(axes[i], supported, { yref: "paper", y0: 0, y1: 1 }), dashed(axes[i], bound),
      ]),
      annotations: measures.flatMap(({ supported, supported_as, bound, beyond_as }, i) => [
        above(axes[i], (supported[0] + supported[1]) / 2, "center", supported_as),
        above(axes[i], bound, bound > supported[1] ? "left" : "right", beyond_as),
      ]),
    });
  }

  function groupSupport() {
    const { groups, range } = data.support;
    return show("excess", [{
      type: "scatter",
      mode: "markers",
      x: groups.map(({ excess }) => excess),
      y: groups.map((_, i) => i),
      customdata: groups.map(({ text }) => text),
      hovertemplate: "%{customdata}<extra></extra>",
      marker: { size: 9, color: theme().ink },
    }], {
      xaxis: { title: { text: "excess modularity" }, range, zeroline: false, nticks: 5, fixedrange: true },
      yaxis: {
        ...rows(groups.length), tickvals: groups.map((_, i) => i), fixedrange: true,
        ticktext: groups.map(({ name }) => name.replace("\n", "<br>")),
      },
      margin: { l: 48, r: 12, t: 64, b: 44 },
      shapes: [
        ...groups.map((group, i) => shaded("x", [group.needed, range[1]], { y0: i - 0.5, y1: i + 0.5 })), dashed("x", 0),
      ],
      annotations: [above("x", 0, "right", "without\ngroups"), above("x", groups[0].needed, "left", "structure")],
    });
  }

  const draws = [
    data.support?.measures.length && clusterSupport,
    data.support?.groups.length && groupSupport,
    data.points && scatter(),
    data.eigenvalues && decay,
    data.variance && variance,
    data.tree && tree,
    data.similarities && similarities,
  ].filter(Boolean);
  for (const draw of draws) await draw();
  document.documentElement.dataset.ready = performance.now().toFixed(0);

  // Printing does not wait for promises, so all plots are drawn at once.
  document.addEventListener("coview:theme", () => draws.forEach((draw) => draw()));
})();
