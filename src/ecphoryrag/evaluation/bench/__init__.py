"""The comparison of methods: a configuration, a run that can be resumed, its rows, and what is read from them.

A run is a folder:

| file | what it holds |
| --- | --- |
| ``rows.jsonl`` | the truth: a line a cell and a line a question (:mod:`.rows`); tables are made of it alone |
| ``manifest.json`` | what the run was made with (:mod:`.manifest`) |
| ``texts.jsonl`` | questions and passages, for reading single rows (:mod:`.texts`); the data sets' own licences hold |
| ``replies.jsonl`` | each reply of the language model, so that a run that is resumed pays none twice (:mod:`.models`) |
| ``work/`` | indexes; deleting it costs time, nothing else |
"""
