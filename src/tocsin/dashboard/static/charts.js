/** Charts over time, drawn by plotly in the colours of the page. */

import { token } from "./palette.js";

const CONFIG = { displayModeBar: false, responsive: true };

let revision = 0;

function layout({ unit, height, top = null }) {
  const ink = token("soft");
  const axis = { gridcolor: token("line"), zeroline: false, linecolor: token("line"), tickfont: { color: ink, size: 11 }, automargin: true, fixedrange: true };
  return {
    height,
    margin: { l: 48, r: 8, t: 6, b: 28 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, 'DejaVu Sans', sans-serif", color: ink, size: 11 },
    xaxis: { ...axis, type: "date", tickformat: "%H:%M:%S", nticks: 6, showgrid: false },
    yaxis: { ...axis, rangemode: "tozero", tickformat: unit === "B/s" ? "~s" : "", nticks: 5, range: top ? [0, top] : undefined },
    hovermode: "x unified",
    hoverlabel: { bgcolor: token("surface"), bordercolor: token("line"), font: { color: token("ink"), size: 11 } },
    showlegend: false,
    uirevision: "same",
    datarevision: ++revision, // the columns are the same arrays, grown
  };
}

/** `lines` are {name, y, colour, dash, isArea}; they share `x`, dates; null in `y` is unknown. Returns when it is drawn. */
export function draw(target, x, lines, { unit = "", isStacked = false } = {}) {
  const isFlat = lines.every(({ y }) => y.every((value) => !value));
  const top = isFlat ? (unit === "B/s" ? 1_000 : 1) : null;
  const traces = lines.map(({ name, y, colour, dash = "solid", isArea = false }) => ({
    x, y, name, type: "scatter", mode: "lines",
    line: { color: colour, width: isStacked ? 0.8 : 2, dash, shape: "linear" },
    stackgroup: isStacked ? "one" : undefined,
    stackgaps: isStacked ? "interpolate" : undefined, // over what nobody told
    fill: isArea ? "tozeroy" : undefined,
    fillcolor: isStacked ? colour + "cc" : isArea ? colour + "26" : undefined,
    hovertemplate: unit === "B/s" ? "%{y:.3s}B/s" : `%{y:.3~f}${unit ? ` ${unit}` : ""}`,
  }));
  return window.Plotly.react(target, traces, layout({ unit, height: target.clientHeight || 250, top }), CONFIG);
}

/** Like `draw`, over plain numbers. */
export function drawPlain(target, lines, { xTitle = "", title = "", unit = "" } = {}) {
  const traces = lines.map(({ name, x, y, colour, dash = "solid" }) => ({
    x, y, name, type: "scatter", mode: "lines", line: { color: colour, width: 2, dash }, hovertemplate: `%{y:.3~s}${unit}`,
  }));
  const drawn = layout({ unit, height: target.clientHeight || 280 });
  drawn.xaxis = { ...drawn.xaxis, type: "linear", tickformat: "", title: { text: xTitle, font: { size: 11 } } };
  drawn.yaxis = { ...drawn.yaxis, title: { text: title, font: { size: 11 } } };
  drawn.showlegend = true;
  drawn.legend = { orientation: "h", y: 1.14, x: 0, font: { color: token("ink") } };
  drawn.margin.t = 34;
  return window.Plotly.react(target, traces, drawn, CONFIG);
}
