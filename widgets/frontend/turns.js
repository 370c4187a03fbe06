// Whose turn it is to draw. The pictures of a page come one after the other, and when they took long, the page rests
// for as long: so a click and a message get through however slow the page is.
const turns = { waiting: [], asked: false };
const BRIEF = 8; // ms of drawing in a frame that nobody has to rest from
const STUCK = 2000; // ms after which the next has its turn, whatever this one waits for

export function inTurn(draw) {
  turns.waiting.push(draw);
  nextTurn();
}

function nextTurn() {
  if (turns.asked || !turns.waiting.length) return;
  turns.asked = true;
  requestAnimationFrame(async () => {
    const begin = performance.now();
    const took = () => performance.now() - begin;
    do {
      try {
        await Promise.race([turns.waiting.shift()(), new Promise((go) => setTimeout(go, STUCK))]);
      } catch (error) {
        console.error(error); // the others have their turn all the same
      }
    } while (turns.waiting.length && took() < BRIEF);
    const rest = took() < BRIEF ? 0 : took();
    const go = () => {
      turns.asked = false;
      nextTurn();
    };
    if (rest) setTimeout(go, rest);
    else go();
  });
}
