// Numbers and times as people read them.

const NONE = "–";

function rounded(value: number, digits: number): string {
  return value.toLocaleString("en", {maximumSignificantDigits: digits, useGrouping: true});
}

/** "1,234", "12.3 thousand" as 12.3 k, "4.56 M". */
export function count(value: number): string {
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e4]] as const) {
    if (value >= size) return `${rounded(value / (size === 1e4 ? 1e3 : size), 3)} ${unit}`;
  }
  return value.toLocaleString("en", {maximumFractionDigits: value < 100 ? 2 : 0});
}

export function bytes(value: number): string {
  for (const [unit, power] of [["TiB", 4], ["GiB", 3], ["MiB", 2], ["KiB", 1]] as const) {
    if (value >= 1024 ** power) return `${rounded(value / 1024 ** power, 3)} ${unit}`;
  }
  return `${value} B`;
}

/** "850 µs", "31.2 ms", "4.2 s", "5m12s", "3h05m", "2d04h". */
export function duration(seconds: number): string {
  if (seconds <= 0) return "0 s";
  if (seconds < 1e-3) return `${rounded(seconds * 1e6, 3)} µs`;
  if (seconds < 1) return `${rounded(seconds * 1e3, 3)} ms`;
  if (seconds < 60) return `${rounded(seconds, 2)} s`;
  const pad = (value: number): string => String(Math.floor(value)).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${pad(seconds % 60)}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h${pad((seconds / 60) % 60)}m`;
  return `${Math.floor(seconds / 86400)}d${pad((seconds / 3600) % 24)}h`;
}

export function percent(share: number|null, digits = 1): string {
  return share === null ? NONE : `${(100 * share).toFixed(digits)} %`;
}

export function figure(value: number|null, digits = 4): string {
  return value === null ? NONE : rounded(value, digits);
}

/** "worker 3", "workers 1, 2 and 5"; of many, the first eight. */
export function members(kind: string, numbers: number[]): string {
  const shown = numbers.length > 9 ? numbers.slice(0, 8) : numbers;
  const more = numbers.length - shown.length;
  const words = [...shown.map(String), ...(more > 0 ? [`${more} more`] : [])];
  if (words.length === 1) return `${kind} ${words[0]}`;
  return `${kind}s ${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;
}

export function timeOfDay(milliseconds: number): string {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

export function policy(name: string, parameters: {key: string; value: number}[]): string {
  const told = parameters.map(({key, value}) => `${key} = ${value}`).join(", ");
  return told === "" ? name : `${name} (${told})`;
}
