"""`python -m streams.hook_command`: what the script `traction-hook` does, where scripts are not installed."""

from streams.hook_command import main

main()
