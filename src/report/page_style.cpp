// SPDX-License-Identifier: Apache-2.0
#include "page_style.hpp"

namespace tessera::report {

const std::string_view kPageStyle = R"(
:root{color-scheme:light dark;--page:#f3f5f7;--card:#ffffff;--text:#1f2328;--soft:#57606a;--line:#e1e5e9;--axis:#9aa4ae;
--accent:#0a66c2;--on:#ffffff;--muted:#b4bcc5;--mark:#cf222e;
--s0:#0a66c2;--s1:#d9730d;--s2:#1a7f37;--s3:#8250df;--s4:#0e8a8a;--s5:#bf3989;--s6:#7d4e00;--s7:#cf222e}
@media (prefers-color-scheme:dark){:root{--page:#04070b;--card:#0d1117;--text:#e6edf3;--soft:#9aa4ae;--line:#262d36;
--axis:#59636e;--accent:#58a6ff;--on:#04101f;--muted:#47515c;--mark:#ff7b72;
--s0:#58a6ff;--s1:#f0883e;--s2:#56d364;--s3:#bc8cff;--s4:#39c5cf;--s5:#ff7bbd;--s6:#d4a72c;--s7:#ff7b72}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);line-height:1.5;
font:15px/1.5 system-ui,-apple-system,"Segoe UI","Helvetica Neue",Helvetica,Arial,"DejaVu Sans",sans-serif}
header,main{max-width:1240px;margin:0 auto;padding:0 24px}
header{padding-top:32px}
h1{font-size:26px;line-height:1.25;margin:0;overflow-wrap:anywhere}
header p{max-width:none;margin:4px 0 0;color:var(--soft);overflow-wrap:anywhere}
section{margin:24px 0;padding:20px 24px;background:var(--card);border:1px solid var(--line);border-radius:10px}
h2{font-size:18px;margin:0 0 12px}
p{margin:8px 0;max-width:80ch}
a{color:var(--accent)}
.figures{display:flex;flex-wrap:wrap;gap:12px 40px;margin:0}
.figures dt{color:var(--soft);font-size:13px}
.figures dd{margin:0;font-size:24px;font-weight:600;font-variant-numeric:tabular-nums}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:24px}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:5px 18px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}
th{color:var(--soft);font-size:13px;font-weight:600;white-space:nowrap}
td{max-width:60ch;overflow-wrap:break-word}
.n{text-align:right;white-space:nowrap;overflow-wrap:normal}
tr.strong td{font-weight:600}
tr.faint td{color:var(--soft)}
pre{margin:8px 0;padding:12px 16px;background:var(--page);border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;
font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
summary{cursor:pointer;color:var(--accent)}
details>*:not(summary){margin-top:8px}
img{display:block;max-width:100%;height:auto}
figure{margin:0;min-width:0}
figcaption{font-weight:600}
figure>svg{display:block;width:100%;max-width:860px;height:auto}
figure.scrolls{overflow-x:auto}
.legend{display:flex;flex-wrap:wrap;gap:2px 18px;margin:2px 0 0;padding:0;list-style:none;color:var(--soft);font-size:13px}
.legend i{display:inline-block;width:18px;height:3px;margin-right:6px;vertical-align:middle;border-radius:2px;background:var(--c)}
.legend b{color:var(--text);font-variant-numeric:tabular-nums}
.c0{--c:var(--s0)}.c1{--c:var(--s1)}.c2{--c:var(--s2)}.c3{--c:var(--s3)}.c4{--c:var(--s4)}.c5{--c:var(--s5)}.c6{--c:var(--s6)}
.c7{--c:var(--s7)}.muted{--c:var(--muted)}
svg text{fill:var(--soft);font-size:12px}
svg .name{fill:var(--text);font-weight:600}
.gridline{stroke:var(--line)}.axis{stroke:var(--axis)}
.curve{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.curve.raw{stroke-width:1;stroke-opacity:.4}.curve.muted{stroke-width:1}
.dot{fill:var(--c);stroke:var(--card);stroke-width:1.5}
.mark{stroke:var(--mark);stroke-dasharray:3 3}svg .marklabel{fill:var(--mark);font-size:11px}
.hover g{opacity:0}.hover g:hover{opacity:1}.hover rect{fill:transparent}.hover line{stroke:var(--axis)}
.hover rect.box{fill:var(--card);stroke:var(--line)}.hover text{fill:var(--text)}.hover{pointer-events:all}
.member{fill:none;stroke:var(--accent);stroke-linejoin:round}.member.none{stroke:var(--muted);stroke-dasharray:3 3}
.members:hover .member{stroke-opacity:.12}.members .member:hover{stroke-opacity:1;stroke-width:4}
svg .halo{paint-order:stroke;stroke:var(--card);stroke-width:4px;stroke-linejoin:round}
.cell{fill:var(--accent)}.cell.none{fill:none;stroke:var(--muted);stroke-dasharray:3 3}
svg .incell{fill:var(--text)}svg .incell.on{fill:var(--on)}
footer{max-width:1240px;margin:0 auto;padding:0 24px 32px;color:var(--soft);font-size:13px}
@media (max-width:600px){header,main,footer{padding-left:12px;padding-right:12px}section{padding:14px}}
@media print{section{break-inside:avoid}}
)";

}  // namespace tessera::report
