"""cc_library, cc_binary and cc_test for sources that may be compiled together.

Three quarters of the time that a source takes to compile go into the headers that it includes. So
the rules here take, beside `srcs`, an attribute `together`: lists of sources, each of which becomes
one generated source that is compiled once. With --config=separate every source is compiled by itself.

Which sources go together is decided by tests/checks/together.py, and tests/tidy.py --fix writes the
lists. Where the compiler says that a name is defined in two sources, that command parts them.
"""

# All headers come first, so that none of them meets a name that one of the sources has for itself.
# clang_tidy.py does the same by headers_first() of tests/checks/together.py. The compiler is told by
# #line where each piece comes from: so its messages, __FILE__ and a debugger name the file that people
# edit.
_AS_ONE = """
{
  grep -h '^#include' $(SRCS) | awk '!seen[$$0]++'
  for source in $(SRCS); do
    echo "#line 1 \\"$$source\\""
    cat $$source
  done
} > $@
"""

def _as_one(name, number, sources):
    """Makes one source of several. Returns its name."""
    made = "together/%s_%d%s" % (name, number, "_test.cc" if sources[0].endswith("_test.cc") else ".cc")
    native.genrule(
        name = "%s_together_%d" % (name, number),
        srcs = sources,
        outs = [made],
        cmd = _AS_ONE,
        tags = ["manual"],
    )
    return made

def _sources(name, srcs, together):
    if not together:
        return srcs
    made = [_as_one(name, i + 1, together[i]) for i in range(len(together))]
    native.filegroup(name = name + "_together", srcs = made)
    return srcs + select({
        "//common/bazel:separate": [source for sources in together for source in sources],
        "//conditions:default": made,
    })

def together_cc_library(name, srcs = [], together = [], **kwargs):
    native.cc_library(name = name, srcs = _sources(name, srcs, together), **kwargs)

def together_cc_binary(name, srcs = [], together = [], **kwargs):
    native.cc_binary(name = name, srcs = _sources(name, srcs, together), **kwargs)

def together_cc_test(name, srcs = [], together = [], **kwargs):
    native.cc_test(name = name, srcs = _sources(name, srcs, together), **kwargs)
