"""A run starts from the checkpoints of another one, and the log of a run leads to its checkpoints."""
import json
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
THREE_SERVERS = "localhost:7070,localhost:7071,localhost:7072"
SETTINGS = {"consistency.policy": "hardsync", "cluster.workers": 1, "evaluation.every_epochs": 0}
# Steps of this rate are lost in the rounding, so a run ends with the weights that it began with.
STANDING_STILL = {"optimizer.learning_rate": "1e-30", "training.max_steps": 3}


class StartFromTest(unittest.TestCase):
    def train(self, directory, settings=None):
        """Runs two servers that save checkpoints. Returns the summary and the checkpoints' place."""
        checkpoints = pathlib.Path(directory) / "checkpoints"
        summary = cluster.run(CONFIG, {**SETTINGS, "durability.level": "checkpoint",
                                       "durability.interval": "200ms",
                                       "durability.directory": checkpoints, **(settings or {})},
                              run_dir=pathlib.Path(directory) / "first")
        return summary, checkpoints

    def start_from(self, checkpoints, run_dir, settings):
        return cluster.run(CONFIG, {**SETTINGS, "training.start_from.checkpoint": checkpoints,
                                    **settings}, run_dir=run_dir)

    def test_any_number_of_servers_begins_with_the_weights(self):
        with cluster.scratch() as directory:
            first, checkpoints = self.train(directory)
            for servers in ("localhost:7070", THREE_SERVERS):
                with self.subTest(servers=servers):
                    run_dir = pathlib.Path(directory) / f"of-{servers.count(',') + 1}"
                    same = self.start_from(checkpoints, run_dir,
                                           {**STANDING_STILL, "cluster.servers": servers})
                    self.assertEqual(same["weights_sha256"], first["weights_sha256"])
                    logs = "".join(path.read_text() for path in run_dir.rglob("server-0*.log"))
                    self.assertIn("starting from a checkpoint", logs)

    def test_a_set_that_was_cut_anew_has_the_same_weights(self):
        with cluster.scratch() as directory:
            first, checkpoints = self.train(directory)
            cut = pathlib.Path(directory) / "cut"
            cluster.psctl("checkpoint", "reshard", str(checkpoints), "--servers", "3", "--output",
                          str(cut))
            cluster.psctl("checkpoint", "verify", str(cut))
            same = self.start_from(cut, pathlib.Path(directory) / "second",
                                   {**STANDING_STILL, "cluster.servers": THREE_SERVERS})
            self.assertEqual(same["weights_sha256"], first["weights_sha256"])

    def test_training_goes_on_where_the_other_run_has_ended(self):
        with cluster.scratch() as directory:
            first, checkpoints = self.train(directory)
            second = self.start_from(checkpoints, pathlib.Path(directory) / "second", {})
            self.assertGreater(second["test_accuracy"], first["test_accuracy"] - 0.02)
            self.assertLess(second["test_loss"], first["test_loss"] + 0.02)

    def test_another_model_is_refused_by_name(self):
        with cluster.scratch() as directory:
            _, checkpoints = self.train(directory)
            arguments = cluster.overrides({**SETTINGS, "model.preset": "lenet5",
                                           "training.start_from.checkpoint": checkpoints})
            done = cluster.psctl("run", str(CONFIG), *arguments, "--run-dir",
                                 str(pathlib.Path(directory) / "second"), check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("the checkpoint is of another model: ", done.stdout + done.stderr)

    def test_the_log_of_a_run_leads_from_checkpoint_to_checkpoint(self):
        with cluster.scratch() as directory:
            _, checkpoints = self.train(directory, {"durability.level": "synced",
                                                    "testing.push_delay_max": "20ms"})
            done = cluster.psctl("checkpoint", "verify", str(checkpoints), "--replay")
            lines = [line for line in done.stdout.splitlines() if " -> " in line]
            listed = json.loads(cluster.psctl("checkpoint", "ls", str(checkpoints), "-o",
                                              "json").stdout)
            self.assertEqual(len(lines), len(listed), done.stdout)
            self.assertEqual(sum(" -> the end of the log: " in line for line in lines), 2)
            for line in lines:
                self.assertRegex(line, r", (equal|up to version \d+)$")


if __name__ == "__main__":
    unittest.main()
