#!/usr/bin/python3
"""Writes dashboard.json, a Grafana board for one run: what an operator looks at, then who trains.

    deploy/monitoring/make_dashboard.py            writes the file
    deploy/monitoring/make_dashboard.py --print    prints what the file should hold

A test compares the file with this, and asks a Prometheus that scrapes a run each of its queries.
"""
import argparse
import json
import pathlib

TARGET = pathlib.Path(__file__).with_name("dashboard.json")
SOURCE = {"type": "prometheus", "uid": "$source"}
RUN = '{run="$run", run_id="$run_id"}'  # Stands for <run> in the queries.
WIDTH, HEIGHT = 24, 7

# Each row: its title, and its panels: title, unit, and queries with the legends of their series.
ROWS = [
    ("Is it well?", [
        ("Phase", "short", [('slipstream_run_phase<run> == 1', "{{phase}}")]),
        ("Missing members", "short", [('slipstream_run_missing_members<run>', "{{role}}")]),
        ("Workers by state", "short", [('sum by (state) (slipstream_worker_state<run>)', "{{state}}")]),
        ("Round open", "s", [('slipstream_round_open_seconds<run>', "shard {{shard}}")]),
        ("Checkpoint age", "s", [('slipstream_checkpoint_age_seconds<run>', "shard {{shard}}")]),
        ("Log sync, 99 %", "s", [(
            'histogram_quantile(0.99, sum by (shard, le) (rate(slipstream_log_sync_seconds_bucket<run>[1m])))',
            "shard {{shard}}")]),
        ("Memory", "bytes", [('process_resident_memory_bytes<run>', "{{instance}} takes"),
                             ('slipstream_memory_limit_bytes<run>', "{{instance}} may take")]),
        ("Processors in use", "short", [('rate(process_cpu_seconds_total<run>[1m])', "{{instance}}")]),
        ("Values on the network", "Bps", [
            ('rate(slipstream_received_bytes_total<run>[1m])', "shard {{shard}} receives"),
            ('rate(slipstream_sent_bytes_total<run>[1m])', "shard {{shard}} sends")]),
        ("Pushes waiting", "bytes", [('slipstream_queued_bytes<run>', "shard {{shard}}")]),
        ("Push handling, 99 %", "s", [(
            'histogram_quantile(0.99, sum by (shard, le) '
            '(rate(slipstream_push_handling_seconds_bucket<run>[1m])))', "shard {{shard}}")]),
        ("Log lines by level", "short", [('rate(slipstream_log_lines_total<run>[1m])',
                                          "{{instance}} {{level}}")]),
    ]),
    ("Does it learn?", [
        ("Train loss", "short", [('slipstream_run_train_loss<run>', "train loss"),
                                 ('slipstream_run_test_loss<run>', "test loss")]),
        ("Test accuracy", "percentunit", [('slipstream_run_test_accuracy_ratio<run>', "accuracy")]),
        ("Examples", "short", [('rate(slipstream_run_examples_total<run>[1m])', "examples/s")]),
        ("Progress", "percentunit", [('slipstream_run_batches_done<run> / slipstream_run_batches<run>',
                                      "mini-batches done")]),
        ("Staleness, mean", "short", [
            ('rate(slipstream_staleness_sum<run>[1m]) / rate(slipstream_staleness_count<run>[1m])',
             "shard {{shard}}")]),
        ("Staleness, percentiles", "short", [
            ('histogram_quantile(%s, sum by (le) (rate(slipstream_staleness_bucket<run>[1m])))' % share,
             f"{percent} %") for share, percent in ((0.5, 50), (0.9, 90), (0.99, 99))]),
        ("What became of pushes", "short", [
            ('sum by (outcome) (rate(slipstream_push_outcomes_total<run>[1m]))', "{{outcome}}")]),
        ("Learning rate", "short", [
            ('slipstream_run_learning_rate<run>', "before the schedule"),
            ('slipstream_run_effective_learning_rate<run>', "with staleness scaling")]),
        ("Step of each worker", "s", [('slipstream_worker_step_seconds<run>', "worker {{worker}}")]),
        ("Computing, share of time", "percentunit", [
            ('slipstream_worker_compute_share_ratio<run>', "worker {{worker}}")]),
        ("Round, median", "s", [(
            'histogram_quantile(0.5, sum by (shard, le) '
            '(rate(slipstream_round_duration_seconds_bucket<run>[1m])))', "shard {{shard}}")]),
        ("Version skew", "short", [('slipstream_run_version_skew<run>', "versions")]),
    ]),
]

# What is drawn over all panels: name, colour, and a query that is above 0 when it happens.
ANNOTATIONS = [
    ("Policy changed", "blue", 'changes(slipstream_run_stage<run>[30s]) > 0'),
    ("Worker lost", "red", 'increase(slipstream_worker_losses_total<run>[30s]) > 0'),
    ("Process started", "orange", 'time() - process_start_time_seconds<run> < 30'),
    ("Checkpoint", "green", 'resets(slipstream_checkpoint_age_seconds<run>[30s]) > 0'),
]


def with_run(query):
    return query.replace("<run>", RUN)


def variable(name, query, label):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "refresh": 2, "sort": 2,
            "query": {"query": query, "refId": name}, "definition": query}


def panel(number, title, unit, queries, place):
    column, line = place
    return {"id": number, "title": title, "type": "timeseries", "datasource": SOURCE,
            "gridPos": {"x": column, "y": line, "w": WIDTH // 4, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "targets": [{"refId": chr(ord("A") + place), "expr": with_run(query), "legendFormat": legend,
                         "datasource": SOURCE} for place, (query, legend) in enumerate(queries)]}


def dashboard():
    panels, line, number = [], 0, 0
    for title, row in ROWS:
        number += 1
        panels.append({"id": number, "title": title, "type": "row", "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": line, "w": WIDTH, "h": 1}})
        line += 1
        for place, (name, unit, queries) in enumerate(row):
            number += 1
            at = (place % 4 * (WIDTH // 4), line + place // 4 * HEIGHT)
            panels.append(panel(number, name, unit, queries, at))
        line += (len(row) + 3) // 4 * HEIGHT
    return {
        "title": "Slipstream: a run", "uid": "slipstream-run", "schemaVersion": 38, "version": 1,
        "description": "deploy/monitoring/make_dashboard.py wrote this file.",
        "tags": ["slipstream"], "refresh": "5s", "time": {"from": "now-30m", "to": "now"},
        "templating": {"list": [
            {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
            variable("run", "label_values(slipstream_run_info, run)", "Run"),
            variable("run_id", 'label_values(slipstream_run_info{run="$run"}, run_id)', "Number"),
        ]},
        "annotations": {"list": [
            {"name": name, "enable": True, "iconColor": colour, "datasource": SOURCE, "step": "10s",
             "expr": with_run(query), "titleFormat": name} for name, colour, query in ANNOTATIONS]},
        "panels": panels,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--print", action="store_true", help="print, and write nothing")
    text = json.dumps(dashboard(), indent=1) + "\n"
    if parser.parse_args().print:
        print(text, end="")
    else:
        TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
