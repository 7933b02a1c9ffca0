"""The look of the html report: one style sheet, scoped to .bitwatt so that a notebook keeps its own."""

PAGE_STYLE = """
html { background: #f6f6f4; } body { margin: 0; }
@media (prefers-color-scheme: dark) { html { background: #111214; } }
body > .bitwatt { margin: 0 auto; max-width: 62rem; border-radius: 0; padding: clamp(1rem, 4vw, 2.5rem);
  background: none; }
"""

STYLE = """
.bitwatt { --ink: #1d1e20; --soft: #62656b; --line: #e3e3df; --card: #ffffff; --page: #f6f6f4;
  --good: #1c7c54; --fair: #8a6100; --bad: #b3261e; --track: #ececE8;
  color: var(--ink); background: var(--page); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  padding: 1.25rem; border-radius: 12px; box-sizing: border-box; -webkit-text-size-adjust: 100%; }
@media (prefers-color-scheme: dark) { .bitwatt { --ink: #e9e9ea; --soft: #9b9ea6; --line: #2b2d31; --card: #1a1b1e;
  --page: #111214; --good: #5cc896; --fair: #dfb04a; --bad: #ff8a80; --track: #26282c; } }
.bitwatt * { box-sizing: border-box; }
.bitwatt h1 { font-size: clamp(1.5rem, 5vw, 2.1rem); line-height: 1.15; letter-spacing: -.02em;
  margin: .5rem 0 .35rem;
  color: inherit; overflow-wrap: anywhere; }
.bitwatt h2 { font-size: 1.05rem; letter-spacing: -.01em; margin: 0 0 .75rem; color: inherit; }
.bitwatt p { margin: 0; }
.bitwatt code { font: .92em ui-monospace, "SF Mono", Menlo, Consolas, monospace; background: none; color: inherit; }
.bitwatt .replay { font-size: .85rem; color: inherit; opacity: .75; margin: .4rem 0; }
.bitwatt .coverage { display: inline-block; font-size: .85rem; font-weight: 600; padding: .15rem .65rem;
  border-radius: 99px;
  border: 1px solid currentColor; }
.bitwatt .good { color: var(--good); } .bitwatt .fair { color: var(--fair); } .bitwatt .bad { color: var(--bad); }
.bitwatt .coverage::before { content: ""; display: inline-block; width: .5em; height: .5em; border-radius: 50%;
  background: currentColor; margin-right: .5em; vertical-align: .1em; }
.bitwatt .meta { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; color: var(--soft); font-size: .88rem; }
.bitwatt .meta > * { overflow-wrap: anywhere; }
.bitwatt .alert { margin-top: .9rem; padding: .7rem .9rem; border-left: 3px solid var(--bad); background: var(--card);
  border-radius: 6px; font-size: .9rem; overflow-wrap: anywhere; }
.bitwatt .alert ul { margin: .4rem 0 0; padding-left: 1.2rem; } .bitwatt .alert span { color: var(--soft); }
.bitwatt .cards { display: flex; flex-wrap: wrap; gap: .75rem;
  margin: 1.4rem 0; }
.bitwatt .cards div { flex: 1 1 7.2rem; background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: .75rem .95rem; }
.bitwatt dt { color: var(--soft); font-size: .8rem; font-weight: 500; margin: 0; }
.bitwatt dd { margin: 0; }
.bitwatt .cards dd { font-size: 1.3rem; font-weight: 650; letter-spacing: -.02em; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.bitwatt .cards small { font-size: .62em; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.bitwatt section { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 1.1rem 1.2rem .7rem;
  margin: 0 0 1rem; }
.bitwatt svg.bars { display: block; width: 100%; height: 10px; border-radius: 3px; overflow: hidden; }
.bitwatt svg.stack { height: 30px; border-radius: 8px; margin: 0 0 1rem; background: var(--track); }
.bitwatt svg.bars rect { transition: opacity .15s; } .bitwatt svg.bars:hover rect { opacity: .45; }
.bitwatt svg.bars rect:hover { opacity: 1; }
.bitwatt svg.stack rect { stroke: var(--card); stroke-width: 2; vector-effect: non-scaling-stroke; }
.bitwatt svg.dot { width: .6em; height: .6em; margin-right: .55em; display: inline; vertical-align: baseline; }
.bitwatt svg.power { display: block; width: 100%; height: 9rem; margin: .8rem 0 .3rem; background: var(--track);
  border-radius: 8px; }
.bitwatt svg.power polyline { stroke-width: 2; vector-effect: non-scaling-stroke; }
.bitwatt .energy { font-weight: 600; }
.bitwatt .scroll { overflow-x: auto; margin: 0 -1.2rem; padding: 0 1.2rem; }
.bitwatt table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: 0; border: 0; color: inherit;
  background: none; }
.bitwatt tr { background: none; }
.bitwatt th, .bitwatt td { padding: .38rem .7rem .38rem 0; border: 0; border-top: 1px solid var(--line);
  text-align: left;
  font-weight: 400; white-space: nowrap; background: none; vertical-align: middle; }
.bitwatt tr > :last-child { padding-right: 0; }
.bitwatt thead th, .bitwatt thead td { border-top: 0; color: var(--soft); font-size: .8rem; font-weight: 500; }
.bitwatt tbody th { font-weight: 500; max-width: 19rem; white-space: normal; overflow-wrap: anywhere; }
.bitwatt tfoot th, .bitwatt tfoot td { font-weight: 650; }
.bitwatt td.number, .bitwatt th.number { text-align: right; font-variant-numeric: tabular-nums; }
.bitwatt td.text { color: var(--soft); max-width: 13rem; overflow: hidden; text-overflow: ellipsis; }
.bitwatt .bar { width: 20%; min-width: 4rem; padding-right: 0; }
.bitwatt footer { color: var(--soft); font-size: .84rem; padding: .3rem .2rem 0; }
.bitwatt footer ul { margin: 0 0 .8rem; padding-left: 1.2rem; }
.bitwatt .formula { max-width: 46rem; } .bitwatt .formula code { color: var(--ink); font-weight: 600; }
.bitwatt .formula em { font-style: normal; opacity: .8; } .bitwatt .formula em::before { content: "· "; }
.bitwatt .facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(11.5rem, 1fr)); gap: .55rem 1.2rem;
  margin: 1.1rem 0 0; }
.bitwatt .facts dd { color: var(--ink); overflow-wrap: anywhere; }
@media (max-width: 44rem) {
  .bitwatt .s2, .bitwatt .s3, .bitwatt .s4 { display: none; }
  .bitwatt .cards { gap: .6rem; }
  .bitwatt .bar { width: 4.5rem; }
}
@media (max-width: 30rem) {
  .bitwatt .s1 { display: none; }
  .bitwatt .bar { min-width: 2.5rem; }
  .bitwatt tr > :not(:last-child) { padding-right: .5rem; }
  .bitwatt tbody th { min-width: 7.5rem; max-width: 9.5rem; white-space: normal; overflow-wrap: anywhere; }
}
@media print { .bitwatt section, .bitwatt .cards div { flex: 1 1 7.2rem; break-inside: avoid; } }
"""
