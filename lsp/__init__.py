"""The language server: codespec in editors, over LSP 3.18.

    editor --stdio--> handlers (LSP types, pygls) -> suggestions (neither) -> daemon

| the process        | stdio, pipes, bytecode (a faster import of pygls)                           |
| messages           | protocol (corrections to pygls), bounds (upper bounds on what editors send) |
| methods            | handlers: one a file; language_server: the state that they share            |
| a suggestion       | suggestions: its life, step by step                                         |
| documents          | editor_documents (those that are open), documents, notebooks, changes       |
| units and types    | positions (columns in the editor's units), lsp_types, uris                  |
| settings           | configuration                                                               |
| shown beside       | status, work_done_progress                                                  |
| the index          | index_processes: a child process for each workspace folder                  |

Whatever the reply to `initialize` does not need is imported after it: an editor is starting up.
"""


def run() -> None:
    """Serve an editor over stdin and stdout until it says `exit`."""
    import gc
    import os

    from codespec.system.processes import away

    # Editors mostly start us in the workspace, which is no folder to run in; a relative path is
    # meant from there.
    if named := os.environ.get("CODESPEC_CONFIG"):
        os.environ["CODESPEC_CONFIG"] = os.path.abspath(os.path.expanduser(named))
    os.chdir(away())
    # Importing pygls makes 10^5 objects that stay; looking for garbage in them costs 100 ms.
    gc.disable()
    from . import bytecode

    with bytecode.kept(bytecode.beside(__file__, "attrs")):
        from .stdio import serve_stdio

    gc.freeze()
    gc.enable()
    serve_stdio()
