"""The script of a page: values under the pointer, and charts by keyboard. Without it everything can still be read."""

#: Marks of a chart have labels, written by Vega. Text is set as text, places through the object model: neither markup
#: nor style attributes are made, which the page's policy would refuse.
SCRIPT = """
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  const show = (mark, x, y) => {
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    const left = Math.min(Math.max(8, x + 12), innerWidth - tip.offsetWidth - 8);
    const top = y - tip.offsetHeight - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${top < 8 ? y + 16 : top}px`;
  };
  const hide = () => { tip.hidden = true; };
  const beside = (mark) => {
    const box = mark.getBoundingClientRect();
    show(mark, box.left + Math.min(box.width / 2, 160), box.top + Math.min(box.height / 2, 40));
  };
  for (const chart of document.querySelectorAll("figure.chart svg.marks")) {
    const marks = [...chart.querySelectorAll('[role="graphics-symbol"][aria-label]')];
    if (!marks.length) continue;
    chart.setAttribute("tabindex", "0");
    chart.setAttribute("aria-label", `${chart.getAttribute("aria-label")}; arrow keys step through its values`);
    for (const mark of marks) mark.setAttribute("tabindex", "-1");
    let at = -1;
    chart.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
                      Home: 0, End: marks.length - 1 };
      if (event.key === "Escape") { at = -1; hide(); chart.focus(); return; }
      if (!(event.key in steps)) return;
      event.preventDefault();
      at = Math.min(Math.max(steps[event.key], 0), marks.length - 1);
      marks[at].focus();
    });
    chart.addEventListener("focusin", (event) => {
      const place = marks.indexOf(event.target);
      if (place >= 0) { at = place; beside(event.target); }
    });
    chart.addEventListener("focusout", hide);
    chart.addEventListener("pointermove", (event) => {
      const mark = event.target.closest('[role="graphics-symbol"][aria-label]');
      if (mark) show(mark, event.clientX, event.clientY); else hide();
    });
    chart.addEventListener("pointerleave", hide);
  }
  addEventListener("scroll", hide, { passive: true });
})();
"""
