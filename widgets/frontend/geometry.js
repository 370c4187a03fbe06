// Where edges run: from border to border, smoothly through their bends. widgets/pictures/geometry.py says the same for the SVG twin;
// a browser test compares both.

const round = (value) => Math.floor(value * 10 + 0.5) / 10;
const point = ([x, y]) => `${round(x)} ${round(y)}`;

export function cornerRadius(kind, w, h) {
  if (kind === "op") return Math.min(h / 2, 20);
  return { group: 6, constant: 2, forward_span: 2, backward_span: 2 }[kind] ?? 8;
}

// Slanted lines that fill a box whose left top corner is (0, 0), as one path.
export function hatch(w, h, step = 6) {
  let path = "";
  for (let x = step - h; x < w; x += step) {
    const [left, right] = [Math.max(x, 0), Math.min(x + h, w)];
    path += `M${point([left, h - (left - x)])}L${point([right, h - (right - x)])}`;
  }
  return path;
}

// Where the ray from the centre of the node towards (tx, ty) leaves it, `gap` pixels outside.
export function border(node, [tx, ty], gap) {
  const [dx, dy] = [tx - node.x, ty - node.y];
  const distance = Math.hypot(dx, dy);
  if (distance < 1e-6) return [node.x, node.y];
  const [ux, uy] = [dx / distance, dy / distance];
  const [a, b] = [node.w / 2, node.h / 2];
  let reach;
  if (node.kind === "rank") reach = 1 / Math.hypot(ux / a, uy / b);
  else {
    reach = Math.min(Math.abs(ux) > 1e-9 ? a / Math.abs(ux) : Infinity, Math.abs(uy) > 1e-9 ? b / Math.abs(uy) : Infinity);
    const r = Math.min(cornerRadius(node.kind, node.w, node.h), a, b);
    const [cx, cy] = [a - r, b - r];
    const [px, py] = [Math.abs(ux), Math.abs(uy)];
    if (reach * px > cx && reach * py > cy) {
      const along = px * cx + py * cy;
      reach = along + Math.sqrt(Math.max(0, along * along - (cx * cx + cy * cy - r * r)));
    }
  }
  return [node.x + ux * (reach + gap), node.y + uy * (reach + gap)];
}

// Edges between the same two nodes would hide each other: each gets a sideways offset.
export function lanes(edges) {
  const groups = new Map();
  for (const [key, edge] of edges) {
    if (edge.bends) continue;
    const pair = edge.s < edge.t ? `${edge.s}\0${edge.t}` : `${edge.t}\0${edge.s}`;
    if (!groups.has(pair)) groups.set(pair, []);
    groups.get(pair).push(key);
  }
  const offsets = new Map();
  for (const keys of groups.values()) {
    if (keys.length > 1) keys.forEach((key, i) => offsets.set(key, (i - (keys.length - 1) / 2) * 28));
  }
  return offsets;
}

// {line, head, tail, middle}: path of the line, arrow head at the target, arrow head at the source, place of the label.
export function edgeShape(edge, source, target, lane) {
  const bends = edge.s === edge.t ? loop(source) : (edge.bends ?? arc(edge, source, target, lane));
  const back = edge.state === "backward";
  const size = 6 + 1.5 * (edge.width ?? 1.5);
  const first = bends[0] ?? [target.x, target.y];
  const last = bends[bends.length - 1] ?? [source.x, source.y];
  const [start, end] = [border(source, first, 2), border(target, last, 2)];
  const tip = back ? start : end;
  const from = back ? (bends[0] ?? end) : (bends[bends.length - 1] ?? start);
  const base = edge.state === "none" ? tip : towards(tip, from, size * 0.8);
  const points = back ? [base, ...bends, end] : [start, ...bends, base];
  return { line: smooth(points), head: arrow(tip, from, size), middle: halfway(points) };
}

function arc(edge, source, target, lane) {
  if (!lane) return [];
  // Sideways is measured from the smaller to the larger id, so that there and back take different sides.
  const sign = edge.s < edge.t ? 1 : -1;
  const [dx, dy] = [(target.x - source.x) * sign, (target.y - source.y) * sign];
  const distance = Math.hypot(dx, dy) || 1;
  return [[(source.x + target.x) / 2 - (dy / distance) * lane, (source.y + target.y) / 2 + (dx / distance) * lane]];
}

function loop(node) {
  const right = node.x + node.w / 2;
  return [[right + 18, node.y - 13], [right + 30, node.y], [right + 18, node.y + 13]];
}

function towards(from, to, length) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const distance = Math.hypot(dx, dy) || 1;
  return [from[0] + (dx / distance) * length, from[1] + (dy / distance) * length];
}

function arrow(tip, from, size) {
  const [bx, by] = towards(tip, from, size);
  const [nx, ny] = [(tip[1] - by) * 0.42, (bx - tip[0]) * 0.42];
  return `M${point(tip)}L${point([bx + nx, by + ny])}L${point([bx - nx, by - ny])}Z`;
}

function smooth(points) {
  let path = `M${point(points[0])}`;
  if (points.length === 2) return `${path}L${point(points[1])}`;
  for (let i = 0; i + 1 < points.length; i++) {
    const [p, q] = [points[i], points[i + 1]];
    const [before, after] = [points[i - 1] ?? p, points[i + 2] ?? q];
    const c1 = [p[0] + (q[0] - before[0]) / 6, p[1] + (q[1] - before[1]) / 6];
    const c2 = [q[0] - (after[0] - p[0]) / 6, q[1] - (after[1] - p[1]) / 6];
    path += `C${point(c1)} ${point(c2)} ${point(q)}`;
  }
  return path;
}

function halfway(points) {
  const lengths = points.slice(1).map((q, i) => Math.hypot(q[0] - points[i][0], q[1] - points[i][1]));
  let rest = lengths.reduce((sum, length) => sum + length, 0) / 2;
  for (let i = 0; i < lengths.length; i++) {
    if (rest <= lengths[i] && lengths[i] > 0) return towards(points[i], points[i + 1], rest).map(round);
    rest -= lengths[i];
  }
  return points[0].map(round);
}
