// Applies the patches of widgets/pictures/patch.py: same operations, same result; unchanged parts of the tree are shared.

const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);

export function applyPatch(tree, ops) {
  const box = { root: tree };
  const fresh = new Set([box]);
  for (const op of ops) {
    const path = ["root", ...op[0]];
    if (path.some((key) => FORBIDDEN.has(key))) continue;
    let parent = box;
    for (const key of path.slice(0, -1)) {
      let child = parent[key];
      if (!fresh.has(child)) {
        child = Array.isArray(child) ? child.slice() : { ...child };
        fresh.add(child);
        parent[key] = child;
      }
      parent = child;
    }
    const last = path[path.length - 1];
    if (op.length === 1) delete parent[last];
    else if (op.length === 2) parent[last] = op[1];
    else parent[last] = extended(parent[last], op[1]);
  }
  return box.root;
}

// A list gets longer; so does a packed array ({dtype, bdata}: base64 of its bytes), whose text cannot simply be joined.
function extended(old, tail) {
  if (Array.isArray(old)) return old.concat(tail);
  return { ...old, bdata: btoa(atob(old.bdata) + atob(tail.bdata)) };
}
