"""Who may do what on the brokers: roles, the rules that they become, and what brokers know of them.

`roles.toml` says what each role may do and is the only place that does; `rules` makes rules (ACLs) of it for given
principals, `brokers` creates and reads them, `compared` tells what is missing and what is too much, `rights` has a
process look at the start whether it has what its role needs.
"""
