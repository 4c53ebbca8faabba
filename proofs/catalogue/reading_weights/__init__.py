"""Chapter 7: lenses, embedding space, SVD, eigenvalues."""
