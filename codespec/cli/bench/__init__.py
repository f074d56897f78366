"""`codespec bench`: measurements that anyone can repeat. One file per benchmark."""

from __future__ import annotations

import click

from codespec.cli import LazyGroup
from codespec.system.processes import ending_in_order

_BENCHMARKS = {
    "all": "All of them, in a quarter of an hour.",
    "replay": "Decode a Git history again with each way of drafting.",
    "rewrite": "Rewrite the windows around a history's edits, as next-edit models do.",
    "index": "Size and speed of the workspace index.",
    "quality": "Complete places of real files, and compare with what stood there.",
    "models": "How good models are on packages they never saw.",
    "drafts": "What draft models are worth in a workspace, and at which target's size.",
    "latency": "Type a history's edits again, key by key, through server and daemon.",
    "edits": "Make commits again, hunk by hunk, and ask for the next edit after each.",
    "hop": "From a key to its suggestion, beside the model.",
    "curve": "Cost of a pass by its number of tokens.",
    "peers": "The same requests decoded by other systems, side by side.",
    "report": "One HTML page with plots of files of results.",
    "gate": "Fail where results are worse than a baseline.",
    "ablation": "What each optional part of drafting brings, by leaving it out.",
    "compare": "Set two files of results side by side.",
}


@click.group(cls=LazyGroup, package=__name__, summaries=_BENCHMARKS)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Measure codespec on this machine."""
    # Benchmarks have servers and folders of their own to clean up.
    ctx.with_resource(ending_in_order())
