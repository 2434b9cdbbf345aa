"""Evaluation of recall: a set of questions is loaded into an account of its own, and asked.

`datasets` defines a set; `locomo` and `native` read one from a file, and a new format is one more such module in
`FORMATS` (`files`). `loading` stores it through the services that serve HTTP; `asking` asks through the same pipeline,
any number of times, with other techniques. `metrics` has the formulas, `figures` adds them up by type of question and
by sample, `tables` and `charts` show them. `runs` does all of it, from a file to its figures.

`recording` keeps what the ranker chose from; `learning` has the mathematics of weights, and `ranker` learns those of
the signals and judges them on other questions. `ablation` says what each signal and technique contributes, `budgets`
how much evidence comes for how many tokens.
"""
