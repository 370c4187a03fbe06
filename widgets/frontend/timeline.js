// The timeline of a player, in the notebook and on a page: a slider with marks, bookmarks with notes, and a loop.
// It shows a state and says what the reader wants; it decides nothing.

const THUMB_PATIENCE = 3000; // ms after which the thumb goes back to where the player stands

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

// `does` has seek(stop), go(number), and where bookmarks can be changed add(note), rename(number, note), remove(number).
// A state: {n, at, words, marks: [[stop, name]], bookmarks: [[stop, note]], loop: [first, last] or [first] or []}; stops
// are counted from 0.
export function createTimeline(root, label, does) {
  const slider = make("input", { type: "range", min: 0, max: 0, step: 1, value: 0, "aria-label": label, title: `${label}: arrow keys, Home and End move it` });
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
  let state = { n: 1, at: 0, words: "", marks: [], bookmarks: [], loop: [] };
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
    wished = Number(slider.value);
    clearTimeout(patience);
    patience = setTimeout(() => follow(true), THUMB_PATIENCE);
    does.seek(wished);
  });

  function follow(anyway = false) {
    if (anyway || state.at === wished) {
      wished = null;
      clearTimeout(patience);
    }
    if (!held && wished === null) slider.value = state.at;
  }

  let field = null;
  if (does.add) {
    field = make("input", { type: "text", maxlength: 500, "aria-label": "note of a new bookmark", placeholder: "a note for this moment" });
    const form = make("form", {}, field, make("button", { type: "submit", title: "Keep this moment with the note (b)" }, "Add bookmark here"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      does.add(field.value);
      field.value = "";
    });
    field.addEventListener("lab-cancel", () => slider.focus());
    book.append(form);
  }

  function row(k, stop, words) {
    const open = press(`${stop + 1}: ${words || "no note"}`, () => does.go(k), { class: "lab-go", title: "Go to this moment" });
    const item = make("li", {}, open);
    if (!does.rename) return item;
    const rename = press("Rename", () => {
      const text = make("input", { type: "text", maxlength: 500, value: words, "aria-label": `note of bookmark ${k + 1}` });
      const form = make("form", {}, text, make("button", { type: "submit" }, "Keep"));
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        if (text.value === words) restore();
        else does.rename(k, text.value);
      });
      const restore = () => {
        item.replaceChildren(open, rename, remove);
        rename.focus();
      };
      text.addEventListener("lab-cancel", restore);
      item.replaceChildren(form);
      text.focus();
    }, { title: "Change the note", "aria-label": `rename bookmark ${k + 1}` });
    const remove = press("Remove", () => does.remove(k), { title: "Forget this bookmark", "aria-label": `remove bookmark ${k + 1}` });
    item.append(rename, remove);
    return item;
  }

  function drawBook() {
    const n = state.bookmarks.length;
    book.hidden = !n && !field;
    summary.textContent = n ? `Bookmarks (${n})` : "Bookmarks";
    list.hidden = !n;
    list.replaceChildren(...state.bookmarks.map(([stop, words], k) => row(k, stop, words)));
    flags.replaceChildren(...state.bookmarks.map(([stop, words], k) => {
      // For the pointer only: the list below has the same as buttons.
      const flag = make("span", { class: "lab-flag", "aria-hidden": "true", title: words || "bookmark" });
      flag.style.left = place(stop);
      flag.addEventListener("click", () => does.go(k));
      return flag;
    }));
  }

  function drawMarks() {
    marks.replaceChildren(...state.marks.map(([stop, name]) => {
      const tick = make("span", { class: "lab-tick", title: name });
      tick.style.left = place(stop);
      return tick;
    }));
  }

  function draw(next) {
    state = { ...state, ...next };
    slider.max = state.n - 1;
    follow();
    slider.setAttribute("aria-valuetext", state.words || `${state.at + 1} of ${state.n}`);
    if (changed("marks", [state.n, state.marks])) drawMarks();
    if (changed("book", [state.n, state.bookmarks])) drawBook();
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
    const here = state.bookmarks.filter(([stop]) => stop === state.at).map(([, words]) => words).filter(Boolean).join(" · ");
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
