#!/bin/bash
# Stands for ps_worker: does what FAKE_WORKER_<id> says, else works until it is stopped.
while [[ $# -gt 0 ]]; do
  if [[ $1 == --worker ]]; then worker="$2"; fi
  shift
done

echo $$ >"$FAKE_DIR/worker-$worker.pid"
action="FAKE_WORKER_$worker"
eval "${!action:-exec tail -f /dev/null}"
