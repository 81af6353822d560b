"""python -m tack demo: kernels over a photograph, each checked against NumPy."""
