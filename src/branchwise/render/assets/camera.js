// Zoom and pan: which part of the drawing the window shows.

const NEAREST = 2.5;
const FARTHEST = 0.2;
const READABLE = 0.86; // at first, what can be read well
const FIRST_FARTHEST = 0.66; // where the first split alone does not fit
const MARGIN = 28;
const NARROW_MARGIN = 12;
const LARGEST_FIT = 1.15;
const REBASE = 50000; // browsers place things far from their origin badly

const stage = byId("stage");
const world = byId("world");
// Screen = place * scale + (x, y). Cards are placed relative to base.
const camera = { scale: 1, x: 0, y: 0, base: { x: 0, y: 0 }, moving: 0 };
const calm = matchMedia("(prefers-reduced-motion: reduce)");

function windowSize() {
  return { width: stage.clientWidth, height: stage.clientHeight };
}

/** What the window shows, in places of the drawing, with some room around. */
function windowInPlaces(room) {
  const { width, height } = windowSize();
  const { scale, x, y } = camera;
  return {
    left: (-x - room) / scale - CARD.most,
    top: (-y - room) / scale - CARD.height,
    right: (width - x + room) / scale,
    bottom: (height - y + room) / scale,
  };
}

/** Show the camera's part; cards are placed after this. */
function applyCamera() {
  const { scale, base } = camera;
  const centre = { x: -camera.x / scale, y: -camera.y / scale };
  const far = Math.max(Math.abs(centre.x - base.x), Math.abs(centre.y - base.y));
  if (far > REBASE) camera.base = { x: Math.round(centre.x), y: Math.round(centre.y) };
  const left = camera.x + camera.base.x * scale;
  const top = camera.y + camera.base.y * scale;
  world.style.transform = `translate(${left}px, ${top}px) scale(${scale})`;
  byId("scale").textContent = `${Math.round(scale * 100)} %`;
}

function zoomAt(factor, x, y) {
  const scale = Math.min(NEAREST, Math.max(FARTHEST, camera.scale * factor));
  const ratio = scale / camera.scale;
  moveTo({ scale, x: x - (x - camera.x) * ratio, y: y - (y - camera.y) * ratio });
}

function zoomBy(factor) {
  const { width, height } = windowSize();
  zoomAt(factor, width / 2, height / 2);
}

function moveTo(view, smoothly = false) {
  cancelAnimationFrame(camera.moving);
  if (!smoothly || calm.matches) {
    Object.assign(camera, view);
    requestDraw();
    return;
  }
  const from = { scale: camera.scale, x: camera.x, y: camera.y };
  const to = { ...from, ...view };
  const started = performance.now();
  const step = (now) => {
    const time = Math.min(1, Math.max(0, (now - started) / 220));
    const ease = 1 - (1 - time) ** 3;
    for (const key of ["scale", "x", "y"]) camera[key] = from[key] + (to[key] - from[key]) * ease;
    requestDraw();
    if (time < 1) camera.moving = requestAnimationFrame(step);
  };
  camera.moving = requestAnimationFrame(step);
}

function placeOf(item) {
  const at = state.items.places.get(item);
  return { x: state.items.x[at], y: state.items.y[at] };
}

/** Move as little as needed to show an item whole, with some of what is around. */
function bringIntoView(item, smoothly = true) {
  const { x, y } = placeOf(item);
  const { width, height } = windowSize();
  const { scale } = camera;
  const room = { x: Math.min(150, width / 5), y: Math.min(60, height / 6) };
  const nearest = (now, start, size, whole, spare) => {
    const seen = now + start * scale >= 8 && now + (start + size) * scale <= whole - 8;
    if (seen) return now;
    const low = spare - start * scale;
    const high = whole - spare - (start + size) * scale;
    return low > high ? (low + high) / 2 : Math.min(high, Math.max(low, now));
  };
  moveTo(
    {
      x: nearest(camera.x, x, cardWidth(item), width, room.x),
      y: nearest(camera.y, y, CARD.height, height, room.y),
    },
    smoothly,
  );
}

/** Keep an item where it is on the screen while the drawing around it changes. */
function keepInPlace(item, change) {
  const before = placeOf(item);
  change();
  const after = placeOf(item);
  camera.x += (before.x - after.x) * camera.scale;
  camera.y += (before.y - after.y) * camera.scale;
}

function margin() {
  return windowSize().width < NARROW ? NARROW_MARGIN : MARGIN;
}

/** The scale at which the whole drawing is in the window. */
function fittingScale() {
  const { width, height } = windowSize();
  const { size } = state.items;
  const spare = 2 * margin();
  return Math.min((width - spare) / size.width, (height - spare) / size.height);
}

/** Show the whole drawing, or as much as can be read of it, from the root on. */
function fit(smoothly = false, farthest = FARTHEST) {
  const { width, height } = windowSize();
  const { size } = state.items;
  const scale = Math.min(LARGEST_FIT, Math.max(farthest, fittingScale()));
  const root = placeOf(0);
  const edge = margin();
  const place = (whole, extent, start, card, across) => {
    if (extent * scale <= whole - edge) return (whole - extent * scale) / 2;
    if (!across) return edge;
    // Too large: the root in the middle, and no empty room beyond the drawing.
    const middle = whole / 2 - (start + card / 2) * scale;
    return Math.min(edge, Math.max(whole - edge - extent * scale, middle));
  };
  const down = state.direction === "down";
  moveTo(
    {
      scale,
      x: place(width, size.width, root.x, cardWidth(0), down),
      y: place(height, size.height, root.y, CARD.height, state.items.kind === "right" || state.items.kind === "close"),
    },
    smoothly,
  );
}

/** Show several items at once, with the whole drawing if it can be read; where they do
 * not fit, the last ones. Nothing moves where all are in the window. */
function showTogether(items) {
  const { x, y, places } = state.items;
  const shown = items.map((item) => places.get(item)).filter((at) => at !== undefined);
  if (shown.every(isInWindow)) return;
  if (fittingScale() >= READABLE) return fit();
  const { width, height } = windowSize();
  const left = Math.min(...shown.map((at) => x[at]));
  const top = Math.min(...shown.map((at) => y[at]));
  const right = Math.max(...shown.map((at) => x[at] + cardWidth(state.items.ids[at])));
  const bottom = Math.max(...shown.map((at) => y[at])) + CARD.height;
  const spare = 2 * margin();
  const best = Math.min((width - spare) / (right - left), (height - spare) / (bottom - top));
  const scale = Math.min(camera.scale, Math.max(FIRST_FARTHEST, best));
  const middle = (start, end, whole) => {
    const last = whole - spare - end * scale;
    return Math.min((whole - (start + end) * scale) / 2, Math.max(last, spare - start * scale));
  };
  moveTo({ scale, x: middle(left, right, width), y: middle(top, bottom, height) });
  bringIntoView(items.at(-1), false);
}

function isInWindow(at) {
  const { ids, x, y } = state.items;
  const { width, height } = windowSize();
  const left = camera.x + x[at] * camera.scale;
  const top = camera.y + y[at] * camera.scale;
  const right = left + cardWidth(ids[at]) * camera.scale;
  return left >= 0 && top >= 0 && right <= width && top + CARD.height * camera.scale <= height;
}

/** The first view: what can be read at a glance, as large as the window allows. */
function showFirst() {
  openFirst();
  fit(false, fittingScale() < READABLE ? FIRST_FARTHEST : READABLE);
}

/** Show a window that has got another size; the first view is made anew unless it was changed. */
function listenForSize() {
  const home = () => [camera.scale, camera.x, camera.y, state.items];
  let before = home();
  new ResizeObserver(() => {
    const changed = home().some((part, at) => part !== before[at]);
    if (!changed) showFirst();
    else if (state.items.kind !== kindOfDrawing()) layOut();
    forgetAll();
    draw();
    if (!changed) before = home();
  }).observe(stage);
}

/** Wheel, drag and pinch. */
function listenForMoves() {
  stage.addEventListener("wheel", onWheel, { passive: false });
  const pointers = new Map();
  let dragged = false;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button > 0 || event.target.closest("#legend")) return;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    dragged = false;
  });
  window.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const now = { x: event.clientX, y: event.clientY };
    if (!dragged && Math.hypot(now.x - last.x, now.y - last.y) < 4) return;
    dragged = true;
    stage.classList.add("dragging");
    const others = [...pointers].filter(([id]) => id !== event.pointerId);
    if (others.length) pinch(others[0][1], last, now);
    else moveTo({ x: camera.x + now.x - last.x, y: camera.y + now.y - last.y });
    pointers.set(event.pointerId, now);
  });
  const release = (event) => {
    pointers.delete(event.pointerId);
    if (!pointers.size) stage.classList.remove("dragging");
  };
  window.addEventListener("pointerup", release);
  window.addEventListener("pointercancel", release);
  // A drag that ends on a card is no click.
  stage.addEventListener("click", (event) => dragged && event.stopPropagation(), true);
  // Focus may scroll what must not scroll.
  stage.addEventListener("scroll", () => stage.scrollTo(0, 0));
}

function pinch(other, last, now) {
  const box = stage.getBoundingClientRect();
  const before = Math.hypot(last.x - other.x, last.y - other.y);
  const after = Math.hypot(now.x - other.x, now.y - other.y);
  zoomAt(after / before, (now.x + other.x) / 2 - box.left, (now.y + other.y) / 2 - box.top);
}

function onWheel(event) {
  // In a notebook the page around wants to scroll, unless one is at work in here.
  const framed = window !== window.parent && !document.hasFocus();
  if (framed && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  if (event.shiftKey) {
    moveTo({ x: camera.x - event.deltaX - event.deltaY, y: camera.y });
    return;
  }
  const box = stage.getBoundingClientRect();
  const lines = event.deltaMode === 1 ? 16 : 1;
  const factor = Math.exp((-event.deltaY * lines) / (event.ctrlKey ? 120 : 420));
  zoomAt(factor, event.clientX - box.left, event.clientY - box.top);
}
