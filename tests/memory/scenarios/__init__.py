"""Stories of interrupted work, each with what its successor must know: JSON files that the real services live through.

A story has conversations that continue each other, over days. The `log` of each lists what happens, in order:

- `["user", text]`, `["assistant", text]`, `["tool", name, text]`: a turn;
- `{"record": ...}`: a structured turn about the `of` turns before it, with slots as in the API;
- `{"goal": key, ...}`, `{"done": key}`, `{"wait": key, "by": key}`: a goal is added, completed, or waits for another;
- `{"artifact": key, ...}`: an artifact is produced, or its next revision.

The checklist is written from the story. A successor knows an item if the text contains one wording of each list in
`in`, in any case. What was `taken_back` may stand only in a line that says so (`told_with`).
"""
