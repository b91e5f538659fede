"""link_only: what its deps give to the linker, without their headers.

A library that reaches others through it is compiled the same whatever they are: so a select() in its
deps makes no second set of objects of all that depends on them.
"""

def _link_only_impl(ctx):
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    return [CcInfo(linking_context = merged.linking_context)]

link_only = rule(
    implementation = _link_only_impl,
    attrs = {"deps": attr.label_list(providers = [CcInfo])},
)
