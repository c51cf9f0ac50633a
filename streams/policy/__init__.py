"""The policy: limits and the ladder of responses as one file in Git, for whom which of them hold, and its reload.

`load` reads a file, `policy` says what it means for a session or task, `watch` follows it while a process runs.
"""
