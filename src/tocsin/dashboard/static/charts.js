/** Charts over time, drawn by plotly in the colours of the page. */

import { rateParts } from "./format.js";
import { token } from "./palette.js";

const CONFIG = { displayModeBar: false, responsive: true };

let revision = 0;

/** Round values from zero up to `highest`, five at most above zero, with their unit. */
export function rateTicks(highest) {
  const power = 10 ** Math.floor(Math.log10(highest / 5));
  const step = [1, 2, 5, 10].map((by) => Math.max(1, by * power)).find((by) => 5 * by >= highest);
  const tickvals = Array.from({ length: Math.floor(highest / step) + 1 }, (_, at) => at * step);
  return { tickvals, ticktext: tickvals.map(rateText) };
}

function rateText(value) {
  const [number, unit] = rateParts(value);
  return value ? `${number.replace(".0", "")} ${unit}` : "0";
}

/** The highest that is drawn: of each line, or of what lies on one another. */
export function highestOf(lines, isStacked) {
  if (!isStacked) return Math.max(0, ...lines.map(({ y }) => y.reduce((most, value) => Math.max(most, value ?? 0), 0)));
  return (lines[0]?.y ?? []).reduce((most, _, at) => Math.max(most, lines.reduce((sum, { y }) => sum + (y[at] ?? 0), 0)), 0);
}

function layout({ height, highest, ticks = {} }) {
  const ink = token("soft");
  const axis = { gridcolor: token("line"), zeroline: false, linecolor: token("line"), tickfont: { color: ink, size: 11 }, automargin: true, fixedrange: true };
  return {
    height,
    margin: { l: 48, r: 8, t: 6, b: 28 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, 'DejaVu Sans', sans-serif", color: ink, size: 11 },
    xaxis: { ...axis, type: "date", tickformat: "%H:%M:%S", nticks: 6, showgrid: false },
    yaxis: { ...axis, rangemode: "tozero", nticks: 5, range: [0, 1.05 * highest], ...ticks },
    hovermode: "x unified",
    hoverlabel: { bgcolor: token("surface"), bordercolor: token("line"), font: { color: token("ink"), size: 11 } },
    showlegend: false,
    uirevision: "same",
    datarevision: ++revision, // the columns are the same arrays, grown
  };
}

/** Where all lines have values, as [from, to): what is filled would reach over what nobody told. */
export function runsOf(lines) {
  const length = lines[0]?.y.length ?? 0;
  const isTold = Array.from({ length }, (_, at) => lines.every(({ y }) => y[at] !== null));
  const starts = isTold.flatMap((told, at) => (told && !isTold[at - 1] ? [at] : []));
  const ends = isTold.flatMap((told, at) => (told && !isTold[at + 1] ? [at + 1] : []));
  return starts.map((from, number) => [from, ends[number]]);
}

/** `lines` are {name, y, colour, dash, isArea}; they share `x`, dates; null in `y` is unknown. Returns when it is drawn. */
export function draw(target, x, lines, { unit = "", isStacked = false } = {}) {
  const isRate = unit === "B/s";
  const highest = highestOf(lines, isStacked) || (isRate ? 1_000 : 1);
  const traces = runsOf(lines).flatMap(([from, to]) => lines.map(({ name, y, colour, dash = "solid", isArea = false }) => ({
    x: x.slice(from, to), y: y.slice(from, to), name, type: "scatter", mode: "lines",
    line: { color: colour, width: isStacked ? 0.8 : 2, dash, shape: "linear" },
    stackgroup: isStacked ? `from ${from}` : undefined,
    fill: isArea ? "tozeroy" : undefined,
    fillcolor: isStacked ? colour + "cc" : isArea ? colour + "26" : undefined,
    hovertemplate: isRate ? "%{y:.3s}B/s" : `%{y:.3~f}${unit ? ` ${unit}` : ""}`,
  })));
  return window.Plotly.react(target, traces, layout({ height: target.clientHeight || 250, highest, ticks: isRate ? rateTicks(highest) : {} }), CONFIG);
}

/** Like `draw`, over plain numbers. */
export function drawPlain(target, lines, { xTitle = "", title = "", unit = "" } = {}) {
  const traces = lines.map(({ name, x, y, colour, dash = "solid" }) => ({
    x, y, name, type: "scatter", mode: "lines", line: { color: colour, width: 2, dash }, hovertemplate: `%{y:.3~s}${unit}`,
  }));
  const highest = highestOf(lines, false) || 1;
  const drawn = layout({ height: target.clientHeight || 280, highest, ticks: unit === "B/s" ? rateTicks(highest) : {} });
  drawn.xaxis = { ...drawn.xaxis, type: "linear", tickformat: "", title: { text: xTitle, font: { size: 11 } } };
  drawn.yaxis = { ...drawn.yaxis, title: { text: title, font: { size: 11 } } };
  drawn.showlegend = true;
  drawn.legend = { orientation: "h", y: 1.14, x: 0, font: { color: token("ink") } };
  drawn.margin.t = 34;
  return window.Plotly.react(target, traces, drawn, CONFIG);
}
