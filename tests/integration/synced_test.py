"""Under durability.level synced, whatever a server has acknowledged survives its end: servers are
killed at random moments, their disks fill up, and no mini-batch is lost or counts twice."""
import pathlib
import unittest

import cluster
import disks
import safetensors_reader
from durable_cluster import (BATCH_EXAMPLES, DurableCluster, chance_of, counted,
                             without_split_pushes)

SYNCED = {"durability.level": "synced"}
# The log has one segment, which begins with the initial weights.
ONE_SEGMENT = {**SYNCED, "durability.interval": "24h"}
SECTOR_BYTES = 512
DISK_BYTES = 256 << 20
# More than the files of a checkpoint have, and less than a log of a few pushes.
FILE_BYTES = 600_000
# The log is damaged, or cannot be written.
FILE_ERROR, LOG_NOT_WRITTEN = 74, 71


def flip_byte(path, place):
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0xFF]))


class SyncedTest(unittest.TestCase):
    def expect_nothing_lost(self, live, status):
        """Expects that each shard has counted each mini-batch once, in its first generation."""
        for shard, count in zip(status["shards"], counted(status)):
            self.assertEqual((int(shard["generation"]), int(shard["versions_lost"])), (0, 0))
            self.assertEqual(int(shard["examples_applied"]), BATCH_EXAMPLES * count)
        split = sum(int(worker["split_pushes"]) for worker in status["workers"])
        differences = [count - live.batches for count in counted(status)]
        self.assertEqual(without_split_pushes(differences, split), [0, 0])

    def expect_one_push_per_batch(self, live):
        for shard in (0, 1):
            twice = {batch: pushes for batch, pushes in live.pushes_by_batch(shard).items()
                     if len(pushes) > 1}
            self.assertEqual(twice, {}, f"shard {shard}")

    def run_to_the_end(self, policy, disturb):
        """Lets `disturb(live)` disturb a run. Returns the last status."""
        settings = {**SYNCED, "consistency.policy": policy}
        with cluster.scratch() as directory, DurableCluster(directory, settings) as live:
            disturb(live)
            status = live.finish()
            self.expect_nothing_lost(live, status)
            if policy != "backup":  # There, shards may take the same mini-batch from two workers.
                self.expect_one_push_per_batch(live)
        return status

    def run_with_kills(self, policy):
        """Kills each server once, at random moments. Returns the last status."""
        chance = chance_of(policy)

        def disturb(live):
            shards = chance.sample((0, 1), 2)
            moments = sorted(chance.sample(range(1, live.batches * 2 // 3), 2))
            for shard, batches in zip(shards, moments):
                live.wait_for_batches(batches)
                live.kill_server(shard)
                live.restart_server(shard)

        return self.run_to_the_end(policy, disturb)

    def test_nothing_is_lost_under_softsync(self):
        self.run_with_kills("softsync")

    def test_nothing_is_lost_under_async(self):
        self.run_with_kills("async")

    def test_nothing_is_lost_under_backup(self):
        self.run_with_kills("backup")

    def test_hardsync_ends_with_the_same_weights_as_without_kills(self):
        undisturbed = self.run_to_the_end("hardsync", lambda live: None)
        disturbed = self.run_with_kills("hardsync")
        self.assertEqual(disturbed["weights_sha256"], undisturbed["weights_sha256"])

    def test_nothing_is_lost_when_all_servers_are_killed_at_once(self):
        chance = chance_of("all servers")

        def disturb(live):
            live.wait_for_batches(chance.randrange(1, live.batches // 2))
            for shard in (0, 1):
                live.kill_server(shard)
            for shard in (0, 1):
                live.restart_server(shard)

        self.run_to_the_end("softsync", disturb)

    def test_a_server_that_is_drained_goes_on_later(self):
        chance = chance_of("drain")

        def disturb(live):
            live.wait_for_batches(chance.randrange(1, live.batches // 2))
            cluster.psctl("drain", "--coordinator", live.coordinator, "--server", "1")
            self.assertEqual(live.servers[1].wait(timeout=cluster.DEADLINE_S), 0)
            live.restart_server(1)

        self.run_to_the_end("softsync", disturb)

    def weights_of(self, live):
        output = live.directory / "pulled.safetensors"
        cluster.psctl("pull", str(output), "--coordinator", live.coordinator, "--force")
        return safetensors_reader.Model(output).values

    def test_a_server_that_is_killed_after_the_end_serves_its_weights_again(self):
        with cluster.scratch() as directory, DurableCluster(directory, SYNCED) as live:
            live.finish()
            weights = self.weights_of(live)
            live.kill_server(1)
            live.restart_server(1)
            self.assertEqual(self.weights_of(live), weights)

    def test_a_checkpoint_is_saved_on_demand(self):
        settings = {**ONE_SEGMENT, "consistency.policy": "softsync"}
        with cluster.scratch() as directory, DurableCluster(directory, settings) as live:
            live.wait_for_batches(1)
            cluster.psctl("checkpoint", "save", "--coordinator", live.coordinator)
            saved = [int(shard["checkpoint"]["version"]) for shard in live.status()["shards"]]
            live.finish()
        for version in saved:
            self.assertGreater(version, 0)

    def test_a_damaged_checkpoint_is_passed_over_for_an_older_one_and_a_longer_log(self):
        chance = chance_of("damaged checkpoint")

        def disturb(live):
            live.wait_for_checkpoint(chance, 1)
            live.kill_server(1)
            newest = max(live.state_directory(1).glob("checkpoint-0-*[0-9]"),
                         key=lambda path: int(path.name.rsplit("-", 1)[1]))
            weights = newest / "weights.safetensors"
            flip_byte(weights, chance.randrange(weights.stat().st_size))
            live.restart_server(1)

        self.run_to_the_end("softsync", disturb)

    def test_a_log_that_is_damaged_in_the_middle_is_refused_with_its_position(self):
        chance = chance_of("damaged log")
        with cluster.scratch() as directory, DurableCluster(directory, ONE_SEGMENT) as live:
            live.wait_for_batches(live.batches // 4)
            live.kill_server(1)
            segment = max(live.state_directory(1).glob("log-*"),
                          key=lambda path: path.stat().st_size)
            # The first byte of a sector is never padding. The last third may be of a batch that was
            # not complete.
            sectors = segment.stat().st_size * 2 // 3 // SECTOR_BYTES
            place = SECTOR_BYTES * chance.randrange(1, sectors)
            flip_byte(segment, place)

            self.assertEqual(live.code_of_start(1), FILE_ERROR, live.log_text("server-1"))

            said = live.log_text("server-1")
            self.assertIn(str(segment), said)
            self.assertRegex(said, r"damaged: bytes \d+ to \d+")

    def test_a_server_whose_disk_is_full_ends_and_goes_on_when_there_is_room(self):
        chance = chance_of("limited files")
        with cluster.scratch() as directory, DurableCluster(directory, ONE_SEGMENT) as live:
            live.wait_for_batches(chance.randrange(1, live.batches // 4))
            disks.limit_files(live.servers[1], FILE_BYTES)
            self.assertEqual(live.servers[1].wait(timeout=cluster.DEADLINE_S), LOG_NOT_WRITTEN,
                             live.log_text("server-1"))
            self.assertRegex(live.log_text("server-1"), "log-.*File too large")
            live.restart_server(1)
            self.expect_nothing_lost(live, live.finish())

    def test_a_full_file_system_ends_a_server_until_there_is_room(self):
        chance = chance_of("full disk")
        with cluster.scratch() as directory:
            reason = disks.SmallDisk.why_not(directory)
            if reason:
                self.skipTest(reason)
            with disks.SmallDisk(pathlib.Path(directory) / "disk", DISK_BYTES) as disk:
                self.fill_disk_of_one(directory, disk, chance)

    def fill_disk_of_one(self, directory, disk, chance):
        with DurableCluster(directory, SYNCED, directories={1: disk.directory}) as live:
            live.wait_for_batches(chance.randrange(1, live.batches // 2))
            disk.fill_until(lambda: live.servers[1].poll() is not None, "server 1 to end")
            self.assertEqual(live.servers[1].returncode, LOG_NOT_WRITTEN, live.log_text("server-1"))
            self.assertIn("No space left on device", live.log_text("server-1"))
            self.assertEqual(live.code_of_start(1), LOG_NOT_WRITTEN, live.log_text("server-1"))
            disk.make_room()
            live.restart_server(1)
            self.expect_nothing_lost(live, live.finish())


if __name__ == "__main__":
    unittest.main()
