// Applies the patches of widgets/pictures/patch.py: same operations, same result; unchanged parts of the tree are shared.
// Who needs no earlier tree owns its tables of nodes and edges: these are changed where they stand, however large they are.

const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);
const TABLES = new Set(["nodes", "edges"]);
const JOURNAL = Symbol.for("autodiff-lab journal"); // of a table: which of its parts were changed, in order; read by news.js
const LONG = 5000; // then a journal begins anew, and who reads it, from the start

export function applyPatch(tree, ops, owned = false) {
  const box = { root: tree };
  const fresh = new Set([box]);
  for (const op of ops) {
    const path = ["root", ...op[0]];
    if (path.some((key) => FORBIDDEN.has(key))) continue;
    let parent = box;
    for (let depth = 0; depth < path.length - 1; depth++) {
      const key = path[depth];
      let child = parent[key];
      if (owned && depth === 1 && TABLES.has(key)) note(child, path[2]);
      else if (!fresh.has(child)) {
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

function note(table, key) {
  if (!(table[JOURNAL]?.length < LONG)) Object.defineProperty(table, JOURNAL, { value: [], configurable: true }); // seen by no loop
  table[JOURNAL].push(key);
}

// A list gets longer; so does a packed array ({dtype, bdata}: base64 of its bytes), whose text cannot simply be joined.
function extended(old, tail) {
  if (Array.isArray(old)) return old.concat(tail);
  return { ...old, bdata: btoa(atob(old.bdata) + atob(tail.bdata)) };
}
