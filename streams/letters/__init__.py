"""Reads the dead letters and puts the records that are in them back onto the topics that they came from.

It must not change a record, and must not judge whether what refused it is mended.
"""
