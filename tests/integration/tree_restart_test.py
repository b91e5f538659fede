"""Aggregators before servers that are killed and started again: with the log every mini-batch counts
once, with checkpoints none counts twice, and hardsync ends with the same weights."""
import unittest

import cluster
from durable_cluster import BATCH_EXAMPLES, DurableCluster, chance_of, counted

# Three workers in two groups, before two servers.
TREE = {"cluster.tree.fanout": 2}
AGGREGATORS = [(group, shard) for group in (0, 1) for shard in (0, 1)]


class TreeRestartTest(unittest.TestCase):
    def run_to_the_end(self, level, policy, disturb):
        """Lets `disturb(live)` disturb a run. Returns the last status, after a look at how often
        each shard has counted each mini-batch."""
        settings = {**TREE, "durability.level": level, "consistency.policy": policy}
        with cluster.scratch() as directory, \
                DurableCluster(directory, settings, aggregators=AGGREGATORS) as live:
            disturb(live)
            status = live.finish()
            for shard, count in zip(status["shards"], counted(status)):
                self.assertGreater(int(shard["composites"]), 0)
                if level == "synced":
                    self.assertEqual(int(shard["generation"]), 0)
                returned_alone = policy != "hardsync" and int(shard["generation"]) > 0
                if returned_alone:
                    self.assertLessEqual(count, live.batches)
                else:
                    self.assertEqual(count, live.batches)
                    self.assertEqual(int(shard["examples_applied"]), BATCH_EXAMPLES * live.batches)
            if level == "synced":
                for shard in (0, 1):
                    twice = {batch: pushes for batch, pushes in live.pushes_by_batch(shard).items()
                             if len(pushes) > 1}
                    self.assertEqual(twice, {}, f"shard {shard}")
        return status

    def run_with_kills(self, level, policy, aggregators):
        """Kills a server, and if `aggregators` is set an aggregator before and after, and starts
        each of them again. Returns the last status."""
        chance = chance_of(f"{level}, {policy}")
        shard = chance.choice((0, 1))

        def kill_aggregator(live):
            if aggregators:
                aggregator = chance.choice(AGGREGATORS)
                live.kill_aggregator(*aggregator)
                live.restart_aggregator(*aggregator)

        def disturb(live):
            live.wait_for_checkpoint(chance, shard)
            kill_aggregator(live)
            live.kill_server(shard)
            live.restart_server(shard)
            live.wait_for_batches(chance.randrange(live.batches // 2, live.batches * 2 // 3))
            kill_aggregator(live)

        return self.run_to_the_end(level, policy, disturb)

    def test_with_the_log_nothing_is_lost(self):
        for policy in ("softsync", "async"):
            with self.subTest(policy=policy):
                self.run_with_kills("synced", policy, aggregators=True)

    def test_with_checkpoints_nothing_counts_twice(self):
        for policy in ("softsync", "async"):
            with self.subTest(policy=policy):
                status = self.run_with_kills("checkpoint", policy, aggregators=True)
                self.assertEqual(sum(int(shard["generation"]) for shard in status["shards"]), 1)

    def test_hardsync_loses_nothing_whoever_was_killed(self):
        for level in ("synced", "checkpoint"):
            with self.subTest(level=level):
                self.run_with_kills(level, "hardsync", aggregators=True)

    def test_hardsync_ends_with_the_same_weights_as_without_kills_of_servers(self):
        undisturbed = self.run_to_the_end("checkpoint", "hardsync", lambda live: None)
        for level in ("synced", "checkpoint"):
            with self.subTest(level=level):
                status = self.run_with_kills(level, "hardsync", aggregators=False)
                self.assertEqual(status["weights_sha256"], undisturbed["weights_sha256"])


if __name__ == "__main__":
    unittest.main()
