"""Interrupted works, each with what its successor must know: told in a JSON file, lived through by the real services.

A story has conversations that continue each other, over days. What happens in one stands in its `log`, in order:

- `["user", text]`, `["assistant", text]`, `["tool", name, text]`: a turn;
- `{"record": ...}`: a structured turn about the `of` turns before it, the slots as the API has them;
- `{"goal": key, ...}`, `{"done": key}`, `{"wait": key, "by": key}`: work that is begun, ended, or waits for other work;
- `{"artifact": key, ...}`: something that is produced, or the next revision of it.

The checklist is written from the story. A successor knows an item when of each list in `in` one wording stands in the
text, whatever its case. What was `taken_back` may be told only in a line that says so (`told_with`).
"""
