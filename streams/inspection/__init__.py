"""What people ask about sessions and tasks, and what they decide: looked up on the topics, written there as records.

For the command line; nothing here prints. It keeps no state: every answer is read from the topics as they are.
"""
