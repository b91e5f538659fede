"""link_only passes its deps to the linker, but not their headers to the compiler.

A library that depends on others through link_only is compiled the same whatever those are. A select() in
its deps therefore does not make Bazel compile everything that depends on them a second time.
"""

def _link_only_impl(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    return [CcInfo(linking_context = merged.linking_context)]

link_only = rule(
    implementation = _link_only_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
