"""`python -m codespec_lsp`"""

from codespec.system.processes import begin

from . import run

if __name__ == "__main__":
    begin()
    run()
