"""The language server: codespec in editors, over LSP 3.18.

    editor --stdio--> server (LSP types, pygls) -> session (none) -> daemon

Rooms: positions (columns in the editor's units), changes (as editors send them), documents and
notebooks (open texts), session (a completion in its time), answers (what it is asked and says),
suggestions (what was suggested, and what of it still fits), generation and growth (while the model
is at it), underway (of a document), ahead (prompts read before they are asked for), foresight (what
will be asked, known from the key), offers and feedback (what became of them), configuration
(settings), indexer (a child process), status and progress (words for states), handlers, protocol
and server (pygls), bytecode (a faster import).
Everything but pygls is imported after the reply to `initialize`: an editor is starting up.
"""


def run() -> None:
    """Serve an editor over stdin and stdout until it says `exit`."""
    import gc
    import os

    from codespec.processes import away

    # The editor's folder is the workspace, mostly.
    if named := os.environ.get("CODESPEC_CONFIG"):
        os.environ["CODESPEC_CONFIG"] = os.path.abspath(os.path.expanduser(named))
    os.chdir(away())
    # Importing pygls makes 10^5 objects that stay; looking for garbage in them costs 100 ms.
    gc.disable()
    from . import bytecode

    with bytecode.kept(bytecode.beside(__file__, "attrs")):
        from .server import serve_stdio

    gc.freeze()
    gc.enable()
    serve_stdio()
