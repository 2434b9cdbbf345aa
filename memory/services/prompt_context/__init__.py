"""Prompt contexts (A7, B2): what an agent should see before it answers, as one system message.

- `build`: `build_prompt_context` recalls, renders and marks; `conclude_prompt_context` counts the reads;
  `preview_prompt_context` shows staff the same and changes nothing.
- `layout`: `render_context` fits working memory, similar episodes, the profile and evidence into the token budget.
- `sections`: working memory and the profile as texts, cut where they are too long.
- `quoting`: `fence_value` formats stored text so that it cannot pass for a section of ours, `clean_line` on one line.
- `left_out`: `find_left_out` says which memories are missing from a context, and why.

To add a section, add its material to `layout.ContextMaterial`, a template to `templates/context/`, and render it in
`layout.render_sections` within the tokens that are left.
"""
