"""A notebook's side of a widget: its messages, and a page that runs its module."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Any

import comm
from comm.base_comm import BaseComm


class Channel(BaseComm):
    """What carries the messages of one widget; those to the page are kept."""

    def __init__(self, **options: Any) -> None:
        self.sent: SimpleQueue[dict[str, Any]] = SimpleQueue()
        super().__init__(**options)

    def publish_msg(self, msg_type: str, data: Any = None, **_: Any) -> None:
        if msg_type == "comm_msg" and data["method"] == "custom":
            self.sent.put(data["content"])

    def from_page(self, content: Any) -> None:
        """Hand a message of the page to the widget."""
        data = {"method": "custom", "content": content}
        self.handle_msg({"content": {"data": data}, "buffers": []})

    def next(self, seconds: float = 20.0) -> dict[str, Any]:
        """Return the next message to the page."""
        return self.sent.get(timeout=seconds)

    def waiting(self) -> list[dict[str, Any]]:
        """Return the messages to the page that were not read yet."""
        found = []
        try:
            while True:
                found.append(self.sent.get_nowait())
        except Empty:
            return found


def use_channels(monkeypatch: Any) -> None:
    """Let widgets that are made from now on have such channels."""
    monkeypatch.setattr(comm, "create_comm", Channel)


#: A page that runs a widget as anywidget does: the module of its text, and a model with
#: get, on, off and send. Messages of Python are fetched, for tests in one thread.
HOST = """<!doctype html><title>notebook</title><body><p>A cell</p><div id="cell"></div>
<script>
const listeners = { "msg:custom": new Set(), "change:height": new Set() };
const model = {
  get: (name) => window.values[name],
  on: (event, listener) => listeners[event].add(listener),
  off: (event, listener) => listeners[event].delete(listener),
  send: (content) => void window.toPython(content),
};
window.show = async (text, values) => {
  window.values = values;
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  window.remove = widget.render({ model, el: document.getElementById("cell") });
  setInterval(async () => {
    for (const message of await window.fromPython()) {
      for (const listener of listeners["msg:custom"]) listener(message, []);
    }
  }, 20);
};
window.listening = () => Object.values(listeners).reduce((n, { size }) => n + size, 0);
</script>
"""
