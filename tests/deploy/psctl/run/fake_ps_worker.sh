#!/bin/bash
# Stands in for ps_worker: runs the command in FAKE_WORKER_<id>, and otherwise works until it is
# stopped.
while [[ $# -gt 0 ]]; do
  if [[ $1 == --worker ]]; then worker="$2"; fi
  shift
done

echo $$ >"$FAKE_DIR/worker-$worker.pid"
action="FAKE_WORKER_$worker"
eval "${!action:-exec tail -f /dev/null}"
