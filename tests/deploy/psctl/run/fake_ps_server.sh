#!/bin/bash
# Stands in for ps_server: runs the command in FAKE_SERVER_<shard>, and otherwise serves until it is
# stopped.
while [[ $# -gt 0 ]]; do
  case "$1" in
    --shard) shard="$2" ;;
    --port-file) port_file="$2" ;;
  esac
  shift
done

serve() {
  if [[ $shard == 0 ]]; then exec "$FAKE_COORDINATOR" "$port_file" "$FAKE_DIR/finished"; fi
  exec tail -f /dev/null
}

echo $$ >"$FAKE_DIR/server-$shard.pid"
action="FAKE_SERVER_$shard"
eval "${!action:-serve}"
