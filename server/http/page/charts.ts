// The charts over time and the histogram, drawn by Chart.js. Each has its figures as a text, too.

import {Chart, type ChartConfiguration} from "chart.js";
import * as library from "chart.js";
import {make, setText} from "./dom";
import {epochOf, type RunHistory} from "./history";
import type {Status} from "./status";
import {count, duration, figure, percent} from "./text";

Chart.register(
    library.BarController, library.BarElement, library.CategoryScale, library.Legend,
    library.LinearScale, library.LineController, library.LineElement, library.PointElement,
    library.Tooltip);
Chart.defaults.animation = false;
Chart.defaults.maintainAspectRatio = false;
Chart.defaults.interaction = {
  mode: "nearest",
  axis: "x",
  intersect: false,
  includeInvisible: false
};

type Spot = {
  x: number; y: number
};
type AnyChart = Chart<"line"|"bar", (Spot|number)[], string>;
type Configuration = ChartConfiguration<"line"|"bar", (Spot|number)[], string>;
type Dataset = Configuration["data"]["datasets"][number];

const BUCKETS_MAX = 40;

function spots<T>(items: T[], x: (item: T) => number, y: (item: T) => number | null): Spot[] {
  return items.flatMap((item) => {
    const value = y(item);
    return value === null ? [] : [{x: x(item), y: value}];
  });
}

function line(label: string, hasPoints = false): Dataset {
  return {
    type: "line",
    label,
    data: [],
    borderWidth: 2,
    clip: 4,
    pointRadius: hasPoints ? 3 : 0,
    pointHitRadius: 8,
    borderDash: hasPoints ? [5, 3] : [],
  };
}

/** A chart with its heading, and its text below. */
class Figure {
  readonly chart: AnyChart;
  private readonly canvas = make("canvas", {role: "img"});
  private readonly told = make("p", {class: "told"});

  constructor(
      parent: HTMLElement,
      private readonly title: string,
      private readonly colors: string[],
      configuration: Configuration,
  ) {
    const figure = make("figure");
    const frame = make("div", {class: "frame"});
    frame.append(this.canvas);
    figure.append(make("h3", {}, title), frame, this.told);
    parent.append(figure);
    this.chart = new Chart(this.canvas, configuration);
  }

  tell(text: string): void {
    setText(this.told, text);
    this.canvas.setAttribute("aria-label", `${this.title}: ${text}`);
  }

  /** Takes the colours of the theme. */
  paint(): void {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    this.chart.data.datasets.forEach((dataset, i) => {
      dataset.borderColor = color(this.colors[i] ?? "--ink");
      dataset.backgroundColor = dataset.borderColor;
    });
    for (const scale of Object.values(this.chart.options.scales ?? {})) {
      if (scale === undefined) continue;
      scale.grid = {...scale.grid, color: color("--line"), borderColor: color("--line")};
      scale.ticks = {...scale.ticks, color: color("--quiet")};
      if ("title" in scale) scale.title = {...scale.title, color: color("--quiet")};
    }
    const plugins = this.chart.options.plugins;
    if (plugins?.legend?.labels !== undefined) plugins.legend.labels.color = color("--ink");
    this.chart.update();
  }
}

/** Lines over the axis that `over` names. `written` makes the texts of both axes' values. */
function lines(
    datasets: Dataset[],
    over: string,
    written: {x: (value: number) => string; y: (value: number) => string},
    y: {min?: number; max?: number} = {},
    ): Configuration {
  return {
    type: "line",
    data: {datasets},
    options: {
      parsing: false,
      scales: {
        x: {
          type: "linear",
          title: {display: true, text: over, padding: 0},
          ticks: {
            maxTicksLimit: 6,
            maxRotation: 0,
            includeBounds: false,
            callback: (value) => written.x(Number(value))
          },
        },
        y: {
          type: "linear",
          ...y,
          ticks: {maxTicksLimit: 5, callback: (value) => written.y(Number(value))},
        },
      },
      plugins: {
        legend: {display: datasets.length > 1, labels: {boxWidth: 18, boxHeight: 2}},
        tooltip: {
          callbacks: {
            title: (items) => `${over} ${written.x(items[0]?.parsed.x ?? 0)}`,
            label: (item) => `${item.dataset.label ?? ""}: ${written.y(item.parsed.y)}`,
          },
        },
      },
    },
  };
}

function histogram(): Configuration {
  return {
    type: "bar",
    data: {
      labels: [],
      datasets: [
        {type: "bar", label: "share of gradients", data: [], yAxisID: "y", order: 2},
        {...line("at most this stale", true), yAxisID: "y", order: 1},
      ],
    },
    options: {
      scales: {
        x: {
          type: "category",
          title: {display: true, text: "staleness σ", padding: 0},
          ticks: {maxRotation: 0, autoSkip: true},
          grid: {display: false},
        },
        y: {
          type: "linear",
          min: 0,
          max: 1,
          ticks: {maxTicksLimit: 5, callback: (value) => percent(Number(value), 0)},
        },
      },
      plugins: {
        legend: {display: true, labels: {boxWidth: 18, boxHeight: 2}},
        tooltip: {
          callbacks: {
            title: (items) => `staleness ${items[0]?.label ?? ""}`,
            label: (item) => `${item.dataset.label ?? ""}: ${percent(item.parsed.y)}`,
          },
        },
      },
    },
  };
}

export class Charts {
  private readonly loss: Figure;
  private readonly accuracy: Figure;
  private readonly rate: Figure;
  private readonly staleness: Figure;
  private readonly shares: Figure;

  constructor(parent: HTMLElement) {
    const epoch = (value: number): string => figure(value, 4);
    const both = ["--first", "--second"];
    this.loss = new Figure(
        parent,
        "Loss",
        both,
        lines(
            [line("training"), line("test", true)], "epoch",
            {x: epoch, y: (value) => figure(value, 3)}),
    );
    this.accuracy = new Figure(
        parent,
        "Accuracy",
        both,
        lines(
            [line("training"), line("test", true)], "epoch",
            {x: epoch, y: (value) => percent(value, 0)}),
    );
    this.rate = new Figure(
        parent,
        "Examples per second",
        ["--third"],
        lines([line("examples per second")], "time of training", {x: duration, y: count}, {min: 0}),
    );
    this.staleness = new Figure(
        parent,
        "Mean staleness ⟨σ⟩ of the last 100 updates",
        ["--fourth"],
        lines(
            [line("⟨σ⟩")], "time of training", {x: duration, y: (value) => figure(value, 3)},
            {min: 0}),
    );
    this.shares =
        new Figure(parent, "Staleness σ of all gradients", ["--fourth", "--first"], histogram());
    this.paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  show(status: Status, history: RunHistory): void {
    const points = history.points;
    const evaluations = status.evaluations;
    const measured = (one: (typeof evaluations)[number]): number =>
        one.epochs_measured || one.epoch;
    this.draw(this.loss, [
      spots(points, (point) => point.epoch, (point) => point.loss),
      spots(evaluations, measured, (one) => one.test_loss),
    ]);
    this.draw(this.accuracy, [
      spots(points, (point) => point.epoch, (point) => point.accuracy),
      spots(evaluations, measured, (one) => one.test_accuracy),
    ]);
    this.draw(this.rate, [spots(points, (point) => point.seconds, (point) => point.rate)]);
    this.draw(
        this.staleness, [spots(points, (point) => point.seconds, (point) => point.staleness)]);
    this.showShares(status);

    const last = evaluations[evaluations.length - 1];
    const at = `at epoch ${figure(epochOf(status), 4)}`;
    const loss = `${figure(status.train_loss)} in training ${at}`;
    const accuracy = `${percent(status.train_accuracy)} in training ${at}`;
    this.loss.tell(
        last === undefined ? `${loss}; not tested yet.`
                           : `${loss}, ${figure(last.test_loss)} in the last test.`);
    this.accuracy.tell(
        last === undefined ? `${accuracy}; not tested yet.`
                           : `${accuracy}, ${percent(last.test_accuracy)} in the last test.`);
    const rates = points.map((point) => point.rate);
    const now = history.rate();
    this.rate.tell(
        now === null || rates.length === 0
            ? `${count(status.examples_per_second)} on average since training began.`
            : `${count(now)} lately; from ${count(Math.min(...rates))} to ${
                  count(Math.max(...rates))} here.`,
    );
    const {mean, window_mean: lately} = status.staleness;
    this.staleness.tell(`${figure(lately, 3)} lately, ${figure(mean, 3)} over the whole run.`);
  }

  private draw(figure: Figure, data: Spot[][]): void {
    data.forEach((spots, i) => {
      const dataset = figure.chart.data.datasets[i];
      if (dataset !== undefined) dataset.data = spots;
    });
    const xs = data.flat().map((spot) => spot.x);
    const x = figure.chart.options.scales?.x;
    if (x !== undefined && xs.length > 0) {
      x.min = Math.min(...xs);
      x.max = Math.max(...xs);
    }
    figure.chart.update();
  }

  private showShares(status: Status): void {
    const {count: all, histogram: counts, cdf, p50, p99, max} = status.staleness;
    // Of a long tail, the last bar has the rest.
    const shown = Math.min(counts.length, BUCKETS_MAX);
    const shares = counts.slice(0, shown).map((one) => (all > 0 ? one / all : 0));
    const upTo = cdf.slice(0, shown);
    if (shown < counts.length) {
      shares[shown - 1] = 1 - (upTo[shown - 2] ?? 0);
      upTo[shown - 1] = 1;
    }
    const chart = this.shares.chart;
    chart.data.labels =
        shares.map((_, i) => (i === shown - 1 && shown < counts.length ? `≥ ${i}` : `${i}`));
    const [bars, sums] = chart.data.datasets;
    if (bars !== undefined) bars.data = shares;
    if (sums !== undefined) sums.data = upTo;
    chart.update();
    this.shares.tell(
        `half of ${count(all)} gradients at most ${p50}, 99 % at most ${p99}, the most ${max}; ` +
            `${percent(shares[0] ?? null)} not stale at all.`,
    );
  }

  private paint(): void {
    for (const one of [this.loss, this.accuracy, this.rate, this.staleness, this.shares])
      one.paint();
  }
}
