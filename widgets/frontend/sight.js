// Which nodes and edges lie where: in a part of the scene, around all of it, around what happens now.

export const LIVELY = new Set(["new", "active", "forward", "backward", "store"]);

export const meets = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
export const both = (a, b) => ({
  left: Math.min(a.left, b.left), top: Math.min(a.top, b.top), right: Math.max(a.right, b.right), bottom: Math.max(a.bottom, b.bottom),
});
export const within = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;

// With their badges and rings.
export function nodesIn({ left, top, right, bottom }, nodes) {
  const some = [];
  for (const entry of nodes.values()) {
    const { x, y, node } = entry;
    const [w, h] = [node.w / 2 + 10, node.h / 2 + 10];
    if (x - w < right && x + w > left && y - h < bottom && y + h > top) some.push(entry);
  }
  return some;
}

export function edgesIn(sight, edges) {
  const some = [];
  for (const entry of edges.entries.values()) {
    const box = edges.boxOf(entry);
    if (box && meets(box, sight)) some.push(entry);
  }
  return some;
}

const CROWD = 200; // more lines in sight, and those that lie one on the other are drawn once

// Of many lines those that can be told apart in sight: a value that thousands use sends as many lines along one way, and a
// browser takes seconds to draw them one on the other. What has a label stays.
export function apart(entries, sight, edges) {
  if (entries.length <= CROWD) return entries;
  const courses = new Set();
  return entries.filter(({ key, edge }) => {
    const [source, target] = [edges.at(edge.s), edges.at(edge.t)];
    if (edge.label || !source || !target) return true;
    const places = [[source.x, source.y], ...(edge.bends ?? []), [target.x, target.y]];
    const pieces = places.slice(1).map((place, i) => piece(places[i], place, sight)).filter(Boolean);
    if (!pieces.length) return false;
    const course = `${edge.state} ${edge.width} ${edges.lit.has(key)} ${pieces.join(" ")}`;
    if (courses.has(course)) return false;
    courses.add(course);
    return true;
  });
}

// What of a straight line from p to q is in sight, to the pixel; null: nothing.
function piece([px, py], [qx, qy], { left, top, right, bottom }) {
  let [from, to] = [0, 1];
  for (const [start, way, low, high] of [[px, qx - px, left, right], [py, qy - py, top, bottom]]) {
    if (way === 0 && (start < low || start > high)) return null;
    if (way === 0) continue;
    const [a, b] = [(low - start) / way, (high - start) / way];
    [from, to] = [Math.max(from, Math.min(a, b)), Math.min(to, Math.max(a, b))];
  }
  const at = (part) => [px + (qx - px) * part, py + (qy - py) * part].map(Math.round);
  return from > to ? null : [...at(from), ...at(to)];
}

// Around all that is drawn.
export function extentOf(nodes, edges) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  const reach = (l, t, r, b) => {
    [left, top, right, bottom] = [Math.min(left, l), Math.min(top, t), Math.max(right, r), Math.max(bottom, b)];
  };
  for (const { node: { x, y, w, h } } of nodes.values()) reach(x - w / 2, y - h / 2, x + w / 2, y + h / 2);
  for (const { edge, lane } of edges.entries.values()) {
    for (const [x, y] of edge.bends ?? []) reach(x, y, x, y);
    if (!lane && edge.s !== edge.t) continue;
    const source = nodes.get(edge.s)?.node;
    if (source && edge.s === edge.t) reach(source.x, source.y, source.x + source.w / 2 + 32, source.y);
    if (source && lane) reach(source.x - Math.abs(lane) - 40, source.y, source.x, source.y);
  }
  return Number.isFinite(left) ? { left, top, w: right - left, h: bottom - top } : { left: 0, top: 0, w: 1, h: 1 };
}

// From where to where the nodes reach that stand between two upright lines; null for none.
export function columnOf(nodes, left, right) {
  let [top, bottom] = [Infinity, -Infinity];
  for (const { node: { x, y, w, h } } of nodes.values()) {
    if (x - w / 2 < right && x + w / 2 > left) [top, bottom] = [Math.min(top, y - h / 2), Math.max(bottom, y + h / 2)];
  }
  return top < bottom ? { top, h: bottom - top } : null;
}

// Where something happens: the nodes that are new or active, with the ends of their moving edges if these fit beside them.
// An open group is lively as long as anything in it is: where that is says what is in it.
export function livelyPart(boxes, edges, camera) {
  const all = [...boxes.lively];
  const own = all.filter((key) => boxes.entries.get(key).node.kind !== "frame");
  const centres = own.length ? own : all;
  const ends = [...edges.lively].flatMap((key) => edges.entries.get(key).ends);
  const near = boxAround([...centres, ...ends], boxes.entries);
  return !near || !centres.length || camera.readable(near) ? near : boxAround(centres, boxes.entries);
}

function boxAround(keys, nodes) {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const key of keys) {
    if (!nodes.has(key)) continue;
    const { x, y, w, h } = nodes.get(key).node;
    [left, top] = [Math.min(left, x - w / 2), Math.min(top, y - h / 2)];
    [right, bottom] = [Math.max(right, x + w / 2), Math.max(bottom, y + h / 2)];
  }
  return left < right ? { left, top, w: right - left, h: bottom - top } : null;
}
