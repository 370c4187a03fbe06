// The timeline of a player, in the notebook and on a page: a slider with marks, bookmarks with notes, and a loop.
// It shows a state and says what the reader wants; it decides nothing.

const THUMB_PATIENCE = 3000; // ms after which the thumb goes back to where the player stands
const APART = 5; // pixels between two marks that can be told apart

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function press(words, action, attributes = {}) {
  const element = make("button", { type: "button", ...attributes }, words);
  element.addEventListener("click", action);
  return element;
}

// `does` has seek(stop), go(number), and where bookmarks can be changed add(note), rename(stop, note, newNote),
// remove(stop, note) and undo(): a list may have changed since a button of it was drawn, so a row is named by what it says.
// A state: {n, at, words, marks: [[stop, name]], bookmarks: [[stop, note]], removed: [stop, note] or [], loop: [first, last]
// or [first] or []}; stops are counted from 0.
export function createTimeline(root, label, does) {
  const slider = make("input", { type: "range", min: 1, max: 1, step: 1, value: 1, "aria-label": label, title: `${label}: arrow keys, Home and End move it` });
  const span = make("div", { class: "lab-loop-span", hidden: "" });
  const marks = make("div", { class: "lab-ticks" });
  const flags = make("div", { class: "lab-flags" });
  const rail = make("div", { class: "lab-rail" }, flags, span, marks, slider);
  const note = make("p", { class: "lab-note", role: "note", hidden: "" });
  const list = make("ol");
  const summary = make("summary");
  const book = make("details", { class: "lab-book", hidden: "" }, summary, list);
  root.classList.add("lab-timeline");
  root.append(rail, note, book);
  let state = { n: 1, at: 0, words: "", marks: [], bookmarks: [], removed: [], loop: [] };
  let held = false;
  let wished = null; // where the reader moved to, until the player stands there: older news do not take the thumb back
  let patience;
  const drawn = {};

  // The middle of a thumb of 16 pixels goes from 8 pixels to 8 pixels before the end.
  const share = (stop) => (state.n > 1 ? stop / (state.n - 1) : 0);
  const place = (stop) => `calc(8px + (100% - 16px) * ${share(stop).toFixed(5)})`;
  const changed = (name, value) => {
    const text = JSON.stringify(value);
    if (drawn[name] === text) return false;
    drawn[name] = text;
    return true;
  };

  slider.addEventListener("pointerdown", () => (held = true));
  for (const end of ["pointerup", "pointercancel", "blur"]) slider.addEventListener(end, () => (held = false));
  slider.addEventListener("input", () => {
    wished = Number(slider.value) - 1; // counted from 1, as the words beside it
    clearTimeout(patience);
    patience = setTimeout(() => follow(true), THUMB_PATIENCE);
    does.seek(wished);
  });

  function follow(anyway = false) {
    if (anyway || state.at === wished) {
      wished = null;
      clearTimeout(patience);
    }
    if (!held && wished === null) slider.value = state.at + 1;
  }

  let field = null;
  let keep = null;
  if (does.add) {
    field = make("input", { type: "text", maxlength: 500, "aria-label": "note of a new bookmark", placeholder: "a note for this moment" });
    keep = make("button", { type: "submit", title: "Keep this moment with the note (b)" });
    const form = make("form", {}, field, keep);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      does.add(field.value);
      field.value = "";
    });
    field.addEventListener("lab-cancel", () => slider.focus());
    book.append(form);
  }

  // A row, with where the focus is after a bookmark was renamed.
  function row(stop, words) {
    const made = { k: 0, item: null, focus() {}, number() {} };
    const open = press(`${stop + 1}: ${words || "no note"}`, () => does.go(made.k), { class: "lab-go", title: "Go to this moment" });
    made.item = make("li", {}, open);
    if (!does.rename) return made;
    const rename = press("Rename", () => {
      const text = make("input", { type: "text", maxlength: 500, value: words, "aria-label": `note of bookmark ${made.k + 1}` });
      const form = make("form", {}, text, make("button", { type: "submit" }, "Keep"));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        if (text.value === words) return restore();
        next = (at) => at === stop;
        does.rename(stop, words, text.value);
      });
      const restore = () => {
        made.item.replaceChildren(open, rename, remove);
        rename.focus();
      };
      text.addEventListener("lab-cancel", restore);
      made.item.replaceChildren(form);
      text.focus();
    }, { title: "Change the note" });
    const remove = press("Remove", (event) => {
      if (event.detail > 1) return; // the second click of a double one is on the row that has come in its place
      next = () => false;
      does.remove(stop, words);
    }, { title: "Forget this bookmark" });
    made.number = (k) => {
      made.k = k;
      rename.setAttribute("aria-label", `rename bookmark ${k + 1}`);
      remove.setAttribute("aria-label", `remove bookmark ${k + 1}`);
    };
    made.focus = () => rename.focus();
    made.item.append(rename, remove);
    return made;
  }

  let rows = new Map(); // by what they say: what stays keeps its element, and a note that is being written
  let next = null; // after a change that was asked for here: which stop's row has the focus, or else the way to undo it
  const undo = press("", () => {
    const [stop] = state.removed;
    next = (at) => at === stop;
    does.undo();
  }, { class: "lab-undo", title: "Put the bookmark back" });
  undo.hidden = true;
  book.append(undo);

  function drawRows() {
    const old = rows;
    rows = new Map();
    state.bookmarks.forEach(([stop, words], k) => {
      const key = JSON.stringify([stop, words]);
      const made = old.get(key) ?? row(stop, words);
      made.number(k);
      made.k = k;
      rows.set(rows.has(key) ? `${key} ${k}` : key, made);
    });
    const items = [...rows.values()].map(({ item }) => item);
    for (const item of [...list.children]) if (!items.includes(item)) item.remove();
    items.forEach((item, k) => item === list.children[k] || list.insertBefore(item, list.children[k] ?? null));
  }

  function focusNext() {
    if (!next) return;
    const k = state.bookmarks.findIndex(([stop]) => next(stop));
    next = null;
    if (k >= 0) [...rows.values()][k].focus();
    else if (!undo.hidden) undo.focus();
  }

  function drawBook() {
    const n = state.bookmarks.length;
    book.hidden = !n && !field;
    summary.textContent = n ? `Bookmarks (${n})` : "Bookmarks";
    list.hidden = !n;
    drawRows();
    undo.hidden = !state.removed.length;
    if (!undo.hidden) undo.textContent = `Undo: put back ${state.removed[0] + 1}: ${state.removed[1] || "no note"}`;
    focusNext();
    flags.replaceChildren(...state.bookmarks.map(([stop, words], k) => {
      // For the pointer only: the list below has the same as buttons.
      const flag = make("span", { class: "lab-flag", "aria-hidden": "true", title: words || "bookmark" });
      flag.style.left = place(stop);
      flag.addEventListener("click", () => does.go(k));
      return flag;
    }));
  }

  function drawMarks() {
    const least = APART / Math.max(1, marks.clientWidth - 16) - 1e-9;
    let last = -Infinity;
    const apart = state.marks.filter(([stop]) => {
      if (share(stop) - last < least) return false;
      last = share(stop);
      return true;
    });
    const hides = apart.length < state.marks.length ? "; more marks are near: “Next mark” goes to each" : "";
    marks.replaceChildren(...apart.map(([stop, name]) => {
      const tick = make("span", { class: "lab-tick", title: `${name}${hides}` });
      tick.style.left = place(stop);
      return tick;
    }));
  }
  new ResizeObserver(drawMarks).observe(marks);

  function draw(next) {
    state = { ...state, ...next };
    slider.max = state.n;
    follow();
    slider.setAttribute("aria-valuetext", state.words || `${state.at + 1} of ${state.n}`);
    if (changed("marks", [state.n, state.marks])) drawMarks();
    if (changed("book", [state.n, state.bookmarks, state.removed])) drawBook();
    if (changed("loop", [state.n, state.loop])) {
      const [first, last = first] = state.loop;
      span.hidden = first === undefined;
      span.dataset.open = String(state.loop.length === 1);
      if (first !== undefined) {
        span.style.left = place(first);
        span.style.width = `calc((100% - 16px) * ${(share(last) - share(first)).toFixed(5)})`;
        span.title = state.loop.length === 1 ? `A loop begins at ${first + 1}` : `Repeats ${first + 1} to ${last + 1}`;
      }
    }
    const kept = state.bookmarks.filter(([stop]) => stop === state.at);
    if (keep) keep.textContent = kept.length ? "Change its note" : "Add bookmark here";
    const here = kept.map(([, words]) => words).filter(Boolean).join(" · ");
    if (note.textContent !== here) note.textContent = here;
    note.hidden = !here;
  }

  return {
    draw,
    slider,
    // Where the note of a new bookmark is written.
    write() {
      if (!field) return;
      book.open = true;
      field.focus();
    },
  };
}
