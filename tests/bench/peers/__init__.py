"""One module for each peer: ``cases(threads)`` gives, per case name, a function from the data to a function that runs the case once.

A peer whose arrays are its own copies them in before and, for the check, back out after (``run.finish``, if it has one).
"""
