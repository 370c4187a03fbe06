// Where to look in a narrow window or on a projector, and in what is longer than any, where what matters would be dust: at its beginning, large enough to be read; when
// nothing happens, at what was looked at before.
import { readable } from "./camera.js";
import { magnified } from "./look.js";

const NARROW = 720; // px on a desk; wider stages show all of it, as a map of what there is
const GUESSED = { all: 2 / 3, part: 0.8 }; // of the readable size: below that words are dust; a part should be worth the cut
const SHOWN = { all: 0.95, part: 0.95 }; // on a projector: it is read from the last row
const DUST = 0.04; // wide or not, a box so small is a speck, and a map of specks tells nothing
const LOW = 320; // px: a stage that is lower has not grown yet

// `lively` is the part that matters now, or null for none: then all of it does.
export function readablePart(lively, { box, size, view, toScene, margin }) {
  const k = readable();
  const [w, h] = [size.w - 2 * margin, Math.max(size.h, LOW) - 2 * margin];
  const part = lively ?? box;
  const fits = Math.min(w / part.w, h / part.h);
  const shown = magnified() > 1;
  if (w <= 0 || (!shown && size.w > NARROW && fits >= DUST)) return lively;
  if (fits >= (shown ? SHOWN : GUESSED)[lively ? "part" : "all"] * k) return lively;
  const room = { w: w / k, h: (size.h - 2 * margin) / k };
  if (!lively && Math.abs(view.k - k) < 1e-3) {
    const [left, top] = toScene(margin, margin);
    return { left, top, ...room };
  }
  const from = (all, own, length) => (own - all < length / 2 ? all : own); // with what stands before it, as names of rows
  return { left: from(box.left, part.left, room.w), top: from(box.top, part.top, room.h), ...room };
}
