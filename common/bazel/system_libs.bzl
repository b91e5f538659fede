"""Exposes libraries installed on the system as Bazel repositories, without network access.

    system_library(name = "grpc", modules = ["grpc++"], tools = ["grpc_cpp_plugin"])

makes @grpc (a cc_library) and @grpc//:grpc_cpp_plugin (an executable) available. A library that
ships no .pc file is named by a header that must exist and its linker options:

    system_library(name = "dnnl", headers = ["oneapi/dnnl/dnnl.hpp"], linkopts = ["-ldnnl"])
"""

_INCLUDE_ROOTS = ["/usr/include", "/usr/local/include"]

def _flags(ctx, modules, option):
    if not modules:
        return []
    result = ctx.execute(["pkg-config", option] + modules)
    if result.return_code != 0:
        fail("pkg-config %s %s: %sdeploy/setup.sh installs what the build needs" %
             (option, " ".join(modules), result.stderr))
    seen = {}
    for flag in result.stdout.split(" "):
        if flag.strip():
            seen[flag.strip()] = True
    return seen.keys()

def _link_includes(ctx):
    """Makes the folders with headers that are not on the compiler's own path part of the repository."""
    names = []
    for flag in _flags(ctx, ctx.attr.include_modules, "--cflags-only-I"):
        names.append("include%d" % len(names))
        ctx.symlink(flag[len("-I"):], names[-1])
    return names

def _require_header(ctx, header):
    for root in _INCLUDE_ROOTS:
        if ctx.path(root + "/" + header).exists:
            return
    fail("%s is in none of %s: deploy/setup.sh installs what the build needs" % (header, _INCLUDE_ROOTS))

def _system_library_impl(ctx):
    for tool in ctx.attr.tools:
        path = ctx.which(tool)
        if not path:
            fail("%s is not on PATH: deploy/setup.sh installs what the build needs" % tool)
        ctx.symlink(path, tool)
    for header in ctx.attr.headers:
        _require_header(ctx, header)
    defines = [f[2:] for f in _flags(ctx, ctx.attr.modules, "--cflags-only-other") if f.startswith("-D")]
    includes = _link_includes(ctx)
    ctx.file("BUILD", """
package(default_visibility = ["//visibility:public"])
exports_files({tools})
cc_library(name = "{name}", defines = {defines}, linkopts = {linkopts}, includes = {includes},
           hdrs = glob([include + "/**" for include in {includes}]))
{extra}
""".format(
        name = ctx.attr.library or ctx.name,
        extra = ctx.attr.build,
        tools = repr(ctx.attr.tools),
        defines = repr(defines),
        includes = repr(includes),
        linkopts = repr(_flags(ctx, ctx.attr.modules, "--libs") + ctx.attr.linkopts),
    ))

system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "modules": attr.string_list(doc = "pkg-config module names"),
        "include_modules": attr.string_list(
            doc = "pkg-config modules of which only the folders of headers are used",
        ),
        "headers": attr.string_list(doc = "headers that must exist, for a library without a .pc file"),
        "linkopts": attr.string_list(doc = "further linker options"),
        "library": attr.string(doc = "cc_library name, if not the repository's"),
        "build": attr.string(doc = "further BUILD targets of the repository"),
        "tools": attr.string_list(doc = "executables of the same package"),
    },
    local = True,
)
