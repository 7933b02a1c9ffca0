"""What the dashboard's pages look like beyond what reports do."""

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1c7c54"/>'
    '<path d="M18 4 8 18h7l-2 10 11-15h-7z" fill="#fff"/></svg>'
)
STYLE = """
body.dashboard.broad { max-width: 92rem; }
body.dashboard { padding-top: 0; }
body.dashboard > header { margin-bottom: 1.2rem; }
.bitwatt .top { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem 1.6rem; padding: .8rem 0;
  border-bottom: 1px solid var(--line); margin-bottom: 1.2rem; }
.bitwatt .brand { font-weight: 700; letter-spacing: -.02em; color: var(--ink); text-decoration: none;
  font-size: 1.1rem; }
.bitwatt .top nav { margin: 0; } .bitwatt .top nav ul { margin: 0; gap: .2rem; }
.bitwatt .top nav a { border: 0; background: none; font-size: .92rem; padding: .3rem .7rem; border-radius: 8px; }
.bitwatt .top nav a[aria-current] { color: var(--ink); background: var(--track); font-weight: 600; }
.bitwatt label { font-size: .86rem; color: var(--soft); }
.bitwatt input[type=search], .bitwatt input[type=text], .bitwatt input[type=password], .bitwatt select {
  font: inherit; font-size: .92rem; color: var(--ink); background: var(--page); border: 1px solid var(--line);
  border-radius: 8px; padding: .42rem .7rem; min-width: 0; max-width: 100%; }
.bitwatt input[type=search], .bitwatt input[type=text] {
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.bitwatt input[type=checkbox] { width: 1.05rem; height: 1.05rem; margin: 0; accent-color: var(--good);
  vertical-align: -.15em; }
.bitwatt button, .bitwatt a.button { font: inherit; font-size: .9rem; font-weight: 600; padding: .42rem 1rem;
  border: 1px solid var(--ink); border-radius: 8px; background: var(--ink); color: var(--page); cursor: pointer;
  text-decoration: none; display: inline-block; }
.bitwatt button:disabled { background: none; color: var(--soft); border-color: var(--line); cursor: default; }
.bitwatt a.button { background: none; color: var(--ink); border-color: var(--line); }
.bitwatt a.button:hover { border-color: currentColor; }
.bitwatt .search .row { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem .7rem; }
.bitwatt .search .pair { display: flex; align-items: center; gap: .6rem; min-width: 0; }
.bitwatt .search input[type=search] { flex: 1 1 18rem; } .bitwatt .search select { max-width: 18rem; }
.bitwatt details { margin: .7rem 0 .3rem; font-size: .9rem; }
.bitwatt .search details { display: inline-block; vertical-align: top; margin-right: 1.4rem; }
.bitwatt .search details[open] { display: block; margin-right: 0; }
.bitwatt summary { cursor: pointer; color: var(--soft); width: fit-content; }
.bitwatt summary:hover { color: var(--ink); }
.bitwatt fieldset { border: 0; margin: .6rem 0 0; padding: 0; min-width: 0; }
.bitwatt legend { font-size: .86rem; color: var(--soft); padding: 0; }
.bitwatt .boxes { display: flex; flex-wrap: wrap; gap: .35rem 1.1rem; max-height: 16rem; overflow: auto; }
.bitwatt .boxes label { color: var(--ink); display: inline-flex; gap: .4rem; align-items: center;
  overflow-wrap: anywhere; }
.bitwatt .examples { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0;
  margin: 0 0 .8rem; }
.bitwatt .bar-of-marks { margin: 0 0 .6rem; position: sticky; top: .4rem; z-index: 1; width: fit-content; }
.bitwatt .runs th a, .bitwatt .runs td a { text-decoration: none; }
.bitwatt .runs tbody th a:hover { text-decoration: underline; }
.bitwatt .runs tbody th { min-width: 12rem; max-width: 24rem; }
.bitwatt .runs tbody th small { display: block; color: var(--soft); font-weight: 400; font-size: .78rem;
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.bitwatt .runs tbody tr:hover, .bitwatt .runs tr:has(input:checked) { background: var(--track); }
.bitwatt .runs td.long { max-width: 22rem; min-width: 5.5rem; }
.bitwatt .runs td.number + td.long, .bitwatt .runs th.number + th:not(.number) { padding-left: 1rem; }
.bitwatt .runs td.wordy { min-width: 12rem; }
.bitwatt .runs td[data-head=started] { white-space: nowrap; }
.bitwatt .runs .mark { width: 2rem; padding-left: .3rem; } .bitwatt a.sort { color: var(--soft); white-space: nowrap; }
.bitwatt th[aria-sort] a.sort { color: var(--ink); font-weight: 650; }
.bitwatt a.ranks { font-size: .78rem; font-weight: 600; white-space: nowrap; }
.bitwatt .badge.live { color: var(--link); }
.bitwatt .pager { display: flex; flex-wrap: wrap; align-items: center; gap: .6rem; margin: 1rem 0 .6rem; }
.bitwatt .pager span { color: var(--soft); font-size: .88rem; margin-right: .4rem; }
.bitwatt .pager a.button { border-radius: 8px; padding: .35rem .9rem; font-size: .88rem; color: var(--ink); }
.bitwatt .tools { display: flex; flex-wrap: wrap; gap: .5rem; margin: .9rem 0 0; }
.bitwatt .chosen { display: flex; flex-wrap: wrap; align-items: end; gap: .7rem 1rem; }
.bitwatt .chosen > div { display: grid; gap: .2rem; } .bitwatt .chosen select { max-width: 16rem; }
.bitwatt .chosen > .wide-one { flex: 1 1 16rem; } .bitwatt .chosen fieldset { flex: 1 0 100%; margin: 0; }
.bitwatt .chosen > label { padding-bottom: .5rem; } .bitwatt .chosen .boxes { margin-top: .2rem; max-height: 8rem; }
.bitwatt .login { display: flex; flex-wrap: wrap; gap: .6rem; align-items: center; margin: 0 0 .8rem; }
.bitwatt .login .alert { flex: 1 0 100%; margin: 0; }
.bitwatt svg.spark { display: block; width: 9rem; height: 1.6rem; }
.bitwatt svg.spark polyline { fill: none; stroke: var(--bw-c1); stroke-width: 2; vector-effect: non-scaling-stroke; }
.bitwatt .fresh th, .bitwatt .fresh td { background: var(--track); }
.bitwatt .quiet { color: var(--soft); font-size: .88rem; }
@media screen and (max-width: 48rem) {
  .bitwatt .runs tbody th { max-width: none; } .bitwatt .runs tr { position: relative; padding-left: 2.2rem; }
  .bitwatt .runs td.mark { position: absolute; left: 0; top: .6rem; width: auto; padding: 0; }
  .bitwatt .runs td.mark::before { content: none; }
  .bitwatt .runs td:empty { display: none; }
  .bitwatt .runs td.number + td.long { padding-left: 0; } .bitwatt .runs td.long { max-width: none; }
  .bitwatt input[type=checkbox] { width: 1.3rem; height: 1.3rem; }
}
@media print { .bitwatt .top, .bitwatt .tools, .bitwatt .search, .bitwatt .pager { display: none; } }
"""
