# SPDX-License-Identifier: Apache-2.0
"""What the pictures of the documents are drawn with: SVG that is readable on light and dark pages."""

from xml.sax.saxutils import escape

STYLE = """
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #24292f; text-anchor: middle }
  .left { text-anchor: start } .right { text-anchor: end }
  .title { font-size: 15px; font-weight: 600 } .strong { font-weight: 600 }
  .small { font-size: 12px; fill: #57606a } .code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px }
  .box { fill: #f6f8fa; stroke: #8c959f } .blue { fill: #ddf4ff; stroke: #0969da } .green { fill: #dafbe1; stroke: #1a7f37 }
  .yellow { fill: #fff8c5; stroke: #9a6700 } .red { fill: #ffebe9; stroke: #cf222e }
  .solid { fill: #0969da; stroke: none } .solid2 { fill: #c2571a; stroke: none } .white { fill: #fff }
  .line { fill: none; stroke: #6e7781; stroke-width: 1.3 } .dashed { stroke-dasharray: 5 4 } .rule { stroke: #8c959f; stroke-opacity: .35 }
  .head { fill: #6e7781 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 }
    .box { fill: #161b22; stroke: #656c76 } .blue { fill: #0c2d6b; stroke: #58a6ff } .green { fill: #0f3d1e; stroke: #3fb950 }
    .yellow { fill: #4b2900; stroke: #d29922 } .red { fill: #5c1014; stroke: #f85149 }
    .solid { fill: #1f6feb } .white { fill: #fff } .line { stroke: #9198a1 } .head { fill: #9198a1 }
  }
"""
HEAD = ('<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="head" d="M0 0L8 4L0 8z"/></marker>')


def text(x, y, words, kind=""):
    kinds = f' class="{kind}"' if kind else ""
    return f'<text{kinds} x="{x:g}" y="{y:g}">{escape(words)}</text>'


def rect(x, y, width, height, kind="box", radius=6):
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>'


def box(x, y, width, height, lines, kind="box", fonts=("strong", "small")):
    """A box with lines of text in its middle: the first in the first font, the others in the second."""
    first = y + height / 2 + 4.5 - 8 * (len(lines) - 1)
    return [rect(x, y, width, height, kind),
            *(text(x + width / 2, first + 16 * at, line, fonts[min(at, 1)]) for at, line in enumerate(lines))]


def line(*points, kind="line", arrow=True):
    """A line through points (x, y), with a head at its end."""
    path = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path class="{kind}" d="M{path}"' + (' marker-end="url(#head)"/>' if arrow else "/>")


def curve(begin, end, kind="line"):
    """A line from one height to another that leaves and arrives upright."""
    (x, y), (to_x, to_y) = begin, end
    middle = (y + to_y) / 2
    return f'<path class="{kind}" d="M{x:g} {y:g}C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"/>'


def svg(width, height, title, *parts):
    """The whole picture. Parts are elements, or lists of them."""
    flat = [one for part in parts for one in ([part] if isinstance(part, str) else part)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n<defs>{HEAD}</defs>\n'
            + "\n".join(flat) + "\n</svg>\n")
