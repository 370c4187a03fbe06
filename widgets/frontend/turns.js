// Whose turn it is to draw. The pictures of a page come one after the other, and when they took long, the page rests
// for as long: so a click and a message get through however slow the page is.
const TURNS = Symbol.for("autodiff-lab turns"); // each widget brings a module of its own along
const SHORT = 8; // ms of drawing in a frame that nobody has to rest from

export function inTurn(draw) {
  const turns = (globalThis[TURNS] ??= { waiting: [], asked: false });
  turns.waiting.push(draw);
  next(turns);
}

function next(turns) {
  if (turns.asked || !turns.waiting.length) return;
  turns.asked = true;
  requestAnimationFrame(async () => {
    const begin = performance.now();
    const took = () => performance.now() - begin;
    do {
      try {
        await turns.waiting.shift()();
      } catch (error) {
        console.error(error); // the others have their turn all the same
      }
    } while (turns.waiting.length && took() < SHORT);
    const rest = took() < SHORT ? 0 : took();
    const go = () => {
      turns.asked = false;
      next(turns);
    };
    if (rest) setTimeout(go, rest);
    else go();
  });
}
