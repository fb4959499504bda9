"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const graph = byId("graph"), panel = byId("details"), search = byId("search"), slider = byId("strength");
  const nodes = new Map(data.nodes.map((node) => [node.id, { ...node, element: byId(node.id) }]));
  const edges = new Map(data.edges.map((edge) => [edge.id, { ...edge, element: byId(edge.id) }]));
  const items = new Map([...nodes, ...edges]);
  const narrow = document.querySelector(".graph.narrow"), copies = new Map();  // the picture for a phone
  for (const copy of narrow.querySelectorAll("[data-copy-of]")) copies.set(copy.dataset.copyOf, copy);
  const mark = (id, name, on) => { for (const element of [items.get(id).element, copies.get(id)]) element.classList.toggle(name, on); };
  const empty = panel.innerHTML;
  let chosen = null;
  document.documentElement.classList.add("js");
  for (const title of document.querySelectorAll(".graph g title")) title.remove();  // the panel says more than a tooltip

  // Details: what is known about a node or an edge. All names go in as text, never as markup.
  const make = (tag, text, kind) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };
  const factList = (facts) => {
    const list = make("dl");
    for (const [term, value, means] of facts) {
      const shown = make("dd");
      shown.append(make("bdi", value));
      if (means) shown.append(make("p", means, "means"));
      list.append(make("dt", term), shown);
    }
    return list;
  };
  const edgesOf = (id) => [...edges.values()].filter((edge) => edge.source === id || edge.target === id);
  const groupOf = (edge, id) => edge.mark !== "→" ? "Linked, direction open" : edge.target === id ? "Causes" : "Effects";
  const neighbourList = (id) => {
    const holder = make("div");
    for (const kind of ["Causes", "Effects", "Linked, direction open"]) {
      const list = make("ul");
      for (const edge of edgesOf(id).filter((edge) => groupOf(edge, id) === kind)) {
        const button = make("button", nodes.get(edge.source === id ? edge.target : edge.source).name);
        button.type = "button";
        button.addEventListener("click", () => {
          choose(edge.id);
          edge.element.focus({ preventScroll: true });  // the button is gone, the keyboard goes on from the link
        });
        const entry = make("li");
        entry.append(button);
        list.append(entry);
      }
      if (list.children.length) holder.append(make("h4", kind), list);
    }
    if (!holder.children.length) holder.append(make("p", "No links were found.", "means"));
    return holder;
  };
  const show = (id) => {
    const item = items.get(id);
    if (!item) { panel.innerHTML = empty; return; }
    const right = place(item).x > view.x + view.width / 2;  // on large pictures it lies over the other half
    panel.className = `scripted ${right ? "left" : "right"} ${id === chosen ? "kept" : "passing"}`;
    panel.replaceChildren(make("h3", item.title || item.name), factList(item.facts));
    if (nodes.has(id)) panel.append(neighbourList(id));
  };
  const near = (id) => {
    if (edges.has(id)) return [id, edges.get(id).source, edges.get(id).target];
    return [id, ...edgesOf(id).flatMap((edge) => [edge.id, edge.source, edge.target])];
  };
  const highlight = (id) => {
    const close = new Set(id ? near(id) : []);
    for (const picture of [graph, narrow]) picture.classList.toggle("dimmed", Boolean(id));
    for (const key of items.keys()) mark(key, "near", close.has(key));
  };
  const choose = (id) => {
    chosen = id;
    for (const key of items.keys()) mark(key, "chosen", key === id);
    for (const row of document.querySelectorAll("tr[data-edge]")) row.classList.toggle("chosen", row.dataset.edge === id);
    highlight(id);
    show(id);
  };
  for (const [id, item] of items) {
    item.element.addEventListener("pointerenter", () => { if (!drag && !chosen) { show(id); highlight(id); } });
    item.element.addEventListener("pointerleave", () => { if (!drag && !chosen) { show(null); highlight(null); } });
    item.element.addEventListener("focus", () => { if (!chosen) { show(id); highlight(id); } });
    item.element.addEventListener("blur", () => { if (!chosen) { show(null); highlight(null); } });
  }

  for (const [id, copy] of copies) copy.addEventListener("click", () => choose(id === chosen ? null : id));

  // Keyboard: links and variables are one stop of Tab each; arrow keys move within.
  const visible = (items) => [...items.values()].filter((item) => !item.element.classList.contains("weak"));
  const stop = (item, group) => {
    for (const other of group.values()) other.element.setAttribute("tabindex", other === item ? "0" : "-1");
  };
  const middle = (edge) => {
    const [a, b] = [nodes.get(edge.source), nodes.get(edge.target)];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  const place = (item) => item.source ? middle(item) : item;
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const nextTo = (item, group, [dx, dy]) => {
    const from = place(item);
    const cost = (other) => {
      const to = place(other), along = (to.x - from.x) * dx + (to.y - from.y) * dy;
      const aside = Math.abs((to.x - from.x) * dy) + Math.abs((to.y - from.y) * dx);
      return along > 0.5 ? along + 2.5 * aside : Infinity;
    };
    return visible(group).filter((other) => other !== item && cost(other) < Infinity)
      .sort((a, b) => cost(a) - cost(b))[0];
  };
  for (const group of [edges, nodes]) {
    stop(group.values().next().value, group);
    for (const [id, item] of group) {
      item.element.addEventListener("focus", () => { stop(item, group); reveal(item); });
      item.element.addEventListener("keydown", (event) => {
        const all = visible(group), at = all.indexOf(item);
        let to = null;
        if (event.key in ways) to = nextTo(item, group, ways[event.key]);
        else if (event.key === "Home") to = all[0];
        else if (event.key === "End") to = all[all.length - 1];
        else if (event.key === "n" || event.key === "p") to = all[(at + (event.key === "n" ? 1 : all.length - 1)) % all.length];
        else if (event.key === "Enter" || event.key === " ") choose(id);
        else return;
        event.preventDefault();
        if (!to) return;
        if (chosen) choose(null);
        to.element.focus({ preventScroll: true });
      });
    }
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    choose(null);
    if (search.value) { search.value = ""; filter(); }
  });

  // Zoom and pan: the picture's view is a rectangle of its own coordinates.
  const whole = graph.viewBox.baseVal, full = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
  let view = { ...full };
  const look = (next) => {
    view = next;
    graph.setAttribute("viewBox", [view.x, view.y, view.width, view.height].map((v) => v.toFixed(1)).join(" "));
  };
  const at = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(graph.getScreenCTM().inverse());
  const zoom = (factor, x = view.x + view.width / 2, y = view.y + view.height / 2) => {
    const by = Math.min(Math.max(factor, 0.05 * full.width / view.width), 2 * full.width / view.width);
    look({ x: x - (x - view.x) * by, y: y - (y - view.y) * by, width: view.width * by, height: view.height * by });
  };
  const reveal = (item) => {
    const { x, y } = place(item);
    if (x > view.x && x < view.x + view.width && y > view.y && y < view.y + view.height) return;
    look({ ...view, x: x - view.width / 2, y: y - view.height / 2 });
  };
  byId("closer").addEventListener("click", () => zoom(0.8));
  byId("farther").addEventListener("click", () => zoom(1.25));
  byId("fit").addEventListener("click", () => look({ ...full }));
  graph.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { x, y } = at(event);
    zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 200), x, y);
  }, { passive: false });

  // Drag: a node with its edges, or the whole picture.
  let drag = null;
  const border = (node, dx, dy, port) => {
    if (Math.abs(dx) * node.height >= Math.abs(dy) * node.width) {
      return { x: node.x + Math.sign(dx) * node.width / 2, y: node.y + port, dx: Math.sign(dx), dy: 0 };
    }
    return { x: node.x, y: node.y + Math.sign(dy) * node.height / 2, dx: 0, dy: Math.sign(dy) };
  };
  const reroute = (edge) => {
    const [source, target] = [nodes.get(edge.source), nodes.get(edge.target)];
    const dx = target.x - source.x, dy = target.y - source.y;
    const a = border(source, dx, dy, edge.leave), b = border(target, -dx, -dy, edge.arrive);
    const head = edge.element.querySelector(".head"), bend = Math.max(24, Math.hypot(b.x - a.x, b.y - a.y) / 2.4);
    const end = { x: b.x + b.dx * (head ? 8 : 0), y: b.y + b.dy * (head ? 8 : 0) };
    const line = `M${a.x} ${a.y}C${a.x + a.dx * bend} ${a.y + a.dy * bend} ${end.x + b.dx * bend} ${end.y + b.dy * bend} ${end.x} ${end.y}`;
    for (const path of edge.element.querySelectorAll(".curve, .hit")) path.setAttribute("d", line);
    const turn = Math.atan2(-b.dy, -b.dx) * 180 / Math.PI;
    if (head) head.setAttribute("transform", `translate(${b.x} ${b.y}) rotate(${turn})`);
    const sign = edge.element.querySelector(".sign"), path = edge.element.querySelector(".curve");
    if (!sign) return;
    const half = path.getPointAtLength(path.getTotalLength() / 2);
    sign.setAttribute("transform", `translate(${half.x} ${half.y})`);
  };
  graph.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const group = event.target.closest(".node, .edge"), from = at(event);
    drag = { id: group ? group.id : null, from, moved: false, x: event.clientX, y: event.clientY };
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (!drag.moved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 4) return;
    drag.moved = true;
    graph.classList.add("moving");
    const to = at(event), node = nodes.get(drag.id);
    if (node) {
      node.x += to.x - drag.from.x;
      node.y += to.y - drag.from.y;
      drag.from = to;
      node.element.setAttribute("transform", `translate(${node.x} ${node.y})`);
      edgesOf(node.id).forEach(reroute);
    } else look({ ...view, x: view.x - (to.x - drag.from.x), y: view.y - (to.y - drag.from.y) });
  });
  for (const end of ["pointerup", "pointercancel"]) {
    window.addEventListener(end, () => {
      if (drag && !drag.moved && end === "pointerup") choose(drag.id === chosen ? null : drag.id);
      drag = null;
      graph.classList.remove("moving");
    });
  }

  // Search and strength: what does not fit is dimmed, hidden or left out of the tables.
  const strongest = Math.max(0, ...data.edges.map((edge) => edge.strength || 0));
  const filter = () => {
    const likely = data.measure === "probability";
    const least = likely ? 0.5 + slider.value * 0.0049 : Math.expm1(slider.value / 100 * Math.log1p(strongest));
    const slack = likely ? 0.0005 : 1e-9 * strongest + 0.05, wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const edge of edges.values()) {
      const weak = slider.value > 0 && edge.strength !== null && edge.strength < least - slack;
      mark(edge.id, "weak", weak);
      if (!weak) shown += 1;
    }
    for (const node of nodes.values()) {
      mark(node.id, "found", wanted !== "" && node.name.toLowerCase().includes(wanted));
    }
    for (const row of document.querySelectorAll("tr[data-names]")) {
      const edge = edges.get(row.dataset.edge);
      row.hidden = (wanted !== "" && !row.dataset.names.includes(wanted)) || Boolean(edge && edge.element.classList.contains("weak"));
    }
    const text = slider.value > 0 ? `${shown} of ${edges.size} links, ${data.measure} ≥ ${likely ? least.toFixed(2) : least.toPrecision(3)}` : `all ${edges.size} links`;
    byId("strength-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    if (chosen && edges.has(chosen) && edges.get(chosen).element.classList.contains("weak")) choose(null);
    const first = visible(edges)[0];
    if (first && !visible(edges).some((edge) => edge.element.getAttribute("tabindex") === "0")) stop(first, edges);
  };
  slider.addEventListener("input", filter);
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    const first = event.key === "Enter" && graph.querySelector(".node.found");
    if (first) { choose(first.id); first.focus({ preventScroll: true }); }
  });

  // Tables: a click on a head sorts, a click on a link's row shows it in the picture.
  const sortValue = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value !== undefined ? Number(cell.dataset.value) : cell.classList.contains("number") ? null : cell.textContent;
  };
  const compare = (a, b) => a === null || b === null ? (a === null) - (b === null)
    : typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      if (!head.textContent) return;
      const button = make("button", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending", body = table.tBodies[0];
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [sortValue(row, column), row]);
        rows.sort(([a], [b]) => a === null || b === null ? compare(a, b) : down ? compare(b, a) : compare(a, b));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }
  for (const row of document.querySelectorAll("tr[data-edge]")) {
    const open = () => { choose(row.dataset.edge); byId("picture").scrollIntoView(); };
    row.addEventListener("click", open);
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
    row.tabIndex = -1;
  }

  // Names that are wider than estimated are compressed, so that they stay inside their boxes.
  for (const text of document.querySelectorAll(".graph .name")) {
    const room = text.parentElement.querySelector(".box").getBBox().width - 10;
    if (room > 0 && text.getComputedTextLength() > room) {
      text.setAttribute("textLength", room);
      text.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
  }

  // Theme, copying, printing.
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  });
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const source = byId(button.dataset.copy), status = button.parentElement.querySelector("[role=status]");
      try {
        await navigator.clipboard.writeText(source.textContent);
        status.textContent = "Copied.";
      } catch {
        getSelection().selectAllChildren(source);
        status.textContent = document.execCommand("copy") ? "Copied." : "Selected: copy it with Ctrl + C.";
      }
    });
  }
  let before = null;
  window.addEventListener("beforeprint", () => {
    before = view;
    look({ ...full });
  });
  window.addEventListener("afterprint", () => { if (before) look(before); });
})();
