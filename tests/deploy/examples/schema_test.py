"""An independent validator checks the schema of run.yaml: correct files pass, wrong ones do not."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

try:
    import jsonschema
    import yaml
except ImportError:
    jsonschema = None

sys.path.append(str(pathlib.Path(__file__).absolute().parents[2] / "support"))
from programs import DEADLINE_S, program, scratch

EXAMPLES = pathlib.Path("deploy/examples")
SCHEMA = EXAMPLES / "run.schema.json"
RENEW = f"bazel-bin/deploy/psctl/psctl config schema >{SCHEMA}"
MODELINE = f"# yaml-language-server: $schema={SCHEMA.name}"

# Each text differs from MINIMAL in one error.
MINIMAL = "model: {preset: lenet5}\n"
WRONG = {
    "an unknown key": MINIMAL + "seeed: 1",
    "an unknown key of a section": MINIMAL + "training: {batchsize: 3}",
    "a version from the future": MINIMAL + "version: 2",
    "a count in words": MINIMAL + "training: {epochs: three}",
    "a count that is too low": MINIMAL + "training: {epochs: 0}",
    "a number that is too high": MINIMAL + "optimizer: {momentum: 1.0}",
    "a number at an excluded bound": MINIMAL + "optimizer: {learning_rate: 0}",
    "an unknown choice": MINIMAL + "consistency: {policy: sometimes}",
    "a time without a unit": MINIMAL + "cluster: {lease: 5}",
    "a time with a wrong unit": MINIMAL + "cluster: {lease: 5sec}",
    "bytes with a wrong unit": MINIMAL + "wire: {chunk_bytes: 1MB}",
    "bytes that do not divide": MINIMAL + "wire: {chunk_bytes: 5000}",
    "a name with a blank": MINIMAL + "name: my run",
    "no servers": MINIMAL + "cluster: {servers: []}",
    "a section that is a list": MINIMAL + "training: [1]",
    "no model": "seed: 1",
    "an empty model": "model: {}",
    "a preset and layers": "model: {preset: mlp, input: [1, 28, 28], layers: [flatten]}",
    "layers without an input": "model: {layers: [flatten]}",
    "an unknown layer": "model: {input: [1, 28, 28], layers: [flaten]}",
    "a layer without what it needs": "model: {input: [1, 28, 28], layers: [dense]}",
    "a layer with an unknown setting": "model: {input: [1, 28, 28], layers: [relu: {slope: 1}]}",
    "a key of another policy": MINIMAL + "consistency: {policy: async, n: 2}",
    "a key of another rule": MINIMAL + "optimizer: {kind: sgd, momentum: 0.5}",
    "a key of another schedule by default": MINIMAL + "optimizer: {schedule: {factor: 0.5}}",
    "a path of generated data": MINIMAL + "data: {path: somewhere}",
    "a header that is a number": MINIMAL + "data: {format: csv, path: tables, header: 1}",
    "a worker made faster": MINIMAL + "testing: {workers: [{slower: 0.5}]}",
    "a worker with an unknown setting": MINIMAL + "testing: {workers: [{slow: 2}]}",
    "tensors without an option": MINIMAL + "optimizer: {per_tensor: [{match: 0.bias}]}",
    "options of no tensors": MINIMAL + "optimizer: {per_tensor: [{weight_decay: 0}]}",
    "tensors with an unknown option": MINIMAL + "optimizer: {per_tensor: [{match: 0.bias, "
                                                "weight_decay: 0, momentum: 0}]}",
    "a worker that is a number": MINIMAL + "testing: {workers: [4]}",
}
RIGHT = {
    "the least": MINIMAL,
    "a key of the default choice": MINIMAL + "consistency: {n: 1}",
    "a key of the choice made": MINIMAL + "optimizer: {schedule: {kind: step, at_epochs: [1, 2.5]}}",
    "layers of every form": "model: {input: [1, 28, 28], layers: [conv2d: {channels: 6, kernel: 5},"
                            " max_pool, average_pool: {stride: 1}, dropout: {rate: 0.5}, relu: ,"
                            " lrn, lrn: {region: across, size: 5}, conv2d: {channels: 6, kernel: 1, init_normal: 0.01},"
                            " flatten, dense: {units: 10}]}",
    "a table with a header": MINIMAL + "data: {format: csv, path: tables, header: true}",
    "a table that tells": MINIMAL + "data: {format: csv, path: tables, header: auto}",
    "times and bytes": MINIMAL + "cluster: {lease: 1.5m}\nwire: {chunk_bytes: 64KiB, "
                                 "push_bytes_max: 0}",
    "a name of digits": MINIMAL + "name: 2024",
    "options of tensors": MINIMAL + "optimizer: {per_tensor: [{match: '*.bias', weight_decay: 0}, "
                                    "{match: 0.weight, learning_rate_factor: 0}]}",
    "uneven workers": MINIMAL + "testing: {workers: [{}, {delay: 20ms}, {slower: 4}, ]}",
}


# Numbers and truth in all the forms of YAML 1.2.
FORMS = MINIMAL + """
seed: 0x1F
training: {epochs: 0o17, batch_size: +8, max_seconds: 1.}
optimizer:
  kind: momentum
  learning_rate: 3.e-4
  momentum: .9
  weight_decay: +1e-4
data: {train_examples: 2000}
cluster: {lease: .5m}
wire: {chunk_bytes: 1.5MiB}
worker: {algorithm: local_sgd, steps_by_speed: False}
"""


def core_loader():
    """Returns a loader with the core schema of YAML 1.2, which editors follow; PyYAML's is that of 1.1."""
    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}
    whole = "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|True|TRUE|false|False|FALSE)$"), None)
    Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("^(null|Null|NULL|~|)$"), None)
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(f"^({whole})$"), None)
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(
        r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)$"), None)
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value, 0))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))
    return Loader


def psctl(*arguments):
    return subprocess.run([program("deploy/psctl/psctl"), *arguments], text=True, timeout=DEADLINE_S,
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class SchemaFileTest(unittest.TestCase):
    def test_the_committed_schema_is_that_of_the_parser(self):
        generated = psctl("config", "schema").stdout
        self.assertTrue(SCHEMA.read_text() == generated,
                        f"keys of run.yaml have changed; renew the schema: {RENEW}")

    def test_every_example_names_the_schema_for_editors(self):
        examples = sorted(EXAMPLES.glob("*.yaml"))
        self.assertGreaterEqual(len(examples), 4)
        for example in examples:
            self.assertEqual(example.read_text().splitlines()[0], MODELINE, example)


@unittest.skipIf(jsonschema is None,
                 "python3-jsonschema or python3-yaml is not installed: deploy/setup.sh --dev")
class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(SCHEMA.read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(schema)

    def errors(self, text):
        return [error.message for error in self.validator.iter_errors(yaml.safe_load(text))]

    def accepted_by_psctl(self, text):
        with scratch() as directory:
            path = pathlib.Path(directory) / "run.yaml"
            path.write_text(text)
            return psctl("validate", str(path)).returncode == 0

    def test_takes_every_example(self):
        for example in sorted(EXAMPLES.glob("*.yaml")):
            self.assertEqual(self.errors(example.read_text()), [], example)

    def test_takes_what_psctl_writes_itself(self):
        self.assertEqual(self.errors(psctl("config", "init", "-").stdout), [])
        shown = psctl("config", "show", str(EXAMPLES / "quickstart.yaml"))
        self.assertEqual(self.errors(shown.stdout), [])

    def test_refuses_wrong_files_as_the_parser_does(self):
        for what, text in WRONG.items():
            with self.subTest(what):
                self.assertFalse(self.accepted_by_psctl(text))
                self.assertNotEqual(self.errors(text), [])

    def test_takes_every_form_of_a_number_as_the_parser_does(self):
        self.assertEqual([error.message for error in
                          self.validator.iter_errors(yaml.load(FORMS, core_loader()))], [])
        self.assertTrue(self.accepted_by_psctl(FORMS))

    def test_takes_right_files_as_the_parser_does(self):
        for what, text in RIGHT.items():
            with self.subTest(what):
                self.assertEqual(self.errors(text), [])


if __name__ == "__main__":
    unittest.main()
