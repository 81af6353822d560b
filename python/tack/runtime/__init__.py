"""What needs the runtime or NumPy at run time: the backend query and the host versions of casts and math."""
