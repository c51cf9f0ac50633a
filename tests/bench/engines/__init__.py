"""Four engines side by side on one broker and one load: Traction's worker, a bare loop, a Faust agent, Quix Streams.

They are for measuring only; what is compared is written beside each, and nothing of the product imports them.
"""
