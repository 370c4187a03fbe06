// The keyboard in a scene: arrows walk from node to node, other keys choose, open, pin, zoom and find.

export const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

// The nearest node in the direction of the arrow: along an edge if there is one, else the nearest of all.
export function neighbour(key, [ux, uy], nodes, edges) {
  const here = nodes.get(key).node;
  const linked = new Set([...(edges.of.get(key) ?? [])].flatMap((edge) => edges.entries.get(edge).ends));
  const nearest = (keys) => {
    let best = null;
    let least = Infinity;
    for (const other of keys) {
      if (other === key || !nodes.has(other)) continue;
      const { x, y } = nodes.get(other).node;
      const along = (x - here.x) * ux + (y - here.y) * uy;
      const aside = Math.abs((x - here.x) * uy) + Math.abs((y - here.y) * ux);
      if (along > 1 && along + 2 * aside < least) [best, least] = [other, along + 2 * aside];
    }
    return best;
  };
  return nearest(linked) ?? nearest(nodes.keys());
}

// What a key does, by name: `node` is the focused one or null. Keys that have no meaning here give null.
export function meaning(event, node, can) {
  const { key } = event;
  if (key === "Escape" || key === "/") return key === "/" ? ["search"] : ["hide"];
  if (key === "+" || key === "=") return node?.fold === "closed" && can("fold") ? ["fold"] : ["zoom", 1.3];
  if (key === "-") return node?.fold === "open" && can("fold") ? ["fold"] : ["zoom", 1 / 1.3];
  if (key === "0" || key === "f" || key === "F") return ["overview"];
  if (STEPS[key] && event.shiftKey) return ["pan", STEPS[key]];
  if (!node) return null;
  if (key === "Enter" || key === " ") return ["choose"];
  if (key === "Home" || key === "End") return ["end", key];
  if (key === "p" || key === "P") return can("pin") ? ["pin"] : null;
  return STEPS[key] ? ["walk", STEPS[key]] : null;
}
