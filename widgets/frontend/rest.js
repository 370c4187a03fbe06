// Where to look in a narrow window, where what matters would be dust: at its beginning, large enough to be read; when
// nothing happens, at what was looked at before.
import { MARGIN, readable } from "./camera.js";
import { magnified } from "./look.js";

const NARROW = 720; // px on a desk; wider stages show all of it, as a map of what there is
const GUESSED = { all: 2 / 3, part: 0.8 }; // of the readable size: below that words are dust; a part should be worth the cut
const LOW = 320; // px: a stage that is lower has not grown yet

// `lively` is the part that matters now, or null for none: then all of it does.
export function readablePart(lively, { box, size, view, toScene }) {
  const k = readable();
  const [w, h] = [size.w - 2 * MARGIN, Math.max(size.h, LOW) - 2 * MARGIN];
  const part = lively ?? box;
  if (w <= 0 || size.w > NARROW * magnified() || Math.min(w / part.w, h / part.h) >= (lively ? GUESSED.part : GUESSED.all) * k) return lively;
  const room = { w: w / k, h: (size.h - 2 * MARGIN) / k };
  if (!lively && Math.abs(view.k - k) < 1e-3) {
    const [left, top] = toScene(MARGIN, MARGIN);
    return { left, top, ...room };
  }
  const from = (all, own, length) => (own - all < length / 2 ? all : own); // with what stands before it, as names of rows
  return { left: from(box.left, part.left, room.w), top: from(box.top, part.top, room.h), ...room };
}
