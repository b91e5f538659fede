// The page of a run: shows each status that comes over /status/stream.

import {Charts} from "./charts";
import {byId, setText, setTone} from "./dom";
import {RunHistory} from "./history";
import type {Alarm, Status} from "./status";
import {Summary} from "./summary";
import {Tables} from "./tables";
import {Timeline} from "./timeline";

const SILENCE_MAX_MS = 5000;
const SILENT = "The coordinator's server does not answer. What is shown is old.";

function start(): void {
  const history = new RunHistory();
  const summary = new Summary();
  const charts = new Charts(byId("charts"));
  const timeline = new Timeline();
  const tables = new Tables();
  const connection = byId("connection");
  let alarms: Alarm[] = [];
  let status: Status|null = null;
  let came = performance.now();

  const show = (): void => {
    if (status === null || document.hidden) return;
    summary.show(status, alarms, history);
    charts.show(status, history);
    timeline.show(status.workers);
    tables.show(status);
  };
  const say = (text: string, isFine: boolean): void => {
    setText(connection, text);
    setTone(connection, isFine ? "good" : "alarm");
  };

  // A browser connects again by itself, but not after an answer such as 503.
  const listen = (): void => {
    const stream = new EventSource("status/stream");
    stream.addEventListener("alarms", (event: MessageEvent<string>) => {
      alarms = JSON.parse(event.data) as Alarm[];
    });
    stream.onmessage = (event: MessageEvent<string>) => {
      status = JSON.parse(event.data) as Status;
      came = performance.now();
      history.add(status);
      say("live", true);
      show();
    };
    stream.onerror = () => {
      say(SILENT, false);
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, SILENCE_MAX_MS);
    };
  };
  listen();
  setInterval(() => {
    const silent = performance.now() - came;
    if (silent > SILENCE_MAX_MS) say(SILENT, false);
  }, SILENCE_MAX_MS);
  document.addEventListener("visibilitychange", show);
}

start();
