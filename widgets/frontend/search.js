// A field that finds nodes by their words: Enter goes to the next, Shift+Enter back, Escape ends it; the count is spoken.
import { html, setText } from "./common.js";

const HANDFUL = 15; // so few nodes are found by looking
const OTHERS = new Set(["rank", "device", "forward_span", "backward_span"]); // of pictures that are no graphs
const PATIENCE = 250; // ms after the last letter before the kernel is asked

export class Search {
  // `isGroup(key)` says whether that box holds others. `look(words)` gives the keys of the nodes that match, and who says so: the
  // "page", or the "kernel", or the page as long as the kernel is "awaited". `mark(keys, key)` shows them, with one that is
  // looked at; `bring(keys)` sees to it that one of them is in sight; `ask(words)` tells the kernel.
  constructor(isGroup, { look, mark, bring, ask }) {
    Object.assign(this, { isGroup, look, mark, bring, ask, hits: [], at: -1, words: "", says: "page" });
    this.field = html("input", { type: "search", placeholder: "find", "aria-label": "find nodes", title: "find nodes (/): Enter next, Shift+Enter back, Escape clears", autocomplete: "off", spellcheck: "false" });
    this.count = html("output", { "aria-live": "polite" });
    this.element = html("div", { class: "lab-search", hidden: "" }, this.field, this.count);
    this.field.addEventListener("input", () => this.find(this.field.value));
  }

  // Where searching is of use: in a graph of more than a handful of nodes, or, if somebody else searches, of groups that
  // may hold as many. A time axis or a ring is read by its places.
  offer(nodes, edges, asked) {
    const some = (test) => {
      for (const { node } of nodes.values()) if (test(node)) return true;
      return false;
    };
    const many = nodes.size > HANDFUL || (asked && some((node) => node.fold));
    const graph = many && (asked || (edges.entries.size > 0 && !some((node) => OTHERS.has(node.kind))));
    this.element.hidden = !(graph || this.words);
  }

  focus() {
    if (this.element.hidden) return false;
    this.field.focus();
    this.field.select();
    return true;
  }

  find(words) {
    this.words = words.trim();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(this.words), PATIENCE);
    this.says = "page";
    this.again();
    this.at = -1;
    this.say();
  }

  // The picture is another: what was found may be gone, and more may have come.
  again() {
    const key = this.hits[this.at];
    const { keys, says } = this.words ? this.look(this.words.split(/\s+/).join(" ")) : { keys: [], says: "page" };
    const news = says === "kernel" && this.says !== says;
    Object.assign(this, { hits: keys, says });
    this.at = this.hits.indexOf(key);
    this.mark(this.hits, null);
    if (news) this.bring(this.hits);
    this.say();
  }

  // The kernel counts in the caption what it found, and a box may hold much of that: then this says in how many it is.
  say() {
    const n = this.hits.length;
    const groups = this.hits.filter((key) => this.isGroup(key)).length;
    const what = groups && groups === n ? "group" : groups || this.says === "kernel" ? "box" : "";
    const many = { group: "groups", box: "boxes" }[what];
    const found = what ? `in ${n} ${n > 1 ? many : what}` : `${n} found`;
    const here = `${what} ${this.at + 1} of ${n}`.trim();
    setText(this.count, !this.words ? "" : this.at >= 0 ? here : n ? found : this.says === "awaited" ? "…" : "none found");
  }

  key(event) {
    if (event.key === "Escape") {
      if (!this.words && !this.field.value) return false;
      this.field.value = "";
      this.find("");
    } else if (event.key === "Enter") {
      const n = this.hits.length;
      if (!n) return true;
      this.at = this.at < 0 ? (event.shiftKey ? n - 1 : 0) : (this.at + (event.shiftKey ? n - 1 : 1)) % n;
      this.mark(this.hits, this.hits[this.at]);
      this.say();
    } else return false;
    return true;
  }

  dispose() {
    clearTimeout(this.timer);
  }
}

// Every word has to be somewhere in what the node shows or says.
export function matches(node, words) {
  const text = `${node.label ?? ""} ${node.sublabel ?? ""} ${node.gradient ?? ""} ${node.aria ?? ""}`.toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
