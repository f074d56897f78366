"""From what a model generated to the text to insert.

place, candidate   a cursor in a document, a text there, and what was read of both: each rule gets
                   them, so that nothing is read twice
shape    how much to suggest at this place: by heads, which open what is indented, or word_blocks
stop     ends the generation there; text_blocks: lines of prose that belong together
prose    brackets in text that is no code
trim     takes away what does not belong
strangers  people that the user's texts do not name
fit      balances brackets, keeps a document that parses parsing: by its tree (syntax_check), by
         Python itself (python), by what the lines below close (below); as long as there is time
         (trials)
json_values, commas   no value but JSON's in JSON, and commas where they belong
finish   all of it, in order
"""

from codespec.suggest.candidate import Candidate
from codespec.suggest.document import place_in
from codespec.suggest.finish import Finished, finish
from codespec.suggest.fit import Judge
from codespec.suggest.place import Place
from codespec.suggest.shape import Shape, shape_at
from codespec.suggest.stop import UnitStop
from codespec.suggest.strangers import Knows, nobody
from codespec.suggest.trials import Late, never

__all__ = [
    "Candidate",
    "Finished",
    "Judge",
    "Knows",
    "Late",
    "Place",
    "Shape",
    "UnitStop",
    "finish",
    "never",
    "nobody",
    "place_in",
    "shape_at",
]
