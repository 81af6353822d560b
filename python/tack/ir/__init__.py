"""The typed intermediate representation: nodes, their checks, text form and interpreter, and what is handed to the runtime."""
