"""The front end: from the text of a kernel and the types of its arguments to typed IR. Knows no device, no NumPy and no runtime."""
