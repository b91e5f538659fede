// What each worker did in its last steps: a row for computing and waiting, and one below it for
// what went over the network.

import {byId, children, make, setText} from "./dom";
import type {Step, Worker} from "./status";
import {duration, percent} from "./text";

const NAMESPACE = "http://www.w3.org/2000/svg";
const KINDS = ["compute", "wait", "push", "pull"] as const;
const WORKERS_MAX = 64;
const WIDTH = 1000;
const HEIGHT = 20;

type Kind = (typeof KINDS)[number];
type Span = {
  kind: Kind; begin: number; end: number
};

function spansOf(steps: Step[]): Span[] {
  const spans: Span[] = [];
  steps.forEach((step, i) => {
    const computes = step.forward_begin + step.waited_seconds;
    spans.push({kind: "wait", begin: step.forward_begin, end: computes});
    spans.push({kind: "compute", begin: computes, end: step.backward_end});
    const next = steps[i + 1];
    if (next !== undefined && next.step === step.step + 1 &&
        next.forward_begin > step.backward_end) {
      spans.push({kind: "wait", begin: step.backward_end, end: next.forward_begin});
    }
    for (const lane of step.lanes) {
      if (lane.push_begin > 0)
        spans.push({kind: "push", begin: lane.push_begin, end: lane.push_end});
      if (lane.pull_begin > 0)
        spans.push({kind: "pull", begin: lane.pull_begin, end: lane.pull_end});
    }
  });
  return spans;
}

/** Returns the rectangles of one kind as a path. */
function path(spans: Span[], kind: Kind, begin: number, scale: number): string {
  const isAbove = kind === "compute" || kind === "wait";
  const [top, height] = isAbove ? [0, HEIGHT * 0.55] : [HEIGHT * 0.62, HEIGHT * 0.38];
  return spans.filter((span) => span.kind === kind && span.end > span.begin)
      .map((span) => {
        const left = Math.max(0, (span.begin - begin) * scale);
        const width = Math.max(1, (span.end - begin) * scale - left);
        return `M${left.toFixed(1)} ${top}h${width.toFixed(1)}v${height}h${(-width).toFixed(1)}z`;
      })
      .join("");
}

function makeRow(): HTMLElement {
  const row = make("div", {class: "lane"});
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  for (const kind of KINDS) {
    const shape = document.createElementNS(NAMESPACE, "path");
    shape.setAttribute("class", kind);
    svg.append(shape);
  }
  row.append(make("span"), svg);
  return row;
}

export class Timeline {
  private readonly rows = make("div", {class: "lanes"});
  private readonly told = make("p", {class: "note"});

  constructor() {
    const legend = make("p", {class: "legend"});
    const words: [Kind, string][] = [
      ["compute", "computes"],
      ["wait", "waits"],
      ["push", "pushes"],
      ["pull", "pulls"],
    ];
    for (const [kind, word] of words) {
      const item = make("span", {}, word);
      item.prepend(make("i", {class: kind}));
      legend.append(item);
    }
    byId("timeline").append(legend, this.rows, this.told);
  }

  show(workers: Worker[]): void {
    const live = workers.filter((one) => one.state === "live" && one.recent_steps.length > 0);
    const shown = live.slice(0, WORKERS_MAX);
    const all = shown.map((one) => spansOf(one.recent_steps));
    const ends = all.map((spans) => Math.max(...spans.map((span) => span.end)));
    const lengths =
        all.map((spans, i) => (ends[i] ?? 0) - Math.min(...spans.map((span) => span.begin)));
    const length = Math.max(1e-6, ...lengths);
    const scale = WIDTH / length;
    const more = live.length - shown.length;
    const rows = children(this.rows, shown.length, makeRow);
    rows.forEach((row, i) => {
      const [worker, spans] = [shown[i], all[i]];
      const [name, svg] = Array.from(row.children);
      if (worker === undefined || spans === undefined || name === undefined || svg === undefined)
        return;
      setText(name, `worker ${worker.worker}`);
      const begin = (ends[i] ?? 0) - length;
      KINDS.forEach(
          (kind, k) => svg.children[k]?.setAttribute("d", path(spans, kind, begin, scale)));
      const share = (kind: Kind): number =>
          spans.filter((span) => span.kind === kind)
              .reduce((sum, span) => sum + span.end - span.begin, 0);
      const whole = Math.max(1e-9, share("compute") + share("wait"));
      svg.setAttribute(
          "aria-label",
          `worker ${worker.worker} computes ${percent(share("compute") / whole, 0)} and waits ` +
              `${percent(share("wait") / whole, 0)} of ${duration(lengths[i] ?? 0)}`,
      );
    });
    setText(
        this.told,
        shown.length === 0
            ? "No live worker has reported a step yet."
            : `The width is ${
                  duration(length)}. Each row ends with its worker's last step that was ` +
                `reported, by the worker's own clock.${
                    more > 0 ? ` ${more} more are not drawn.` : ""}`,
    );
  }
}
