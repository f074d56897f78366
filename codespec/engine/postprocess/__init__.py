"""From what a model generated to the text to insert.

shape    how much to suggest at this place
stop     ends the generation there
trim     takes away what does not belong
fit      balances brackets, keeps a document that parses parsing: by its tree (grammar), by Python
         itself (python), by what the lines below close (below); as long as there is time (trials)
finish   all of it, in order
"""

from codespec.engine.postprocess.document import place_in
from codespec.engine.postprocess.finish import Finished, finish
from codespec.engine.postprocess.place import Place
from codespec.engine.postprocess.shape import Shape, shape_at
from codespec.engine.postprocess.stop import UnitStop
from codespec.engine.postprocess.trials import Late, never

__all__ = [
    "Finished",
    "Late",
    "Place",
    "Shape",
    "UnitStop",
    "finish",
    "never",
    "place_in",
    "shape_at",
]
