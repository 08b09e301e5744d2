"""The speed and accuracy of posenc and of others: ``python -m bench`` from the repository's root, or of ``posenc.bench``."""
