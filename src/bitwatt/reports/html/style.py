"""The look of pages and fragments: one style sheet, scoped to .bitwatt so that a notebook keeps its own."""

#: Of the page around it; a notebook has its own.
PAGE = """
html { background: #f6f6f4; scroll-padding-top: 1rem; } body { margin: 0; }
@media (prefers-color-scheme: dark) { html { background: #111214; } }
body.bitwatt { margin: 0 auto; max-width: 70rem; border-radius: 0; padding: clamp(1rem, 4vw, 2.5rem);
  background: none; }
@media (max-width: 44rem) { body.bitwatt { padding: 1rem .75rem; } }
.bitwatt .skip { position: absolute; left: -99rem; }
.bitwatt .skip:focus { left: .5rem; top: .5rem; background: var(--card); color: var(--ink); padding: .5rem .9rem;
  border-radius: 8px; z-index: 3; }
.bitwatt :focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; border-radius: 3px; }
.bitwatt main:focus { outline: none; }
.bitwatt nav { margin-top: 1rem; }
.bitwatt nav ul { display: flex; flex-wrap: wrap; gap: .3rem .4rem; list-style: none; margin: 0 0 1.2rem; padding: 0; }
.bitwatt nav a { display: inline-block; color: var(--soft); font-size: .86rem; text-decoration: none;
  padding: .2rem .7rem; border: 1px solid var(--line); border-radius: 99px; background: var(--card); }
.bitwatt nav a:hover { color: var(--ink); border-color: currentColor; }
.bitwatt a { color: var(--link); }
@media print {
  @page { size: A4; margin: 14mm; }
  html { background: none; } body.bitwatt { max-width: none; padding: 0; font-size: 10.5pt; }
  .bitwatt nav, .bitwatt .skip, .bitwatt .tip, .bitwatt .switch > input, .bitwatt .switch > label { display: none; }
  .bitwatt section { border: 0; border-top: 1px solid var(--line); border-radius: 0; padding: .8rem 0 0; }
  .bitwatt h2, .bitwatt figcaption { break-after: avoid; }
  .bitwatt figure, .bitwatt tr, .bitwatt .cards div, .bitwatt .facts div { break-inside: avoid; }
  .bitwatt .scroll { overflow: visible; margin: 0; padding: 0; }
  .bitwatt table { font-size: .72rem; } .bitwatt td, .bitwatt th { padding-inline: .22rem; }
  .bitwatt .s3, .bitwatt .s4 { display: none; }
  .bitwatt * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

#: Of charts: a page shows the wide or the narrow drawing of each.
CHARTS = """
.bitwatt figure.chart { margin: 0 0 1rem; }
.bitwatt figcaption { font-size: .88rem; color: var(--soft); margin: 0 0 .5rem; }
.bitwatt .chart svg.marks { display: block; max-width: 100%; height: auto; }
.bitwatt .chart svg.marks text { pointer-events: none; }
.bitwatt .narrow { display: none; }
.bitwatt .legend { display: flex; flex-wrap: wrap; gap: .1rem 1rem; list-style: none; margin: 0 0 .6rem; padding: 0;
  font-size: .84rem; overflow-wrap: anywhere; }
.bitwatt [role="graphics-symbol"]:hover { fill-opacity: .78; opacity: 1; }
.bitwatt [role="graphics-symbol"]:focus { opacity: 1; stroke: var(--ink); stroke-width: 3; outline: none; }
.bitwatt .tip { position: fixed; z-index: 2; left: 0; top: 0; max-width: min(24rem, 90vw); padding: .35rem .6rem;
  background: var(--ink); color: var(--page); border-radius: 6px; font-size: .84rem; pointer-events: none;
  overflow-wrap: anywhere; }
.bitwatt .tip[hidden] { display: none; }
.bitwatt .switch > input { position: absolute; opacity: 0; width: 1px; height: 1px; }
.bitwatt .switch > label { display: inline-block; font-size: .86rem; padding: .25rem .85rem; margin: 0 .35rem .8rem 0;
  border: 1px solid var(--line); border-radius: 99px; cursor: pointer; color: var(--soft); }
.bitwatt .switch > input:checked + label { background: var(--ink); border-color: var(--ink); color: var(--page); }
.bitwatt .switch > input:focus-visible + label { outline: 3px solid var(--focus); outline-offset: 2px; }
.bitwatt .switch > .panel { display: none; }
.bitwatt .switch > input:nth-of-type(1):checked ~ .panel:nth-of-type(1),
.bitwatt .switch > input:nth-of-type(2):checked ~ .panel:nth-of-type(2),
.bitwatt .switch > input:nth-of-type(3):checked ~ .panel:nth-of-type(3),
.bitwatt .switch > input:nth-of-type(4):checked ~ .panel:nth-of-type(4) { display: block; }
@media screen and (max-width: 48rem) { .bitwatt .wide { display: none; } .bitwatt .narrow { display: block; }
  .bitwatt .chart svg.marks { margin: 0 auto; } }
"""

STYLE = """
.bitwatt { --ink: #1d1e20; --soft: #5c5f65; --line: #e3e3df; --card: #ffffff; --page: #f6f6f4;
  --link: #2559a8; --focus: #2f6fe0;
  --good: #1c7c54; --fair: #8a6100; --bad: #b3261e; --track: #ececE8;
  --bw-on-color: #101114; --bw-muted: #9097a3;
  --bw-c1: #5e95db; --bw-c2: #d37d4b; --bw-c3: #51a371;
  --bw-c4: #a783cf; --bw-c5: #ae8f33; --bw-c6: #37a0ab; --bw-c7: #d57594; --bw-c8: #8a93a2;
  color: var(--ink); background: var(--page); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  padding: 1.25rem; border-radius: 12px; box-sizing: border-box; -webkit-text-size-adjust: 100%; }
@media (prefers-color-scheme: dark) { .bitwatt { --ink: #e9e9ea; --soft: #a4a7af; --line: #2b2d31; --card: #1a1b1e;
  --page: #111214; --link: #8fb8f5; --focus: #7fb0ff;
  --good: #5cc896; --fair: #dfb04a; --bad: #ff8a80; --track: #26282c; } }
.bitwatt * { box-sizing: border-box; }
.bitwatt h1 { font-size: clamp(1.5rem, 5vw, 2.1rem); line-height: 1.15; letter-spacing: -.02em;
  margin: .5rem 0 .35rem;
  color: inherit; overflow-wrap: anywhere; }
.bitwatt h2 { font-size: 1.05rem; letter-spacing: -.01em; margin: 0 0 .75rem; color: inherit; }
.bitwatt h3 { font-size: .95rem; margin: 1.2rem 0 .4rem; color: inherit; }
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
.bitwatt .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.1rem, 1fr)); gap: .75rem;
  margin: 1.4rem 0; }
.bitwatt .cards div { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: .7rem .8rem; }
.bitwatt dt { color: var(--soft); font-size: .8rem; font-weight: 500; margin: 0; }
.bitwatt dd { margin: 0; }
.bitwatt .cards dd { font-size: 1.2rem; font-weight: 650; letter-spacing: -.02em; white-space: nowrap;
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
.bitwatt tbody th { font-weight: 500; min-width: 8rem; max-width: 19rem; white-space: normal; overflow-wrap: anywhere; }
.bitwatt tfoot th, .bitwatt tfoot td { font-weight: 650; }
.bitwatt td.number, .bitwatt th.number { text-align: right; font-variant-numeric: tabular-nums; }
.bitwatt td.text { color: var(--soft); max-width: 13rem; overflow: hidden; text-overflow: ellipsis; }
.bitwatt .bar { width: 20%; min-width: 4rem; padding-right: 0; }
.bitwatt footer { color: var(--soft); font-size: .84rem; padding: .3rem .2rem 0; }
.bitwatt footer ul { margin: 0 0 .8rem; padding-left: 1.2rem; }
.bitwatt .formula { max-width: 46rem; } .bitwatt .formula code { color: var(--ink); font-weight: 600; }
.bitwatt .formula em { font-style: normal; } .bitwatt .formula em::before { content: "· "; }
.bitwatt .facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .55rem 1.2rem;
  margin: 1.1rem 0 0; }
.bitwatt .facts dd { color: var(--ink); overflow-wrap: anywhere; }
.bitwatt code, .bitwatt span { unicode-bidi: isolate; }
.bitwatt .cards dt { font-size: .76rem; }
.bitwatt .hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap; }
.bitwatt .note { color: var(--soft); font-size: .88rem; max-width: 46rem; margin: 0 0 .8rem; }
.bitwatt td.long { white-space: normal; overflow-wrap: anywhere; }
@media screen and (max-width: 48rem) {
  .bitwatt .lines thead { position: absolute; clip-path: inset(50%); }
  .bitwatt .lines tr { display: block; border-top: 1px solid var(--line); padding: .5rem 0; }
  .bitwatt .lines th, .bitwatt .lines td { display: block; border: 0; padding: .05rem 0; max-width: none;
    text-align: left; }
  .bitwatt .lines td::before { content: attr(data-head) ": "; color: var(--soft); }
}
.bitwatt .sides { list-style: none; margin: .3rem 0 .8rem; padding: 0; color: var(--soft); overflow-wrap: anywhere; }
.bitwatt .sides strong { display: inline-block; min-width: 1.6em; color: var(--ink); }
.bitwatt .more .change { color: var(--bad); } .bitwatt .less .change { color: var(--good); }
.bitwatt .badge { display: inline-block; font-size: .78rem; font-weight: 600; border: 1px solid currentColor;
  border-radius: 99px; padding: 0 .55rem; white-space: nowrap; }
.bitwatt .measured, .bitwatt .counted, .bitwatt .badge.passed { color: var(--good); }
.bitwatt .badge.failed { color: var(--bad); } .bitwatt .apportioned, .bitwatt .estimated {
  color: var(--fair); } .bitwatt .modelled { color: var(--link); } .bitwatt .unknown { color: var(--soft); }
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
"""
