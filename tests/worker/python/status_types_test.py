"""The types of `slipstream.status`: they are those of the messages, and JSON becomes values of them."""
import dataclasses
import json
import math
import pathlib
import sys
import unittest

sys.path[:0] = ["worker/python"]

import make_status_types
from slipstream import _status, status_types


class StatusTypesTest(unittest.TestCase):
    def test_the_types_are_those_of_the_messages(self):
        self.assertEqual(make_status_types.TARGET.read_text(encoding="utf-8"),
                         make_status_types.status_types(pathlib.Path.cwd()),
                         "run worker/python/make_status_types.py")

    def test_every_field_is_converted_to_its_type(self):
        found = _status.status_of(json.dumps({
            "run": "00000000075bcd15", "phase": "TRAINING", "updates": 2**64 - 1, "seconds": 3,
            "train_accuracy": None, "train_loss": None, "plaintext_accepted": True,
            "refusals": {"STALE": 2**60}, "policy_parameters": [{"key": "n", "value": 1.5}],
            "missing": {"servers": [{"shard": 1, "address": "ps-1:7070"}], "workers": [3, 4]},
            "shards": [{"guard": {"bound": 7}}], "clock_ms": -5}))
        self.assertEqual(dataclasses.replace(found, train_loss=0.0), status_types.RunStatus(
            run="00000000075bcd15", phase="TRAINING", updates=2**64 - 1, seconds=3.0, train_accuracy=None,
            plaintext_accepted=True, refusals={"STALE": 2**60},
            policy_parameters=(status_types.PolicyParameter("n", 1.5),),
            missing=status_types.MissingMembers(
                servers=(status_types.MissingMembers.Server(1, "ps-1:7070"),), workers=(3, 4)),
            shards=(status_types.ShardStatus(guard=status_types.GuardStatus(bound=7)),), clock_ms=-5))
        self.assertTrue(math.isnan(found.train_loss))
        self.assertIs(type(found.seconds), float)

    def test_a_server_of_another_version_is_understood(self):
        found = _status.status_of(json.dumps(
            {"name": "demo", "of_tomorrow": {"a": 1}, "phase": 99, "workers": [{"worker": 2, "new": []}]}))
        self.assertEqual(found, status_types.RunStatus(
            name="demo", phase="99", workers=(status_types.WorkerStatus(worker=2),)))
        self.assertEqual((found.updates, found.train_accuracy, found.shards, found.refusals),
                         (0, None, (), {}))
        self.assertEqual(found.staleness, status_types.StalenessStatus())

    def test_a_status_cannot_be_changed(self):
        with self.assertRaises(dataclasses.FrozenInstanceError):
            status_types.RunStatus().updates = 3


if __name__ == "__main__":
    unittest.main()
