"""python_test: the Python test NAME.py, each of its methods counted by itself."""

def python_test(name, data = [], **kwargs):
    native.sh_test(
        name = name,
        srcs = ["//tests/support:run_python_test.py"],
        args = ["$(location %s.py)" % name],
        data = data + [
            name + ".py",
            "//tests/support:programs.py",
        ],
        **kwargs
    )
