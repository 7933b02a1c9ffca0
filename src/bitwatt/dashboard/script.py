"""The dashboard's own script: how many runs are marked, and numbers of runs under way as they grow. Everything can be
read without it."""

#: Text is set as text, and links are made of what the server gave as an address: no name becomes markup.
SCRIPT = """
(() => {
  const button = document.querySelector("button[data-count]");
  if (button) {
    const boxes = [...document.querySelectorAll('input[name="run"]')];
    const told = () => {
      const marked = boxes.filter((box) => box.checked).length;
      button.textContent = marked ? `${button.dataset.count} ${marked} marked` : "Mark runs to compare";
      button.disabled = marked < 2;
    };
    for (const box of boxes) box.addEventListener("change", told);
    addEventListener("pageshow", told);
    told();
  }
  const live = document.querySelector("[data-stream]");
  if (!live) return;
  const body = live.querySelector("tbody");
  const said = document.querySelector("#said");
  const none = document.querySelector("#none");
  const fields = JSON.parse(live.dataset.fields);
  const make = (run) => {
    const row = document.createElement("tr");
    row.setAttribute("role", "row");
    row.dataset.id = run.id;
    const head = document.createElement("th");
    head.scope = "row";
    head.setAttribute("role", "rowheader");
    const link = document.createElement("a");
    head.append(link);
    row.append(head);
    for (const [name, title, kind] of fields) {
      const cell = document.createElement("td");
      cell.className = kind;
      cell.dataset.field = name;
      cell.dataset.head = title;
      cell.setAttribute("role", "cell");
      row.append(cell);
    }
    return row;
  };
  const spark = (cell, points) => {
    let line = cell.querySelector("polyline");
    if (!line) {
      const space = "http://www.w3.org/2000/svg";
      const svg = document.createElementNS(space, "svg");
      svg.setAttribute("class", "spark");
      svg.setAttribute("viewBox", "0 0 100 24");
      svg.setAttribute("preserveAspectRatio", "none");
      svg.setAttribute("aria-hidden", "true");
      line = document.createElementNS(space, "polyline");
      svg.append(line);
      cell.replaceChildren(svg);
    }
    line.setAttribute("points", points);
  };
  const show = (runs) => {
    const rows = new Map([...body.rows].map((row) => [row.dataset.id, row]));
    for (const run of runs) {
      let row = rows.get(run.id);
      if (!row) {
        row = make(run);
        said.textContent = `${run.name} is under way`;
      } else if (row.dataset.state === "under way" && run.state !== "under way") {
        said.textContent = `${run.name} has ended: ${run.state}`;
      }
      rows.delete(run.id);
      row.dataset.state = run.state;
      const link = row.querySelector("th a");
      link.textContent = run.name;
      link.href = run.url;
      for (const cell of row.querySelectorAll("td[data-field]")) {
        const value = run[cell.dataset.field];
        if (cell.dataset.field === "points") spark(cell, value);
        else if (cell.textContent !== value) cell.textContent = value;
      }
      body.append(row);
    }
    for (const row of rows.values()) row.remove();
    none.hidden = runs.length > 0;
    live.hidden = runs.length === 0;
  };
  const source = new EventSource(live.dataset.stream);
  source.addEventListener("message", (event) => show(JSON.parse(event.data)));
  const state = document.querySelector("#state");
  source.addEventListener("open", () => { state.textContent = "Connected: numbers change as runs are written."; });
  source.addEventListener("error", () => { state.textContent = "The server does not answer; trying again."; });
})();
"""
