"""What operators do to a run without meaning to: they restart a server at the wrong moment or after a
reboot, put an older copy of its files in place, or name directories that cannot be written."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

import cluster
from durable_cluster import CONFIG, DurableCluster

SYNCED = {"durability.level": "synced", "durability.interval": "300ms"}
FILE_ERROR = 74
PLAIN = {"cluster.workers": 2, "data.train_examples": 640, "evaluation.every_epochs": 0}


def wait_for_log(live, name, text):
    cluster.wait_until(lambda: text in live.log_text(name), f"{name} never said: {text}")


class InitializationTest(unittest.TestCase):
    def run_hardsync(self, disturb):
        settings = {**PLAIN, "consistency.policy": "hardsync", "cluster.workers": 3}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=0) as live:
            disturb(live)
            status = live.wait_finished()
            codes = [worker.wait(timeout=cluster.DEADLINE_S) for worker in live.workers.values()]
            self.assertEqual(codes, [0, 0, 0], live.log_texts())
        return status["weights_sha256"]

    def test_a_server_restarted_while_weights_are_initialised_costs_no_worker_and_no_bit(self):
        def start(live):
            for worker in range(3):
                live.start_worker(worker)

        def disturb(live):
            wait_for_log(live, "server-0", "WAITING_FOR_WORKERS")  # It has heard both servers.
            live.servers[1].send_signal(signal.SIGSTOP)  # So that it takes no weights.
            start(live)
            wait_for_log(live, "server-0", "initialization granted")
            live.kill_server(1)
            live.restart_server(1)

        self.assertEqual(self.run_hardsync(disturb), self.run_hardsync(start))


class MovedServerTest(unittest.TestCase):
    def test_running_workers_go_on_with_a_server_that_comes_back_at_another_address(self):
        with cluster.scratch() as directory, DurableCluster(directory, {}) as live:
            port_file = live.directory / "server-1.port"
            before = port_file.read_text().strip()
            live.wait_for_batches(60)
            live.kill_server(1)
            live.restart_server(1, listen=live.listen)
            after = port_file.read_text().strip()

            live.finish()

            self.assertNotEqual(before, after)
            moved = f"server moved shard=1 from={before} to={after}"
            for name in ("server-0", *(f"worker-{worker}" for worker in live.workers)):
                self.assertEqual(live.log_text(name).count(moved), 1, live.log_texts())


class LogTest(unittest.TestCase):
    def test_a_log_that_nobody_reads_stops_neither_training_nor_the_signal_to_end(self):
        settings = {**PLAIN, "cluster.workers": 1, "training.epochs": 100_000}
        read_end, log = os.pipe()
        os.set_blocking(log, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(log, bytes(4096))
        os.set_blocking(log, True)
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=0) as live:
            worker = subprocess.Popen([cluster.program("worker/ps_worker"), "--coordinator",
                                       live.coordinator], stderr=log)
            try:
                live.wait_for(lambda status: int(status["pushes"]) > 100, "training")
                worker.send_signal(signal.SIGTERM)
                self.assertEqual(worker.wait(timeout=cluster.DEADLINE_S), 128 + signal.SIGTERM)
            finally:
                worker.kill()
                worker.wait()
        os.close(read_end)
        os.close(log)


class SavingTest(unittest.TestCase):
    def run_with(self, *directories, settings=None):
        """Runs with one worker for each directory. Returns the last status, the exit codes of both
        servers, and the log of server 0."""
        settings = {**PLAIN, "run.after": "exit", **(settings or {})}
        with cluster.scratch() as scratch, \
                cluster.Cluster(CONFIG, settings, scratch, workers=0) as live:
            for worker, directory in enumerate(directories):
                place = ["--save-dir", str(directory)] if directory else []
                live.start_worker(worker, ["--worker", str(worker), *place])
            codes = [server.wait(timeout=cluster.DEADLINE_S) for server in live.servers]
            return codes, live.log_text("server-0")

    def test_another_worker_saves_if_one_cannot_or_was_told_no_place(self):
        for other in ("/proc/nowhere", None):
            for order in (0, 1):
                with self.subTest(other=other, order=order), cluster.scratch() as directory:
                    places = [other, directory] if order == 0 else [directory, other]
                    codes, log = self.run_with(*places)
                    self.assertEqual(codes, [0, 0], log)
                    self.assertTrue((pathlib.Path(directory) / "model.safetensors").exists(), log)

    def test_a_run_in_which_nobody_can_save_fails_at_its_start(self):
        codes, log = self.run_with("/proc/nowhere", "/proc/nowhere")
        self.assertEqual(codes, [cluster.RUN_FAILED] * 2, log)
        self.assertIn("no worker can save the trained weights: worker ", log)

    def test_weights_that_nobody_could_save_in_the_end_are_not_passed_over(self):
        with cluster.scratch() as directory:
            place = pathlib.Path(directory) / "models"
            settings = {"testing.push_delay_max": "20ms", "data.train_examples": 3200}
            with cluster.Cluster(CONFIG, {**PLAIN, **settings, "run.after": "exit"}, directory,
                                 workers=0) as live:
                for worker in (0, 1):
                    live.start_worker(worker, ["--worker", str(worker), "--save-dir", str(place)])
                for worker in (0, 1):  # Both have tried the directory by then.
                    wait_for_log(live, f"worker-{worker}", "reaching shard")
                shutil.rmtree(place)
                place.write_text("no directory any more")
                self.assertEqual(live.servers[0].wait(timeout=cluster.DEADLINE_S), FILE_ERROR)
                log = live.log_text("server-0")
        self.assertIn("its trained weights were not saved: cannot make ", log)
        self.assertEqual(log.count("warning weights not saved"), 2, "each has tried")

    def test_a_model_of_another_run_is_replaced_only_if_that_is_allowed(self):
        with cluster.scratch() as directory:
            self.assertEqual(self.run_with(directory, directory)[0], [0, 0])
            path = pathlib.Path(directory) / "model.safetensors"
            before = path.read_bytes()
            codes, log = self.run_with(directory, directory)
            self.assertEqual(codes, [cluster.RUN_FAILED] * 2)
            self.assertIn("is the model of another run, small: move it", log)
            self.assertEqual(path.read_bytes(), before)
            codes, log = self.run_with(directory, directory, settings={"model.overwrite": "true"})
            self.assertEqual(codes, [0, 0], log)
            self.assertNotEqual(path.read_bytes(), before)


class MemoryTest(unittest.TestCase):
    def test_a_worker_without_memory_for_its_model_says_so_before_it_trains(self):
        settings = {"cluster.workers": 1, "model.preset": "alexnet", "training.batch_size": 65536,
                    "data.train_examples": 100, "data.test_examples": 100}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=1) as live:
            code = live.workers[0].wait(timeout=cluster.DEADLINE_S)
            log = live.log_text("worker-0")
        self.assertEqual(code, 75, log)
        self.assertRegex(log, r"no memory for the model: this worker needs about [0-9.]+ GiB .*, and "
                              r"[0-9.]+ .iB are free beside the data")


class LastCheckpointTest(unittest.TestCase):
    def expect_file_error(self, end):
        """Takes the directory away from server 1 while the run trains. Expects that the server says so
        and ends with 74, once `end` has brought it to its end."""
        settings = {"consistency.policy": "async", "durability.interval": "1h", "run.after": "exit",
                    "log.push_log": ""}
        with cluster.scratch() as directory, DurableCluster(directory, settings) as live:
            live.wait_for_batches(20)
            place = live.state_directory(1)
            shutil.rmtree(place)
            place.write_text("no directory any more")
            end(live)
            code = live.servers[1].wait(timeout=cluster.DEADLINE_S)
            log = live.log_text("server-1")
        self.assertEqual(code, FILE_ERROR, log)
        self.assertIn(f"the last checkpoint is not in {place}, and the older ones stay: ", log)

    def test_a_server_whose_last_checkpoint_fails_at_the_end_of_the_run_says_so(self):
        self.expect_file_error(lambda live: None)

    def test_a_server_that_is_stopped_and_cannot_save_says_so(self):
        self.expect_file_error(lambda live: live.servers[1].terminate())


class RebootTest(unittest.TestCase):
    def test_a_run_that_has_finished_stays_so_where_it_is_to_be_made_once(self):
        settings = {"durability.once": "true", "run.after": "exit", "data.train_examples": 640}
        with cluster.scratch() as directory:
            with DurableCluster(directory, settings) as live:
                first = [server.wait(timeout=cluster.DEADLINE_S) for server in live.servers]
            for port_file in pathlib.Path(directory).glob("*.port"):
                port_file.unlink()
            with DurableCluster(directory, settings) as live:
                again = [process.wait(timeout=cluster.DEADLINE_S)
                         for process in (*live.servers, *live.workers.values())]
                log = live.log_text("server-0")
        self.assertEqual(first, [0, 0])
        self.assertEqual(again, [0] * 5, log)
        self.assertIn("the run has finished and stays so", log)
        self.assertEqual(log.count("phase=TRAINING"), 2, "the change and the orders, of one run")


class RollbackTest(unittest.TestCase):
    def test_an_older_copy_of_a_shard_is_refused_and_taken_if_that_is_asked_for(self):
        with cluster.scratch() as directory:
            place = pathlib.Path(directory) / "shard 1"
            with DurableCluster(directory, SYNCED, {1: place}) as live:
                live.wait_for_batches(20)
                live.kill_server(1)
                copy = pathlib.Path(directory) / "copy"
                shutil.copytree(place, copy)
                live.restart_server(1)
                live.wait_for_batches(100)
                live.kill_server(1)
                shutil.rmtree(place)
                shutil.copytree(copy, place)

                code = live.code_of_start(1)

                self.assertEqual(code, FILE_ERROR, live.log_texts())
                self.assertIn("the directory of shard 1 is an older copy", live.log_text("server-1"))

    def test_an_older_state_of_the_coordinator_is_refused(self):
        with cluster.scratch() as directory, DurableCluster(directory, SYNCED) as live:
            state = live.settings["durability.directory"] / "coordinator.state"
            live.wait_for_batches(10)
            older = state.read_bytes()
            live.kill_worker(2)
            live.start_worker(2)
            live.wait_for_batches(60)
            live.kill_server(0)
            newest = state.read_bytes()
            state.write_bytes(older)

            self.assertEqual(live.code_of_start(0), FILE_ERROR, live.log_texts())
            self.assertIn("coordinator.state is an older copy", live.log_text("server-0"))

            state.write_bytes(newest)
            live.start_server(0, (live.directory / "server-0.port").read_text().strip())
            live.servers.insert(0, live.servers.pop())
            live.wait_finished()


if __name__ == "__main__":
    unittest.main()
