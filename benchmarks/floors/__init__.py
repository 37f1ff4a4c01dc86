"""The same work by hand, with nothing of Handrail: what a program of this kind costs at least."""
