import type {Status} from "./status";

export interface Point {
  seconds: number;  // Of training.
  epoch: number;
  loss: number|null;
  accuracy: number|null;
  rate: number;
  staleness: number;
}

type Moment = {
  seconds: number; examples: number
};

const POINTS_MAX = 1200;
const RECENT = 11;

/** Epochs with the part of the present one that is done. */
export function epochOf(status: Status): number {
  const share = status.batches_total > 0 ? status.batches_done / status.batches_total : 0;
  return status.epochs_total > 0 ? share * status.epochs_total : status.epochs;
}

/** What came since the page was opened. Of more than POINTS_MAX points every other one goes. */
export class RunHistory {
  points: Point[] = [];
  private run = "";
  private spacing = 0;
  private before: Moment|null = null;      // Of the last point.
  private readonly recent: Moment[] = [];  // Of the last statuses.

  add(status: Status): void {
    const last = this.points[this.points.length - 1];
    if (status.run !== this.run || (last !== undefined && status.seconds < last.seconds)) {
      this.points = [];  // Another run, or one that went on from a checkpoint.
      this.before = null;
      this.recent.length = 0;
      this.run = status.run;
      this.spacing = 0;
    }
    const now = {seconds: status.seconds, examples: status.examples};
    this.recent.push(now);
    if (this.recent.length > RECENT) this.recent.shift();
    const passed = this.before === null ? 0 : status.seconds - this.before.seconds;
    if (this.before !== null && passed < Math.max(this.spacing, 0.2)) return;
    const done = this.before === null ? 0 : status.examples - this.before.examples;
    this.before = now;
    if (status.seconds <= 0) return;
    this.points.push({
      seconds: status.seconds,
      epoch: epochOf(status),
      loss: status.train_loss,
      accuracy: status.train_accuracy,
      rate: passed > 0 ? Math.max(0, done / passed) : status.examples_per_second,
      staleness: status.staleness.window_mean,
    });
    if (this.points.length <= POINTS_MAX) return;
    this.points = this.points.filter((_, i) => i % 2 === 0);
    this.spacing = Math.max(2 * this.spacing, 1.5);
  }

  /** How many examples a second lately, over about ten seconds; null if that is not known yet. */
  rate(): number|null {
    const [first, last] = [this.recent[0], this.recent[this.recent.length - 1]];
    if (first === undefined || last === undefined || last.seconds <= first.seconds) return null;
    return Math.max(0, last.examples - first.examples) / (last.seconds - first.seconds);
  }
}
