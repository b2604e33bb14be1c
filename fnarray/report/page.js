"use strict";
// Everything that can be marked says in data-n which operations it is for; what shares one is marked.
(() => {
  const items = [...document.querySelectorAll("[data-n]")];
  const sets = new Map();
  const numbers = (item) => {
    if (!sets.has(item)) {
      const found = new Set();
      for (const part of item.dataset.n.split(" ")) {
        const [a, b] = part.split("-").map(Number);
        for (let k = a; k <= (b ?? a); k++) found.add(k);
      }
      sets.set(item, found);
    }
    return sets.get(item);
  };
  const meet = (a, b) => {
    const [few, many] = a.size < b.size ? [a, b] : [b, a];
    for (const k of few) if (many.has(k)) return true;
    return false;
  };
  const paneOf = (item) => item.closest(".pane");
  let marked = null;

  function mark(item) {
    for (const on of document.querySelectorAll(".on")) on.classList.remove("on");
    if (!item || item === marked) { marked = null; return; }
    marked = item;
    const wanted = numbers(item);
    const seen = new Set([paneOf(item)]);
    for (const other of items) {
      if (other !== item && !meet(wanted, numbers(other))) continue;
      other.classList.add("on");
      const pane = paneOf(other);
      if (pane && !seen.has(pane) && other.matches(".l")) {
        seen.add(pane);
        pane.scrollTop += other.getBoundingClientRect().top - pane.getBoundingClientRect().top
          - pane.clientHeight / 3;
      }
    }
    item.classList.add("on");
  }

  // ---- drawings
  const shown = () => document.querySelector(".drawing:not([hidden])");
  const views = new Map();

  function fit(figure) {
    const svg = figure.querySelector("svg");
    const w = +svg.dataset.w, h = +svg.dataset.h;
    const box = svg.getBoundingClientRect();
    if (!box.width || !box.height) return;
    // All of it, unless letters would be too small to read: then the top, at a size one can.
    const scale = Math.min(1.15, Math.max(Math.min(box.width / w, box.height / h), 0.55));
    const width = box.width / scale, height = box.height / scale;
    views.set(svg, {x: (w - width) / 2, y: h < height ? (h - height) / 2 : 0, w: width, h: height});
    show(svg);
  }
  function show(svg) {
    const v = views.get(svg);
    svg.setAttribute("viewBox", `${v.x} ${v.y} ${v.w} ${v.h}`);
  }
  function zoom(svg, factor, at) {
    const v = views.get(svg);
    if (!v) return;
    const p = at ?? {x: 0.5, y: 0.5};
    v.x += v.w * p.x * (1 - factor); v.y += v.h * p.y * (1 - factor);
    v.w *= factor; v.h *= factor;
    show(svg);
  }
  function open(number) {
    const next = document.getElementById(`g${number}`);
    if (!next) return;
    shown().hidden = true;
    next.hidden = false;
    fit(next);
    move(null);
  }

  // ---- the pointer
  let drag = null;
  document.addEventListener("click", (event) => {
    const control = event.target.closest("[data-zoom]");
    if (control) {
      const svg = shown().querySelector("svg");
      if (control.dataset.zoom === "fit") fit(shown());
      else zoom(svg, control.dataset.zoom === "in" ? 0.8 : 1.25);
      return;
    }
    const up = event.target.closest("button[data-open]");
    if (up) { open(up.dataset.open); return; }
    if (event.target.closest("summary") || (drag && drag.moved)) return;
    const item = event.target.closest("[data-n]");
    if (item) { mark(item); move(item); }
  });
  document.addEventListener("dblclick", (event) => {
    const fold = event.target.closest(".fold");
    if (fold) open(fold.dataset.open);
  });
  for (const svg of document.querySelectorAll(".drawing svg")) {
    svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(svg, event.deltaY > 0 ? 1.15 : 1 / 1.15,
        {x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height});
    }, {passive: false});
    svg.addEventListener("pointerdown", (event) => {
      drag = {x: event.clientX, y: event.clientY, moved: false};
    });
    svg.addEventListener("pointermove", (event) => {
      if (!drag || !event.buttons) return;
      const v = views.get(svg), box = svg.getBoundingClientRect();
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      if (!v || (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4)) return;
      v.x -= dx * v.w / box.width; v.y -= dy * v.h / box.height;
      drag = {x: event.clientX, y: event.clientY, moved: true};
      show(svg);
    });
  }

  // ---- the keyboard: one stop for each pane, arrows inside, Enter marks, o opens a fold
  let here = null;
  function move(item) {
    if (here) here.classList.remove("here");
    here = item;
    if (!item) return;
    item.classList.add("here");
    if (item.matches(".l, tr, h3, li")) item.scrollIntoView({block: "nearest", inline: "nearest"});
    else reveal(item);
  }
  function reveal(item) {
    const svg = item.closest(".drawing svg"), v = svg && views.get(svg);
    if (!v) return;
    const [, x, y] = item.getAttribute("transform").match(/\(([-\d.]+) ([-\d.]+)\)/).map(Number);
    if (x < v.x || x > v.x + v.w * 0.9) v.x = x - v.w / 2;
    if (y < v.y || y > v.y + v.h * 0.9) v.y = y - v.h / 2;
    show(svg);
  }
  document.addEventListener("keydown", (event) => {
    const pane = document.activeElement && document.activeElement.closest(".pane");
    const svg = shown() && shown().querySelector("svg");
    if (event.key === "Escape") { mark(null); move(null); return; }
    if (!pane || event.ctrlKey || event.metaKey || event.altKey) return;
    const graph = pane.id === "graph";
    if (graph && "+=-0".includes(event.key)) {
      if (event.key === "0") fit(shown()); else zoom(svg, event.key === "-" ? 1.25 : 0.8);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const root = graph ? svg : pane;
      const list = [...root.querySelectorAll("[data-n]")];
      const at = list.indexOf(here), step = event.key === "ArrowDown" ? 1 : -1;
      const next = at < 0 ? (step > 0 ? 0 : list.length - 1) : at + step;
      if (list[next]) move(list[next]);
    } else if (event.key === "Enter" && here && document.activeElement === pane) {
      mark(here);
    } else if (graph && event.key === "o" && here && here.dataset.open) {
      open(here.dataset.open);
    } else if (graph && event.key === "Backspace") {
      const ups = shown().querySelectorAll("button[data-open]");
      if (ups.length) open(ups[ups.length - 1].dataset.open);
    } else return;
    event.preventDefault();
  });
  addEventListener("resize", () => shown() && fit(shown()));
  if (shown()) fit(shown());
})();
