// Where to look in a narrow window or on a projector, and in what is longer than any, where what matters would be dust: at its beginning, large enough to be read; when
// nothing happens, at what was looked at before.
import { readable } from "./camera.js";
import { magnified } from "./look.js";

const NARROW = 720; // px on a desk; wider stages show all of it, as a map of what there is
const GUESSED = { all: 2 / 3, part: 0.8 }; // of the readable size: below that words are dust; a part should be worth the cut
const SHOWN = { all: 0.95, part: 0.95 }; // on a projector: it is read from the last row
const DUST = 0.04; // wide or not, a box so small is a speck, and a map of specks tells nothing
const AHEAD = 12; // px of the scene before a box of which the beginning is shown
const LOW = 320; // px: a stage that is lower has not grown yet

// `lively` is the part that matters now, or null for none: then all of it does. `folds` says whether groups can be opened: then
// the mini-map is the map, and boxes are there to be read. `near` is the box at which the reader is, or none.
export function readablePart(lively, { box, size, view, toScene, margin }, { folds, near }) {
  const k = readable();
  const [w, h] = [size.w - 2 * margin, Math.max(size.h, LOW) - 2 * margin];
  const part = lively ?? box;
  const fits = Math.min(w / part.w, h / part.h);
  const shown = magnified() > 1;
  const map = size.w > NARROW && fits >= DUST && (lively || !folds);
  if (w <= 0 || (!shown && map)) return lively;
  if (fits >= (shown ? SHOWN : GUESSED)[lively ? "part" : "all"] * k) return lively;
  const room = { w: w / k, h: (size.h - 2 * margin) / k };
  if (!lively) {
    const [left, top] = toScene(margin, margin);
    const seen = near && Math.abs(near.x - left - room.w / 2) < (room.w + near.w) / 2 && Math.abs(near.y - top - room.h / 2) < (room.h + near.h) / 2;
    if (Math.abs(view.k - k) < 1e-3 && (seen || !near)) return { left, top, ...room };
    const start = (middle, length, place) => middle - (length > place ? length / 2 + AHEAD : place / 2); // its beginning, if it is longer
    if (near) return { left: start(near.x, near.w, room.w), top: start(near.y, near.h, room.h), ...room };
  }
  const from = (all, own, length) => (own - all < length / 2 ? all : own); // with what stands before it, as names of rows
  return { left: from(box.left, part.left, room.w), top: from(box.top, part.top, room.h), ...room };
}
