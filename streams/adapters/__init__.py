"""Puts a guard or an emitter into agents of well-known frameworks, by their public surfaces, and enforces verdicts.

One module a framework, each with an extra of its own; `watch` is what they have in common. None of them decides
anything: that is the detectors' matter.
"""
