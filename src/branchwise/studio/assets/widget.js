// The widget of a notebook: the page in a frame of its own, whose messages go to Python.

const PAGE = "{{ page }}";

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "branchwise studio";
  frame.setAttribute("sandbox", "allow-scripts allow-downloads");
  frame.allow = "clipboard-write";
  frame.style.cssText = "display:block;width:100%;border:1px solid #8884;border-radius:8px;box-sizing:border-box";
  const resize = () => (frame.style.height = `${model.get("height")}px`);
  const fromPage = (event) => {
    if (event.source === frame.contentWindow) model.send(event.data);
  };
  // The frame is sandboxed, so that its origin has no name.
  const fromPython = (message) => frame.contentWindow?.postMessage(message, "*");
  resize();
  frame.srcdoc = PAGE;
  window.addEventListener("message", fromPage);
  model.on("msg:custom", fromPython);
  model.on("change:height", resize);
  el.append(frame);
  return () => {
    window.removeEventListener("message", fromPage);
    model.off("msg:custom", fromPython);
    model.off("change:height", resize);
  };
}

export default { render };
