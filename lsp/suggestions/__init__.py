"""A suggestion's life, from the request to the counts of what became of it.

1. Predicted. Editors ask some tens of milliseconds after a key. Where one asked after the last key,
   the generation begins with this one (`next_request`, `Session.key_pressed`). Where the user went
   to another line, its prompt is read while the model is free (`prefill_ahead`).
2. Asked. A request is an `Ask` (`answers`), answered by `Session.suggest` within its deadline. A
   newer request for the same document takes its place; what a document has in flight is its
   `document_state`.
3. Suppressed. Settings, ignore rules, secrets, the place and the user's habits may say that nothing
   is suggested (`eligibility`).
4. Looked up. A suggestion made before is the answer as long as the text still fits it: typed along,
   gone back to, accepted in part (`kept`, `typed_along`).
5. Generated. Otherwise the model is asked, and its text comes in pieces (`in_flight`). A request
   whose time is over gets the finished lines; the generation goes on, for the next request.
6. Offered. Each edit of an answer gets an id, by which the editor tells what became of it
   (`offers`).
7. Shown and grown. An editor that can show more of a suggestion is told of it while the model goes
   on (`shown`).
8. Typed along. A change of the text either fits what is in flight, which goes on, or ends it
   (`Session.changed`).
9. Ended. A shown suggestion ends with the next request, when all of it was accepted, when other
   text is typed, when the document is closed or settings change. No message says that one was
   rejected: it was shown and never accepted.
10. Followed. After one that was accepted, what comes next is generated before anybody asks
   (`Session.accepted`), and after each further one while it is still being read.
11. Counted. Shown, accepted, retained: in the user's own statistics and habits, once for each
   suggestion, however many offers it was shown in (`feedback`, `offers`).

`session` is the order of these steps for one editor window, `suggestion` the value that goes
through them. LSP types stay outside.
"""
