// anywidget gives a model 2 seconds to begin, and to one that takes longer, as in a page that opens thirty pictures, it
// never hands on what the kernel says: the picture would stand still for good. Such a model hears the kernel by itself,
// as the models of ipywidgets do.

// `missed(raw)` is called if something may have been lost by then. Fails where that model cannot be reached.
export async function hearLate(model, missed) {
  const raw = await model.widget_manager.get_model(model.get("own_id"));
  const began = raw._handle_comm_msg({ content: { data: { method: "nothing" } } }); // what everything from the kernel goes through
  if (await began.then(() => true, () => false)) return;
  const hears = Object.getPrototypeOf(Object.getPrototypeOf(raw))._handle_comm_msg.bind(raw);
  raw._handle_comm_msg = hears;
  raw.comm.on_msg(hears);
  missed(raw);
}

// The whole state once more, from the kernel.
export function askAgain(raw) {
  raw.comm.send({ method: "request_state" }, {});
}
