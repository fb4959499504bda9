"""Missing values: each site completes its own rows, by a model of its own rows, before anything is summed.

- `row_keys`: numbers drawn for a row, which depend on its content alone
- `row_sample`: a bounded sample of the rows, the same for any order of them
- `conditional_models`: each variable given all others, in the features of the study
- `imputed_source`: rows without gaps, and what they were before
"""
