"""How pages and plots look: colours for light and dark screens and for paper, and the rules that use them."""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff", "raised": "#f3f5f8", "ink": "#1b1f24", "quiet": "#565d66", "line": "#c9ced6", "link": "#0b5cad",
    "s1": "#014c9c", "s2": "#e16817", "s3": "#461556", "s4": "#018863", "s5": "#c41040", "s6": "#20461f",
}  # fmt: skip
"""Colours on white: text, rules, and six series that differ in lightness too, so that grey copies tell them apart."""

DARK = {
    "paper": "#15181d", "raised": "#20242b", "ink": "#e7e9ec", "quiet": "#a9b0ba", "line": "#434a55", "link": "#8cc0ff",
    "s1": "#67b6fe", "s2": "#ffc96e", "s3": "#c25eb8", "s4": "#89fed0", "s5": "#fd6862", "s6": "#f0f7fd",
}  # fmt: skip

DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "12 4")
"""Dashes of the six series: colour is never the only difference."""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


COLOURS = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
"""

PLOT = "\n".join(
    [
        "svg { font: 11.5px system-ui, sans-serif; overflow: visible; }",
        # a rim of paper keeps text readable where lines of the grid cross it
        "svg text { fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }",
        "svg .tick { fill: var(--quiet); font-variant-numeric: tabular-nums; }",
        "svg .grid { stroke: var(--line); stroke-width: .7; }",
        "svg .axis { stroke: var(--quiet); stroke-width: 1; }",
        "svg .curve { stroke: var(--c); fill: none; stroke-width: 2; }",
        "svg .band { fill: var(--c); opacity: .11; }",
        "svg .area, svg .dot { fill: var(--c); }",
        "svg .ring { fill: none; stroke: var(--ink); stroke-width: 1.6; }",
        "svg .strong { font-weight: 600; }",
        *(f"svg .s{at} {{ --c: var(--s{at}); }}" for at in range(1, 7)),
        *(f"svg .s{at} .curve {{ stroke-dasharray: {dash}; }}" for at, dash in enumerate(DASHES, 1) if dash),
    ]
)

PAGE = """
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  max-width: 66rem; padding: 1.5rem 1rem 3rem; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .3rem 0 .8rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, ul, ol { max-width: 46rem; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; background: var(--paper); padding: .5rem 1rem; }
.skip:focus { left: 1rem; top: .5rem; z-index: 1; }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 0; max-width: none; }
nav a { display: inline-block; padding: .25rem 0; }
.verdict { font-size: 1.1rem; border-left: 4px solid var(--link); background: var(--raised); padding: .8rem 1rem; }
.note, figcaption, footer { color: var(--quiet); font-size: .9rem; }
.wide { overflow-x: auto; max-width: 100%; margin: 1.4rem 0 .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { text-align: left; padding: .25rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: normal; }
tbody th { font-weight: normal; min-width: 7rem; }
td:not(.number) { min-width: 9rem; }
thead th { border-bottom-color: var(--ink); vertical-align: bottom; }
th:first-child { padding-left: 0; }
.number { text-align: right; }
tbody .number { white-space: nowrap; }
tbody th, thead th:first-child { position: sticky; left: 0; background: var(--paper); }
tbody tr:hover > * { background: var(--raised); }
.plots { display: grid; gap: 1.5rem 2.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
figure { margin: 0; max-width: 28rem; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { margin-top: .3rem; }
img { max-width: 100%; height: auto; background: #fff; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--link); padding: .25rem 0; width: fit-content; }
pre { background: var(--raised); padding: .7rem 1rem; overflow-x: auto; }
code { font: .9em ui-monospace, monospace; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem 1.2rem; margin: 1rem 0; }
dl div { display: flex; flex-direction: column; justify-content: end; }
dt { color: var(--quiet); font-size: .9rem; }
dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
footer { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: .8rem; }
@media print {
  body { font-size: 10.5pt; max-width: none; padding: 0; }
  nav, .skip { display: none; }
  h2, h3, caption { break-after: avoid; }
  tr, figure, dl { break-inside: avoid; }
  .wide { overflow: visible; }
  pre { white-space: pre-wrap; }
  summary { list-style: none; color: inherit; }
  details::details-content { content-visibility: visible; block-size: auto; }
  .plots { grid-template-columns: 1fr 1fr; }
}
"""
