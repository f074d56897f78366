"""A next edit's life, from the question to the counts of what became of it.

1. Asked. An editor asks after a change (`handlers.next_edits`), for its version of the document.
   Settings and ignore rules may say that there are none, as in notebooks (`next_edit_session`).
   While it waits if the document changes again, the answer is looked for already (`look_ahead`).
2. Found. The daemon answers within the deadline of a suggestion. An answer to an older version is
   dropped. An editor that shows edits of one document alone gets those.
3. Placed. The edit's old text must stand where it says, in the editor's document or in the file;
   characters become the editor's columns (`places`).
4. Shown, and then accepted, dismissed or passed over. It is accepted where the editor says so, or
   where it was shown and the document becomes what it makes of it. It is dismissed where the editor
   says so, where it was shown and the user goes on in another line, or where its acceptance is
   undone: it is not proposed again then, while its old text stands.
5. Followed. After one that was accepted, the next is looked for before anybody asks.
6. Counted. Shown and accepted, by kind, in the user's own statistics.
"""
