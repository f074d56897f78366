"""`python -m codespec_lsp`"""

from codespec.processes import begin

from . import run

if __name__ == "__main__":
    begin()
    run()
