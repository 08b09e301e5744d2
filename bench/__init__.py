"""The speed and memory of posenc against its goals: ``python -m bench`` from the repository's root."""
