// Tokens that travel along edges, on a canvas above the picture: moving them never repaints the nodes.

export class Tokens {
  // `pathOf(edge)` gives the <path> of an edge; `view()` gives {k, x, y}, the zoom and pan of the picture.
  constructor(canvas, pathOf, view) {
    Object.assign(this, { canvas, pathOf, view, alive: [], context: canvas.getContext("2d"), colours: {} });
  }

  start(tokens, now) {
    this.alive = tokens.map((token) => ({ ...token, from: now + token.delay }));
  }

  clear() {
    this.alive = [];
    this.draw(0);
  }

  resize(width, height) {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.scale = scale;
  }

  // Draws one frame; true while something still moves.
  draw(now) {
    const { context, canvas } = this;
    if (canvas.hidden && !this.alive.length) return false;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    this.alive = this.alive.filter((token) => now < token.from + token.duration);
    canvas.hidden = !this.alive.length; // an empty one would still be laid over all the rest, frame by frame
    if (canvas.hidden) return false;
    context.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    const { k, x, y } = this.view();
    for (const token of this.alive) {
      const path = this.pathOf(token.edge);
      if (!path || now < token.from) continue;
      const part = (now - token.from) / Math.max(token.duration, 1);
      const eased = part * part * (3 - 2 * part);
      // A line is drawn from source to target in either state, so a gradient runs it from its end.
      const place = path.getPointAtLength(path.getTotalLength() * (token.backward ? 1 - eased : eased));
      this.one(place.x * k + x, place.y * k + y, token);
    }
    return true;
  }

  one(x, y, token) {
    const { context, colours } = this;
    context.fillStyle = token.backward || token.square ? colours.backward : colours.forward;
    context.strokeStyle = colours.surface;
    context.lineWidth = 2;
    context.beginPath();
    if (token.backward) {
      context.moveTo(x, y - 7);
      context.lineTo(x + 7, y);
      context.lineTo(x, y + 7);
      context.lineTo(x - 7, y);
      context.closePath();
    } else if (token.square) context.rect(x - 5.5, y - 5.5, 11, 11);
    else context.arc(x, y, 6, 0, 2 * Math.PI);
    context.stroke();
    context.fill();
    if (!token.label) return;
    context.font = "600 12px system-ui, sans-serif";
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeText(token.label, x + 11, y + 4);
    context.fillText(token.label, x + 11, y + 4);
  }
}
