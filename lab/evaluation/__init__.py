"""How well recall finds what answers a question: a set of questions is loaded into an account of its own, and asked.

`datasets` says what a set is; `locomo` and `native` read one from a file, and a new format is one more such module in
`FORMATS` (`files`). `loading` stores it through the services that serve HTTP, `asking` asks through the same pipeline,
and may do so any number of times, each time with other techniques. `metrics` are formulas, `figures` adds them up by
type of question and by sample, `tables` and `charts` show them. `runs` is all of it, from a file to its answers.

`recording` keeps what the ranker had to choose from; `learning` is how weights are learnt, as mathematics, and `ranker`
learns those of the signals and judges them on other questions. `ablation` says what each signal and each technique
brings, `budgets` how much comes for how many tokens.
"""
