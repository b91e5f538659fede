"""psctl completion: bash completes with its script, fish too where it is installed; zsh parses its own."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).absolute().parents[3] / "support"))
from programs import DEADLINE_S, program, scratch

# Calls the function that bash calls at the Tab key, with the words as bash splits them, and prints
# the completions offered.
DRIVER = r"""
source "$1"; shift
complete -p psctl >/dev/null || exit 9
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_psctl "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\n' "${COMPREPLY[@]}"
"""


def run(*command, **options):
    return subprocess.run(command, text=True, timeout=DEADLINE_S, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options).stdout


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = scratch()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.scripts = {}
        for shell in ("bash", "zsh", "fish"):
            cls.scripts[shell] = cls.folder / f"psctl.{shell}"
            cls.scripts[shell].write_text(run(program("deploy/psctl/psctl"), "completion", shell))
        cls.files = cls.folder / "files"
        (cls.files / "runs").mkdir(parents=True)
        (cls.files / "run.yaml").touch()

    def complete(self, *words):
        """Returns the completions that bash offers for `psctl WORDS…` while the last word is being
        typed."""
        return run("bash", "--norc", "-u", "-c", DRIVER, "driver", str(self.scripts["bash"]),
                   program("deploy/psctl/psctl"), *words, cwd=self.files).splitlines()

    def test_completes_commands(self):
        self.assertEqual(set(self.complete("")),
                         {"run", "node", "slurm", "validate", "config", "evaluate", "compare", "plot", "plan", "lab", "status", "events",
                          "stop", "drain", "policy", "set", "pull", "certs", "checkpoint", "doctor", "completion"})
        self.assertEqual(self.complete("sta"), ["status"])
        self.assertEqual(set(self.complete("config", "")), {"init", "show", "schema"})
        self.assertEqual(set(self.complete("certs", "")), {"init", "show", "renew"})
        self.assertEqual(set(self.complete("checkpoint", "")),
                         {"ls", "verify", "inspect", "export", "reshard", "save"})
        self.assertEqual(self.complete("policy", ""), ["set"])
        self.assertEqual(set(self.complete("completion", "")), {"bash", "zsh", "fish"})

    def test_completes_the_options_of_the_command(self):
        self.assertEqual(set(self.complete("status", "--")),
                         {"--help", "--coordinator", "--ca", "--certificate", "--key", "--token",
                          "--output", "--watch", "--interval", "--wait"})
        self.assertIn("--push-log", self.complete("run", "run.yaml", "--set", "seed", "=", "3", "--p"))
        self.assertEqual(self.complete("config", "init", "--f"), ["--force"])

    def test_completes_files_and_directories(self):
        self.assertEqual(set(self.complete("run", "")), {"run.yaml", "runs"})
        self.assertEqual(self.complete("run", "--run-dir", ""), ["runs"])
        self.assertEqual(self.complete("compare", ""), ["runs"])
        self.assertEqual(set(self.complete("plot", "runs", "--output", "")), {"run.yaml", "runs"})
        self.assertEqual(self.complete("validate", "run.y"), ["run.yaml"])

    def test_completes_choices_of_options(self):
        self.assertEqual(set(self.complete("run", "-o", "")), {"table", "json", "yaml"})
        self.assertEqual(self.complete("status", "--output", "=", "j"), ["json"])
        self.assertEqual(self.complete("status", "--coordinator", ""), [])

    def test_completes_settings_and_their_choices(self):
        self.assertIn("training.epochs=", self.complete("run", "run.yaml", "--set", "training."))
        self.assertEqual(self.complete("validate", "--set", "optimizer.moment"),
                         ["optimizer.momentum=", "optimizer.momentum_every="])
        self.assertIn("softsync", self.complete("run", "--set", "consistency.policy", "="))
        self.assertEqual(self.complete("run", "--set", "consistency.policy", "=", "hards"),
                         ["hardsync"])
        self.assertEqual(self.complete("run", "--set", "training.epochs", "=", ""), [])

    def test_the_scripts_of_other_shells_parse(self):
        for shell in ("zsh", "fish"):
            with self.subTest(shell):
                if shutil.which(shell) is None:
                    self.skipTest(f"{shell} is not installed")
                run(shell, "--no-execute" if shell == "fish" else "-n", str(self.scripts[shell]))

    def test_fish_completes(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed")
        script = f"source {self.scripts['fish']}; complete -C "
        folder = pathlib.Path(program("deploy/psctl/psctl")).parent
        home = {**os.environ, "HOME": str(self.folder), "PATH": f"{folder}:{os.environ['PATH']}"}

        def complete(line):
            answer = run("fish", "--no-config", "-c", script + f"'{line}'", env=home)
            return {offer.split("\t")[0] for offer in answer.splitlines()}

        self.assertIn("status", complete("psctl "))
        self.assertEqual(complete("psctl config "), {"init", "show", "schema"})
        self.assertIn("--watch", complete("psctl status --"))
        self.assertIn("consistency.policy=", complete("psctl run --set consistency.p"))
        self.assertIn("consistency.policy=async", complete("psctl run --set consistency.policy=as"))


if __name__ == "__main__":
    unittest.main()
